//! `exchanges.jsonl`: one line a request, the runtime's claims.

use assize_units::MonoNs;
use serde::{Deserialize, Serialize};

use crate::terminal::{Phase, Terminal};

/// What the runtime claims of one request. Times are CLOCK_MONOTONIC in ns; `null` where the
/// request never came to it. The reader derives every field again from the wire log.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ExchangeRow {
    /// The request's place in the cell.
    pub req: u32,
    /// Its id, as sent.
    pub id: String,
    /// Its request class, a place in the plan's `requests`.
    pub class: u32,
    /// Its prompt, a place in the class's `bodies`.
    pub prompt: u32,
    /// Origin + offset; in a closed load the origin. `null` if the cell never had an origin.
    pub intended_ns: Option<MonoNs>,
    /// The load machine handed it over.
    pub dispatched_ns: Option<MonoNs>,
    /// It was let go.
    pub admitted_ns: Option<MonoNs>,
    /// A new connection was begun for it.
    pub connect_ns: Option<MonoNs>,
    /// That connection stood.
    pub connected_ns: Option<MonoNs>,
    /// The TLS handshake on it was done; `null` without TLS.
    #[serde(default)]
    pub tls_ns: Option<MonoNs>,
    /// The send was submitted.
    pub send_start_ns: Option<MonoNs>,
    /// The kernel accepted the last byte.
    pub sent_ns: Option<MonoNs>,
    /// The final head was complete.
    pub head_ns: Option<MonoNs>,
    /// The first event was complete.
    pub first_event_ns: Option<MonoNs>,
    /// The last event was complete.
    pub last_event_ns: Option<MonoNs>,
    /// The first `[DONE]` was complete.
    pub done_ns: Option<MonoNs>,
    /// The terminal state was reached.
    pub end_ns: Option<MonoNs>,
    /// The response's status, 0 before its head was complete.
    pub status: u16,
    /// Events, `[DONE]` among them.
    pub events: u32,
    /// `[DONE]` events.
    pub done_events: u32,
    /// Receives that brought bytes, of plaintext where there is TLS.
    pub reads: u32,
    /// Bytes received.
    pub received_bytes: u64,
    /// Bytes of the body without its framing.
    pub body_bytes: u64,
    /// Bytes after the end of the response.
    pub surplus_bytes: u64,
    /// Bytes of the request that the kernel accepted.
    pub sent_bytes: u64,
    /// The terminal state.
    pub terminal: Terminal,
    /// How far the request had come.
    pub phase: Phase,
    /// The system's error number, 0 where there is none.
    pub errno: i32,
    /// The connection that carried it.
    pub conn: Option<ConnFacts>,
    /// How the peer ended the connection while the request was on it.
    pub peer_end: Option<PeerClose>,
}

/// Which connection carried a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ConnFacts {
    /// The connection's number in the cell.
    pub n: u32,
    /// The request's number on it, from 0.
    pub nth: u32,
    /// How long it was idle before; `null` for its first request.
    pub idle_ns: Option<u64>,
}

/// How a peer ended a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PeerClose {
    /// An orderly end.
    Eof,
    /// A reset.
    Reset,
}

/// A line that is no row.
#[derive(Debug, thiserror::Error)]
#[error("exchanges.jsonl, line {line}: {source}")]
pub struct ExchangesError {
    /// The line, from 1.
    pub line: usize,
    /// What the JSON reader says.
    pub source: serde_json::Error,
}

impl ExchangeRow {
    /// The row as a line with its newline.
    pub fn to_line(&self) -> String {
        let mut line = serde_json::to_string(self).expect("plain data has a JSON form");
        line.push('\n');
        line
    }

    /// Reads every line.
    pub fn parse_all(text: &[u8]) -> Result<Vec<ExchangeRow>, ExchangesError> {
        text.split(|byte| *byte == b'\n')
            .enumerate()
            .filter(|(_, line)| !line.is_empty())
            .map(|(place, line)| {
                serde_json::from_slice(line).map_err(|source| ExchangesError {
                    line: place + 1,
                    source,
                })
            })
            .collect()
    }
}
