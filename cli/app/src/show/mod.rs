//! What a person sees. Nothing here decides anything.

pub mod bench;
pub mod calibrate;
pub mod consent;
pub mod doctor;
pub mod progress;
pub mod run;
pub mod study;
pub mod table;
pub mod verify;
pub mod wrapped;
