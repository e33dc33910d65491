//! A whole study: verified, summarized cell by cell, judged.

use assize_evidence::Store;
use assize_plan::{Cell, Plan, Unit};
use assize_stats::StatsError;
use assize_units::MonoNs;
use serde::Serialize;

use crate::metrics::{CellSummary, Need, figure, summarize};
use crate::records::Record;
use crate::verdict::{CellFigures, FamilyVerdict, decide, measures_of};
use crate::verify::{CellReading, Demands, Refusal, Verified, verify};

/// Failed requests that are listed for one cell; the rest is counted.
const LISTED_FAILURES: usize = 1_000;

/// One failed request, by name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct FailedRequest {
    /// Its place in the cell.
    pub index: u32,
    /// Its id, as sent.
    pub id: String,
    /// The outcome.
    pub outcome: &'static str,
    /// How far it had come.
    pub phase: &'static str,
    /// What is wrong, where the bytes show it.
    pub why: Option<&'static str>,
    /// The HTTP status.
    pub status: Option<u16>,
    /// Whether it is consistent with a stale keep-alive reuse; a likeness, not a cause.
    pub stale_reuse_like: bool,
}

/// One cell's results.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CellResult {
    /// The unit's place in the plan.
    pub unit: u32,
    /// The block set.
    pub set: String,
    /// The block.
    pub block: u32,
    /// The arm.
    pub arm: String,
    /// The cell as the study names it, or `warmup`.
    pub cell: String,
    /// Whether it is a warmup or belongs to an excluded set: it enters no figure of the study.
    pub excluded: bool,
    /// Its figures; none where the cell never had an origin.
    pub summary: Option<CellSummary>,
    /// Its failed requests, at most a thousand.
    pub failed_requests: Vec<FailedRequest>,
    /// Failed requests that are counted and not listed.
    pub failed_not_listed: usize,
    /// The instant of offset 0.
    pub origin_ns: Option<MonoNs>,
    /// Wire-log records of kinds that this build does not know.
    pub unknown_records: u64,
    /// Bytes that came on connections without a request.
    pub stray_bytes: u64,
    /// Facts that the driver stated.
    pub driver_facts: usize,
}

/// A study, read.
#[derive(Clone, Debug)]
pub struct Analysis {
    /// What verification found.
    pub verified: Verified,
    /// Each cell that was begun, in the plan's order; warmups before their unit's cells.
    pub cells: Vec<CellResult>,
    /// The families, judged.
    pub families: Vec<FamilyVerdict>,
}

/// Why a study cannot be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AnalysisError {
    /// The evidence does not hold.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// A statistic is refused for its size.
    #[error(transparent)]
    Stats(#[from] StatsError),
}

/// Verifies evidence and judges it. One cell's records are in memory at a time.
pub fn analyze(store: &dyn Store, demands: &Demands) -> Result<Analysis, AnalysisError> {
    let mut cells = Vec::new();
    let mut figures = Vec::new();
    let verified = verify(store, demands, |plan, reading| {
        let unit = &plan.units[reading.unit as usize];
        let planned = match reading.cell {
            Some(place) => unit.cells.get(place),
            None => unit.warmup.as_ref(),
        };
        let Some(planned) = planned else {
            return;
        };
        if reading.cell.is_some() && !unit.excluded {
            figures.push(figures_of(plan, unit, planned, &reading));
        }
        cells.push(result_of(plan, unit, planned, &reading));
    })?;
    let families = decide(&verified.plan, &verified.units, &figures)?;
    Ok(Analysis {
        verified,
        cells,
        families,
    })
}

fn figures_of(plan: &Plan, unit: &Unit, cell: &Cell, reading: &CellReading) -> CellFigures {
    let needs = Need::of_cell(plan, &cell.name);
    let figures = match reading.data(cell.requests as usize, &needs) {
        None => Vec::new(),
        Some(data) => measures_of(plan, &cell.name)
            .into_iter()
            .map(|measure| {
                let value = figure(plan, &data, &measure);
                (measure, value)
            })
            .collect(),
    };
    CellFigures {
        unit: unit.n,
        cell: cell.name.clone(),
        figures,
    }
}

fn result_of(plan: &Plan, unit: &Unit, cell: &Cell, reading: &CellReading) -> CellResult {
    let is_warmup = reading.cell.is_none();
    let needs = Need::of_cell(plan, &cell.name);
    let failed: Vec<&Record> = reading
        .records
        .iter()
        .filter(|record| !record.outcome.is_valid())
        .collect();
    CellResult {
        unit: unit.n,
        set: unit.set.clone(),
        block: unit.block,
        arm: unit.arm.clone(),
        cell: if is_warmup {
            "warmup".to_owned()
        } else {
            cell.name.clone()
        },
        excluded: unit.excluded || is_warmup,
        summary: reading
            .data(cell.requests as usize, &needs)
            .map(|data| summarize(&data)),
        failed_not_listed: failed.len().saturating_sub(LISTED_FAILURES),
        failed_requests: failed
            .into_iter()
            .take(LISTED_FAILURES)
            .map(|record| FailedRequest {
                index: record.index,
                id: cell.request_id(record.index as usize),
                outcome: record.outcome.name(),
                phase: record.phase.word(),
                why: record.why,
                status: record.status,
                stale_reuse_like: record.is_like_stale_reuse(),
            })
            .collect(),
        origin_ns: reading.origin,
        unknown_records: reading.unknown_records,
        stray_bytes: reading.stray_bytes,
        driver_facts: reading.driver_facts,
    }
}
