//! One cell as a state machine: composes load, connections and exchanges. The one thing that a
//! driver drives.

mod connection;
mod deadlines;

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use assize_units::{DurNs, MonoNs};

use crate::cell::{CellSpec, ConnectionPolicy};
use crate::driver::Progress;
use crate::exchange::{Exchange, PeerEnd};
use crate::load::{Load, intended};
use crate::protocol::http1::{ErrorGroup, Event, Http1Error};
use crate::sink::{Entry, Sink, Stamp, TimerKind};
use crate::terminal::{Phase, Terminal};
use connection::{Connections, State};
use deadlines::Deadlines;

/// From the start of a cell (or its last preopened connection) to its origin, so that the first
/// request can be on time.
pub const ORIGIN_LEAD: DurNs = DurNs::from_ms(2);

/// Dispatches without an output that one call may make, so that a large closed load does not keep
/// a driver from its completions.
const DISPATCH_BATCH: u32 = 64;

/// A connection. The slot is dense and used again; the serial is unique in the cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ConnId {
    /// A place in a table of at most as many connections as are open at once.
    pub slot: u32,
    /// The connection's number in the cell.
    pub serial: u32,
}

/// What a driver must do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Output {
    /// Begin a connection and receive on it until it is closed. Answer: `handle_connected` or
    /// `handle_failed`.
    Connect {
        /// The new connection.
        conn: ConnId,
        /// To where.
        addr: SocketAddr,
    },
    /// Send the head and the body of a request ([`Session::request_bytes`]). Answers:
    /// `handle_send_started` when it is submitted, then `handle_sent` or `handle_failed`.
    Send {
        /// On which connection.
        conn: ConnId,
        /// Which request.
        req: u32,
    },
    /// Stop all operations of the connection and close it. Answer: `handle_closed`; nothing else
    /// of this connection counts any more.
    Close {
        /// Which connection.
        conn: ConnId,
    },
}

/// An operation of the system on a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SocketOp {
    /// Making a socket or connecting it.
    Connect,
    /// Sending.
    Send,
    /// Receiving.
    Receive,
}

/// One cell as a state machine.
///
/// After a `handle_*` call a driver polls [`Session::poll_output`] until it yields nothing, at once
/// where [`Session::has_output`] says so and otherwise at the end of its batch of completions. Then
/// it waits until [`Session::poll_timeout`] at the latest.
#[derive(Debug)]
pub struct Session {
    spec: Arc<CellSpec>,
    load: Load,
    exchanges: Vec<Exchange>,
    conns: Connections,
    deadlines: Deadlines,
    outputs: VecDeque<Output>,
    origin: Option<MonoNs>,
    last_admitted: Option<MonoNs>,
    unfinished: u32,
    preopening: u32,
    counts: Counts,
    ended: bool,
}

/// What has happened so far.
#[derive(Debug, Default)]
struct Counts {
    dispatched: u64,
    ended: u64,
    failed: u64,
    events: u64,
}

impl Session {
    /// A session that has not started. Everything it will need in number is reserved here.
    pub fn new(spec: Arc<CellSpec>) -> Session {
        let total = u32::try_from(spec.requests.len()).expect("fewer than 2^32 requests in a cell");
        Session {
            load: Load::new(&spec.load, total),
            exchanges: vec![Exchange::default(); spec.requests.len()],
            conns: Connections::new(spec.limits, spec.requests.len()),
            deadlines: Deadlines::new(spec.requests.len()),
            outputs: VecDeque::with_capacity(256),
            origin: None,
            last_admitted: None,
            unfinished: total,
            preopening: 0,
            counts: Counts::default(),
            ended: false,
            spec,
        }
    }

    /// Begins the cell: opens what is to be preopened, then sets the origin.
    pub fn start(&mut self, now: MonoNs, sink: &mut dyn Sink) {
        if let ConnectionPolicy::Preopened { n } = self.spec.connections {
            for target in 0..self.spec.targets.len() as u32 {
                for _ in 0..n {
                    self.preopening += 1;
                    self.connect(now, target, None, sink);
                }
            }
        }
        if self.preopening == 0 {
            self.set_origin(now, sink);
        }
    }

