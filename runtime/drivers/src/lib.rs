//! Socket drivers: io_uring and epoll. The only crate with unsafe code.
//!
//! A driver performs what an [`assize_core::Session`] asks for and tells it what happened. Both
//! drivers keep the same rules, so that the same peer gives the same evidence up to times:
//!
//! - They own the clock (CLOCK_MONOTONIC). A receive is stamped after its bytes were copied out of
//!   the kernel and before they are looked at, so a stamp is never earlier than the bytes.
//! - Each send is stamped just before its system call, one by one, and again when it returned.
//! - They sleep until shortly before a deadline ([`assize_core::CellSpec::spin`]) and spin the rest.
//! - What fails on a socket is told to the session with its error number; only what stops the driver
//!   itself is a [`assize_core::DriverFailure`].
//!
//! It knows neither plan nor evidence.
#![cfg(target_os = "linux")]

mod care;
mod choose;
mod clock;
mod epoll;
mod lead;
mod socket;
mod upkeep;
mod uring;

pub use care::{CareRequest, Careful};
pub use choose::{DriverChoice, DriverRefusal, Probe, choose};
pub use epoll::EpollDriver;
pub use uring::UringDriver;

/// An operation of the driver itself failed.
fn failure(operation: &str, errno: rustix::io::Errno) -> assize_core::DriverFailure {
    assize_core::DriverFailure {
        operation: operation.to_owned(),
        errno: errno.raw_os_error(),
        message: errno.to_string(),
    }
}
