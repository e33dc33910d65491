//! Evidence written by hand: a plan, a journal, wire logs and rows, with no runtime anywhere.
//!
//! The rows are what a faithful runtime would claim; they are worked out here from the script, not
//! from the bytes, so that a replay which agrees with them has read the bytes.

use std::collections::BTreeMap;

use assize_evidence::wire::{
    FileHeader, Payload, RecordHead, SegmentBuffer, SocketOp, Timer, WireWriter,
};
use assize_evidence::{
    CellCounts, ConnFacts, ExchangeRow, Journal, JournalEvent, MemoryStore, PeerClose, Phase,
    Store, Terminal, cell_dir, write_seal,
};
use assize_plan::{
    Arm, ArmTarget, Cell, CompareOp, Condition, Connections, Correction, DriverChoice, Engine,
    Expectation, Family, Hash, Hypothesis, Interrupted, Interval, Judgement, Limits, Load, Measure,
    Node, Origin, Plan, Quantity, Receive, RecordLevel, RequestClass, Stat, Test, Ties,
    TraceObject, Unit,
};
use assize_units::{Bytes, DurNs, MonoNs, OffsetNs, Ratio};

/// What the server does with one request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Act {
    /// Three tokens: the first after `first_ns`, the others `gap_ns` apart, then usage and `[DONE]`.
    Stream { first_ns: u64, gap_ns: u64 },
    /// A whole answer that ends without `[DONE]`.
    NoDone,
    /// 503 with a body.
    Busy,
    /// The connection ends before a byte of an answer.
    Disconnect,
    /// The connection is reset inside the body.
    Reset,
    /// Nothing comes until the request's deadline.
    Silence,
    /// The connection is reset when the kernel had accepted so many bytes.
    BrokenSend(u64),
}

/// The study: two arms, `blocks` blocks, a closed and an open cell, and one hypothesis on each.
pub struct Study {
    pub blocks: u32,
    pub act: fn(arm: &str, block: u32, cell: &str, req: u32) -> Act,
    /// The journal ends after so many units, and the last of them is cut inside its last cell.
    pub killed_in_unit: Option<u32>,
}

pub const REQUESTS: u32 = 4;
const BODY: &[u8] = br#"{"max_tokens":3,"model":"m","prompt":"x","stream":true}"#;
const TIMEOUT_NS: u64 = 1_000_000_000;

