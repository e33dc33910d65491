//! The oracle's values (scipy and statsmodels, and exact rationals) against this crate.
//!
//! `fixtures/stats_oracle.json` names the versions it was made with and its own tolerances.

#[path = "oracle/decisions.rs"]
mod decisions;
#[path = "oracle/estimates.rs"]
mod estimates;
#[path = "oracle/fixture.rs"]
mod fixture;
#[path = "oracle/percentiles.rs"]
mod percentiles;
