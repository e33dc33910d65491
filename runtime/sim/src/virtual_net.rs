//! A network on a virtual clock: any number of peers by address, and the bytes between.
//!
//! Nothing sleeps and nothing is ambient: the same inputs give the same deliveries in the same
//! order. At one instant peers first do what is due, in the order of their addresses, then what is
//! in flight arrives, in the order in which it was sent.
//!
//! A client sends [`WINDOW_BYTES`] ahead of what its peer has read; the rest of a longer request
//! leaves as the peer reads.

use std::cell::RefCell;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, HashMap};
use std::net::SocketAddr;
use std::rc::Rc;

use assize_units::{DurNs, MonoNs};

use crate::engine::draw::mix;
use crate::engine::{ConfigError, ConnId, Engine, EngineConfig, EngineOutput};
use crate::peer::{Peer, WriteStamp};

/// Bytes of a client that its peer has not read, at most: what the buffers of two systems hold.
pub const WINDOW_BYTES: u64 = 2 << 20;

/// How bytes travel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VirtualLink {
    /// From one end to the other; connecting takes two of it.
    pub latency: DurNs,
    /// How a write is cut on its way.
    pub segments: Segments,
    /// Seed of the cuts.
    pub seed: u64,
}

/// How a write is cut on its way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Segments {
    /// A write arrives whole.
    Whole,
    /// A write arrives in pieces of 1 to `max_bytes` bytes, drawn evenly, `gap` after each other.
    Cut {
        /// The longest piece, at least 1.
        max_bytes: u32,
        /// From one piece of a write to the next.
        gap: DurNs,
    },
}

impl Default for VirtualLink {
    /// 20 µs, writes whole.
    fn default() -> Self {
        VirtualLink {
            latency: DurNs::from_us(20),
            segments: Segments::Whole,
            seed: 0,
        }
    }
}

/// A network with its clock; clones are handles of the same one.
#[derive(Clone)]
pub struct VirtualNet {
    state: Rc<RefCell<NetState>>,
}

/// An answer to [`VirtualNet::probe`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProbeAnswer {
    /// The status.
    pub status: u16,
    /// The body.
    pub body: Vec<u8>,
}

impl VirtualNet {
    /// A network without peers whose clock stands at one second.
    pub fn new(link: VirtualLink) -> VirtualNet {
        let state = NetState {
            now: MonoNs(assize_units::NS_PER_S),
            link,
            peers: BTreeMap::new(),
            flights: BinaryHeap::new(),
            next_flight: 0,
            next_conn: 0,
            cuts: 0,
            ends: HashMap::new(),
            held: HashMap::new(),
            stamps: None,
        };
        VirtualNet {
            state: Rc::new(RefCell::new(state)),
        }
    }

    /// The clock.
    pub fn now(&self) -> MonoNs {
        self.state.borrow().now
    }

    /// How bytes travel.
    pub fn link(&self) -> VirtualLink {
        self.state.borrow().link
    }

    /// Starts an engine at an address, now; one that stood there is stopped first.
    pub fn start_engine(&self, addr: SocketAddr, config: EngineConfig) -> Result<(), ConfigError> {
        let engine = Engine::new(config, self.now())?;
        self.start_peer(addr, Box::new(engine));
        Ok(())
    }

    /// Starts a peer at an address; one that stood there is stopped first.
    pub fn start_peer(&self, addr: SocketAddr, peer: Box<dyn Peer>) {
        self.stop(addr);
        self.state.borrow_mut().peers.insert(addr, peer);
    }

    /// Stops what stands at an address: its connections are reset, new ones refused. False where
    /// nothing stood there.
    pub fn stop(&self, addr: SocketAddr) -> bool {
        self.state.borrow_mut().stop(addr)
    }

    /// Asks a peer for `path` by GET, at this instant and without latency, as a supervisor on the
    /// same machine would. `None` where nothing stands there or no whole answer came at once.
    pub fn probe(&self, addr: SocketAddr, path: &str) -> Option<ProbeAnswer> {
        self.state.borrow_mut().probe(addr, path)
    }

