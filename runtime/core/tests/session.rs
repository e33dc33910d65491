//! A session against a scripted peer on a virtual clock: the order of times, admission, deadlines.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;

use assize_core::protocol::http1::Limits;
use assize_core::{
    CellSpec, ConnId, ConnectionPolicy, Entry, LoadSpec, Outgoing, Output, Phase, ReceiveMode,
    RequestSpec, Session, Sink, SocketOp, Stamp, Target, Terminal,
};
use assize_units::{DurNs, MonoNs, OffsetNs};

/// What the peer does with one request, after its last byte.
#[derive(Clone, Debug)]
enum Act {
    Bytes(u64, &'static [u8]),
    Eof(u64),
    Reset(u64),
}

#[derive(Debug)]
enum Happens {
    Connected(ConnId),
    Received(ConnId, &'static [u8]),
    Eof(ConnId),
    Failed(ConnId, SocketOp, i32),
}

/// Keeps each entry as one line.
#[derive(Default)]
struct Lines(Vec<String>);

impl Sink for Lines {
    fn put(&mut self, at: Stamp, _: Option<ConnId>, req: Option<u32>, entry: Entry<'_>) {
        self.0.push(format!("{} {req:?} {entry:?}", at.mono.0));
    }

    fn overflowed(&self) -> bool {
        false
    }
}

const OK: &[u8] =
    b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-length: 30\r\n\r\n\
    data: {\"x\":1}\n\ndata: [DONE]\n\n ";

fn cell(requests: usize, load: LoadSpec, connections: ConnectionPolicy) -> CellSpec {
    let request = RequestSpec {
        target: 0,
        head: b"POST / HTTP/1.1\r\n\r\n".to_vec(),
        body: Arc::from(&b"{}"[..]),
        timeout: DurNs::from_s(1),
        connect_timeout: None,
        idle_timeout: None,
    };
    CellSpec {
        requests: vec![request; requests],
        load,
        targets: vec![Target::from("127.0.0.1:1".parse::<SocketAddr>().unwrap())],
        connections,
        drain: DurNs::from_s(2),
        limits: Limits::default(),
        spin: DurNs::ZERO,
        receive: ReceiveMode::Reap,
    }
}

/// Runs a session; `script` says what the peer does with each request. Connecting takes 10 ns.
fn run(spec: CellSpec, script: impl Fn(u32) -> Vec<Act>) -> (Session, Lines, usize) {
    let mut session = Session::new(Arc::new(spec));
    let mut sink = Lines::default();
    let mut future: BTreeMap<(u64, usize), Happens> = BTreeMap::new();
    let (mut now, mut order, mut most_open) = (MonoNs(1_000), 0, 0);
    session.start(now, &mut sink);
    for _ in 0..1_000_000 {
        while let Some(output) = session.poll_output(now, &mut sink) {
            order += 1;
            match output {
                Output::Connect { conn, .. } => {
                    future.insert((now.0 + 10, order), Happens::Connected(conn));
                }
                Output::Send { conn, data } => {
                    let Outgoing::Request(req) = data else {
                        panic!("cleartext alone")
                    };
                    session.handle_send_started(now, conn, &mut sink);
                    session.handle_sent(now, conn, &mut sink);
                    for act in script(req) {
                        order += 1;
                        let (after, happens) = match act {
                            Act::Bytes(after, bytes) => (after, Happens::Received(conn, bytes)),
                            Act::Eof(after) => (after, Happens::Eof(conn)),
                            Act::Reset(after) => {
                                (after, Happens::Failed(conn, SocketOp::Receive, 104))
                            }
                        };
                        future.insert((now.0 + after, order), happens);
                    }
                }
                Output::Close { conn } => session.handle_closed(now, conn, &mut sink),
            }
            most_open = most_open.max(session.open_connections());
        }
        if session.is_done() {
            return (session, sink, most_open);
        }
        let happens = future.first_key_value().map(|((at, _), _)| MonoNs(*at));
        let next = [happens, session.poll_timeout()]
            .into_iter()
            .flatten()
            .min()
            .expect("something is to come");
        now = now.max(next);
        session.handle_timeout(now, &mut sink);
        while future
            .first_key_value()
            .is_some_and(|((at, _), _)| *at <= now.0)
        {
            match future.pop_first().unwrap().1 {
                Happens::Connected(conn) => session.handle_connected(now, conn, &mut sink),
                Happens::Received(conn, bytes) => {
                    session.handle_received(now.into(), conn, bytes, &mut sink);
                }
                Happens::Eof(conn) => session.handle_eof(now.into(), conn, &mut sink),
                Happens::Failed(conn, op, errno) => {
                    session.handle_failed(now, conn, op, errno, &mut sink);
                }
            }
        }
    }
    panic!("the session does not end");
}

fn terminals(session: &Session) -> Vec<Terminal> {
    session
        .exchanges()
        .iter()
        .map(|exchange| exchange.terminal.unwrap())
        .collect()
}

#[test]
fn an_open_load_dispatches_at_its_offsets_though_the_peer_stalls() {
    let offsets: Vec<OffsetNs> = [0, 500, 500, 9_000].map(OffsetNs).to_vec();
    let spec = cell(
        4,
        LoadSpec::Open {
            offsets: offsets.clone(),
            cap: None,
        },
        ConnectionPolicy::Fresh,
    );
    let (session, _, _) = run(spec, |req| {
        if req == 0 {
            vec![]
        } else {
            vec![Act::Bytes(50, OK)]
        }
    });
    let origin = session.origin().unwrap();
    for (exchange, offset) in session.exchanges().iter().zip(offsets) {
        assert_eq!(exchange.dispatched, Some(origin.at(offset)));
        assert_eq!(exchange.admitted, exchange.dispatched);
    }
    use Terminal::{Complete, RequestTimeout};
    assert_eq!(
        terminals(&session),
        [RequestTimeout, Complete, Complete, Complete]
    );
    let stalled = &session.exchanges()[0];
    assert_eq!(
        stalled.end,
        Some(stalled.admitted.unwrap().after(DurNs::from_s(1)))
    );
    assert_eq!(stalled.phase, Some(Phase::BeforeHead));
}

#[test]
fn a_closed_load_keeps_its_clients_busy_and_never_has_more() {
    let spec = cell(9, LoadSpec::Closed { clients: 3 }, ConnectionPolicy::Fresh);
    let (session, _, most_open) = run(spec, |req| vec![Act::Bytes(100 + u64::from(req), OK)]);
    assert_eq!(most_open, 3);
    let exchanges = session.exchanges();
    let origin = session.origin();
    for (place, exchange) in exchanges.iter().enumerate() {
        assert_eq!(exchange.intended, origin);
        assert_eq!(exchange.terminal, Some(Terminal::Complete));
        assert_eq!((exchange.events, exchange.done_events), (2, 1));
        if place >= 3 {
            // First in, first out; the slot freed at t is refilled at t.
            assert!(
                exchanges
                    .iter()
                    .any(|before| before.end == exchange.admitted),
                "request {place}"
            );
        }
    }
}

#[test]
fn reuse_takes_the_last_idle_connection_within_its_bound() {
    let offsets = [0, 1_000, 60_000].map(OffsetNs).to_vec();
    let policy = ConnectionPolicy::Reuse { idle: DurNs(5_000) };
    let spec = cell(3, LoadSpec::Open { offsets, cap: None }, policy);
    const KEPT: &[u8] = b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n";
    let (session, _, _) = run(spec, |_| vec![Act::Bytes(100, KEPT)]);
    let reuse: Vec<_> = session
        .exchanges()
        .iter()
        .map(|exchange| exchange.reuse.unwrap())
        .collect();
    assert_eq!((reuse[0].conn, reuse[0].nth), (0, 0));
    assert_eq!(
        (reuse[1].conn, reuse[1].nth, reuse[1].idle),
        (0, 1, Some(DurNs(890)))
    );
    assert_eq!(
        (reuse[2].conn, reuse[2].nth),
        (1, 0),
        "idle for too long: a new one"
    );
}

#[test]
fn preopened_connections_stand_before_the_origin() {
    let spec = cell(
        2,
        LoadSpec::Closed { clients: 2 },
        ConnectionPolicy::Preopened { n: 2 },
    );
    let (session, lines, _) = run(spec, |_| vec![Act::Bytes(100, OK)]);
    assert!(
        session
            .exchanges()
            .iter()
            .all(|exchange| exchange.connect.is_none() && exchange.sent.is_some())
    );
    let start = lines
        .0
        .iter()
        .position(|line| line.contains("CellStart"))
        .unwrap();
    assert_eq!(
        lines.0[..start]
            .iter()
            .filter(|line| line.contains("Connected"))
            .count(),
        2
    );
}

#[test]
fn each_end_has_its_terminal_and_its_phase() {
    let ends: Vec<(Vec<Act>, Terminal, Phase)> = vec![
        (vec![Act::Eof(5)], Terminal::Disconnected, Phase::BeforeHead),
        (vec![Act::Reset(5)], Terminal::Reset, Phase::BeforeHead),
        (
            vec![Act::Bytes(5, b"HTTP/1.1 2"), Act::Eof(9)],
            Terminal::Disconnected,
            Phase::Head,
        ),
        (
            vec![Act::Bytes(5, b"HTTP/1.1 200 OK\r\nx y: 1\r\n\r\n")],
            Terminal::MalformedHead,
            Phase::Head,
        ),
        (
            vec![Act::Bytes(5, &OK[..100]), Act::Eof(9)],
            Terminal::Truncated,
            Phase::Stream,
        ),
        (
            vec![Act::Bytes(
                5,
                b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n",
            )],
            Terminal::MalformedFraming,
            Phase::Stream,
        ),
        (
            vec![Act::Bytes(
                5,
                b"HTTP/1.1 307 R\r\nlocation: /x\r\ncontent-length: 0\r\n\r\n",
            )],
            Terminal::Redirect,
            Phase::Ended,
        ),
        (
            vec![Act::Bytes(
                5,
                b"HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\ncontent-length: 1\r\n\r\nx",
            )],
            Terminal::Encoded,
            Phase::Ended,
        ),
        (
            vec![Act::Bytes(
                5,
                b"HTTP/1.1 500 E\r\ncontent-length: 1\r\n\r\nx",
            )],
            Terminal::Complete,
            Phase::Ended,
        ),
        (vec![], Terminal::RequestTimeout, Phase::BeforeHead),
    ];
    let spec = cell(
        ends.len(),
        LoadSpec::Closed { clients: 1 },
        ConnectionPolicy::Fresh,
    );
    let (session, lines, _) = run(spec, |req| ends[req as usize].0.clone());
    for (place, (exchange, (_, terminal, phase))) in
        session.exchanges().iter().zip(&ends).enumerate()
    {
        assert_eq!(
            (exchange.terminal, exchange.phase),
            (Some(*terminal), Some(*phase)),
            "end {place}"
        );
    }
    assert_eq!(
        lines
            .0
            .iter()
            .filter(|line| line.contains("Terminal"))
            .count(),
        ends.len()
    );
}

#[test]
fn the_drain_ends_what_is_unfinished_at_its_instant() {
    let offsets = [0, 100].map(OffsetNs).to_vec();
    let mut spec = cell(
        2,
        LoadSpec::Open { offsets, cap: None },
        ConnectionPolicy::Fresh,
    );
    spec.drain = DurNs::from_ms(500);
    let (session, _, _) = run(spec, |_| vec![]);
    let last = session.exchanges()[1].admitted.unwrap();
    for exchange in session.exchanges() {
        assert_eq!(exchange.terminal, Some(Terminal::DrainTimeout));
        assert_eq!(exchange.end, Some(last.after(DurNs::from_ms(500))));
    }
}

#[test]
fn bytes_after_the_end_are_never_the_next_answer() {
    let spec = cell(
        2,
        LoadSpec::Closed { clients: 1 },
        ConnectionPolicy::Reuse {
            idle: DurNs::from_s(9),
        },
    );
    const TWO: &[u8] =
        b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\nHTTP/1.1 500 X\r\ncontent-length: 0\r\n\r\n";
    let (session, _, _) = run(spec, |_| vec![Act::Bytes(5, TWO)]);
    for exchange in session.exchanges() {
        assert_eq!((exchange.status, exchange.surplus_bytes), (200, 37));
        assert_eq!(
            exchange.reuse.unwrap().nth,
            0,
            "the connection is not used again"
        );
    }
}

#[test]
fn a_broken_send_waits_for_what_the_receive_says() {
    let mut session = Session::new(Arc::new(cell(
        1,
        LoadSpec::Closed { clients: 1 },
        ConnectionPolicy::Fresh,
    )));
    let mut sink = Lines::default();
    session.start(MonoNs(0), &mut sink);
    let now = session.origin().unwrap();
    let Some(Output::Connect { conn, .. }) = session.poll_output(now, &mut sink) else {
        panic!()
    };
    session.handle_connected(now, conn, &mut sink);
    assert!(matches!(
        session.poll_output(now, &mut sink),
        Some(Output::Send { .. })
    ));
    session.handle_failed(now, conn, SocketOp::Send, 32, &mut sink);
    assert_eq!(session.exchanges()[0].terminal, None);
    session.handle_received(
        now.into(),
        conn,
        b"HTTP/1.1 413 L\r\ncontent-length: 0\r\n\r\n",
        &mut sink,
    );
    assert_eq!(
        (
            session.exchanges()[0].terminal,
            session.exchanges()[0].status
        ),
        (Some(Terminal::Complete), 413)
    );
}
