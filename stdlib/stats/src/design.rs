//! What a sign test can show, before anything runs.
//!
//! The level is that of the family: Holm's correction over `hypotheses` tests. In its best case
//! every other test of the family has the smallest p that the blocks allow and is rejected first;
//! then this one is held to the whole level. Alone, it is held to level / hypotheses.

use assize_units::Ratio;
use num_bigint::BigInt;
use num_traits::One;
use statrs::function::erf::erfc;

use crate::binomial::{MAX_TRIALS, upper_tail, upper_tail_of};
use crate::error::{at_least, bounded};
use crate::float_tail::{self, Chance};
use crate::{Probability, StatsError};

/// A family of sign tests, as declared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Design {
    /// Matched blocks: the replicates of every test.
    pub blocks: u32,
    /// Tests in the family, at least 1.
    pub hypotheses: u32,
    /// The family's level, above 0 and below 1.
    pub alpha: Ratio,
}

/// The wins that reject one hypothesis of a family.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WinsNeeded {
    /// Where every other hypothesis is rejected first: p ≤ α.
    pub best_case: u32,
    /// Where no other one is: p ≤ α / hypotheses.
    pub alone: u32,
}

impl Design {
    /// The smallest p that the blocks allow, all of them won: 2^−blocks. 7 blocks reach 0.0078125.
    pub fn smallest_p(&self) -> Result<Probability, StatsError> {
        upper_tail(self.blocks, self.blocks)
    }

    /// Whether any result at all is rejected: hypotheses · 2^−blocks ≤ α.
    pub fn can_reject(&self) -> Result<bool, StatsError> {
        self.checked()?;
        let smallest = self.smallest_p()?.times_capped(self.hypotheses.into());
        Ok(smallest.at_most(self.alpha))
    }

    /// The smallest number of blocks with which such a family can reject at all; `None` where even
    /// 10,000 blocks cannot.
    pub fn fewest_blocks(&self) -> Result<Option<u32>, StatsError> {
        self.checked()?;
        // The least n with hypotheses · den ≤ num · 2^n.
        let wanted = BigInt::from(self.hypotheses) * BigInt::from(self.alpha.den());
        let mut reached = BigInt::from(self.alpha.num());
        for blocks in 0..=MAX_TRIALS {
            if reached >= wanted {
                return Ok(Some(blocks));
            }
            reached <<= 1;
        }
        Ok(None)
    }

    /// The wins that are needed; `None` where the family [cannot reject](Design::can_reject).
    pub fn wins_needed(&self) -> Result<Option<WinsNeeded>, StatsError> {
        if !self.can_reject()? {
            return Ok(None);
        }
        let alone = self.fewest_wins(self.hypotheses)?;
        let best_case = self.fewest_wins(1)?;
        Ok(best_case
            .zip(alone)
            .map(|(best_case, alone)| WinsNeeded { best_case, alone }))
    }

    /// The chance that one true null hypothesis is rejected in the best case of the correction:
    /// P(X ≥ wins needed) at a win chance of ½, exact; at most that where ties occur.
    pub fn false_positive_rate(&self) -> Result<Probability, StatsError> {
        match self.wins_needed()? {
            Some(wins) => upper_tail(self.blocks, wins.best_case),
            None => Ok(Probability::zero()),
        }
    }

    /// A bound on the chance that any hypothesis is rejected where all nulls are true, however the
    /// tests depend on one another: hypotheses · P(X ≥ wins needed alone), exact and at most 1.
    pub fn family_false_positive_bound(&self) -> Result<Probability, StatsError> {
        match self.wins_needed()? {
            Some(wins) => {
                Ok(upper_tail(self.blocks, wins.alone)?.times_capped(self.hypotheses.into()))
            }
            None => Ok(Probability::zero()),
        }
    }

    /// The chance of `wins` or more where each block is won with the chance `win`, exact.
    pub fn power(&self, wins: u32, win: Ratio) -> Result<Probability, StatsError> {
        upper_tail_of(self.blocks, wins, win)
    }

    /// The power for an effect under the normal model of [`win_chance`]: an approximation. The
    /// sign test alone; the median screen is no part of it.
    pub fn power_for_effect(&self, wins: u32, model: EffectModel) -> Result<f64, StatsError> {
        bounded("blocks", self.blocks.into(), MAX_TRIALS.into())?;
        let chance = win_chance(model)?;
        if wins > self.blocks {
            return Ok(0.0);
        }
        Ok(float_tail::upper_tail(
            self.blocks.into(),
            wins.into(),
            Chance::of(chance),
        ))
    }

    /// The fewest wins whose tail, times `factor`, is at most the level.
    fn fewest_wins(&self, factor: u32) -> Result<Option<u32>, StatsError> {
        // Terms are added from the top: C(n, n), C(n, n − 1), … over 2^n.
        let limit = (BigInt::from(self.alpha.num()) << self.blocks) / self.alpha.den();
        let mut coefficient = BigInt::one();
        let mut sum = BigInt::one();
        let mut fewest = None;
        for wins in (0..=self.blocks).rev() {
            if &sum * factor > limit {
                break;
            }
            fewest = Some(wins);
            coefficient = coefficient * wins / (self.blocks - wins + 1);
            sum += &coefficient;
        }
        Ok(fewest)
    }

    fn checked(&self) -> Result<(), StatsError> {
        bounded("blocks", self.blocks.into(), MAX_TRIALS.into())?;
        at_least("hypotheses", self.hypotheses.into(), 1)?;
        if !self.alpha.is_positive() || self.alpha >= Ratio::ONE {
            return Err(StatsError::NotBetweenZeroAndOne { what: "alpha" });
        }
        Ok(())
    }
}

