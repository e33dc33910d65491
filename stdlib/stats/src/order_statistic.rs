//! Intervals of the median by order statistics, with the coverage that they attain.
//!
//! The interval from the l-th to the u-th smallest of n values covers the median with probability
//! P(l ≤ X < u), X ~ Bin(n, ½): exact for continuous data, at least that where values tie.

use assize_units::Ratio;

use crate::binomial::{MAX_TRIALS, between};
use crate::error::bounded;
use crate::{Probability, StatsError};

/// Two ranks from 1 and the coverage of the interval between their values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MedianInterval {
    /// The rank of the lower end, from 1.
    pub lower_rank: u32,
    /// The rank of the upper end, from 1.
    pub upper_rank: u32,
    /// The coverage attained, exact.
    pub coverage: Probability,
}

impl MedianInterval {
    /// The interval between two ranks of `n` values; `None` unless 1 ≤ lower < upper ≤ n.
    pub fn between_ranks(
        n: u32,
        lower_rank: u32,
        upper_rank: u32,
    ) -> Result<Option<MedianInterval>, StatsError> {
        bounded("blocks", n.into(), MAX_TRIALS.into())?;
        if lower_rank == 0 || lower_rank >= upper_rank || upper_rank > n {
            return Ok(None);
        }
        Ok(Some(MedianInterval {
            lower_rank,
            upper_rank,
            coverage: between(n, lower_rank, upper_rank - 1)?,
        }))
    }

    /// The values at both ranks; `None` where there are fewer values than the upper rank.
    pub fn ends<T>(&self, sorted: &[T]) -> Option<(T, T)>
    where
        T: Ord + Copy,
    {
        debug_assert!(sorted.is_sorted(), "order statistics take sorted values");
        let at = |rank: u32| sorted.get(rank as usize - 1).copied();
        Some((at(self.lower_rank)?, at(self.upper_rank)?))
    }
}

/// The narrowest symmetric ranks (l and n + 1 − l) whose attained coverage is at least `coverage`;
/// `None` where there are none: 5 values reach 93.75% and no more.
pub fn narrowest(n: u32, coverage: Ratio) -> Result<Option<MedianInterval>, StatsError> {
    bounded("blocks", n.into(), MAX_TRIALS.into())?;
    // Coverage falls as the ranks move inwards, so the innermost that reaches it is found by
    // bisection over l: `low` reaches it (or is 0, no interval), `high` does not.
    let (mut low, mut high) = (0, n / 2 + 1);
    let mut best = None;
    while high - low > 1 {
        let middle = low + (high - low) / 2;
        match MedianInterval::between_ranks(n, middle, n + 1 - middle)? {
            Some(interval) if interval.coverage.at_least(coverage) => {
                best = Some(interval);
                low = middle;
            }
            _ => high = middle,
        }
    }
    Ok(best)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn ten_blocks_at_95_percent() {
        let interval = narrowest(10, Ratio::new(19, 20).unwrap())
            .unwrap()
            .expect("ten are enough");
        assert_eq!((interval.lower_rank, interval.upper_rank), (2, 9));
        assert_eq!(interval.coverage.to_string(), "0.978515625");
        assert_eq!(
            interval.ends(&[1, 2, 3, 4, 5, 6, 7, 8, 9, 10]),
            Some((2, 9))
        );
        assert_eq!(interval.ends(&[1, 2, 3]), None);
    }

    #[test]
    fn five_blocks_have_no_interval_at_95_percent() {
        assert_eq!(narrowest(5, Ratio::new(19, 20).unwrap()).unwrap(), None);
        for n in 0..=1 {
            assert_eq!(narrowest(n, Ratio::ZERO).unwrap(), None);
        }
    }

    /// Each value lies above or below the median by a fair coin: every pattern, counted.
    #[test]
    fn the_coverage_is_that_of_every_pattern_of_signs() {
        for n in 2u32..=12 {
            for lower in 1..=n / 2 {
                let upper = n + 1 - lower;
                let covered = (0u32..1 << n)
                    .filter(|below| (lower..upper).contains(&below.count_ones()))
                    .count();
                let interval = MedianInterval::between_ranks(n, lower, upper)
                    .unwrap()
                    .unwrap();
                assert_eq!(
                    interval.coverage,
                    Probability::new(covered as u64, 1u64 << n).unwrap()
                );
            }
        }
    }

    proptest! {
        #[test]
        fn no_narrower_symmetric_pair_reaches_it(n in 2u32..80, c in 1i128..1000) {
            let wanted = Ratio::new(c, 1000).unwrap();
            let found = narrowest(n, wanted).unwrap();
            let reaches = |lower: u32| {
                MedianInterval::between_ranks(n, lower, n + 1 - lower)
                    .unwrap()
                    .is_some_and(|interval| interval.coverage.at_least(wanted))
            };
            let scanned = (1..=n / 2).rev().find(|&lower| reaches(lower));
            prop_assert_eq!(found.map(|interval| interval.lower_rank), scanned);
        }
    }
}
