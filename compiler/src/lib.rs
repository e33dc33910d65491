//! Study to plan, as a pure function of the study and a World.

pub mod design;
pub mod draw;
