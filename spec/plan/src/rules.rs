//! What a plan decides by: families, hypotheses, validity, and the measures they speak of.

use assize_units::Ratio;
use serde::{Deserialize, Serialize};

/// A family of hypotheses that are corrected together.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Family {
    /// The study's name for it.
    pub name: String,
    /// The test of each hypothesis.
    pub test: Test,
    /// The correction over the family.
    pub correct: Correction,
    /// The interval shown beside each effect.
    pub interval: Interval,
    /// Conditions of which one breach blocks every hypothesis of the family.
    pub valid: Vec<Condition>,
    /// The hypotheses.
    pub hypotheses: Vec<Hypothesis>,
    /// What must come out, for studies of the rig itself.
    pub expect: Option<Expect>,
    /// The author's words about this family, verbatim.
    pub discloses: Option<String>,
}

/// A test over matched blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Test {
    /// The exact one-sided sign test.
    Sign {
        /// What a tie counts as.
        ties: Ties,
    },
}

/// What a tie counts as in a sign test.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Ties {
    /// A block that was not won.
    Nonwins,
    /// No block at all.
    Dropped,
}

/// A correction over a family.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Correction {
    /// Holm's step-down procedure at this level.
    Holm {
        /// The family's level.
        alpha: Ratio,
    },
    /// No correction: each test at this level.
    None {
        /// The level of each test.
        alpha: Ratio,
    },
}

/// An interval of the median effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Interval {
    /// The narrowest symmetric order statistics that cover at least so much.
    MedianOrderStatistic {
        /// The least coverage.
        at_least: Ratio,
    },
}

/// What must come out of a family.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Expect {
    /// No hypothesis may be supported (an A/A study).
    NoneSupported,
    /// Every hypothesis must be supported.
    AllSupported,
}

/// One hypothesis over one cell.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Hypothesis {
    /// The sentence as written.
    pub text: String,
    /// The arm on the left.
    pub candidate: String,
    /// The arm on the right; none for `holds`.
    pub control: Option<String>,
    /// What is measured.
    pub measure: Measure,
    /// The cell, as the study names it.
    pub cell: String,
    /// When a block is a win.
    pub judgement: Judgement,
}

/// When a block is a win, and what the median must reach besides.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Judgement {
    /// A win is an improvement above zero; the median must reach `median_gain`, apart from the test.
    Beats {
        /// The screen of the median; none where the sentence gives none.
        median_gain: Option<Ratio>,
    },
    /// A win is an improvement above the margin.
    BeatsBy {
        /// The margin.
        margin: Ratio,
    },
    /// A win is an improvement above −margin; the median must be so too.
    Keeps {
        /// The margin.
        within: Ratio,
    },
    /// A win is a block in which the comparison is true.
    Holds {
        /// The comparison.
        op: CompareOp,
        /// The value on the right, in the measure's own unit (seconds, events a second, a share).
        value: Ratio,
    },
}

/// A condition of validity, as written and as compiled.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Condition {
    /// As written.
    pub text: String,
    /// The one cell that it speaks of; every timed cell where there is none.
    pub cell: Option<String>,
    /// As compiled; it yields true or false in each arm, block and cell.
    pub node: Node,
}

/// A compiled expression over the figures of one arm in one block and cell.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Node {
    /// An exact constant in base units (seconds, events a second, bytes, a share, a count).
    Value(Ratio),
    /// A figure of the cell.
    Measure(Measure),
    /// The sum.
    Add(Box<Node>, Box<Node>),
    /// The difference.
    Sub(Box<Node>, Box<Node>),
    /// The product.
    Mul(Box<Node>, Box<Node>),
    /// The quotient.
    Div(Box<Node>, Box<Node>),
    /// The lesser.
    Min(Box<Node>, Box<Node>),
    /// The greater.
    Max(Box<Node>, Box<Node>),
    /// A comparison.
    Compare(CompareOp, Box<Node>, Box<Node>),
    /// Both.
    And(Box<Node>, Box<Node>),
    /// Either.
    Or(Box<Node>, Box<Node>),
}

/// A comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum CompareOp {
    /// Less.
    #[serde(rename = "<")]
    Lt,
    /// Less or equal.
    #[serde(rename = "<=")]
    Le,
    /// Equal.
    #[serde(rename = "==")]
    Eq,
    /// Not equal.
    #[serde(rename = "!=")]
    Ne,
    /// Greater or equal.
    #[serde(rename = ">=")]
    Ge,
    /// Greater.
    #[serde(rename = ">")]
    Gt,
}

