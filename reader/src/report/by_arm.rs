//! Each cell of each arm over the blocks of its set: counts summed, figures by their median.
//!
//! A median is over the blocks that were run to their end, each with its own figure: requests of
//! different blocks are never pooled. Counts are of every cell that was begun.

use assize_plan::{Load, Plan, RecordLevel};
use assize_stats::percentile::median_of_ratios;
use assize_units::Ratio;
use serde::Serialize;

use super::Exact;
use crate::metrics::{CellSummary, EventTotals, FailureCount, Latency, Origin};
use crate::study::CellResult;
use crate::verdict::UnitState;

/// How a cell's requests are let go.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case", tag = "kind")]
pub enum LoadFacts {
    /// By the clock alone.
    Open {
        /// A declared limit of requests in flight.
        cap: Option<u32>,
    },
    /// So many in flight.
    Closed {
        /// Requests in flight at most.
        clients: u32,
    },
}

impl LoadFacts {
    /// Where latencies of such a load are counted from, unless a rule says otherwise: the intended
    /// instant in an open loop, admission in a closed one.
    pub fn origin(self) -> Origin {
        match self {
            LoadFacts::Open { .. } => Origin::Intended,
            LoadFacts::Closed { .. } => Origin::Started,
        }
    }
}

/// What a figure is measured in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum FigureUnit {
    /// Events a second.
    #[serde(rename = "1/s")]
    PerSecond,
    /// Nanoseconds.
    #[serde(rename = "ns")]
    Ns,
}

/// A block's own figure.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct BlockFigure {
    /// The block.
    pub block: u32,
    /// Its figure.
    pub value: Exact,
}

/// One figure, block by block, and its median.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ArmFigure {
    /// `throughput`, `ttft` and so on.
    pub name: &'static str,
    /// Where it begins, for a latency that must say so.
    pub from: Option<Origin>,
    /// `p50`, `p95` or `p99`; none for a rate.
    pub stat: Option<&'static str>,
    /// The unit.
    pub unit: FigureUnit,
    /// Each block that was run to its end and has the figure.
    pub blocks: Vec<BlockFigure>,
    /// The median over those blocks; none where its exact value does not fit 128-bit integers.
    pub median: Option<Exact>,
}

/// What became of the requests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Counts {
    /// Requests of the plan.
    pub planned: usize,
    /// Those of cells that were begun.
    pub offered: usize,
    /// Requests that were dispatched.
    pub dispatched: usize,
    /// Valid completions.
    pub valid: usize,
    /// Valid completions without a token.
    pub empty_valid: usize,
    /// Requests that failed.
    pub failed: usize,
    /// Requests without a record, or valid ones without a time that a hypothesis needs.
    pub missing: usize,
    /// Failures consistent with a stale keep-alive reuse; a likeness, not a cause.
    pub stale_reuse_like: usize,
}

/// How the output tokens of valid requests were come by.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct TokenTotals {
    /// Valid requests with usage.
    pub usage: usize,
    /// Valid requests with token ids for every token.
    pub token_ids: usize,
    /// Valid requests with both, where they disagree.
    pub disagree: usize,
    /// Valid requests with neither.
    pub neither: usize,
    /// Output tokens; none where a cell that was begun cannot say.
    pub output_tokens: Option<u64>,
}

/// One cell of one arm over the blocks of a set.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ArmCell {
    /// The block set.
    pub set: String,
    /// The cell as the study names it.
    pub cell: String,
    /// The arm.
    pub arm: String,
    /// The arm's name to show.
    pub label: String,
    /// Whether the set enters neither test nor validity.
    pub excluded: bool,
    /// How requests are let go.
    pub load: LoadFacts,
    /// Requests of one block.
    pub requests: u32,
    /// Blocks of the plan.
    pub blocks_planned: usize,
    /// Blocks that were run to their end.
    pub blocks_run: usize,
    /// Whether payload was kept; otherwise the figures rest on claims of the runtime.
    pub wire: bool,
    /// What became of the requests.
    pub counts: Counts,
    /// Failures by outcome and phase.
    pub failures: Vec<FailureCount>,
    /// Token counts.
    pub tokens: TokenTotals,
    /// Event counts.
    pub events: EventTotals,
    /// The most requests in flight at one instant of any block.
    pub peak_outstanding: usize,
    /// Figures with their medians.
    pub figures: Vec<ArmFigure>,
}

impl ArmCell {
    /// The figure of that name, origin and statistic.
    pub fn figure(
        &self,
        name: &str,
        from: Option<Origin>,
        stat: Option<&str>,
    ) -> Option<&ArmFigure> {
        self.figures
            .iter()
            .find(|it| it.name == name && it.from == from && it.stat == stat)
    }
}

/// Every cell of every arm, in the plan's order of first occurrence; arms in the study's order.
pub(super) fn by_arm(plan: &Plan, states: &[UnitState], results: &[CellResult]) -> Vec<ArmCell> {
    let mut found: Vec<ArmCell> = Vec::new();
    for (unit, state) in plan.units.iter().zip(states) {
        for planned in &unit.cells {
            let at = found
                .iter()
                .position(|it| it.set == unit.set && it.cell == planned.name && it.arm == unit.arm);
            let at = at.unwrap_or_else(|| {
                found.push(empty(plan, unit, planned));
                found.len() - 1
            });
            let row = &mut found[at];
            row.blocks_planned += 1;
            row.counts.planned += planned.requests as usize;
            let result = results
                .iter()
                .find(|it| it.unit == unit.n && it.cell == planned.name);
            let summary = result.and_then(|it| it.summary.as_ref());
            if let Some(summary) = summary {
                row.count(summary);
            }
            if *state == UnitState::Complete {
                row.blocks_run += 1;
                for figure in summary.into_iter().flat_map(figures_of) {
                    row.put(unit.block, figure);
                }
            }
        }
    }
    for figure in found.iter_mut().flat_map(|row| &mut row.figures) {
        let values: Vec<Ratio> = figure.blocks.iter().map(|it| it.value.0).collect();
        figure.median = median_of_ratios(&values).map(Exact);
    }
    in_order(plan, found)
}