impl Study {
    pub fn plan(&self) -> (Plan, BTreeMap<Hash, Vec<u8>>) {
        let trace = |offsets_ns| TraceObject {
            format: assize_plan::TRACE_FORMAT.to_owned(),
            offsets_ns,
            prompts: vec![0; REQUESTS as usize],
            classes: None,
        };
        let (closed, closed_bytes) = trace(None).to_object();
        let offsets = (0..u64::from(REQUESTS)).map(|i| OffsetNs(i * 5_000_000));
        let (open, open_bytes) = trace(Some(offsets.collect())).to_object();
        let body = Hash::of(BODY);
        let objects = BTreeMap::from([
            (closed, closed_bytes),
            (open, open_bytes),
            (body, BODY.to_vec()),
        ]);
        let cell = |name: &str, load: Load, prefix: &str| Cell {
            name: name.to_owned(),
            path: name.to_owned(),
            classes: vec![0],
            load,
            requests: REQUESTS,
            id_prefix: prefix.to_owned(),
            settle_ns: DurNs::from_s(1),
            drain_ns: DurNs::from_s(300),
            connections: Connections::Fresh,
            record: RecordLevel::Wire,
            receive: Receive::Reap,
        };
        let mut units = Vec::new();
        for block in 0..self.blocks {
            for arm in ["fast", "slow"] {
                units.push(Unit {
                    n: units.len() as u32,
                    set: "confirmation".to_owned(),
                    block,
                    block_seed: block.to_string(),
                    arm: arm.to_owned(),
                    path: format!("confirmation/{block:02}/{arm}"),
                    excluded: false,
                    restart: false,
                    warmup: None,
                    cells: vec![
                        cell(
                            "closed-2",
                            Load::Closed {
                                trace: closed,
                                clients: 2,
                            },
                            &format!("closed-2-{block}"),
                        ),
                        cell(
                            "open-near",
                            Load::Open {
                                trace: open,
                                cap: None,
                            },
                            &format!("open-near-{block}"),
                        ),
                    ],
                });
            }
        }
        let arm = |name: &str, label: &str| Arm {
            name: name.to_owned(),
            label: label.to_owned(),
            engine: Engine {
                name: "vllm".to_owned(),
                done: true,
            },
            model: Some("m".to_owned()),
            target: ArmTarget::Endpoint {
                base: "http://127.0.0.1:9/v1".to_owned(),
            },
            tls: None,
            key_env: None,
            headers: Vec::new(),
            discloses: None,
        };
        let plan = Plan {
            format: assize_plan::PLAN_FORMAT.to_owned(),
            language: 1,
            study: "by-hand".to_owned(),
            question: Some("Is fast faster than slow?".to_owned()),
            scope: None,
            replicates: None,
            draw: assize_plan::DRAW.to_owned(),
            driver: DriverChoice::Any,
            spin_ns: DurNs::ZERO,
            interrupted: Interrupted::Final,
            max_response_bytes: Bytes(64 << 20),
            values: Vec::new(),
            arms: vec![arm("fast", "Fast"), arm("slow", "Slow")],
            requests: vec![RequestClass {
                n: 0,
                name: "generate".to_owned(),
                arms: vec!["fast".to_owned(), "slow".to_owned()],
                method: "POST".to_owned(),
                path: "/v1/completions".to_owned(),
                headers: Vec::new(),
                bodies: vec![body],
                stream: true,
                choices: 1,
                expect: Expectation {
                    output_tokens: Some(3),
                },
                timeout_ns: DurNs(TIMEOUT_NS),
                connect_timeout_ns: None,
                idle_timeout_ns: None,
            }],
            arrivals: Vec::new(),
            orders: Vec::new(),
            units,
            rules: vec![family()],
            compare: Vec::new(),
            external: Vec::new(),
            limits: Limits::default(),
            panels: Vec::new(),
        };
        (plan, objects)
    }

    /// The sealed evidence; unsealed where the run was killed.
    pub fn evidence(&self) -> MemoryStore {
        let (plan, objects) = self.plan();
        let store = MemoryStore::new();
        let bytes = plan.to_canonical().unwrap();
        let hash = Hash::of(&bytes);
        store.write("plan.json", &bytes).unwrap();
        for (hash, bytes) in &objects {
            let name = format!("objects/{}", hash.hex());
            store.write(&name, bytes).unwrap();
        }
        let mut journal = Chronicle::new(hash);
        let mut clock = 1_000_000_000;
        for unit in &plan.units {
            let killed = self.killed_in_unit == Some(unit.n);
            journal.tell(clock, JournalEvent::UnitStarted { unit: unit.n });
            for (place, cell) in unit.cells.iter().enumerate() {
                let name = cell.name.clone();
                let started = JournalEvent::CellStarted {
                    unit: unit.n,
                    cell: name.clone(),
                };
                journal.tell(clock, started);
                let act = |req| (self.act)(&unit.arm, unit.block, &cell.name, req);
                let played = play(&plan, cell, clock, act);
                let folder = cell_dir(&unit.path, &cell.path);
                let is_cut = killed && place + 1 == unit.cells.len();
                let header = FileHeader {
                    unit: unit.n,
                    cell: place as u32,
                    plan: hash,
                    begun: MonoNs(clock),
                };
                let wire = wire_bytes(header, &played.entries, is_cut);
                store.write(&format!("{folder}/wire.log"), &wire).unwrap();
                if is_cut {
                    store.write("journal.jsonl", &journal.finish()).unwrap();
                    return store;
                }
                let rows: String = played.rows.iter().map(ExchangeRow::to_line).collect();
                let file = format!("{folder}/exchanges.jsonl");
                store.write(&file, rows.as_bytes()).unwrap();
                clock = played.end + 1_000_000;
                let ended = JournalEvent::CellEnded {
                    unit: unit.n,
                    cell: name,
                    counts: counts(&played.rows),
                };
                journal.tell(clock, ended);
            }
            journal.tell(clock, JournalEvent::UnitEnded { unit: unit.n });
        }
        let sealed = JournalEvent::Sealed {
            units: plan.units.len() as u32,
            complete: true,
        };
        journal.tell(clock, sealed);
        store.write("journal.jsonl", &journal.finish()).unwrap();
        write_seal(&store).unwrap();
        store
    }
}

