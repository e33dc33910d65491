//! The connections of a cell: which are open, which request each carries, which are idle.

use std::sync::Arc;

use assize_units::{DurNs, MonoNs};

use super::ConnId;
use crate::exchange::Reuse;
use crate::protocol::http1::{Head, Limits, ResponseParser};
use crate::protocol::sse::Scanner;
use crate::tls::{TlsLayer, plaintext_within};

/// What a connection is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    Vacant,
    /// Until it can carry a request: with TLS, until the handshake is done.
    Connecting,
    Busy,
    Idle {
        since: MonoNs,
    },
    Closing,
}

/// The one send that is under way on a connection.
#[derive(Debug)]
pub(crate) struct Sending {
    /// Whether the last byte of a request is in it.
    pub carries_request: bool,
    /// The TLS records that are sent; none in cleartext.
    pub records: Option<Records>,
    /// Bytes that the kernel is known to have accepted.
    pub accepted: u64,
}

/// TLS records that are being sent.
#[derive(Debug)]
pub(crate) struct Records {
    pub bytes: Arc<[u8]>,
    /// Where those of a request begin.
    pub request_at: usize,
}

impl Sending {
    /// Bytes of a request of `len` that were accepted, before encryption. Of a TLS record that was
    /// accepted in part, none counts: the peer can read none of it.
    pub fn accepted_of_request(&self, len: u64) -> u64 {
        let accepted = match &self.records {
            _ if !self.carries_request => 0,
            None => self.accepted,
            Some(records) => {
                let accepted = usize::try_from(self.accepted).unwrap_or(usize::MAX);
                let (request, accepted) = (
                    &records.bytes[records.request_at..],
                    accepted.saturating_sub(records.request_at),
                );
                plaintext_within(request, accepted)
            }
        };
        // The last byte is told by the end of the send alone.
        accepted.min(len.saturating_sub(1))
    }
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
    /// Whether the transport stands.
    pub stands: bool,
    pub tls: Option<Box<TlsLayer>>,
    pub sending: Option<Sending>,
    /// Where in the ciphertext that waits in the TLS layer a request begins.
    pub request_waits_at: Option<usize>,
    /// The last instant at which something happened.
    latest: MonoNs,
    /// While idle: the slots of the same target that became idle just before and after it.
    older: Option<u32>,
    younger: Option<u32>,
}

