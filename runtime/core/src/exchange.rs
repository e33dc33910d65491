//! One request from its intended instant to its one terminal state.

use assize_units::{DurNs, MonoNs};

use crate::terminal::{Phase, Terminal};

/// What a session observed of one request: its claims, which the reader checks against the bytes.
///
/// Times are readings of the driver's clock; `None` means that it never came to it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Exchange {
    /// The plan's instant: origin + offset; in a closed load the origin.
    pub intended: Option<MonoNs>,
    /// The load machine handed it over.
    pub dispatched: Option<MonoNs>,
    /// It was let go.
    pub admitted: Option<MonoNs>,
    /// A new connection was begun for it.
    pub connect: Option<MonoNs>,
    /// That connection stood.
    pub connected: Option<MonoNs>,
    /// The TLS handshake on it was done.
    pub tls: Option<MonoNs>,
    /// The send was submitted.
    pub send_start: Option<MonoNs>,
    /// The kernel accepted the last byte.
    pub sent: Option<MonoNs>,
    /// The final response head was complete.
    pub head: Option<MonoNs>,
    /// The first event was complete.
    pub first_event: Option<MonoNs>,
    /// The last event was complete.
    pub last_event: Option<MonoNs>,
    /// The first `[DONE]` event was complete.
    pub done: Option<MonoNs>,
    /// The terminal state was reached.
    pub end: Option<MonoNs>,
    /// The status of the final response, 0 before its head was complete.
    pub status: u16,
    /// Stream events, `[DONE]` among them.
    pub events: u32,
    /// `[DONE]` events.
    pub done_events: u32,
    /// Receives that brought bytes, of plaintext where there is TLS.
    pub reads: u32,
    /// Bytes received for this request.
    pub received_bytes: u64,
    /// Bytes of the body after its framing was taken off.
    pub body_bytes: u64,
    /// Bytes that followed the end of the response.
    pub surplus_bytes: u64,
    /// Bytes of the request that the kernel accepted, before encryption: all when it took the last,
    /// else those that are known when the request ends.
    pub sent_bytes: u64,
    /// The terminal state; exactly one, and never changed.
    pub terminal: Option<Terminal>,
    /// How far it had come.
    pub phase: Option<Phase>,
    /// The system's error number, 0 where there is none.
    pub errno: i32,
    /// The connection that carried it.
    pub reuse: Option<Reuse>,
    /// How the peer ended the connection while the request was on it.
    pub peer_end: Option<PeerEnd>,
}

/// Which connection carried a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reuse {
    /// The connection's number in the cell.
    pub conn: u32,
    /// The request's number on it, from 0.
    pub nth: u32,
    /// How long it was idle before; none for its first request.
    pub idle: Option<DurNs>,
}

/// How a peer ended a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PeerEnd {
    /// An orderly end.
    Eof,
    /// A reset.
    Reset,
}

impl Exchange {
    /// How far the request has come.
    pub fn phase_now(&self, head_begun: bool) -> Phase {
        if self.terminal == Some(Terminal::Complete) {
            Phase::Ended
        } else if self.admitted.is_none() {
            Phase::Queued
        } else if self.done.is_some() {
            Phase::AfterFinish
        } else if self.head.is_some() {
            Phase::Stream
        } else if head_begun {
            Phase::Head
        } else if self.sent.is_some() {
            Phase::BeforeHead
        } else if self.reuse.is_some() {
            Phase::Send
        } else {
            Phase::Connect
        }
    }
}