/// Cells as they first occur, the arms of each in the study's order: not in a block's own order.
fn in_order(plan: &Plan, mut rows: Vec<ArmCell>) -> Vec<ArmCell> {
    let mut cells: Vec<(String, String)> = Vec::new();
    for row in &rows {
        let cell = (row.set.clone(), row.cell.clone());
        if !cells.contains(&cell) {
            cells.push(cell);
        }
    }
    let place = |row: &ArmCell| {
        let cell = cells
            .iter()
            .position(|(set, cell)| *set == row.set && *cell == row.cell);
        let arm = plan.arms.iter().position(|arm| arm.name == row.arm);
        (cell, arm)
    };
    rows.sort_by_key(place);
    rows
}

fn empty(plan: &Plan, unit: &assize_plan::Unit, cell: &assize_plan::Cell) -> ArmCell {
    ArmCell {
        set: unit.set.clone(),
        cell: cell.name.clone(),
        arm: unit.arm.clone(),
        label: plan
            .arm(&unit.arm)
            .map_or_else(|| unit.arm.clone(), |arm| arm.label.clone()),
        excluded: unit.excluded,
        load: match cell.load {
            Load::Open { cap, .. } => LoadFacts::Open { cap },
            Load::Closed { clients, .. } => LoadFacts::Closed { clients },
        },
        requests: cell.requests,
        blocks_planned: 0,
        blocks_run: 0,
        wire: cell.record == RecordLevel::Wire,
        counts: Counts::default(),
        failures: Vec::new(),
        tokens: TokenTotals {
            output_tokens: Some(0),
            ..TokenTotals::default()
        },
        events: EventTotals::default(),
        peak_outstanding: 0,
        figures: Vec::new(),
    }
}

/// One cell's own figure, before it has a place among the blocks.
struct OwnFigure {
    name: &'static str,
    from: Option<Origin>,
    stat: Option<&'static str>,
    unit: FigureUnit,
    value: Exact,
}

fn figures_of(summary: &CellSummary) -> Vec<OwnFigure> {
    let rate = |name, value: Option<Exact>| {
        value.map(|value| OwnFigure {
            name,
            from: None,
            stat: None,
            unit: FigureUnit::PerSecond,
            value,
        })
    };
    let mut found: Vec<OwnFigure> = rate("throughput", summary.throughput)
        .into_iter()
        .chain(rate("output_throughput", summary.output_throughput))
        .chain(rate("scheduled_rate", summary.scheduled_rate))
        .chain(rate("sent_rate", summary.sent_rate))
        .collect();
    for latency in &summary.latencies {
        let Latency { name, from, .. } = *latency;
        let stats = [
            ("p50", latency.p50_ns),
            ("p95", latency.p95_ns),
            ("p99", latency.p99_ns),
        ];
        found.extend(stats.map(|(stat, value)| OwnFigure {
            name,
            from,
            stat: Some(stat),
            unit: FigureUnit::Ns,
            value,
        }));
    }
    found
}

impl ArmCell {
    fn put(&mut self, block: u32, own: OwnFigure) {
        let value = BlockFigure {
            block,
            value: own.value,
        };
        let same =
            |it: &&mut ArmFigure| it.name == own.name && it.from == own.from && it.stat == own.stat;
        match self.figures.iter_mut().find(same) {
            Some(figure) => figure.blocks.push(value),
            None => self.figures.push(ArmFigure {
                name: own.name,
                from: own.from,
                stat: own.stat,
                unit: own.unit,
                blocks: vec![value],
                median: None,
            }),
        }
    }

    fn count(&mut self, summary: &CellSummary) {
        let counts = &mut self.counts;
        counts.offered += summary.offered;
        counts.dispatched += summary.dispatched;
        counts.valid += summary.valid;
        counts.empty_valid += summary.empty_valid;
        counts.failed += summary.failed;
        counts.missing += summary.missing;
        counts.stale_reuse_like += summary.stale_reuse_like;
        for failure in &summary.failures {
            let same =
                |it: &&mut FailureCount| (it.outcome, it.phase) == (failure.outcome, failure.phase);
            match self.failures.iter_mut().find(same) {
                Some(known) => known.count += failure.count,
                None => self.failures.push(failure.clone()),
            }
        }
        let tokens = &mut self.tokens;
        tokens.usage += summary.tokens.usage;
        tokens.token_ids += summary.tokens.token_ids;
        tokens.disagree += summary.tokens.disagree;
        tokens.neither += summary.tokens.neither;
        let both = tokens.output_tokens.zip(summary.tokens.output_tokens);
        tokens.output_tokens = both.and_then(|(sum, more)| sum.checked_add(more));
        let events = &mut self.events;
        events.events += summary.events.events;
        events.token_bearing += summary.events.token_bearing;
        events.empty += summary.events.empty;
        events.multi_token += summary.events.multi_token;
        events.coalesced += summary.events.coalesced;
        events.zero_gaps += summary.events.zero_gaps;
        self.peak_outstanding = self.peak_outstanding.max(summary.peak_outstanding);
    }
}
