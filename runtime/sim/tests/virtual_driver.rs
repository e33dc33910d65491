//! Sessions against engines on one virtual clock: exact instants, accounting, faults.

mod support;

use std::net::SocketAddr;
use std::sync::Arc;

use assize_core::protocol::http1::Limits;
use assize_core::{
    CellSpec, ConnId, ConnectionPolicy, Driver, Entry, LoadSpec, NullSink, ReceiveMode,
    RequestSpec, RunControl, Session, Sink, Stamp, Terminal,
};
use assize_sim::{EngineConfig, Fault, FaultRule, Percent, Segments, VirtualDriver, VirtualLink};
use assize_units::{DurNs, OffsetNs};
use support::post;

const MS: u64 = 1_000_000;
const US: u64 = 1_000;

fn addr() -> SocketAddr {
    "127.0.0.1:8000".parse().unwrap()
}

fn engine() -> EngineConfig {
    EngineConfig {
        prefill_base: DurNs::from_ms(3),
        prefill_per_token: DurNs::ZERO,
        step: DurNs::from_ms(8),
        step_per_seq: DurNs::from_ms(1),
        ..EngineConfig::default()
    }
}

fn spec(requests: usize, load: LoadSpec, connections: ConnectionPolicy) -> CellSpec {
    let body = r#"{"prompt":"a","max_tokens":3,"ignore_eos":true,"stream":true}"#;
    let bytes = post("/v1/completions", body);
    let head = bytes[..bytes.len() - body.len()].to_vec();
    let request = RequestSpec {
        target: 0,
        head,
        body: Arc::from(body.as_bytes()),
        timeout: DurNs::from_s(1),
        connect_timeout: None,
        idle_timeout: None,
    };
    CellSpec {
        requests: vec![request; requests],
        load,
        targets: vec![addr().into()],
        connections,
        drain: DurNs::from_s(2),
        limits: Limits::default(),
        spin: DurNs::ZERO,
        receive: ReceiveMode::Reap,
    }
}

fn link(segments: Segments) -> VirtualLink {
    VirtualLink {
        latency: DurNs::from_us(50),
        segments,
        seed: 3,
    }
}

/// Runs a cell against one engine; `None` leaves the address empty.
fn run(spec: CellSpec, engine: Option<EngineConfig>, link: VirtualLink) -> Session {
    let mut driver = VirtualDriver::new(link);
    if let Some(config) = engine {
        driver.net().start_engine(addr(), config).unwrap();
    }
    let mut session = Session::new(Arc::new(spec));
    let control = RunControl::default();
    driver
        .run_cell(&mut session, &mut NullSink, &control)
        .unwrap();
    assert!(session.is_done());
    session
}

fn closed(clients: u32) -> LoadSpec {
    LoadSpec::Closed { clients }
}

/// Instants of one request after the origin: sent, head, first event, done, end.
fn instants(session: &Session, req: usize) -> [u64; 5] {
    let exchange = &session.exchanges()[req];
    let origin = session.origin().unwrap();
    [
        exchange.sent,
        exchange.head,
        exchange.first_event,
        exchange.done,
        exchange.end,
    ]
    .map(|at| at.unwrap().since(origin).0)
}

#[test]
fn every_instant_follows_from_the_model_and_the_link() {
    let session = run(
        spec(2, closed(1), ConnectionPolicy::Fresh),
        Some(engine()),
        link(Segments::Whole),
    );
    // 2 × 50 µs to connect, 50 µs there, 3 ms prefill, two steps of 8 ms, 50 µs back.
    let first = [
        100 * US,
        200 * US,
        200 * US + 3 * MS,
        200 * US + 19 * MS,
        200 * US + 19 * MS,
    ];
    assert_eq!(instants(&session, 0), first);
    // The next is admitted at the end of the one before it, and is a copy of it.
    let second = first.map(|at| at + first[4]);
    assert_eq!(instants(&session, 1), second);
}

#[test]
fn a_kept_connection_saves_its_making() {
    let policy = ConnectionPolicy::Reuse {
        idle: DurNs::from_s(4),
    };
    let session = run(
        spec(3, closed(1), policy),
        Some(engine()),
        link(Segments::Whole),
    );
    let end = instants(&session, 0)[4];
    assert_eq!(instants(&session, 1)[0], end);
    assert_eq!(session.exchanges()[2].reuse.unwrap().nth, 2);
}

