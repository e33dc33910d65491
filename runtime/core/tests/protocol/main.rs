//! The protocol layer against cases from outside, captures of real servers, and properties.
#![allow(clippy::disallowed_methods, reason = "tests read fixtures")]

mod captures;
mod case;
mod conformance;
mod drive;
mod limits;
mod openai;
mod props;
mod strictness;
