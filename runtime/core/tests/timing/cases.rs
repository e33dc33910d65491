//! Single runs that show one behaviour each.

use std::sync::Arc;

use assize_core::protocol::http1::Limits;
use assize_core::{
    CellSpec, ConnectionPolicy, LoadSpec, Output, Phase, ReceiveMode, RequestSpec, Session,
    SocketOp, Terminal,
};
use assize_units::{DurNs, MonoNs, OffsetNs};

use super::laws;
use super::setting::{Act, Answer, ConnectAct, DriverActs, SendAct, Setting};
use super::world::{Call, Kept, Run, START, What, call, run};

const OK: &[u8] =
    b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-length: 30\r\n\r\n\
    data: {\"x\":1}\n\ndata: [DONE]\n\n ";

fn setting(load: LoadSpec, connections: ConnectionPolicy, peer: Vec<Vec<(u64, Act)>>) -> Setting {
    let request = RequestSpec {
        target: 0,
        head: b"POST / HTTP/1.1\r\n\r\n".to_vec(),
        body: Arc::from(&b"{}"[..]),
        timeout: DurNs::from_s(1),
        connect_timeout: None,
        idle_timeout: None,
    };
    Setting {
        spec: CellSpec {
            requests: vec![request; peer.len()],
            load,
            targets: vec![std::net::SocketAddr::from(([127, 0, 0, 1], 1)).into()],
            connections,
            drain: DurNs::from_s(2),
            limits: Limits::default(),
            spin: DurNs::ZERO,
            receive: ReceiveMode::Reap,
        },
        connects: vec![ConnectAct::Stands { after: 10 }],
        answers: peer
            .into_iter()
            .map(|acts| Answer {
                send: SendAct::Taken { after: 0 },
                acts,
            })
            .collect(),
        driver: DriverActs::default(),
    }
}

fn open(offsets: &[u64]) -> LoadSpec {
    LoadSpec::Open {
        offsets: offsets.iter().copied().map(OffsetNs).collect(),
        cap: None,
    }
}

fn bytes(after: u64, bytes: &[u8]) -> (u64, Act) {
    (after, Act::Bytes(bytes.to_vec()))
}

fn lawful(setting: &Setting) -> Run {
    let run = run(setting);
    laws::check(&run);
    run
}

fn ends(run: &Run) -> Vec<Terminal> {
    let terminals = run.exchanges.iter().map(|exchange| exchange.terminal);
    terminals.map(Option::unwrap).collect()
}

#[test]
fn a_stalled_peer_delays_nobody() {
    use Terminal::{Complete, RequestTimeout};
    let answered = || vec![bytes(50, OK)];
    let peer = vec![vec![], answered(), answered(), answered()];
    let run = lawful(&setting(
        open(&[0, 500, 500, 9_000]),
        ConnectionPolicy::Fresh,
        peer,
    ));
    assert_eq!(ends(&run), [RequestTimeout, Complete, Complete, Complete]);
    assert_eq!(run.exchanges[0].phase, Some(Phase::BeforeHead));
}

#[test]
fn a_closed_load_keeps_its_clients_busy() {
    let peer = (0..9).map(|req| vec![bytes(100 + req, OK)]).collect();
    let load = LoadSpec::Closed { clients: 3 };
    let run = lawful(&setting(load, ConnectionPolicy::Fresh, peer));
    assert_eq!(run.most_open, 3);
    for exchange in &run.exchanges {
        assert_eq!((exchange.events, exchange.done_events), (2, 1));
    }
}

#[test]
fn reuse_takes_the_last_idle_connection_within_its_bound() {
    const KEPT: &[u8] = b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n";
    let policy = ConnectionPolicy::Reuse { idle: DurNs(5_000) };
    let peer = vec![vec![bytes(100, KEPT)]; 3];
    let run = lawful(&setting(open(&[0, 1_000, 60_000]), policy, peer));
    let reuse: Vec<_> = run.exchanges.iter().map(|e| e.reuse.unwrap()).collect();
    let seen: Vec<_> = reuse.iter().map(|r| (r.conn, r.nth, r.idle)).collect();
    // The third finds it idle for too long.
    assert_eq!(seen, [(0, 0, None), (0, 1, Some(DurNs(890))), (1, 0, None)]);
}

#[test]
fn preopened_connections_stand_before_the_origin() {
    let policy = ConnectionPolicy::Preopened { n: 2 };
    let peer = vec![vec![bytes(100, OK)]; 2];
    let run = lawful(&setting(LoadSpec::Closed { clients: 2 }, policy, peer));
    assert!(
        run.exchanges
            .iter()
            .all(|e| e.connect.is_none() && e.sent.is_some())
    );
    let start = run
        .puts
        .iter()
        .position(|put| matches!(put.what, What::CellStart(_)));
    let before = &run.puts[..start.unwrap()];
    let stood = before.iter().filter(|put| put.what == What::Connected);
    assert_eq!(stood.count(), 2);
}

#[test]
fn a_preopened_connection_that_hangs_does_not_hold_the_cell() {
    let policy = ConnectionPolicy::Preopened { n: 2 };
    let mut setting = setting(open(&[0]), policy, vec![vec![bytes(100, OK)]]);
    setting.connects = vec![ConnectAct::Stands { after: 10 }, ConnectAct::Hangs];
    setting.spec.requests[0].connect_timeout = Some(DurNs::from_ms(3));
    let run = lawful(&setting);
    let awaited = START
        .after(DurNs::from_ms(3))
        .after(assize_core::ORIGIN_LEAD);
    assert_eq!(run.origin, Some(awaited));
    assert_eq!(ends(&run), [Terminal::Complete]);
}

#[test]
fn a_stop_before_the_origin_ends_the_cell() {
    let policy = ConnectionPolicy::Preopened { n: 2 };
    let mut setting = setting(open(&[0]), policy, vec![vec![]]);
    setting.connects = vec![ConnectAct::Hangs];
    setting.driver.abort_after = Some(5);
    let run = lawful(&setting);
    assert_eq!(ends(&run), [Terminal::NotDispatched]);
    assert_eq!(run.origin, None);
}

#[test]
fn each_end_has_its_terminal_and_its_phase() {
    use Terminal::*;
    let cases: Vec<(Vec<(u64, Act)>, Terminal, Phase)> = vec![
        (vec![(5, Act::Eof)], Disconnected, Phase::BeforeHead),
        (vec![(5, Act::Reset)], Reset, Phase::BeforeHead),
        (
            vec![bytes(5, b"HTTP/1.1 2"), (9, Act::Eof)],
            Disconnected,
            Phase::Head,
        ),
        (
            vec![bytes(5, b"HTTP/1.1 200 OK\r\nx y: 1\r\n\r\n")],
            MalformedHead,
            Phase::Head,
        ),
        (
            vec![bytes(5, &OK[..100]), (9, Act::Eof)],
            Truncated,
            Phase::Stream,
        ),
        (
            vec![bytes(
                5,
                b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n",
            )],
            MalformedFraming,
            Phase::Stream,
        ),
        (
            vec![bytes(
                5,
                b"HTTP/1.1 307 R\r\nlocation: /x\r\ncontent-length: 0\r\n\r\n",
            )],
            Redirect,
            Phase::Ended,
        ),
        (
            vec![bytes(
                5,
                b"HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\ncontent-length: 1\r\n\r\nx",
            )],
            Encoded,
            Phase::Ended,
        ),
        (
            vec![bytes(5, b"HTTP/1.1 500 E\r\ncontent-length: 1\r\n\r\nx")],
            Complete,
            Phase::Ended,
        ),
        (vec![], RequestTimeout, Phase::BeforeHead),
    ];
    let peer = cases.iter().map(|(acts, _, _)| acts.clone()).collect();
    let load = LoadSpec::Closed { clients: 1 };
    let run = lawful(&setting(load, ConnectionPolicy::Fresh, peer));
    for (exchange, (acts, terminal, phase)) in run.exchanges.iter().zip(&cases) {
        let seen = (exchange.terminal, exchange.phase);
        assert_eq!(seen, (Some(*terminal), Some(*phase)), "{acts:?}");
    }
}

#[test]
fn the_drain_ends_what_is_unfinished_at_its_instant() {
    let mut setting = setting(open(&[0, 100]), ConnectionPolicy::Fresh, vec![vec![]; 2]);
    setting.spec.drain = DurNs::from_ms(500);
    let run = lawful(&setting);
    let limit = run.exchanges[1]
        .admitted
        .unwrap()
        .after(DurNs::from_ms(500));
    for exchange in &run.exchanges {
        assert_eq!(exchange.terminal, Some(Terminal::DrainTimeout));
        assert_eq!(exchange.end, Some(limit));
    }
}

#[test]
fn an_answer_at_the_deadline_is_in_time_and_one_after_it_is_not() {
    for (after, terminal) in [
        (1_000, Terminal::Complete),
        (1_001, Terminal::RequestTimeout),
    ] {
        let peer = vec![vec![bytes(after, OK)]];
        let mut setting = setting(open(&[0]), ConnectionPolicy::Fresh, peer);
        setting.spec.requests[0].timeout = DurNs(1_010);
        let run = lawful(&setting);
        assert_eq!(ends(&run), [terminal]);
        assert_eq!(
            run.exchanges[0].end,
            run.exchanges[0].admitted.map(|at| at.after(DurNs(1_010)))
        );
    }
}

#[test]
fn a_late_driver_names_the_earliest_deadline_that_passed() {
    let mut setting = setting(open(&[0]), ConnectionPolicy::Fresh, vec![vec![]]);
    setting.spec.drain = DurNs(2_000);
    setting.spec.requests[0].timeout = DurNs(1_500);
    setting.driver.lateness = vec![9_000];
    assert_eq!(ends(&lawful(&setting)), [Terminal::RequestTimeout]);
}

#[test]
fn an_ended_requests_deadlines_wake_nobody() {
    let peer = vec![vec![bytes(50, OK)], vec![bytes(50, OK)]];
    let far = DurNs::from_s(1).0 + 1_000_000_000;
    let run = lawful(&setting(open(&[0, far]), ConnectionPolicy::Fresh, peer));
    // Due, connected, answered: for each of the two.
    assert_eq!(run.wakes.len(), 6);
}

#[test]
fn bytes_after_the_end_are_never_the_next_answer() {
    const TWO: &[u8] =
        b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\nHTTP/1.1 500 X\r\ncontent-length: 0\r\n\r\n";
    let policy = ConnectionPolicy::Reuse {
        idle: DurNs::from_s(9),
    };
    let load = LoadSpec::Closed { clients: 1 };
    let run = lawful(&setting(load, policy, vec![vec![bytes(5, TWO)]; 2]));
    for exchange in &run.exchanges {
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
    let refused: &[u8] = b"HTTP/1.1 413 L\r\ncontent-length: 0\r\n\r\n";
    let peer = vec![vec![bytes(20, refused)]];
    let mut setting = setting(open(&[0]), ConnectionPolicy::Fresh, peer);
    setting.answers[0].send = SendAct::Broken {
        after: 5,
        errno: 32,
    };
    let run = lawful(&setting);
    assert_eq!(
        (ends(&run)[0], run.exchanges[0].status),
        (Terminal::Complete, 413)
    );
}

#[test]
fn a_completion_behind_the_clock_sets_no_time_back() {
    let setting = setting(open(&[0]), ConnectionPolicy::Fresh, vec![vec![]]);
    let mut session = Session::new(Arc::new(setting.spec));
    let mut sink = Kept::default();
    call(&mut session, &mut sink, MonoNs(0), &Call::Start);
    let now = session.origin().unwrap().after(DurNs(700));
    let Some(Output::Connect { conn, .. }) = call(&mut session, &mut sink, now, &Call::Poll) else {
        panic!("the request is due")
    };
    let behind = now.before(DurNs(600));
    call(&mut session, &mut sink, behind, &Call::Connected(conn));
    let failed = Call::Failed(conn, SocketOp::Receive, 104);
    call(&mut session, &mut sink, behind, &failed);
    let exchange = &session.exchanges()[0];
    assert_eq!((exchange.connected, exchange.end), (Some(now), Some(now)));
}
