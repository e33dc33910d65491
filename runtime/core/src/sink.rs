//! Where a session says what happens.

use std::net::SocketAddr;

use assize_units::MonoNs;

use crate::session::{ConnId, SocketOp};
use crate::terminal::{Phase, Terminal};

/// The instant of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stamp {
    /// The driver's clock.
    pub mono: MonoNs,
    /// The kernel's receive stamp (CLOCK_REALTIME, ns), 0 where there is none.
    pub kernel_ns: u64,
}

impl From<MonoNs> for Stamp {
    fn from(mono: MonoNs) -> Self {
        Stamp { mono, kernel_ns: 0 }
    }
}

/// One thing that happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Entry<'a> {
    /// The cell's origin is set.
    CellStart {
        /// The origin.
        origin: MonoNs,
    },
    /// The load machine handed the request over.
    Dispatch {
        /// When it was due.
        intended: MonoNs,
    },
    /// The request may be sent.
    Admit,
    /// A connection is being made.
    Connect {
        /// To where.
        addr: SocketAddr,
    },
    /// The connection stands.
    Connected,
    /// The TLS layer is established, ended, failed or closed: JSON whose `event` says which.
    Tls {
        /// The text.
        facts: &'a str,
    },
    /// The send of the request was submitted.
    SendStart,
    /// The kernel accepted the last byte, or, right before the end of a request, some of its bytes.
    Sent {
        /// Bytes accepted.
        bytes: u64,
    },
    /// Bytes came; with TLS the plaintext of all records that the receive completed.
    Received(&'a [u8]),
    /// The peer ended its side; with TLS, said so by `close_notify`.
    Eof,
    /// An operation of the system failed.
    Failed {
        /// Which one.
        op: SocketOp,
        /// The error number.
        errno: i32,
    },
    /// The client closes the connection.
    Close,
    /// A deadline passed.
    Timer(TimerKind),
    /// The request ended.
    Terminal {
        /// How.
        terminal: Terminal,
        /// How far it had come.
        phase: Phase,
        /// The status of the response, 0 where no head was complete.
        status: u16,
        /// The system's error number, 0 where there is none.
        errno: i32,
    },
    /// A fact of the driver: a buffer shortage, a re-armed receive.
    Driver(&'a str),
    /// Wall clock minus monotonic clock, read between two readings of the monotonic one.
    Clock {
        /// CLOCK_REALTIME − CLOCK_MONOTONIC in ns.
        offset_ns: i64,
        /// The distance of the two readings in ns.
        bracket_ns: u64,
    },
    /// Every request has ended and every connection is closed.
    CellEnd,
}

/// A deadline of one request or of the cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum TimerKind {
    /// From admission to the end.
    Request,
    /// Connecting.
    Connect,
    /// Silence between events.
    Idle,
    /// The cell's drain.
    Drain,
}

/// Takes every entry of a cell in order; never blocks.
pub trait Sink {
    /// Takes one entry. `conn` and `req` are `None` where the entry belongs to none.
    fn put(&mut self, at: Stamp, conn: Option<ConnId>, req: Option<u32>, entry: Entry<'_>);

    /// Whether an entry could not be kept: the cell must end as invalid.
    fn overflowed(&self) -> bool;
}

/// Keeps nothing: for benches and tests of timing alone.
#[derive(Clone, Copy, Debug, Default)]
pub struct NullSink;

impl Sink for NullSink {
    fn put(&mut self, _: Stamp, _: Option<ConnId>, _: Option<u32>, _: Entry<'_>) {}

    fn overflowed(&self) -> bool {
        false
    }
}
