//! An upper bound of a paired mean difference: the rule `nll`.
//!
//! The items' differences (candidate − reference, in nats) are averaged; the bound is one-sided,
//! by Student's t or by the percentile bootstrap of the mean. Which of the two, and the seed,
//! belong to the plan. Floating point throughout: the differences are logarithms already.

use assize_units::Ratio;
use statrs::function::beta::beta_reg;

use crate::StatsError;
use crate::bootstrap::{MAX_RESAMPLES, pick, tail_quantile};
use crate::error::{at_least, bounded};

/// The mean of paired differences and its one-sided upper bound.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MeanBound {
    /// The number of items.
    pub items: usize,
    /// Their mean difference.
    pub mean: f64,
    /// The one-sided upper bound of the mean.
    pub upper: f64,
}

/// mean + t(confidence, n − 1) · s / √n, with s the sample deviation (n − 1); relative tolerance
/// of the quantile 1e-9.
pub fn upper_by_t(differences: &[f64], confidence: Ratio) -> Result<MeanBound, StatsError> {
    at_least("items", differences.len() as u64, 2)?;
    let n = differences.len() as f64;
    let mean = finite_mean(differences)?;
    let squares: f64 = differences.iter().map(|d| (d - mean) * (d - mean)).sum();
    let error = (squares / (n - 1.0) / n).sqrt();
    let upper = mean + t_quantile(confidence, differences.len() - 1)? * error;
    if !upper.is_finite() {
        return Err(StatsError::NotFinite {
            what: "the bound of the mean",
        });
    }
    Ok(MeanBound {
        items: differences.len(),
        mean,
        upper,
    })
}

/// The nearest-rank quantile `confidence` of the means of the resamples.
pub fn upper_by_bootstrap(
    differences: &[f64],
    resamples: impl IntoIterator<Item = Vec<usize>>,
    confidence: Ratio,
) -> Result<MeanBound, StatsError> {
    let (_, level) = tail_quantile(confidence, 1)?;
    let mean = finite_mean(differences)?;
    let mut means = Vec::new();
    for row in resamples {
        bounded("resamples", means.len() as u64 + 1, MAX_RESAMPLES as u64)?;
        means.push(finite_mean(&pick(differences, &row)?)?);
    }
    means.sort_unstable_by(f64::total_cmp);
    let upper = level
        .rank(means.len())
        .and_then(|rank| means.get(rank - 1).copied())
        .ok_or(StatsError::TooFew {
            what: "resamples",
            given: 0,
            least: 1,
        })?;
    Ok(MeanBound {
        items: differences.len(),
        mean,
        upper,
    })
}

/// The quantile of Student's t with `freedom` degrees of freedom, relative tolerance 1e-9.
pub fn t_quantile(confidence: Ratio, freedom: usize) -> Result<f64, StatsError> {
    at_least("degrees of freedom", freedom as u64, 1)?;
    if !confidence.is_positive() || confidence >= Ratio::ONE {
        return Err(StatsError::NotBetweenZeroAndOne { what: "confidence" });
    }
    let half = Ratio::new(1, 2)?;
    let upper_tail = Ratio::ONE.sub(confidence)?;
    if upper_tail == half {
        return Ok(0.0);
    }
    if upper_tail < half {
        return Ok(t_of_upper_tail(upper_tail.as_f64(), freedom as f64));
    }
    Ok(-t_of_upper_tail(confidence.as_f64(), freedom as f64))
}

/// The t above which a tail below ½ lies: P(T > t) = ½ · I(ν/2, ½) at ν/(ν + t²), or where that is
/// nearly 1, which loses digits, and the tail is not small, by the complement.
fn t_of_upper_tail(tail: f64, freedom: f64) -> f64 {
    const SMALL: f64 = 1e-3;
    let above = |t: f64| {
        let (square, all) = (t * t, freedom + t * t);
        if tail > SMALL && square < freedom {
            0.5 - 0.5 * beta_reg(0.5, freedom / 2.0, square / all)
        } else {
            0.5 * beta_reg(freedom / 2.0, 0.5, freedom / all)
        }
    };
    let (mut low, mut high) = (0.0f64, 1.0f64);
    while above(high) > tail && high < 1e150 {
        high *= 2.0;
    }
    loop {
        let middle = low + (high - low) / 2.0;
        if middle <= low || middle >= high {
            return high;
        }
        if above(middle) > tail {
            low = middle;
        } else {
            high = middle;
        }
    }
}

