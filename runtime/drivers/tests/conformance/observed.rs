//! What a cell showed, without its times and without the cuts of its bytes.

use std::collections::BTreeMap;
use std::sync::Arc;

use assize_core::{
    CellSpec, ConnId, Driver, Entry, Exchange, PeerEnd, Phase, RunControl, Session, Sink, Stamp,
    Terminal,
};
use assize_units::MonoNs;

/// One request, without its times.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Observed {
    pub terminal: Option<Terminal>,
    pub phase: Option<Phase>,
    pub status: u16,
    pub errno: i32,
    pub events: u32,
    pub done_events: u32,
    pub received_bytes: u64,
    pub body_bytes: u64,
    pub surplus_bytes: u64,
    /// All of the request or nothing.
    pub sent_bytes: u64,
    pub peer_end: Option<PeerEnd>,
    /// The request's number on its connection.
    pub nth: Option<u32>,
    /// The kinds of its entries in order, receives that follow each other as one.
    pub order: Vec<String>,
}

/// A whole cell.
#[derive(Debug)]
pub struct Shown {
    pub requests: Vec<Observed>,
    /// For each connection its entries in order, receives that follow each other as one. Sorted:
    /// numbers of connections depend on times where several requests are in flight.
    pub connections: Vec<Vec<String>>,
    /// Entries of neither a request nor a connection, in order.
    pub others: Vec<String>,
    /// The received bytes of each request.
    pub bytes: Vec<Vec<u8>>,
    /// The driver's facts.
    pub drivers: Vec<String>,
    pub clocks: usize,
    pub stamped_receives: usize,
    pub receives: usize,
    /// Requests admitted and not ended, at most.
    pub most_in_flight: usize,
    pub exchanges: Vec<Exchange>,
}

impl Shown {
    /// All that does not depend on times and cuts is the same.
    pub fn assert_same(&self, other: &Shown, who: &str) {
        assert_eq!(self.requests, other.requests, "{who}");
        assert_eq!(self.connections, other.connections, "{who}");
        assert_eq!(self.others, other.others, "{who}");
        for (req, (bytes, like)) in self.bytes.iter().zip(&other.bytes).enumerate() {
            assert!(bytes == like, "{who}: the bytes of request {req}");
        }
    }

    /// Connections that stood.
    pub fn connected(&self) -> usize {
        let stood =
            |entries: &&Vec<String>| entries.iter().any(|entry| entry.contains("Connected"));
        self.connections.iter().filter(stood).count()
    }

    pub fn terminals(&self) -> Vec<Terminal> {
        let ended = |request: &Observed| request.terminal.expect("a terminal state");
        self.requests.iter().map(ended).collect()
    }

    pub fn all_complete(&self) -> bool {
        let complete = |terminal: &Terminal| *terminal == Terminal::Complete;
        self.terminals().iter().all(complete)
    }
}

/// Runs a cell on a driver.
pub fn run(driver: &mut dyn Driver, spec: CellSpec) -> Shown {
    run_with(driver, spec, &RunControl::default())
}

/// Runs a cell on a driver under a control.
pub fn run_with(driver: &mut dyn Driver, spec: CellSpec, control: &RunControl) -> Shown {
    let mut session = Session::new(Arc::new(spec));
    let mut tape = Tape::default();
    driver
        .run_cell(&mut session, &mut tape, control)
        .expect("the driver itself does not fail");
    assert!(session.is_done());
    assert_eq!(session.open_connections(), 0);
    check_times(&session);
    tape.shown(&session)
}

/// In the order of what happened, stamps do not fall; nothing is early.
fn check_times(session: &Session) {
    for (place, exchange) in session.exchanges().iter().enumerate() {
        let stamps = [
            exchange.intended,
            exchange.dispatched,
            exchange.admitted,
            exchange.send_start,
            exchange.sent,
        ];
        let answer = [
            exchange.send_start,
            exchange.head,
            exchange.first_event,
            exchange.last_event,
            exchange.end,
        ];
        for stamps in [stamps, answer] {
            let known: Vec<MonoNs> = stamps.into_iter().flatten().collect();
            assert!(known.is_sorted(), "request {place}: {exchange:?}");
        }
    }
}

#[derive(Debug)]
struct Line {
    conn: Option<ConnId>,
    req: Option<u32>,
    kind: String,
    bytes: Vec<u8>,
    sent_bytes: u64,
}

#[derive(Debug, Default)]
struct Tape {
    lines: Vec<Line>,
    last: MonoNs,
    stamped: usize,
    in_flight: usize,
    most_in_flight: usize,
}