    /// The next thing to do at `now`, or nothing. Dispatches and admits what is due.
    pub fn poll_output(&mut self, now: MonoNs, sink: &mut dyn Sink) -> Option<Output> {
        for _ in 0..=DISPATCH_BATCH {
            if let Some(output) = self.next_output() {
                return Some(output);
            }
            let origin = self.origin?;
            if let Some(req) = self.load.admit() {
                self.admit(now, req, sink);
            } else if let Some(req) = self.load.dispatch(&self.spec.load, origin, now) {
                let due = intended(&self.spec.load, origin, req);
                let exchange = &mut self.exchanges[req as usize];
                exchange.dispatched = Some(now);
                self.counts.dispatched += 1;
                sink.put(
                    now.into(),
                    None,
                    Some(req),
                    Entry::Dispatch { intended: due },
                );
            } else {
                self.end_if_due(now, sink);
                return None;
            }
        }
        None
    }

    /// Whether an output waits, or a request may be admitted at once: a driver asks this between
    /// the completions of one batch, where polling after each would cost a reading of the clock.
    pub fn has_output(&self) -> bool {
        !self.outputs.is_empty() || (self.origin.is_some() && self.load.can_admit())
    }

    /// The next instant at which `handle_timeout` or `poll_output` has something to do.
    pub fn poll_timeout(&self) -> Option<MonoNs> {
        let origin = self.origin?;
        let due = self.load.next_due(&self.spec.load, origin);
        let now_if_admissible = self.load.can_admit().then_some(MonoNs(0));
        [
            due,
            now_if_admissible,
            self.deadlines.next(),
            self.drain_deadline(),
        ]
        .into_iter()
        .flatten()
        .min()
    }

    /// Fires every deadline at or before `now`.
    pub fn handle_timeout(&mut self, now: MonoNs, sink: &mut dyn Sink) {
        if self
            .drain_deadline()
            .is_some_and(|deadline| deadline <= now)
        {
            for req in 0..self.exchanges.len() as u32 {
                if self.exchanges[req as usize].terminal.is_none() {
                    sink.put(
                        now.into(),
                        self.conns.of_request(req),
                        Some(req),
                        Entry::Timer(TimerKind::Drain),
                    );
                    self.fail(now.into(), req, Terminal::DrainTimeout, 0, sink);
                }
            }
        }
        while let Some((deadline, req, kind)) = self.deadlines.pop_due(now) {
            let exchange = &self.exchanges[req as usize];
            if exchange.terminal.is_some() {
                continue;
            }
            let terminal = match kind {
                TimerKind::Request => Terminal::RequestTimeout,
                TimerKind::Connect if exchange.connected.is_some() => continue,
                TimerKind::Connect => Terminal::ConnectTimeout,
                TimerKind::Idle => {
                    let quiet_since = exchange.last_event.or(exchange.sent).unwrap_or(deadline);
                    let limit = self.spec.requests[req as usize]
                        .idle_timeout
                        .unwrap_or_default();
                    if quiet_since.after(limit) > now {
                        self.deadlines
                            .push(quiet_since.after(limit), req, TimerKind::Idle);
                        continue;
                    }
                    Terminal::IdleTimeout
                }
                TimerKind::Drain => Terminal::DrainTimeout,
            };
            sink.put(
                now.into(),
                self.conns.of_request(req),
                Some(req),
                Entry::Timer(kind),
            );
            self.fail(now.into(), req, terminal, 0, sink);
        }
    }

    /// The connection stands.
    pub fn handle_connected(&mut self, now: MonoNs, conn: ConnId, sink: &mut dyn Sink) {
        let Some(req) = self.conns.request_of(conn) else {
            return;
        };
        sink.put(now.into(), Some(conn), req, Entry::Connected);
        match req {
            Some(req) => {
                self.exchanges[req as usize].connected = Some(now);
                self.exchanges[req as usize].reuse = Some(self.conns.get_mut(conn).carry(None));
                self.outputs.push_back(Output::Send { conn, req });
            }
            None => {
                self.conns.set_idle(conn, now);
                self.preopened(now, sink);
            }
        }
    }

