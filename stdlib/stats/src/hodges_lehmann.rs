//! The Hodges–Lehmann estimators, exact.

use assize_units::Ratio;

use crate::StatsError;
use crate::error::{at_least, bounded};
use crate::percentile::{median_of_sorted, midpoint};

/// The most pairs whose median is taken.
pub const MAX_PAIRS: usize = 1_000_000;

/// The pseudo-median of one sample: the median of all (xᵢ + xⱼ)/2 with i ≤ j.
pub fn one_sample(values: &[Ratio]) -> Result<Ratio, StatsError> {
    at_least("values", values.len() as u64, 1)?;
    let pairs = values.len().saturating_mul(values.len() + 1) / 2;
    bounded("pairs", pairs as u64, MAX_PAIRS as u64)?;
    let mut means = Vec::with_capacity(pairs);
    for (index, &a) in values.iter().enumerate() {
        for &b in &values[index..] {
            means.push(midpoint(a, b).ok_or(StatsError::Overflow)?);
        }
    }
    median(means)
}

/// The shift from `x` to `y`: the median of all yⱼ − xᵢ.
pub fn two_sample(x: &[Ratio], y: &[Ratio]) -> Result<Ratio, StatsError> {
    at_least("values", x.len().min(y.len()) as u64, 1)?;
    let pairs = x.len().saturating_mul(y.len());
    bounded("pairs", pairs as u64, MAX_PAIRS as u64)?;
    let mut differences = Vec::with_capacity(pairs);
    for a in x {
        for b in y {
            differences.push(b.sub(*a)?);
        }
    }
    median(differences)
}

fn median(mut values: Vec<Ratio>) -> Result<Ratio, StatsError> {
    values.sort_unstable();
    median_of_sorted(&values).ok_or(StatsError::Overflow)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn no_values_and_too_many_pairs_are_refused() {
        assert!(one_sample(&[]).is_err());
        assert!(two_sample(&[Ratio::ONE], &[]).is_err());
        assert!(one_sample(&vec![Ratio::ONE; 1_500]).is_err());
    }

    proptest! {
        #[test]
        fn a_shift_moves_it_by_itself(of in prop::collection::vec(-90i128..90, 1..14), by in -90i128..90) {
            let at = |by: i128| -> Vec<Ratio> { of.iter().map(|v| Ratio::whole(v + by)).collect() };
            let shift = Ratio::whole(by);
            prop_assert_eq!(one_sample(&at(by)).unwrap(), one_sample(&at(0)).unwrap().add(shift).unwrap());
            prop_assert_eq!(two_sample(&at(0), &at(by)).unwrap(), shift);
        }
    }
}
