//! The reader's own parsers: whole streams in, meaning out.

pub mod answer;
pub mod http;
pub mod openai;
pub mod sse;
