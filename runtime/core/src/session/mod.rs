//! One cell as a state machine: composes load, connections and exchanges. The one thing that a
//! driver drives.

mod connection;
mod deadlines;
mod ending;
mod input;

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use assize_units::{DurNs, MonoNs};

use crate::cell::{CellSpec, ConnectionPolicy, RequestSpec};
use crate::driver::Progress;
use crate::exchange::Exchange;
use crate::load::{Load, intended};
use crate::sink::{Entry, Sink, TimerKind};
use crate::terminal::Terminal;
use connection::Connections;
use deadlines::Deadlines;

/// From the start of a cell (or its last preopened connection) to its origin, so that the first
/// request can be on time.
pub const ORIGIN_LEAD: DurNs = DurNs::from_ms(2);

/// Dispatches without an output that one call may make, so that a large closed load does not keep
/// a driver from its completions.
const DISPATCH_BATCH: u32 = 4096;

/// A connection. The slot is dense and used again; the serial is unique in the cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ConnId {
    /// A place in a table of at most as many connections as are open at once.
    pub slot: u32,
    /// The connection's number in the cell.
    pub serial: u32,
}

/// What a driver must do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Output {
    /// Begin a connection and receive on it until it is closed. Answer: `handle_connected` or
    /// `handle_failed`.
    Connect {
        /// The new connection.
        conn: ConnId,
        /// To where.
        addr: SocketAddr,
    },
    /// Send bytes ([`Outgoing::parts`]). Answers: `handle_send_started` when it is submitted,
    /// `handle_partly_sent` as often as the kernel takes a part, then `handle_sent` or
    /// `handle_failed`. A connection has at most one send under way.
    Send {
        /// On which connection.
        conn: ConnId,
        /// What.
        data: Outgoing,
    },
    /// Stop all operations of the connection and close it. Answer: `handle_closed`; nothing else
    /// of this connection counts any more.
    Close {
        /// Which connection.
        conn: ConnId,
        /// The last words of a TLS layer. They are offered to the socket once, before the close and
        /// without waiting; whether it took them is nobody's business any more. There are none
        /// where a send is under way.
        farewell: Option<Arc<[u8]>>,
    },
}

/// What a driver sends: lent by the cell, or encrypted for one connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outgoing {
    /// The head and the body of a request, a place in [`CellSpec::requests`].
    Request(u32),
    /// TLS records.
    Records(Arc<[u8]>),
}

