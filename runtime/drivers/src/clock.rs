//! The two clocks, and waiting for one of them.

use assize_units::{DurNs, MonoNs};
use rustix::io::Errno;
use rustix::time::{ClockId, Timespec, clock_gettime};

const NS_PER_S: u64 = 1_000_000_000;

/// CLOCK_MONOTONIC.
pub(crate) fn now() -> MonoNs {
    MonoNs(read(ClockId::Monotonic))
}

/// Returns at or after `until`.
pub(crate) fn sleep_until(until: MonoNs) {
    let request = timespec(until.0);
    while now() < until {
        match rustix::thread::clock_nanosleep_absolute(ClockId::Monotonic, &request) {
            Ok(()) | Err(Errno::INTR) => {}
            Err(_) => std::hint::spin_loop(),
        }
    }
}

/// The wall clock, read between two readings of the monotonic one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Bracket {
    /// When it was taken.
    pub at: MonoNs,
    /// CLOCK_REALTIME − CLOCK_MONOTONIC, by the middle of the two readings.
    pub offset_ns: i64,
    /// The distance of the two readings: the offset is within half of it.
    pub width: DurNs,
}

/// The narrowest of a few brackets, so that a preemption between two readings does not widen it.
pub(crate) fn bracket() -> Bracket {
    const TRIES: usize = 5;
    let mut best = bracket_once();
    for _ in 1..TRIES {
        let next = bracket_once();
        if next.width < best.width {
            best = next;
        }
    }
    best
}

fn bracket_once() -> Bracket {
    let before = now();
    let wall = read(ClockId::Realtime);
    let after = now();
    let width = after.since(before);
    let middle = before.0 + width.0 / 2;
    Bracket {
        at: after,
        offset_ns: wall.wrapping_sub(middle) as i64,
        width,
    }
}

/// A span of time as the system takes it.
pub(crate) fn timespec(ns: u64) -> Timespec {
    Timespec {
        tv_sec: (ns / NS_PER_S) as i64,
        tv_nsec: (ns % NS_PER_S) as i64,
    }
}

fn read(clock: ClockId) -> u64 {
    let time = clock_gettime(clock);
    time.tv_sec as u64 * NS_PER_S + time.tv_nsec as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sleeping_never_returns_early() {
        for ahead in [0, 1, 50_000, 2_000_000] {
            let until = now().after(DurNs(ahead));
            sleep_until(until);
            assert!(now() >= until);
        }
    }

    #[test]
    fn a_bracket_holds_the_wall_clock() {
        let before = read(ClockId::Realtime);
        let bracket = bracket();
        let after = read(ClockId::Realtime);
        let wall = bracket.at.0.wrapping_add_signed(bracket.offset_ns);
        assert!(before <= wall + bracket.width.0 && wall <= after + bracket.width.0);
    }
}
