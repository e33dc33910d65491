//! CPU per event and per request, against the least client that does the same reads.
//!
//! `cargo bench -p assize-drivers --bench floor [-- STREAMS PART]`. Clients take turns, round by round;
//! each figure is the median of the rounds with the least and the most beside it. Without `--bench`
//! (under `cargo test --benches`) it is one short round. `--only CLIENT` runs one of them for a profiler.
#![allow(
    unsafe_code,
    missing_docs,
    clippy::disallowed_methods,
    clippy::cast_ptr_alignment,
    reason = "the least ring client, and a bench that starts its peer"
)]

mod conventional;
mod host;
mod least;
mod measure;
mod peer;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use assize_core::protocol::http1::Limits;
use assize_core::{
    CellSpec, ConnId, ConnectionPolicy, Driver, Entry, LoadSpec, NullSink, ReceiveMode,
    RequestSpec, RunControl, Session, Sink, Stamp, Terminal,
};
use assize_drivers::{EpollDriver, UringDriver};
use assize_evidence::wire::FileHeader;
use assize_evidence::{MemoryStore, Store};
use assize_host::{Backpressure, Recorder, RenderedCell, Secrets};
use assize_plan::Hash;
use assize_units::{DurNs, MonoNs, OffsetNs};

use host::Host;
use measure::{Stamps, cpu_ns, quantile_us, spread};
use peer::{Peer, SHORT, STREAM, Shape, now_ns};

const GATHER: ReceiveMode = ReceiveMode::Kernel {
    gather: DurNs::from_us(500),
};
const KERNEL: ReceiveMode = ReceiveMode::Kernel {
    gather: DurNs::ZERO,
};

/// Who reads the streams.
#[derive(Clone, Copy, Debug)]
enum Client {
    LeastEpoll,
    LeastUring { gather_us: u32 },
    Conventional,
    Epoll(ReceiveMode),
    Uring(ReceiveMode),
    Recorded(Ours),
}

/// A driver of this crate that reads with immediate reaping.
#[derive(Clone, Copy, Debug)]
enum Ours {
    Epoll,
    Uring,
}

const CLIENTS: [(&str, Client); 12] = [
    ("least client, epoll", Client::LeastEpoll),
    (
        "least client, io_uring",
        Client::LeastUring { gather_us: 0 },
    ),
    (
        "least client, io_uring, gather 500 µs",
        Client::LeastUring { gather_us: 500 },
    ),
    ("tokio-uring, reads and stamps", Client::Conventional),
    ("epoll, reap", Client::Epoll(ReceiveMode::Reap)),
    ("epoll, reap, recorded", Client::Recorded(Ours::Epoll)),
    ("epoll, kernel", Client::Epoll(KERNEL)),
    ("epoll, kernel, gather 500 µs", Client::Epoll(GATHER)),
    ("io_uring, reap", Client::Uring(ReceiveMode::Reap)),
    ("io_uring, reap, recorded", Client::Recorded(Ours::Uring)),
    ("io_uring, kernel", Client::Uring(KERNEL)),
    ("io_uring, kernel, gather 500 µs", Client::Uring(GATHER)),
];

/// What is measured.
const PARTS: [&str; 6] = ["streams", "error", "in-step", "rate", "lag", "requests"];

