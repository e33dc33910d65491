//! The run: units in order, each with its server, its warmup and its cells; then the seal.

use std::collections::BTreeMap;
use std::io::{self, BufWriter, IntoInnerError, Write};
use std::net::SocketAddr;
use std::sync::Arc;

use assize_codes::{Code, E0902, E0903, E0904, E0905};
use assize_core::{Driver, RunControl, Session};
use assize_evidence::wire::{FileHeader, NONE};
use assize_evidence::{
    CALIBRATION_FILE, CELL_EXCHANGES, CELL_WIRE, CellCounts, EVIDENCE_FORMAT, FREEZE_FILE,
    HOST_FILE, HostFacts, JOURNAL_FILE, Journal, JournalEvent, OBJECTS_DIR, PLAN_FILE, SERVER_LOG,
    Seal, StopReason, Store, StoreFile, WARMUP_DIR, cell_dir, write_seal,
};
use assize_plan::{Arm, ArmTarget, Bundle, Cell, Hash, Unit};
use assize_units::{DurNs, MonoNs};

use crate::address::Base;
use crate::claims;
use crate::mask::{MaskingWriter, Secrets};
use crate::recorder::{Backpressure, Recorder};
use crate::render::{RenderError, RenderedCell, render_cell};
use crate::servers::{Servers, StartServer, WorldFailure, sim_arguments};
use crate::trust::Trust;
use crate::wall::Wall;

/// A wall clock that moves against the monotonic one by more than this between two cells was
/// stepped (or the machine slept); slewing is at most 0.05 %.
const CLOCK_STEP_NS: u64 = 50_000_000;

/// Everything that a run needs.
pub struct Execution<'a> {
    /// What to run.
    pub bundle: &'a Bundle,
    /// Runs the cells, and owns the clock.
    pub driver: &'a mut dyn Driver,
    /// Starts and stops servers.
    pub servers: &'a mut dyn Servers,
    /// Takes the evidence.
    pub store: &'a dyn Store,
    /// The wall clock.
    pub wall: &'a dyn Wall,
    /// Values that may reach no file.
    pub secrets: &'a Secrets,
    /// Stops the run, and shows its progress.
    pub control: &'a RunControl,
    /// What the recorder does when it cannot keep up.
    pub backpressure: Backpressure,
    /// Facts of the host.
    pub facts: HostFacts,
    /// A calibration that goes into the evidence byte for byte.
    pub calibration: Option<&'a [u8]>,
    /// Who runs it.
    pub identity: RunIdentity,
}

/// What makes this run this one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunIdentity {
    /// Random.
    pub run_id: String,
    /// The tool and its version.
    pub tool: String,
    /// The kernel's boot id.
    pub boot_id: String,
    /// How consent was given.
    pub consent: String,
}

/// What a display may show while a run goes on.
#[derive(Clone, Copy, Debug)]
pub enum RunEvent<'a> {
    /// A unit begins.
    Unit {
        /// The unit.
        unit: &'a Unit,
        /// Units in the plan.
        of: usize,
    },
    /// The unit's server is being started.
    Starting,
    /// A cell begins (or the warmup).
    Cell {
        /// The cell.
        cell: &'a Cell,
        /// Whether it is the warmup.
        warmup: bool,
    },
    /// A cell has ended.
    CellEnded {
        /// What came of it.
        counts: CellCounts,
    },
    /// The evidence is being sealed.
    Sealing,
}

/// How a run ended.
#[derive(Debug)]
pub struct RunOutcome {
    /// Units that ran to their end.
    pub units_ended: u32,
    /// Units of the plan.
    pub units_planned: u32,
    /// Why it was broken off, where it was.
    pub stopped: Option<StopReason>,
    /// What failed, where something of the world did.
    pub failure: Option<WorldFailure>,
    /// Requests of the timed cells.
    pub counts: CellCounts,
    /// The seal; none where it could not be written.
    pub seal: Option<Seal>,
}

impl RunOutcome {
    /// Whether every planned unit ran to its end.
    pub fn is_complete(&self) -> bool {
        self.stopped.is_none() && self.units_ended == self.units_planned
    }
}