fn finite_mean(values: &[f64]) -> Result<f64, StatsError> {
    at_least("items", values.len() as u64, 1)?;
    let mean = values.iter().sum::<f64>() / values.len() as f64;
    if !mean.is_finite() {
        return Err(StatsError::NotFinite {
            what: "the mean difference",
        });
    }
    Ok(mean)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bootstrap::{Resampler, Seed};
    use proptest::prelude::*;

    fn level(percent: i128) -> Ratio {
        Ratio::new(percent, 100).unwrap()
    }

    #[test]
    fn quantiles_of_student_as_printed_in_tables() {
        for (percent, freedom, table) in [
            (95, 1, 6.313_751_514_675_04),
            (95, 9, 1.833_112_932_653_63),
            (95, 10, 1.812_461_122_811_68),
            (99, 30, 2.457_261_542_4),
            (95, 1_000, 1.646_378_817_285_464_5),
            (95, 1_000_000, 1.644_855_150_722_040_4),
        ] {
            let got = t_quantile(level(percent), freedom).unwrap();
            assert!((got - table).abs() < 1e-9 * table, "{freedom}: {got}");
        }
        assert!(t_quantile(level(50), 3).unwrap().abs() < f64::MIN_POSITIVE);
        let (low, high) = (t_quantile(level(5), 9), t_quantile(level(95), 9));
        assert!((low.unwrap() + high.unwrap()).abs() < 1e-12);
    }

    #[test]
    fn the_bound_of_three_items_by_hand() {
        // mean 2, s = 1, t(95%, 2) = 2.919985580353726: 2 + 2.919985580353726 / √3.
        let bound = upper_by_t(&[1.0, 2.0, 3.0], level(95)).unwrap();
        assert!((bound.mean - 2.0).abs() < 1e-15);
        assert!((bound.upper - (2.0 + 2.919_985_580_353_726 / 3f64.sqrt())).abs() < 1e-9);
    }

    #[test]
    fn what_has_no_mean_is_refused() {
        assert!(upper_by_t(&[1.0], level(95)).is_err());
        assert!(upper_by_t(&[1.0, f64::NAN], level(95)).is_err());
        assert!(upper_by_t(&[f64::MAX, -f64::MAX], level(95)).is_err());
        assert!(upper_by_bootstrap(&[], vec![vec![]], level(95)).is_err());
        assert!(upper_by_bootstrap(&[1.0], vec![], level(95)).is_err());
        assert!(upper_by_bootstrap(&[1.0], vec![vec![1]], level(95)).is_err());
    }

    #[test]
    fn the_bootstrap_takes_the_nearest_rank_of_the_means() {
        let rows = vec![vec![0, 0], vec![0, 1], vec![1, 1], vec![1, 0]];
        let bound = upper_by_bootstrap(&[0.0, 4.0], rows, level(75)).unwrap();
        assert!((bound.upper - 2.0).abs() < 1e-15);
    }

    proptest! {
        #[test]
        fn a_shift_moves_both_bounds_by_itself(of in prop::collection::vec(-1.0f64..1.0, 2..30), by in -1.0f64..1.0) {
            let moved: Vec<f64> = of.iter().map(|d| d + by).collect();
            let (a, b) = (upper_by_t(&of, level(95)).unwrap(), upper_by_t(&moved, level(95)).unwrap());
            prop_assert!((b.upper - a.upper - by).abs() < 1e-9);
            let seed = Seed { state: 3, stream: 5 };
            let rows = || Resampler::seeded(of.len(), 40, seed).unwrap();
            let a = upper_by_bootstrap(&of, rows(), level(95)).unwrap();
            let b = upper_by_bootstrap(&moved, rows(), level(95)).unwrap();
            prop_assert!((b.upper - a.upper - by).abs() < 1e-9);
        }

        #[test]
        fn more_confidence_never_lowers_the_bound(of in prop::collection::vec(-1.0f64..1.0, 2..30), c in 1i128..98) {
            let bound = |percent| upper_by_t(&of, level(percent)).unwrap().upper;
            prop_assert!(bound(c) <= bound(c + 1));
        }
    }
}
