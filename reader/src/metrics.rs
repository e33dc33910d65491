//! Figures from times: the definitions of docs/metrics, and nothing that needs a parser.

mod timeline;

pub use timeline::{Origin, Timeline};
