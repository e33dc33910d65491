//! Evidence to records, metrics, verdict and report, by a parser of its own.

pub mod metrics;
pub mod replay;