#[test]
fn an_open_load_is_sent_when_it_is_due_whatever_the_engine_does() {
    let offsets: Vec<OffsetNs> = (0..20).map(|n| OffsetNs(n * MS)).collect();
    let load = LoadSpec::Open { offsets, cap: None };
    let dispatched = |config: EngineConfig| {
        let session = run(
            spec(20, load.clone(), ConnectionPolicy::Fresh),
            Some(config),
            link(Segments::Whole),
        );
        let origin = session.origin().unwrap();
        let at = |n: usize| session.exchanges()[n].dispatched.unwrap().since(origin).0;
        (0..20).map(at).collect::<Vec<_>>()
    };
    let slow = EngineConfig {
        step: DurNs::from_ms(40),
        max_seqs: 2,
        ..engine()
    };
    let expected: Vec<u64> = (0..20).map(|n| n * MS).collect();
    assert_eq!(dispatched(engine()), expected);
    assert_eq!(dispatched(slow), expected);
}

#[test]
fn a_cut_of_the_bytes_changes_no_instant() {
    let whole = run(
        spec(6, closed(3), ConnectionPolicy::Fresh),
        Some(engine()),
        link(Segments::Whole),
    );
    for max_bytes in [1, 2, 7, 300] {
        let cut = Segments::Cut {
            max_bytes,
            gap: DurNs::ZERO,
        };
        let session = run(
            spec(6, closed(3), ConnectionPolicy::Fresh),
            Some(engine()),
            link(cut),
        );
        for req in 0..6 {
            assert_eq!(
                instants(&session, req),
                instants(&whole, req),
                "{max_bytes}"
            );
            let (a, b) = (&session.exchanges()[req], &whole.exchanges()[req]);
            assert_eq!(a.events, b.events);
            assert_eq!(a.received_bytes, b.received_bytes);
        }
    }
}

#[test]
fn a_gap_between_segments_delays_what_it_divides() {
    let cut = Segments::Cut {
        max_bytes: 1,
        gap: DurNs(10),
    };
    let session = run(
        spec(1, closed(1), ConnectionPolicy::Fresh),
        Some(engine()),
        link(cut),
    );
    let whole = run(
        spec(1, closed(1), ConnectionPolicy::Fresh),
        Some(engine()),
        link(Segments::Whole),
    );
    let head_bytes = session.exchanges()[0].received_bytes;
    let request = session.spec().requests[0].wire_len();
    assert!(head_bytes > 100);
    let late = instants(&session, 0)[1] - instants(&whole, 0)[1];
    // The request's bytes are 10 ns apart, and so are those of the head.
    let head = late / 10 - (request - 1) + 1;
    assert!((100..300).contains(&head), "{head}");
}

#[test]
fn faults_end_in_their_terminals() {
    let terminal = |fault: Fault| {
        let rule = FaultRule {
            fault,
            requests: vec![1],
            every: 0,
            probability: Percent::default(),
        };
        let config = EngineConfig {
            faults: vec![rule],
            ..engine()
        };
        let session = run(
            spec(3, closed(1), ConnectionPolicy::Fresh),
            Some(config),
            link(Segments::Whole),
        );
        let of = |n: usize| session.exchanges()[n].terminal.unwrap();
        assert_eq!((of(0), of(2)), (Terminal::Complete, Terminal::Complete));
        of(1)
    };
    let after_events = 1;
    for (fault, expected) in [
        (Fault::ResetBeforeHead, Terminal::Reset),
        (Fault::CloseBeforeHead, Terminal::Disconnected),
        (Fault::CloseMidStream { after_events }, Terminal::Truncated),
        (Fault::ResetMidStream { after_events }, Terminal::Reset),
        (Fault::Hang, Terminal::RequestTimeout),
        (
            Fault::HangMidStream { after_events },
            Terminal::RequestTimeout,
        ),
        (
            Fault::MalformedChunk { after_events },
            Terminal::MalformedFraming,
        ),
        (Fault::GzipClaim, Terminal::Encoded),
        (Fault::Status { code: 307 }, Terminal::Redirect),
        (Fault::Status { code: 500 }, Terminal::Complete),
        (Fault::MissingDone, Terminal::Complete),
        (Fault::ByteByByte, Terminal::Complete),
    ] {
        assert_eq!(terminal(fault.clone()), expected, "{fault:?}");
    }
}

