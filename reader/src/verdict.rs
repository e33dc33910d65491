//! What the plan's rules say of the figures: exact, block by block.
//!
//! The block is the replicate. Validity is judged over every timed cell of the study: one breach
//! blocks every hypothesis of its family. Units that were not run to their end leave the
//! hypotheses not evaluated. See docs/statistics.

mod condition;
mod decide;

use assize_plan::{Measure, Node, Plan, Quantity, Stat};
use assize_stats::Probability;
use assize_stats::effect::Outcome as BlockOutcome;
use assize_units::Ratio;
use serde::Serialize;

use crate::metrics::NoFigure;
use crate::report::{Exact, probability};

pub use decide::decide;
pub(crate) use decide::percent;

/// How a unit of the plan was executed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum UnitState {
    /// Run to its end.
    Complete,
    /// Begun and not ended.
    Interrupted,
    /// Never begun.
    NotRun,
}

/// The figures of one cell that rules ask for.
#[derive(Clone, Debug, PartialEq)]
pub struct CellFigures {
    /// The unit's place in the plan.
    pub unit: u32,
    /// The cell's name as the study writes it.
    pub cell: String,
    /// Each measure that a rule names, with its value.
    pub figures: Vec<(Measure, Result<Ratio, NoFigure>)>,
}

/// The measures that the plan's rules ask for in a cell of that name.
pub fn measures_of(plan: &Plan, cell: &str) -> Vec<Measure> {
    let mut found: Vec<Measure> = Vec::new();
    let mut add = |measure: &Measure| {
        if !found.contains(measure) {
            found.push(measure.clone());
        }
    };
    for family in &plan.rules {
        for hypothesis in family.hypotheses.iter().filter(|it| it.cell == cell) {
            add(&hypothesis.measure);
        }
        for condition in &family.valid {
            if condition.cell.as_deref().is_none_or(|only| only == cell) {
                each_measure(&condition.node, &mut add);
            }
        }
    }
    found
}

fn each_measure(node: &Node, add: &mut impl FnMut(&Measure)) {
    match node {
        Node::Value(_) => {}
        Node::Measure(measure) => add(measure),
        Node::Add(left, right)
        | Node::Sub(left, right)
        | Node::Mul(left, right)
        | Node::Div(left, right)
        | Node::Min(left, right)
        | Node::Max(left, right)
        | Node::Compare(_, left, right)
        | Node::And(left, right)
        | Node::Or(left, right) => {
            each_measure(left, add);
            each_measure(right, add);
        }
    }
}

/// A hypothesis' verdict.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// Test and margin pass and the study is valid.
    Supported,
    /// A declared validity requirement failed: figures are shown, no claim is made.
    Blocked,
    /// The test or the margin failed.
    NotSupported,
    /// Blocks are missing or interrupted.
    NotEvaluated,
}

impl Verdict {
    /// The words of a report.
    pub fn words(self) -> &'static str {
        match self {
            Verdict::Supported => "supported",
            Verdict::Blocked => "blocked",
            Verdict::NotSupported => "not supported",
            Verdict::NotEvaluated => "not evaluated",
        }
    }
}

/// One block of one hypothesis.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct BlockEffect {
    /// The block set.
    pub set: String,
    /// The block's number in it.
    pub block: u32,
    /// The candidate's figure, in base units.
    pub candidate: Option<Exact>,
    /// The control's figure, in base units.
    pub control: Option<Exact>,
    /// The effect, positive for an improvement; the candidate's value itself for `holds`.
    pub effect: Option<Exact>,
    /// `win`, `tie`, `loss` or `missing`.
    pub outcome: &'static str,
    /// Why there is no effect.
    pub why: Option<String>,
}

/// The median's interval.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct MedianRange {
    /// The lower end.
    pub lower: Exact,
    /// The upper end.
    pub upper: Exact,
    /// The lower end's rank, from 1.
    pub lower_rank: u32,
    /// The upper end's rank, from 1.
    pub upper_rank: u32,
    /// The coverage attained under the independent-block model.
    #[serde(serialize_with = "probability")]
    pub coverage: Probability,
}

