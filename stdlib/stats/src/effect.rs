//! One effect a block, and what counts as a win.
//!
//! Positive means improvement, always. An effect is a ratio within one matched block, never of
//! pooled or median values.

use std::cmp::Ordering;

use assize_units::Ratio;

/// Which way a metric improves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Direction {
    /// More is better: a throughput.
    HigherIsBetter,
    /// Less is better: a latency.
    LowerIsBetter,
}

/// Why a block has no effect. Such a block is a nonwin and a breach of validity.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
#[non_exhaustive]
pub enum NoEffect {
    /// The candidate's figure is missing.
    #[error("the candidate has no figure")]
    CandidateMissing,
    /// The control's figure is missing.
    #[error("the control has no figure")]
    ControlMissing,
    /// The control's figure, the denominator, is not above zero.
    #[error("the control's figure is not above zero")]
    ControlNotPositive,
    /// The exact effect does not fit 128-bit integers.
    #[error("the exact effect does not fit 128-bit integers")]
    Overflow,
}

/// The effect of one matched block: `candidate/control − 1` where higher is better,
/// `1 − candidate/control` where lower is better; exact.
pub fn paired_effect(
    candidate: Option<Ratio>,
    control: Option<Ratio>,
    direction: Direction,
) -> Result<Ratio, NoEffect> {
    let candidate = candidate.ok_or(NoEffect::CandidateMissing)?;
    let control = control.ok_or(NoEffect::ControlMissing)?;
    if !control.is_positive() {
        return Err(NoEffect::ControlNotPositive);
    }
    let quotient = candidate.div(control).map_err(|_| NoEffect::Overflow)?;
    match direction {
        Direction::HigherIsBetter => quotient.sub(Ratio::ONE),
        Direction::LowerIsBetter => Ratio::ONE.sub(quotient),
    }
    .map_err(|_| NoEffect::Overflow)
}

/// The operator of a `holds` hypothesis.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Comparison {
    /// `<`
    Below,
    /// `<=`
    AtMost,
    /// `==`
    Equal,
    /// `!=`
    Unequal,
    /// `>=`
    AtLeast,
    /// `>`
    Above,
}

impl Comparison {
    /// Whether the comparison is true of two values in this order.
    pub fn is_met(self, order: Ordering) -> bool {
        match self {
            Comparison::Below => order.is_lt(),
            Comparison::AtMost => order.is_le(),
            Comparison::Equal => order.is_eq(),
            Comparison::Unequal => order.is_ne(),
            Comparison::AtLeast => order.is_ge(),
            Comparison::Above => order.is_gt(),
        }
    }
}

/// What makes a block a win, by the kind of hypothesis.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum WinRule {
    /// `A beats B`: effect > 0.
    Beats,
    /// `A beats B by m`: effect > m, superiority by a margin.
    BeatsBy(Ratio),
    /// `A keeps within m of B`: effect > −m.
    KeepsWithin(Ratio),
    /// `A holds M >= V`: the comparison is true of the block's value itself.
    Holds(Comparison, Ratio),
}

impl WinRule {
    /// The block's outcome. `figure` is the effect, or the value itself for [`WinRule::Holds`],
    /// which knows no tie; `None` is [`Outcome::Missing`].
    pub fn outcome(self, figure: Option<Ratio>) -> Outcome {
        let Some(figure) = figure else {
            return Outcome::Missing;
        };
        match self {
            WinRule::Holds(comparison, value) => {
                if comparison.is_met(figure.cmp(&value)) {
                    Outcome::Win
                } else {
                    Outcome::Loss
                }
            }
            _ => Outcome::from_order(figure.cmp(&self.threshold())),
        }
    }

    /// Whether the median passes. `gain_at_least` is the screen of `median gain at least P`,
    /// inclusive and apart from the test; [`WinRule::KeepsWithin`] asks of the median what it asks
    /// of a block; the other two ask nothing.
    pub fn median_passes(self, median: Ratio, gain_at_least: Option<Ratio>) -> bool {
        let screened = gain_at_least.is_none_or(|floor| median >= floor);
        match self {
            WinRule::KeepsWithin(_) => screened && median > self.threshold(),
            _ => screened,
        }
    }

    /// What the figure must exceed to win; for [`WinRule::Holds`], what it is compared with.
    pub fn threshold(self) -> Ratio {
        match self {
            WinRule::Beats => Ratio::ZERO,
            WinRule::BeatsBy(margin) => margin,
            WinRule::KeepsWithin(margin) => margin.neg(),
            WinRule::Holds(_, value) => value,
        }
    }
}

/// What one block says of one hypothesis.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Outcome {
    /// Over the threshold.
    Win,
    /// Exactly on it.
    Tie,
    /// Under it.
    Loss,
    /// The block has no figure: never a win, and never dropped.
    Missing,
}

impl Outcome {
    /// The outcome where only the order of the figure and its threshold is known, as of a censored
    /// value.
    pub fn from_order(order: Ordering) -> Outcome {
        match order {
            Ordering::Greater => Outcome::Win,
            Ordering::Equal => Outcome::Tie,
            Ordering::Less => Outcome::Loss,
        }
    }
}

