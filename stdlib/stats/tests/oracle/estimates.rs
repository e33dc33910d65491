//! Hodges–Lehmann, bootstrap, arrivals.

use assize_stats::arrivals::{ks_exponential, poisson_dispersion};
use assize_stats::{bootstrap, hodges_lehmann};
use assize_units::{DurNs, OffsetNs, Rate, Ratio};
use serde::Deserialize;

use crate::fixture::{assert_close, section};

#[derive(Deserialize)]
struct Cases<T> {
    cases: Vec<T>,
}

#[derive(Deserialize)]
struct ShiftCase {
    name: String,
    x: Vec<i64>,
    y: Option<Vec<i64>>,
    one_sample: Option<f64>,
    exact: Option<String>,
    shift_y_minus_x: Option<f64>,
}

fn whole(values: &[i64]) -> Vec<Ratio> {
    values.iter().map(|&v| Ratio::whole(v.into())).collect()
}

#[test]
fn hodges_lehmann_estimates_are_exact() {
    let shifts: Cases<ShiftCase> = section("hodges_lehmann");
    for case in shifts.cases {
        let x = whole(&case.x);
        if let (Some(value), Some(exact)) = (case.one_sample, case.exact) {
            let got = hodges_lehmann::one_sample(&x).unwrap();
            assert_eq!(
                format!("{}/{}", got.num(), got.den()),
                exact,
                "{}",
                case.name
            );
            assert_close(got.as_f64(), value, 1e-12);
        }
        if let (Some(y), Some(shift)) = (case.y, case.shift_y_minus_x) {
            let got = hodges_lehmann::two_sample(&x, &whole(&y)).unwrap();
            assert_close(got.as_f64(), shift, 1e-12);
        }
    }
}

#[derive(Deserialize)]
struct BootstrapSection {
    x: Vec<i64>,
    indices: Vec<Vec<usize>>,
    medians: Vec<f64>,
    ci95_nearest_rank: (f64, f64),
}

#[test]
fn a_bootstrap_of_given_indices() {
    let given: BootstrapSection = section("bootstrap");
    let x = whole(&given.x);
    let medians = bootstrap::medians(&x, given.indices.clone()).unwrap();
    assert_eq!(medians.len(), given.medians.len());
    for (got, want) in medians.iter().zip(&given.medians) {
        assert_close(got.as_f64(), *want, 1e-12);
    }
    let level = Ratio::new(19, 20).unwrap();
    let (low, high) = bootstrap::median_interval(&x, given.indices, level).unwrap();
    assert_close(low.as_f64(), given.ci95_nearest_rank.0, 1e-12);
    assert_close(high.as_f64(), given.ci95_nearest_rank.1, 1e-12);
}

#[derive(Deserialize)]
struct KsCase {
    kind: String,
    rate_per_s: serde_json::Number,
    n: usize,
    gaps_ns: Vec<u64>,
    #[serde(rename = "D")]
    distance: f64,
    p_exact: f64,
}

#[test]
fn gaps_against_the_exponential_law() {
    let gaps: Cases<KsCase> = section("ks_exponential");
    for case in gaps.cases {
        assert_eq!(case.gaps_ns.len(), case.n, "{}", case.kind);
        let gaps: Vec<DurNs> = case.gaps_ns.into_iter().map(DurNs).collect();
        let rate = Ratio::parse_decimal(&case.rate_per_s.to_string()).unwrap();
        let test = ks_exponential(&gaps, Rate(rate)).unwrap();
        assert_close(test.distance, case.distance, 1e-12);
        // scipy's "exact" p is Pelz and Good's approximation, good to about seven digits, where
        // n > 140 and n·D^1.5 > 1.4; the same value to 60 digits is a test of `kolmogorov`.
        let n = case.n as f64;
        let approximate = case.n > 140 && n * case.distance.powf(1.5) > 1.4;
        let tolerance = if approximate && n * case.distance * case.distance < 2.2 {
            5e-7
        } else {
            1e-9
        };
        assert_close(test.p, case.p_exact, tolerance);
    }
}

#[derive(Deserialize)]
struct DispersionCase {
    kind: String,
    window_s: f64,
    arrival_offsets_ns: Option<Vec<u64>>,
    gaps_ns: Option<Vec<u64>>,
    full_windows: usize,
    counts: Vec<u64>,
    mean: f64,
    index_of_dispersion: f64,
    chi2: f64,
    p_upper: f64,
    p_lower: f64,
}

#[test]
fn counts_against_a_poisson_process() {
    let windows: Cases<DispersionCase> = section("poisson_dispersion");
    for case in windows.cases {
        let offsets = case.arrival_offsets_ns.unwrap_or_else(|| {
            let running = |end: &mut u64, gap: u64| {
                *end += gap;
                Some(*end)
            };
            let gaps = case.gaps_ns.expect("offsets or gaps");
            gaps.into_iter().scan(0, running).collect()
        });
        let arrivals: Vec<OffsetNs> = offsets.into_iter().map(OffsetNs).collect();
        let window = DurNs((case.window_s * 1e9) as u64);
        let found = poisson_dispersion(&arrivals, window).unwrap();
        assert_eq!(found.counts.len(), case.full_windows, "{}", case.kind);
        assert_eq!(found.counts, case.counts, "{}", case.kind);
        assert_close(found.mean.as_f64(), case.mean, 1e-12);
        assert_close(found.index.as_f64(), case.index_of_dispersion, 1e-12);
        assert_close(found.chi_squared.as_f64(), case.chi2, 1e-12);
        assert_close(found.p_upper, case.p_upper, 1e-9);
        assert_close(found.p_lower, case.p_lower, 1e-9);
    }
}
