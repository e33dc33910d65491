//! Nearest-rank percentiles and exact medians.
//!
//! The quantile q of n sorted values is the value of rank max(1, ⌈q·n⌉), counted from 1: always an
//! observed value, by integer arithmetic alone (0.07 × 100 is rank 7, where floats give 8).

use assize_units::Ratio;
use num_rational::BigRational;
use num_traits::ToPrimitive;

use crate::probability::to_rational;

/// A quantile from 0 to 1, exact.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Quantile {
    num: u64,
    den: u64,
}

impl Quantile {
    /// The median.
    pub const P50: Quantile = Quantile { num: 1, den: 2 };
    /// The 95th percentile.
    pub const P95: Quantile = Quantile { num: 19, den: 20 };
    /// The 99th percentile.
    pub const P99: Quantile = Quantile { num: 99, den: 100 };

    /// `num / den`; `None` where the denominator is zero or less than the numerator.
    pub const fn new(num: u64, den: u64) -> Option<Quantile> {
        if den == 0 || num > den {
            return None;
        }
        Some(Quantile { num, den })
    }

    /// The same value as a quantile; `None` where it is not from 0 to 1 or over 64 bits.
    pub fn from_ratio(value: Ratio) -> Option<Quantile> {
        Quantile::new(value.num().try_into().ok()?, value.den().try_into().ok()?)
    }

    /// The rank max(1, ⌈q·n⌉) among `n` values, from 1; `None` for no values.
    pub fn rank(self, n: usize) -> Option<usize> {
        if n == 0 {
            return None;
        }
        let product = u128::from(self.num) * n as u128;
        let rank = product.div_ceil(u128::from(self.den));
        usize::try_from(rank.max(1)).ok()
    }
}

/// The nearest-rank quantile of sorted values: its rank from 1, and the value.
///
/// The values must be in ascending order; that is the caller's duty.
pub fn nearest_rank<T: Ord>(sorted: &[T], quantile: Quantile) -> Option<(usize, &T)> {
    debug_assert!(sorted.is_sorted(), "nearest_rank takes sorted values");
    let rank = quantile.rank(sorted.len())?;
    sorted.get(rank - 1).map(|value| (rank, value))
}

/// The nearest-rank median of sorted values.
pub fn p50<T: Ord>(sorted: &[T]) -> Option<&T> {
    nearest_rank(sorted, Quantile::P50).map(|(_, value)| value)
}

/// The nearest-rank 95th percentile of sorted values.
pub fn p95<T: Ord>(sorted: &[T]) -> Option<&T> {
    nearest_rank(sorted, Quantile::P95).map(|(_, value)| value)
}

/// The nearest-rank 99th percentile of sorted values.
pub fn p99<T: Ord>(sorted: &[T]) -> Option<&T> {
    nearest_rank(sorted, Quantile::P99).map(|(_, value)| value)
}

/// The median of values in any order: the middle one, or the exact mean of the two middle ones.
///
/// `None` for no values, or where that mean does not fit 128-bit integers.
pub fn median_of_ratios(values: &[Ratio]) -> Option<Ratio> {
    let mut sorted = values.to_vec();
    sorted.sort_unstable();
    median_of_sorted(&sorted)
}

/// [`median_of_ratios`] for values that are sorted already.
pub(crate) fn median_of_sorted(sorted: &[Ratio]) -> Option<Ratio> {
    let middle = sorted.len() / 2;
    let upper = *sorted.get(middle)?;
    if sorted.len() % 2 == 1 {
        return Some(upper);
    }
    midpoint(sorted[middle - 1], upper)
}

/// `(a + b) / 2`, exact, by way of unbounded integers; `None` where the result is over 128 bits.
pub(crate) fn midpoint(a: Ratio, b: Ratio) -> Option<Ratio> {
    let sum: BigRational = to_rational(a) + to_rational(b);
    let half = sum / BigRational::from_integer(2.into());
    Ratio::new(half.numer().to_i128()?, half.denom().to_i128()?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_quantile_is_from_zero_to_one() {
        assert_eq!(Quantile::new(1, 0), None);
        assert_eq!(Quantile::new(3, 2), None);
        assert_eq!(Quantile::from_ratio(Ratio::new(-1, 2).unwrap()), None);
        assert_eq!(
            Quantile::from_ratio(Ratio::parse_decimal("0.95").unwrap()),
            Some(Quantile::P95)
        );
    }

    #[test]
    fn no_values_have_no_quantile() {
        assert_eq!(nearest_rank::<u64>(&[], Quantile::P50), None);
        assert_eq!(median_of_ratios(&[]), None);
    }

    #[test]
    fn the_median_of_an_even_count_is_the_exact_mean() {
        let third = Ratio::new(1, 3).unwrap();
        assert_eq!(
            median_of_ratios(&[Ratio::ONE, third]),
            Some(Ratio::new(2, 3).unwrap())
        );
        let most = Ratio::whole(i128::MAX);
        assert_eq!(median_of_ratios(&[most, most]), Some(most));
    }

    proptest! {
        #[test]
        fn enough_values_are_at_or_below(mut values in prop::collection::vec(0u64..50, 1..80), a in 0u64..=1000) {
            values.sort_unstable();
            let quantile = Quantile::new(a, 1000).unwrap();
            let (rank, &value) = nearest_rank(&values, quantile).unwrap();
            let at_or_below = values.iter().filter(|&&v| v <= value).count();
            prop_assert!(at_or_below as u64 * 1000 >= a * values.len() as u64);
            prop_assert!((rank as u64 - 1) * 1000 < a * values.len() as u64 || rank == 1);
        }

        #[test]
        fn the_median_lies_between_and_turns_with_the_sign(values in prop::collection::vec(-500i128..500, 1..40)) {
            let ratios: Vec<Ratio> = values.iter().map(|&v| Ratio::new(v, 7).unwrap()).collect();
            let negated: Vec<Ratio> = ratios.iter().map(|v| v.neg()).collect();
            let median = median_of_ratios(&ratios).unwrap();
            prop_assert!(ratios.iter().min().unwrap() <= &median);
            prop_assert!(ratios.iter().max().unwrap() >= &median);
            prop_assert_eq!(median_of_ratios(&negated).unwrap(), median.neg());
        }
    }
}
