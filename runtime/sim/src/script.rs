//! A peer that plays a script: exact bytes at exact instants, closes and resets.
//!
//! It is what drivers are held against and calibrated by: the same script runs on a real port
//! (`http::serve_stamped`, which stamps each write) and in a virtual network.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap, VecDeque};

use assize_units::{DurNs, MonoNs};

use crate::engine::request::{Progress, RequestReader};
use crate::engine::wire::write_chunk;
use crate::engine::{ConnId, EngineOutput};
use crate::peer::Peer;

/// What a peer does on one connection, act by act.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Script {
    /// The acts, in order. After the last one the connection stays open.
    pub acts: Vec<Act>,
    /// Begin again after the last act: one script serves each request of a kept connection.
    pub repeat: bool,
}

/// One act of a script.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Act {
    /// Wait until a whole request has arrived. What follows is timed from here.
    Request,
    /// Wait until the head of a request has arrived; the request itself may be waited for later.
    /// What follows is timed from here.
    Head,
    /// Read nothing until the next `Request` or `Head`: what the client sends stays with the
    /// system, and once that is full, with the client.
    Hold,
    /// Wait until so many connections wait here; then all go on, in the order in which they came.
    Meet(usize),
    /// Wait until so long after the last `Request` or `Head`, or after the connection was accepted
    /// where there was none. Absolute: a late act does not delay the next.
    At(DurNs),
    /// Write these bytes, in one write.
    Send(Vec<u8>),
    /// Close (FIN). Nothing follows.
    Close,
    /// Reset (RST). Nothing follows.
    Reset,
}

impl Script {
    /// Answers each request with a stream of `events` server-sent events of `event_bytes` bytes
    /// (at least 16), each a chunk and a write of its own, the first after `first` and each next
    /// `gap` later; then `[DONE]` and the end of the body, in one write with the last event.
    pub fn stream(events: u32, event_bytes: usize, first: DurNs, gap: DurNs) -> Script {
        let head = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\
            transfer-encoding: chunked\r\n\r\n";
        let mut acts = vec![Act::Request, Act::Send(head.to_vec())];
        let event = event_of(event_bytes);
        for n in 0..events {
            let at = gap.0.saturating_mul(u64::from(n)).saturating_add(first.0);
            let mut bytes = Vec::new();
            write_chunk(&event, &mut bytes);
            if n + 1 == events {
                write_chunk(b"data: [DONE]\n\n", &mut bytes);
                bytes.extend_from_slice(b"0\r\n\r\n");
            }
            acts.extend([Act::At(DurNs(at)), Act::Send(bytes)]);
        }
        Script { acts, repeat: true }
    }
}

/// An event of exactly so many bytes, its blank line included; at least 16.
fn event_of(bytes: usize) -> Vec<u8> {
    const FRAME: usize = b"data: {\"x\":\"\"}\n\n".len();
    let filling = "a".repeat(bytes.saturating_sub(FRAME));
    format!("data: {{\"x\":\"{filling}\"}}\n\n").into_bytes()
}

/// Plays scripts: the n-th connection the n-th script, further ones the last.
#[derive(Debug)]
pub struct ScriptPeer {
    scripts: Vec<Script>,
    accepted: usize,
    conns: HashMap<ConnId, Actor>,
    timers: BinaryHeap<Reverse<(MonoNs, ConnId)>>,
    outputs: VecDeque<EngineOutput>,
    /// Connections at a `Meet`.
    meeting: Vec<ConnId>,
    /// Connections whose `Meet` is over.
    met: VecDeque<ConnId>,
}

/// One connection's place in its script.
#[derive(Debug)]
struct Actor {
    script: usize,
    next: usize,
    base: MonoNs,
    reader: RequestReader,
    holds: bool,
}

/// Longest request that a script waits for.
const MAX_HEAD_BYTES: usize = 64 << 10;
const MAX_BODY_BYTES: usize = 64 << 20;

impl ScriptPeer {
    /// A peer that plays `scripts`; without any it accepts and says nothing.
    pub fn new(scripts: Vec<Script>) -> ScriptPeer {
        ScriptPeer {
            scripts,
            accepted: 0,
            conns: HashMap::new(),
            timers: BinaryHeap::new(),
            outputs: VecDeque::new(),
            meeting: Vec::new(),
            met: VecDeque::new(),
        }
    }

    /// Plays a connection on, and those that it lets go on.
    fn play(&mut self, now: MonoNs, conn: ConnId) {
        self.play_one(now, conn);
        while let Some(conn) = self.met.pop_front() {
            if let Some(actor) = self.conns.get_mut(&conn) {
                actor.next += 1;
                self.play_one(now, conn);
            }
        }
    }

