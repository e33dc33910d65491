//! What a run takes of memory, counted by an allocator and held against the bounds that
//! docs/timing.md states. `cargo test -p assize-host --test memory -- --nocapture` prints it.
#![cfg(target_os = "linux")]
#![allow(unsafe_code, reason = "a counting allocator")]
#![allow(
    clippy::disallowed_methods,
    reason = "the peer of the real drivers is a thread; no assertion is about time"
)]

mod planned;

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell as Slot;
use std::io::{self, Read, Write};
use std::net::TcpListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use assize_core::protocol::http1::Limits;
use assize_core::{
    CellSpec, ConnectionPolicy, Driver, LoadSpec, NullSink, ReceiveMode, RequestSpec, RunControl,
    Session,
};
use assize_drivers::{EpollDriver, UringDriver};
use assize_evidence::wire::FileHeader;
use assize_evidence::{HostFacts, MemoryStore, Store, StoreFile};
use assize_host::{
    Backpressure, Base, Execution, Recorder, RenderedCell, RunIdentity, SEGMENTS, Secrets,
    VirtualWall, execute, render_cell,
};
use assize_plan::{Bundle, Cell, Connections, Hash, Load};
use assize_sim::http::{Stop, serve_stamped};
use assize_sim::{Act, Script, ScriptPeer, VirtualDriver, VirtualLink, VirtualNet};
use assize_units::{DurNs, MonoNs};
use planned::{InProcess, Objects, bundle_of, cell};

/// Counts the bytes that are in use: of all threads together, and of each.
struct Counting;

static LIVE: AtomicI64 = AtomicI64::new(0);
static MOST: AtomicI64 = AtomicI64::new(0);

thread_local! {
    static LIVE_HERE: Slot<i64> = const { Slot::new(0) };
    static MOST_HERE: Slot<i64> = const { Slot::new(0) };
}

fn count(bytes: i64) {
    let live = LIVE.fetch_add(bytes, Ordering::Relaxed) + bytes;
    MOST.fetch_max(live, Ordering::Relaxed);
    let here = LIVE_HERE.get() + bytes;
    LIVE_HERE.set(here);
    MOST_HERE.set(MOST_HERE.get().max(here));
}

// SAFETY: every call goes to the system's allocator unaltered; the counts are atomics and
// thread-local cells without destructors, so counting neither allocates nor outlives its thread.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size() as i64);
        // SAFETY: the caller's contract is that of `System`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count(layout.size() as i64);
        // SAFETY: the caller's contract is that of `System`.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        count(-(layout.size() as i64));
        // SAFETY: the caller's contract is that of `System`.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        count(new_size as i64 - layout.size() as i64);
        // SAFETY: the caller's contract is that of `System`.
        unsafe { System.realloc(pointer, layout, new_size) }
    }
}

#[global_allocator]
static GLOBAL: Counting = Counting;

/// The most that was in use at once during some work, beyond what was before it.
fn most_during(work: impl FnOnce()) -> i64 {
    let before = LIVE.load(Ordering::Relaxed);
    MOST.store(before, Ordering::Relaxed);
    work();
    MOST.load(Ordering::Relaxed) - before
}

/// The same, of this thread alone.
fn most_here_during(work: impl FnOnce()) -> i64 {
    let before = LIVE_HERE.get();
    MOST_HERE.set(before);
    work();
    MOST_HERE.get() - before
}

/// One test, since its figures are of the whole process.
#[test]
fn memory_is_what_the_plan_needs() {
    a_recorder();
    the_drivers();
    a_planned_request();
    a_kept_connection();
}

/// Prints a figure and holds it against its bounds, all in bytes.
fn hold(what: &str, figure: i64, least: i64, most: i64) {
    println!("{what:<56}{figure:>12} B");
    assert!(
        (least..=most).contains(&figure),
        "{what}: {figure} B, not {least} to {most} B"
    );
}

const KIB: i64 = 1 << 10;
const MIB: i64 = 1 << 20;

