//! Executes a plan: arms, cells, recorder, journal, seal.
//!
//! Host knows the plan and the evidence, and drives cells through a [`assize_core::Driver`], which
//! also owns the clock. It knows nothing of the study language and no statistics: it executes what
//! is written, records what happens, and decides nothing.

mod servers;

pub use servers::{Servers, StartServer, Started, Stopped, WorldFailure};
