//! Whether evidence is what it says: nothing but the evidence is needed.
//!
//! The seal, the journal's chain, the plan and its objects are checked; each planned request must
//! have exactly one row of accounting, in the plan's order and at the plan's offsets; then every
//! wire log is replayed by the reader's own parsers and each field of `exchanges.jsonl` is held
//! against the replay. The first disagreement ends it. A folder that a killed run left behind is
//! read as far as it goes, and what is missing is told.

mod calibration;
mod cell;
mod conversation;
mod journal;
mod plan;
mod stage;
mod terminal;

use std::io;

use assize_evidence::wire::{WireEnd, WireError};
use assize_evidence::{JournalError, Seal, SealError, Store, check_seal};
use assize_plan::{Hash, Plan, PlanError};
use assize_units::MonoNs;
use serde::Serialize;

use crate::metrics::{CellData, Need};
use crate::records::Record;
use crate::verdict::UnitState;

pub use calibration::AttachedCalibration;
pub use journal::{Interruption, RunFacts, WorldFailure};

/// What is asked beside the evidence itself.
#[derive(Clone, Copy, Debug, Default)]
pub struct Demands {
    /// The seal that an outside copy names.
    pub seal: Option<Hash>,
}

/// Whether the folder is sealed, and what that proves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case", tag = "state")]
pub enum SealState {
    /// Sealed, and the seal is the one that an outside copy names.
    Confirmed {
        /// The seal.
        seal: Hash,
    },
    /// Sealed; without an outside copy this proves consistency, not authorship.
    Consistent {
        /// The seal.
        seal: Hash,
    },
    /// Not sealed: judged from the checksums of journal and segments.
    Unsealed,
}

/// One cell that was replayed.
#[derive(Clone, Debug)]
pub struct CellReading {
    /// The unit's place in the plan.
    pub unit: u32,
    /// The cell's place in its unit; none for the warmup.
    pub cell: Option<usize>,
    /// The instant of offset 0, where the cell came to it.
    pub origin: Option<MonoNs>,
    /// The last terminal event.
    pub end: Option<MonoNs>,
    /// One record for each request that ended, in the plan's order.
    pub records: Vec<Record>,
    /// Wire-log records of kinds that this build does not know.
    pub unknown_records: u64,
    /// Bytes that came on connections without a request.
    pub stray_bytes: u64,
    /// Facts that the driver stated: buffer shortages, re-armed receives.
    pub driver_facts: usize,
}

impl CellReading {
    /// The records as data for metrics; `None` where the cell never had an origin.
    pub fn data<'a>(&'a self, offered: usize, needs: &'a [Need]) -> Option<CellData<'a>> {
        let origin = self.origin?;
        Some(CellData {
            offered,
            origin,
            end: self.end.unwrap_or(origin),
            records: &self.records,
            needs,
        })
    }
}

/// Something that an unfinished run left out.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Gap {
    /// The file or folder.
    pub place: String,
    /// What is missing.
    pub what: String,
    /// The segment from which on nothing can be read.
    pub from_segment: Option<u32>,
    /// The time of the last record before it.
    pub after_ns: Option<MonoNs>,
}

/// Evidence that holds.
#[derive(Clone, Debug)]
pub struct Verified {
    /// The plan.
    pub plan: Plan,
    /// Its hash.
    pub plan_hash: Hash,
    /// The seal.
    pub seal: SealState,
    /// What the journal says of the run.
    pub run: RunFacts,
    /// The calibration that was given to the run.
    pub calibration: Option<AttachedCalibration>,
    /// How each unit of the plan was executed, in its order.
    pub units: Vec<UnitState>,
    /// What is missing.
    pub gaps: Vec<Gap>,
    /// Requests whose rows were held against their replay.
    pub compared: u64,
}

impl Verified {
    /// Whether it is sealed and every planned unit was run to its end.
    pub fn is_complete(&self) -> bool {
        self.seal != SealState::Unsealed
            && self.gaps.is_empty()
            && self.units.iter().all(|state| *state == UnitState::Complete)
    }
}

