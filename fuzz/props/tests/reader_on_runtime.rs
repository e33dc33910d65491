//! The reader on evidence that the runtime wrote in virtual time: every fault of the simulated
//! engine, over every connection policy, whole writes and cut ones. What the runtime claims and
//! what the reader's own parsers replay must agree in every field.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use assize_core::RunControl;
use assize_evidence::{HostFacts, MemoryStore};
use assize_host::{
    Backpressure, Base, Execution, RunIdentity, Secrets, Servers, StartServer, Started, Stopped,
    VirtualWall, WorldFailure, execute,
};
use assize_plan::{
    Arm, ArmTarget, Bundle, Cell, Connections, DRAW, DriverChoice, Engine, Expectation,
    FREEZE_FORMAT, Freeze, Hash, HeaderText, Interrupted, Limits, Load, PLAN_FORMAT, Plan, Receive,
    RecordLevel, RequestClass, SERVER_FORMAT, ServerDef, ServerKind, SimServer, TRACE_FORMAT,
    TraceObject, Unit,
};
use assize_reader::study::{Analysis, analyze};
use assize_reader::verify::Demands;
use assize_sim::{
    EngineConfig, Fault, FaultRule, Segments, VirtualDriver, VirtualLink, VirtualNet,
};
use assize_units::{Bytes, DurNs, OffsetNs};

const REQUESTS: u32 = 8;

struct InProcess {
    net: VirtualNet,
    at: Option<SocketAddr>,
    faults: Vec<FaultRule>,
}

impl Servers for InProcess {
    fn start(&mut self, server: StartServer<'_>) -> Result<Started, WorldFailure> {
        let at = Base::parse(&server.def.base).unwrap().resolve().unwrap();
        let config = EngineConfig {
            faults: self.faults.clone(),
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

fn sim() -> ServerDef {
    ServerDef {
        format: SERVER_FORMAT.into(),
        base: "http://127.0.0.1:8000/v1".into(),
        ready_path: "/health".into(),
        ready_within_ns: DurNs::from_s(10),
        kind: ServerKind::Sim(SimServer {
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
        }),
    }
}

fn bundle(connections: Connections) -> Bundle {
    let mut objects: BTreeMap<Hash, Vec<u8>> = BTreeMap::new();
    let mut add = |(hash, bytes): (Hash, Vec<u8>)| {
        objects.insert(hash, bytes);
        hash
    };
    let server = add(sim().to_object());
    let body = br#"{"ignore_eos":true,"max_tokens":4,"min_tokens":4,"model":"sim","prompt":"one","stream":true,"stream_options":{"include_usage":true}}"#.to_vec();
    let body = add((Hash::of(&body), body));
    let mut trace = |offsets: Option<Vec<OffsetNs>>| {
        let trace = TraceObject {
            format: TRACE_FORMAT.into(),
            offsets_ns: offsets,
            prompts: vec![0; REQUESTS as usize],
            classes: None,
        };
        add(trace.to_object())
    };
    let closed = Load::Closed {
        trace: trace(None),
        clients: 3,
    };
    let offsets = (0..u64::from(REQUESTS)).map(|i| OffsetNs(i * 7_000_000));
    let open = Load::Open {
        trace: trace(Some(offsets.collect())),
        cap: None,
    };
    let cell = |name: &str, load: Load| Cell {
        name: name.into(),
        path: name.into(),
        classes: vec![0],
        load,
        requests: REQUESTS,
        id_prefix: format!("{name}-7"),
        settle_ns: DurNs::from_s(1),
        drain_ns: DurNs::from_s(4),
        connections,
        record: RecordLevel::Wire,
        receive: Receive::Reap,
    };
    let plan = Plan {
        format: PLAN_FORMAT.into(),
        language: 1,
        study: "faults".into(),
        question: None,
        scope: None,
        replicates: None,
        draw: DRAW.into(),
        driver: DriverChoice::Any,
        spin_ns: DurNs::ZERO,
        interrupted: Interrupted::Final,
        max_response_bytes: Bytes(1 << 20),
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
            bodies: vec![body],
            stream: true,
            choices: 1,
            expect: Expectation {
                output_tokens: Some(4),
            },
            timeout_ns: DurNs::from_s(2),
            connect_timeout_ns: None,
            idle_timeout_ns: Some(DurNs::from_s(1)),
        }],
        arrivals: Vec::new(),
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
            warmup: None,
            cells: vec![cell("closed", closed), cell("open", open)],
        }],
        rules: vec![],
        compare: vec![],
        external: vec![],
        limits: Limits::default(),
    };
    let hash = Hash::of(&plan.to_canonical().unwrap());
    Bundle {
        plan,
        hash,
        freeze: Freeze {
            format: FREEZE_FORMAT.into(),
            plan: hash,
            tool: "test".into(),
            study_text: None,
            study_file: None,
            modules: vec![],
            git: None,
            frozen_at: "1970-01-01T00:00:00Z".into(),
        },
        objects,
        readme: "faults\n".into(),
    }
}

