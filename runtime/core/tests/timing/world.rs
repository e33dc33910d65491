//! A session, a peer and a driver on a virtual clock. Every call into the session and every entry
//! that comes out of it is kept.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use assize_core::{
    CellSpec, ConnId, Entry, Exchange, Outgoing, Output, Phase, Session, Sink, SocketOp, Stamp,
    Terminal, TimerKind,
};
use assize_units::{DurNs, MonoNs};

use super::setting::{Act, ConnectAct, DriverActs, SendAct, Setting};

/// When a run starts.
pub const START: MonoNs = MonoNs(1_000_000);

/// A run makes no more turns than this; more means that the session never ends.
const TURNS: usize = 200_000;

/// One entry, kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Put {
    pub at: Stamp,
    pub conn: Option<ConnId>,
    pub req: Option<u32>,
    pub what: What,
    /// The reading of the clock with which the call was made that put it.
    pub clock: MonoNs,
}

/// What an entry says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum What {
    CellStart(MonoNs),
    Dispatch(MonoNs),
    Admit,
    Connect,
    Connected,
    Tls(String),
    SendStart,
    Sent(u64),
    Received(Vec<u8>),
    Eof,
    Failed(SocketOp, i32),
    Close,
    Timer(TimerKind),
    Terminal(Terminal, Phase, u16, i32),
    Other,
    CellEnd,
}

/// Keeps entries.
#[derive(Debug, Default)]
pub struct Kept {
    pub puts: Vec<Put>,
    pub clock: MonoNs,
}

impl Sink for Kept {
    fn put(&mut self, at: Stamp, conn: Option<ConnId>, req: Option<u32>, entry: Entry<'_>) {
        let what = match entry {
            Entry::CellStart { origin } => What::CellStart(origin),
            Entry::Dispatch { intended } => What::Dispatch(intended),
            Entry::Admit => What::Admit,
            Entry::Connect { .. } => What::Connect,
            Entry::Connected => What::Connected,
            Entry::Tls { facts } => What::Tls(facts.to_owned()),
            Entry::SendStart => What::SendStart,
            Entry::Sent { bytes } => What::Sent(bytes),
            Entry::Received(bytes) => What::Received(bytes.to_vec()),
            Entry::Eof => What::Eof,
            Entry::Failed { op, errno } => What::Failed(op, errno),
            Entry::Close => What::Close,
            Entry::Timer(kind) => What::Timer(kind),
            Entry::Terminal {
                terminal,
                phase,
                status,
                errno,
            } => What::Terminal(terminal, phase, status, errno),
            Entry::Driver(_) | Entry::Clock { .. } => What::Other,
            Entry::CellEnd => What::CellEnd,
        };
        self.puts.push(Put {
            at,
            conn,
            req,
            what,
            clock: self.clock,
        });
    }

    fn overflowed(&self) -> bool {
        false
    }
}

/// One call into a session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Call {
    Start,
    Poll,
    Timeout,
    Connected(ConnId),
    SendStarted(ConnId),
    PartlySent(ConnId, u64),
    Sent(ConnId),
    Received(ConnId, Vec<u8>),
    Eof(ConnId),
    Failed(ConnId, SocketOp, i32),
    Closed(ConnId),
    Abort,
}

/// Makes a call; a poll gives its output.
pub fn call(session: &mut Session, sink: &mut Kept, now: MonoNs, call: &Call) -> Option<Output> {
    sink.clock = now;
    match call {
        Call::Start => session.start(now, sink),
        Call::Poll => return session.poll_output(now, sink),
        Call::Timeout => session.handle_timeout(now, sink),
        Call::Connected(conn) => session.handle_connected(now, *conn, sink),
        Call::SendStarted(conn) => session.handle_send_started(now, *conn, sink),
        Call::PartlySent(conn, bytes) => session.handle_partly_sent(now, *conn, *bytes, sink),
        Call::Sent(conn) => session.handle_sent(now, *conn, sink),
        Call::Received(conn, bytes) => session.handle_received(now.into(), *conn, bytes, sink),
        Call::Eof(conn) => session.handle_eof(now.into(), *conn, sink),
        Call::Failed(conn, op, errno) => session.handle_failed(now, *conn, *op, *errno, sink),
        Call::Closed(conn) => session.handle_closed(now, *conn, sink),
        Call::Abort => session.abort(now, sink),
    }
    None
}

/// A run that has ended.
#[derive(Debug)]
pub struct Run {
    pub spec: Arc<CellSpec>,
    pub driver: DriverActs,
    pub exchanges: Vec<Exchange>,
    pub origin: Option<MonoNs>,
    pub puts: Vec<Put>,
    /// Every call with its instant, in order.
    pub calls: Vec<(MonoNs, Call)>,
    /// Every instant at which the driver woke.
    pub wakes: Vec<MonoNs>,
    /// The most connections that were open at once.
    pub most_open: usize,
}

/// Runs a setting to its end.
pub fn run(setting: &Setting) -> Run {
    let spec = Arc::new(setting.spec.clone());
    World {
        setting,
        session: Session::new(spec.clone()),
        sink: Kept::default(),
        future: BTreeMap::new(),
        order: 0,
        now: START,
        closed: HashSet::new(),
        calls: Vec::new(),
        wakes: Vec::new(),
        most_open: 0,
    }
    .run()
}