/// Executes a plan. What goes wrong is in the outcome; nothing that was written is lost.
pub fn execute(execution: Execution<'_>, show: &mut dyn FnMut(RunEvent<'_>)) -> RunOutcome {
    let units_planned = execution.bundle.plan.units.len() as u32;
    let mut outcome = RunOutcome {
        units_ended: 0,
        units_planned,
        stopped: None,
        failure: None,
        counts: CellCounts::default(),
        seal: None,
    };
    let mut run = match Run::begin(execution, show) {
        Ok(run) => run,
        Err(failure) => {
            let stop = Stop::from(failure);
            outcome.stopped = Some(stop.reason);
            outcome.failure = stop.failure;
            return outcome;
        }
    };
    let result = run.units(&mut outcome);
    if let Err(stop) = result {
        outcome.stopped = Some(stop.reason);
        run.note_failure(stop.failure.as_ref());
        outcome.failure = stop.failure;
    }
    if let Err(failure) = run.finish(&mut outcome) {
        outcome.stopped.get_or_insert(StopReason::Disk);
        outcome.failure.get_or_insert(failure);
    }
    outcome
}

/// Why a run was broken off.
struct Stop {
    reason: StopReason,
    failure: Option<WorldFailure>,
}

impl From<WorldFailure> for Stop {
    fn from(failure: WorldFailure) -> Self {
        let reason = match failure.code {
            E0902 => StopReason::Disk,
            E0903 => StopReason::Driver,
            _ => StopReason::Server,
        };
        Stop {
            reason,
            failure: Some(failure),
        }
    }
}

struct Run<'a, 's> {
    it: Execution<'a>,
    show: &'s mut dyn FnMut(RunEvent<'_>),
    journal: Journal<Box<dyn StoreFile>>,
    running: Option<(String, u32)>,
    clock: Option<ClockReading>,
    /// By arm, of those that are spoken to by `https`.
    trusts: BTreeMap<String, Trust>,
}

#[derive(Clone, Copy)]
struct ClockReading {
    at: MonoNs,
    offset_ns: i64,
}

/// Where an arm's requests go.
struct Target {
    base: Base,
    address: SocketAddr,
}

