//! The figures of one cell, each over records given by hand.

use assize_evidence::{Phase, Terminal};
use assize_plan::{Measure, Origin as PlanOrigin, Plan, Quantity, Stat, Threshold};
use assize_reader::metrics::{CellData, Need, NoFigure, Origin, Timeline, figure, summarize};
use assize_reader::records::{ConnectionUse, EventCounts, Outcome, Record};
use assize_reader::replay::openai::Finish;
use assize_units::{Bytes, DurNs, MonoNs, Ratio};

/// A valid request: intended and sent at `at`, tokens at the given milliseconds after.
fn valid(index: u32, at_ms: u64, tokens_ms: &[u64], output_tokens: Option<u64>) -> Record {
    let at = MonoNs(at_ms * 1_000_000);
    let after = |ms: &u64| at.after(DurNs::from_ms(*ms));
    let done = tokens_ms.last().map_or(at, after).after(DurNs::from_ms(1));
    Record {
        index,
        class: 0,
        outcome: Outcome::Valid,
        phase: Phase::Ended,
        why: None,
        status: Some(200),
        times: Timeline {
            intended: at,
            dispatched: Some(at),
            admitted: Some(at),
            sent: Some(at),
            head: Some(at),
            tokens: tokens_ms.iter().map(after).collect(),
            first_output: tokens_ms.first().map(after),
            done: Some(done),
            end: Some(done),
            output_tokens,
        },
        events: EventCounts {
            events: tokens_ms.len() as u64 + 1,
            ..EventCounts::default()
        },
        usage_tokens: output_tokens,
        id_tokens: None,
        finishes: vec![Finish::Length],
        connection: None,
    }
}

fn failed(index: u32, at_ms: u64, terminal: Terminal) -> Record {
    Record {
        outcome: Outcome::Terminal(terminal),
        phase: Phase::BeforeHead,
        ..valid(index, at_ms, &[], None)
    }
}

fn data<'a>(records: &'a [Record], needs: &'a [Need]) -> CellData<'a> {
    CellData {
        offered: records.len(),
        origin: MonoNs(0),
        end: MonoNs(1_000_000_000),
        records,
        needs,
    }
}

/// Figures without a class need no plan; this one is as small as a plan can be.
fn plan() -> Plan {
    let text = r#"{"arms":[],"arrivals":[],"compare":[],"draw":"d","driver":"any","external":[],"format":"assize-plan/1",
        "interrupted":"final","language":1,"limits":{"duration_ns":null,"output_tokens":null,"requests":null},
        "max_response_bytes":1,"orders":[],"panels":[],"question":null,"replicates":null,"requests":[],
        "rules":[],"scope":null,"spin_ns":0,"study":"s","units":[],"values":[]}"#;
    serde_json::from_str(text).expect("a plan")
}

fn measure(quantity: Quantity) -> Measure {
    Measure {
        quantity,
        stat: None,
        from: None,
        class: None,
        within: Vec::new(),
    }
}

fn of(records: &[Record], measure: &Measure) -> Result<Ratio, NoFigure> {
    figure(&plan(), &data(records, &[]), measure)
}

/// "goodput(...) = valid requests within every threshold (inclusive) / the interval; an empty
/// success misses a first-token threshold; failures never qualify."
#[test]
fn goodput_counts_what_is_within_every_threshold() {
    let records = [
        valid(0, 0, &[100, 110], Some(2)),
        valid(1, 10, &[101, 110], Some(2)),
        valid(2, 20, &[], Some(0)),
        failed(3, 30, Terminal::Reset),
    ];
    let mut goodput = measure(Quantity::Goodput);
    assert_eq!(of(&records, &goodput), Err(NoFigure::Incomplete));
    goodput.within = vec![Threshold {
        quantity: Quantity::Ttft,
        from: Some(PlanOrigin::Intended),
        at_most_s: Ratio::new(1, 10).unwrap(),
    }];
    assert_eq!(of(&records, &goodput), Ok(Ratio::ONE));
    let attainment = Measure {
        quantity: Quantity::Attainment,
        ..goodput
    };
    assert_eq!(of(&records, &attainment), Ok(Ratio::new(1, 4).unwrap()));
}

/// "output_throughput is null, with the reason, if a valid request lacks its count or none is
/// valid."
#[test]
fn output_throughput_is_absent_rather_than_too_small() {
    let counted = valid(0, 0, &[10, 20], Some(2));
    let output = measure(Quantity::OutputThroughput);
    let two = [counted.clone(), failed(1, 5, Terminal::Reset)];
    assert_eq!(of(&two, &output), Ok(Ratio::whole(2)));
    let uncounted = [counted, valid(1, 5, &[10], None)];
    assert_eq!(of(&uncounted, &output), Err(NoFigure::NoTokenCount));
    let summary = summarize(&data(&uncounted, &[]));
    assert_eq!(summary.output_throughput, None);
    assert_eq!(
        summary.output_throughput_absent,
        Some("a valid request lacks its token count")
    );
    assert_eq!(
        of(&[failed(0, 0, Terminal::Reset)], &output),
        Err(NoFigure::NoSample)
    );
}