/// Makes the same calls on a new session; gives what it puts.
pub fn replay(run: &Run) -> Kept {
    let mut session = Session::new(run.spec.clone());
    let mut sink = Kept::default();
    for (now, made) in &run.calls {
        call(&mut session, &mut sink, *now, made);
    }
    assert_eq!(session.exchanges(), run.exchanges);
    sink
}

struct World<'a> {
    setting: &'a Setting,
    session: Session,
    sink: Kept,
    future: BTreeMap<(MonoNs, u64), Call>,
    order: u64,
    now: MonoNs,
    /// Connections that the session gave up: a driver cancels what is pending on them.
    closed: HashSet<ConnId>,
    calls: Vec<(MonoNs, Call)>,
    wakes: Vec<MonoNs>,
    most_open: usize,
}

impl World<'_> {
    fn run(mut self) -> Run {
        let driver = &self.setting.driver;
        let mut abort = driver.abort_after.map(|after| START.after(DurNs(after)));
        self.call(self.now, Call::Start);
        for turn in 0..TURNS {
            self.perform();
            if self.session.is_done() {
                return self.ended();
            }
            let happens = self.future.first_key_value().map(|((at, _), _)| *at);
            let due = self.session.poll_timeout();
            let next = [happens, due, abort].into_iter().flatten().min();
            let next = next.expect("something is to come, or the session never ends");
            let late = driver.lateness.get(turn % driver.lateness.len().max(1));
            self.now = self.now.max(next).after(DurNs(late.copied().unwrap_or(0)));
            self.wakes.push(self.now);
            if abort.is_some_and(|at| at <= self.now) {
                abort = None;
                self.call(self.now, Call::Abort);
            }
            self.hand_over();
            self.call(self.now, Call::Timeout);
        }
        panic!("the session does not end: {:#?}", self.session);
    }

    fn ended(self) -> Run {
        Run {
            spec: self.session.spec().clone(),
            driver: self.setting.driver.clone(),
            exchanges: self.session.exchanges().to_vec(),
            origin: self.session.origin(),
            puts: self.sink.puts,
            calls: self.calls,
            wakes: self.wakes,
            most_open: self.most_open,
        }
    }

    /// Gives the session what has happened by now. Completions come before deadlines.
    fn hand_over(&mut self) {
        while let Some(entry) = self.future.first_entry() {
            if entry.key().0 > self.now {
                return;
            }
            let made = entry.remove();
            let stamp = self.now.before(DurNs(self.setting.driver.behind));
            self.call(stamp, made);
            if self.setting.driver.polls_between {
                self.perform();
            }
        }
    }

    fn call(&mut self, now: MonoNs, made: Call) -> Option<Output> {
        if let Call::Connected(conn)
        | Call::PartlySent(conn, _)
        | Call::Sent(conn)
        | Call::Received(conn, _)
        | Call::Eof(conn)
        | Call::Failed(conn, ..) = &made
            && self.closed.contains(conn)
        {
            return None;
        }
        let output = call(&mut self.session, &mut self.sink, now, &made);
        self.calls.push((now, made));
        self.most_open = self.most_open.max(self.session.open_connections());
        output
    }

    fn perform(&mut self) {
        while let Some(output) = self.call(self.now, Call::Poll) {
            match output {
                Output::Connect { conn, .. } => self.connect(conn),
                Output::Send { conn, data } => self.send(conn, &data),
                Output::Close { conn, .. } => {
                    self.closed.insert(conn);
                    match self.setting.driver.close_after {
                        0 => drop(self.call(self.now, Call::Closed(conn))),
                        after => self.later(after, Call::Closed(conn)),
                    }
                }
            }
        }
    }

    fn connect(&mut self, conn: ConnId) {
        let acts = &self.setting.connects;
        match acts[conn.serial as usize % acts.len()] {
            ConnectAct::Stands { after } => self.later(after, Call::Connected(conn)),
            ConnectAct::Fails { after, errno } => {
                self.later(after, Call::Failed(conn, SocketOp::Connect, errno));
            }
            ConnectAct::Hangs => {}
        }
    }

    fn send(&mut self, conn: ConnId, data: &Outgoing) {
        let Outgoing::Request(req) = data else {
            panic!("a cleartext cell sends requests alone");
        };
        self.call(self.now, Call::SendStarted(conn));
        let answer = &self.setting.answers[*req as usize];
        match answer.send {
            SendAct::Taken { after: 0 } => drop(self.call(self.now, Call::Sent(conn))),
            SendAct::Taken { after } => self.later(after, Call::Sent(conn)),
            SendAct::Broken { after, errno } => {
                let part = after % self.session.spec().requests[*req as usize].wire_len();
                self.later(after / 2, Call::PartlySent(conn, part));
                self.later(after, Call::Failed(conn, SocketOp::Send, errno));
            }
            SendAct::Hangs => {}
        }
        for (after, act) in &answer.acts {
            let made = match act {
                Act::Bytes(bytes) => Call::Received(conn, bytes.clone()),
                Act::Eof => Call::Eof(conn),
                Act::Reset => Call::Failed(conn, SocketOp::Receive, 104),
            };
            self.later(*after, made);
        }
    }

    fn later(&mut self, after: u64, made: Call) {
        self.order += 1;
        let at = self.now.after(DurNs(after));
        self.future.insert((at, self.order), made);
    }
}