    /// Plays a connection on, as far as its script allows at `now`.
    fn play_one(&mut self, now: MonoNs, conn: ConnId) {
        let Some(actor) = self.conns.get_mut(&conn) else {
            return;
        };
        let Some(script) = self.scripts.get(actor.script) else {
            return;
        };
        // A script that repeats without waiting for anything would never end: one round an input.
        let mut rounds = 0;
        loop {
            if actor.next == script.acts.len() && script.repeat && rounds == 0 {
                actor.next = 0;
                rounds += 1;
            }
            let Some(act) = script.acts.get(actor.next) else {
                return;
            };
            match act {
                Act::Request | Act::Head => {
                    if std::mem::take(&mut actor.holds) {
                        self.outputs
                            .push_back(EngineOutput::Reading { conn, on: true });
                    }
                    let arrived = match act {
                        Act::Request => actor.take_request(),
                        _ => actor.has_head(),
                    };
                    if !arrived {
                        return;
                    }
                    actor.base = now;
                    rounds = 0;
                }
                Act::Hold => {
                    actor.holds = true;
                    self.outputs
                        .push_back(EngineOutput::Reading { conn, on: false });
                }
                Act::Meet(connections) => {
                    self.meeting.push(conn);
                    if self.meeting.len() >= *connections {
                        self.met.extend(self.meeting.drain(..));
                    }
                    return;
                }
                Act::At(after) => {
                    let due = actor.base.after(*after);
                    if due > now {
                        self.timers.push(Reverse((due, conn)));
                        return;
                    }
                }
                Act::Send(bytes) => {
                    let bytes = bytes.clone();
                    self.outputs.push_back(EngineOutput::Send { conn, bytes });
                }
                Act::Close | Act::Reset => {
                    let abort = *act == Act::Reset;
                    self.outputs.push_back(EngineOutput::Close { conn, abort });
                    self.conns.remove(&conn);
                    return;
                }
            }
            actor.next += 1;
        }
    }
}

impl Actor {
    fn take_request(&mut self) -> bool {
        self.poll() == Progress::Ready && self.reader.take(|_, _| ()).is_some()
    }

    fn has_head(&mut self) -> bool {
        self.poll();
        self.reader.has_head()
    }

    /// A script says what it says, also to a client that waits for `100 Continue`.
    fn poll(&mut self) -> Progress {
        loop {
            match self.reader.poll() {
                Progress::Expects => {}
                progress => return progress,
            }
        }
    }
}

impl Peer for ScriptPeer {
    fn handle_open(&mut self, now: MonoNs, conn: ConnId) {
        let last = self.scripts.len().saturating_sub(1);
        let actor = Actor {
            script: self.accepted.min(last),
            next: 0,
            base: now,
            reader: RequestReader::new(MAX_HEAD_BYTES, MAX_BODY_BYTES),
            holds: false,
        };
        self.accepted += 1;
        self.conns.insert(conn, actor);
        self.play(now, conn);
    }

    fn handle_received(&mut self, now: MonoNs, conn: ConnId, bytes: &[u8]) {
        let Some(actor) = self.conns.get_mut(&conn) else {
            return;
        };
        if !actor.reader.receive(bytes) {
            self.conns.remove(&conn);
            let abort = true;
            return self.outputs.push_back(EngineOutput::Close { conn, abort });
        }
        let waits = self.scripts.get(actor.script).is_some_and(|script| {
            matches!(
                script.acts.get(actor.next % script.acts.len().max(1)),
                Some(Act::Request | Act::Head)
            )
        });
        if waits {
            self.play(now, conn);
        }
    }

    fn handle_closed(&mut self, _: MonoNs, conn: ConnId) {
        self.conns.remove(&conn);
        self.meeting.retain(|waiting| *waiting != conn);
    }

    fn handle_timeout(&mut self, now: MonoNs) {
        while let Some(Reverse((due, conn))) = self.timers.peek().copied()
            && due <= now
        {
            self.timers.pop();
            self.play(now, conn);
        }
    }

    fn poll_timeout(&self) -> Option<MonoNs> {
        self.timers.peek().map(|Reverse((due, _))| *due)
    }