impl<'a, 's> Run<'a, 's> {
    fn begin(
        it: Execution<'a>,
        show: &'s mut dyn FnMut(RunEvent<'_>),
    ) -> Result<Self, WorldFailure> {
        let trusts = Trust::of_arms(it.bundle, it.wall.unix_ns())?;
        for (name, bytes) in it.bundle.to_files() {
            if name == PLAN_FILE || name == FREEZE_FILE || name.starts_with(OBJECTS_DIR) {
                it.store
                    .write(&name, &bytes)
                    .map_err(|error| disk(&name, &error))?;
            }
        }
        let driver = it.driver.facts();
        let mut facts = it.facts.clone();
        facts.set("driver", "name", &driver.name);
        facts.set("driver", "why", &driver.why);
        for (name, value) in &driver.features {
            facts.set("driver", name, value);
        }
        for (arm, trust) in &trusts {
            facts.set("tls", arm, trust.words());
        }
        let mut text = serde_json::to_vec_pretty(&facts).expect("plain data has a JSON form");
        text.push(b'\n');
        it.store
            .write(HOST_FILE, &text)
            .map_err(|error| disk(HOST_FILE, &error))?;
        if let Some(bytes) = it.calibration {
            it.store
                .write(CALIBRATION_FILE, bytes)
                .map_err(|error| disk(CALIBRATION_FILE, &error))?;
        }
        let file = it
            .store
            .create(JOURNAL_FILE)
            .map_err(|error| disk(JOURNAL_FILE, &error))?;
        let mut run = Run {
            it,
            show,
            journal: Journal::new(file),
            running: None,
            clock: None,
            trusts,
        };
        let identity = run.it.identity.clone();
        run.note(JournalEvent::RunStarted {
            format: EVIDENCE_FORMAT.to_owned(),
            run_id: identity.run_id,
            plan: run.it.bundle.hash,
            tool: identity.tool,
            boot_id: identity.boot_id,
            driver: driver.name,
            driver_why: driver.why,
            consent: identity.consent,
            calibration: run.it.calibration.map(Hash::of),
        })?;
        Ok(run)
    }

    fn units(&mut self, outcome: &mut RunOutcome) -> Result<(), Stop> {
        let bundle = self.it.bundle;
        for unit in &bundle.plan.units {
            (self.show)(RunEvent::Unit {
                unit,
                of: bundle.plan.units.len(),
            });
            self.note(JournalEvent::UnitStarted { unit: unit.n })?;
            match self.unit(unit, &mut outcome.counts) {
                Ok(()) => {
                    self.note(JournalEvent::UnitEnded { unit: unit.n })?;
                    outcome.units_ended += 1;
                }
                Err(Stop {
                    reason: StopReason::Warmup,
                    ..
                }) => {
                    // A failed warmup ends this invocation of the arm; the plan goes on.
                    self.note(JournalEvent::Interrupted {
                        unit: unit.n,
                        reason: StopReason::Warmup,
                    })?;
                }
                Err(stop) => {
                    self.note(JournalEvent::Interrupted {
                        unit: unit.n,
                        reason: stop.reason,
                    })?;
                    self.stop_server()?;
                    return Err(stop);
                }
            }
            let next = bundle.plan.units.get(unit.n as usize + 1);
            if next.is_none_or(|next| next.arm != unit.arm || next.restart) {
                self.stop_server()?;
            }
            self.sync()?;
        }
        Ok(())
    }

    fn unit(&mut self, unit: &Unit, counts: &mut CellCounts) -> Result<(), Stop> {
        let arm = self
            .it
            .bundle
            .plan
            .arm(&unit.arm)
            .expect("a plan's arms resolve");
        let target = self.target(arm)?;
        self.start_server(unit, arm, &target)?;
        self.read_clock()?;
        if let Some(warmup) = &unit.warmup {
            self.note(JournalEvent::WarmupStarted { unit: unit.n })?;
            let folder = cell_dir(&unit.path, WARMUP_DIR);
            let (warmed, good) = self.cell(unit, arm, &target, warmup, NONE, &folder)?;
            self.note(JournalEvent::WarmupEnded {
                unit: unit.n,
                counts: warmed,
            })?;
            if !good {
                return Err(Stop {
                    reason: StopReason::Warmup,
                    failure: None,
                });
            }
        }
        for (place, cell) in unit.cells.iter().enumerate() {
            self.settle(cell.settle_ns);
            self.note(JournalEvent::Settled {
                unit: unit.n,
                cell: cell.name.clone(),
            })?;
            self.note(JournalEvent::CellStarted {
                unit: unit.n,
                cell: cell.name.clone(),
            })?;
            self.sync()?;
            let folder = cell_dir(&unit.path, &cell.path);
            let (ended, _) = self.cell(unit, arm, &target, cell, place as u32, &folder)?;
            counts.requests += ended.requests;
            counts.complete += ended.complete;
            counts.failed += ended.failed;
            counts.events += ended.events;
            counts.received_bytes += ended.received_bytes;
            self.note(JournalEvent::CellEnded {
                unit: unit.n,
                cell: cell.name.clone(),
                counts: ended,
            })?;
            self.read_clock()?;
            if self.running.is_some()
                && let Err(failure) = self.it.servers.check()
            {
                // Its requests are recorded as they ended; the verdict is blocked by them.
                self.note_failure(Some(&failure));
            }
        }
        Ok(())
    }

    /// Runs one cell. The flag says whether every answer was complete and 2xx.
    fn cell(
        &mut self,
        unit: &Unit,
        arm: &Arm,
        target: &Target,
        cell: &Cell,
        place: u32,
        folder: &str,
    ) -> Result<(CellCounts, bool), Stop> {
        (self.show)(RunEvent::Cell {
            cell,
            warmup: place == NONE,
        });
        let rendered = render_cell(
            self.it.bundle,
            arm,
            cell,
            &target.base,
            self.peer(arm, target)?,
            self.it.secrets,
        )
        .map_err(|error| unrendered(&error, folder))?;
        let rendered = Arc::new(rendered);
        let wire_name = format!("{folder}/{CELL_WIRE}");
        let file = self
            .it
            .store
            .create(&wire_name)
            .map_err(|error| disk(&wire_name, &error))?;
        let header = FileHeader {
            unit: unit.n,
            cell: place,
            plan: self.it.bundle.hash,
            begun: self.it.driver.now(),
        };
        let mut recorder = Recorder::new(
            file,
            header,
            rendered.clone(),
            self.it.secrets.clone(),
            self.it.backpressure,
        )
        .map_err(|error| disk(&wire_name, &error))?;
        let mut session = Session::new(rendered.spec.clone());
        let driven = self
            .it
            .driver
            .run_cell(&mut session, &mut recorder, self.it.control);
        session.publish(&self.it.control.progress);
        let recorded = recorder.finish();

        let exchanges_name = format!("{folder}/{CELL_EXCHANGES}");
        let file = self.it.store.create(&exchanges_name);
        let (rows, written) = write_rows(file, &rendered, cell, &session);
        (self.show)(RunEvent::CellEnded {
            counts: rows.counts,
        });
        if let Some(error) = recorded.error {
            return Err(disk(&wire_name, &error).into());
        }
        written.map_err(|error| disk(&exchanges_name, &error))?;
        driven.map_err(|failure| WorldFailure {
            code: E0903,
            operation: failure.operation,
            subject: folder.to_owned(),
            message: failure.message,
            errno: failure.errno,
        })?;
        if recorded.overflowed {
            return Err(Stop {
                reason: StopReason::Overflow,
                failure: None,
            });
        }
        if self.it.control.stopping() {
            return Err(Stop {
                reason: StopReason::Stopped,
                failure: None,
            });
        }
        Ok((rows.counts, rows.all_good))
    }

    /// What connections are made to. Certificates are judged as of now.
    fn peer(&self, arm: &Arm, target: &Target) -> Result<assize_core::Target, WorldFailure> {
        let tls = match (target.base.tls, self.trusts.get(&arm.name)) {
            (false, _) => None,
            (true, Some(trust)) => Some(Arc::new(
                trust.target(&target.base, self.it.wall.unix_ns())?,
            )),
            (true, None) => {
                return Err(broken(
                    E0904,
                    &target.base.authority,
                    "the plan does not say by what an `https` server is verified",
                ));
            }
        };
        Ok(assize_core::Target {
            addr: target.address,
            tls,
        })
    }

    fn target(&self, arm: &Arm) -> Result<Target, WorldFailure> {
        let text = match &arm.target {
            ArmTarget::Endpoint { base } => base.clone(),
            ArmTarget::Server { object } => {
                self.it
                    .bundle
                    .server(*object)
                    .map_err(|error| broken(E0904, &arm.name, &error.to_string()))?
                    .base
            }
        };
        let base = Base::parse(&text).ok_or_else(|| {
            broken(
                E0904,
                &text,
                "an address is `http://host:port/path`, nothing else",
            )
        })?;
        let address = base.resolve().map_err(|error| {
            WorldFailure::io(E0904, "finding the address of", &base.host, &error)
        })?;
        Ok(Target { base, address })
    }

    fn start_server(
        &mut self,
        unit: &Unit,
        arm: &Arm,
        target: &Target,
    ) -> Result<(), WorldFailure> {
        let ArmTarget::Server { object } = &arm.target else {
            return Ok(());
        };
        let kept = !unit.restart
            && self
                .running
                .as_ref()
                .is_some_and(|(running, _)| *running == arm.name);
        if kept {
            return Ok(());
        }
        self.stop_server()?;
        (self.show)(RunEvent::Starting);
        let def = self
            .it
            .bundle
            .server(*object)
            .map_err(|error| broken(E0904, &arm.name, &error.to_string()))?;
        let log_name = format!("{}/{SERVER_LOG}", unit.path);
        let log = self
            .it
            .store
            .create(&log_name)
            .map_err(|error| disk(&log_name, &error))?;
        let log = Box::new(MaskingWriter::new(log, self.it.secrets.clone()));
        let command = match &def.kind {
            assize_plan::ServerKind::Command { command, .. } => command.clone(),
            assize_plan::ServerKind::Sim(sim) => sim_command(sim, target.base.port),
        };
        self.note(JournalEvent::ServerStarting {
            unit: unit.n,
            command,
        })?;
        let started = self.it.servers.start(StartServer {
            arm: &arm.name,
            def: &def,
            log,
        })?;
        self.running = Some((arm.name.clone(), unit.n));
        self.note(JournalEvent::ServerReady {
            unit: unit.n,
            pid: started.pid,
        })
    }

    fn stop_server(&mut self) -> Result<(), WorldFailure> {
        let Some((_, unit)) = self.running.take() else {
            return Ok(());
        };
        let stopped = self.it.servers.stop()?;
        self.note(JournalEvent::ServerStopped {
            unit,
            status: stopped.status,
            killed: stopped.killed,
        })
    }

    fn settle(&mut self, quiet: DurNs) {
        let until = self.it.driver.now().after(quiet);
        // In short stretches, so that a stop is heard.
        while self.it.driver.now() < until && !self.it.control.stopping() {
            let stretch = self.it.driver.now().after(DurNs::from_ms(100)).min(until);
            self.it.driver.sleep_until(stretch);
        }
    }

    /// Brackets the wall clock between two readings of the monotonic one; a step ends the run.
    fn read_clock(&mut self) -> Result<(), Stop> {
        let before = self.it.driver.now();
        let wall = self.it.wall.unix_ns();
        let after = self.it.driver.now();
        if wall == 0 {
            return Ok(());
        }
        let middle = before.0.midpoint(after.0);
        let reading = ClockReading {
            at: after,
            offset_ns: wall.cast_signed() - middle.cast_signed(),
        };
        self.note(JournalEvent::ClockBracket {
            offset_ns: reading.offset_ns,
            bracket_ns: after.since(before).0,
        })?;
        let last = self.clock.replace(reading);
        let Some(last) = last else { return Ok(()) };
        let moved = reading.offset_ns.abs_diff(last.offset_ns);
        if moved > CLOCK_STEP_NS + reading.at.since(last.at).0 / 1_000 {
            return Err(Stop {
                reason: StopReason::ClockStep,
                failure: None,
            });
        }
        Ok(())
    }

    fn note(&mut self, event: JournalEvent) -> Result<(), WorldFailure> {
        let now = self.it.driver.now();
        self.journal
            .append(now, self.it.wall.label(), event)
            .map_err(|error| disk(JOURNAL_FILE, &error))
    }

    /// Notes a failure; where even that fails, the journal ends here and `verify` says so.
    fn note_failure(&mut self, failure: Option<&WorldFailure>) {
        let Some(failure) = failure else { return };
        let mut message = failure.message.clone().into_bytes();
        self.it.secrets.mask(&mut message);
        let _ = self.note(JournalEvent::Failure {
            unit: self.running.as_ref().map(|(_, unit)| *unit),
            code: failure.code.id.to_owned(),
            operation: failure.operation.clone(),
            subject: failure.subject.clone(),
            message: String::from_utf8_lossy(&message).into_owned(),
            errno: failure.errno,
        });
    }

    fn sync(&mut self) -> Result<(), WorldFailure> {
        self.journal
            .get_mut()
            .sync()
            .map_err(|error| disk(JOURNAL_FILE, &error))
    }

    fn finish(mut self, outcome: &mut RunOutcome) -> Result<(), WorldFailure> {
        self.stop_server()?;
        if outcome.stopped == Some(StopReason::Disk) {
            // A seal over a broken disk would vouch for what is not there.
            return self.sync();
        }
        (self.show)(RunEvent::Sealing);
        self.note(JournalEvent::Sealed {
            units: outcome.units_ended,
            complete: outcome.is_complete(),
        })?;
        self.sync()?;
        let seal = write_seal(self.it.store).map_err(|error| disk("SHA256SUMS", &error))?;
        outcome.seal = Some(seal);
        Ok(())
    }
}

