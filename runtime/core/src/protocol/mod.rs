//! The bytes of one answer: HTTP/1.1 framing, server-sent events, and what an OpenAI event says.
//!
//! Each part is sans-IO, incremental and bounded in memory; any split of the bytes gives the same
//! result, and no input panics. The strictness of each is decided once, in `docs/protocol.md`.
//!
//! While a cell is measured only [`http1`] and [`sse::Scanner`] run. [`sse::decode`] and
//! [`openai`] interpret, and are for what happens outside a measured window.

pub mod http1;
pub mod openai;
pub mod sse;