fn main() {
    let args: Vec<String> = std::env::args().collect();
    if args.get(1).is_some_and(|arg| arg == "--peer") {
        let number = |place: usize| args[place].parse::<u64>().expect("a number");
        peer::serve(Shape {
            events: number(2) as u32,
            gap: Duration::from_micros(number(3)),
            in_step: number(4) == 1,
        });
    }
    let full = args.iter().any(|arg| arg == "--bench");
    let chosen: Vec<usize> = args.iter().filter_map(|arg| arg.parse().ok()).collect();
    let streams = match (full, chosen.is_empty()) {
        (_, false) => chosen,
        (true, true) => vec![32, 256],
        (false, true) => vec![2],
    };
    let mut parts: Vec<&str> = PARTS.into();
    parts.retain(|part| args.iter().any(|arg| arg == part));
    if parts.is_empty() {
        // `streams` and `in-step` hold the errors.
        parts = PARTS.into();
        parts.retain(|part| *part != "error");
    }
    let only = args.iter().position(|arg| arg == "--only");
    let only = only.and_then(|place| args.get(place + 1));
    let (rounds, events) = if full { (7, 128) } else { (1, 4) };
    for part in parts {
        let shape = Shape {
            events,
            gap: Duration::from_millis(10),
            in_step: part == "in-step",
        };
        let peer = Peer::start(shape);
        match part {
            "rate" => highest_rate(full),
            "lag" => dispatch_lag(&peer, if full { 400 } else { 4 }),
            "requests" => cpu_per_request(&peer, if full { 20_000 } else { 100 }, rounds),
            _ => {
                for streams in &streams {
                    if let Some(name) = only {
                        only_one(&peer, *streams, shape, name);
                    } else {
                        if part != "error" {
                            cpu_per_event(&peer, shape, *streams, rounds);
                        }
                        receive_error(&peer, shape, *streams, rounds.min(5));
                    }
                }
            }
        }
    }
}

/// One client again and again, for a profiler to look at.
fn only_one(peer: &Peer, streams: usize, shape: Shape, name: &str) {
    let starts = starts(streams, shape);
    let found = CLIENTS.iter().find(|(known, _)| *known == name);
    let (_, client) = found.expect("the name of a client");
    let events = f64::from(shape.events) * streams as f64;
    let (mut costs, mut sleeps) = (Vec::new(), Vec::new());
    for _ in 0..7 {
        let before = measure::sleeps();
        let ns = drive(*client, peer.addr, &starts, &mut Stamps::default());
        costs.push(ns as f64 / 1000.0 / events);
        sleeps.push((measure::sleeps() - before) as f64 / events);
    }
    let (costs, sleeps) = (spread(costs), spread(sleeps));
    println!("{name}, {streams} streams: {costs:.2?} µs and {sleeps:.2?} sleeps per event");
}

/// Starts spread over one gap, so that events come in step only where the peer sees to it.
fn starts(streams: usize, shape: Shape) -> Vec<u64> {
    let gap = shape.gap.as_nanos() as u64;
    (0..streams as u64)
        .map(|place| place * gap / streams as u64)
        .collect()
}

/// How the events come, in words.
fn manner(shape: Shape) -> &'static str {
    if shape.in_step {
        "all in step"
    } else {
        "evenly spread"
    }
}

fn cpu_per_event(peer: &Peer, shape: Shape, streams: usize, rounds: usize) {
    let starts = starts(streams, shape);
    let total = f64::from(shape.events) * streams as f64;
    let mut costs = vec![Vec::new(); CLIENTS.len()];
    let host = Host::look();
    for _ in 0..rounds {
        for (place, (_, client)) in CLIENTS.iter().enumerate() {
            let mut stamps = Stamps::default();
            let ns = drive(*client, peer.addr, &starts, &mut stamps);
            costs[place].push(ns as f64 / 1000.0 / total);
        }
    }
    println!(
        "\n## CPU per event, {streams} streams, {} events of 10 ms each, {}, {rounds} rounds ({})\n",
        shape.events,
        manner(shape),
        host.since()
    );
    println!(
        "| client | µs per event | least – most | ratio to least epoll | ratio to least io_uring |"
    );
    println!("| --- | --- | --- | --- | --- |");
    // Ratios within a round, so that what the host did to a round it did to both.
    let ratio = |place: usize, floor: usize| {
        let pairs = costs[place].iter().zip(&costs[floor]);
        spread(pairs.map(|(cost, floor)| cost / floor).collect()).0
    };
    for (place, (name, _)) in CLIENTS.iter().enumerate() {
        let (median, least, most) = spread(costs[place].clone());
        println!(
            "| {name} | {median:.2} | {least:.2} – {most:.2} | {:.2} | {:.2} |",
            ratio(place, 0),
            ratio(place, 1)
        );
    }
}

