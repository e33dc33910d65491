//! What each layer under a driver costs for itself, without a socket.
#![allow(missing_docs, reason = "a bench")]

#[path = "floor/host.rs"]
mod host;

use std::hint::black_box;
use std::net::SocketAddr;
use std::sync::Arc;

use assize_core::protocol::http1::Limits;
use assize_core::{
    CellSpec, ConnId, ConnectionPolicy, Driver, Entry, LoadSpec, NullSink, Output, ReceiveMode,
    RequestSpec, Session, Sink, Stamp,
};
use assize_drivers::EpollDriver;
use assize_evidence::wire::FileHeader;
use assize_evidence::{MemoryStore, Store};
use assize_host::{Backpressure, Recorder, RenderedCell, Secrets};
use assize_plan::Hash;
use assize_units::{DurNs, MonoNs};
use criterion::{BatchSize, Criterion, Throughput};

const HEAD: &[u8] =
    b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n";

/// Copies each receive into one segment, as a recorder does.
struct Segment {
    bytes: Vec<u8>,
}

impl Sink for Segment {
    fn put(&mut self, at: Stamp, _: Option<ConnId>, req: Option<u32>, entry: Entry<'_>) {
        let Entry::Received(bytes) = entry else {
            return;
        };
        if self.bytes.len() + bytes.len() + 32 > self.bytes.capacity() {
            self.bytes.clear();
        }
        self.bytes.extend_from_slice(&at.mono.0.to_le_bytes());
        self.bytes.extend_from_slice(&at.kernel_ns.to_le_bytes());
        self.bytes
            .extend_from_slice(&req.unwrap_or(u32::MAX).to_le_bytes());
        self.bytes.extend_from_slice(bytes);
    }

    fn overflowed(&self) -> bool {
        false
    }
}

fn event() -> Vec<u8> {
    let text = "x".repeat(236);
    let event = format!("data: {{\"t\":\"{text}\"}}\n\n");
    format!("{:x}\r\n{event}\r\n", event.len()).into_bytes()
}

/// So many requests, one after the other.
fn cell(requests: usize) -> CellSpec {
    let request = RequestSpec {
        target: 0,
        head: b"POST / HTTP/1.1\r\n\r\n".to_vec(),
        body: Arc::from([]),
        timeout: DurNs::from_s(60),
        connect_timeout: None,
        idle_timeout: None,
    };
    CellSpec {
        requests: vec![request; requests],
        load: LoadSpec::Closed { clients: 1 },
        targets: vec![SocketAddr::from(([127, 0, 0, 1], 1)).into()],
        connections: ConnectionPolicy::Reuse {
            idle: DurNs::from_s(4),
        },
        drain: DurNs::from_s(60),
        limits: Limits {
            body_bytes: u64::MAX,
            ..Limits::default()
        },
        spin: DurNs::ZERO,
        receive: ReceiveMode::Reap,
    }
}

/// Plays all requests of a session with a trivial answer each.
fn play(session: &mut Session) {
    const ANSWER: &[u8] = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok";
    let (sink, mut now) = (&mut NullSink, MonoNs(10_000_000));
    session.start(now, sink);
    while !session.is_done() {
        match session.poll_output(now, sink) {
            Some(Output::Connect { conn, .. }) => session.handle_connected(now, conn, sink),
            Some(Output::Send { conn, .. }) => {
                session.handle_send_started(now, conn, sink);
                session.handle_sent(now, conn, sink);
                session.handle_received(now.into(), conn, ANSWER, sink);
            }
            Some(Output::Close { conn, .. }) => session.handle_closed(now, conn, sink),
            None => {
                now = session.poll_timeout().expect("it waits for something");
                session.handle_timeout(now, sink);
            }
        }
    }
}

/// The recorder of a run, into memory.
fn recorder() -> Recorder {
    let header = FileHeader {
        unit: 0,
        cell: 0,
        plan: Hash::of(b""),
        begun: MonoNs(0),
    };
    Recorder::new(
        MemoryStore::new().create("wire").expect("memory"),
        header,
        Arc::new(RenderedCell::without_plan(Arc::new(cell(1)))),
        Secrets::none(),
        Backpressure::Overflow,
    )
    .expect("a thread")
}

/// A session in the middle of one stream that never ends.
fn streaming() -> (Session, ConnId) {
    let mut session = Session::new(Arc::new(cell(1)));
    let (sink, now) = (&mut NullSink, MonoNs(10_000_000));
    session.start(MonoNs(0), sink);
    let Some(Output::Connect { conn, .. }) = session.poll_output(now, sink) else {
        unreachable!("the first request is due");
    };
    session.handle_connected(now, conn, sink);
    let Some(Output::Send { .. }) = session.poll_output(now, sink) else {
        unreachable!("it is connected");
    };
    session.handle_send_started(now, conn, sink);
    session.handle_sent(now, conn, sink);
    session.handle_received(now.into(), conn, HEAD, sink);
    (session, conn)
}

fn layers(criterion: &mut Criterion) {
    let driver = EpollDriver::new("a bench").expect("epoll");
    criterion.bench_function("reading the clock", |bench| bench.iter(|| driver.now()));

    let (now, event) = (MonoNs(10_000_000), event());
    let (mut session, conn) = streaming();
    criterion.bench_function("one event, kept nowhere", |bench| {
        bench.iter(|| session.handle_received(now.into(), conn, black_box(&event), &mut NullSink));
    });
    let mut segment = Segment {
        bytes: Vec::with_capacity(1 << 20),
    };
    criterion.bench_function("one event, copied to a segment", |bench| {
        bench.iter(|| session.handle_received(now.into(), conn, black_box(&event), &mut segment));
    });
    // Fewer bytes than the recorder has segments for: its thread is never waited for.
    const RECORDED: usize = 2_000;
    let mut group = criterion.benchmark_group("the recorder");
    group.throughput(Throughput::Elements(RECORDED as u64));
    group.bench_function("2,000 events put", |bench| {
        let put = |recorder: &mut Recorder| {
            for _ in 0..RECORDED {
                recorder.put(now.into(), Some(conn), Some(0), Entry::Received(&event));
            }
            assert!(!recorder.overflowed());
        };
        bench.iter_batched_ref(recorder, put, BatchSize::PerIteration);
    });
    group.finish();

    const REQUESTS: usize = 1_000;
    let mut group = criterion.benchmark_group("dispatch");
    group.throughput(Throughput::Elements(REQUESTS as u64));
    group.bench_function("1,000 requests dispatched, sent and answered", |bench| {
        let session = || Session::new(Arc::new(cell(REQUESTS)));
        bench.iter_batched_ref(session, play, BatchSize::PerIteration);
    });
    group.finish();

    criterion.bench_function("one turn of the loop with nothing to do", |bench| {
        bench.iter(|| {
            let output = session.poll_output(black_box(now), &mut NullSink);
            (output, session.has_output(), session.poll_timeout())
        });
    });
}

fn main() {
    let host = host::Host::look();
    let mut criterion = Criterion::default().configure_from_args();
    layers(&mut criterion);
    criterion.final_summary();
    println!("beside the figures: {}", host.since());
}
