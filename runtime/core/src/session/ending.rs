//! How requests, connections and the cell end.

use assize_units::MonoNs;

use super::connection::State;
use super::{ConnId, Output, Session, SocketOp};
use crate::cell::ConnectionPolicy;
use crate::protocol::http1::{ErrorGroup, Http1Error};
use crate::sink::{Entry, Sink, Stamp};
use crate::terminal::{Phase, Terminal};

impl Session {
    /// The response's framing is complete.
    pub(super) fn complete(
        &mut self,
        at: Stamp,
        conn: ConnId,
        req: u32,
        keep: bool,
        sink: &mut dyn Sink,
    ) {
        let head = self.conns.get_mut(conn).head;
        let terminal = match head {
            Some(head) if head.redirect => Terminal::Redirect,
            Some(head) if head.encoded => Terminal::Encoded,
            _ => Terminal::Complete,
        };
        self.finish(at, req, terminal, 0, sink);
        if keep && self.spec.connections != ConnectionPolicy::Fresh {
            self.conns.set_idle(conn, at.mono);
        } else {
            self.close(at.mono, conn, sink);
        }
    }

    /// Ends a request short of a complete response, and its connection with it.
    pub(super) fn fail(
        &mut self,
        at: Stamp,
        req: u32,
        terminal: Terminal,
        errno: i32,
        sink: &mut dyn Sink,
    ) {
        let conn = self.conns.of_request(req);
        let broken_send = std::mem::take(&mut self.exchanges[req as usize].errno);
        let errno = if errno == 0 { broken_send } else { errno };
        self.finish(at, req, terminal, errno, sink);
        if let Some(conn) = conn {
            self.close(at.mono, conn, sink);
        }
    }

    fn finish(&mut self, at: Stamp, req: u32, terminal: Terminal, errno: i32, sink: &mut dyn Sink) {
        let conn = self.conns.of_request(req);
        self.count_partly_sent(at, conn, req, sink);
        let head_begun = conn.is_some_and(|conn| self.conns.get_mut(conn).parser.started());
        let exchange = &mut self.exchanges[req as usize];
        debug_assert!(
            exchange.terminal.is_none(),
            "a request has exactly one terminal state"
        );
        exchange.phase = Some(match terminal {
            Terminal::Complete | Terminal::Redirect | Terminal::Encoded => Phase::Ended,
            _ => exchange.phase_now(head_begun),
        });
        exchange.terminal = Some(terminal);
        exchange.end = Some(at.mono);
        exchange.errno = errno;
        let entry = Entry::Terminal {
            terminal,
            phase: exchange.phase.expect("set above"),
            status: exchange.status,
            errno,
        };
        let was_admitted = exchange.admitted.is_some();
        sink.put(at, conn, Some(req), entry);
        self.unfinished -= 1;
        self.counts.ended += 1;
        self.counts.failed += u64::from(terminal != Terminal::Complete);
        if was_admitted {
            self.load.release();
        }
    }

    /// Says how much of a request the kernel is known to have accepted, where that is not all of it.
    fn count_partly_sent(
        &mut self,
        at: Stamp,
        conn: Option<ConnId>,
        req: u32,
        sink: &mut dyn Sink,
    ) {
        let sending = conn.and_then(|conn| self.conns.get_mut(conn).sending.as_ref());
        let bytes = sending.map_or(0, |sending| {
            sending.accepted_of_request(self.spec.requests[req as usize].wire_len())
        });
        if bytes > 0 {
            self.exchanges[req as usize].sent_bytes = bytes;
            sink.put(at, conn, Some(req), Entry::Sent { bytes });
        }
    }

    pub(super) fn close(&mut self, now: MonoNs, conn: ConnId, sink: &mut dyn Sink) {
        let Some(carried) = self.conns.request_of(conn) else {
            return;
        };
        let now = self.conns.not_before(conn, now);
        let connection = self.conns.get_mut(conn);
        let preopening = carried.is_none() && connection.state == State::Connecting;
        let mut farewell = None;
        if let Some(mut layer) = connection.tls.take() {
            // Nothing may come between the parts of a send.
            if connection.sending.is_none() {
                farewell = layer.farewell();
            }
            let facts = layer.close_facts();
            sink.put(now.into(), Some(conn), None, Entry::Tls { facts: &facts });
        }
        sink.put(now.into(), Some(conn), None, Entry::Close);
        self.conns.begin_close(conn);
        let queue = match farewell {
            None => &mut self.outputs,
            Some(_) => &mut self.farewells,
        };
        queue.push_back(Output::Close { conn, farewell });
        if preopening {
            self.preopened(now, sink);
        }
    }

    pub(super) fn close_all(&mut self, now: MonoNs, sink: &mut dyn Sink) {
        for conn in self.conns.live() {
            self.close(now, conn, sink);
        }
    }

    pub(super) fn end_if_due(&mut self, now: MonoNs, sink: &mut dyn Sink) {
        if self.ended || self.unfinished > 0 || self.preopening > 0 {
            return;
        }
        if !self.leaving {
            self.leaving = true;
            self.close_all(now, sink);
        }
        if self.conns.open() == 0 && self.outputs.is_empty() {
            self.ended = true;
            let now = now.max(self.conns.latest());
            sink.put(now.into(), None, None, Entry::CellEnd);
        }
    }
}

/// The terminal state of a response that broke.
pub(super) fn broken_response(error: Http1Error) -> Terminal {
    match error.group() {
        ErrorGroup::MalformedHead => Terminal::MalformedHead,
        ErrorGroup::MalformedFraming => Terminal::MalformedFraming,
        ErrorGroup::TooLarge => Terminal::TooLarge,
        ErrorGroup::EofBeforeResponse => Terminal::Disconnected,
        ErrorGroup::Truncated if error == Http1Error::EofInHead => Terminal::Disconnected,
        ErrorGroup::Truncated => Terminal::Truncated,
    }
}

/// Whether an error number says that the peer is gone.
pub(super) fn connection_broke(errno: i32) -> bool {
    matches!(errno, errno_of::ECONNRESET | errno_of::EPIPE)
}

/// The terminal state of a failed operation.
pub(super) fn system_failure(op: SocketOp, errno: i32) -> Terminal {
    use errno_of::*;
    match errno {
        EMFILE | ENFILE | ENOBUFS | ENOMEM | EADDRNOTAVAIL | EADDRINUSE | EACCES | EPERM => {
            Terminal::ClientFault
        }
        ECONNRESET | EPIPE => Terminal::Reset,
        ETIMEDOUT if op == SocketOp::Connect => Terminal::ConnectTimeout,
        _ if op == SocketOp::Connect => Terminal::Refused,
        _ => Terminal::Reset,
    }
}

/// Error numbers of Linux that a terminal state tells apart. They are part of the evidence format,
/// so they are spelt here and not taken from the system that happens to compile this.
mod errno_of {
    pub const EPERM: i32 = 1;
    pub const ENOMEM: i32 = 12;
    pub const EACCES: i32 = 13;
    pub const ENFILE: i32 = 23;
    pub const EMFILE: i32 = 24;
    pub const EPIPE: i32 = 32;
    pub const EADDRINUSE: i32 = 98;
    pub const EADDRNOTAVAIL: i32 = 99;
    pub const ECONNRESET: i32 = 104;
    pub const ENOBUFS: i32 = 105;
    pub const ETIMEDOUT: i32 = 110;
}