fn receive_error(peer: &Peer, shape: Shape, streams: usize, rounds: usize) {
    let starts = starts(streams, shape);
    let host = Host::look();
    let mut found = vec![[Vec::new(), Vec::new(), Vec::new()]; CLIENTS.len()];
    for _ in 0..rounds {
        for (place, (_, client)) in CLIENTS.iter().enumerate() {
            let (mut stamps, before) = (Stamps::with_errors(), now_ns());
            drive(*client, peer.addr, &starts, &mut stamps);
            // All streams are opened within the first gap, and end within the last.
            let gap = shape.gap.as_nanos() as u64;
            let all_open = before + 2 * gap..before + u64::from(shape.events - 1) * gap;
            let (p50, p99) = stamps.error_us(0..u64::MAX);
            found[place][0].push(p50);
            found[place][1].push(p99);
            found[place][2].push(stamps.error_us(all_open).1);
        }
    }
    println!(
        "\n## Stamp behind the peer's write, {streams} streams, {}, {rounds} rounds ({})\n",
        manner(shape),
        host.since()
    );
    println!(
        "| client | p50 µs | least – most | p99 µs | least – most | p99 while all are open | least – most |"
    );
    println!("| --- | --- | --- | --- | --- | --- | --- |");
    for ((name, _), found) in CLIENTS.iter().zip(found) {
        let figures = found.map(|values| {
            let (median, least, most) = spread(values);
            format!("{median:.1} | {least:.1} – {most:.1}")
        });
        println!("| {name} | {} |", figures.join(" | "));
    }
}

/// The CPU time that one client took, ns.
fn drive(client: Client, addr: SocketAddr, starts: &[u64], stamps: &mut Stamps) -> u64 {
    let (mut driver, receive): (Box<dyn Driver>, _) = match client {
        Client::LeastEpoll => return timed(|| least::epoll_streams(addr, starts, stamps)),
        Client::LeastUring { gather_us } => {
            let mut ring = least::Ring::new();
            return timed(|| least::uring_streams(&mut ring, addr, starts, gather_us, stamps));
        }
        Client::Conventional => return timed(|| conventional::streams(addr, starts, stamps)),
        Client::Epoll(receive) => (epoll(), receive),
        Client::Uring(receive) => (uring(), receive),
        Client::Recorded(Ours::Epoll) => (epoll(), ReceiveMode::Reap),
        Client::Recorded(Ours::Uring) => (uring(), ReceiveMode::Reap),
    };
    let mut spec = cell(addr, STREAM, starts.len());
    spec.receive = receive;
    spec.load = LoadSpec::Open {
        offsets: starts.iter().copied().map(OffsetNs).collect(),
        cap: None,
    };
    let spec = Arc::new(spec);
    let mut session = Session::new(Arc::clone(&spec));
    let mut sink = Kept {
        stamps,
        ahead_ns: 0,
        recorder: matches!(client, Client::Recorded(_)).then(|| recorder(&spec)),
    };
    let control = RunControl::default();
    let ns = timed(|| {
        driver
            .run_cell(&mut session, &mut sink, &control)
            .expect("it runs");
        let end = sink.recorder.take().map(Recorder::finish);
        assert!(end.is_none_or(|end| !end.overflowed && end.error.is_none()));
    });
    let all = session.exchanges().iter();
    assert!(
        all.clone()
            .all(|exchange| exchange.terminal == Some(Terminal::Complete))
    );
    ns
}

fn timed(work: impl FnOnce()) -> u64 {
    let before = cpu_ns();
    work();
    cpu_ns() - before
}

fn cell(addr: SocketAddr, head: &[u8], requests: usize) -> CellSpec {
    let request = RequestSpec {
        target: 0,
        head: head.to_vec(),
        body: Arc::from([]),
        timeout: DurNs::from_s(60),
        connect_timeout: None,
        idle_timeout: None,
    };
    CellSpec {
        requests: vec![request; requests],
        load: LoadSpec::Closed { clients: 1 },
        targets: vec![addr.into()],
        connections: ConnectionPolicy::Fresh,
        drain: DurNs::from_s(60),
        limits: Limits::default(),
        spin: DurNs::ZERO,
        receive: ReceiveMode::Reap,
    }
}

fn epoll() -> Box<dyn Driver> {
    Box::new(EpollDriver::new("a bench").expect("epoll"))
}

