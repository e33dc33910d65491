//! What a cell showed, without its times.

use std::sync::Arc;

use assize_core::{
    CellSpec, ConnId, Driver, Entry, PeerEnd, Phase, RunControl, Session, Sink, Stamp, Terminal,
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
    pub sent_bytes: u64,
    pub peer_end: Option<PeerEnd>,
    /// The request's number on its connection.
    pub nth: Option<u32>,
    /// The kinds of its entries in order, receives that follow each other as one.
    pub order: Vec<String>,
    /// Its received bytes.
    pub bytes: Vec<u8>,
}

/// A whole cell.
#[derive(Debug)]
pub struct Shown {
    pub requests: Vec<Observed>,
    /// Entries of no request that are not clock or driver facts, by kind, sorted.
    pub others: Vec<String>,
    /// The driver's facts.
    pub drivers: Vec<String>,
    pub clocks: usize,
    pub stamped_receives: usize,
    pub receives: usize,
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
}

#[derive(Debug, Default)]
struct Tape {
    lines: Vec<Line>,
    last: MonoNs,
    stamped: usize,
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
        self.lines.push(Line {
            conn,
            req,
            kind: kind(entry),
            bytes,
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

impl Tape {
    fn shown(&self, session: &Session) -> Shown {
        let requests = session.exchanges().iter().zip(0..).map(|(exchange, req)| {
            let mut order: Vec<String> = Vec::new();
            let mut bytes = Vec::new();
            for line in self.lines.iter().filter(|line| line.req == Some(req)) {
                bytes.extend_from_slice(&line.bytes);
                if !(line.kind == "Received" && order.last() == Some(&line.kind)) {
                    order.push(line.kind.clone());
                }
            }
            Observed {
                terminal: exchange.terminal,
                phase: exchange.phase,
                status: exchange.status,
                errno: exchange.errno,
                events: exchange.events,
                done_events: exchange.done_events,
                received_bytes: exchange.received_bytes,
                body_bytes: exchange.body_bytes,
                sent_bytes: exchange.sent_bytes,
                peer_end: exchange.peer_end,
                nth: exchange.reuse.map(|reuse| reuse.nth),
                order,
                bytes,
            }
        });
        let of_kind = |kind: &str| self.lines.iter().filter(|line| line.kind == kind).count();
        let mut others: Vec<String> = self
            .lines
            .iter()
            .filter(|line| line.req.is_none() && line.kind != "Clock" && line.kind != "Driver")
            .map(|line| format!("{} {}", line.kind, line.conn.is_some()))
            .collect();
        others.sort();
        let drivers = self.lines.iter().filter(|line| line.kind == "Driver");
        let drivers = drivers.map(|line| String::from_utf8_lossy(&line.bytes).into_owned());
        Shown {
            requests: requests.collect(),
            others,
            drivers: drivers.collect(),
            clocks: of_kind("Clock"),
            stamped_receives: self.stamped,
            receives: of_kind("Received"),
        }
    }
}
