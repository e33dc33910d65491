//! Reading the fixture.

use assize_stats::Probability;
use num_bigint::BigInt;
use serde::de::DeserializeOwned;

/// The section of the fixture with this name.
pub fn section<T: DeserializeOwned>(name: &str) -> T {
    let text = include_str!("../fixtures/stats_oracle.json");
    let mut whole: serde_json::Map<String, serde_json::Value> =
        serde_json::from_str(text).expect("the fixture is JSON");
    serde_json::from_value(whole.remove(name).expect("the section exists"))
        .unwrap_or_else(|error| panic!("{name}: {error}"))
}

/// `11/1024` as an exact probability.
pub fn fraction(text: &str) -> Probability {
    let (num, den) = text.split_once('/').expect("a fraction");
    let whole = |part: &str| part.parse::<BigInt>().expect("a whole number");
    Probability::new(whole(num), whole(den)).expect("a probability")
}

/// Asserts a relative difference of at most `relative`.
#[track_caller]
pub fn assert_close(got: f64, want: f64, relative: f64) {
    let allowed = want.abs().max(f64::MIN_POSITIVE) * relative;
    assert!(
        (got - want).abs() <= allowed,
        "got {got:e}, want {want:e} within {relative:e}"
    );
}
