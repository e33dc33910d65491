//! Pure statistics, integers first.
//!
//! The block is the replicate; each matched block gives one effect. Counts, ranks, effects and
//! binomial tails are exact (integers and rationals); what rests on a transcendental function is
//! an `f64` and says so. Nothing here reads a clock, a file or an ambient source of randomness:
//! every seed is an argument. `docs/statistics.md` has the definitions and their sources.

pub mod arrivals;
pub mod binomial;
pub mod bootstrap;
pub mod clopper_pearson;
pub mod descriptive;
pub mod design;
pub mod effect;
mod error;
mod float_tail;
pub mod hodges_lehmann;
pub mod holm;
mod kolmogorov;
pub mod mean_bound;
pub mod order_statistic;
pub mod percentile;
pub mod permutation;
mod probability;
pub mod sign;
pub mod wilcoxon;

pub use error::StatsError;
pub use probability::Probability;

/// The reference page, whose examples are run as tests.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/statistics.md")]
struct Reference;
