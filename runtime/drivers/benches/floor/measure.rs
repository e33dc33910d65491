//! CPU time of this process and errors of stamps.
#![allow(
    clippy::disallowed_methods,
    reason = "a bench reads what the kernel says of the host"
)]

use std::ops::Range;

use rustix::time::{ClockId, clock_gettime};

use crate::peer::MARK;

/// What was kept of the receives: how many, and where asked for, how far each stamp is behind the
/// peer's.
#[derive(Debug, Default)]
pub struct Stamps {
    pub reads: u64,
    last: u64,
    /// Of each event, by the monotonic clock: its stamp, and how far that is behind.
    errors: Option<Vec<(u64, u64)>>,
}

impl Stamps {
    /// Keeps errors too, which costs.
    pub fn with_errors() -> Stamps {
        Stamps {
            errors: Some(Vec::with_capacity(1 << 20)),
            ..Stamps::default()
        }
    }

    /// One receive: its stamp and how much that is ahead of the peer's clock.
    pub fn keep(&mut self, stamp_ns: u64, ahead_ns: u64, bytes: &[u8]) {
        self.reads += 1;
        self.last = stamp_ns;
        let Some(errors) = &mut self.errors else {
            return;
        };
        let mut rest = bytes;
        while let Some(at) = rest.windows(MARK.len()).position(|part| part == MARK) {
            let digits = &rest[at + MARK.len()..];
            let Some(digits) = digits.get(..16) else {
                return;
            };
            let digits = std::str::from_utf8(digits).expect("digits");
            let written = u64::from_str_radix(digits, 16).expect("digits");
            let stamp = stamp_ns.wrapping_sub(ahead_ns);
            errors.push((stamp, stamp.saturating_sub(written)));
            rest = &rest[at + MARK.len()..];
        }
    }

    /// The p50 and the p99 of the errors of what was stamped in a window, in µs.
    pub fn error_us(&self, window_ns: Range<u64>) -> (f64, f64) {
        let errors = self.errors.as_ref().expect("errors were kept").iter();
        let within = errors.filter(|(stamp, _)| window_ns.contains(stamp));
        let mut errors: Vec<u64> = within.map(|(_, error)| *error).collect();
        errors.sort_unstable();
        (quantile_us(&errors, 50), quantile_us(&errors, 99))
    }
}

/// Nearest rank.
pub fn quantile_us(sorted_ns: &[u64], percent: usize) -> f64 {
    let rank = (sorted_ns.len() * percent).div_ceil(100).max(1);
    sorted_ns
        .get(rank - 1)
        .map_or(f64::NAN, |ns| *ns as f64 / 1000.0)
}

/// CPU time of all threads of this process, ns: there is one, and the recorder's where it records.
pub fn cpu_ns() -> u64 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// How often this thread has slept.
pub fn sleeps() -> u64 {
    let status = std::fs::read_to_string("/proc/thread-self/status").unwrap_or_default();
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"));
    line.and_then(|count| count.trim().parse().ok())
        .unwrap_or(0)
}

/// Median, least and most.
pub fn spread(mut values: Vec<f64>) -> (f64, f64, f64) {
    values.sort_by(f64::total_cmp);
    (
        values[values.len() / 2],
        values[0],
        values[values.len() - 1],
    )
}
