//! A whole plan in virtual time: from a bundle built here to a sealed evidence in memory.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use assize_core::RunControl;
use assize_evidence::wire::{Payload, WireEnd, WireReader};
use assize_evidence::{
    ExchangeRow, HostFacts, JournalEvent, JournalReader, MemoryStore, SealError, Store, Terminal,
    check_seal,
};
use assize_host::{
    Backpressure, Base, Execution, RunIdentity, RunOutcome, Secrets, Servers, StartServer, Started,
    Stopped, VirtualWall, WorldFailure, execute,
};
use assize_plan::{
    Arm, ArmTarget, Bundle, Cell, Connections, DRAW, DriverChoice, Engine, Expectation,
    FREEZE_FORMAT, Freeze, Hash, HeaderText, Interrupted, Limits, Load, PLAN_FORMAT, Plan, Receive,
    RecordLevel, RequestClass, SERVER_FORMAT, ServerDef, ServerKind, SimServer, TRACE_FORMAT,
    TraceObject, Unit,
};
use assize_sim::{EngineConfig, VirtualDriver, VirtualLink, VirtualNet};
use assize_units::{Bytes, DurNs, OffsetNs};

/// Engines in process, on the virtual driver's clock.
struct InProcess {
    net: VirtualNet,
    at: Option<SocketAddr>,
}

impl Servers for InProcess {
    fn start(&mut self, server: StartServer<'_>) -> Result<Started, WorldFailure> {
        let ServerKind::Sim(sim) = &server.def.kind else {
            panic!("this plan has sim servers alone")
        };
        let at = Base::parse(&server.def.base).unwrap().resolve().unwrap();
        let config = EngineConfig {
            model: sim.model.clone(),
            step: sim.step_ns,
            ..EngineConfig::default()
        };
        self.net.start_engine(at, config).unwrap();
        self.at = Some(at);
        Ok(Started {
            pid: 0,
            command: vec!["sim".into()],
        })
    }

    fn check(&mut self) -> Result<(), WorldFailure> {
        Ok(())
    }

    fn stop(&mut self) -> Result<Stopped, WorldFailure> {
        self.net.stop(self.at.take().unwrap());
        Ok(Stopped {
            status: "stopped".into(),
            killed: false,
        })
    }
}

#[derive(Default)]
struct Objects(BTreeMap<Hash, Vec<u8>>);

impl Objects {
    fn add(&mut self, (hash, bytes): (Hash, Vec<u8>)) -> Hash {
        self.0.insert(hash, bytes);
        hash
    }

    fn body(&mut self, prompt: &str) -> Hash {
        let text = format!(
            r#"{{"ignore_eos":true,"max_tokens":4,"min_tokens":4,"model":"sim","prompt":"{prompt}","stream":true,"stream_options":{{"include_usage":true}}}}"#
        );
        self.add((Hash::of(text.as_bytes()), text.into_bytes()))
    }

    fn trace(&mut self, offsets: Option<&[u64]>, requests: u32) -> Hash {
        let trace = TraceObject {
            format: TRACE_FORMAT.into(),
            offsets_ns: offsets.map(|offsets| offsets.iter().copied().map(OffsetNs).collect()),
            prompts: (0..requests).map(|index| index % 2).collect(),
            classes: None,
        };
        self.add(trace.to_object())
    }

    fn server(&mut self) -> Hash {
        let sim = SimServer {
            model: "sim".into(),
            prefill_base_ns: DurNs::from_ms(1),
            prefill_per_token_ns: DurNs::from_us(10),
            step_ns: DurNs::from_ms(8),
            step_per_seq_ns: DurNs::ZERO,
            max_seqs: 8,
            tokens_per_event: 1,
            jitter_ppm: 0,
            seed: 0,
            startup_ns: DurNs::ZERO,
            faults: vec![],
        };
        let server = ServerDef {
            format: SERVER_FORMAT.into(),
            base: "http://127.0.0.1:8000/v1".into(),
            ready_path: "/health".into(),
            ready_within_ns: DurNs::from_s(10),
            kind: ServerKind::Sim(sim),
        };
        self.add(server.to_object())
    }
}

fn cell(name: &str, load: Load, requests: u32) -> Cell {
    Cell {
        name: name.into(),
        path: name.into(),
        classes: vec![0],
        load,
        requests,
        id_prefix: format!("{name}-7"),
        settle_ns: DurNs::from_s(2),
        drain_ns: DurNs::from_s(5),
        connections: Connections::Fresh,
        record: RecordLevel::Wire,
        receive: Receive::Reap,
    }
}