    /// Lets time pass until `until`; peers do what is due on the way.
    pub fn advance_to(&self, until: MonoNs) {
        let mut state = self.state.borrow_mut();
        let mut dropped = Vec::new();
        while let Some(next) = state.next_due()
            && next <= until
        {
            state.now = state.now.max(next);
            state.step(&mut dropped);
        }
        state.now = state.now.max(until);
    }

    /// From now on, keeps a stamp of each write of each peer.
    pub fn keep_stamps(&self) {
        self.state.borrow_mut().stamps.get_or_insert_default();
    }

    /// The stamps kept so far, with the peers' addresses.
    pub fn take_stamps(&self) -> Vec<(SocketAddr, WriteStamp)> {
        let mut state = self.state.borrow_mut();
        state
            .stamps
            .as_mut()
            .map(std::mem::take)
            .unwrap_or_default()
    }

    /// When something next happens by itself.
    pub(crate) fn next_due(&self) -> Option<MonoNs> {
        self.state.borrow().next_due()
    }

    /// Moves the clock to `now` (never back) and appends what then reaches clients.
    pub(crate) fn step_to(&self, now: MonoNs, deliveries: &mut Vec<(ConnId, Delivery)>) {
        let mut state = self.state.borrow_mut();
        state.now = state.now.max(now);
        state.step(deliveries);
    }

    /// Begins a connection.
    pub(crate) fn connect(&self, addr: SocketAddr) -> ConnId {
        let mut state = self.state.borrow_mut();
        let conn = state.new_conn(addr);
        let at = state.now.after(state.link.latency);
        state.fly(at, Flight::Syn { conn, addr });
        conn
    }

    /// Sends the client's bytes; how far they have left. Further deliveries tell of the rest.
    pub(crate) fn send(&self, conn: ConnId, front: &[u8], rest: &[u8]) -> SendProgress {
        let mut state = self.state.borrow_mut();
        if let Some(end) = state.ends.get_mut(&conn) {
            end.left_bytes = 0;
        }
        state.send(conn, [front, rest].concat())
    }

    /// Closes the client's end: what is still on its way to it is dropped.
    pub(crate) fn close(&self, conn: ConnId) {
        let mut state = self.state.borrow_mut();
        let now = state.now;
        let latency = state.link.latency;
        if let Some(end) = state.ends.remove(&conn) {
            let at = now.after(latency).max(end.last_to_peer);
            let addr = end.addr;
            state.fly(at, Flight::ToPeerClosed { conn, addr });
        }
    }
}

/// What reaches a client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Delivery {
    Connected,
    Refused,
    Received(Vec<u8>),
    /// More of what the client sends has left it.
    Sent(SendProgress),
    Eof,
    Reset,
}

/// How much of one send has left the client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SendProgress {
    Whole,
    Part { bytes: u64 },
}

struct NetState {
    now: MonoNs,
    link: VirtualLink,
    peers: BTreeMap<SocketAddr, Box<dyn Peer>>,
    flights: BinaryHeap<Reverse<Flying>>,
    next_flight: u64,
    next_conn: u64,
    cuts: u64,
    /// Connections that their client has not closed.
    ends: HashMap<ConnId, End>,
    /// Connections that their peer does not read now, with what has arrived on them.
    held: HashMap<ConnId, Vec<u8>>,
    stamps: Option<Vec<(SocketAddr, WriteStamp)>>,
}

