//! The percentile bootstrap.
//!
//! A resample is n indices drawn with replacement. The statistic of every resample is taken, and
//! the interval's ends are their nearest-rank quantiles α/2 and 1 − α/2. The resamples are given
//! as indices or drawn from a seed, which belongs to the plan.

use assize_units::Ratio;
use rand_pcg::Pcg64;
use rand_pcg::rand_core::Rng;

use crate::StatsError;
use crate::error::{at_least, bounded};
use crate::percentile::{Quantile, median_of_ratios, nearest_rank};

/// The most resamples.
pub const MAX_RESAMPLES: usize = 100_000;
/// The most values, over all resamples together.
pub const MAX_DRAWS: usize = 50_000_000;

/// The state and stream of a `Pcg64`, as the plan gives them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seed {
    /// The generator's initial state.
    pub state: u128,
    /// The generator's stream.
    pub stream: u128,
}

/// Draws resamples of indices, with replacement.
#[derive(Clone, Debug)]
pub struct Resampler {
    rng: Pcg64,
    len: usize,
    left: usize,
}

impl Resampler {
    /// `resamples` rows of `len` indices below `len`, from `seed`.
    pub fn seeded(len: usize, resamples: usize, seed: Seed) -> Result<Resampler, StatsError> {
        at_least("values", len as u64, 1)?;
        bounded("resamples", resamples as u64, MAX_RESAMPLES as u64)?;
        let draws = len.saturating_mul(resamples);
        bounded("draws", draws as u64, MAX_DRAWS as u64)?;
        Ok(Resampler {
            rng: Pcg64::new(seed.state, seed.stream),
            len,
            left: resamples,
        })
    }

    /// A uniform index: x mod len of the first 64-bit word x that is at least 2^64 mod len.
    fn index(&mut self) -> usize {
        let len = self.len as u64;
        let uneven = len.wrapping_neg() % len;
        loop {
            let word = self.rng.next_u64();
            if word >= uneven {
                return (word % len) as usize;
            }
        }
    }
}

impl Iterator for Resampler {
    type Item = Vec<usize>;

    fn next(&mut self) -> Option<Vec<usize>> {
        self.left = self.left.checked_sub(1)?;
        Some((0..self.len).map(|_| self.index()).collect())
    }
}

/// The interval of the median: exact for its resamples.
pub fn median_interval(
    values: &[Ratio],
    resamples: impl IntoIterator<Item = Vec<usize>>,
    confidence: Ratio,
) -> Result<(Ratio, Ratio), StatsError> {
    let tail = tail_quantile(confidence, 2)?;
    let mut medians = medians(values, resamples)?;
    medians.sort_unstable();
    let ends = nearest_rank(&medians, tail.0).zip(nearest_rank(&medians, tail.1));
    let ((_, low), (_, high)) = ends.ok_or(StatsError::TooFew {
        what: "resamples",
        given: 0,
        least: 1,
    })?;
    Ok((*low, *high))
}

/// The median of every resample, in order.
pub fn medians(
    values: &[Ratio],
    resamples: impl IntoIterator<Item = Vec<usize>>,
) -> Result<Vec<Ratio>, StatsError> {
    let mut medians = Vec::new();
    for row in resamples {
        bounded("resamples", medians.len() as u64 + 1, MAX_RESAMPLES as u64)?;
        at_least("indices of a resample", row.len() as u64, 1)?;
        let drawn = pick(values, &row)?;
        medians.push(median_of_ratios(&drawn).ok_or(StatsError::Overflow)?);
    }
    Ok(medians)
}

/// The values at the indices.
pub(crate) fn pick<T: Copy>(values: &[T], row: &[usize]) -> Result<Vec<T>, StatsError> {
    let at = |&index: &usize| {
        let len = values.len();
        values
            .get(index)
            .copied()
            .ok_or(StatsError::IndexOutOfRange { index, len })
    };
    row.iter().map(at).collect()
}

/// The quantiles α/`sides` and 1 − α/`sides`.
pub(crate) fn tail_quantile(
    confidence: Ratio,
    sides: i128,
) -> Result<(Quantile, Quantile), StatsError> {
    if !confidence.is_positive() || confidence >= Ratio::ONE {
        return Err(StatsError::NotBetweenZeroAndOne { what: "confidence" });
    }
    let tail = Ratio::ONE.sub(confidence)?.div(Ratio::whole(sides))?;
    let low = Quantile::from_ratio(tail).ok_or(StatsError::Overflow)?;
    let high = Quantile::from_ratio(Ratio::ONE.sub(tail)?).ok_or(StatsError::Overflow)?;
    Ok((low, high))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const SEED: Seed = Seed {
        state: 7,
        stream: 11,
    };

    fn values(of: &[i128]) -> Vec<Ratio> {
        of.iter().copied().map(Ratio::whole).collect()
    }

    #[test]
    fn a_seed_fixes_the_draws() {
        let rows = |seed| -> Vec<_> { Resampler::seeded(5, 20, seed).unwrap().collect() };
        assert_eq!(rows(SEED), rows(SEED));
        assert_ne!(rows(SEED), rows(Seed { state: 8, ..SEED }));
        assert_eq!(rows(SEED)[0], FIRST_ROW);
    }

    /// Pinned, from a second implementation of PCG XSL RR 128/64 and of the draw: a change of
    /// either would change every sealed interval.
    const FIRST_ROW: [usize; 5] = [0, 3, 2, 4, 2];

    #[test]
    fn what_cannot_be_resampled_is_refused() {
        assert!(Resampler::seeded(0, 10, SEED).is_err());
        assert!(Resampler::seeded(1, MAX_RESAMPLES + 1, SEED).is_err());
        assert!(Resampler::seeded(usize::MAX, 2, SEED).is_err());
        let level = Ratio::new(19, 20).unwrap();
        let of = values(&[1, 2]);
        assert!(median_interval(&of, vec![], level).is_err());
        assert!(median_interval(&of, vec![vec![]], level).is_err());
        assert!(median_interval(&of, vec![vec![0, 2]], level).is_err());
        assert!(median_interval(&of, vec![vec![0, 1]], Ratio::ONE).is_err());
    }

    #[test]
    fn every_index_is_drawn_about_as_often() {
        let mut counts = [0u32; 7];
        for row in Resampler::seeded(7, 2_000, SEED).unwrap() {
            for index in row {
                counts[index] += 1;
            }
        }
        // 2,000 expected, standard deviation 41: five of them.
        assert!(
            counts.iter().all(|&count| count.abs_diff(2_000) < 207),
            "{counts:?}"
        );
    }

    proptest! {
        #[test]
        fn the_ends_are_in_order_and_widen_with_confidence(of in prop::collection::vec(-50i128..50, 1..12), state: u64) {
            let seed = Seed { state: state.into(), stream: 1 };
            let interval = |percent| {
                let rows = Resampler::seeded(of.len(), 60, seed).unwrap();
                median_interval(&values(&of), rows, Ratio::new(percent, 100).unwrap()).unwrap()
            };
            let (narrow, wide) = (interval(50), interval(95));
            prop_assert!(wide.0 <= narrow.0 && narrow.0 <= narrow.1 && narrow.1 <= wide.1);
        }
    }
}
