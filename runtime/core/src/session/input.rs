//! What a driver tells a session: connections, sends, bytes, ends and failures.
//!
//! Every instant that comes in passes [`Session::enter`]: deadlines before it count first, and no
//! time on a connection goes backward.

use assize_units::MonoNs;

use super::connection::{Records, Sending, State};
use super::ending::{broken_response, connection_broke, system_failure};
use super::{ConnId, Outgoing, Output, Session, SocketOp};
use crate::exchange::PeerEnd;
use crate::protocol::http1::Event;
use crate::sink::{Entry, Sink, Stamp, TimerKind};
use crate::terminal::Terminal;
use crate::tls::{TlsFailure, TlsLayer};

impl Session {
    /// The connection stands.
    pub fn handle_connected(&mut self, now: MonoNs, conn: ConnId, sink: &mut dyn Sink) {
        let Some((req, at)) = self.enter(now.into(), conn, sink) else {
            return;
        };
        let connection = self.conns.get_mut(conn);
        if connection.state != State::Connecting || connection.stands {
            return;
        }
        connection.stands = true;
        let target = connection.target as usize;
        sink.put(at, Some(conn), req, Entry::Connected);
        if let Some(req) = req {
            self.exchanges[req as usize].connected = Some(at.mono);
        }
        let Some(tls) = &self.spec.targets[target].tls else {
            return self.ready(at.mono, conn, req, sink);
        };
        match TlsLayer::start(tls) {
            Ok(layer) => {
                self.conns.get_mut(conn).tls = Some(Box::new(layer));
                self.send_records(conn);
            }
            Err(failure) => self.tls_failed(at, conn, &failure, sink),
        }
    }

    /// The send of [`Output::Send`] was submitted.
    pub fn handle_send_started(&mut self, now: MonoNs, conn: ConnId, sink: &mut dyn Sink) {
        let Some((req, at)) = self.enter(now.into(), conn, sink) else {
            return;
        };
        let sending = self.conns.get_mut(conn).sending.as_ref();
        let carries_request = sending.is_some_and(|sending| sending.carries_request);
        let started = |req: &u32| self.exchanges[*req as usize].send_start.is_some();
        if let Some(req) = req.filter(|req| carries_request && !started(req)) {
            self.exchanges[req as usize].send_start = Some(at.mono);
            sink.put(at, Some(conn), Some(req), Entry::SendStart);
        }
    }

    /// The kernel accepted the first `bytes` of [`Output::Send`], and not yet its last.
    pub fn handle_partly_sent(
        &mut self,
        now: MonoNs,
        conn: ConnId,
        bytes: u64,
        sink: &mut dyn Sink,
    ) {
        if self.enter(now.into(), conn, sink).is_none() {
            return;
        }
        if let Some(sending) = &mut self.conns.get_mut(conn).sending {
            sending.accepted = sending.accepted.max(bytes);
        }
    }

    /// The kernel accepted the last byte of [`Output::Send`].
    pub fn handle_sent(&mut self, now: MonoNs, conn: ConnId, sink: &mut dyn Sink) {
        let Some((req, at)) = self.enter(now.into(), conn, sink) else {
            return;
        };
        let connection = self.conns.get_mut(conn);
        let Some(sending) = connection.sending.take() else {
            return;
        };
        if let (Some(layer), Some(records)) = (&mut connection.tls, &sending.records) {
            layer.count_sent(records.bytes.len() as u64);
        }
        if let Some(req) = req.filter(|_| sending.carries_request) {
            let request = &self.spec.requests[req as usize];
            let bytes = request.wire_len();
            let exchange = &mut self.exchanges[req as usize];
            exchange.sent = Some(at.mono);
            exchange.sent_bytes = bytes;
            sink.put(at, Some(conn), Some(req), Entry::Sent { bytes });
            if let Some(limit) = request.idle_timeout {
                self.deadlines
                    .push(at.mono.after(limit), req, TimerKind::Idle);
            }
        }
        self.send_records(conn);
    }