/// Why evidence does not hold.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Refusal {
    /// The seal does not hold.
    #[error(transparent)]
    Seal(#[from] SealError),
    /// The seal holds, and is another than the one demanded.
    #[error("the seal is {found}, {demanded} was demanded")]
    OtherSeal {
        /// The seal demanded.
        demanded: Hash,
        /// The seal found.
        found: Hash,
    },
    /// A seal was demanded of a folder that has none.
    #[error("the folder is not sealed, {0} was demanded")]
    NoSeal(Hash),
    /// The journal cannot be read, or its chain is broken.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// The journal tells an order of things that cannot have been.
    #[error("journal.jsonl, line {line}: {why}")]
    JournalOrder {
        /// The line, from 1.
        line: u64,
        /// What is wrong.
        why: String,
    },
    /// The plan cannot be read.
    #[error("plan.json: {0}")]
    Plan(#[from] PlanError),
    /// The journal was written for another plan.
    #[error("the journal names plan {named}, plan.json is {found}")]
    OtherPlan {
        /// The hash in the journal.
        named: Hash,
        /// The hash of `plan.json`.
        found: Hash,
    },
    /// An object of the plan is not there or is another.
    #[error("object {hash}: {why}")]
    Object {
        /// The hash that the plan names.
        hash: Hash,
        /// What is wrong.
        why: String,
    },
    /// A wire log cannot be read.
    #[error("{file}: {source}")]
    Wire {
        /// The file.
        file: String,
        /// What is wrong.
        source: WireError,
    },
    /// A wire log tells an order of things that cannot have been.
    #[error("{place}: {why}")]
    Order {
        /// The cell, and the request where there is one.
        place: String,
        /// What is wrong.
        why: String,
    },
    /// A claim differs from the replay.
    #[error("{place}: {field} is claimed as {claimed}, the replay gives {replayed}")]
    Disagreement {
        /// The cell and the request.
        place: String,
        /// The field.
        field: String,
        /// The claim.
        claimed: String,
        /// What the replay gives.
        replayed: String,
    },
    /// A planned request has no row of accounting, or something unplanned has one.
    #[error("{place}: {why}")]
    Accounting {
        /// The cell.
        place: String,
        /// What is wrong.
        why: String,
    },
    /// The calibration is not the one that was given to the run, or none at all.
    #[error("calibration.json: {0}")]
    Calibration(String),
    /// The folder cannot be read.
    #[error("{file}: {source}")]
    Io {
        /// The file.
        file: String,
        /// What the system says.
        source: io::Error,
    },
}

impl Refusal {
    /// Its diagnostic code.
    pub fn code(&self) -> assize_codes::Code {
        match self {
            Refusal::Seal(SealError::Io(_)) | Refusal::Io { .. } => assize_codes::E0808,
            Refusal::Seal(_) => assize_codes::E0701,
            Refusal::OtherSeal { .. } | Refusal::NoSeal(_) => assize_codes::E0801,
            Refusal::Journal(_) | Refusal::JournalOrder { .. } => assize_codes::E0802,
            Refusal::Plan(_) | Refusal::OtherPlan { .. } | Refusal::Object { .. } => {
                assize_codes::E0803
            }
            Refusal::Wire { .. } => assize_codes::E0804,
            Refusal::Order { .. } => assize_codes::E0805,
            Refusal::Disagreement { .. } => assize_codes::E0806,
            Refusal::Accounting { .. } => assize_codes::E0807,
            Refusal::Calibration(_) => assize_codes::E0809,
        }
    }
}

/// Verifies evidence, and hands over each cell as soon as it is replayed: warmups too. One cell is
/// in memory at a time.
pub fn verify(
    store: &dyn Store,
    demands: &Demands,
    mut take: impl FnMut(&Plan, CellReading),
) -> Result<Verified, Refusal> {
    let seal = seal_state(check_seal(store)?, demands)?;
    let (run, history) = journal::read(store)?;
    let frozen = plan::Frozen::open(store, run.plan)?;
    history.check_against(&frozen.plan)?;
    let mut gaps = Vec::new();
    if history.cut_bytes > 0 {
        gaps.push(Gap {
            place: assize_evidence::JOURNAL_FILE.to_owned(),
            what: format!("{} bytes of a cut last line", history.cut_bytes),
            from_segment: None,
            after_ns: history.last,
        });
    }
    let names = store.list().map_err(|source| io_refusal(".", source))?;
    let calibration = calibration::open(store, &names, &run)?;
    let mut compared = 0;
    for unit in &frozen.plan.units {
        let state = history.state(unit.n);
        if state == UnitState::NotRun {
            gaps.push(Gap {
                place: unit.path.clone(),
                what: "the unit was never begun".to_owned(),
                from_segment: None,
                after_ns: None,
            });
            continue;
        }
        let warmup = unit.warmup.iter().map(|cell| (None, cell));
        let timed = unit.cells.iter().enumerate();
        for (place, cell) in warmup.chain(timed.map(|(place, cell)| (Some(place), cell))) {
            let scene = cell::Scene {
                store,
                frozen: &frozen,
                unit,
                cell,
                place,
                counts: history.counts(unit.n, place.map(|_| cell.name.as_str())),
                is_complete: state == UnitState::Complete,
            };
            let Some(replayed) = scene.replay(&names, &mut gaps)? else {
                continue;
            };
            compared += replayed.compared;
            take(&frozen.plan, replayed.reading);
        }
    }
    plan::refuse_strangers(&frozen.plan, &names)?;
    Ok(Verified {
        units: frozen
            .plan
            .units
            .iter()
            .map(|unit| history.state(unit.n))
            .collect(),
        plan_hash: run.plan,
        plan: frozen.plan,
        seal,
        run,
        calibration,
        gaps,
        compared,
    })
}

fn seal_state(seal: Option<Seal>, demands: &Demands) -> Result<SealState, Refusal> {
    match (seal, demands.seal) {
        (None, None) => Ok(SealState::Unsealed),
        (None, Some(demanded)) => Err(Refusal::NoSeal(demanded)),
        (Some(seal), None) => Ok(SealState::Consistent { seal: seal.hash }),
        (Some(seal), Some(demanded)) if seal.hash == demanded => {
            Ok(SealState::Confirmed { seal: seal.hash })
        }
        (Some(seal), Some(demanded)) => Err(Refusal::OtherSeal {
            demanded,
            found: seal.hash,
        }),
    }
}

fn io_refusal(file: &str, source: io::Error) -> Refusal {
    Refusal::Io {
        file: file.to_owned(),
        source,
    }
}

/// A gap for a wire log that does not end in order.
fn wire_gap(file: &str, end: WireEnd, requests: usize) -> Option<Gap> {
    let WireEnd::Broken { seq, after, cut } = end else {
        return None;
    };
    let how = if cut { "is cut" } else { "fails its checksum" };
    Some(Gap {
        place: file.to_owned(),
        what: format!("segment {seq} {how}; {requests} requests have no end"),
        from_segment: Some(seq),
        after_ns: after,
    })
}