impl Sink for Tape {
    fn put(&mut self, at: Stamp, conn: Option<ConnId>, req: Option<u32>, entry: Entry<'_>) {
        assert!(
            self.last <= at.mono,
            "a time is before that of the entry above: {entry:?}"
        );
        self.last = at.mono;
        let bytes = match entry {
            Entry::Driver(fact) => fact.as_bytes().to_vec(),
            Entry::Received(bytes) => {
                assert!(!bytes.is_empty(), "an empty receive is an end, never bytes");
                self.stamped += usize::from(at.kernel_ns > 0);
                bytes.to_vec()
            }
            _ => Vec::new(),
        };
        match entry {
            Entry::Admit => self.in_flight += 1,
            Entry::Terminal { phase, .. } if phase != Phase::Queued => self.in_flight -= 1,
            _ => {}
        }
        self.most_in_flight = self.most_in_flight.max(self.in_flight);
        self.lines.push(Line {
            conn,
            req,
            kind: kind(entry),
            bytes,
            sent_bytes: match entry {
                Entry::Sent { bytes } => bytes,
                _ => 0,
            },
        });
    }

    fn overflowed(&self) -> bool {
        false
    }
}

fn kind(entry: Entry<'_>) -> String {
    match entry {
        Entry::Failed { op, errno } => format!("Failed {op:?} {errno}"),
        Entry::Terminal { terminal, .. } => format!("Terminal {terminal:?}"),
        Entry::Timer(kind) => format!("Timer {kind:?}"),
        entry => {
            let text = format!("{entry:?}");
            let end = text.find(|c: char| !c.is_alphanumeric());
            text[..end.unwrap_or(text.len())].to_owned()
        }
    }
}

/// Appends an entry, unless it is one more receive.
fn append(order: &mut Vec<String>, kind: String) {
    if !(kind.ends_with("Received") && order.last() == Some(&kind)) {
        order.push(kind);
    }
}

impl Tape {
    fn shown(self, session: &Session) -> Shown {
        let mut orders = vec![Vec::new(); session.exchanges().len()];
        let mut bytes = vec![Vec::new(); session.exchanges().len()];
        let mut connections: BTreeMap<u32, Vec<String>> = BTreeMap::new();
        let mut others = Vec::new();
        let (mut drivers, mut clocks, mut receives) = (Vec::new(), 0, 0);
        for line in self.lines {
            match line.kind.as_str() {
                "Driver" => {
                    drivers.push(String::from_utf8_lossy(&line.bytes).into_owned());
                    continue;
                }
                "Clock" => {
                    clocks += 1;
                    continue;
                }
                "Received" => receives += 1,
                // Which operation the system tells of a reset is its own choice; the receive that
                // follows says the same on every driver.
                "Failed Send 104" | "Failed Send 32" => continue,
                // What of a broken send was accepted is a matter of times and of buffers.
                "Sent" if !is_whole(session, &line) => continue,
                _ => {}
            }
            if let Some(conn) = line.conn {
                let who = line.req.map_or("-".to_owned(), |req| req.to_string());
                let entries = connections.entry(conn.serial).or_default();
                append(entries, format!("{who} {}", line.kind));
            }
            match line.req {
                Some(req) => {
                    bytes[req as usize].extend_from_slice(&line.bytes);
                    append(&mut orders[req as usize], line.kind);
                }
                None if line.conn.is_none() => others.push(line.kind),
                None => {}
            }
        }
        let mut connections: Vec<Vec<String>> = connections.into_values().collect();
        connections.sort();
        let observed = session.exchanges().iter().zip(orders);
        Shown {
            requests: observed
                .map(|(exchange, order)| observe(exchange, order))
                .collect(),
            connections,
            others,
            bytes,
            drivers,
            clocks,
            stamped_receives: self.stamped,
            receives,
            most_in_flight: self.most_in_flight,
            exchanges: session.exchanges().to_vec(),
        }
    }
}

/// Whether a `Sent` entry tells of a whole request.
fn is_whole(session: &Session, line: &Line) -> bool {
    let request = line
        .req
        .and_then(|req| session.spec().requests.get(req as usize));
    request.is_some_and(|request| request.wire_len() == line.sent_bytes)
}

fn observe(exchange: &Exchange, order: Vec<String>) -> Observed {
    Observed {
        terminal: exchange.terminal,
        phase: exchange.phase,
        status: exchange.status,
        errno: exchange.errno,
        events: exchange.events,
        done_events: exchange.done_events,
        received_bytes: exchange.received_bytes,
        body_bytes: exchange.body_bytes,
        surplus_bytes: exchange.surplus_bytes,
        sent_bytes: exchange.sent.map_or(0, |_| exchange.sent_bytes),
        peer_end: exchange.peer_end,
        nth: exchange.reuse.map(|reuse| reuse.nth),
        order,
    }
}