/// How many blocks had which outcome.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Tally {
    /// Blocks over the threshold.
    pub wins: u32,
    /// Blocks exactly on it.
    pub ties: u32,
    /// Blocks under it.
    pub losses: u32,
    /// Blocks without a figure.
    pub missing: u32,
}

impl Tally {
    /// All blocks.
    pub fn blocks(&self) -> u64 {
        [self.wins, self.ties, self.losses, self.missing]
            .into_iter()
            .map(u64::from)
            .sum()
    }
}

impl FromIterator<Outcome> for Tally {
    fn from_iter<I: IntoIterator<Item = Outcome>>(outcomes: I) -> Tally {
        let mut tally = Tally::default();
        for outcome in outcomes {
            let count = match outcome {
                Outcome::Win => &mut tally.wins,
                Outcome::Tie => &mut tally.ties,
                Outcome::Loss => &mut tally.losses,
                Outcome::Missing => &mut tally.missing,
            };
            *count = count.saturating_add(1);
        }
        tally
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn decimal(text: &str) -> Ratio {
        Ratio::parse_decimal(text).expect("a decimal")
    }

    #[test]
    fn positive_means_improvement_in_both_directions() {
        let effect = |candidate, control, direction| {
            paired_effect(Some(decimal(candidate)), Some(decimal(control)), direction).unwrap()
        };
        assert_eq!(
            effect("15.645", "14.9", Direction::HigherIsBetter),
            decimal("0.05")
        );
        assert_eq!(
            effect("95", "100", Direction::LowerIsBetter),
            decimal("0.05")
        );
        assert_eq!(
            effect("105", "100", Direction::LowerIsBetter),
            decimal("0.05").neg()
        );
    }

    #[test]
    fn a_block_without_a_denominator_has_no_effect() {
        let higher = Direction::HigherIsBetter;
        let one = Some(Ratio::ONE);
        assert_eq!(
            paired_effect(one, Some(Ratio::ZERO), higher),
            Err(NoEffect::ControlNotPositive)
        );
        assert_eq!(
            paired_effect(one, None, higher),
            Err(NoEffect::ControlMissing)
        );
        assert_eq!(
            paired_effect(None, one, higher),
            Err(NoEffect::CandidateMissing)
        );
        assert_eq!(
            paired_effect(
                Some(Ratio::whole(i128::MAX)),
                Some(Ratio::new(1, 3).unwrap()),
                higher
            ),
            Err(NoEffect::Overflow)
        );
    }

    #[test]
    fn each_kind_of_hypothesis_has_its_win() {
        let margin = decimal("0.05");
        let outcome = |rule: WinRule, figure: Ratio| rule.outcome(Some(figure));
        assert_eq!(outcome(WinRule::Beats, decimal("0.0001")), Outcome::Win);
        assert_eq!(outcome(WinRule::Beats, Ratio::ZERO), Outcome::Tie);
        assert_eq!(outcome(WinRule::BeatsBy(margin), margin), Outcome::Tie);
        assert_eq!(
            outcome(WinRule::BeatsBy(margin), decimal("0.04")),
            Outcome::Loss
        );
        assert_eq!(
            outcome(WinRule::KeepsWithin(margin), decimal("0.04").neg()),
            Outcome::Win
        );
        assert_eq!(
            outcome(WinRule::KeepsWithin(margin), margin.neg()),
            Outcome::Tie
        );
        let holds = WinRule::Holds(Comparison::AtLeast, margin);
        assert_eq!(outcome(holds, margin), Outcome::Win);
        assert_eq!(outcome(holds, decimal("0.04")), Outcome::Loss);
        assert_eq!(holds.outcome(None), Outcome::Missing);
    }

    #[test]
    fn the_screen_is_inclusive_and_the_margin_is_not() {
        let percent = decimal("0.05");
        assert!(WinRule::Beats.median_passes(percent, Some(percent)));
        assert!(!WinRule::Beats.median_passes(decimal("0.0499"), Some(percent)));
        assert!(WinRule::Beats.median_passes(percent.neg(), None));
        assert!(!WinRule::KeepsWithin(percent).median_passes(percent.neg(), None));
        assert!(WinRule::KeepsWithin(percent).median_passes(decimal("0.0499").neg(), None));
    }

    proptest! {
        #[test]
        fn a_wider_margin_never_loses_a_win(e in -200i128..200, m in 0i128..200) {
            let effect = Some(Ratio::new(e, 1000).unwrap());
            let margin = Ratio::new(m, 1000).unwrap();
            let won = |rule: WinRule| rule.outcome(effect) == Outcome::Win;
            prop_assert!(!won(WinRule::BeatsBy(margin)) || won(WinRule::Beats));
            prop_assert!(!won(WinRule::Beats) || m == 0 || won(WinRule::KeepsWithin(margin)));
        }

        #[test]
        fn the_sign_is_that_of_the_difference(a in 1i128..10_000, b in 1i128..10_000) {
            let (a, b) = (Ratio::whole(a), Ratio::whole(b));
            let higher = paired_effect(Some(a), Some(b), Direction::HigherIsBetter).unwrap();
            let lower = paired_effect(Some(a), Some(b), Direction::LowerIsBetter).unwrap();
            prop_assert_eq!(higher.cmp(&Ratio::ZERO), a.cmp(&b));
            prop_assert_eq!(lower, higher.neg());
        }
    }
}