struct Rows {
    counts: CellCounts,
    all_good: bool,
}

/// Writes the claims line by line: a cell may have very many of them.
fn write_rows(
    file: io::Result<Box<dyn StoreFile>>,
    rendered: &RenderedCell,
    cell: &Cell,
    session: &Session,
) -> (Rows, io::Result<()>) {
    let mut out = file.map(BufWriter::new);
    let mut rows = Rows {
        counts: CellCounts::default(),
        all_good: true,
    };
    for (req, exchange) in (0..).zip(session.exchanges()) {
        let planned = rendered.requests[req as usize];
        let row = claims::row(
            req,
            cell.request_id(req as usize),
            planned.class,
            planned.prompt,
            exchange,
        );
        let complete = row.terminal == assize_evidence::Terminal::Complete;
        rows.counts.requests += 1;
        rows.counts.complete += u64::from(complete);
        rows.counts.failed += u64::from(!complete);
        rows.counts.events += u64::from(row.events);
        rows.counts.received_bytes += row.received_bytes;
        rows.all_good &= complete && (200..300).contains(&row.status);
        out = out.and_then(|mut out| {
            out.write_all(row.to_line().as_bytes())?;
            Ok(out)
        });
    }
    let whole = out.and_then(|out| out.into_inner().map_err(IntoInnerError::into_error));
    (rows, whole.and_then(|mut file| file.sync()))
}

/// The command of the simulated engine, by its name: where it lies says nothing.
fn sim_command(sim: &assize_plan::SimServer, port: u16) -> Vec<String> {
    std::iter::once("assize".to_owned())
        .chain(sim_arguments(sim, port))
        .collect()
}

fn disk(name: &str, error: &io::Error) -> WorldFailure {
    WorldFailure::io(E0902, "writing", name, error)
}

fn broken(code: Code, subject: &str, message: &str) -> WorldFailure {
    WorldFailure {
        code,
        operation: "reading".into(),
        subject: subject.to_owned(),
        message: message.to_owned(),
        errno: 0,
    }
}

fn unrendered(error: &RenderError, folder: &str) -> WorldFailure {
    let code = if matches!(error, RenderError::Secret(_)) {
        E0905
    } else {
        E0904
    };
    WorldFailure {
        operation: "rendering".into(),
        ..broken(code, folder, &error.to_string())
    }
}