fn uring() -> Box<dyn Driver> {
    Box::new(UringDriver::new("a bench").expect("io_uring"))
}

/// The recorder of a run, into memory: what a disk adds is the host's.
fn recorder(spec: &Arc<CellSpec>) -> Recorder {
    let header = FileHeader {
        unit: 0,
        cell: 0,
        plan: Hash::of(b""),
        begun: MonoNs(now_ns()),
    };
    Recorder::new(
        MemoryStore::new().create("wire").expect("memory"),
        header,
        Arc::new(RenderedCell::without_plan(Arc::clone(spec))),
        Secrets::none(),
        Backpressure::Overflow,
    )
    .expect("a thread")
}

/// Keeps what the least clients keep, and a record where it is asked for.
struct Kept<'a> {
    stamps: &'a mut Stamps,
    ahead_ns: u64,
    recorder: Option<Recorder>,
}

impl Sink for Kept<'_> {
    fn put(&mut self, at: Stamp, conn: Option<ConnId>, req: Option<u32>, entry: Entry<'_>) {
        if let Some(recorder) = &mut self.recorder {
            recorder.put(at, conn, req, entry);
        }
        match entry {
            Entry::Clock { offset_ns, .. } => self.ahead_ns = offset_ns as u64,
            Entry::Received(bytes) if at.kernel_ns > 0 => {
                self.stamps.keep(at.kernel_ns, self.ahead_ns, bytes);
            }
            Entry::Received(bytes) => self.stamps.keep(at.mono.0, 0, bytes),
            _ => {}
        }
    }

    fn overflowed(&self) -> bool {
        self.recorder.as_ref().is_some_and(Recorder::overflowed)
    }
}

/// 100,000 events a second over 32 streams, for a second: who keeps up, and at what cost.
fn highest_rate(full: bool) {
    const STREAMS: usize = 32;
    let shape = Shape {
        events: if full { 3125 } else { 32 },
        gap: Duration::from_micros(320),
        in_step: false,
    };
    let peer = Peer::start(shape);
    let starts = starts(STREAMS, shape);
    let host = Host::look();
    let mut lines = Vec::new();
    for (name, client) in CLIENTS {
        let (mut stamps, before) = (Stamps::with_errors(), now_ns());
        let cpu = drive(client, peer.addr, &starts, &mut stamps);
        let took_s = (now_ns() - before) as f64 / 1e9;
        let events = f64::from(shape.events) * STREAMS as f64;
        let busy = 100.0 * cpu as f64 / 1e9 / took_s;
        let (p50, p99) = stamps.error_us(0..u64::MAX);
        lines.push(format!(
            "| {name} | {:.0} | {busy:.0} | {:.2} | {p50:.1} | {p99:.1} | {} |",
            events / took_s,
            cpu as f64 / 1000.0 / events,
            stamps.reads
        ));
    }
    println!(
        "\n## 100,000 events/s from a peer that shares the host, {STREAMS} streams ({})\n",
        host.since()
    );
    println!(
        "| client | events/s | CPU % | µs per event | stamp p50 µs | p99 µs | reads |\n\
         | --- | --- | --- | --- | --- | --- | --- |"
    );
    println!("{}", lines.join("\n"));
}

fn dispatch_lag(peer: &Peer, requests: usize) {
    let host = Host::look();
    let mut lines = Vec::new();
    for (name, spin_us) in [
        ("epoll", 0),
        ("epoll", 60),
        ("io_uring", 0),
        ("io_uring", 60),
    ] {
        let mut driver: Box<dyn Driver> = match name {
            "epoll" => epoll(),
            _ => uring(),
        };
        let mut spec = cell(peer.addr, SHORT, requests);
        spec.spin = DurNs::from_us(spin_us);
        spec.load = LoadSpec::Open {
            offsets: (0..requests as u64)
                .map(|place| OffsetNs(place * 5_000_000))
                .collect(),
            cap: None,
        };
        let mut session = Session::new(Arc::new(spec));
        let control = RunControl::default();
        driver
            .run_cell(&mut session, &mut NullSink, &control)
            .expect("it runs");
        let lag = |exchange: &assize_core::Exchange| {
            Some(exchange.dispatched?.since(exchange.intended?).0)
        };
        let mut lags: Vec<u64> = session.exchanges().iter().filter_map(lag).collect();
        lags.sort_unstable();
        lines.push(format!(
            "| {name} | {spin_us} | {:.2} | {:.1} | {:.1} |",
            quantile_us(&lags, 50),
            quantile_us(&lags, 99),
            quantile_us(&lags, 100)
        ));
    }
    println!(
        "\n## Dispatch lag, {requests} requests 5 ms apart ({})\n",
        host.since()
    );
    println!("| driver | spin µs | p50 µs | p99 µs | most µs |\n| --- | --- | --- | --- | --- |");
    println!("{}", lines.join("\n"));
}

