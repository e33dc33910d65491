//! What a plan will do and what its rules can conclude, before it runs.

use assize_plan::{Correction, Interval, Plan};
use assize_stats::Probability;
use assize_stats::design::{Design, WinsNeeded};
use assize_stats::order_statistic::{MedianInterval, narrowest};
use assize_units::{DurNs, Ratio};

use crate::plan::Assembly;
use crate::rules::{Decided, level};
use crate::sets::Set;

/// Chances of a win, in percent, for which the power is shown.
const WIN_CHANCES: &[i128] = &[60, 70, 80, 90, 95];

/// A plan in numbers.
#[derive(Clone, Debug)]
pub struct Preview {
    /// The block sets in the order of execution.
    pub sets: Vec<SetPreview>,
    /// Units: server invocations where arms have servers.
    pub units: u32,
    /// Requests in all, warmups included.
    pub requests: u64,
    /// Output tokens asked for at most; `None` where a request sets no limit.
    pub output_tokens: Option<u64>,
    /// The time that open schedules and settling take. Closed cells, starts and drains come on top.
    pub scheduled: DurNs,
    /// Cells whose length hangs on the server.
    pub closed_cells: u32,
    /// What each hypothesis can come to.
    pub hypotheses: Vec<HypothesisPreview>,
}

/// A block set in numbers.
#[derive(Clone, Debug)]
pub struct SetPreview {
    /// Its name.
    pub name: String,
    /// Whether it enters no test.
    pub excluded: bool,
    /// Its blocks.
    pub blocks: u32,
    /// Its arms.
    pub arms: Vec<String>,
    /// Its cells, with the requests of one of them.
    pub cells: Vec<(String, u32)>,
    /// Requests of the whole set, warmups left out.
    pub requests: u64,
}

/// What a hypothesis can come to.
#[derive(Clone, Debug)]
pub struct HypothesisPreview {
    /// The family.
    pub family: String,
    /// The sentence.
    pub text: String,
    /// Matched blocks.
    pub blocks: u32,
    /// Tests of the family that share the level.
    pub tests: u32,
    /// The level.
    pub level: Ratio,
    /// The smallest p that the blocks allow.
    pub smallest_p: Probability,
    /// The wins that reject.
    pub wins_needed: WinsNeeded,
    /// The chance of rejecting a true null hypothesis in the best case of the correction.
    pub false_positive: Probability,
    /// The power in the best case of the correction, for chances of a win in one block.
    pub power: Vec<(Ratio, Probability)>,
    /// The ranks of the interval of the median, where some cover enough.
    pub interval: Option<MedianInterval>,
}

pub(crate) fn preview(
    plan: &Plan,
    sets: &[Set],
    assembly: &Assembly,
    decided: &[Decided],
) -> Preview {
    Preview {
        sets: sets.iter().map(|set| set_preview(plan, set)).collect(),
        units: u32::try_from(plan.units.len()).unwrap_or(u32::MAX),
        requests: assembly.requests,
        output_tokens: assembly.output_tokens,
        scheduled: assembly.scheduled,
        closed_cells: assembly.closed_cells,
        hypotheses: decided.iter().flat_map(family_preview).collect(),
    }
}

fn set_preview(plan: &Plan, set: &Set) -> SetPreview {
    let units = || plan.units.iter().filter(|unit| unit.set == set.name);
    let cells = set.cells.iter().map(|member| {
        let requests = units()
            .flat_map(|unit| &unit.cells)
            .find(|cell| cell.name == member.name)
            .map_or(0, |cell| cell.requests);
        (member.name.clone(), requests)
    });
    SetPreview {
        name: set.name.clone(),
        excluded: set.excluded,
        blocks: set.blocks,
        arms: set.arms.clone(),
        cells: cells.collect(),
        requests: units()
            .flat_map(|unit| &unit.cells)
            .map(|cell| u64::from(cell.requests))
            .sum(),
    }
}

fn family_preview(decided: &Decided) -> Vec<HypothesisPreview> {
    let family = &decided.family;
    family
        .hypotheses
        .iter()
        .zip(&decided.blocks)
        .filter_map(|(hypothesis, blocks)| {
            one(
                &family.name,
                &hypothesis.text,
                *blocks,
                family.correct,
                family.interval,
                family.hypotheses.len(),
            )
        })
        .collect()
}

/// `None` only where the numbers are beyond what the statistics take, which `rules` has reported.
fn one(
    family: &str,
    text: &str,
    blocks: u32,
    correct: Correction,
    interval: Interval,
    hypotheses: usize,
) -> Option<HypothesisPreview> {
    let (alpha, tests) = level(correct, hypotheses);
    let design = Design {
        blocks,
        hypotheses: tests,
        alpha,
    };
    let wins_needed = design.wins_needed().ok()??;
    let power = WIN_CHANCES
        .iter()
        .filter_map(|percent| {
            let chance = Ratio::new(*percent, 100).ok()?;
            Some((chance, design.power(wins_needed.best_case, chance).ok()?))
        })
        .collect();
    let Interval::MedianOrderStatistic { at_least } = interval;
    Some(HypothesisPreview {
        family: family.to_owned(),
        text: text.to_owned(),
        blocks,
        tests,
        level: alpha,
        smallest_p: design.smallest_p().ok()?,
        wins_needed,
        false_positive: design.false_positive_rate().ok()?,
        power,
        interval: narrowest(blocks, at_least).ok().flatten(),
    })
}
