//! One module a verb: typed options in, data out. Nothing here prints.
//!
//! Verbs compose the crates that may not know one another: the compiler makes a plan, host runs it
//! with a driver and servers, the reader decides. What goes wrong is a [`Problem`] with a code and
//! an exit status, or a list of diagnostics.

pub mod bench;
pub mod calibrate;
pub mod consent;
pub mod demo;
pub mod doctor;
pub mod plans;
pub mod report;
pub mod run;
pub mod sim;
pub mod study;
pub mod verify;

mod asking;
mod in_process;
mod problem;

pub use in_process::{InProcess, engine_config, run_in_virtual_time};
pub use problem::{Problem, Status};

/// The tool and its version, as it stands in every artefact.
pub const TOOL: &str = concat!("assize ", env!("CARGO_PKG_VERSION"));