    /// Bytes came on a connection that stands.
    pub fn handle_received(&mut self, at: Stamp, conn: ConnId, bytes: &[u8], sink: &mut dyn Sink) {
        let Some((_, at)) = self.enter(at, conn, sink) else {
            return;
        };
        let connection = self.conns.get_mut(conn);
        if !connection.stands || bytes.is_empty() {
            return;
        }
        match connection.tls.take() {
            None => self.receive_plaintext(at, conn, bytes, sink),
            Some(layer) => self.receive_ciphertext(at, conn, layer, bytes, sink),
        }
    }

    /// The peer ended its side of a connection.
    pub fn handle_eof(&mut self, at: Stamp, conn: ConnId, sink: &mut dyn Sink) {
        let Some((req, at)) = self.enter(at, conn, sink) else {
            return;
        };
        match &self.conns.get_mut(conn).tls {
            None => self.orderly_end(at, conn, req, sink),
            Some(layer) if !layer.is_established() => {
                let failure = TlsFailure("the peer closed during the handshake".into());
                self.tls_failed(at, conn, &failure, sink);
            }
            Some(_) => self.end_without_close_notify(at, conn, req, sink),
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
        let Some((req, at)) = self.enter(now.into(), conn, sink) else {
            return;
        };
        sink.put(at, Some(conn), req, Entry::Failed { op, errno });
        let Some(req) = req else {
            self.close(at.mono, conn, sink);
            return;
        };
        let exchange = &mut self.exchanges[req as usize];
        if connection_broke(errno) {
            exchange.peer_end = Some(PeerEnd::Reset);
        }
        if op == SocketOp::Send && connection_broke(errno) {
            exchange.errno = errno;
            return;
        }
        self.fail(at, req, system_failure(op, errno), errno, sink);
    }

    /// A closed connection's resources are gone.
    pub fn handle_closed(&mut self, now: MonoNs, conn: ConnId, sink: &mut dyn Sink) {
        self.conns.release(conn);
        self.end_if_due(now, sink);
    }

    /// Lets every deadline before `at` fire, then gives the request of a connection that still
    /// counts, with an instant that is not before what happened on it last: a driver may hand over
    /// a batch with one reading of the clock and poll outputs with later ones in between.
    fn enter(
        &mut self,
        at: Stamp,
        conn: ConnId,
        sink: &mut dyn Sink,
    ) -> Option<(Option<u32>, Stamp)> {
        self.fire_until(MonoNs(at.mono.0.saturating_sub(1)), at.mono, sink);
        let req = self.conns.request_of(conn)?;
        let mono = self.conns.not_before(conn, at.mono);
        Some((req, Stamp { mono, ..at }))
    }

    fn receive_ciphertext(
        &mut self,
        at: Stamp,
        conn: ConnId,
        mut layer: Box<TlsLayer>,
        bytes: &[u8],
        sink: &mut dyn Sink,
    ) {
        let stood = layer.is_established();
        let outcome = layer.receive(bytes);
        let (stands, closed) = (layer.is_established(), layer.is_closed_by_peer());
        let plaintext = layer.take_plaintext();
        self.conns.get_mut(conn).tls = Some(layer);
        if stands && !stood {
            self.established(at, conn, sink);
        }
        // After a failure what waits goes with the alert.
        if outcome.is_ok() {
            self.send_records(conn);
        }
        if !plaintext.is_empty() && self.conns.request_of(conn).is_some() {
            self.receive_plaintext(at, conn, &plaintext, sink);
        }
        if let Some(layer) = &mut self.conns.get_mut(conn).tls {
            layer.reuse_room(plaintext);
        }
        let Some(req) = self.conns.request_of(conn) else {
            return;
        };
        match outcome {
            Err(failure) => self.tls_failed(at, conn, &failure, sink),
            Ok(()) if closed && !stands => {
                let failure = TlsFailure("the peer closed during the handshake".into());
                self.tls_failed(at, conn, &failure, sink);
            }
            Ok(()) if closed => self.orderly_end(at, conn, req, sink),
            Ok(()) => {}
        }
    }

    /// The handshake is done.
    fn established(&mut self, at: Stamp, conn: ConnId, sink: &mut dyn Sink) {
        let Some(req) = self.conns.request_of(conn) else {
            return;
        };
        let Some(layer) = &self.conns.get_mut(conn).tls else {
            return;
        };
        let facts = layer.handshake_facts();
        sink.put(at, Some(conn), req, Entry::Tls { facts: &facts });
        if let Some(req) = req {
            self.exchanges[req as usize].tls = Some(at.mono);
        }
        self.ready(at.mono, conn, req, sink);
    }

    fn receive_plaintext(&mut self, at: Stamp, conn: ConnId, bytes: &[u8], sink: &mut dyn Sink) {
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

    /// The peer will send no more, and says so.
    fn orderly_end(&mut self, at: Stamp, conn: ConnId, req: Option<u32>, sink: &mut dyn Sink) {
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

    /// A TLS connection ended as anyone between could end it: that is no end of a body.
    fn end_without_close_notify(
        &mut self,
        at: Stamp,
        conn: ConnId,
        req: Option<u32>,
        sink: &mut dyn Sink,
    ) {
        let facts = r#"{"event":"eof","close_notify":false}"#;
        sink.put(at, Some(conn), req, Entry::Tls { facts });
        let Some(req) = req else {
            self.close(at.mono, conn, sink);
            return;
        };
        self.exchanges[req as usize].peer_end = Some(PeerEnd::Eof);
        let terminal = match self.conns.get_mut(conn).parser.handle_eof() {
            Ok(_) => Terminal::Truncated,
            Err(error) => broken_response(error),
        };
        self.fail(at, req, terminal, 0, sink);
    }

    fn tls_failed(&mut self, at: Stamp, conn: ConnId, failure: &TlsFailure, sink: &mut dyn Sink) {
        let Some(req) = self.conns.request_of(conn) else {
            return;
        };
        let facts = failure.facts();
        sink.put(at, Some(conn), req, Entry::Tls { facts: &facts });
        match req {
            Some(req) => self.fail(at, req, Terminal::Tls, 0, sink),
            None => self.close(at.mono, conn, sink),
        }
    }

    /// The connection can carry requests from now on.
    fn ready(&mut self, now: MonoNs, conn: ConnId, req: Option<u32>, sink: &mut dyn Sink) {
        match req {
            Some(req) => {
                self.exchanges[req as usize].reuse = Some(self.conns.get_mut(conn).carry(None));
                self.send_request(now, conn, req, sink);
            }
            None => {
                self.conns.set_idle(conn, now);
                self.preopened(now, sink);
            }
        }
    }

    /// Queues the send of a request; a TLS layer encrypts it here.
    pub(super) fn send_request(
        &mut self,
        now: MonoNs,
        conn: ConnId,
        req: u32,
        sink: &mut dyn Sink,
    ) {
        let connection = self.conns.get_mut(conn);
        let Some(layer) = &mut connection.tls else {
            connection.sending = Some(Sending {
                carries_request: true,
                records: None,
                accepted: 0,
            });
            let data = Outgoing::Request(req);
            self.outputs.push_back(Output::Send { conn, data });
            return;
        };
        let request = &self.spec.requests[req as usize];
        match layer.encrypt([&request.head, &request.body]) {
            Ok(start) => {
                connection.request_waits_at = Some(start);
                self.send_records(conn);
            }
            Err(failure) => self.tls_failed(now.into(), conn, &failure, sink),
        }
    }

    /// Queues what a TLS layer has to send, unless a send of the connection is under way.
    fn send_records(&mut self, conn: ConnId) {
        let connection = self.conns.get_mut(conn);
        let free = connection.sending.is_none() && connection.is_live();
        let layer = connection.tls.as_mut().filter(|_| free);
        let Some(records) = layer.and_then(|layer| layer.take_outgoing()) else {
            return;
        };
        let request_at = connection.request_waits_at.take();
        connection.sending = Some(Sending {
            carries_request: request_at.is_some(),
            records: Some(Records {
                bytes: records.clone(),
                request_at: request_at.unwrap_or(records.len()),
            }),
            accepted: 0,
        });
        let data = Outgoing::Records(records);
        self.outputs.push_back(Output::Send { conn, data });
    }
}