    /// The send of a connection's request was submitted.
    pub fn handle_send_started(&mut self, now: MonoNs, conn: ConnId, sink: &mut dyn Sink) {
        let Some(Some(req)) = self.conns.request_of(conn) else {
            return;
        };
        self.exchanges[req as usize].send_start = Some(now);
        sink.put(now.into(), Some(conn), Some(req), Entry::SendStart);
    }

    /// The kernel accepted the last byte of a connection's request.
    pub fn handle_sent(&mut self, now: MonoNs, conn: ConnId, sink: &mut dyn Sink) {
        let Some(Some(req)) = self.conns.request_of(conn) else {
            return;
        };
        let bytes = self.spec.requests[req as usize].wire_len();
        let exchange = &mut self.exchanges[req as usize];
        exchange.sent = Some(now);
        exchange.sent_bytes = bytes;
        sink.put(now.into(), Some(conn), Some(req), Entry::Sent { bytes });
        if let Some(limit) = self.spec.requests[req as usize].idle_timeout {
            self.deadlines.push(now.after(limit), req, TimerKind::Idle);
        }
    }

    /// Bytes came on a connection.
    pub fn handle_received(&mut self, at: Stamp, conn: ConnId, bytes: &[u8], sink: &mut dyn Sink) {
        let Some(req) = self.conns.request_of(conn) else {
            return;
        };
        sink.put(at, Some(conn), req, Entry::Received(bytes));
        let Some(req) = req else {
            // Bytes without a request are never taken for the next response.
            self.close(at.mono, conn, sink);
            return;
        };
        let now = at.mono;
        let exchange = &mut self.exchanges[req as usize];
        exchange.reads += 1;
        exchange.received_bytes += bytes.len() as u64;
        let connection = self.conns.get_mut(conn);
        let mut input = bytes;
        loop {
            match connection.parser.poll(&mut input) {
                Ok(None) => return,
                Ok(Some(Event::Interim { .. })) => {}
                Ok(Some(Event::Head(head))) => {
                    exchange.head = Some(now);
                    exchange.status = head.status;
                    connection.head = Some(head);
                }
                Ok(Some(Event::Body(mut body))) => {
                    exchange.body_bytes += body.len() as u64;
                    if !connection.head.is_some_and(|head| head.event_stream) {
                        continue;
                    }
                    while let Some(event) = connection.scanner.poll(&mut body) {
                        exchange.events += 1;
                        self.counts.events += 1;
                        exchange.first_event.get_or_insert(now);
                        exchange.last_event = Some(now);
                        if event.done {
                            exchange.done_events += 1;
                            exchange.done.get_or_insert(now);
                        }
                    }
                }
                Ok(Some(Event::End(end))) => {
                    exchange.surplus_bytes = input.len() as u64;
                    let keep = end.keep_alive && input.is_empty() && exchange.sent.is_some();
                    self.complete(at, conn, req, keep, sink);
                    return;
                }
                Err(error) => {
                    self.fail(at, req, broken_response(error), 0, sink);
                    return;
                }
            }
        }
    }

    /// The peer ended its side of a connection.
    pub fn handle_eof(&mut self, at: Stamp, conn: ConnId, sink: &mut dyn Sink) {
        let Some(req) = self.conns.request_of(conn) else {
            return;
        };
        sink.put(at, Some(conn), req, Entry::Eof);
        let Some(req) = req else {
            self.close(at.mono, conn, sink);
            return;
        };
        self.exchanges[req as usize].peer_end = Some(PeerEnd::Eof);
        match self.conns.get_mut(conn).parser.handle_eof() {
            Ok(_) => self.complete(at, conn, req, false, sink),
            Err(error) => self.fail(at, req, broken_response(error), 0, sink),
        }
    }