/// Runs the plan and reads what it left. The fault strikes every third request.
fn read(fault: Option<Fault>, connections: Connections, segments: Segments) -> Analysis {
    let rule = |fault| FaultRule {
        fault,
        requests: vec![],
        every: 3,
        probability: assize_sim::Percent::default(),
    };
    let net = VirtualNet::new(VirtualLink {
        segments,
        ..VirtualLink::default()
    });
    let mut driver = VirtualDriver::on(net.clone());
    let store = MemoryStore::new();
    let outcome = execute(
        Execution {
            bundle: &bundle(connections),
            driver: &mut driver,
            servers: &mut InProcess {
                net,
                at: None,
                faults: fault.clone().map(rule).into_iter().collect(),
            },
            store: &store,
            wall: &VirtualWall,
            secrets: &Secrets::none(),
            control: &RunControl::default(),
            backpressure: Backpressure::Wait,
            facts: HostFacts::default(),
            calibration: None,
            identity: RunIdentity {
                run_id: "test".into(),
                tool: "test".into(),
                boot_id: "virtual".into(),
                consent: "in process".into(),
            },
        },
        &mut |_| {},
    );
    assert!(outcome.is_complete(), "{fault:?}: {outcome:?}");
    let analysis = analyze(&store, &Demands::default());
    let analysis = analysis.unwrap_or_else(|refused| {
        panic!("{fault:?}, {connections:?}, {segments:?}: {refused}");
    });
    assert!(analysis.verified.is_complete());
    assert_eq!(analysis.verified.compared, u64::from(2 * REQUESTS));
    analysis
}

const POLICIES: [Connections; 3] = [
    Connections::Fresh,
    Connections::Reuse {
        idle_ns: DurNs(4_000_000_000),
    },
    Connections::Preopened { n: 2 },
];

const CUTS: [Segments; 2] = [
    Segments::Whole,
    Segments::Cut {
        max_bytes: 23,
        gap: DurNs(3_000),
    },
];

/// The outcomes that a fault leads to, over both cells, each once.
fn outcomes(fault: Fault) -> String {
    let mut seen: Vec<String> = Vec::new();
    for connections in POLICIES {
        for segments in CUTS {
            let analysis = read(Some(fault.clone()), connections, segments);
            let failed = analysis.cells.iter().flat_map(|cell| &cell.failed_requests);
            for request in failed {
                let said = format!("{} {}", request.outcome, request.phase);
                if !seen.contains(&said) {
                    seen.push(said);
                }
            }
            let offered = analysis
                .cells
                .iter()
                .filter_map(|cell| cell.summary.as_ref());
            for summary in offered {
                assert_eq!(summary.valid + summary.failed, REQUESTS as usize);
                assert_eq!(summary.missing, 0);
            }
        }
    }
    seen.sort();
    seen.join(", ")
}

#[test]
fn without_faults_every_request_is_valid() {
    for connections in POLICIES {
        for segments in CUTS {
            let analysis = read(None, connections, segments);
            for cell in &analysis.cells {
                let summary = cell.summary.as_ref().unwrap();
                assert_eq!((summary.valid, summary.failed), (REQUESTS as usize, 0));
                assert_eq!(summary.tokens.output_tokens, Some(u64::from(4 * REQUESTS)));
                assert_eq!(summary.events.token_bearing, u64::from(4 * REQUESTS));
            }
        }
    }
}

#[test]
fn each_fault_has_its_outcome_and_every_claim_agrees() {
    let stall = |time| Fault::Stall {
        after_events: 2,
        time,
    };
    let cases = [
        (Fault::ResetBeforeHead, "reset before_head"),
        (Fault::CloseBeforeHead, "disconnected before_head"),
        (
            Fault::CloseMidStream { after_events: 2 },
            "truncated stream",
        ),
        (Fault::ResetMidStream { after_events: 2 }, "reset stream"),
        (Fault::Status { code: 503 }, "http_status ended"),
        (Fault::Status { code: 307 }, "redirect ended"),
        (Fault::Hang, "idle_timeout before_head"),
        (stall(DurNs::from_ms(500)), ""),
        (
            Fault::HangMidStream { after_events: 2 },
            "idle_timeout stream",
        ),
        (
            Fault::SlowHead {
                time: DurNs::from_ms(300),
            },
            "",
        ),
        (
            Fault::MalformedChunk { after_events: 2 },
            "malformed_framing stream",
        ),
        (
            Fault::MalformedEvent { after_events: 2 },
            "malformed_event ended",
        ),
        (Fault::ErrorEvent { after_events: 2 }, "error_event ended"),
        (Fault::MissingDone, "missing_done ended"),
        (Fault::ExtraAfterDone, "extra_after_done ended"),
        (Fault::MissingFinish, "bad_finish ended"),
        (Fault::EmptyStream, "bad_finish ended"),
        (Fault::OneTokenShort, "wrong_length ended"),
        (Fault::WrongContentType, "wrong_content_type ended"),
        (Fault::GzipClaim, "encoded ended"),
        (Fault::ByteByByte, ""),
        (Fault::Coalesced, ""),
        (Fault::Comments, ""),
    ];
    let mut wrong = Vec::new();
    for (fault, wanted) in cases {
        let found = outcomes(fault.clone());
        if found != wanted {
            wrong.push(format!("{fault:?}: found `{found}`, wanted `{wanted}`"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
