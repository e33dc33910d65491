//! A plan built in a test: one arm on a simulated engine in process, one unit, any cells.
#![allow(dead_code, reason = "each test file uses its own part")]

use std::collections::BTreeMap;
use std::net::SocketAddr;

use assize_host::{Base, Servers, StartServer, Started, Stopped, WorldFailure};
use assize_plan::{
    Arm, ArmTarget, Bundle, Cell, Connections, DRAW, DriverChoice, Engine, Expectation,
    FREEZE_FORMAT, Freeze, Hash, HeaderText, Interrupted, Limits, Load, PLAN_FORMAT, Plan, Receive,
    RecordLevel, RequestClass, SERVER_FORMAT, ServerDef, ServerKind, SimServer, TRACE_FORMAT,
    TraceObject, Unit,
};
use assize_sim::{EngineConfig, VirtualNet};
use assize_units::{Bytes, DurNs, OffsetNs};

/// Engines in process, on the virtual driver's clock.
pub struct InProcess {
    net: VirtualNet,
    at: Option<SocketAddr>,
}

impl InProcess {
    pub fn on(net: VirtualNet) -> InProcess {
        InProcess { net, at: None }
    }
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

/// The objects of a bundle.
#[derive(Default)]
pub struct Objects(BTreeMap<Hash, Vec<u8>>);

impl Objects {
    fn add(&mut self, (hash, bytes): (Hash, Vec<u8>)) -> Hash {
        self.0.insert(hash, bytes);
        hash
    }

    pub fn body(&mut self, prompt: &str, tokens: u32) -> Hash {
        let text = format!(
            r#"{{"ignore_eos":true,"max_tokens":{tokens},"min_tokens":{tokens},"model":"sim","prompt":"{prompt}","stream":true,"stream_options":{{"include_usage":true}}}}"#
        );
        self.add((Hash::of(text.as_bytes()), text.into_bytes()))
    }

    pub fn trace(&mut self, offsets: Option<&[u64]>, requests: u32) -> Hash {
        let trace = TraceObject {
            format: TRACE_FORMAT.into(),
            offsets_ns: offsets.map(|offsets| offsets.iter().copied().map(OffsetNs).collect()),
            prompts: (0..requests).map(|index| index % 2).collect(),
            classes: None,
        };
        self.add(trace.to_object())
    }

    pub fn server(&mut self) -> Hash {
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

/// A cell on fresh connections.
pub fn cell(name: &str, load: Load, requests: u32) -> Cell {
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

/// A bundle of one unit; each answer has so many tokens.
pub fn bundle_of(
    mut objects: Objects,
    tokens: u32,
    warmup: Option<Cell>,
    cells: Vec<Cell>,
) -> Bundle {
    let bodies = vec![objects.body("one", tokens), objects.body("two", tokens)];
    let server = objects.server();
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
                output_tokens: Some(tokens.into()),
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
            warmup,
            cells,
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
