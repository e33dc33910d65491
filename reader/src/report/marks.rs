//! Where a rule draws its lines: what a plot of a hypothesis shows beside its blocks.

use assize_plan::{Hypothesis, Judgement, Quantity, ValueUnit};
use assize_units::Ratio;
use serde::Serialize;

use super::Exact;

/// The lines of one hypothesis' rule, on the scale of its effects.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Marks {
    /// What the blocks' values are measured in; a share where they are effects.
    pub unit: ValueUnit,
    /// Whether the blocks' values are effects and not the candidate's own figures.
    pub is_effect: bool,
    /// Beyond it a block is won.
    pub win_at: Exact,
    /// What the median must reach, where the rule asks for it.
    pub median_at: Option<Exact>,
}

impl Marks {
    pub(super) fn of(hypothesis: &Hypothesis) -> Marks {
        let effect = |win_at, median_at: Option<Ratio>| Marks {
            unit: ValueUnit::Share,
            is_effect: true,
            win_at: Exact(win_at),
            median_at: median_at.map(Exact),
        };
        match hypothesis.judgement {
            Judgement::Beats { median_gain } => effect(Ratio::ZERO, median_gain),
            Judgement::BeatsBy { margin } => effect(margin, None),
            Judgement::Keeps { within } => effect(within.neg(), Some(within.neg())),
            Judgement::Holds { value, .. } => Marks {
                unit: unit_of(hypothesis.measure.quantity),
                is_effect: false,
                win_at: Exact(value),
                median_at: None,
            },
        }
    }
}

pub(super) fn unit_of(quantity: Quantity) -> ValueUnit {
    match quantity {
        Quantity::Throughput | Quantity::OutputThroughput | Quantity::Goodput => {
            ValueUnit::PerSecond
        }
        Quantity::Attainment => ValueUnit::Share,
        Quantity::Offered
        | Quantity::Valid
        | Quantity::Failed
        | Quantity::Missing
        | Quantity::TokensPerEvent => ValueUnit::One,
        Quantity::Ttft
        | Quantity::FirstOutput
        | Quantity::E2e
        | Quantity::Tpot
        | Quantity::DispatchLag
        | Quantity::AdmissionWait
        | Quantity::Gap => ValueUnit::Second,
    }
}