/// Effects of blocks as independent normal draws.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct EffectModel {
    /// The true effect: the mean and median of the blocks' effects (0.05 is 5%).
    pub effect: f64,
    /// What a block's effect must exceed to win: 0 for `beats`, the margin for `beats by`, minus
    /// the margin for `keeps within`.
    pub threshold: f64,
    /// The standard deviation of the effect between blocks, above 0.
    pub spread: f64,
}

/// The chance that one block is won under the normal model: Φ((effect − threshold) / spread).
pub fn win_chance(model: EffectModel) -> Result<f64, StatsError> {
    if !model.spread.is_finite() || model.spread <= 0.0 {
        return Err(StatsError::NotPositive { what: "the spread" });
    }
    let distance = (model.effect - model.threshold) / model.spread;
    if !distance.is_finite() {
        return Err(StatsError::NotFinite { what: "the effect" });
    }
    Ok(erfc(-distance / std::f64::consts::SQRT_2) / 2.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::holm::holm;
    use proptest::prelude::*;

    fn design(blocks: u32, hypotheses: u32) -> Design {
        Design {
            blocks,
            hypotheses,
            alpha: Ratio::new(1, 20).unwrap(),
        }
    }

    #[test]
    fn seven_blocks_are_the_fewest_for_four_hypotheses_at_five_percent() {
        assert_eq!(design(7, 4).smallest_p().unwrap().to_string(), "0.0078125");
        assert!(design(7, 4).can_reject().unwrap());
        assert!(!design(6, 4).can_reject().unwrap());
        assert_eq!(design(3, 4).fewest_blocks().unwrap(), Some(7));
        assert_eq!(design(6, 4).wins_needed().unwrap(), None);
    }

    #[test]
    fn ten_blocks_need_nine_wins() {
        let wins = design(10, 4).wins_needed().unwrap().unwrap();
        assert_eq!((wins.best_case, wins.alone), (9, 9));
        assert_eq!(
            design(10, 4).false_positive_rate().unwrap().fraction(),
            "11/1024"
        );
        assert_eq!(
            design(10, 4)
                .family_false_positive_bound()
                .unwrap()
                .fraction(),
            "11/256"
        );
    }

    #[test]
    fn power_at_a_win_chance_of_nine_tenths() {
        // 0.9^10 + 10 · 0.9^9 · 0.1, by hand.
        let power = design(10, 4).power(9, Ratio::new(9, 10).unwrap()).unwrap();
        assert_eq!(power.to_string(), "0.7360989291");
    }

    #[test]
    fn a_design_without_sense_is_refused() {
        assert!(design(10, 0).can_reject().is_err());
        assert!(design(MAX_TRIALS + 1, 1).can_reject().is_err());
        let alpha = Ratio::ONE;
        assert!(
            Design {
                alpha,
                ..design(10, 1)
            }
            .wins_needed()
            .is_err()
        );
        let model = EffectModel {
            effect: 0.05,
            threshold: 0.0,
            spread: 0.0,
        };
        assert!(win_chance(model).is_err());
        let effect = f64::NAN;
        assert!(
            win_chance(EffectModel {
                effect,
                spread: 1.0,
                ..model
            })
            .is_err()
        );
    }

    #[test]
    fn the_normal_model_agrees_with_tables() {
        let chance = |effect| {
            win_chance(EffectModel {
                effect,
                threshold: 0.0,
                spread: 1.0,
            })
            .unwrap()
        };
        // Φ(1.6448536269514722) = 0.95, Φ(0) = ½.
        assert!((chance(1.644_853_626_951_472_2) - 0.95).abs() < 1e-9);
        assert!((chance(0.0) - 0.5).abs() < 1e-15);
    }

    proptest! {
        #[test]
        fn the_wins_needed_are_what_holm_rejects(n in 1u32..16, m in 1u32..6, a in 1i128..40) {
            let alpha = Ratio::new(a, 100).unwrap();
            let design = Design { blocks: n, hypotheses: m, alpha };
            let smallest = design.smallest_p().unwrap();
            let rejected = |wins: u32, rest: Probability| {
                let mut family = vec![rest; m as usize];
                family[0] = upper_tail(n, wins).unwrap();
                holm(&family, alpha)[0].rejected
            };
            let first = |rest: &Probability| (0..=n).find(|&wins| rejected(wins, rest.clone()));
            let needed = design.wins_needed().unwrap();
            prop_assert_eq!(needed.map(|wins| wins.best_case), first(&smallest));
            prop_assert_eq!(needed.map(|wins| wins.alone), first(&Probability::one()));
            prop_assert!(design.false_positive_rate().unwrap().at_most(alpha));
            prop_assert!(design.family_false_positive_bound().unwrap().at_most(alpha));
        }

        #[test]
        fn the_fewest_blocks_reject_and_one_less_does_not(m in 1u32..50, a in 1i128..100) {
            let alpha = Ratio::new(a, 100).unwrap();
            let with = |blocks| Design { blocks, hypotheses: m, alpha };
            let fewest = with(1).fewest_blocks().unwrap().unwrap();
            prop_assert!(with(fewest).can_reject().unwrap());
            prop_assert!(fewest == 0 || !with(fewest - 1).can_reject().unwrap());
        }

        #[test]
        fn the_power_of_the_model_is_the_exact_one_at_its_chance(n in 1u32..30, w in 0u32..31, e in -30i32..30) {
            let model = EffectModel { effect: f64::from(e) / 10.0, threshold: 0.0, spread: 1.0 };
            let chance = win_chance(model).unwrap();
            let exact = Ratio::new((chance * 1e15) as i128, 10i128.pow(15)).unwrap();
            let power = design(n, 1).power_for_effect(w, model).unwrap();
            prop_assert!((power - upper_tail_of(n, w, exact).unwrap().as_f64()).abs() < 1e-9);
        }
    }
}