/// "missing: no terminal record, or a valid request without a time that a hypothesis needs."
#[test]
fn an_empty_success_is_missing_only_where_its_time_is_needed() {
    let records = [valid(0, 0, &[10], Some(1)), valid(1, 5, &[], Some(0))];
    let needs = [Need {
        quantity: Quantity::Ttft,
        from: Some(Origin::Intended),
    }];
    let missing = |cell: &CellData<'_>| figure(&plan(), cell, &measure(Quantity::Missing));
    assert_eq!(missing(&data(&records, &[])), Ok(Ratio::ZERO));
    assert_eq!(missing(&data(&records, &needs)), Ok(Ratio::ONE));
    let unaccounted = CellData {
        offered: 5,
        ..data(&records, &[])
    };
    assert_eq!(missing(&unaccounted), Ok(Ratio::whole(3)));
    assert_eq!(summarize(&data(&records, &needs)).empty_valid, 1);
}

/// "Lags cover all attempts, latencies the valid ones." Percentiles are nearest-rank.
#[test]
fn latencies_are_those_of_valid_requests() {
    let mut records: Vec<Record> = (1..=19)
        .map(|i| valid(i - 1, 0, &[u64::from(i)], Some(1)))
        .collect();
    records.push(failed(19, 0, Terminal::RequestTimeout));
    let p95 = Measure {
        stat: Some(Stat::P95),
        from: Some(PlanOrigin::Sent),
        ..measure(Quantity::Ttft)
    };
    // Rank ⌈0.95 × 19⌉ = 19.
    assert_eq!(of(&records, &p95), Ok(Ratio::new(19, 1_000).unwrap()));
    let summary = summarize(&data(&records, &[]));
    let samples = |name: &str| {
        let found = summary.latencies.iter().find(|it| it.name == name);
        found.map(|it| it.samples)
    };
    assert_eq!(samples("ttft"), Some(19));
    assert_eq!(samples("dispatch_lag"), Some(20));
    // One token makes no time per token after the first.
    assert_eq!(samples("tpot"), None);
}

#[test]
fn the_mean_of_many_different_denominators_still_has_a_value() {
    let records: Vec<Record> = (2..400u64)
        .map(|tokens| valid(tokens as u32 - 2, 0, &[10, 1_000], Some(tokens)))
        .collect();
    let mean = Measure {
        stat: Some(Stat::Mean),
        ..measure(Quantity::Tpot)
    };
    let found = of(&records, &mean).expect("a mean").as_f64();
    let wanted = (2..400u32).map(|n| 0.99 / f64::from(n - 1)).sum::<f64>() / 398.0;
    assert!((found - wanted).abs() < 1e-12);
}

/// The likeness needs a connection that was used before and not one byte of an answer.
#[test]
fn a_stale_reuse_is_told_from_other_failures() {
    let with = |terminal, nth, received| {
        let connection = ConnectionUse {
            conn: 0,
            nth,
            idle: Some(DurNs::from_s(5)),
            sent: Bytes(100),
            received: Bytes(received),
            errno: None,
        };
        Record {
            connection: Some(connection),
            ..failed(0, 0, terminal)
        }
    };
    assert!(with(Terminal::Disconnected, 1, 0).is_like_stale_reuse());
    assert!(with(Terminal::Reset, 1, 0).is_like_stale_reuse());
    assert!(!with(Terminal::Reset, 0, 0).is_like_stale_reuse());
    assert!(!with(Terminal::Reset, 1, 7).is_like_stale_reuse());
    assert!(!with(Terminal::RequestTimeout, 1, 0).is_like_stale_reuse());
}

#[test]
fn outstanding_requests_and_the_backlog_of_each_quarter() {
    // Admitted at 0, 10, 20, 30 ms; each ends 26 ms later.
    let records: Vec<Record> = (0..4)
        .map(|i| valid(i, u64::from(i) * 10, &[25], Some(1)))
        .collect();
    let summary = summarize(&data(&records, &[]));
    assert_eq!(summary.peak_outstanding, 3);
    let backlog: Vec<usize> = summary.backlog.iter().map(|it| it.outstanding).collect();
    // At 7.5, 15, 22.5 and 30 ms.
    assert_eq!(backlog, [1, 2, 3, 3]);
}