/// A connection's state on the way.
struct End {
    addr: SocketAddr,
    /// Bytes do not overtake bytes.
    last_to_peer: MonoNs,
    last_to_client: MonoNs,
    /// The peer accepted it and has not ended it.
    open_at_peer: bool,
    /// Bytes on their way to the peer, or there and not read.
    unread_bytes: u64,
    /// Bytes that have not left the client.
    unsent: Vec<u8>,
    /// Bytes of the same send that have.
    left_bytes: u64,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Side {
    Client,
    Peer,
}

enum Flight {
    Syn {
        conn: ConnId,
        addr: SocketAddr,
    },
    ToPeer {
        conn: ConnId,
        addr: SocketAddr,
        bytes: Vec<u8>,
    },
    ToPeerClosed {
        conn: ConnId,
        addr: SocketAddr,
    },
    /// The peer has read, and the client hears that there is room.
    Room {
        conn: ConnId,
    },
    ToClient {
        conn: ConnId,
        delivery: Delivery,
    },
}

/// A flight with its arrival; ordered by arrival, then by the order of sending.
struct Flying {
    at: MonoNs,
    number: u64,
    flight: Flight,
}

impl PartialEq for Flying {
    fn eq(&self, other: &Self) -> bool {
        self.number == other.number
    }
}

impl Eq for Flying {}

impl PartialOrd for Flying {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Flying {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (self.at, self.number).cmp(&(other.at, other.number))
    }
}

impl NetState {
    fn next_due(&self) -> Option<MonoNs> {
        let flight = self.flights.peek().map(|Reverse(flying)| flying.at);
        let timers = self.peers.values().filter_map(|peer| peer.poll_timeout());
        timers.chain(flight).min()
    }

    /// Does all that is due at this instant.
    fn step(&mut self, deliveries: &mut Vec<(ConnId, Delivery)>) {
        while self.next_due().is_some_and(|due| due <= self.now) {
            let due = |peer: &dyn Peer| peer.poll_timeout().is_some_and(|at| at <= self.now);
            let peers = self.peers.iter().filter(|(_, peer)| due(peer.as_ref()));
            let addrs: Vec<SocketAddr> = peers.map(|(addr, _)| *addr).collect();
            for addr in addrs {
                self.with_peer(addr, |peer, now| peer.handle_timeout(now));
            }
            while let Some(Reverse(flying)) = self.flights.peek()
                && flying.at <= self.now
                && let Some(Reverse(flying)) = self.flights.pop()
            {
                self.arrive(flying.flight, deliveries);
            }
        }
    }

    fn arrive(&mut self, flight: Flight, deliveries: &mut Vec<(ConnId, Delivery)>) {
        match flight {
            Flight::Syn { conn, addr } => self.arrive_syn(conn, addr),
            Flight::ToPeer { conn, addr, bytes } => match self.held.get_mut(&conn) {
                Some(held) => held.extend_from_slice(&bytes),
                None => {
                    self.count_read(conn, bytes.len());
                    self.with_peer(addr, |peer, now| peer.handle_received(now, conn, &bytes));
                }
            },
            Flight::Room { conn } => {
                if let Some(end) = self.ends.get_mut(&conn)
                    && !end.unsent.is_empty()
                {
                    let rest = std::mem::take(&mut end.unsent);
                    deliveries.push((conn, Delivery::Sent(self.send(conn, rest))));
                }
            }
            Flight::ToPeerClosed { conn, addr } => {
                self.held.remove(&conn);
                self.with_peer(addr, |peer, now| peer.handle_closed(now, conn));
            }
            Flight::ToClient { conn, delivery } => {
                if self.ends.contains_key(&conn) {
                    deliveries.push((conn, delivery));
                }
            }
        }
    }

    fn arrive_syn(&mut self, conn: ConnId, addr: SocketAddr) {
        let at = self.now.after(self.link.latency);
        let accepted = self.peers.contains_key(&addr);
        let delivery = if accepted {
            Delivery::Connected
        } else {
            Delivery::Refused
        };
        if let Some(end) = self.ends.get_mut(&conn) {
            end.open_at_peer = accepted;
            end.last_to_client = at;
        }
        self.fly(at, Flight::ToClient { conn, delivery });
        self.with_peer(addr, |peer, now| peer.handle_open(now, conn));
    }