/// All slots, and who is where.
#[derive(Debug)]
pub(crate) struct Connections {
    slots: Vec<Connection>,
    vacant: Vec<u32>,
    /// For each target, the slot that became idle last. The others follow from slot to slot, so
    /// that any of them leaves the list in one step however many there are.
    idle: Vec<Option<u32>>,
    /// For each request, the live connection that carries it.
    carrier: Vec<Option<ConnId>>,
    next_serial: u32,
    limits: Limits,
    latest: MonoNs,
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
            latest: MonoNs(0),
        }
    }

    /// A new connection, for a request or in advance.
    pub fn open_new(&mut self, now: MonoNs, target: u32, req: Option<u32>) -> ConnId {
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
                stands: false,
                tls: None,
                sending: None,
                request_waits_at: None,
                latest: MonoNs(0),
                older: None,
                younger: None,
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
        connection.stands = false;
        connection.tls = None;
        connection.sending = None;
        connection.request_waits_at = None;
        connection.latest = now;
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
        (connection.serial == conn.serial && connection.is_live()).then_some(connection.req)
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
            .filter(|(_, connection)| connection.is_live())
            .map(|(slot, connection)| ConnId {
                slot,
                serial: connection.serial,
            })
            .collect()
    }

    /// Connections for no request that do not stand yet.
    pub fn connecting_in_advance(&self) -> Vec<ConnId> {
        let mut connecting = self.live();
        connecting.retain(|conn| {
            let connection = &self.slots[conn.slot as usize];
            connection.state == State::Connecting && connection.req.is_none()
        });
        connecting
    }

    /// `now`, or the last instant of a connection if that is later; it becomes the last instant.
    pub fn not_before(&mut self, conn: ConnId, now: MonoNs) -> MonoNs {
        let connection = &mut self.slots[conn.slot as usize];
        connection.latest = connection.latest.max(now);
        self.latest = self.latest.max(connection.latest);
        connection.latest
    }

    /// The last instant at which something happened on any connection.
    pub fn latest(&self) -> MonoNs {
        self.latest
    }

    /// Takes the connection to `target` that was idle last, with its idle time. It is to carry a
    /// request now, or to be closed.
    pub fn take_idle(&mut self, target: u32, now: MonoNs) -> Option<(ConnId, DurNs)> {
        let slot = (*self.idle.get(target as usize)?)?;
        self.unlist(slot);
        let connection = &mut self.slots[slot as usize];
        let State::Idle { since } = std::mem::replace(&mut connection.state, State::Busy) else {
            unreachable!("only idle connections are listed")
        };
        let conn = ConnId {
            slot,
            serial: connection.serial,
        };
        Some((conn, now.since(since)))
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
        self.list(conn.slot);
    }

    /// Puts a slot before the others of its target that are idle.
    fn list(&mut self, slot: u32) {
        let target = self.slots[slot as usize].target as usize;
        if self.idle.len() <= target {
            self.idle.resize(target + 1, None);
        }
        let older = self.idle[target].replace(slot);
        self.slots[slot as usize].older = older;
        if let Some(older) = older {
            self.slots[older as usize].younger = Some(slot);
        }
    }

    /// Takes a slot out of the idle ones.
    fn unlist(&mut self, slot: u32) {
        let connection = &mut self.slots[slot as usize];
        let target = connection.target as usize;
        let (older, younger) = (connection.older.take(), connection.younger.take());
        if let Some(older) = older {
            self.slots[older as usize].younger = younger;
        }
        match younger {
            Some(younger) => self.slots[younger as usize].older = older,
            None => self.idle[target] = older,
        }
    }

    /// The connection carries no request any more.
    fn part(&mut self, conn: ConnId) {
        if let Some(req) = self.get_mut(conn).req.take() {
            self.carrier[req as usize] = None;
        }
    }

    /// Marks a live connection as closing.
    pub fn begin_close(&mut self, conn: ConnId) {
        if matches!(self.get_mut(conn).state, State::Idle { .. }) {
            self.unlist(conn.slot);
        }
        self.part(conn);
        self.get_mut(conn).state = State::Closing;
    }

    /// The slot may be used again.
    pub fn release(&mut self, conn: ConnId) {
        let Some(connection) = self.slots.get_mut(conn.slot as usize) else {
            return;
        };
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
    /// Neither gone nor going.
    pub fn is_live(&self) -> bool {
        !matches!(self.state, State::Vacant | State::Closing)
    }

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

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[derive(Clone, Copy, Debug)]
    enum Step {
        Open(u32),
        Take(u32),
        /// The idle connection at this place is closed.
        Close(usize),
    }

    fn step() -> impl Strategy<Value = Step> {
        prop_oneof![
            (0..3u32).prop_map(Step::Open),
            (0..4u32).prop_map(Step::Take),
            (0..8usize).prop_map(Step::Close),
        ]
    }

    proptest! {
        /// Of the idle connections to a target the one that became idle last is taken, whichever
        /// were closed in between.
        #[test]
        fn the_one_that_was_idle_last_is_taken(steps in prop::collection::vec(step(), 1..200)) {
            let now = MonoNs(1);
            let mut conns = Connections::new(Limits::default(), 0);
            let mut idle: Vec<(u32, ConnId)> = Vec::new();
            for step in steps {
                match step {
                    Step::Open(target) => {
                        let conn = conns.open_new(now, target, None);
                        conns.set_idle(conn, now);
                        idle.push((target, conn));
                    }
                    Step::Take(target) => {
                        let place = idle.iter().rposition(|(of, _)| *of == target);
                        let expected = place.map(|place| idle.remove(place).1);
                        let taken = conns.take_idle(target, now).map(|(conn, _)| conn);
                        prop_assert_eq!(taken, expected);
                        if let Some(conn) = taken {
                            conns.begin_close(conn);
                            conns.release(conn);
                        }
                    }
                    Step::Close(place) if place < idle.len() => {
                        let (_, conn) = idle.remove(place);
                        conns.begin_close(conn);
                        conns.release(conn);
                    }
                    Step::Close(_) => {}
                }
                prop_assert_eq!(conns.open(), idle.len());
            }
        }
    }
}
