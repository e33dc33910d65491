//! Nearest-rank percentiles and what they are confused with.

use std::collections::BTreeMap;

use assize_stats::percentile::{Quantile, median_of_ratios, nearest_rank, p50, p95, p99};
use assize_units::Ratio;
use serde::Deserialize;

use crate::fixture::{assert_close, section};

#[derive(Deserialize)]
struct PercentileSection {
    float_ceil_hazards: Vec<Hazard>,
    float_ceil_hazard_count: usize,
    cases: Vec<PercentileCase>,
}

#[derive(Deserialize)]
struct Hazard {
    q: serde_json::Number,
    n: usize,
    exact_rank: usize,
    naive_float_ceil_rank: usize,
}

#[derive(Deserialize)]
struct PercentileCase {
    name: String,
    n: usize,
    data: Vec<i64>,
    nearest_rank: BTreeMap<String, Ranked>,
    median_even_average: f64,
}

#[derive(Deserialize)]
struct Ranked {
    rank: usize,
    value: i64,
}

fn quantile(decimal: &str) -> Quantile {
    let value = Ratio::parse_decimal(decimal).expect("a decimal");
    Quantile::from_ratio(value).expect("a quantile")
}

#[test]
fn ranks_are_exact_where_floats_are_not() {
    let percentiles: PercentileSection = section("percentiles");
    assert_eq!(
        percentiles.float_ceil_hazards.len(),
        percentiles.float_ceil_hazard_count
    );
    for hazard in percentiles.float_ceil_hazards {
        let rank = quantile(&hazard.q.to_string()).rank(hazard.n);
        assert_eq!(
            rank,
            Some(hazard.exact_rank),
            "{} of {}",
            hazard.q,
            hazard.n
        );
        assert_ne!(rank, Some(hazard.naive_float_ceil_rank));
    }
}

#[test]
fn nearest_rank_values_are_observed_ones() {
    let percentiles: PercentileSection = section("percentiles");
    for case in percentiles.cases {
        let mut data = case.data;
        assert_eq!(data.len(), case.n, "{}", case.name);
        data.sort_unstable();
        for (label, wanted) in case.nearest_rank {
            let percent = Ratio::parse_decimal(&label[1..]).expect("a percentage");
            let share = percent.div(Ratio::whole(100)).unwrap();
            let ranked = nearest_rank(&data, Quantile::from_ratio(share).unwrap());
            assert_eq!(
                ranked,
                Some((wanted.rank, &wanted.value)),
                "{} {label}",
                case.name
            );
        }
        let ratios: Vec<Ratio> = data.iter().map(|&v| Ratio::whole(v.into())).collect();
        let median = median_of_ratios(&ratios).expect("there are values");
        assert_close(median.as_f64(), case.median_even_average, 1e-12);
    }
}

#[test]
fn the_95th_of_a_hundred_is_the_95th() {
    let data: Vec<u32> = (1..=100).collect();
    assert_eq!(p95(&data), Some(&95));
}

#[derive(Deserialize)]
struct PooledSection {
    cases: Vec<PooledCase>,
}

#[derive(Deserialize)]
struct PooledCase {
    groups: Vec<Vec<u64>>,
    p50: Pooled,
    p95: Pooled,
    p99: Pooled,
}

#[derive(Deserialize)]
struct Pooled {
    pooled: u64,
    per_group: Vec<u64>,
    median_of_groups: f64,
}

#[test]
fn a_pooled_quantile_is_not_one_of_its_groups() {
    let pooled: PooledSection = section("pooled_quantiles");
    for mut case in pooled.cases {
        case.groups
            .iter_mut()
            .for_each(|group| group.sort_unstable());
        let mut all = case.groups.concat();
        all.sort_unstable();
        for (of, wanted) in [
            (p50::<u64> as fn(&[u64]) -> Option<&u64>, &case.p50),
            (p95, &case.p95),
            (p99, &case.p99),
        ] {
            assert_eq!(of(&all), Some(&wanted.pooled));
            let groups: Vec<u64> = case
                .groups
                .iter()
                .filter_map(|group| of(group).copied())
                .collect();
            assert_eq!(groups, wanted.per_group);
            let ratios: Vec<Ratio> = groups.iter().map(|&v| Ratio::whole(v.into())).collect();
            assert_close(
                median_of_ratios(&ratios).unwrap().as_f64(),
                wanted.median_of_groups,
                1e-12,
            );
        }
    }
}
