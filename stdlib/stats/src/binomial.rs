//! Exact tails of the binomial distribution.

use assize_units::Ratio;
use num_bigint::BigInt;
use num_traits::{One, Zero};

use crate::error::bounded;
use crate::{Probability, StatsError};

/// The most trials for which a tail is computed exactly.
pub const MAX_TRIALS: u32 = 10_000;

/// The greatest denominator, in bits, that is brought to lowest terms.
const MAX_REDUCED_BITS: u64 = 1 << 17;

/// P(X ≥ `at_least`) for X ~ Bin(`trials`, ½), exact; 1 for no trials and `at_least` 0.
pub fn upper_tail(trials: u32, at_least: u32) -> Result<Probability, StatsError> {
    upper_tail_of(trials, at_least, half())
}

/// P(X ≥ `at_least`) for X ~ Bin(`trials`, `success`), exact.
pub fn upper_tail_of(
    trials: u32,
    at_least: u32,
    success: Ratio,
) -> Result<Probability, StatsError> {
    within(trials, at_least, trials, success)
}

/// P(X ≤ `at_most`) for X ~ Bin(`trials`, `success`), exact.
pub fn lower_tail_of(trials: u32, at_most: u32, success: Ratio) -> Result<Probability, StatsError> {
    within(trials, 0, at_most.min(trials), success)
}

/// P(`from` ≤ X ≤ `to`) for X ~ Bin(`trials`, ½), exact.
pub fn between(trials: u32, from: u32, to: u32) -> Result<Probability, StatsError> {
    within(trials, from, to.min(trials), half())
}

fn within(trials: u32, from: u32, to: u32, success: Ratio) -> Result<Probability, StatsError> {
    bounded("trials", trials.into(), MAX_TRIALS.into())?;
    let (part, total) = unreduced_within(trials, from, to, success, MAX_REDUCED_BITS)?;
    Ok(Probability::new(part, total).expect("a sum of some of the terms is at most the whole"))
}

/// Sums the terms C(n, k)·a^k·b^(n−k) of `from..=to`, where `success` = a/d and b = d − a; beside
/// them d^n, which is their whole. `max_bits` bounds the size of the latter.
pub(crate) fn unreduced_within(
    trials: u32,
    from: u32,
    to: u32,
    success: Ratio,
    max_bits: u64,
) -> Result<(BigInt, BigInt), StatsError> {
    if success.is_negative() || success > Ratio::ONE {
        return Err(StatsError::NotAProbability {
            what: "the chance of success",
        });
    }
    let denominator = BigInt::from(success.den());
    let bits = u64::from(trials).saturating_mul(denominator.bits());
    bounded("bits of an exact tail", bits, max_bits)?;
    let total = denominator.pow(trials);
    if from > to {
        return Ok((BigInt::zero(), total));
    }
    let hit = BigInt::from(success.num());
    let miss = denominator - &hit;
    let mut coefficient = choose(trials, from);
    let mut sum = BigInt::zero();
    // Horner's scheme over the powers of `miss`: after the last step term k carries
    // hit^(k − from) · miss^(to − k); the common rest is multiplied in below.
    let mut hits = BigInt::one();
    for k in from..=to {
        sum = sum * &miss + &coefficient * &hits;
        hits *= &hit;
        coefficient = coefficient * (trials - k) / (k + 1);
    }
    Ok((sum * hit.pow(from) * miss.pow(trials - to), total))
}

/// The binomial coefficient C(n, k).
fn choose(n: u32, k: u32) -> BigInt {
    let mut value = BigInt::one();
    for step in 0..k.min(n - k) {
        value = value * (n - step) / (step + 1);
    }
    value
}

fn half() -> Ratio {
    Ratio::new(1, 2).expect("2 is not zero")
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_tails_of_ten_blocks() {
        assert_eq!(upper_tail(10, 10).unwrap().fraction(), "1/1024");
        assert_eq!(upper_tail(10, 9).unwrap().fraction(), "11/1024");
        assert_eq!(upper_tail(10, 0).unwrap(), Probability::one());
        assert_eq!(upper_tail(10, 11).unwrap(), Probability::zero());
        assert_eq!(upper_tail(0, 0).unwrap(), Probability::one());
    }

    #[test]
    fn certain_outcomes() {
        assert_eq!(upper_tail_of(5, 5, Ratio::ONE).unwrap(), Probability::one());
        assert_eq!(
            lower_tail_of(5, 0, Ratio::ZERO).unwrap(),
            Probability::one()
        );
    }

    #[test]
    fn too_many_trials_and_false_chances_are_refused() {
        assert!(matches!(
            upper_tail(MAX_TRIALS + 1, 1),
            Err(StatsError::TooMany { .. })
        ));
        assert!(matches!(
            upper_tail_of(3, 1, Ratio::whole(2)),
            Err(StatsError::NotAProbability { .. })
        ));
    }

    proptest! {
        #[test]
        fn the_two_tails_make_one(n in 0u32..60, k in 0u32..60, a in 0i128..=20) {
            let chance = Ratio::new(a, 20).unwrap();
            let upper = upper_tail_of(n, k + 1, chance).unwrap();
            let lower = lower_tail_of(n, k, chance).unwrap();
            prop_assert_eq!(upper.complement(), lower);
        }

        #[test]
        fn the_tails_mirror(n in 0u32..60, k in 0u32..60, a in 0i128..=20) {
            prop_assume!(k <= n);
            let (chance, other) = (Ratio::new(a, 20).unwrap(), Ratio::new(20 - a, 20).unwrap());
            prop_assert_eq!(
                upper_tail_of(n, k, chance).unwrap(),
                lower_tail_of(n, n - k, other).unwrap()
            );
        }

        #[test]
        fn a_greater_chance_has_a_greater_tail(n in 1u32..40, k in 0u32..40, a in 0i128..20) {
            let (low, high) = (Ratio::new(a, 20).unwrap(), Ratio::new(a + 1, 20).unwrap());
            prop_assert!(
                upper_tail_of(n, k, low).unwrap() <= upper_tail_of(n, k, high).unwrap()
            );
        }
    }
}