/// One hypothesis, judged.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct HypothesisVerdict {
    /// The sentence as written.
    pub text: String,
    /// The arm on the left.
    pub candidate: String,
    /// The arm on the right.
    pub control: Option<String>,
    /// The cell.
    pub cell: String,
    /// What is measured, in the study's words.
    pub measure: String,
    /// One for each matched block.
    pub blocks: Vec<BlockEffect>,
    /// Blocks won.
    pub wins: u32,
    /// Blocks exactly on the threshold.
    pub ties: u32,
    /// Blocks lost.
    pub losses: u32,
    /// Blocks without an effect.
    pub missing: u32,
    /// The median effect.
    pub median: Option<Exact>,
    /// Its interval, where the number of blocks allows the declared coverage.
    pub interval: Option<MedianRange>,
    /// The exact one-sided p.
    #[serde(serialize_with = "probability")]
    pub p: Probability,
    /// The p adjusted over the family.
    #[serde(serialize_with = "probability")]
    pub adjusted_p: Probability,
    /// Whether the adjusted p is at most the level.
    pub test_passes: bool,
    /// Whether the median passes its screen or margin.
    pub margin_passes: bool,
    /// The verdict.
    pub verdict: Verdict,
    /// What decided it, for a person.
    pub reasons: Vec<String>,
}

/// One place where a validity condition does not hold.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Breach {
    /// The condition as written, or the hypothesis whose effect is missing.
    pub text: String,
    /// The block set.
    pub set: String,
    /// The block.
    pub block: u32,
    /// The arm.
    pub arm: String,
    /// The cell.
    pub cell: String,
    /// What was found.
    pub found: String,
}

/// A family of hypotheses, judged.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FamilyVerdict {
    /// The study's name for it.
    pub name: String,
    /// The level of the family, or of each test where nothing is corrected.
    pub level: Exact,
    /// Whether the level is held over the family by Holm's procedure.
    pub holm: bool,
    /// Times a condition was tried: arms, blocks and cells.
    pub conditions_tried: usize,
    /// Where one did not hold.
    pub breaches: Vec<Breach>,
    /// Units of the study's timed sets that were not run to their end.
    pub incomplete_units: Vec<String>,
    /// The hypotheses.
    pub hypotheses: Vec<HypothesisVerdict>,
    /// Whether what the study expects of the family came out; none where it expects nothing.
    pub expectation_met: Option<bool>,
    /// The author's words.
    pub discloses: Option<String>,
}

pub(crate) fn outcome_name(outcome: BlockOutcome) -> &'static str {
    match outcome {
        BlockOutcome::Win => "win",
        BlockOutcome::Tie => "tie",
        BlockOutcome::Loss => "loss",
        BlockOutcome::Missing => "missing",
    }
}

/// A measure in the study's words, `p95(e2e from intended) of chat`.
pub fn measure_text(measure: &Measure) -> String {
    let quantity = quantity_name(measure.quantity);
    let from = measure
        .from
        .map(|from| format!(" from {}", crate::metrics::Origin::from(from).name()))
        .unwrap_or_default();
    let within: Vec<String> = measure
        .within
        .iter()
        .map(|threshold| {
            let from = threshold
                .from
                .map(|from| format!(" from {}", crate::metrics::Origin::from(from).name()))
                .unwrap_or_default();
            let name = quantity_name(threshold.quantity);
            format!("{name}{from} <= {}s", threshold.at_most_s)
        })
        .collect();
    let phrase = match measure.stat {
        Some(stat) => format!("{}({quantity}{from})", stat_name(stat)),
        None if within.is_empty() => format!("{quantity}{from}"),
        None => format!("{quantity}({})", within.join(", ")),
    };
    match &measure.class {
        Some(class) => format!("{phrase} of {class}"),
        None => phrase,
    }
}

fn stat_name(stat: Stat) -> &'static str {
    match stat {
        Stat::P50 => "p50",
        Stat::P95 => "p95",
        Stat::P99 => "p99",
        Stat::Mean => "mean",
        Stat::Max => "max",
    }
}

fn quantity_name(quantity: Quantity) -> &'static str {
    match quantity {
        Quantity::Throughput => "throughput",
        Quantity::OutputThroughput => "output_throughput",
        Quantity::Goodput => "goodput",
        Quantity::Attainment => "attainment",
        Quantity::Offered => "offered",
        Quantity::Valid => "valid",
        Quantity::Failed => "failed",
        Quantity::Missing => "missing",
        Quantity::TokensPerEvent => "tokens_per_event",
        Quantity::Ttft => "ttft",
        Quantity::FirstOutput => "first_output",
        Quantity::E2e => "e2e",
        Quantity::Tpot => "tpot",
        Quantity::DispatchLag => "dispatch_lag",
        Quantity::AdmissionWait => "admission_wait",
        Quantity::Gap => "gap",
    }
}
