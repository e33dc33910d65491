//! The command as a user has it: the whole path on a real driver, and what goes wrong on the way.

#![allow(
    clippy::disallowed_methods,
    reason = "a test starts programs, reads folders and waits for them"
)]

use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use assize_evidence::calibration::{
    Amounts, Beside, CALIBRATION_FORMAT, Calibration, Limit, ReceiveWay, Row,
};
use assize_units::DurNs;
use serde_json::Value;

const ASSIZE: &str = env!("CARGO_BIN_EXE_assize");

/// A folder of its own with a copy of one example, its engine on a free port.
struct Place {
    folder: tempfile::TempDir,
}

impl Place {
    fn with(example: &str) -> Place {
        let folder = tempfile::tempdir().unwrap();
        let from = Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("../../examples")
            .join(example);
        for entry in std::fs::read_dir(from).unwrap() {
            let path = entry.unwrap().path();
            let mut text = std::fs::read_to_string(&path).unwrap();
            if let Some(at) = text.find("port: ") {
                text.replace_range(at + 6..at + 11, &free_port().to_string());
            }
            std::fs::write(folder.path().join(path.file_name().unwrap()), text).unwrap();
        }
        Place { folder }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(ASSIZE);
        command
            .args(arguments)
            .current_dir(self.folder.path())
            .stdin(Stdio::null());
        command
    }

    fn run(&self, arguments: &[&str]) -> Output {
        self.command(arguments).output().unwrap()
    }

    /// Runs and demands a status.
    fn demand(&self, arguments: &[&str], status: i32) -> Output {
        let output = self.run(arguments);
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(status), "{arguments:?}: {said}");
        output
    }

    fn json(&self, arguments: &[&str], status: i32) -> Value {
        serde_json::from_slice(&self.demand(arguments, status).stdout).unwrap()
    }
}

/// A port of five digits that nothing listens on.
fn free_port() -> u16 {
    loop {
        let port = TcpListener::bind("127.0.0.1:0")
            .unwrap()
            .local_addr()
            .unwrap()
            .port();
        if port >= 10_000 {
            return port;
        }
    }
}

/// The simulated engine as a process, ended when dropped.
struct Engine {
    child: Child,
    url: String,
}