fn bundle() -> Bundle {
    let mut objects = Objects::default();
    let bodies = vec![objects.body("one"), objects.body("two")];
    let server = objects.server();
    let closed = Load::Closed {
        trace: objects.trace(None, 6),
        clients: 2,
    };
    let open = Load::Open {
        trace: objects.trace(Some(&[0, 5_000_000, 5_000_000]), 3),
        cap: None,
    };
    let warmup = Load::Closed {
        trace: objects.trace(None, 1),
        clients: 1,
    };
    let plan = Plan {
        format: PLAN_FORMAT.into(),
        language: 1,
        study: "spine".into(),
        question: None,
        scope: None,
        replicates: None,
        draw: DRAW.into(),
        driver: DriverChoice::Any,
        spin_ns: DurNs::from_us(60),
        interrupted: Interrupted::Final,
        max_response_bytes: Bytes(64 << 20),
        values: vec![],
        arms: vec![Arm {
            name: "only".into(),
            label: "Only".into(),
            engine: Engine {
                name: "sim".into(),
                done: true,
            },
            model: Some("sim".into()),
            target: ArmTarget::Server { object: server },
            tls: None,
            key_env: None,
            headers: vec![],
            discloses: None,
        }],
        panels: vec![],
        requests: vec![RequestClass {
            n: 0,
            name: "generate".into(),
            arms: vec!["only".into()],
            method: "POST".into(),
            path: "/v1/completions".into(),
            headers: vec![(
                "content-type".into(),
                HeaderText::Text("application/json".into()),
            )],
            bodies,
            stream: true,
            choices: 1,
            expect: Expectation {
                output_tokens: Some(4),
            },
            timeout_ns: DurNs::from_s(30),
            connect_timeout_ns: None,
            idle_timeout_ns: None,
        }],
        arrivals: vec![],
        orders: vec![],
        units: vec![Unit {
            n: 0,
            set: "confirmation".into(),
            block: 0,
            block_seed: "7".into(),
            arm: "only".into(),
            path: "confirmation/00/only".into(),
            excluded: false,
            restart: true,
            warmup: Some(Cell {
                id_prefix: "warmup.w-7".into(),
                ..cell("warmup", warmup, 1)
            }),
            cells: vec![cell("closed", closed, 6), cell("open", open, 3)],
        }],
        rules: vec![],
        compare: vec![],
        external: vec![],
        limits: Limits::default(),
    };
    let hash = Hash::of(&plan.to_canonical().unwrap());
    let freeze = Freeze {
        format: FREEZE_FORMAT.into(),
        plan: hash,
        tool: "test".into(),
        study_text: None,
        study_file: None,
        modules: vec![],
        git: None,
        frozen_at: "1970-01-01T00:00:00Z".into(),
    };
    let bundle = Bundle {
        plan,
        hash,
        freeze,
        objects: objects.0,
        readme: "spine\n".into(),
    };
    // What is executed is what a folder would hold.
    Bundle::from_files(&bundle.to_files()).unwrap()
}

fn run(store: &MemoryStore) -> RunOutcome {
    run_with(store, None)
}

fn run_with(store: &MemoryStore, calibration: Option<&[u8]>) -> RunOutcome {
    let net = VirtualNet::new(VirtualLink::default());
    let mut driver = VirtualDriver::on(net.clone());
    let execution = Execution {
        bundle: &bundle(),
        driver: &mut driver,
        servers: &mut InProcess { net, at: None },
        store,
        wall: &VirtualWall,
        secrets: &Secrets::none(),
        control: &RunControl::default(),
        backpressure: Backpressure::Wait,
        facts: HostFacts::default(),
        calibration,
        identity: RunIdentity {
            run_id: "test".into(),
            tool: "test".into(),
            boot_id: "virtual".into(),
            consent: "in process".into(),
        },
    };
    execute(execution, &mut |_| {})
}