    /// An operation on a connection failed.
    ///
    /// A failed send ends nothing by itself: an answer may already be under way, and the receive
    /// that follows tells how the connection ended.
    pub fn handle_failed(
        &mut self,
        now: MonoNs,
        conn: ConnId,
        op: SocketOp,
        errno: i32,
        sink: &mut dyn Sink,
    ) {
        let Some(req) = self.conns.request_of(conn) else {
            return;
        };
        sink.put(now.into(), Some(conn), req, Entry::Failed { op, errno });
        let Some(req) = req else {
            let preopening = self.conns.get_mut(conn).state == State::Connecting;
            self.close(now, conn, sink);
            if preopening {
                self.preopened(now, sink);
            }
            return;
        };
        let exchange = &mut self.exchanges[req as usize];
        if matches!(errno, errno_of::ECONNRESET | errno_of::EPIPE) {
            exchange.peer_end = Some(PeerEnd::Reset);
        }
        if op == SocketOp::Send && connection_broke(errno) {
            exchange.errno = errno;
            return;
        }
        self.fail(now.into(), req, system_failure(op, errno), errno, sink);
    }

    /// A closed connection's resources are gone.
    pub fn handle_closed(&mut self, now: MonoNs, conn: ConnId, sink: &mut dyn Sink) {
        self.conns.release(conn);
        self.end_if_due(now, sink);
    }

    /// Ends the cell at once: what is unfinished becomes a client fault.
    pub fn abort(&mut self, now: MonoNs, sink: &mut dyn Sink) {
        for req in 0..self.exchanges.len() as u32 {
            let exchange = &self.exchanges[req as usize];
            if exchange.terminal.is_none() {
                let terminal = if exchange.admitted.is_some() {
                    Terminal::ClientFault
                } else {
                    Terminal::NotDispatched
                };
                self.fail(now.into(), req, terminal, 0, sink);
            }
        }
        self.load.abandon();
        self.close_all(now, sink);
    }

    /// Whether every request has ended and every connection is closed.
    pub fn is_done(&self) -> bool {
        self.ended
    }

    /// Whether completions may gather: not while an ending request would make room for another.
    pub fn may_gather(&self) -> bool {
        !self.load.refills()
    }

    /// The cell.
    pub fn spec(&self) -> &Arc<CellSpec> {
        &self.spec
    }

    /// Head and body of a request. They live, unmoved, as long as [`Session::spec`]'s allocation.
    pub fn request_bytes(&self, req: u32) -> (&[u8], &[u8]) {
        let request = &self.spec.requests[req as usize];
        (&request.head, &request.body)
    }

    /// The origin, once it is set.
    pub fn origin(&self) -> Option<MonoNs> {
        self.origin
    }

    /// What was observed of each request, in the plan's order.
    pub fn exchanges(&self) -> &[Exchange] {
        &self.exchanges
    }

    /// Connections that are open at this moment.
    pub fn open_connections(&self) -> usize {
        self.conns.open()
    }

    /// Shows the counts so far.
    pub fn publish(&self, progress: &Progress) {
        progress
            .dispatched
            .store(self.counts.dispatched, Ordering::Relaxed);
        progress.ended.store(self.counts.ended, Ordering::Relaxed);
        progress.failed.store(self.counts.failed, Ordering::Relaxed);
        progress.events.store(self.counts.events, Ordering::Relaxed);
    }

    /// The next queued output; a send whose request has ended meanwhile is dropped.
    fn next_output(&mut self) -> Option<Output> {
        loop {
            match self.outputs.pop_front()? {
                Output::Send { conn, req } if self.conns.request_of(conn) != Some(Some(req)) => {}
                output => return Some(output),
            }
        }
    }

    fn set_origin(&mut self, now: MonoNs, sink: &mut dyn Sink) {
        let origin = now.after(ORIGIN_LEAD);
        self.origin = Some(origin);
        for req in 0..self.exchanges.len() as u32 {
            self.exchanges[req as usize].intended = Some(intended(&self.spec.load, origin, req));
        }
        sink.put(now.into(), None, None, Entry::CellStart { origin });
    }

    fn preopened(&mut self, now: MonoNs, sink: &mut dyn Sink) {
        if self.preopening == 0 {
            return;
        }
        self.preopening -= 1;
        if self.preopening == 0 && self.origin.is_none() {
            self.set_origin(now, sink);
        }
    }

