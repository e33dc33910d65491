//! Study to plan, as a pure function of the study and a [`World`].
//!
//! [`compile`] never fails: it returns a plan where there are no errors, and every diagnostic that
//! it found. The same meaning and the same inputs give the same bytes, on every machine; the order
//! of keys, comments and layout decide nothing. `docs/plan-format.md` has the definitions.

mod body;
mod cells;
mod checks;
mod compile;
mod context;
mod deal;
pub mod design;
pub mod draw;
mod eval;
pub mod freeze;
mod load;
mod merge;
mod panel;
mod plan;
mod preview;
mod program;
mod rules;
mod seed;
mod sets;
mod target;
mod world;

pub use compile::{Compiled, Output, compile};
pub use preview::{HypothesisPreview, Preview, SetPreview};
pub use world::{MemoryWorld, World, WorldError};