    /// Calls a peer, then carries what it has to say.
    fn with_peer(&mut self, addr: SocketAddr, call: impl FnOnce(&mut dyn Peer, MonoNs)) {
        let now = self.now;
        let Some(peer) = self.peers.get_mut(&addr) else {
            return;
        };
        call(peer.as_mut(), now);
        while let Some(output) = self.peers.get_mut(&addr).and_then(|p| p.poll_output()) {
            match output {
                EngineOutput::Send { conn, bytes } => {
                    self.stamp(addr, conn, bytes.len());
                    self.carry(conn, &bytes, Side::Peer);
                    if let Some(peer) = self.peers.get_mut(&addr) {
                        peer.recycle(bytes);
                    }
                }
                EngineOutput::Close { conn, abort } => self.end_by_peer(conn, abort),
                EngineOutput::Reading { conn, on: false } => {
                    self.held.entry(conn).or_default();
                }
                EngineOutput::Reading { conn, on: true } => self.read_held(addr, conn),
            }
        }
    }

    /// Hands a peer what arrived while it did not read.
    fn read_held(&mut self, addr: SocketAddr, conn: ConnId) {
        let Some(held) = self.held.remove(&conn).filter(|held| !held.is_empty()) else {
            return;
        };
        self.count_read(conn, held.len());
        let now = self.now;
        if let Some(peer) = self.peers.get_mut(&addr) {
            peer.handle_received(now, conn, &held);
        }
    }

    /// Sends what there is room for and keeps the rest.
    fn send(&mut self, conn: ConnId, mut bytes: Vec<u8>) -> SendProgress {
        let Some(end) = self.ends.get_mut(&conn) else {
            return SendProgress::Whole;
        };
        let room = WINDOW_BYTES.saturating_sub(end.unread_bytes) as usize;
        end.unsent = bytes.split_off(room.min(bytes.len()));
        end.unread_bytes += bytes.len() as u64;
        end.left_bytes += bytes.len() as u64;
        let progress = if end.unsent.is_empty() {
            SendProgress::Whole
        } else {
            SendProgress::Part {
                bytes: end.left_bytes,
            }
        };
        self.carry(conn, &bytes, Side::Client);
        progress
    }

    /// A peer has read so many bytes: a client that waits for room hears of it.
    fn count_read(&mut self, conn: ConnId, bytes: usize) {
        let at = self.now.after(self.link.latency);
        let Some(end) = self.ends.get_mut(&conn) else {
            return;
        };
        end.unread_bytes = end.unread_bytes.saturating_sub(bytes as u64);
        if !end.unsent.is_empty() {
            self.fly(at, Flight::Room { conn });
        }
    }

    fn stamp(&mut self, addr: SocketAddr, conn: ConnId, bytes: usize) {
        let at = self.now;
        if let Some(stamps) = &mut self.stamps {
            let (conn, bytes) = (conn.0, bytes as u64);
            stamps.push((addr, WriteStamp { conn, at, bytes }));
        }
    }

    fn end_by_peer(&mut self, conn: ConnId, abort: bool) {
        let sent = self.now.after(self.link.latency);
        let Some(end) = self.ends.get_mut(&conn) else {
            return;
        };
        end.open_at_peer = false;
        self.held.remove(&conn);
        let at = sent.max(end.last_to_client);
        let delivery = if abort {
            Delivery::Reset
        } else {
            Delivery::Eof
        };
        self.fly(at, Flight::ToClient { conn, delivery });
    }

    /// Cuts bytes and sends them on their way.
    fn carry(&mut self, conn: ConnId, bytes: &[u8], from: Side) {
        let mut rest = bytes;
        let mut sent = self.now.after(self.link.latency);
        while !rest.is_empty() {
            let (length, gap) = self.next_cut(rest.len());
            let (piece, after) = rest.split_at(length);
            rest = after;
            let Some(end) = self.ends.get_mut(&conn) else {
                return;
            };
            let (last, addr) = match from {
                Side::Client => (&mut end.last_to_peer, end.addr),
                Side::Peer => (&mut end.last_to_client, end.addr),
            };
            *last = sent.max(*last);
            let at = *last;
            let bytes = piece.to_vec();
            let flight = match from {
                Side::Client => Flight::ToPeer { conn, addr, bytes },
                Side::Peer => Flight::ToClient {
                    conn,
                    delivery: Delivery::Received(bytes),
                },
            };
            self.fly(at, flight);
            sent = sent.after(gap);
        }
    }

