//! A server definition as the process that it stands for.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::time::Duration;

use assize_codes::E0901;
use assize_plan::{ServerDef, ServerKind};

use super::processes::{Programs, failure};
use super::tree::signal_named;
use super::{WorldFailure, sim_arguments};

/// Names that every child gets, where the runner has them.
const ALWAYS_PASSED: [&str; 4] = ["PATH", "HOME", "LANG", "TMPDIR"];
/// How long a simulated engine may take to end.
const SIM_STOP_WITHIN: Duration = Duration::from_secs(5);

/// A server definition as a process.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Launch {
    /// Program and arguments.
    pub command: Vec<String>,
    /// The whole environment.
    pub environment: BTreeMap<String, OsString>,
    /// What asks it to end.
    pub stop_signal: String,
    /// How long it may take.
    pub stop_within: Duration,
}

impl Launch {
    /// What `def` starts; `variable` looks into the runner's environment.
    pub fn of(
        programs: &Programs,
        def: &ServerDef,
        port: u16,
        variable: impl Fn(&str) -> Option<OsString>,
    ) -> Result<Launch, WorldFailure> {
        let passed = |names: &[&str]| {
            let found = |name: &&str| Some(((*name).to_owned(), variable(name)?));
            names.iter().filter_map(found).collect::<BTreeMap<_, _>>()
        };
        let mut environment = passed(&ALWAYS_PASSED);
        match &def.kind {
            ServerKind::Command {
                command,
                env,
                pass,
                stop_signal,
                stop_within_ns,
            } => {
                if signal_named(stop_signal).is_none() {
                    let message = "no signal of that name can ask a server to end";
                    return Err(failure(E0901, "start", stop_signal, message));
                }
                let pass: Vec<&str> = pass.iter().map(String::as_str).collect();
                environment.extend(passed(&pass));
                let set = |(name, value): (&String, &String)| (name.clone(), value.into());
                environment.extend(env.iter().map(set));
                Ok(Launch {
                    command: command.clone(),
                    environment,
                    stop_signal: stop_signal.clone(),
                    stop_within: Duration::from_nanos(stop_within_ns.0),
                })
            }
            ServerKind::Sim(sim) => {
                let program = programs.sim.to_str().ok_or_else(|| {
                    let subject = programs.sim.display().to_string();
                    failure(E0901, "start", &subject, "the program's path is not UTF-8")
                })?;
                let mut command = vec![program.to_owned()];
                command.extend(sim_arguments(sim, port));
                Ok(Launch {
                    command,
                    environment,
                    stop_signal: "TERM".to_owned(),
                    stop_within: SIM_STOP_WITHIN,
                })
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use assize_plan::SimServer;
    use assize_units::DurNs;

    fn programs() -> Programs {
        Programs {
            keeper: "assize".into(),
            keeper_arguments: vec!["keep".into()],
            sim: "/opt/assize".into(),
        }
    }

    fn def(kind: ServerKind) -> ServerDef {
        ServerDef {
            format: "assize-server/1".to_owned(),
            base: "http://127.0.0.1:8123/v1".to_owned(),
            ready_path: "/health".to_owned(),
            ready_within_ns: DurNs::from_s(1),
            kind,
        }
    }

    fn launch(kind: ServerKind) -> Result<Launch, WorldFailure> {
        let def = def(kind);
        let runner = [
            ("PATH", "/bin"),
            ("HOME", "/home/a"),
            ("LD_PRELOAD", "x.so"),
            ("API_KEY", "s3cret"),
            ("HF_HOME", "/models"),
        ];
        let variable = |name: &str| {
            let found = runner.iter().find(|(known, _)| *known == name)?;
            Some(OsString::from(found.1))
        };
        Launch::of(&programs(), &def, 8123, variable)
    }

    fn command(stop_signal: &str) -> ServerKind {
        let env = [("HOME", "/srv"), ("MODE", "1")];
        ServerKind::Command {
            command: vec!["serve".to_owned(), "--x".to_owned()],
            env: env.map(|(k, v)| (k.to_owned(), v.to_owned())).into(),
            pass: vec!["HF_HOME".to_owned(), "UNSET".to_owned()],
            stop_signal: stop_signal.to_owned(),
            stop_within_ns: DurNs::from_s(30),
        }
    }

    #[test]
    fn a_child_gets_the_four_names_what_is_passed_and_what_is_set() {
        let launch = launch(command("INT")).unwrap();
        let names: Vec<_> = launch
            .environment
            .iter()
            .map(|(name, value)| format!("{name}={}", value.display()))
            .collect();
        assert_eq!(
            names,
            ["HF_HOME=/models", "HOME=/srv", "MODE=1", "PATH=/bin"]
        );
        assert_eq!(launch.stop_within, Duration::from_secs(30));
    }

    #[test]
    fn an_unknown_signal_is_told_before_anything_starts() {
        let failure = launch(command("STOP")).unwrap_err();
        assert_eq!(failure.code, E0901);
    }

    #[test]
    fn a_simulated_server_is_this_program_on_the_port_of_its_base() {
        let launch = launch(ServerKind::Sim(SimServer {
            model: "sim".to_owned(),
            prefill_base_ns: DurNs::from_ms(2),
            prefill_per_token_ns: DurNs::from_us(20),
            step_ns: DurNs::from_ms(8),
            step_per_seq_ns: DurNs::from_us(100),
            max_seqs: 64,
            tokens_per_event: 1,
            jitter_ppm: 0,
            seed: 0,
            startup_ns: DurNs::ZERO,
            faults: Vec::new(),
        }))
        .unwrap();
        assert_eq!(
            launch.command[..4],
            ["/opt/assize", "sim", "--port", "8123"]
        );
        assert!(!launch.environment.contains_key("API_KEY"));
    }
}
