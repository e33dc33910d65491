//! The wall clock: a label on journal lines, and the other half of a clock bracket.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Tells the wall time.
pub trait Wall {
    /// Nanoseconds since 1970, UTC.
    fn unix_ns(&self) -> u64;

    /// RFC 3339, UTC, to the millisecond.
    fn label(&self) -> String {
        let time = UNIX_EPOCH + Duration::from_nanos(self.unix_ns());
        humantime::format_rfc3339_millis(time).to_string()
    }
}

/// The system's wall clock.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemWall;

impl Wall for SystemWall {
    #[expect(
        clippy::disallowed_methods,
        reason = "host alone reads the wall clock, and only as a label"
    )]
    fn unix_ns(&self) -> u64 {
        SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .map_or(0, |since| since.as_nanos() as u64)
    }
}

/// A wall clock that stands still: virtual time has no date.
#[derive(Clone, Copy, Debug, Default)]
pub struct VirtualWall;

impl Wall for VirtualWall {
    fn unix_ns(&self) -> u64 {
        0
    }
}
