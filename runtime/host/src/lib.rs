//! Executes a plan: arms, cells, recorder, journal, seal.
//!
//! Host knows the plan and the evidence, and drives cells through a [`assize_core::Driver`], which
//! also owns the clock. It knows nothing of the study language and no statistics: it executes what
//! is written, records what happens, and decides nothing.

mod address;
mod claims;
pub mod facts;
mod mask;
mod recorder;
mod render;
mod run;
mod servers;
mod trust;
mod wall;

pub use address::Base;
pub use mask::{MaskingWriter, Secrets};
pub use recorder::{Backpressure, Recorder, RecorderEnd, SEGMENTS};
pub use render::{RenderError, RenderedCell, render_cell};
pub use run::{Execution, RunEvent, RunIdentity, RunOutcome, execute};
#[cfg(target_os = "linux")]
pub use servers::{Processes, Programs, keeper};
pub use servers::{Servers, StartServer, Started, Stopped, WorldFailure, sim_arguments};
pub use trust::tls_of_endpoint;
pub use wall::{SystemWall, VirtualWall, Wall};