fn family() -> Family {
    let measure = |quantity, stat, from| Measure {
        quantity,
        stat,
        from,
        class: None,
        within: Vec::new(),
    };
    let hypothesis = |text: &str, measure, cell: &str, gain| Hypothesis {
        text: text.to_owned(),
        candidate: "fast".to_owned(),
        control: Some("slow".to_owned()),
        measure,
        cell: cell.to_owned(),
        judgement: Judgement::Beats {
            median_gain: Some(Ratio::new(gain, 100).unwrap()),
        },
    };
    let is_zero = |text: &str, quantity| Condition {
        text: text.to_owned(),
        cell: None,
        node: Node::Compare(
            CompareOp::Eq,
            Box::new(Node::Measure(measure(quantity, None, None))),
            Box::new(Node::Value(Ratio::ZERO)),
        ),
    };
    Family {
        name: "primary".to_owned(),
        test: Test::Sign {
            ties: Ties::Nonwins,
        },
        correct: Correction::Holm {
            alpha: Ratio::new(5, 100).unwrap(),
        },
        interval: Interval::MedianOrderStatistic {
            at_least: Ratio::new(95, 100).unwrap(),
        },
        valid: vec![
            is_zero("failed == 0", Quantity::Failed),
            is_zero("missing == 0", Quantity::Missing),
        ],
        hypotheses: vec![
            hypothesis(
                "fast beats slow on throughput in closed-2, median gain at least 1%",
                measure(Quantity::Throughput, None, None),
                "closed-2",
                1,
            ),
            hypothesis(
                "fast beats slow on p95(e2e from intended) in open-near, median gain at least 5%",
                measure(Quantity::E2e, Some(Stat::P95), Some(Origin::Intended)),
                "open-near",
                5,
            ),
        ],
        expect: None,
        discloses: None,
    }
}

struct Chronicle {
    journal: Journal<Vec<u8>>,
}

impl Chronicle {
    fn new(plan: Hash) -> Chronicle {
        let mut chronicle = Chronicle {
            journal: Journal::new(Vec::new()),
        };
        let started = JournalEvent::RunStarted {
            format: assize_evidence::EVIDENCE_FORMAT.to_owned(),
            run_id: "r".to_owned(),
            plan,
            tool: "by hand".to_owned(),
            boot_id: "b".to_owned(),
            driver: "virtual".to_owned(),
            driver_why: "written by hand".to_owned(),
            consent: "not needed".to_owned(),
            calibration: None,
        };
        chronicle.tell(0, started);
        chronicle
    }

    fn tell(&mut self, at: u64, event: JournalEvent) {
        let wall = "2026-11-30T18:00:00Z".to_owned();
        self.journal.append(MonoNs(at), wall, event).unwrap();
    }

    fn finish(&mut self) -> Vec<u8> {
        std::mem::take(self.journal.get_mut())
    }
}

