//! Evidence to records, metrics, verdict and report, by a parser of its own.
//!
//! [`verify::verify`] says whether evidence holds; [`study::analyze`] verifies, summarizes and
//! judges; [`report::Report`] is the data that every rendering shows. Nothing is shared with the
//! runtime but the formats of the plan and of the evidence.

pub mod metrics;
pub mod page;
pub mod plot;
pub mod records;
pub mod replay;
pub mod report;
mod shown;
pub mod study;
pub mod text;
pub mod verdict;
pub mod verify;
