//! Sign test, Holm, order statistics, Clopper–Pearson.

use assize_stats::effect::Tally;
use assize_stats::order_statistic::{MedianInterval, narrowest};
use assize_stats::sign::{SignTest, Ties};
use assize_stats::{clopper_pearson, holm::holm};
use assize_units::Ratio;
use serde::Deserialize;

use crate::fixture::{assert_close, fraction, section};

#[derive(Deserialize)]
struct Cases<T> {
    cases: Vec<T>,
}

#[derive(Deserialize)]
struct SignCase {
    n: u32,
    wins: u32,
    ties: u32,
    losses: u32,
    p_ties_as_nonwins: f64,
    p_ties_as_nonwins_exact: String,
    p_ties_dropped: f64,
    p_ties_dropped_exact: String,
}

#[test]
fn sign_tests_are_exact_under_both_rules() {
    let sign: Cases<SignCase> = section("sign_test_one_sided");
    assert_eq!(sign.cases.len(), 205);
    for case in sign.cases {
        let tally = Tally {
            wins: case.wins,
            ties: case.ties,
            losses: case.losses,
            missing: 0,
        };
        assert_eq!(tally.blocks(), u64::from(case.n));
        let nonwins = SignTest::new(tally, Ties::Nonwins).unwrap();
        assert_eq!(nonwins.p, fraction(&case.p_ties_as_nonwins_exact));
        assert_close(nonwins.p.as_f64(), case.p_ties_as_nonwins, 1e-12);
        let dropped = SignTest::new(tally, Ties::Dropped).unwrap();
        assert_eq!(dropped.p, fraction(&case.p_ties_dropped_exact));
        assert_close(dropped.p.as_f64(), case.p_ties_dropped, 1e-12);
    }
}

#[derive(Deserialize)]
struct HolmCase {
    name: String,
    p_exact: Vec<String>,
    adjusted_exact: Vec<String>,
    adjusted: Vec<f64>,
    #[serde(rename = "reject_at_0.05_exact_le")]
    rejected: Vec<bool>,
}

#[test]
fn holm_is_exact_and_keeps_the_input_order() {
    let family: Cases<HolmCase> = section("holm");
    assert_eq!(family.cases.len(), 30);
    for case in family.cases {
        let p: Vec<_> = case.p_exact.iter().map(|text| fraction(text)).collect();
        let corrected = holm(&p, Ratio::new(1, 20).unwrap());
        for (index, test) in corrected.iter().enumerate() {
            assert_eq!(
                test.adjusted,
                fraction(&case.adjusted_exact[index]),
                "{}",
                case.name
            );
            assert_close(test.adjusted.as_f64(), case.adjusted[index], 1e-9);
            assert_eq!(test.rejected, case.rejected[index], "{}", case.name);
        }
    }
}

#[derive(Deserialize)]
struct OrderSection {
    asymmetric: Vec<Pair>,
    cases: Vec<OrderCase>,
}

#[derive(Deserialize)]
struct OrderCase {
    n: u32,
    pairs: Vec<Pair>,
    narrowest_at_least_95: Option<Pair>,
    narrowest_at_least_99: Option<Pair>,
}

#[derive(Deserialize)]
struct Pair {
    n: Option<u32>,
    lower_rank: u32,
    upper_rank: u32,
    coverage: f64,
    exact: Option<String>,
}

#[test]
fn order_statistic_intervals_have_their_exact_coverage() {
    let order: OrderSection = section("median_order_stat_ci");
    for pair in order.asymmetric {
        let n = pair.n.expect("an asymmetric pair names its n");
        check_pair(n, &pair);
    }
    assert_eq!(order.cases.len(), 27);
    for case in order.cases {
        for pair in &case.pairs {
            check_pair(case.n, pair);
        }
        let found = |percent| {
            narrowest(case.n, Ratio::new(percent, 100).unwrap())
                .unwrap()
                .map(|interval| (interval.lower_rank, interval.upper_rank))
        };
        let wanted = |pair: &Option<Pair>| pair.as_ref().map(|p| (p.lower_rank, p.upper_rank));
        assert_eq!(found(95), wanted(&case.narrowest_at_least_95));
        assert_eq!(found(99), wanted(&case.narrowest_at_least_99));
    }
}

fn check_pair(n: u32, pair: &Pair) {
    let interval = MedianInterval::between_ranks(n, pair.lower_rank, pair.upper_rank)
        .unwrap()
        .expect("the ranks are in range");
    if let Some(exact) = &pair.exact {
        assert_eq!(interval.coverage, fraction(exact), "{n}");
    }
    assert_close(interval.coverage.as_f64(), pair.coverage, 1e-12);
}

#[derive(Deserialize)]
struct ProportionSection {
    seed1_check: serde_json::Map<String, serde_json::Value>,
    cases: Vec<ProportionCase>,
    small_alpha: Vec<SmallAlpha>,
}

#[derive(Deserialize)]
struct ProportionCase {
    k: u64,
    n: u64,
    upper_one_sided_95: f64,
    lower_one_sided_95: f64,
    two_sided_95: (f64, f64),
    upper_pct_3dp: Option<String>,
}

#[derive(Deserialize)]
struct SmallAlpha {
    k: u64,
    n: u64,
    alpha_two_sided: f64,
    upper: f64,
}

#[test]
fn clopper_pearson_bounds() {
    let proportion: ProportionSection = section("clopper_pearson");
    let level = Ratio::new(19, 20).unwrap();
    for case in &proportion.cases {
        let upper = clopper_pearson::upper(case.k, case.n, level).unwrap();
        assert_close(upper, case.upper_one_sided_95, 1e-9);
        let lower = clopper_pearson::lower(case.k, case.n, level).unwrap();
        assert_close(lower, case.lower_one_sided_95, 1e-9);
        let both = clopper_pearson::two_sided(case.k, case.n, level).unwrap();
        assert_close(both.0, case.two_sided_95.0, 1e-9);
        assert_close(both.1, case.two_sided_95.1, 1e-9);
        if let Some(shown) = &case.upper_pct_3dp {
            assert_eq!(&format!("{:.3}", upper * 100.0), shown);
        }
    }
    for (counts, shown) in &proportion.seed1_check {
        let Some((k, n)) = counts.split_once('/') else {
            continue;
        };
        let upper = clopper_pearson::upper(k.parse().unwrap(), n.parse().unwrap(), level).unwrap();
        assert_eq!(
            Some(format!("{:.3}%", upper * 100.0).as_str()),
            shown.as_str()
        );
    }
}

#[test]
fn clopper_pearson_keeps_its_digits_at_a_small_alpha() {
    let proportion: ProportionSection = section("clopper_pearson");
    for case in proportion.small_alpha {
        // α as a rational of nineteen decimal places is enough for a relative 1e-9.
        let places = 10i128.pow(25);
        let alpha = Ratio::new((case.alpha_two_sided * 1e25).round() as i128, places).unwrap();
        let confidence = Ratio::ONE.sub(alpha).unwrap();
        let (_, upper) = clopper_pearson::two_sided(case.k, case.n, confidence).unwrap();
        assert_close(upper, case.upper, 1e-9);
    }
}