fn a_recorder() {
    let store = MemoryStore::new();
    let spec = Arc::new(requests(1, ConnectionPolicy::Fresh));
    let rendered = Arc::new(RenderedCell::without_plan(spec));
    let header = FileHeader {
        unit: 0,
        cell: 0,
        plan: Hash::of(b"a plan"),
        begun: MonoNs(0),
    };
    let file = store.create("wire.log").unwrap();
    let resident = of_process("VmRSS:");
    let mut recorder = None;
    let most = most_during(|| {
        let secrets = Secrets::none();
        recorder = Recorder::new(file, header, rendered, secrets, Backpressure::Wait).ok();
    });
    let segments = SEGMENTS as i64 * MIB;
    hold("recorder", most, segments, segments + 128 * KIB);
    // No page of it is left for the first record to bring in.
    let resident = of_process("VmRSS:") - resident;
    hold(
        "recorder, resident at the start",
        resident,
        segments - 2 * MIB,
        segments + 8 * MIB,
    );
    assert!(recorder.expect("a thread").finish().error.is_none());
}

fn the_drivers() {
    let epoll = most_here_during(|| drop(EpollDriver::new("a test").unwrap()));
    hold("driver, epoll", epoll, 64 * KIB, 80 * KIB);
    let before = of_process("VmSize:");
    match UringDriver::new("a test") {
        Ok(_driver) => {
            let mapped = of_process("VmSize:") - before;
            hold("driver, io_uring (mapped)", mapped, 4 * MIB, 6 * MIB);
        }
        Err(failure) => println!("io_uring is left out: {failure}"),
    }
}

/// A figure of this process.
fn of_process(name: &str) -> i64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let figure = status.lines().find_map(|line| line.strip_prefix(name));
    let kib = figure.and_then(|figure| figure.trim().strip_suffix(" kB"));
    kib.unwrap().parse::<i64>().unwrap() * KIB
}

fn a_planned_request() {
    const FEW: u32 = 500;
    const MANY: u32 = 2_500;
    for (load, offsets) in [("closed", None), ("open", Some(100_000_000))] {
        let of = |count: u32| most_of_a_run(&bundle(count, offsets, 1));
        let each = (of(MANY) - of(FEW)) / i64::from(MANY - FEW);
        let head = head_bytes(&bundle(1, offsets, 1));
        let what = format!("planned request, {load} load, beside its head of {head} B");
        hold(&what, each - head, 300, 640);
    }
    let (short, long) = [1, 200]
        .map(|tokens| most_of_a_run(&bundle(FEW, None, tokens)))
        .into();
    // The segments of the recorder and the receive buffers take whatever comes.
    hold(
        "answers of 200 tokens instead of 1",
        long - short,
        -MIB,
        64 * KIB,
    );
}

/// Requests at once, or so many nanoseconds apart.
fn bundle(requests: u32, apart_ns: Option<u64>, tokens: u32) -> Bundle {
    let mut objects = Objects::default();
    let load = match apart_ns {
        None => Load::Closed {
            trace: objects.trace(None, requests),
            clients: 4,
        },
        Some(apart_ns) => {
            let offsets = (0..u64::from(requests)).map(|req| req * apart_ns);
            let offsets: Vec<u64> = offsets.collect();
            Load::Open {
                trace: objects.trace(Some(&offsets), requests),
                cap: None,
            }
        }
    };
    let cell = Cell {
        connections: Connections::Reuse {
            idle_ns: DurNs::from_s(60),
        },
        ..cell("only", load, requests)
    };
    bundle_of(objects, tokens, None, vec![cell])
}

/// Bytes that a rendered head takes.
fn head_bytes(bundle: &Bundle) -> i64 {
    let (arm, cell) = (&bundle.plan.arms[0], &bundle.plan.units[0].cells[0]);
    let base = Base::parse("http://127.0.0.1:8000/v1").unwrap();
    let target = base.resolve().unwrap().into();
    let rendered = render_cell(bundle, arm, cell, &base, target, &Secrets::none()).unwrap();
    rendered.spec.requests[0].head.capacity() as i64
}