    fn next_cut(&mut self, left: usize) -> (usize, DurNs) {
        match self.link.segments {
            Segments::Whole => (left, DurNs::ZERO),
            Segments::Cut { max_bytes, gap } => {
                self.cuts += 1;
                let drawn = mix(self.link.seed ^ mix(self.cuts)) % u64::from(max_bytes.max(1));
                (left.min(drawn as usize + 1), gap)
            }
        }
    }

    fn fly(&mut self, at: MonoNs, flight: Flight) {
        let number = self.next_flight;
        self.next_flight += 1;
        self.flights.push(Reverse(Flying { at, number, flight }));
    }

    fn new_conn(&mut self, addr: SocketAddr) -> ConnId {
        let conn = ConnId(self.next_conn);
        self.next_conn += 1;
        let end = End {
            addr,
            last_to_peer: self.now,
            last_to_client: self.now,
            open_at_peer: false,
            unread_bytes: 0,
            unsent: Vec::new(),
            left_bytes: 0,
        };
        self.ends.insert(conn, end);
        conn
    }

    fn stop(&mut self, addr: SocketAddr) -> bool {
        if self.peers.remove(&addr).is_none() {
            return false;
        }
        let open = self
            .ends
            .iter()
            .filter(|(_, end)| end.addr == addr && end.open_at_peer);
        let mut conns: Vec<ConnId> = open.map(|(conn, _)| *conn).collect();
        // The map has no order of its own.
        conns.sort_unstable();
        for conn in conns {
            self.end_by_peer(conn, true);
        }
        true
    }

    fn probe(&mut self, addr: SocketAddr, path: &str) -> Option<ProbeAnswer> {
        let conn = self.new_conn(addr);
        let request = format!("GET {path} HTTP/1.1\r\nHost: {addr}\r\nConnection: close\r\n\r\n");
        let mut answer = Vec::new();
        self.with_peer(addr, |peer, now| {
            peer.handle_open(now, conn);
            peer.handle_received(now, conn, request.as_bytes());
        });
        // What the peer said is in flight: it is taken out before it would arrive.
        let mut kept = BinaryHeap::new();
        let mut flights: Vec<Flying> = std::mem::take(&mut self.flights)
            .into_iter()
            .map(|Reverse(flying)| flying)
            .collect();
        flights.sort_unstable();
        for flying in flights {
            match flying.flight {
                Flight::ToClient {
                    conn: to,
                    delivery: Delivery::Received(bytes),
                } if to == conn => answer.extend_from_slice(&bytes),
                Flight::ToClient { conn: to, .. } if to == conn => {}
                _ => kept.push(Reverse(flying)),
            }
        }
        self.flights = kept;
        self.ends.remove(&conn);
        self.with_peer(addr, |peer, now| peer.handle_closed(now, conn));
        read_probe(&answer)
    }
}

fn read_probe(answer: &[u8]) -> Option<ProbeAnswer> {
    let mut headers = [httparse::EMPTY_HEADER; 32];
    let mut head = httparse::Response::new(&mut headers);
    let httparse::Status::Complete(start) = head.parse(answer).ok()? else {
        return None;
    };
    let named = |header: &&httparse::Header<'_>| header.name.eq_ignore_ascii_case("content-length");
    let length = head.headers.iter().find(named)?.value;
    let length: usize = std::str::from_utf8(length).ok()?.trim().parse().ok()?;
    Some(ProbeAnswer {
        status: head.code?,
        body: answer.get(start..start.checked_add(length)?)?.to_vec(),
    })
}
