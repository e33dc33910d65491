//! A hundred thousand planned requests in one cell, through the recorder: nothing is lost and each
//! ends exactly once.
#![cfg(target_os = "linux")]
#![allow(
    clippy::disallowed_methods,
    reason = "the peer of the real drivers is a thread; no assertion is about time"
)]

use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;

use assize_core::protocol::http1::Limits;
use assize_core::{
    CellSpec, ConnectionPolicy, Driver, LoadSpec, ReceiveMode, RequestSpec, RunControl, Session,
};
use assize_drivers::{EpollDriver, UringDriver};
use assize_evidence::wire::{FileHeader, Payload, WireEnd, WireReader};
use assize_evidence::{MemoryStore, Store, Terminal};
use assize_host::{Backpressure, Recorder, RenderedCell, Secrets};
use assize_plan::Hash;
use assize_sim::http::{Stop, serve_stamped};
use assize_sim::{Act, Script, ScriptPeer, VirtualDriver, VirtualLink};
use assize_units::{DurNs, OffsetNs};

const REQUESTS: usize = 100_000;
const CLIENTS: u32 = 64;
const ANSWER: &[u8] = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok";

fn peer() -> ScriptPeer {
    let acts = vec![Act::Request, Act::Send(ANSWER.to_vec())];
    ScriptPeer::new(vec![Script { acts, repeat: true }])
}

/// A cell whose requests have names of their own, over kept connections.
fn cell(target: SocketAddr, load: LoadSpec) -> Arc<CellSpec> {
    let body: Arc<[u8]> = Arc::from(&b"{}"[..]);
    let length = body.len();
    let request = |req: usize| RequestSpec {
        target: 0,
        head: format!(
            "POST / HTTP/1.1\r\nhost: {target}\r\ncontent-length: {length}\r\n\
             x-request-id: {req}\r\n\r\n"
        )
        .into_bytes(),
        body: body.clone(),
        timeout: DurNs::from_s(500),
        connect_timeout: None,
        idle_timeout: None,
    };
    Arc::new(CellSpec {
        requests: (0..REQUESTS).map(request).collect(),
        load,
        targets: vec![target.into()],
        connections: ConnectionPolicy::Reuse {
            idle: DurNs::from_s(60),
        },
        drain: DurNs::from_s(500),
        limits: Limits::default(),
        spin: DurNs::ZERO,
        receive: ReceiveMode::Reap,
    })
}

/// Runs a cell and records it; the wire log.
fn record(driver: &mut dyn Driver, spec: Arc<CellSpec>) -> (Session, MemoryStore) {
    let store = MemoryStore::new();
    let header = FileHeader {
        unit: 0,
        cell: 0,
        plan: Hash::of(b"a plan"),
        begun: driver.now(),
    };
    let mut recorder = Recorder::new(
        store.create("wire.log").unwrap(),
        header,
        Arc::new(RenderedCell::without_plan(spec.clone())),
        Secrets::none(),
        // How fast this host writes is not what is tested.
        Backpressure::Wait,
    )
    .unwrap();
    let mut session = Session::new(spec);
    driver
        .run_cell(&mut session, &mut recorder, &RunControl::default())
        .unwrap();
    let end = recorder.finish();
    assert!(!end.overflowed && end.error.is_none(), "{end:?}");
    (session, store)
}

/// What the log says of one request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Told {
    dispatches: u32,
    admissions: u32,
    send_starts: u32,
    sent_bytes: u64,
    received: Vec<u8>,
    terminals: Vec<Terminal>,
}

fn told(store: &MemoryStore) -> Vec<Told> {
    let mut told = vec![Told::default(); REQUESTS];
    let mut reader = WireReader::new(store.open("wire.log").unwrap()).unwrap();
    let mut last = None;
    loop {
        let more = reader.next_segment(|record| {
            assert!(last <= Some(record.head.t), "the log is in order of time");
            last = Some(record.head.t);
            let Some(req) = record.head.req else { return };
            let told = &mut told[req as usize];
            assert!(told.terminals.is_empty(), "nothing follows the end");
            match record.payload {
                Payload::Dispatch { .. } => told.dispatches += 1,
                Payload::Admit => told.admissions += 1,
                Payload::SendStart { .. } => told.send_starts += 1,
                Payload::Sent { bytes } => told.sent_bytes += bytes,
                Payload::Recv(bytes) => told.received.extend_from_slice(bytes),
                Payload::Terminal { terminal, .. } => told.terminals.push(terminal),
                _ => {}
            }
        });
        if !more.unwrap() {
            assert_eq!(reader.end(), Some(WireEnd::Clean));
            return told;
        }
    }
}

fn check(session: &Session, store: &MemoryStore) {
    let spec = session.spec();
    for (req, told) in told(store).into_iter().enumerate() {
        let expected = Told {
            dispatches: 1,
            admissions: 1,
            send_starts: 1,
            sent_bytes: spec.requests[req].wire_len(),
            received: ANSWER.to_vec(),
            terminals: vec![Terminal::Complete],
        };
        assert_eq!(told, expected, "request {req}");
    }
    let carried = session.exchanges().iter().map(|exchange| exchange.reuse);
    let connections = carried.map(|reuse| reuse.unwrap().conn).max().unwrap() + 1;
    assert!(connections <= CLIENTS, "{connections} connections");
}

#[test]
fn a_hundred_thousand_in_virtual_time() {
    let target: SocketAddr = "127.0.0.1:8000".parse().unwrap();
    let mut driver = VirtualDriver::new(VirtualLink::default());
    driver.net().start_peer(target, Box::new(peer()));
    let offsets = (0..REQUESTS as u64).map(|req| OffsetNs(req * 10_000));
    let load = LoadSpec::Open {
        offsets: offsets.collect(),
        cap: None,
    };
    let (session, store) = record(&mut driver, cell(target, load));
    check(&session, &store);
    let origin = session.origin().unwrap();
    for (req, exchange) in (0..).zip(session.exchanges()) {
        let due = origin.at(OffsetNs(req * 10_000));
        assert_eq!(exchange.dispatched, Some(due), "request {req}");
    }
}

#[test]
fn a_hundred_thousand_by_epoll() {
    over_sockets(EpollDriver::new("a test").unwrap());
}

#[test]
fn a_hundred_thousand_by_io_uring() {
    match UringDriver::new("a test") {
        Ok(driver) => over_sockets(driver),
        Err(failure) => eprintln!("skipped: io_uring is not to be had here: {failure}"),
    }
}

fn over_sockets(mut driver: impl Driver) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let target = listener.local_addr().unwrap();
    let stop = Stop::new().unwrap();
    std::thread::scope(|scope| {
        let server = scope.spawn(|| serve_stamped(listener, peer(), &stop).unwrap());
        let stopped = StopOnDrop(&stop);
        let load = LoadSpec::Closed { clients: CLIENTS };
        let (session, store) = record(&mut driver, cell(target, load));
        drop(stopped);
        let served = server.join().unwrap();
        check(&session, &store);
        assert_eq!(served.sent_bytes, (REQUESTS * ANSWER.len()) as u64);
        let requests = &session.spec().requests;
        let sent: u64 = requests.iter().map(RequestSpec::wire_len).sum();
        assert_eq!(served.received_bytes, sent);
    });
}

/// Stops the peer also when the test panics: a scope would wait for it for ever.
struct StopOnDrop<'a>(&'a Stop);

impl Drop for StopOnDrop<'_> {
    fn drop(&mut self) {
        self.0.stop().expect("a stop");
    }
}