impl Outgoing {
    /// The bytes, in two parts of which the second may be empty. They do not move while `spec` and
    /// this value (or a clone of it) live.
    pub fn parts<'a>(&'a self, spec: &'a CellSpec) -> (&'a [u8], &'a [u8]) {
        match self {
            Outgoing::Request(req) => {
                let request = &spec.requests[*req as usize];
                (&request.head, &request.body)
            }
            Outgoing::Records(records) => (records, &[]),
        }
    }
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
    /// Closes that say farewell, for when nothing else is to be done: they delay no dispatch.
    farewells: VecDeque<Output>,
    origin: Option<MonoNs>,
    last_admitted: Option<MonoNs>,
    unfinished: u32,
    preopening: u32,
    preopen_deadline: Option<MonoNs>,
    counts: Counts,
    /// Nothing is left to do but to close.
    leaving: bool,
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
            deadlines: Deadlines::new(most_deadlines(&spec)),
            outputs: VecDeque::with_capacity(256),
            farewells: VecDeque::new(),
            origin: None,
            last_admitted: None,
            unfinished: total,
            preopening: 0,
            preopen_deadline: None,
            counts: Counts::default(),
            leaving: false,
            ended: false,
            spec,
        }
    }

    /// Begins the cell: opens what is to be preopened, then sets the origin.
    pub fn start(&mut self, now: MonoNs, sink: &mut dyn Sink) {
        if let ConnectionPolicy::Preopened { n } = self.spec.connections {
            self.preopen_deadline = preopen_limit(&self.spec).map(|limit| now.after(limit));
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
            let Some(origin) = self.origin else {
                self.end_if_due(now, sink);
                return self.next_output().or_else(|| self.farewells.pop_front());
            };
            // A closed load hands all its requests over at the origin, before the first is sent; an open
            // one hands each over when it is due, and sends it before it looks at the next.
            let dispatches_first = self.load.is_closed();
            if dispatches_first && self.dispatch(now, origin, sink) {
                continue;
            }
            if let Some(req) = self.load.admit() {
                self.admit(now, req, sink);
            } else if dispatches_first || !self.dispatch(now, origin, sink) {
                self.end_if_due(now, sink);
                let (exchanges, deadlines) = (&self.exchanges, &mut self.deadlines);
                deadlines.drop_first_while(|req, kind| is_settled(&exchanges[req as usize], kind));
                return self.next_output().or_else(|| self.farewells.pop_front());
            }
        }
        None
    }

    /// Dispatches the next request if it is due.
    fn dispatch(&mut self, now: MonoNs, origin: MonoNs, sink: &mut dyn Sink) -> bool {
        let Some(req) = self.load.dispatch(&self.spec.load, origin, now) else {
            return false;
        };
        let due = intended(&self.spec.load, origin, req);
        self.exchanges[req as usize].dispatched = Some(now);
        self.counts.dispatched += 1;
        sink.put(
            now.into(),
            None,
            Some(req),
            Entry::Dispatch { intended: due },
        );
        true
    }

    /// Whether an output waits, or a request may be admitted at once: a driver asks this between
    /// the completions of one batch, where polling after each would cost a reading of the clock.
    pub fn has_output(&self) -> bool {
        let waits = !self.outputs.is_empty() || !self.farewells.is_empty();
        waits || (self.origin.is_some() && self.load.can_admit())
    }

    /// The next instant at which `handle_timeout` or `poll_output` has something to do.
    pub fn poll_timeout(&self) -> Option<MonoNs> {
        let Some(origin) = self.origin else {
            return self.preopen_deadline;
        };
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

    /// Fires every deadline at or before `now`, in the order of their instants.
    ///
    /// What came by `now` must have been handed over before: at one instant the peer counts first.
    pub fn handle_timeout(&mut self, now: MonoNs, sink: &mut dyn Sink) {
        self.fire_until(now, now, sink);
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
                let at = self.not_before_request(req, now);
                self.fail(at.into(), req, terminal, 0, sink);
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

    /// The next queued output; a send on a connection that no longer counts is dropped.
    fn next_output(&mut self) -> Option<Output> {
        loop {
            match self.outputs.pop_front()? {
                Output::Send { conn, .. } if self.conns.request_of(conn).is_none() => {}
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
        if self.preopening == 0 {
            self.preopen_deadline = None;
        }
        if self.preopening == 0 && self.origin.is_none() && self.unfinished > 0 {
            self.set_origin(now, sink);
        }
    }

    fn admit(&mut self, now: MonoNs, req: u32, sink: &mut dyn Sink) {
        let now = self.not_before_request(req, now);
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
                self.conns.not_before(conn, now);
                self.send_request(now, conn, req, sink);
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
        let addr = self.spec.targets[target as usize].addr;
        let conn = self.conns.open_new(now, target, req);
        sink.put(now.into(), Some(conn), req, Entry::Connect { addr });
        self.outputs.push_back(Output::Connect { conn, addr });
    }

    /// Fires every deadline up to `until`, in the order of their instants; `now` is the stamp.
    fn fire_until(&mut self, until: MonoNs, now: MonoNs, sink: &mut dyn Sink) {
        let drain = self.drain_deadline().filter(|drain| *drain <= until);
        self.fire_requests(drain.unwrap_or(until), now, sink);
        if drain.is_some() && self.unfinished > 0 {
            for req in 0..self.exchanges.len() as u32 {
                if self.exchanges[req as usize].terminal.is_none() {
                    self.time_out(now, req, TimerKind::Drain, Terminal::DrainTimeout, sink);
                }
            }
        }
        if self
            .preopen_deadline
            .is_some_and(|deadline| deadline <= until)
        {
            for conn in self.conns.connecting_in_advance() {
                self.close(now, conn, sink);
            }
        }
    }

    fn fire_requests(&mut self, until: MonoNs, now: MonoNs, sink: &mut dyn Sink) {
        while let Some((deadline, req, kind)) = self.deadlines.pop_due(until) {
            let exchange = &self.exchanges[req as usize];
            if is_settled(exchange, kind) {
                continue;
            }
            let terminal = match kind {
                TimerKind::Request => Terminal::RequestTimeout,
                TimerKind::Connect => Terminal::ConnectTimeout,
                TimerKind::Idle => {
                    let quiet_since = exchange.last_event.max(exchange.sent).unwrap_or_default();
                    let limit = self.spec.requests[req as usize]
                        .idle_timeout
                        .unwrap_or_default();
                    if quiet_since.after(limit) > deadline {
                        let next = quiet_since.after(limit);
                        self.deadlines.push(next, req, TimerKind::Idle);
                        continue;
                    }
                    Terminal::IdleTimeout
                }
                TimerKind::Drain => Terminal::DrainTimeout,
            };
            self.time_out(now, req, kind, terminal, sink);
        }
    }

    fn time_out(
        &mut self,
        now: MonoNs,
        req: u32,
        kind: TimerKind,
        terminal: Terminal,
        sink: &mut dyn Sink,
    ) {
        let at = self.not_before_request(req, now);
        let conn = self.conns.of_request(req);
        sink.put(at.into(), conn, Some(req), Entry::Timer(kind));
        self.fail(at.into(), req, terminal, 0, sink);
    }

    /// `now`, or the last thing that happened to a request if that is later.
    fn not_before_request(&mut self, req: u32, now: MonoNs) -> MonoNs {
        match self.conns.of_request(req) {
            Some(conn) => self.conns.not_before(conn, now),
            None => now.max(self.exchanges[req as usize].dispatched.unwrap_or(now)),
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
}

/// Whether a deadline no longer means anything.
fn is_settled(exchange: &Exchange, kind: TimerKind) -> bool {
    exchange.terminal.is_some() || (kind == TimerKind::Connect && exchange.reuse.is_some())
}

/// Deadlines that can be pending at once.
fn most_deadlines(spec: &CellSpec) -> usize {
    let of = |request: &RequestSpec| {
        1 + usize::from(request.connect_timeout.is_some())
            + usize::from(request.idle_timeout.is_some())
    };
    spec.requests.iter().map(of).sum()
}

/// How long connections that are opened in advance are awaited: no longer than the most patient
/// request would wait for its own.
fn preopen_limit(spec: &CellSpec) -> Option<DurNs> {
    let limit = |request: &RequestSpec| request.connect_timeout.unwrap_or(request.timeout);
    spec.requests.iter().map(limit).max()
}
