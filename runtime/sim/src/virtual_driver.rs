//! The driver of virtual time: a session and its peers on one clock, in one thread, at once.

use std::collections::HashMap;

use assize_core::{
    ConnId as ClientConn, Driver, DriverFacts, DriverFailure, Output, RunControl, Session, Sink,
    SocketOp,
};
use assize_units::MonoNs;

use crate::engine::ConnId;
use crate::virtual_net::{Delivery, Segments, SendProgress, VirtualLink, VirtualNet};

/// Runs cells against the peers of a [`VirtualNet`].
///
/// An instant lasts as long as anything is due at it; then the clock jumps to the next. Sending
/// takes no time, but for what a peer leaves unread ([`WINDOW_BYTES`](crate::WINDOW_BYTES)). The
/// same session, peers and link give the same entries to the sink, byte for byte; over sockets they
/// would give the same up to times and cuts.
pub struct VirtualDriver {
    net: VirtualNet,
}

/// Rounds that one instant may take before the driver says that the cell stands still.
const MAX_ROUNDS_AT_ONE_INSTANT: u32 = 10_000_000;

const ECONNREFUSED: i32 = 111;
const ECONNRESET: i32 = 104;

impl VirtualDriver {
    /// A driver on a network of its own; see [`VirtualDriver::net`].
    pub fn new(link: VirtualLink) -> VirtualDriver {
        VirtualDriver::on(VirtualNet::new(link))
    }

    /// A driver on a network.
    pub fn on(net: VirtualNet) -> VirtualDriver {
        VirtualDriver { net }
    }

    /// A handle of the network, to start and stop peers by.
    pub fn net(&self) -> VirtualNet {
        self.net.clone()
    }
}

impl Driver for VirtualDriver {
    fn facts(&self) -> DriverFacts {
        let link = self.net.link();
        let segments = match link.segments {
            Segments::Whole => "whole".to_owned(),
            Segments::Cut { max_bytes, gap } => {
                format!("1 to {max_bytes} bytes, {} ns apart", gap.0)
            }
        };
        DriverFacts {
            name: "virtual".to_owned(),
            why: "asked for: session and servers on one virtual clock".to_owned(),
            features: vec![
                ("latency".to_owned(), format!("{} ns", link.latency.0)),
                ("segments".to_owned(), segments),
                ("seed".to_owned(), link.seed.to_string()),
            ],
        }
    }

    fn now(&self) -> MonoNs {
        self.net.now()
    }

    fn sleep_until(&mut self, until: MonoNs) {
        self.net.advance_to(until);
    }

    fn run_cell(
        &mut self,
        session: &mut Session,
        sink: &mut dyn Sink,
        control: &RunControl,
    ) -> Result<(), DriverFailure> {
        let mut cell = Cell {
            net: self.net.clone(),
            conns: HashMap::new(),
            clients: HashMap::new(),
        };
        let result = cell.run(session, sink, control);
        cell.close_all();
        session.publish(&control.progress);
        result
    }
}

/// The connections of the cell that is being run.
struct Cell {
    net: VirtualNet,
    conns: HashMap<ClientConn, ConnId>,
    clients: HashMap<ConnId, ClientConn>,
}

impl Cell {
    fn run(
        &mut self,
        session: &mut Session,
        sink: &mut dyn Sink,
        control: &RunControl,
    ) -> Result<(), DriverFailure> {
        let mut aborted = false;
        let mut rounds = 0;
        let mut deliveries = Vec::new();
        session.start(self.net.now(), sink);
        loop {
            self.perform(session, sink);
            session.publish(&control.progress);
            if session.is_done() {
                return Ok(());
            }
            if !aborted && (control.stopping() || sink.overflowed()) {
                aborted = true;
                session.abort(self.net.now(), sink);
                continue;
            }
            let due = session.poll_timeout().into_iter();
            let Some(next) = due.chain(self.net.next_due()).min() else {
                return Err(stands_still("nothing is due and the cell is not done"));
            };
            rounds = if next > self.net.now() { 0 } else { rounds + 1 };
            if rounds > MAX_ROUNDS_AT_ONE_INSTANT {
                return Err(stands_still("the cell makes no progress at one instant"));
            }
            self.net.step_to(next, &mut deliveries);
            let now = self.net.now();
            for (conn, delivery) in deliveries.drain(..) {
                if let Some(client) = self.clients.get(&conn) {
                    deliver(session, sink, now, *client, delivery);
                }
                if session.has_output() {
                    self.perform(session, sink);
                }
            }
            session.handle_timeout(now, sink);
        }
    }

    /// Does what the session asks for at this instant.
    fn perform(&mut self, session: &mut Session, sink: &mut dyn Sink) {
        let now = self.net.now();
        while let Some(output) = session.poll_output(now, sink) {
            match output {
                Output::Connect { conn, addr } => {
                    let end = self.net.connect(addr);
                    self.conns.insert(conn, end);
                    self.clients.insert(end, conn);
                }
                Output::Send { conn, data } => {
                    session.handle_send_started(now, conn, sink);
                    let Some(end) = self.conns.get(&conn) else {
                        continue;
                    };
                    let (front, rest) = data.parts(session.spec());
                    let progress = self.net.send(*end, front, rest);
                    sent(session, sink, now, conn, progress);
                }
                Output::Close { conn, farewell } => {
                    if let Some(end) = self.conns.remove(&conn) {
                        if let Some(records) = farewell {
                            self.net.send(end, &records, &[]);
                        }
                        self.clients.remove(&end);
                        self.net.close(end);
                    }
                    session.handle_closed(now, conn, sink);
                }
            }
        }
    }

    /// Leaves nothing behind where the driver itself failed.
    fn close_all(&mut self) {
        let mut ends: Vec<ConnId> = self.clients.keys().copied().collect();
        // The map has no order of its own.
        ends.sort_unstable();
        for end in ends {
            self.net.close(end);
        }
    }
}

fn deliver(
    session: &mut Session,
    sink: &mut dyn Sink,
    now: MonoNs,
    conn: ClientConn,
    delivery: Delivery,
) {
    match delivery {
        Delivery::Connected => session.handle_connected(now, conn, sink),
        Delivery::Refused => {
            session.handle_failed(now, conn, SocketOp::Connect, ECONNREFUSED, sink);
        }
        Delivery::Received(bytes) => session.handle_received(now.into(), conn, &bytes, sink),
        Delivery::Sent(progress) => sent(session, sink, now, conn, progress),
        Delivery::Eof => session.handle_eof(now.into(), conn, sink),
        Delivery::Reset => session.handle_failed(now, conn, SocketOp::Receive, ECONNRESET, sink),
    }
}

fn sent(
    session: &mut Session,
    sink: &mut dyn Sink,
    now: MonoNs,
    conn: ClientConn,
    progress: SendProgress,
) {
    match progress {
        SendProgress::Whole => session.handle_sent(now, conn, sink),
        SendProgress::Part { bytes } => session.handle_partly_sent(now, conn, bytes, sink),
    }
}

fn stands_still(message: &str) -> DriverFailure {
    DriverFailure {
        operation: "virtual clock".to_owned(),
        errno: 0,
        message: message.to_owned(),
    }
}