fn cpu_per_request(peer: &Peer, requests: usize, rounds: usize) {
    const CLIENTS: u32 = 8;
    const NAMES: [&str; 3] = ["least client, epoll", "epoll", "io_uring"];
    let mut costs = vec![Vec::new(); NAMES.len()];
    let mut rates = vec![Vec::new(); NAMES.len()];
    let mut wrk = Vec::new();
    let host = Host::look();
    for _ in 0..rounds {
        for (place, name) in NAMES.iter().enumerate() {
            let before = now_ns();
            let ns = match *name {
                "epoll" => requests_by(epoll(), peer.addr, CLIENTS, requests),
                "io_uring" => requests_by(uring(), peer.addr, CLIENTS, requests),
                _ => timed(|| least::epoll_requests(peer.addr, CLIENTS as usize, requests as u64)),
            };
            costs[place].push(ns as f64 / 1000.0 / requests as f64);
            rates[place].push(requests as f64 * 1e9 / (now_ns() - before) as f64);
        }
        wrk.extend(wrk_rate(peer.addr, CLIENTS));
    }
    println!(
        "\n## CPU per request, {CLIENTS} kept connections, {requests} trivial answers, {rounds} rounds ({})\n",
        host.since()
    );
    println!(
        "| client | µs per request | least – most | ratio | requests per s |\n| --- | --- | --- | --- | --- |"
    );
    for (place, name) in NAMES.iter().enumerate() {
        let (median, least, most) = spread(costs[place].clone());
        let pairs = costs[place].iter().zip(&costs[0]);
        let ratio = spread(pairs.map(|(cost, floor)| cost / floor).collect()).0;
        let rate = spread(rates[place].clone()).0;
        println!("| {name} | {median:.2} | {least:.2} – {most:.2} | {ratio:.2} | {rate:.0} |");
    }
    if wrk.is_empty() {
        println!("\nwrk is not installed (a package of that name), so it was not compared");
    } else {
        println!("| wrk, 1 thread | | | | {:.0} |", spread(wrk).0);
    }
}

/// Requests a second of wrk with one thread on the same answer.
fn wrk_rate(addr: SocketAddr, connections: u32) -> Option<f64> {
    let said = std::process::Command::new("wrk")
        .args([
            "-t1",
            "-d1s",
            &format!("-c{connections}"),
            &format!("http://{addr}/"),
        ])
        .output()
        .ok()?;
    let said = String::from_utf8(said.stdout).ok()?;
    let rate = said
        .lines()
        .find_map(|line| line.strip_prefix("Requests/sec:"))?;
    rate.trim().parse().ok()
}

fn requests_by(
    mut driver: Box<dyn Driver>,
    addr: SocketAddr,
    clients: u32,
    requests: usize,
) -> u64 {
    let mut spec = cell(addr, SHORT, requests);
    spec.load = LoadSpec::Closed { clients };
    spec.connections = ConnectionPolicy::Reuse {
        idle: DurNs::from_s(4),
    };
    let mut session = Session::new(Arc::new(spec));
    let control = RunControl::default();
    let ns = timed(|| {
        driver
            .run_cell(&mut session, &mut NullSink, &control)
            .expect("it runs");
    });
    let all = session.exchanges().iter();
    assert!(
        all.clone()
            .all(|exchange| exchange.terminal == Some(Terminal::Complete))
    );
    ns
}