    fn admit(&mut self, now: MonoNs, req: u32, sink: &mut dyn Sink) {
        let request = &self.spec.requests[req as usize];
        self.exchanges[req as usize].admitted = Some(now);
        self.last_admitted = Some(now);
        sink.put(now.into(), None, Some(req), Entry::Admit);
        self.deadlines
            .push(now.after(request.timeout), req, TimerKind::Request);
        let bound = match self.spec.connections {
            ConnectionPolicy::Fresh => None,
            ConnectionPolicy::Reuse { idle } => Some(idle),
            ConnectionPolicy::Preopened { .. } => Some(DurNs(u64::MAX)),
        };
        let target = request.target;
        while let Some((conn, idle)) = bound.and_then(|_| self.conns.take_idle(target, now)) {
            if bound.is_some_and(|bound| idle <= bound) {
                self.conns.assign(conn, req);
                self.exchanges[req as usize].reuse =
                    Some(self.conns.get_mut(conn).carry(Some(idle)));
                self.outputs.push_back(Output::Send { conn, req });
                return;
            }
            self.close(now, conn, sink);
        }
        if let Some(limit) = self.spec.requests[req as usize].connect_timeout {
            self.deadlines
                .push(now.after(limit), req, TimerKind::Connect);
        }
        self.exchanges[req as usize].connect = Some(now);
        self.connect(now, target, Some(req), sink);
    }

    fn connect(&mut self, now: MonoNs, target: u32, req: Option<u32>, sink: &mut dyn Sink) {
        let addr = self.spec.targets[target as usize];
        let conn = self.conns.open_new(target, req);
        sink.put(now.into(), Some(conn), req, Entry::Connect { addr });
        self.outputs.push_back(Output::Connect { conn, addr });
    }

    fn complete(&mut self, at: Stamp, conn: ConnId, req: u32, keep: bool, sink: &mut dyn Sink) {
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

    fn fail(&mut self, at: Stamp, req: u32, terminal: Terminal, errno: i32, sink: &mut dyn Sink) {
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

    fn close(&mut self, now: MonoNs, conn: ConnId, sink: &mut dyn Sink) {
        if self.conns.begin_close(conn) {
            sink.put(now.into(), Some(conn), None, Entry::Close);
            self.outputs.push_back(Output::Close { conn });
        }
    }

    fn close_all(&mut self, now: MonoNs, sink: &mut dyn Sink) {
        for conn in self.conns.live() {
            self.close(now, conn, sink);
        }
    }

    /// The drain runs from the last admission, and ends what is unfinished.
    fn drain_deadline(&self) -> Option<MonoNs> {
        if self.unfinished == 0 || !self.load.all_admitted() {
            return None;
        }
        self.last_admitted
            .map(|admitted| admitted.after(self.spec.drain))
    }

    fn end_if_due(&mut self, now: MonoNs, sink: &mut dyn Sink) {
        if self.ended || self.unfinished > 0 || self.preopening > 0 {
            return;
        }
        self.close_all(now, sink);
        if self.conns.open() == 0 && self.outputs.is_empty() {
            self.ended = true;
            sink.put(now.into(), None, None, Entry::CellEnd);
        }
    }
}

fn broken_response(error: Http1Error) -> Terminal {
    match error.group() {
        ErrorGroup::MalformedHead => Terminal::MalformedHead,
        ErrorGroup::MalformedFraming => Terminal::MalformedFraming,
        ErrorGroup::TooLarge => Terminal::TooLarge,
        ErrorGroup::EofBeforeResponse => Terminal::Disconnected,
        ErrorGroup::Truncated if error == Http1Error::EofInHead => Terminal::Disconnected,
        ErrorGroup::Truncated => Terminal::Truncated,
    }
}

fn connection_broke(errno: i32) -> bool {
    matches!(errno, errno_of::ECONNRESET | errno_of::EPIPE)
}

fn system_failure(op: SocketOp, errno: i32) -> Terminal {
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
