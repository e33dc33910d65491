//! Bodies of the fuzz targets as plain functions, and tests that need runtime and reader together.
//!
//! Each body takes the fuzzer's bytes and panics where a property does not hold. `docs/fuzzing.md`
//! says how they are run; `tests/replay.rs` runs them over the committed corpora on stable.

pub mod canary;
pub mod differential;
pub mod exchange;
pub mod http1;
mod reads;
pub mod session;
pub mod sse;
mod timing;
pub mod tls;

/// A target's name, which is that of its folder in `fuzz/corpus`, and its body.
pub type Target = (&'static str, fn(&[u8]));

/// The targets that must hold for any input.
pub const TARGETS: &[Target] = &[
    ("http1", http1::check),
    ("sse", sse::check),
    ("differential", differential::check),
    ("exchange", exchange::check),
    ("session", session::check),
    ("tls", tls::check),
];