#[test]
fn a_calibration_goes_into_the_evidence_byte_for_byte() {
    let started = |store: &MemoryStore| {
        let journal = store.read("journal.jsonl", 1 << 20).unwrap();
        let line = JournalReader::parse(&journal).unwrap().lines.remove(0);
        serde_json::to_value(line.event).unwrap()
    };
    // Whatever its bytes are: what they mean is no matter of the runtime.
    let bytes = b" {\xff \n";
    let store = MemoryStore::new();
    let outcome = run_with(&store, Some(bytes));
    assert_eq!(store.read("calibration.json", 100).unwrap(), bytes);
    let hash = serde_json::to_value(Hash::of(bytes)).unwrap();
    assert_eq!(started(&store)["calibration"], hash);
    assert_eq!(check_seal(&store).unwrap(), outcome.seal);
    store.replace("calibration.json", b"other".to_vec());
    assert!(check_seal(&store).is_err());

    let without = MemoryStore::new();
    run(&without);
    assert!(started(&without).get("calibration").is_none());
    assert!(
        !without
            .list()
            .unwrap()
            .contains(&"calibration.json".to_owned())
    );
}

#[test]
fn a_plan_runs_in_virtual_time_to_a_sealed_evidence() {
    let store = MemoryStore::new();
    let outcome = run(&store);
    assert!(outcome.is_complete(), "{outcome:?}");
    assert_eq!(check_seal(&store).unwrap(), outcome.seal);

    let journal = JournalReader::parse(&store.read("journal.jsonl", 1 << 20).unwrap()).unwrap();
    let kind = |event: &JournalEvent| {
        serde_json::to_value(event).unwrap()["kind"]
            .as_str()
            .unwrap()
            .to_owned()
    };
    let kinds: Vec<String> = journal.lines.iter().map(|line| kind(&line.event)).collect();
    let due = "run_started unit_started server_starting server_ready warmup_started warmup_ended settled \
        cell_started cell_ended settled cell_started cell_ended unit_ended server_stopped sealed";
    assert_eq!(kinds.join(" "), due);
    assert!(
        matches!(&journal.lines[0].event, JournalEvent::RunStarted { driver, .. } if driver == "virtual")
    );

    for (cell, requests) in [("warmup", 1), ("closed", 6), ("open", 3)] {
        let folder = format!("confirmation/00/only/{cell}");
        let text = store
            .read(&format!("{folder}/exchanges.jsonl"), 1 << 20)
            .unwrap();
        let rows = ExchangeRow::parse_all(&text).unwrap();
        assert_eq!(rows.len(), requests);
        for row in &rows {
            assert_eq!(
                (row.terminal, row.status, row.done_events),
                (Terminal::Complete, 200, 1),
                "{row:?}"
            );
            assert!(
                row.admitted_ns <= row.sent_ns
                    && row.sent_ns <= row.first_event_ns
                    && row.done_ns <= row.end_ns
            );
        }
        let mut reader =
            WireReader::new(store.open(&format!("{folder}/wire.log")).unwrap()).unwrap();
        let (mut received, mut ended) = (0, 0);
        let mut take = |payload: Payload<'_>| match payload {
            Payload::Recv(bytes) => received += bytes.len() as u64,
            Payload::Terminal { .. } => ended += 1,
            _ => {}
        };
        while reader.next_segment(|record| take(record.payload)).unwrap() {}
        assert_eq!(reader.end(), Some(WireEnd::Clean));
        assert_eq!(
            (received, ended),
            (rows.iter().map(|row| row.received_bytes).sum(), requests)
        );
    }
}

#[test]
fn the_same_plan_gives_the_same_evidence() {
    let (first, second) = (MemoryStore::new(), MemoryStore::new());
    assert_eq!(
        run(&first).seal.unwrap().hash,
        run(&second).seal.unwrap().hash
    );
}

#[test]
fn a_flipped_byte_is_found_wherever_it_is() {
    let store = MemoryStore::new();
    run(&store);
    for name in store.list().unwrap() {
        let bytes = store.read(&name, 1 << 24).unwrap();
        for place in [0, bytes.len() / 2, bytes.len().saturating_sub(1)] {
            let tampered = store.copy();
            let mut changed = bytes.clone();
            let Some(byte) = changed.get_mut(place) else {
                continue;
            };
            *byte ^= 1;
            tampered.replace(&name, changed);
            match check_seal(&tampered) {
                Err(SealError::Differs { file, .. }) if name != "SHA256SUMS" => {
                    assert_eq!(file, name);
                }
                Err(_) if name == "SHA256SUMS" => {}
                other => panic!("{name}, byte {place}: {other:?}"),
            }
        }
    }
}
