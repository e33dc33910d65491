//! `run PLAN`: executes a plan on this host, exactly.

use std::path::{Path, PathBuf};

use assize_codes::{E0702, E0705, E0706, E0905};
use assize_core::{Driver, RunControl};
use assize_drivers::{Careful, DriverChoice as Wish, Probe, choose};
use assize_evidence::{FolderStore, HostFacts, JOURNAL_FILE, Store};
use assize_host::{
    Backpressure, Execution, Processes, Programs, RunEvent, RunIdentity, RunOutcome, Secrets,
    SystemWall, execute, facts,
};
use assize_plan::{Bundle, Deeds, DriverChoice};

use crate::calibrate::Attached;
pub use assize_drivers::CareRequest;

use crate::consent;
use crate::problem::{Problem, Status};

/// What `run` takes besides the plan. Nothing here alters what is executed.
pub struct RunOptions<'a> {
    /// The folder for the evidence.
    pub out: &'a Path,
    /// The hash that was said.
    pub approve: Option<&'a str>,
    /// Puts what the plan does before a person; none where there is no terminal.
    pub ask: Option<&'a mut dyn FnMut(&Deeds) -> bool>,
    /// A calibration that goes into the evidence.
    pub calibration: Option<&'a Attached>,
    /// The programs that host starts.
    pub programs: Programs,
    /// Reads an environment variable: the edge that owns the environment.
    pub environment: &'a dyn Fn(&str) -> Option<String>,
    /// What the client asks of this host.
    pub care: CareRequest,
    /// Stops the run, and shows its progress.
    pub control: &'a RunControl,
}

/// A run that has ended.
#[derive(Debug)]
pub struct Ran {
    /// How.
    pub outcome: RunOutcome,
    /// Where its evidence is.
    pub evidence: PathBuf,
    /// The driver's name and why it was taken.
    pub driver: (String, String),
}

impl Ran {
    /// The status that it ends with.
    pub fn status(&self) -> Status {
        match (&self.outcome.failure, self.outcome.is_complete()) {
            (Some(_), _) => Status::World,
            (None, true) => Status::Done,
            (None, false) => Status::Incomplete,
        }
    }
}

/// Executes a plan into a folder.
pub fn run(
    bundle: &Bundle,
    options: RunOptions<'_>,
    show: &mut dyn FnMut(RunEvent<'_>),
) -> Result<Ran, Problem> {
    let consent = consent::obtain(bundle, options.approve, options.ask)?;
    let secrets = secrets(bundle, options.environment)?;
    let mut driver = take_driver(bundle.plan.driver, &options.care)?;
    let store = new_folder(options.out)?;
    let facts = driver.facts();
    let outcome = execute_with(
        bundle,
        driver.as_mut(),
        Hands {
            programs: options.programs,
            store: &store,
            secrets: &secrets,
            control: options.control,
            consent,
            calibration: options.calibration.map(Attached::bytes),
        },
        show,
    );
    Ok(Ran {
        outcome,
        evidence: options.out.to_owned(),
        driver: (facts.name, facts.why),
    })
}

/// What an execution on this host needs besides plan and driver.
pub(crate) struct Hands<'a> {
    pub programs: Programs,
    pub store: &'a dyn Store,
    pub secrets: &'a Secrets,
    pub control: &'a RunControl,
    pub consent: &'a str,
    pub calibration: Option<&'a [u8]>,
}

pub(crate) fn execute_with(
    bundle: &Bundle,
    driver: &mut dyn Driver,
    hands: Hands<'_>,
    show: &mut dyn FnMut(RunEvent<'_>),
) -> RunOutcome {
    let facts: HostFacts = facts::gather();
    let execution = Execution {
        bundle,
        driver,
        servers: &mut Processes::new(hands.programs).masking(hands.secrets.clone()),
        store: hands.store,
        wall: &SystemWall,
        secrets: hands.secrets,
        control: hands.control,
        backpressure: Backpressure::Overflow,
        identity: RunIdentity {
            run_id: run_id(),
            tool: crate::TOOL.into(),
            boot_id: facts
                .get("kernel", "boot_id")
                .unwrap_or("not available")
                .to_owned(),
            consent: hands.consent.to_owned(),
        },
        facts,
        calibration: hands.calibration,
    };
    execute(execution, show)
}

/// The driver that a plan wants, with what its thread is to have, or a refusal: neither is changed
/// silently.
pub(crate) fn take_driver(
    wish: DriverChoice,
    care: &CareRequest,
) -> Result<Box<dyn Driver>, Problem> {
    let wish = match wish {
        DriverChoice::Any => Wish::Any,
        DriverChoice::IoUring => Wish::Uring,
        DriverChoice::Epoll => Wish::Epoll,
    };
    let driver = choose(wish, Probe::SYSTEM)
        .map_err(|refusal| Problem::refusal(E0706, refusal.to_string()))?;
    careful(driver, care)
}

pub(crate) fn careful(
    driver: Box<dyn Driver>,
    care: &CareRequest,
) -> Result<Box<dyn Driver>, Problem> {
    let careful = Careful::new(driver, care).map_err(|refused| {
        Problem::refusal(E0706, refused.to_string())
            .help("run without --pin and --lock-memory, or ask for what this host gives: assize doctor shows the processors and the limit of locked memory")
    })?;
    Ok(Box::new(careful))
}

pub(crate) fn secrets(
    bundle: &Bundle,
    environment: &dyn Fn(&str) -> Option<String>,
) -> Result<Secrets, Problem> {
    let mut secrets = Secrets::none();
    for name in bundle.plan.secret_names() {
        let value = environment(name)
            .filter(|value| !value.is_empty())
            .ok_or_else(|| {
                Problem::world(E0905, format!("the environment variable {name} is not set"))
                    .help(format!("set it and run again: {name}=… assize run …"))
            })?;
        secrets.insert(name, value);
    }
    Ok(secrets)
}

fn new_folder(out: &Path) -> Result<FolderStore, Problem> {
    if out.join(JOURNAL_FILE).exists() {
        return Err(Problem::refusal(E0705, format!("{} holds a begun run", out.display()))
            .help("a new execution is a replication with an evidence of its own: choose another folder with --out"));
    }
    FolderStore::create_root(out).map_err(|error| match error.kind() {
        std::io::ErrorKind::AlreadyExists => {
            Problem::refusal(E0705, format!("{} is not empty", out.display()))
                .help("choose another folder with --out")
        }
        _ => Problem::world(E0702, format!("{}: {error}", out.display())),
    })
}

/// 128 random bits in hex.
fn run_id() -> String {
    let mut bytes = [0; 16];
    let filled = rustix::rand::getrandom(&mut bytes[..], rustix::rand::GetRandomFlags::empty());
    debug_assert_eq!(
        filled,
        Ok(bytes.len()),
        "the kernel gives up to 256 random bytes at once"
    );
    bytes
        .iter()
        .fold(String::new(), |text, byte| text + &format!("{byte:02x}"))
}
