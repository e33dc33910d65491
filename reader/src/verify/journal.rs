//! The journal: what was run, in which order, and how it ended.

use assize_evidence::{CellCounts, JOURNAL_FILE, JournalEvent, JournalReader, StopReason, Store};
use assize_plan::{Hash, Plan};
use assize_units::MonoNs;
use serde::Serialize;

use super::{Refusal, io_refusal};
use crate::verdict::UnitState;

/// A journal beyond this size is refused.
const JOURNAL_LIMIT_BYTES: u64 = 1 << 30;

/// What the journal says of the run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct RunFacts {
    /// The plan that was run.
    pub plan: Hash,
    /// Random, one for each run.
    pub run_id: String,
    /// The tool and its version.
    pub tool: String,
    /// The driver.
    pub driver: String,
    /// Why this driver.
    pub driver_why: String,
    /// The kernel's boot id.
    pub boot_id: String,
    /// The hash of the calibration that was given to the run.
    pub calibration: Option<Hash>,
    /// Wall time of the start: a label.
    pub started: String,
    /// Wall time of the last line: a label.
    pub ended: String,
    /// Lines of kinds that this build does not know.
    pub unknown_lines: usize,
    /// Failures of the world that belong to no request.
    pub failures: Vec<WorldFailure>,
    /// Units that were broken off, and why.
    pub interruptions: Vec<Interruption>,
}

/// A failure of the world that belongs to no request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct WorldFailure {
    /// The unit, where it belongs to one.
    pub unit: Option<u32>,
    /// The diagnostic code.
    pub code: String,
    /// What was being done.
    pub operation: String,
    /// To what.
    pub subject: String,
    /// What the system says.
    pub message: String,
}

/// A unit that was broken off.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Interruption {
    /// The unit.
    pub unit: u32,
    /// Why.
    pub reason: StopReason,
}

/// What happened to units and cells, in order.
pub(super) struct History {
    steps: Vec<Step>,
    pub(super) cut_bytes: usize,
    pub(super) last: Option<MonoNs>,
}

struct Step {
    line: u64,
    event: JournalEvent,
}

/// Reads the journal and checks its chain.
pub(super) fn read(store: &dyn Store) -> Result<(RunFacts, History), Refusal> {
    let text = store
        .read(JOURNAL_FILE, JOURNAL_LIMIT_BYTES)
        .map_err(|source| io_refusal(JOURNAL_FILE, source))?;
    let journal = JournalReader::parse(&text)?;
    let last = journal.lines.last();
    let ended = last.map(|line| line.wall.clone()).unwrap_or_default();
    let last = last.map(|line| line.t_ns);
    let mut facts = None;
    let mut failures = Vec::new();
    let mut interruptions = Vec::new();
    let mut steps = Vec::new();
    let unknown_lines = journal.unknown.len();
    let mut before = MonoNs(0);
    for line in journal.lines {
        let order = |why: &str| Refusal::JournalOrder {
            line: line.seq + 1,
            why: why.to_owned(),
        };
        if line.t_ns < before {
            return Err(order("its time is before that of the line above"));
        }
        before = line.t_ns;
        match line.event {
            JournalEvent::RunStarted {
                plan,
                run_id,
                tool,
                driver,
                driver_why,
                boot_id,
                calibration,
                ..
            } => {
                if facts.is_some() {
                    return Err(order("the run starts a second time"));
                }
                facts = Some(RunFacts {
                    plan,
                    run_id,
                    tool,
                    driver,
                    driver_why,
                    boot_id,
                    calibration,
                    started: line.wall,
                    ended: String::new(),
                    unknown_lines,
                    failures: Vec::new(),
                    interruptions: Vec::new(),
                });
            }
            JournalEvent::Failure {
                unit,
                code,
                operation,
                subject,
                message,
                ..
            } => failures.push(WorldFailure {
                unit,
                code,
                operation,
                subject,
                message,
            }),
            event => {
                if let JournalEvent::Interrupted { unit, reason } = event {
                    interruptions.push(Interruption { unit, reason });
                }
                steps.push(Step {
                    line: line.seq + 1,
                    event,
                });
            }
        }
    }
    let facts = facts.ok_or_else(|| Refusal::JournalOrder {
        line: 1,
        why: "the run never starts".to_owned(),
    })?;
    let facts = RunFacts {
        ended,
        failures,
        interruptions,
        ..facts
    };
    let history = History {
        steps,
        cut_bytes: journal.cut_bytes,
        last,
    };
    Ok((facts, history))
}

impl History {
    /// How a unit was executed.
    pub(super) fn state(&self, unit: u32) -> UnitState {
        let mut state = UnitState::NotRun;
        for step in &self.steps {
            match step.event {
                JournalEvent::UnitStarted { unit: n } if n == unit => {
                    state = UnitState::Interrupted;
                }
                JournalEvent::UnitEnded { unit: n } if n == unit => state = UnitState::Complete,
                JournalEvent::Interrupted { unit: n, .. } if n == unit => {
                    return UnitState::Interrupted;
                }
                _ => {}
            }
        }
        state
    }

    /// What the runtime counted of a cell, or of a warmup where no cell is named.
    pub(super) fn counts(&self, unit: u32, cell: Option<&str>) -> Option<CellCounts> {
        self.steps.iter().find_map(|step| match &step.event {
            JournalEvent::CellEnded {
                unit: n,
                cell: name,
                counts,
            } if *n == unit && cell == Some(name) => Some(*counts),
            JournalEvent::WarmupEnded { unit: n, counts } if *n == unit && cell.is_none() => {
                Some(*counts)
            }
            _ => None,
        })
    }

    /// Units run in the plan's order, one after another, and each unit's cells in the plan's order.
    pub(super) fn check_against(&self, plan: &Plan) -> Result<(), Refusal> {
        let mut due_unit = 0;
        let mut open: Option<(u32, usize)> = None;
        for step in &self.steps {
            let wrong = |why: String| {
                Err(Refusal::JournalOrder {
                    line: step.line,
                    why,
                })
            };
            match &step.event {
                JournalEvent::UnitStarted { unit } => {
                    if open.is_some() {
                        return wrong(format!("unit {unit} starts while another is open"));
                    }
                    if *unit < due_unit || *unit as usize >= plan.units.len() {
                        return wrong(format!("unit {unit} starts out of the plan's order"));
                    }
                    due_unit = *unit + 1;
                    open = Some((*unit, 0));
                }
                JournalEvent::UnitEnded { unit } | JournalEvent::Interrupted { unit, .. } => {
                    let Some((_, cells)) = open.take().filter(|(n, _)| n == unit) else {
                        return wrong(format!("unit {unit} ends and was not open"));
                    };
                    let planned = plan.units[*unit as usize].cells.len();
                    let is_end = matches!(step.event, JournalEvent::UnitEnded { .. });
                    if is_end && cells != planned {
                        return wrong(format!("unit {unit} ends after {cells} of {planned} cells"));
                    }
                }
                JournalEvent::CellStarted { unit, cell } => {
                    let Some((n, place)) = open.as_mut().filter(|(n, _)| n == unit) else {
                        return wrong(format!("cell `{cell}` starts outside its unit"));
                    };
                    let due = plan.units[*n as usize].cells.get(*place);
                    if due.is_none_or(|due| due.name != *cell) {
                        return wrong(format!("cell `{cell}` starts out of the plan's order"));
                    }
                    *place += 1;
                }
                _ => {}
            }
        }
        Ok(())
    }
}