/// A whole run in virtual time, whose evidence goes nowhere.
fn most_of_a_run(bundle: &Bundle) -> i64 {
    let mut complete = 0;
    let most = most_during(|| complete = run(bundle));
    assert_eq!(complete, u64::from(bundle.plan.units[0].cells[0].requests));
    most
}

fn run(bundle: &Bundle) -> u64 {
    let net = VirtualNet::new(VirtualLink::default());
    let execution = Execution {
        bundle,
        driver: &mut VirtualDriver::on(net.clone()),
        servers: &mut InProcess::on(net),
        store: &Nowhere,
        wall: &VirtualWall,
        secrets: &Secrets::none(),
        control: &RunControl::default(),
        backpressure: Backpressure::Wait,
        facts: HostFacts::default(),
        calibration: None,
        identity: RunIdentity {
            run_id: "test".into(),
            tool: "test".into(),
            boot_id: "virtual".into(),
            consent: "in process".into(),
        },
    };
    execute(execution, &mut |_| {}).counts.complete
}

fn requests(count: usize, connections: ConnectionPolicy) -> CellSpec {
    let request = RequestSpec {
        target: 0,
        head: b"POST /v1/completions HTTP/1.1\r\nhost: peer\r\ncontent-length: 2\r\n\r\n".to_vec(),
        body: Arc::from(&b"{}"[..]),
        timeout: DurNs::from_s(60),
        connect_timeout: None,
        idle_timeout: None,
    };
    CellSpec {
        requests: vec![request; count],
        load: LoadSpec::Closed { clients: 1 },
        targets: Vec::new(),
        connections,
        drain: DurNs::from_s(60),
        limits: Limits::default(),
        spin: DurNs::ZERO,
        receive: ReceiveMode::Reap,
    }
}

fn a_kept_connection() {
    each_connection("epoll", &|| Box::new(EpollDriver::new("a test").unwrap()));
    if UringDriver::new("a test").is_ok() {
        each_connection("io_uring", &|| {
            Box::new(UringDriver::new("a test").unwrap())
        });
    }
}

fn each_connection(name: &str, driver: &dyn Fn() -> Box<dyn Driver>) {
    // Tables grow by doubling: at powers of two they are full.
    const FEW: u32 = 32;
    const MANY: u32 = 256;
    let most = |n: u32| {
        let mut driver = driver();
        most_here_during(|| hold_open(driver.as_mut(), n))
    };
    let each = (most(MANY) - most(FEW)) / i64::from(MANY - FEW);
    hold(&format!("kept connection, {name}"), each, 300, 600);
}

/// A cell that has so many connections open.
fn hold_open(driver: &mut dyn Driver, n: u32) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let target = listener.local_addr().unwrap();
    let acts = vec![
        Act::Request,
        Act::Send(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n".to_vec()),
    ];
    let peer = ScriptPeer::new(vec![Script { acts, repeat: true }]);
    let stop = Stop::new().unwrap();
    std::thread::scope(|scope| {
        let server = scope.spawn(|| serve_stamped(listener, peer, &stop).unwrap());
        let mut spec = requests(1, ConnectionPolicy::Preopened { n });
        spec.targets = vec![target.into()];
        let mut session = Session::new(Arc::new(spec));
        driver
            .run_cell(&mut session, &mut NullSink, &RunControl::default())
            .unwrap();
        stop.stop().unwrap();
        assert_eq!(server.join().unwrap().connections, u64::from(n));
    });
}

/// A store that keeps nothing.
struct Nowhere;

struct Sunk;

impl Write for Sunk {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl StoreFile for Sunk {
    fn sync(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Store for Nowhere {
    fn create(&self, _: &str) -> io::Result<Box<dyn StoreFile>> {
        Ok(Box::new(Sunk))
    }

    fn open(&self, _: &str) -> io::Result<Box<dyn Read + Send>> {
        Ok(Box::new(io::empty()))
    }

    fn size(&self, _: &str) -> io::Result<u64> {
        Ok(0)
    }

    fn list(&self) -> io::Result<Vec<String>> {
        Ok(Vec::new())
    }
}