impl CompareOp {
    /// Whether the comparison is true of two exact values.
    pub fn holds(self, left: Ratio, right: Ratio) -> bool {
        match self {
            CompareOp::Lt => left < right,
            CompareOp::Le => left <= right,
            CompareOp::Eq => left == right,
            CompareOp::Ne => left != right,
            CompareOp::Ge => left >= right,
            CompareOp::Gt => left > right,
        }
    }

    /// As written.
    pub fn symbol(self) -> &'static str {
        match self {
            CompareOp::Lt => "<",
            CompareOp::Le => "<=",
            CompareOp::Eq => "==",
            CompareOp::Ne => "!=",
            CompareOp::Ge => ">=",
            CompareOp::Gt => ">",
        }
    }
}

/// A figure of one arm in one block and cell. Definitions: `docs/metrics.md`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Measure {
    /// What is measured.
    pub quantity: Quantity,
    /// The statistic, for a quantity that each request or event has.
    pub stat: Option<Stat>,
    /// Where a latency begins.
    pub from: Option<Origin>,
    /// The request class that is kept; all where there is none.
    pub class: Option<String>,
    /// The thresholds of `goodput` and `attainment`.
    pub within: Vec<Threshold>,
}

/// What is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Quantity {
    /// Valid completed requests a second of the observation interval.
    Throughput,
    /// Their output tokens a second.
    OutputThroughput,
    /// Valid requests within every threshold, a second.
    Goodput,
    /// Their share of the offered requests.
    Attainment,
    /// Requests of the plan.
    Offered,
    /// Requests with the outcome `valid`.
    Valid,
    /// Requests with another outcome.
    Failed,
    /// Requests without a terminal record, or valid ones without a time that a hypothesis needs.
    Missing,
    /// Output tokens for each token-bearing event.
    TokensPerEvent,
    /// Time to the first token-bearing event.
    Ttft,
    /// Time to the first event with visible output.
    FirstOutput,
    /// Time to `[DONE]`.
    E2e,
    /// Time for each output token after the first.
    Tpot,
    /// Dispatched minus intended.
    DispatchLag,
    /// Admitted minus dispatched.
    AdmissionWait,
    /// Time between consecutive token-bearing events.
    Gap,
}

impl Quantity {
    /// Whether more is better, less is better, or neither.
    pub fn higher_is_better(self) -> Option<bool> {
        match self {
            Quantity::Throughput
            | Quantity::OutputThroughput
            | Quantity::Goodput
            | Quantity::Attainment => Some(true),
            Quantity::Ttft
            | Quantity::FirstOutput
            | Quantity::E2e
            | Quantity::Tpot
            | Quantity::DispatchLag
            | Quantity::AdmissionWait
            | Quantity::Gap => Some(false),
            Quantity::Offered
            | Quantity::Valid
            | Quantity::Failed
            | Quantity::Missing
            | Quantity::TokensPerEvent => None,
        }
    }

    /// Whether each request or event has one, so that a statistic is due.
    pub fn needs_stat(self) -> bool {
        matches!(
            self,
            Quantity::Ttft
                | Quantity::FirstOutput
                | Quantity::E2e
                | Quantity::Tpot
                | Quantity::DispatchLag
                | Quantity::AdmissionWait
                | Quantity::Gap
        )
    }

    /// Whether it is a latency that must say where it begins.
    pub fn needs_origin(self) -> bool {
        matches!(self, Quantity::Ttft | Quantity::FirstOutput | Quantity::E2e)
    }
}

/// A statistic over requests or events; percentiles are nearest-rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stat {
    /// The 50th percentile.
    P50,
    /// The 95th percentile.
    P95,
    /// The 99th percentile.
    P99,
    /// The arithmetic mean, exact.
    Mean,
    /// The largest.
    Max,
}

/// Where a latency begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Origin {
    /// The planned instant.
    Intended,
    /// Admission, before any connection is made.
    Started,
    /// The kernel accepted the last byte.
    Sent,
}

/// A threshold on one request's time; inclusive.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Threshold {
    /// `ttft`, `first_output`, `e2e` or `tpot`.
    pub quantity: Quantity,
    /// Where it begins (none for `tpot`).
    pub from: Option<Origin>,
    /// The bound in seconds, exact and above zero.
    pub at_most_s: Ratio,
}

/// The unit of a named value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ValueUnit {
    /// A bare number or count.
    #[serde(rename = "1")]
    One,
    /// A share, written as a fraction.
    #[serde(rename = "share")]
    Share,
    /// Seconds.
    #[serde(rename = "s")]
    Second,
    /// Events a second.
    #[serde(rename = "1/s")]
    PerSecond,
    /// Bytes.
    #[serde(rename = "B")]
    Byte,
    /// Tokens.
    #[serde(rename = "tokens")]
    Token,
}