impl Engine {
    fn start(arguments: &[&str]) -> Engine {
        let port = free_port().to_string();
        let child = Command::new(ASSIZE)
            .args(["sim", "--step", "1ms", "--port", &port])
            .args(arguments)
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let url = format!("http://127.0.0.1:{port}");
        wait_for(|| std::net::TcpStream::connect(format!("127.0.0.1:{port}")).is_ok());
        Engine { child, url }
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn wait_for(mut it: impl FnMut() -> bool) {
    let until = Instant::now() + Duration::from_mins(1);
    while !it() {
        assert!(
            Instant::now() < until,
            "it did not come to pass in a minute"
        );
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn the_path_from_a_study_to_a_report() {
    let place = Place::with("00-hello");
    place.demand(&["check", "study.yaml"], 0);
    let frozen = place.demand(&["freeze", "study.yaml"], 0);
    let hash = String::from_utf8(frozen.stdout).unwrap().trim().to_owned();
    let plan = std::fs::read(place.path("hello.plan/plan.json")).unwrap();
    assert_eq!(assize_plan::Hash::of(&plan).hex(), hash);

    let ran = place.json(&["run", "hello.plan", "--format", "json"], 0);
    assert_eq!(
        (&ran["complete"], &ran["requests"]["failed"]),
        (&Value::from(true), &Value::from(0))
    );
    let seal = ran["seal"]
        .as_str()
        .unwrap()
        .strip_prefix("sha256:")
        .unwrap()
        .to_owned();
    let verified = place.json(
        &[
            "verify",
            "hello.evidence",
            "--seal",
            &seal,
            "--format",
            "json",
        ],
        0,
    );
    assert_eq!(verified["compared"], 64);
    let report = place.json(&["report", "hello.evidence", "--format", "json"], 0);
    assert_eq!(report["format"], "assize-report/1");
    let csv = place.demand(
        &[
            "report",
            "hello.evidence",
            "--format",
            "csv",
            "--html",
            "page.html",
        ],
        0,
    );
    assert_eq!(
        String::from_utf8(csv.stdout).unwrap().lines().count(),
        2,
        "a heading and one cell"
    );
    assert!(
        std::fs::read_to_string(place.path("page.html"))
            .unwrap()
            .contains(&hash)
    );
    // Nothing is supported where nothing was declared.
    place.demand(&["report", "hello.evidence", "--require", "supported"], 1);
    // A new execution is a replication with a folder of its own.
    place.demand(&["run", "hello.plan"], 1);

    for name in [
        "hello.evidence/everything/00/sim/four/wire.log",
        "hello.evidence/journal.jsonl",
    ] {
        let honest = std::fs::read(place.path(name)).unwrap();
        let mut changed = honest.clone();
        let middle = changed.len() / 2;
        changed[middle] ^= 4;
        std::fs::write(place.path(name), changed).unwrap();
        let refused = place.demand(&["verify", "hello.evidence"], 1);
        let said = String::from_utf8_lossy(&refused.stderr).into_owned();
        let file = name.strip_prefix("hello.evidence/").unwrap();
        assert!(said.contains(file), "{said}");
        std::fs::write(place.path(name), honest).unwrap();
    }
    place.demand(&["verify", "hello.evidence"], 0);
}

fn calibration() -> Calibration {
    let none = DurNs::ZERO;
    Calibration {
        format: CALIBRATION_FORMAT.into(),
        tool: "a test".into(),
        amounts: Amounts {
            streams: 1,
            events: 1,
            gap_ns: none,
            requests: 1,
            request_gap_ns: none,
            rates: vec![],
            rung_ns: none,
            budget_ns: none,
        },
        rows: vec![Row {
            driver: "epoll".into(),
            receive: ReceiveWay::Reap,
            recording: true,
            receive_error: None,
            early: 0,
            kernel_stamped: 0,
            receives: 0,
            dispatch_lag: None,
            cpu_per_event_ns: None,
            cpu_per_request_ns: None,
            held: None,
            limit: Limit::Time,
            rungs: vec![],
            failed: 0,
        }],
        absent: vec![],
        host: Beside {
            load_before: None,
            load_after: None,
            online: None,
            cpu: None,
            kernel: None,
            boot_id: Some("another boot".into()),
            affinity: None,
            memory: None,
            steal_permille: None,
            took_ns: none,
        },
    }
}

#[test]
fn a_calibration_goes_with_a_run_and_its_evidence() {
    let place = Place::with("00-hello");
    place.demand(&["freeze", "study.yaml"], 0);
    std::fs::write(place.path("bad.json"), "{\"format\": \"assize-run/1\"}").unwrap();
    let with = |file| ["run", "hello.plan", "--calibration", file];
    let refused = place.demand(&with("bad.json"), 1);
    assert!(String::from_utf8_lossy(&refused.stderr).contains("E0707"));
    place.demand(&with("none.json"), 2);
    assert!(!place.path("hello.evidence").exists(), "nothing was begun");

    // One of another boot is taken, and said to be so.
    let bytes = calibration().to_json() + "\n";
    std::fs::write(place.path("other.json"), &bytes).unwrap();
    let ran = place.demand(&with("other.json"), 0);
    let said = String::from_utf8_lossy(&ran.stderr).into_owned();
    assert!(said.contains("warning: the calibration may not hold here: the host has been started"));
    let kept = place.path("hello.evidence/calibration.json");
    assert_eq!(std::fs::read_to_string(&kept).unwrap(), bytes);
    place.demand(&["verify", "hello.evidence"], 0);
    std::fs::write(&kept, bytes.trim_end()).unwrap();
    let found = place.demand(&["verify", "hello.evidence"], 1);
    assert!(String::from_utf8_lossy(&found.stderr).contains("calibration.json differs"));
}

#[test]
fn the_demo_ends_well_and_its_evidence_verifies() {
    let place = Place::with("demo");
    let shown = place.demand(&["demo", "--out", "d"], 0);
    let text = String::from_utf8(shown.stdout).unwrap();
    assert!(text.contains("report.html"), "{text}");
    place.demand(&["verify", "d/demo.evidence"], 0);
    let report = place.json(&["report", "d/demo.evidence", "--format", "json"], 0);
    let families = report["families"].as_array().unwrap();
    assert_eq!(families.len(), 1);
    assert!(
        std::fs::read_to_string(place.path("d/report.html"))
            .unwrap()
            .contains("supported")
    );
}

#[test]
fn a_killed_run_leaves_no_process_and_evidence_that_verify_explains() {
    let place = Place::with("03-two-arms-blocks");
    place.demand(&["freeze", "study.yaml"], 0);
    let mut run = place
        .command(&["run", "two-arms.plan"])
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let cell = place.path("two-arms.evidence/confirmation/00");
    wait_for(|| cell.exists() && !family_of(run.id()).is_empty());
    std::thread::sleep(Duration::from_millis(800));
    let family = family_of(run.id());
    run.kill().unwrap();
    run.wait().unwrap();
    wait_for(|| {
        family
            .iter()
            .all(|pid| !Path::new(&format!("/proc/{pid}")).exists())
    });
    let verified = place.json(&["verify", "two-arms.evidence", "--format", "json"], 4);
    assert_eq!(verified["complete"], false);
    assert!(!verified["gaps"].as_array().unwrap().is_empty());
    let report = place.json(&["report", "two-arms.evidence", "--format", "json"], 0);
    let verdict = &report["families"][0]["hypotheses"][0]["verdict"];
    assert_eq!(verdict, "not_evaluated");
}

/// The process ids of everything that a process has started.
fn family_of(root: u32) -> Vec<u32> {
    let mut family = vec![root];
    let mut place = 0;
    while place < family.len() {
        let tasks = format!("/proc/{}/task", family[place]);
        for task in std::fs::read_dir(tasks).into_iter().flatten().flatten() {
            let children =
                std::fs::read_to_string(task.path().join("children")).unwrap_or_default();
            family.extend(
                children
                    .split_whitespace()
                    .map(|pid| pid.parse::<u32>().unwrap()),
            );
        }
        place += 1;
    }
    family.remove(0);
    family
}

#[test]
fn each_fault_of_a_server_is_recorded_by_its_name() {
    let place = Place::with("00-hello");
    let faults = [
        ("reset_before_head@1", "reset"),
        ("close_before_head@1", "disconnected"),
        ("close_mid_stream(2)@1", "truncated"),
        ("status(500)@1", "http_status"),
        ("hang@1", "request_timeout"),
        ("missing_done@1", "missing_done"),
        ("malformed_chunk(1)@1", "malformed_framing"),
        ("malformed_event(1)@1", "malformed_event"),
        ("gzip_claim@1", "encoded"),
        ("wrong_content_type@1", "wrong_content_type"),
    ];
    for (fault, outcome) in faults {
        let engine = Engine::start(&["--fault", fault]);
        let bench = [
            "bench",
            &engine.url,
            "--prompts",
            "prompts.jsonl",
            "--requests",
            "3",
            "--max-tokens",
            "8",
        ];
        let arguments = [&bench[..], &["--timeout", "5s", "--format", "json"]].concat();
        let summary = &place.json(&arguments, 1)["cells"][0]["summary"];
        assert_eq!(summary["valid"], 2, "{fault}: {summary}");
        assert_eq!(summary["failures"][0]["outcome"], outcome, "{fault}");
    }
}

#[test]
fn bad_input_has_a_code_and_a_status() {
    let place = Place::with("00-hello");
    let said = |arguments: &[&str], status: i32| {
        let output = place.demand(arguments, status);
        String::from_utf8_lossy(&output.stderr).into_owned()
            + &String::from_utf8_lossy(&output.stdout)
    };
    assert!(said(&["check", "nothing.yaml"], 3).contains("E0702"));
    assert!(said(&["run", "nothing.plan"], 3).contains("E0702"));
    assert!(said(&["verify", "nothing.evidence"], 3).contains("E0808"));
    assert!(said(&["explain", "E9999"], 2).contains("E1001"));
    assert!(said(&["explain", "E0701"], 0).contains("broken seal"));
    said(&["check", "--nonsense", "study.yaml"], 2);
    let dead = format!("http://127.0.0.1:{}", free_port());
    assert!(said(&["bench", &dead, "--prompts", "prompts.jsonl"], 3).contains("E0904"));
    let refused = [
        "bench",
        &dead,
        "--prompts",
        "prompts.jsonl",
        "--model",
        "m",
        "--requests",
        "2",
    ];
    assert!(said(&refused, 1).contains("refused in connect"));

    let study = std::fs::read_to_string(place.path("study.yaml")).unwrap();
    std::fs::write(
        place.path("study.yaml"),
        study.replace("prompts.jsonl", "missing.jsonl"),
    )
    .unwrap();
    let shown = said(&["check", "study.yaml"], 1);
    assert!(
        shown.contains("missing.jsonl") && shown.contains("-->"),
        "{shown}"
    );
    let json = place.json(&["check", "study.yaml", "--format", "json"], 1);
    assert_eq!(json["format"], "assize-diagnostics/1");
}

/// The hex digits of the plan that `freeze` answered with.
fn hash_of(frozen: &serde_json::Value) -> String {
    let plan = frozen["plan"].as_str().unwrap();
    plan.strip_prefix("sha256:").unwrap().to_owned()
}

#[test]
fn a_plan_with_a_command_needs_its_hash_said() {
    let place = Place::with("00-hello");
    let port = free_port();
    let server = format!(
        "assize: 1\ncommand: [{ASSIZE}, sim, --port, \"{port}\"]\nbase: \"http://127.0.0.1:{port}/v1\"\n\
         ready: {{ get: /health, within: 30s }}\n"
    );
    std::fs::write(place.path("sim.yaml"), server).unwrap();
    let frozen = place.json(&["freeze", "study.yaml", "--format", "json"], 0);
    let hash = hash_of(&frozen);
    assert!(
        frozen["run"]
            .as_str()
            .unwrap()
            .ends_with(&format!("--approve {}", &hash[..8]))
    );
    let refused = place.demand(&["run", "hello.plan"], 1);
    assert!(String::from_utf8_lossy(&refused.stderr).contains("E0704"));
    place.demand(&["run", "hello.plan", "--approve", "00000000"], 1);
    place.demand(&["run", "hello.plan", "--approve", &hash[..8]], 0);
    place.demand(&["verify", "hello.evidence"], 0);
}

#[test]
fn a_server_that_never_gets_ready_ends_the_run_by_its_code() {
    let place = Place::with("00-hello");
    let port = free_port();
    let server = format!(
        "assize: 1\ncommand: [sleep, \"60\"]\nbase: \"http://127.0.0.1:{port}/v1\"\n\
         ready: {{ get: /health, within: 1s }}\n"
    );
    std::fs::write(place.path("sim.yaml"), server).unwrap();
    let frozen = place.json(&["freeze", "study.yaml", "--format", "json"], 0);
    let hash = hash_of(&frozen);
    let ended = place.demand(&["run", "hello.plan", "--approve", &hash], 3);
    assert!(String::from_utf8_lossy(&ended.stderr).contains("E0901"));
    place.demand(&["verify", "hello.evidence"], 4);
}
