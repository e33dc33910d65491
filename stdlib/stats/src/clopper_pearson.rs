//! Clopper–Pearson bounds of a proportion.
//!
//! The upper bound of k in n at confidence 1 − α is the chance p at which P(X ≤ k) = α,
//! X ~ Bin(n, p); the lower one that at which P(X ≥ k) = α. Both are found by bisection of that
//! tail itself, never of its complement, so that a small α keeps its digits. The ends are exact:
//! 0 in n has the lower bound 0, n in n the upper bound 1. Whether a bound meets a limit is
//! decided by [`upper_is_at_most`] and [`upper_is_below`] in integers, without the bound's rounding.

use std::cmp::Ordering;

use assize_units::Ratio;
use num_bigint::BigInt;

use crate::StatsError;
use crate::binomial::unreduced_within;
use crate::error::{at_least, bounded, part_of};
use crate::float_tail::{Chance, lower_tail, upper_tail};

/// The most items for which a bound is computed.
pub const MAX_ITEMS: u64 = 10_000_000;

/// The greatest d^n, in bits, of an exact decision.
const MAX_DECISION_BITS: u64 = 1 << 20;

/// The one-sided upper bound of `count` in `items`, relative tolerance 1e-9.
pub fn upper(count: u64, items: u64, confidence: Ratio) -> Result<f64, StatsError> {
    let alpha = alpha(confidence)?;
    checked(count, items)?;
    Ok(upper_at(count, items, alpha))
}

/// The one-sided lower bound of `count` in `items`, relative tolerance 1e-9.
pub fn lower(count: u64, items: u64, confidence: Ratio) -> Result<f64, StatsError> {
    let alpha = alpha(confidence)?;
    checked(count, items)?;
    Ok(lower_at(count, items, alpha))
}

/// The two-sided bounds of `count` in `items`: each one-sided at half of α.
pub fn two_sided(count: u64, items: u64, confidence: Ratio) -> Result<(f64, f64), StatsError> {
    let half = alpha(confidence)? / 2.0;
    checked(count, items)?;
    Ok((lower_at(count, items, half), upper_at(count, items, half)))
}

/// Whether the one-sided upper bound is at most `limit`, decided exactly: P(X ≤ count) ≤ α at
/// the chance `limit`.
pub fn upper_is_at_most(
    count: u32,
    items: u32,
    confidence: Ratio,
    limit: Ratio,
) -> Result<bool, StatsError> {
    Ok(upper_against(count, items, confidence, limit)?.is_le())
}

/// Whether the one-sided upper bound is below `limit`, decided exactly.
pub fn upper_is_below(
    count: u32,
    items: u32,
    confidence: Ratio,
    limit: Ratio,
) -> Result<bool, StatsError> {
    Ok(upper_against(count, items, confidence, limit)?.is_lt())
}

/// The exact order of the upper bound and `limit`.
fn upper_against(
    count: u32,
    items: u32,
    confidence: Ratio,
    limit: Ratio,
) -> Result<Ordering, StatsError> {
    let alpha = exact_alpha(confidence)?;
    checked(count.into(), items.into())?;
    if count == items {
        return Ok(Ratio::ONE.cmp(&limit));
    }
    if limit.is_negative() || limit > Ratio::ONE {
        return Ok(Ratio::ZERO.cmp(&limit));
    }
    let (part, total) = unreduced_within(items, 0, count, limit, MAX_DECISION_BITS)?;
    Ok((part * BigInt::from(alpha.den())).cmp(&(total * BigInt::from(alpha.num()))))
}

fn upper_at(count: u64, items: u64, alpha: f64) -> f64 {
    if count == items {
        return 1.0;
    }
    if count == 0 {
        return -(alpha.ln() / items as f64).exp_m1();
    }
    bisect(|p| lower_tail(items, count, Chance::of(p)) > alpha)
}

fn lower_at(count: u64, items: u64, alpha: f64) -> f64 {
    if count == 0 {
        return 0.0;
    }
    if count == items {
        return (alpha.ln() / items as f64).exp();
    }
    bisect(|p| upper_tail(items, count, Chance::of(p)) < alpha)
}

/// The chance at which `below` turns false, to the last bit.
fn bisect(below: impl Fn(f64) -> bool) -> f64 {
    let (mut low, mut high) = (0.0f64, 1.0f64);
    loop {
        let middle = low + (high - low) / 2.0;
        if middle <= low || middle >= high {
            return high;
        }
        if below(middle) {
            low = middle;
        } else {
            high = middle;
        }
    }
}

