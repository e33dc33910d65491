//! The command line of the simulated engine as a server.

use assize_plan::SimServer;
use assize_units::DurNs;

/// Units of the command line from the greatest to the smallest, in nanoseconds.
const UNITS: [(&str, u64); 4] = [
    ("s", 1_000_000_000),
    ("ms", 1_000_000),
    ("us", 1_000),
    ("ns", 1),
];

/// What follows the program's name to serve `sim` on `port`: `sim --port 8000 …`.
///
/// Every parameter is written out, so the command in the evidence says all of it and no default of
/// a later version can change it.
pub fn sim_arguments(sim: &SimServer, port: u16) -> Vec<String> {
    let options = [
        ("--port", port.to_string()),
        ("--model", sim.model.clone()),
        ("--prefill-base", duration(sim.prefill_base_ns)),
        ("--prefill-per-token", duration(sim.prefill_per_token_ns)),
        ("--step", duration(sim.step_ns)),
        ("--step-per-seq", duration(sim.step_per_seq_ns)),
        ("--max-seqs", sim.max_seqs.to_string()),
        ("--tokens-per-event", sim.tokens_per_event.to_string()),
        ("--jitter-ppm", sim.jitter_ppm.to_string()),
        ("--seed", sim.seed.to_string()),
        ("--startup", duration(sim.startup_ns)),
    ];
    let faults = sim.faults.iter().map(|fault| ("--fault", fault.clone()));
    let mut arguments = vec!["sim".to_owned()];
    for (option, value) in options.into_iter().chain(faults) {
        arguments.push(option.to_owned());
        arguments.push(value);
    }
    arguments
}

/// The greatest unit that is exact: `8ms`, `1500us`, `0s`.
fn duration(value: DurNs) -> String {
    let exact = UNITS.iter().find(|(_, ns)| value.0.is_multiple_of(*ns));
    let (unit, ns) = exact.unwrap_or(&("ns", 1));
    format!("{}{unit}", value.0 / ns)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_parameter_is_written_out_exactly() {
        let sim = SimServer {
            model: "tiny".to_owned(),
            prefill_base_ns: DurNs::from_ms(2),
            prefill_per_token_ns: DurNs(1_500),
            step_ns: DurNs::from_us(8_001),
            step_per_seq_ns: DurNs(100_000),
            max_seqs: 64,
            tokens_per_event: 2,
            jitter_ppm: 500,
            seed: 7,
            startup_ns: DurNs::from_s(120),
            faults: vec!["hang@3".to_owned(), "reset_before_head@5".to_owned()],
        };
        assert_eq!(
            sim_arguments(&sim, 8123).join(" "),
            "sim --port 8123 --model tiny --prefill-base 2ms --prefill-per-token 1500ns \
             --step 8001us --step-per-seq 100us --max-seqs 64 --tokens-per-event 2 \
             --jitter-ppm 500 --seed 7 --startup 120s --fault hang@3 --fault reset_before_head@5"
        );
    }

    #[test]
    fn no_time_is_zero_seconds() {
        assert_eq!(duration(DurNs::ZERO), "0s");
    }
}