    fn poll_output(&mut self) -> Option<EngineOutput> {
        self.outputs.pop_front()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CONN: ConnId = ConnId(0);
    const REQUEST: &[u8] = b"POST / HTTP/1.1\r\nContent-Length: 2\r\n\r\n{}";

    fn outputs(peer: &mut ScriptPeer) -> Vec<EngineOutput> {
        std::iter::from_fn(|| peer.poll_output()).collect()
    }

    #[test]
    fn acts_are_timed_from_the_whole_request() {
        let script = Script {
            acts: vec![
                Act::Request,
                Act::At(DurNs(10)),
                Act::Send(b"a".to_vec()),
                Act::At(DurNs(30)),
                Act::Send(b"b".to_vec()),
                Act::Reset,
            ],
            repeat: false,
        };
        let mut peer = ScriptPeer::new(vec![script]);
        peer.handle_open(MonoNs(0), CONN);
        peer.handle_received(MonoNs(5), CONN, &REQUEST[..20]);
        assert_eq!(peer.poll_timeout(), None);
        peer.handle_received(MonoNs(100), CONN, &REQUEST[20..]);
        assert_eq!(peer.poll_timeout(), Some(MonoNs(110)));
        // A late act does not delay the next.
        peer.handle_timeout(MonoNs(125));
        let bytes = b"a".to_vec();
        assert_eq!(
            outputs(&mut peer),
            [EngineOutput::Send { conn: CONN, bytes }]
        );
        assert_eq!(peer.poll_timeout(), Some(MonoNs(130)));
        peer.handle_timeout(MonoNs(130));
        let bytes = b"b".to_vec();
        let expected = [
            EngineOutput::Send { conn: CONN, bytes },
            EngineOutput::Close {
                conn: CONN,
                abort: true,
            },
        ];
        assert_eq!(outputs(&mut peer), expected);
    }

    #[test]
    fn a_repeated_script_serves_each_request_and_never_spins() {
        let mut peer = ScriptPeer::new(vec![Script::stream(1, 32, DurNs::ZERO, DurNs(1))]);
        peer.handle_open(MonoNs(0), CONN);
        let two = [REQUEST, REQUEST].concat();
        peer.handle_received(MonoNs(1), CONN, &two);
        assert_eq!(outputs(&mut peer).len(), 4);
        peer.handle_received(MonoNs(2), CONN, REQUEST);
        assert_eq!(outputs(&mut peer).len(), 2);

        let acts = vec![Act::Send(b"a".to_vec())];
        let mut peer = ScriptPeer::new(vec![Script { acts, repeat: true }]);
        peer.handle_open(MonoNs(0), CONN);
        assert_eq!(outputs(&mut peer).len(), 2);
    }

    #[test]
    fn a_head_is_awaited_alone_and_a_hold_lasts_until_the_next_wait() {
        let acts = vec![
            Act::Head,
            Act::Hold,
            Act::Send(b"early".to_vec()),
            Act::At(DurNs(50)),
            Act::Request,
            Act::Send(b"late".to_vec()),
        ];
        let repeat = false;
        let mut peer = ScriptPeer::new(vec![Script { acts, repeat }]);
        let send = |bytes: &[u8]| EngineOutput::Send {
            conn: CONN,
            bytes: bytes.to_vec(),
        };
        let reading = |on| EngineOutput::Reading { conn: CONN, on };
        peer.handle_open(MonoNs(0), CONN);
        let head = REQUEST.len() - 2;
        peer.handle_received(MonoNs(5), CONN, &REQUEST[..head - 1]);
        assert_eq!(outputs(&mut peer), []);
        peer.handle_received(MonoNs(10), CONN, &REQUEST[head - 1..head]);
        assert_eq!(outputs(&mut peer), [reading(false), send(b"early")]);
        peer.handle_timeout(MonoNs(60));
        assert_eq!(outputs(&mut peer), [reading(true)]);
        peer.handle_received(MonoNs(70), CONN, &REQUEST[head..]);
        assert_eq!(outputs(&mut peer), [send(b"late")]);
    }

    #[test]
    fn connections_meet_and_go_on_in_the_order_in_which_they_came() {
        let acts = vec![Act::Request, Act::Meet(3), Act::Send(b"a".to_vec())];
        let mut peer = ScriptPeer::new(vec![Script { acts, repeat: true }]);
        let mut sent_to = |conns: &[u64]| {
            for conn in conns {
                peer.handle_open(MonoNs(0), ConnId(*conn));
                peer.handle_received(MonoNs(0), ConnId(*conn), REQUEST);
            }
            // One that goes away is not waited for, and does not count.
            peer.handle_closed(MonoNs(0), ConnId(1));
            outputs(&mut peer).len()
        };
        assert_eq!(sent_to(&[1, 2, 3]), 3);
        assert_eq!(sent_to(&[1, 5]), 0);
        assert_eq!(sent_to(&[4]), 0);
        assert_eq!(sent_to(&[6]), 3);
    }

    #[test]
    fn an_event_has_its_length() {
        for bytes in [16, 17, 250] {
            assert_eq!(event_of(bytes).len(), bytes);
        }
        assert_eq!(event_of(0).len(), 16);
    }
}
