//! The servers of arms: one at a time, started for a unit and stopped for certain.
//!
//! [`Processes`] starts real ones. Between the runner and a server stands a [`keeper`]: a small
//! process that inherits every orphan of the server and ends them all when it is told to, or when
//! the runner is gone, however that came about.

#[cfg(target_os = "linux")]
pub mod keeper;
#[cfg(target_os = "linux")]
mod launch;
#[cfg(target_os = "linux")]
mod lines;
#[cfg(target_os = "linux")]
mod log;
#[cfg(target_os = "linux")]
mod port;
#[cfg(target_os = "linux")]
mod processes;
#[cfg(target_os = "linux")]
mod protocol;
#[cfg(target_os = "linux")]
mod ready;
#[cfg(target_os = "linux")]
mod running;
mod sim;
#[cfg(target_os = "linux")]
mod tree;

#[cfg(target_os = "linux")]
pub use processes::{Processes, Programs};
pub use sim::sim_arguments;

use std::io::Write;

use assize_codes::Code;
use assize_plan::ServerDef;

/// Starts and stops the servers of arms. Processes on a real host; engines in process under the
/// virtual driver.
pub trait Servers {
    /// Starts a server and returns when it is ready.
    fn start(&mut self, server: StartServer<'_>) -> Result<Started, WorldFailure>;

    /// Whether the running server has ended by itself; never waits.
    fn check(&mut self) -> Result<(), WorldFailure>;

    /// Stops the running server and everything that it started; returns when they are gone.
    fn stop(&mut self) -> Result<Stopped, WorldFailure>;
}

/// What is to be started.
pub struct StartServer<'a> {
    /// The arm's name.
    pub arm: &'a str,
    /// What to start.
    pub def: &'a ServerDef,
    /// Takes what the server prints.
    pub log: Box<dyn Write + Send>,
}

/// A server that is ready.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Started {
    /// Its process id, 0 in process.
    pub pid: u32,
    /// The argument vector that was run, or what stands for it.
    pub command: Vec<String>,
}

/// A server that is gone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stopped {
    /// How it ended, in words: `exit status 0`, `signal 15`, and what it left behind.
    pub status: String,
    /// Whether it had to be killed, since it did not end in time.
    pub killed: bool,
}

/// A failure of the world that belongs to no request.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{operation} {subject}: {message}")]
pub struct WorldFailure {
    /// Its code.
    pub code: Code,
    /// What was being done.
    pub operation: String,
    /// To what.
    pub subject: String,
    /// What the system says.
    pub message: String,
    /// The system's error number, 0 where there is none.
    pub errno: i32,
}

impl WorldFailure {
    /// A failure of the system.
    pub fn io(
        code: Code,
        operation: &str,
        subject: impl Into<String>,
        error: &std::io::Error,
    ) -> WorldFailure {
        WorldFailure {
            code,
            operation: operation.to_owned(),
            subject: subject.into(),
            message: error.to_string(),
            errno: error.raw_os_error().unwrap_or(0),
        }
    }
}