#[test]
fn an_empty_address_refuses_and_a_stopped_engine_resets() {
    let session = run(
        spec(2, closed(1), ConnectionPolicy::Fresh),
        None,
        link(Segments::Whole),
    );
    let exchange = &session.exchanges()[0];
    assert_eq!(
        (exchange.terminal, exchange.errno),
        (Some(Terminal::Refused), 111)
    );

    let driver = VirtualDriver::new(link(Segments::Whole));
    let net = driver.net();
    net.start_engine(addr(), engine()).unwrap();
    assert!(net.stop(addr()));
    assert!(!net.stop(addr()));
    assert_eq!(net.probe(addr(), "/health"), None);
}

#[test]
fn an_idle_connection_that_the_engine_closed_is_not_used_again() {
    let offsets = vec![OffsetNs(0), OffsetNs(100 * MS)];
    let config = EngineConfig {
        keep_alive: DurNs::from_ms(50),
        ..engine()
    };
    let policy = ConnectionPolicy::Reuse {
        idle: DurNs::from_s(4),
    };
    let session = run(
        spec(2, LoadSpec::Open { offsets, cap: None }, policy),
        Some(config),
        link(Segments::Whole),
    );
    let second = &session.exchanges()[1];
    assert_eq!(second.terminal, Some(Terminal::Complete));
    assert_eq!(second.reuse.unwrap().nth, 0);
}

#[test]
fn time_passes_without_a_cell_and_probes_take_none() {
    let mut driver = VirtualDriver::new(VirtualLink::default());
    let net = driver.net();
    let config = EngineConfig {
        startup: DurNs::from_s(3),
        ..engine()
    };
    net.start_engine(addr(), config).unwrap();
    assert_eq!(net.probe(addr(), "/health").unwrap().status, 503);
    let before = driver.now();
    driver.sleep_until(before.after(DurNs::from_s(3)));
    assert_eq!(driver.now().since(before), DurNs::from_s(3));
    assert_eq!(net.probe(addr(), "/health").unwrap().status, 200);
    let page = String::from_utf8(net.probe(addr(), "/metrics").unwrap().body).unwrap();
    assert!(page.contains("vllm:num_requests_running"));
}

#[test]
fn a_stop_ends_the_cell() {
    let mut driver = VirtualDriver::new(VirtualLink::default());
    driver.net().start_engine(addr(), engine()).unwrap();
    let mut session = Session::new(Arc::new(spec(9, closed(2), ConnectionPolicy::Fresh)));
    let control = RunControl::default();
    control
        .stop
        .store(true, std::sync::atomic::Ordering::Relaxed);
    driver
        .run_cell(&mut session, &mut NullSink, &control)
        .unwrap();
    assert!(session.is_done());
    assert!(session.exchanges().iter().all(|e| e.terminal.is_some()));
}

/// Keeps each entry as a line.
#[derive(Default)]
struct Lines(Vec<String>);

impl Sink for Lines {
    fn put(&mut self, at: Stamp, conn: Option<ConnId>, req: Option<u32>, entry: Entry<'_>) {
        self.0
            .push(format!("{} {conn:?} {req:?} {entry:?}", at.mono.0));
    }

    fn overflowed(&self) -> bool {
        false
    }
}

#[test]
fn the_same_cell_leaves_the_same_entries_also_when_engines_share_the_clock() {
    let other: SocketAddr = "127.0.0.1:8001".parse().unwrap();
    let lines = || {
        let cut = Segments::Cut {
            max_bytes: 90,
            gap: DurNs(700),
        };
        let mut driver = VirtualDriver::new(link(cut));
        let jitter = Percent::parse("5%").unwrap();
        let net = driver.net();
        net.start_engine(addr(), EngineConfig { jitter, ..engine() })
            .unwrap();
        net.start_engine(
            other,
            EngineConfig {
                jitter,
                seed: 9,
                ..engine()
            },
        )
        .unwrap();
        let mut spec = spec(40, closed(8), ConnectionPolicy::Preopened { n: 3 });
        spec.targets.push(other.into());
        for (n, request) in spec.requests.iter_mut().enumerate() {
            request.target = (n % 2) as u32;
        }
        let mut session = Session::new(Arc::new(spec));
        let mut sink = Lines::default();
        driver
            .run_cell(&mut session, &mut sink, &RunControl::default())
            .unwrap();
        assert!(
            session
                .exchanges()
                .iter()
                .all(|e| e.terminal == Some(Terminal::Complete))
        );
        sink.0
    };
    let first = lines();
    assert!(first.len() > 200);
    assert_eq!(first, lines());
}
