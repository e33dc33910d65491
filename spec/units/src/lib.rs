//! Time, rate and size newtypes and exact rationals: the leaf that every crate shares.
//!
//! Every duration and instant is a whole number of nanoseconds. An instant is a reading of one
//! monotonic clock ([`MonoNs`]); an offset is a place in a frozen schedule ([`OffsetNs`]); the
//! two meet in [`MonoNs::at`], where a cell's origin is added. Formulas are exact: [`Ratio`] is a
//! rational of 128-bit integers whose arithmetic is checked, never rounded.

mod display;
mod ratio;
mod time;

pub use display::{format_bytes, format_duration, format_rate};
pub use ratio::{Ratio, RatioError};
pub use time::{DurNs, MonoNs, OffsetNs};

/// Nanoseconds in a second.
pub const NS_PER_S: u64 = 1_000_000_000;

/// A size in bytes.
#[derive(
    Clone,
    Copy,
    Debug,
    Default,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    serde::Serialize,
    serde::Deserialize,
)]
#[serde(transparent)]
pub struct Bytes(pub u64);

/// An exact rate in events a second.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Rate(pub Ratio);

impl Rate {
    /// `count` events in `interval`, exact; `None` for an empty interval.
    pub fn per_interval(count: u64, interval: DurNs) -> Option<Rate> {
        let numerator = i128::from(count) * i128::from(NS_PER_S);
        Ratio::new(numerator, i128::from(interval.0)).ok().map(Rate)
    }

    /// Events a second, as the nearest floating-point number: for display alone.
    pub fn as_f64(self) -> f64 {
        self.0.as_f64()
    }
}