fn counts(rows: &[ExchangeRow]) -> CellCounts {
    let complete = rows
        .iter()
        .filter(|row| row.terminal == Terminal::Complete)
        .count() as u64;
    CellCounts {
        requests: rows.len() as u64,
        complete,
        failed: rows.len() as u64 - complete,
        events: rows.iter().map(|row| u64::from(row.events)).sum(),
        received_bytes: rows.iter().map(|row| row.received_bytes).sum(),
    }
}

/// One entry of a wire log.
struct Entry {
    at: u64,
    conn: Option<u32>,
    req: Option<u32>,
    payload: Owned,
}

enum Owned {
    CellStart(u64),
    Dispatch(u64),
    Admit,
    Connect,
    Connected,
    SendStart(Vec<u8>),
    Sent(u64),
    Recv(Vec<u8>),
    Eof,
    Error(i32),
    Close,
    Timer,
    Terminal(Terminal, Phase, u16, i32),
    CellEnd,
}

impl Owned {
    fn payload(&self) -> Payload<'_> {
        match self {
            Owned::CellStart(origin_ns) => Payload::CellStart {
                origin_ns: *origin_ns,
            },
            Owned::Dispatch(intended_ns) => Payload::Dispatch {
                intended_ns: *intended_ns,
            },
            Owned::Admit => Payload::Admit,
            Owned::Connect => Payload::Connect {
                addr: "127.0.0.1:9",
            },
            Owned::Connected => Payload::Connected,
            Owned::SendStart(head) => Payload::SendStart {
                body: Hash::of(BODY),
                head,
            },
            Owned::Sent(bytes) => Payload::Sent { bytes: *bytes },
            Owned::Recv(bytes) => Payload::Recv(bytes),
            Owned::Eof => Payload::Eof,
            Owned::Error(errno) => Payload::Error {
                op: SocketOp::Receive,
                errno: *errno,
            },
            Owned::Close => Payload::Close,
            Owned::Timer => Payload::Timer(Timer::Request),
            Owned::Terminal(terminal, phase, status, errno) => Payload::Terminal {
                terminal: *terminal,
                phase: *phase,
                status: *status,
                errno: *errno,
            },
            Owned::CellEnd => Payload::CellEnd,
        }
    }
}

struct Played {
    entries: Vec<Entry>,
    rows: Vec<ExchangeRow>,
    end: u64,
}

fn play(plan: &Plan, cell: &Cell, begun: u64, act: impl Fn(u32) -> Act) -> Played {
    let origin = begun + 2_000_000;
    let mut entries = vec![Entry {
        at: begun,
        conn: None,
        req: None,
        payload: Owned::CellStart(origin),
    }];
    let mut rows = Vec::new();
    let mut free = match cell.load {
        Load::Closed { clients, .. } => vec![origin; clients as usize],
        Load::Open { .. } => Vec::new(),
    };
    for req in 0..cell.requests {
        let intended = match cell.load {
            Load::Closed { .. } => origin,
            Load::Open { .. } => origin + u64::from(req) * 5_000_000,
        };
        free.sort_unstable();
        let admitted = if free.is_empty() {
            intended
        } else {
            free.remove(0)
        };
        let (row, own) = converse(plan, cell, req, intended, admitted, act(req));
        if matches!(cell.load, Load::Closed { .. }) {
            free.push(row.end_ns.unwrap().0);
        }
        entries.extend(own);
        rows.push(row);
    }
    let end = rows.iter().map(|row| row.end_ns.unwrap().0).max().unwrap();
    entries.push(Entry {
        at: end,
        conn: None,
        req: None,
        payload: Owned::CellEnd,
    });
    // At one instant what ends comes before what it makes room for.
    entries.sort_by_key(|entry| {
        let late = match entry.payload {
            Owned::CellEnd => 2,
            Owned::Dispatch(_) | Owned::Admit | Owned::Connect => 1,
            _ => 0,
        };
        (entry.at, late)
    });
    Played { entries, rows, end }
}

