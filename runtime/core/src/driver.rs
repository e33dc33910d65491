//! What performs a session's outputs.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use assize_units::MonoNs;

use crate::session::Session;
use crate::sink::Sink;

/// Performs cells on sockets, or on a virtual clock. It owns `now`: nobody else reads a clock.
pub trait Driver {
    /// What it is and what it found: goes into the evidence.
    fn facts(&self) -> DriverFacts;

    /// The monotonic clock.
    fn now(&self) -> MonoNs;

    /// Returns at or after `until`. Virtual time passes without waiting.
    fn sleep_until(&mut self, until: MonoNs);

    /// Runs a session from its start until [`Session::is_done`].
    ///
    /// Each completion is handed over with one reading of the clock for each batch; each output is
    /// polled with a reading of its own. When `control` asks to stop, or the sink overflows, the
    /// session is aborted and run to its end.
    fn run_cell(
        &mut self,
        session: &mut Session,
        sink: &mut dyn Sink,
        control: &RunControl,
    ) -> Result<(), DriverFailure>;
}

/// What a driver is, and what it found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DriverFacts {
    /// `io_uring`, `epoll` or `virtual`.
    pub name: String,
    /// Why this one, in words.
    pub why: String,
    /// Optional features and settings, each with what was obtained.
    pub features: Vec<(String, String)>,
}

/// A driver could not go on. Measured failures are data and never come here.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{operation}: {message} (errno {errno})")]
pub struct DriverFailure {
    /// The operation of the system that failed.
    pub operation: String,
    /// The error number, 0 where there is none.
    pub errno: i32,
    /// What the system says of it.
    pub message: String,
}

/// What the world outside may say to, and see of, a running cell.
#[derive(Debug, Default)]
pub struct RunControl {
    /// Set to end the cell: what is unfinished becomes a client fault.
    pub stop: AtomicBool,
    /// What has happened so far, for a display.
    pub progress: Progress,
}

impl RunControl {
    /// Whether the cell is asked to end.
    pub fn stopping(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }
}

/// Counts that a display may read at any time.
#[derive(Debug, Default)]
pub struct Progress {
    /// Requests dispatched.
    pub dispatched: AtomicU64,
    /// Requests that ended.
    pub ended: AtomicU64,
    /// Requests that ended other than complete.
    pub failed: AtomicU64,
    /// Stream events.
    pub events: AtomicU64,
}
