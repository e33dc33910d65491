//! Sans-IO protocol core: HTTP/1.1, SSE, exchange, load, session.

pub mod protocol;
