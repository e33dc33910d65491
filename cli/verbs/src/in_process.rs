//! Simulated engines in process, on the virtual driver's clock.

use std::net::SocketAddr;

use assize_codes::E0910;
use assize_core::RunControl;
use assize_evidence::{HostFacts, Store};
use assize_host::{
    Backpressure, Base, Execution, RunEvent, RunIdentity, RunOutcome, Secrets, Servers,
    StartServer, Started, Stopped, VirtualWall, WorldFailure, execute,
};
use assize_plan::{Bundle, ServerKind, SimServer};
use assize_sim::{EngineConfig, FaultRule, Percent, VirtualDriver, VirtualLink, VirtualNet};

/// Serves the arms of a plan by engines in process. A plan with a real command is refused.
pub struct InProcess {
    net: VirtualNet,
    running: Option<SocketAddr>,
}

impl InProcess {
    /// Engines on `net`.
    pub fn new(net: VirtualNet) -> InProcess {
        InProcess { net, running: None }
    }
}

impl Servers for InProcess {
    fn start(&mut self, server: StartServer<'_>) -> Result<Started, WorldFailure> {
        let ServerKind::Sim(sim) = &server.def.kind else {
            return Err(refused(
                server.arm,
                "virtual time has simulated engines alone, this arm has a command",
            ));
        };
        let config = engine_config(sim).map_err(|why| refused(server.arm, &why))?;
        let at = Base::parse(&server.def.base)
            .and_then(|base| base.resolve().ok())
            .ok_or_else(|| refused(server.arm, "its base is no address"))?;
        self.net
            .start_engine(at, config)
            .map_err(|error| refused(server.arm, &error.to_string()))?;
        self.running = Some(at);
        Ok(Started {
            pid: 0,
            command: vec!["assize".into(), "sim".into()],
        })
    }

    fn check(&mut self) -> Result<(), WorldFailure> {
        Ok(())
    }

    fn stop(&mut self) -> Result<Stopped, WorldFailure> {
        if let Some(at) = self.running.take() {
            self.net.stop(at);
        }
        Ok(Stopped {
            status: "ended in process".into(),
            killed: false,
        })
    }
}

/// The engine's configuration of a plan's simulated server.
pub fn engine_config(sim: &SimServer) -> Result<EngineConfig, String> {
    let faults = sim
        .faults
        .iter()
        .map(|text| text.parse::<FaultRule>().map_err(|error| error.to_string()));
    let config = EngineConfig {
        model: sim.model.clone(),
        prefill_base: sim.prefill_base_ns,
        prefill_per_token: sim.prefill_per_token_ns,
        step: sim.step_ns,
        step_per_seq: sim.step_per_seq_ns,
        max_seqs: sim.max_seqs,
        tokens_per_event: sim.tokens_per_event,
        jitter: Percent::from_millionths(sim.jitter_ppm).ok_or("jitter is above 100%")?,
        seed: u64::from(sim.seed),
        startup: sim.startup_ns,
        faults: faults.collect::<Result<_, _>>()?,
        ..EngineConfig::default()
    };
    config.validate().map_err(|error| error.to_string())?;
    Ok(config)
}

/// Runs a plan in virtual time: every instant is computed, nothing waits.
pub fn run_in_virtual_time(
    bundle: &Bundle,
    link: VirtualLink,
    store: &dyn Store,
    show: &mut dyn FnMut(RunEvent<'_>),
) -> RunOutcome {
    let net = VirtualNet::new(link);
    let execution = Execution {
        bundle,
        driver: &mut VirtualDriver::on(net.clone()),
        servers: &mut InProcess::new(net),
        store,
        wall: &VirtualWall,
        secrets: &Secrets::none(),
        control: &RunControl::default(),
        backpressure: Backpressure::Wait,
        facts: HostFacts::default(),
        calibration: None,
        identity: RunIdentity {
            run_id: "virtual".into(),
            tool: crate::TOOL.into(),
            boot_id: "virtual".into(),
            consent: "in process".into(),
        },
    };
    execute(execution, show)
}

fn refused(arm: &str, why: &str) -> WorldFailure {
    WorldFailure {
        code: E0910,
        operation: "starting the simulated engine of".into(),
        subject: arm.to_owned(),
        message: why.to_owned(),
        errno: 0,
    }
}
