//! Instants, durations and offsets in whole nanoseconds.

use serde::{Deserialize, Serialize};

/// An instant: nanoseconds of one monotonic clock, of which only differences mean anything.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct MonoNs(pub u64);

/// A duration in nanoseconds; never negative.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct DurNs(pub u64);

/// A place in a frozen schedule: nanoseconds after the origin of its cell.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct OffsetNs(pub u64);

impl MonoNs {
    /// The instant of `offset` in a cell whose origin is `self`; saturates at the clock's end.
    pub fn at(self, offset: OffsetNs) -> MonoNs {
        MonoNs(self.0.saturating_add(offset.0))
    }

    /// The instant `by` later; saturates at the clock's end.
    pub fn after(self, by: DurNs) -> MonoNs {
        MonoNs(self.0.saturating_add(by.0))
    }

    /// The instant `by` earlier; saturates at the clock's beginning.
    pub fn before(self, by: DurNs) -> MonoNs {
        MonoNs(self.0.saturating_sub(by.0))
    }

    /// The time since `earlier`; zero where `earlier` is later.
    pub fn since(self, earlier: MonoNs) -> DurNs {
        DurNs(self.0.saturating_sub(earlier.0))
    }

    /// The time since `earlier`, or `None` where the order is broken.
    pub fn checked_since(self, earlier: MonoNs) -> Option<DurNs> {
        self.0.checked_sub(earlier.0).map(DurNs)
    }
}

impl DurNs {
    /// No time at all.
    pub const ZERO: DurNs = DurNs(0);

    /// Whole microseconds.
    pub const fn from_us(us: u64) -> DurNs {
        DurNs(us * 1_000)
    }

    /// Whole milliseconds.
    pub const fn from_ms(ms: u64) -> DurNs {
        DurNs(ms * 1_000_000)
    }

    /// Whole seconds.
    pub const fn from_s(s: u64) -> DurNs {
        DurNs(s * crate::NS_PER_S)
    }

    /// Seconds, as the nearest floating-point number: for display alone.
    pub fn as_s_f64(self) -> f64 {
        self.0 as f64 / 1e9
    }
}

impl From<DurNs> for std::time::Duration {
    fn from(value: DurNs) -> Self {
        std::time::Duration::from_nanos(value.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_offset_lands_after_its_origin() {
        assert_eq!(MonoNs(5).at(OffsetNs(7)), MonoNs(12));
        assert_eq!(MonoNs(u64::MAX).at(OffsetNs(1)), MonoNs(u64::MAX));
    }

    #[test]
    fn a_broken_order_is_told_apart_from_zero() {
        assert_eq!(MonoNs(5).since(MonoNs(9)), DurNs::ZERO);
        assert_eq!(MonoNs(5).checked_since(MonoNs(9)), None);
        assert_eq!(MonoNs(9).checked_since(MonoNs(5)), Some(DurNs(4)));
    }
}
