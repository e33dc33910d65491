//! The exact sign-flip permutation test of a mean effect, one-sided.
//!
//! p is the share of all 2ⁿ sign patterns of the effects whose sum is at least the observed one:
//! a pattern is that where the sum of the flipped effects is at most zero. Integers throughout.

use assize_units::Ratio;
use num_bigint::BigInt;
use num_integer::Integer;
use num_traits::{One, Zero};

use crate::error::bounded;
use crate::{Probability, StatsError};

/// The most effects: two halves of 2¹⁶ sums.
pub const MAX_EFFECTS: usize = 32;

/// The exact one-sided p that the mean effect is above zero; 1 for no effects. For a margin,
/// subtract it from each first.
pub fn sign_flip(effects: &[Ratio]) -> Result<Probability, StatsError> {
    bounded("effects", effects.len() as u64, MAX_EFFECTS as u64)?;
    let whole = on_one_denominator(effects);
    let (left, right) = whole.split_at(whole.len() / 2);
    let left = subset_sums(left);
    let right = subset_sums(right);
    // As the sums of the left half grow, those of the right that keep the total at or below zero
    // become fewer: one pass over both sorted lists.
    let mut fitting = right.len();
    let mut patterns = 0u64;
    for sum in &left {
        while fitting > 0 && (sum + &right[fitting - 1]) > BigInt::zero() {
            fitting -= 1;
        }
        patterns += fitting as u64;
    }
    Ok(Probability::new(patterns, 1u64 << effects.len()).expect("a part of all patterns"))
}

/// The effects times their least common denominator.
fn on_one_denominator(effects: &[Ratio]) -> Vec<BigInt> {
    let common = effects
        .iter()
        .map(|effect| BigInt::from(effect.den()))
        .fold(BigInt::one(), |common, den| common.lcm(&den));
    effects
        .iter()
        .map(|effect| &common / effect.den() * effect.num())
        .collect()
}

/// The sums of all subsets, in ascending order.
fn subset_sums(values: &[BigInt]) -> Vec<BigInt> {
    let mut sums = vec![BigInt::zero()];
    for value in values {
        let with: Vec<BigInt> = sums.iter().map(|sum| sum + value).collect();
        sums.extend(with);
    }
    sums.sort_unstable();
    sums
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn all_positive_is_the_smallest_p() {
        let effects = vec![Ratio::new(1, 3).unwrap(); 10];
        assert_eq!(sign_flip(&effects).unwrap().fraction(), "1/1024");
        assert_eq!(sign_flip(&[]).unwrap(), Probability::one());
        assert!(sign_flip(&[Ratio::ONE; MAX_EFFECTS + 1]).is_err());
    }

    #[test]
    fn the_greatest_count_is_computed() {
        let effects: Vec<Ratio> = (1..=MAX_EFFECTS as i128)
            .map(|den| Ratio::new(1, den).unwrap())
            .collect();
        assert_eq!(
            sign_flip(&effects).unwrap(),
            Probability::new(1, 1u64 << MAX_EFFECTS).unwrap()
        );
    }

    proptest! {
        #[test]
        fn p_is_that_of_every_sign_pattern(of in prop::collection::vec((-9i128..=9, 1i128..5), 0..11)) {
            let effects: Vec<Ratio> = of.iter().map(|&(a, b)| Ratio::new(a, b).unwrap()).collect();
            let sixtieths: Vec<i128> = of.iter().map(|&(a, b)| a * 60 / b).collect();
            let observed: i128 = sixtieths.iter().sum();
            let at_least = (0u32..1 << of.len())
                .filter(|pattern| {
                    let signed = |(bit, v): (usize, &i128)| if pattern >> bit & 1 == 1 { -v } else { *v };
                    sixtieths.iter().enumerate().map(signed).sum::<i128>() >= observed
                })
                .count();
            prop_assert_eq!(
                sign_flip(&effects).unwrap(),
                Probability::new(at_least as u64, 1u64 << of.len()).unwrap()
            );
        }
    }
}
