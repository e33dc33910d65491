//! Whether a sequence of arrivals is a Poisson process of a rate fixed beforehand.

use assize_units::{DurNs, OffsetNs, Rate, Ratio};
use statrs::function::gamma::{gamma_lr, gamma_ur};

use crate::StatsError;
use crate::error::{at_least, bounded};
use crate::kolmogorov;

/// The most windows whose counts are compared.
pub const MAX_WINDOWS: u64 = 1_000_000;

/// The Kolmogorov–Smirnov test of gaps against the exponential law.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct KsTest {
    /// D = sup |Fₙ − F|, F(x) = 1 − e^(−rate·x).
    pub distance: f64,
    /// P(D ≥ observed), two-sided, for the finite n; relative tolerance 1e-9.
    pub p: f64,
}

/// Tests gaps against the exponential law of `rate`, which must not be estimated from them (then
/// Lilliefors' test applies). At most 4,096 gaps.
pub fn ks_exponential(gaps: &[DurNs], rate: Rate) -> Result<KsTest, StatsError> {
    at_least("gaps", gaps.len() as u64, 1)?;
    bounded("gaps", gaps.len() as u64, kolmogorov::MAX_VALUES as u64)?;
    let per_ns = rate.as_f64() / 1e9;
    if !per_ns.is_finite() || per_ns <= 0.0 {
        return Err(StatsError::NotPositive { what: "the rate" });
    }
    let mut sorted = gaps.to_vec();
    sorted.sort_unstable();
    let n = sorted.len() as f64;
    let distance = sorted
        .iter()
        .enumerate()
        .map(|(index, gap)| {
            let law = -(-per_ns * gap.0 as f64).exp_m1();
            let before = index as f64 / n;
            let after = (index + 1) as f64 / n;
            (law - before).max(after - law)
        })
        .fold(0.0, f64::max);
    let p = kolmogorov::upper_tail(sorted.len(), distance);
    Ok(KsTest { distance, p })
}

/// The dispersion of counts in equal windows.
#[derive(Clone, Debug, PartialEq)]
pub struct Dispersion {
    /// The arrivals in each full window, in order.
    pub counts: Vec<u64>,
    /// Their mean, exact.
    pub mean: Ratio,
    /// Their sample variance (k − 1) over their mean, exact: near 1 for a Poisson process.
    pub index: Ratio,
    /// (k − 1) · index: about chi-squared with k − 1 degrees of freedom for a Poisson process.
    pub chi_squared: Ratio,
    /// P(χ² ≥ observed): small where arrivals are burstier than Poisson.
    pub p_upper: f64,
    /// P(χ² ≤ observed): small where arrivals are smoother than Poisson.
    pub p_lower: f64,
}

/// Counts arrivals in the windows [i·w, (i + 1)·w) and compares their variance with their mean.
/// Only windows that end at or before the last arrival are full and count.
pub fn poisson_dispersion(arrivals: &[OffsetNs], window: DurNs) -> Result<Dispersion, StatsError> {
    if window.0 == 0 {
        return Err(StatsError::NotPositive { what: "the window" });
    }
    let last = arrivals.iter().max().map_or(0, |offset| offset.0);
    let windows = last / window.0;
    at_least("full windows", windows, 2)?;
    bounded("full windows", windows, MAX_WINDOWS)?;
    let mut counts = vec![0u64; windows as usize];
    for arrival in arrivals {
        if let Some(count) = counts.get_mut((arrival.0 / window.0) as usize) {
            *count += 1;
        }
    }
    let k = i128::from(windows);
    let sum: i128 = counts.iter().map(|&count| i128::from(count)).sum();
    at_least("arrivals in full windows", sum as u64, 1)?;
    let squares: i128 = counts.iter().map(|&c| i128::from(c) * i128::from(c)).sum();
    let chi_squared = Ratio::new(k * squares - sum * sum, sum)?;
    let (p_upper, p_lower) = chi_squared_tails(chi_squared.as_f64(), (k - 1) as f64);
    Ok(Dispersion {
        counts,
        mean: Ratio::new(sum, k)?,
        index: chi_squared.div(Ratio::whole(k - 1))?,
        chi_squared,
        p_upper,
        p_lower,
    })
}

/// P(χ² ≥ value) and P(χ² ≤ value); the incomplete gamma functions are not defined at 0.
fn chi_squared_tails(value: f64, freedom: f64) -> (f64, f64) {
    if value <= 0.0 {
        return (1.0, 0.0);
    }
    let (shape, half) = (freedom / 2.0, value / 2.0);
    (gamma_ur(shape, half), gamma_lr(shape, half))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_has_no_law_is_refused() {
        let gaps = [DurNs(1)];
        assert!(ks_exponential(&[], Rate(Ratio::ONE)).is_err());
        assert!(ks_exponential(&gaps, Rate(Ratio::ZERO)).is_err());
        assert!(
            ks_exponential(
                &vec![DurNs(1); kolmogorov::MAX_VALUES + 1],
                Rate(Ratio::ONE)
            )
            .is_err()
        );
        assert!(poisson_dispersion(&[OffsetNs(5)], DurNs(0)).is_err());
        assert!(poisson_dispersion(&[OffsetNs(5)], DurNs(4)).is_err());
        assert!(poisson_dispersion(&[OffsetNs(u64::MAX)], DurNs(1)).is_err());
        assert!(poisson_dispersion(&[OffsetNs(8)], DurNs(4)).is_err());
    }

    #[test]
    fn a_constant_gap_has_no_dispersion() {
        let arrivals: Vec<OffsetNs> = (0..40).map(|i| OffsetNs(i * 10)).collect();
        let found = poisson_dispersion(&arrivals, DurNs(50)).unwrap();
        assert_eq!(found.counts, vec![5; 7]);
        assert_eq!(found.index, Ratio::ZERO);
        assert!((found.p_upper - 1.0).abs() < 1e-12);
    }
}
