//! The connections of a cell: which are open, which request each carries, which are idle.

use assize_units::{DurNs, MonoNs};

use super::ConnId;
use crate::exchange::Reuse;
use crate::protocol::http1::{Head, Limits, ResponseParser};
use crate::protocol::sse::Scanner;

/// What a connection is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    Vacant,
    Connecting,
    Busy,
    Idle { since: MonoNs },
    Closing,
}

/// One slot. Its parser and its scanner keep their buffers from one connection to the next.
#[derive(Debug)]
pub(crate) struct Connection {
    pub serial: u32,
    pub state: State,
    pub target: u32,
    pub req: Option<u32>,
    pub carried: u32,
    pub parser: ResponseParser,
    pub scanner: Scanner,
    pub head: Option<Head>,
}

/// All slots, and who is where.
#[derive(Debug)]
pub(crate) struct Connections {
    slots: Vec<Connection>,
    vacant: Vec<u32>,
    /// Slots of idle connections; the one that was idle last is at the end.
    idle: Vec<u32>,
    /// For each request, the live connection that carries it.
    carrier: Vec<Option<ConnId>>,
    next_serial: u32,
    limits: Limits,
}

impl Connections {
    pub fn new(limits: Limits, requests: usize) -> Connections {
        Connections {
            slots: Vec::new(),
            vacant: Vec::new(),
            idle: Vec::new(),
            carrier: vec![None; requests],
            next_serial: 0,
            limits,
        }
    }

    /// A new connection, for a request or in advance.
    pub fn open_new(&mut self, target: u32, req: Option<u32>) -> ConnId {
        let slot = self.vacant.pop().unwrap_or_else(|| {
            self.slots.push(Connection {
                serial: 0,
                state: State::Vacant,
                target: 0,
                req: None,
                carried: 0,
                parser: ResponseParser::new(self.limits),
                scanner: Scanner::new(),
                head: None,
            });
            self.slots.len() as u32 - 1
        });
        let serial = self.next_serial;
        self.next_serial += 1;
        let connection = &mut self.slots[slot as usize];
        connection.serial = serial;
        connection.state = State::Connecting;
        connection.target = target;
        connection.req = req;
        connection.carried = 0;
        connection.restart();
        let conn = ConnId { slot, serial };
        if let Some(req) = req {
            self.carrier[req as usize] = Some(conn);
        }
        conn
    }

    /// The request of a live connection; `None` where the connection no longer counts.
    #[expect(
        clippy::option_option,
        reason = "outer: does it count at all; inner: does it carry a request"
    )]
    pub fn request_of(&self, conn: ConnId) -> Option<Option<u32>> {
        let connection = self.slots.get(conn.slot as usize)?;
        let live = connection.serial == conn.serial
            && !matches!(connection.state, State::Vacant | State::Closing);
        live.then_some(connection.req)
    }

    /// The live connection that carries a request.
    pub fn of_request(&self, req: u32) -> Option<ConnId> {
        self.carrier[req as usize]
    }

    pub fn get_mut(&mut self, conn: ConnId) -> &mut Connection {
        &mut self.slots[conn.slot as usize]
    }

    /// Every connection that is neither closed nor being closed.
    pub fn live(&self) -> Vec<ConnId> {
        (0..)
            .zip(&self.slots)
            .filter(|(_, connection)| !matches!(connection.state, State::Vacant | State::Closing))
            .map(|(slot, connection)| ConnId {
                slot,
                serial: connection.serial,
            })
            .collect()
    }

    /// Takes the connection to `target` that was idle last, with its idle time.
    pub fn take_idle(&mut self, target: u32, now: MonoNs) -> Option<(ConnId, DurNs)> {
        let place = self
            .idle
            .iter()
            .rposition(|slot| self.slots[*slot as usize].target == target)?;
        let slot = self.idle.remove(place);
        let connection = &self.slots[slot as usize];
        let State::Idle { since } = connection.state else {
            unreachable!("only idle connections are listed")
        };
        Some((
            ConnId {
                slot,
                serial: connection.serial,
            },
            now.since(since),
        ))
    }

    pub fn assign(&mut self, conn: ConnId, req: u32) {
        let connection = self.get_mut(conn);
        connection.req = Some(req);
        connection.restart();
        self.carrier[req as usize] = Some(conn);
    }

    pub fn set_idle(&mut self, conn: ConnId, since: MonoNs) {
        self.part(conn);
        self.get_mut(conn).state = State::Idle { since };
        self.idle.push(conn.slot);
    }

    /// The connection carries no request any more.
    fn part(&mut self, conn: ConnId) {
        if let Some(req) = self.get_mut(conn).req.take() {
            self.carrier[req as usize] = None;
        }
    }

    /// Marks a live connection as closing; false where it no longer counts.
    pub fn begin_close(&mut self, conn: ConnId) -> bool {
        if self.request_of(conn).is_none() {
            return false;
        }
        self.idle.retain(|slot| *slot != conn.slot);
        self.part(conn);
        self.get_mut(conn).state = State::Closing;
        true
    }

    /// The slot may be used again.
    pub fn release(&mut self, conn: ConnId) {
        let connection = &mut self.slots[conn.slot as usize];
        if connection.serial == conn.serial && connection.state == State::Closing {
            connection.state = State::Vacant;
            self.vacant.push(conn.slot);
        }
    }

    /// Connections that are not yet gone.
    pub fn open(&self) -> usize {
        self.slots.len() - self.vacant.len()
    }
}

impl Connection {
    /// Counts the request that the connection is about to carry.
    pub fn carry(&mut self, idle: Option<DurNs>) -> Reuse {
        self.state = State::Busy;
        self.carried += 1;
        Reuse {
            conn: self.serial,
            nth: self.carried - 1,
            idle,
        }
    }

    fn restart(&mut self) {
        self.parser.reset();
        self.scanner.reset();
        self.head = None;
    }
}