fn exact_alpha(confidence: Ratio) -> Result<Ratio, StatsError> {
    if !confidence.is_positive() || confidence >= Ratio::ONE {
        return Err(StatsError::NotBetweenZeroAndOne { what: "confidence" });
    }
    Ok(Ratio::ONE.sub(confidence)?)
}

fn alpha(confidence: Ratio) -> Result<f64, StatsError> {
    exact_alpha(confidence).map(Ratio::as_f64)
}

fn checked(count: u64, items: u64) -> Result<(), StatsError> {
    at_least("items", items, 1)?;
    bounded("items", items, MAX_ITEMS)?;
    part_of(count, items)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::binomial::lower_tail_of;
    use proptest::prelude::*;

    fn percent(value: i128) -> Ratio {
        Ratio::new(value, 100).unwrap()
    }

    #[test]
    fn the_ends_are_exact() {
        assert_eq!(lower(0, 7, percent(95)).unwrap().to_bits(), 0f64.to_bits());
        assert_eq!(upper(7, 7, percent(95)).unwrap().to_bits(), 1f64.to_bits());
        assert!(upper_is_at_most(7, 7, percent(95), Ratio::ONE).unwrap());
        assert!(!upper_is_below(7, 7, percent(95), Ratio::ONE).unwrap());
    }

    #[test]
    fn the_losses_of_the_published_study_are_under_two_percent_exactly() {
        for losses in [8, 11, 12] {
            assert!(upper_is_below(losses, 1319, percent(95), percent(2)).unwrap());
        }
        assert!(!upper_is_below(20, 1319, percent(95), percent(2)).unwrap());
    }

    #[test]
    fn a_bound_exactly_at_its_limit_is_told_apart() {
        // 0 in 1 at 95%: P(X <= 0) = 1 - p = 0.05 at p = 0.95.
        assert!(upper_is_at_most(0, 1, percent(95), percent(95)).unwrap());
        assert!(!upper_is_below(0, 1, percent(95), percent(95)).unwrap());
    }

    #[test]
    fn what_has_no_bound_is_refused() {
        assert!(upper(0, 0, percent(95)).is_err());
        assert!(upper(2, 1, percent(95)).is_err());
        assert!(upper(0, 1, Ratio::ONE).is_err());
        assert!(upper(0, 1, Ratio::ZERO).is_err());
        assert!(upper(0, MAX_ITEMS + 1, percent(95)).is_err());
    }

    /// Every outcome of n items, weighed: the true chance lies at or below the bound often enough.
    #[test]
    fn the_upper_bound_covers_at_least_as_often_as_it_says() {
        let confidence = percent(90);
        for n in 1u32..=12 {
            for chance in (1..20).map(|step| Ratio::new(step, 20).unwrap()) {
                let missed = (0..=n)
                    .filter(|&k| upper_is_below(k, n, confidence, chance).unwrap())
                    .max();
                if let Some(most) = missed {
                    let risk = lower_tail_of(n, most, chance).unwrap();
                    assert!(risk.at_most(percent(10)), "{n} items at {chance}");
                }
            }
        }
    }

    proptest! {
        #[test]
        fn bounds_bracket_and_mirror(n in 1u64..400, k in 0u64..400) {
            prop_assume!(k <= n);
            let confidence = percent(95);
            let (low, high) = two_sided(k, n, confidence).unwrap();
            let share = k as f64 / n as f64;
            prop_assert!(0.0 <= low && low <= share && share <= high && high <= 1.0);
            let (_, mirrored) = two_sided(n - k, n, confidence).unwrap();
            prop_assert!((low - (1.0 - mirrored)).abs() < 1e-12);
        }

        #[test]
        fn more_losses_or_confidence_raise_the_bound(n in 2u64..400, k in 0u64..399, c in 50i128..98) {
            prop_assume!(k < n);
            let bound = upper(k, n, percent(c)).unwrap();
            prop_assert!(bound < upper(k + 1, n, percent(c)).unwrap());
            prop_assert!(k + 1 == n || bound < upper(k, n, percent(c + 1)).unwrap() || k == n);
        }

        #[test]
        fn the_exact_decision_agrees_with_the_bound(n in 1u32..200, k in 0u32..200, limit in 1i128..100) {
            prop_assume!(k <= n);
            let bound = upper(k.into(), n.into(), percent(95)).unwrap();
            let limit = percent(limit);
            prop_assume!((bound - limit.as_f64()).abs() > 1e-9);
            prop_assert_eq!(
                upper_is_at_most(k, n, percent(95), limit).unwrap(),
                bound <= limit.as_f64()
            );
        }
    }
}