fn event(text: &str) -> Vec<u8> {
    let data = format!("data: {text}\n\n");
    format!("{:x}\r\n{data}\r\n", data.len()).into_bytes()
}

const HEAD: &[u8] =
    b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n";
const BUSY: &[u8] = b"HTTP/1.1 503 Busy\r\ncontent-length: 4\r\n\r\nbusy";

fn converse(
    plan: &Plan,
    cell: &Cell,
    req: u32,
    intended: u64,
    admitted: u64,
    act: Act,
) -> (ExchangeRow, Vec<Entry>) {
    let class = plan.class(0).unwrap();
    let id = format!("{}-{req:05}", cell.id_prefix);
    let head = format!(
        "{} {} HTTP/1.1\r\nhost: x\r\nx-request-id: {id}\r\n\r\n",
        class.method, class.path
    );
    let sent_bytes = (head.len() + BODY.len()) as u64;
    let (connect, connected) = (admitted, admitted + 1_000);
    let (send_start, sent) = (connected + 100, connected + 2_000);
    let conn = Some(req);
    let mut entries = Vec::new();
    let mut put = |at, conn, payload| {
        entries.push(Entry {
            at,
            conn,
            req: Some(req),
            payload,
        });
    };
    put(intended, None, Owned::Dispatch(intended));
    put(admitted, None, Owned::Admit);
    put(connect, conn, Owned::Connect);
    put(connected, conn, Owned::Connected);
    put(send_start, conn, Owned::SendStart(head.into_bytes()));
    let accepted = match act {
        Act::BrokenSend(bytes) => bytes,
        _ => {
            put(sent, conn, Owned::Sent(sent_bytes));
            sent_bytes
        }
    };
    let some = |at| Some(MonoNs(at));
    let mut row = ExchangeRow {
        req,
        id,
        class: 0,
        prompt: 0,
        intended_ns: some(intended),
        dispatched_ns: some(intended),
        admitted_ns: some(admitted),
        connect_ns: some(connect),
        connected_ns: some(connected),
        tls_ns: None,
        send_start_ns: some(send_start),
        sent_ns: some(sent).filter(|_| accepted == sent_bytes),
        head_ns: None,
        first_event_ns: None,
        last_event_ns: None,
        done_ns: None,
        end_ns: None,
        status: 0,
        events: 0,
        done_events: 0,
        reads: 0,
        received_bytes: 0,
        body_bytes: 0,
        surplus_bytes: 0,
        sent_bytes: accepted,
        terminal: Terminal::Complete,
        phase: Phase::Ended,
        errno: 0,
        conn: Some(ConnFacts {
            n: req,
            nth: 0,
            idle_ns: None,
        }),
        peer_end: None,
    };
    let token = |text: &str| {
        format!(r#"{{"choices":[{{"index":0,"text":"{text}","finish_reason":null}}]}}"#)
    };
    let last = r#"{"choices":[{"index":0,"text":"c","finish_reason":"length"}]}"#;
    let usage = r#"{"choices":[],"usage":{"completion_tokens":3}}"#;
    // (after the send, bytes, body bytes, events, whether the last is [DONE])
    let mut reads: Vec<(u64, Vec<u8>, usize, u32, bool)> = Vec::new();
    let body_of = |text: &str| format!("data: {text}\n\n").len();
    match act {
        Act::Stream { first_ns, gap_ns } => {
            reads.push((1_000, HEAD.to_vec(), 0, 0, false));
            for (place, text) in ["a", "b"].iter().enumerate() {
                let at = first_ns + place as u64 * gap_ns;
                let text = token(text);
                reads.push((at, event(&text), body_of(&text), 1, false));
            }
            // The last token and the usage come in one read.
            let both = [event(last), event(usage)].concat();
            let size = body_of(last) + body_of(usage);
            reads.push((first_ns + 2 * gap_ns, both, size, 2, false));
            let done = [event("[DONE]"), b"0\r\n\r\n".to_vec()].concat();
            let at = first_ns + 2 * gap_ns + 5_000;
            reads.push((at, done, body_of("[DONE]"), 1, true));
        }
        Act::NoDone => {
            let rest = [event(last), b"0\r\n\r\n".to_vec()].concat();
            let bytes = [HEAD.to_vec(), rest].concat();
            reads.push((1_000_000, bytes, body_of(last), 1, false));
        }
        Act::Busy => reads.push((1_000_000, BUSY.to_vec(), 4, 0, false)),
        Act::Reset => {
            let text = token("a");
            let bytes = [HEAD.to_vec(), event(&text)].concat();
            reads.push((1_000_000, bytes, body_of(&text), 1, false));
        }
        Act::Disconnect | Act::Silence | Act::BrokenSend(_) => {}
    }
    for (after, bytes, body, events, is_done) in reads {
        let at = sent + after;
        row.reads += 1;
        row.received_bytes += bytes.len() as u64;
        row.body_bytes += body as u64;
        row.events += events;
        row.head_ns = row.head_ns.or(some(at));
        if events > 0 {
            row.first_event_ns = row.first_event_ns.or(some(at));
            row.last_event_ns = some(at);
        }
        if is_done {
            row.done_ns = some(at);
            row.done_events += 1;
        }
        row.status = 200;
        row.end_ns = some(at);
        put(at, conn, Owned::Recv(bytes));
    }
    match act {
        Act::Stream { .. } | Act::NoDone => {}
        Act::Busy => row.status = 503,
        Act::Disconnect => {
            row.end_ns = some(sent + 700_000);
            row.terminal = Terminal::Disconnected;
            row.phase = Phase::BeforeHead;
            row.peer_end = Some(PeerClose::Eof);
            put(sent + 700_000, conn, Owned::Eof);
        }
        Act::Reset => {
            row.end_ns = some(sent + 2_000_000);
            row.terminal = Terminal::Reset;
            row.phase = Phase::Stream;
            row.peer_end = Some(PeerClose::Reset);
            row.errno = 104;
            put(sent + 2_000_000, conn, Owned::Error(104));
        }
        Act::BrokenSend(bytes) => {
            row.end_ns = some(sent + 2_000_000);
            row.terminal = Terminal::Reset;
            row.phase = Phase::Send;
            row.peer_end = Some(PeerClose::Reset);
            row.errno = 104;
            put(sent + 2_000_000, conn, Owned::Error(104));
            if bytes > 0 {
                put(sent + 2_000_000, conn, Owned::Sent(bytes));
            }
        }
        Act::Silence => {
            row.end_ns = some(admitted + TIMEOUT_NS);
            row.terminal = Terminal::RequestTimeout;
            row.phase = Phase::BeforeHead;
            put(admitted + TIMEOUT_NS, conn, Owned::Timer);
        }
    }
    let end = row.end_ns.unwrap().0;
    let terminal = Owned::Terminal(row.terminal, row.phase, row.status, row.errno);
    put(end, conn, terminal);
    entries.push(Entry {
        at: end,
        conn,
        req: None,
        payload: Owned::Close,
    });
    (row, entries)
}

fn wire_bytes(header: FileHeader, entries: &[Entry], cut: bool) -> Vec<u8> {
    let mut writer = WireWriter::new(Vec::new(), header).unwrap();
    // Small segments, so that a cut leaves some whole.
    for part in entries.chunks(8) {
        let mut segment = SegmentBuffer::new();
        for entry in part {
            let head = RecordHead {
                t: MonoNs(entry.at),
                kernel_ns: 0,
                conn: entry.conn,
                req: entry.req,
            };
            assert!(segment.push(head, &entry.payload.payload()));
        }
        writer.write(&segment).unwrap();
    }
    let mut bytes = writer.into_inner();
    if cut {
        bytes.truncate(bytes.len() * 3 / 4);
    }
    bytes
}
