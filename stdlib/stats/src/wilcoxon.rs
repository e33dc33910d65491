//! Wilcoxon's signed-rank test, one-sided and exact.
//!
//! Zeros are dropped and counted. The others are ranked by size, equal sizes at their mean rank;
//! W⁺ is the rank sum of the positive ones. p = P(W⁺ ≥ observed) over all 2ⁿ signs of these very
//! ranks, so it is exact with tied ranks too.

use assize_units::Ratio;
use num_bigint::{BigInt, BigUint};
use num_traits::{One, Zero};

use crate::error::bounded;
use crate::{Probability, StatsError};

/// The most effects.
pub const MAX_EFFECTS: usize = 200;

/// A signed-rank test.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SignedRank {
    /// The rank sum of the positive effects.
    pub w_plus: Ratio,
    /// The effects that are ranked: all but the zeros.
    pub trials: usize,
    /// The effects that are zero.
    pub zeros: usize,
    /// Whether some sizes are equal, so that their ranks are means.
    pub tied: bool,
    /// The exact one-sided p; 1 where there are no trials.
    pub p: Probability,
}

/// Tests whether effects lie above zero. For a margin, subtract it from each first.
pub fn signed_rank(effects: &[Ratio]) -> Result<SignedRank, StatsError> {
    bounded("effects", effects.len() as u64, MAX_EFFECTS as u64)?;
    let mut by_size: Vec<(Ratio, bool)> = effects
        .iter()
        .filter(|effect| !effect.is_zero())
        .map(|&effect| (size(effect), effect.is_positive()))
        .collect();
    by_size.sort_unstable();
    let ranks = doubled_ranks(&by_size);
    let positive = by_size.iter().zip(&ranks).filter(|((_, up), _)| *up);
    let doubled: usize = positive.map(|(_, rank)| rank).sum();
    Ok(SignedRank {
        w_plus: Ratio::new(doubled as i128, 2)?,
        trials: ranks.len(),
        zeros: effects.len() - ranks.len(),
        tied: by_size.windows(2).any(|pair| pair[0].0 == pair[1].0),
        p: tail(&ranks, doubled),
    })
}

/// Twice the mean rank of each size, so that it is whole.
fn doubled_ranks(by_size: &[(Ratio, bool)]) -> Vec<usize> {
    let mut ranks = Vec::with_capacity(by_size.len());
    for group in by_size.chunk_by(|a, b| a.0 == b.0) {
        let before = ranks.len();
        ranks.resize(before + group.len(), 2 * before + group.len() + 1);
    }
    ranks
}

/// The share of all sign patterns whose positive rank sum is at least `observed`.
fn tail(ranks: &[usize], observed: usize) -> Probability {
    let total: usize = ranks.iter().sum();
    let mut patterns = vec![BigUint::zero(); total + 1];
    patterns[0] = BigUint::one();
    let mut reached = 0;
    for &rank in ranks {
        reached += rank;
        for sum in (rank..=reached).rev() {
            let (lower, upper) = patterns.split_at_mut(sum);
            upper[0] += &lower[sum - rank];
        }
    }
    let at_least: BigUint = patterns[observed..].iter().sum();
    Probability::new(BigInt::from(at_least), BigInt::one() << ranks.len())
        .expect("a part of all patterns")
}

fn size(effect: Ratio) -> Ratio {
    if effect.is_negative() {
        effect.neg()
    } else {
        effect
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn effects(of: &[i128]) -> Vec<Ratio> {
        of.iter().copied().map(Ratio::whole).collect()
    }

    /// Darwin's maize, as in the documentation of scipy.stats.wilcoxon: statistic 96,
    /// p = 0.020629882812 for the alternative "greater".
    #[test]
    fn darwins_maize() {
        let of = [6, 8, 14, 16, 23, 24, 28, 29, 41, -48, 49, 56, 60, -67, 75];
        let test = signed_rank(&effects(&of)).unwrap();
        assert_eq!(test.w_plus, Ratio::whole(96));
        assert_eq!(test.p.to_string(), "0.0206298828125");
        assert!(!test.tied);
    }

    #[test]
    fn zeros_are_dropped_and_ties_told() {
        let test = signed_rank(&effects(&[0, 2, 2, -1])).unwrap();
        assert_eq!((test.trials, test.zeros, test.tied), (3, 1, true));
        assert_eq!(test.w_plus, Ratio::whole(5));
        assert_eq!(test.p.fraction(), "1/4");
        assert_eq!(signed_rank(&[]).unwrap().p, Probability::one());
        assert!(signed_rank(&vec![Ratio::ONE; MAX_EFFECTS + 1]).is_err());
    }

    #[test]
    fn the_greatest_count_is_computed() {
        let of: Vec<i128> = (1..=MAX_EFFECTS as i128).collect();
        let test = signed_rank(&effects(&of)).unwrap();
        assert_eq!(
            test.p,
            Probability::new(1, BigInt::one() << MAX_EFFECTS).unwrap()
        );
    }

    proptest! {
        #[test]
        fn p_is_that_of_every_sign_pattern(of in prop::collection::vec(-6i128..=6, 0..11)) {
            let test = signed_rank(&effects(&of)).unwrap();
            let sizes: Vec<i128> = of.iter().filter(|v| **v != 0).map(|v| v.abs()).collect();
            let at_least = (0u32..1 << sizes.len())
                .filter(|pattern| {
                    let signed: Vec<i128> = sizes
                        .iter()
                        .enumerate()
                        .map(|(bit, size)| if pattern >> bit & 1 == 1 { *size } else { -size })
                        .collect();
                    signed_rank(&effects(&signed)).unwrap().w_plus >= test.w_plus
                })
                .count();
            prop_assert_eq!(
                test.p,
                Probability::new(at_least as u64, 1u64 << sizes.len()).unwrap()
            );
        }
    }
}
