//! What a person sees. Nothing here decides anything.

pub mod bench;
pub mod consent;
pub mod progress;
pub mod run;
pub mod study;
pub mod table;
pub mod verify;
