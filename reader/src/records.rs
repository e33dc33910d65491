//! One record a planned request: the reader's outcome and every time, which replay has shown.

use assize_evidence::{Phase, Terminal};
use assize_units::{Bytes, DurNs};

use crate::metrics::Timeline;
use crate::replay::openai::{Finish, Invalid};

/// What became of a request. It has one author: the reader.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Outcome {
    /// A valid completion.
    Valid,
    /// The exchange did not complete, by its framing alone.
    Terminal(Terminal),
    /// It completed, and its meaning is no valid completion.
    Invalid(Invalid),
}

impl Outcome {
    /// Whether it is a valid completion.
    pub fn is_valid(self) -> bool {
        self == Outcome::Valid
    }

    /// The name used in records and reports.
    pub fn name(self) -> &'static str {
        match self {
            Outcome::Valid => "valid",
            Outcome::Terminal(terminal) => terminal.word(),
            Outcome::Invalid(invalid) => invalid.name(),
        }
    }
}

/// What one request's events were, beside their times.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EventCounts {
    /// Events, `[DONE]` included.
    pub events: u64,
    /// Token-bearing events known to bear several tokens, by their token ids.
    pub multi_token: u64,
    /// Events completed by the same receive as the event before them.
    pub coalesced: u64,
    /// Comment lines.
    pub comments: u64,
}

/// What is known of the connection that a request went over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConnectionUse {
    /// The connection's number in its cell.
    pub conn: u32,
    /// The request's number on it, from 0.
    pub nth: u32,
    /// How long it had been idle before.
    pub idle: Option<DurNs>,
    /// Bytes that the kernel accepted.
    pub sent: Bytes,
    /// Bytes received for this request.
    pub received: Bytes,
    /// The kernel's error number, where there was one.
    pub errno: Option<i32>,
}

/// One planned request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// Its place in the cell, from 0.
    pub index: u32,
    /// Its class in the plan.
    pub class: u32,
    /// What became of it.
    pub outcome: Outcome,
    /// How far it had come.
    pub phase: Phase,
    /// What is wrong, for a person; none where it is valid.
    pub why: Option<&'static str>,
    /// The HTTP status, where a head came.
    pub status: Option<u16>,
    /// Its times.
    pub times: Timeline,
    /// What its events were.
    pub events: EventCounts,
    /// Output tokens by usage.
    pub usage_tokens: Option<u64>,
    /// Output tokens by token ids.
    pub id_tokens: Option<u64>,
    /// The finish reason of each choice that has one.
    pub finishes: Vec<Finish>,
    /// Its connection, where it had one.
    pub connection: Option<ConnectionUse>,
}

impl Record {
    /// Whether the failure is consistent with a stale keep-alive reuse: the connection had served
    /// a request before, and ended by EOF or reset before a byte of the answer. It is a likeness,
    /// never a cause.
    pub fn is_like_stale_reuse(&self) -> bool {
        let ended = matches!(
            self.outcome,
            Outcome::Terminal(Terminal::Reset | Terminal::Disconnected)
        );
        let reused = self
            .connection
            .is_some_and(|connection| connection.nth > 0 && connection.received == Bytes(0));
        ended && reused
    }
}
