//! A cell's wire log as it is read, record by record: who is where, and what may come next.

use std::collections::BTreeMap;

use assize_evidence::wire::{Payload, Record as WireRecord};
use assize_evidence::{CELL_WIRE, ConnFacts, ExchangeRow, PeerClose};
use assize_plan::{Hash, Load, Receive, RequestClass, Tls, TraceObject};
use assize_units::{MonoNs, OffsetNs};
use serde::Deserialize;

use super::cell::{Scene, first_difference};
use super::conversation::{Conversation, Instants, Planned, ReadMark};
use super::{CellReading, Refusal, terminal};
use crate::records::Record;
use crate::replay::openai::Asked;

/// A connection as far as the reader must know it.
struct Connection {
    /// Requests that it has carried.
    carried: u32,
    /// The request on it.
    req: Option<u32>,
    idle_since: Option<MonoNs>,
}

/// What a record of the TLS layer says.
#[derive(Deserialize)]
struct TlsFacts {
    event: TlsEvent,
    /// Whether the certificate was judged; of a handshake alone.
    verified: Option<bool>,
}

/// What happened to a TLS layer.
#[derive(Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum TlsEvent {
    /// The handshake is done.
    Handshake,
    /// The layer cannot go on.
    Failed,
    /// The transport ended without `close_notify`.
    Eof,
    /// The client closed; what went through in all.
    Close,
}

/// What has been seen of a cell so far.
pub(super) struct Stage<'a> {
    scene: &'a Scene<'a>,
    /// By what the arm's peer proves who it is; none where it is spoken to in cleartext.
    tls: Option<Tls>,
    trace: TraceObject,
    asked: Vec<Asked>,
    origin: Option<MonoNs>,
    end: Option<MonoNs>,
    pub(super) ended: bool,
    next_dispatch: u32,
    next_admit: u32,
    in_flight: u32,
    last: MonoNs,
    /// CLOCK_REALTIME − CLOCK_MONOTONIC, as last bracketed.
    clock_offset: Option<i64>,
    connections: BTreeMap<u32, Connection>,
    pub(super) conversations: BTreeMap<u32, Conversation>,
    pub(super) rows: Vec<Option<ExchangeRow>>,
    records: Vec<Option<Record>>,
    pub(super) unknown_records: u64,
    stray_bytes: u64,
    driver_facts: usize,
}

impl<'a> Stage<'a> {
    pub(super) fn new(scene: &'a Scene<'a>) -> Result<Stage<'a>, Refusal> {
        let cell = scene.cell;
        let trace = scene.frozen.trace(scene.store, cell.load.trace())?;
        let total = cell.requests as usize;
        if trace.len() != total {
            let why = format!("the trace has {} requests, the cell {total}", trace.len());
            return Err(scene.accounting(why));
        }
        let arm = scene.frozen.plan.arm(&scene.unit.arm);
        let engine_sends_done = arm.is_none_or(|arm| arm.engine.done);
        let asked = cell
            .classes
            .iter()
            .filter_map(|class| scene.frozen.plan.class(*class))
            .map(|class| Asked {
                stream: class.stream,
                choices: class.choices,
                forced_tokens: class.expect.output_tokens,
                done_due: engine_sends_done,
            })
            .collect();
        Ok(Stage {
            scene,
            tls: arm.and_then(|arm| arm.tls),
            trace,
            asked,
            origin: None,
            end: None,
            ended: false,
            next_dispatch: 0,
            next_admit: 0,
            in_flight: 0,
            last: MonoNs(0),
            clock_offset: None,
            connections: BTreeMap::new(),
            conversations: BTreeMap::new(),
            rows: vec![None; total],
            records: vec![None; total],
            unknown_records: 0,
            stray_bytes: 0,
            driver_facts: 0,
        })
    }

    pub(super) fn total(&self) -> usize {
        self.rows.len()
    }

    /// Requests of which there is no record at all.
    pub(super) fn undispatched(&self) -> usize {
        let ended = self.rows.iter().flatten().count();
        self.total() - ended - self.conversations.len()
    }

    pub(super) fn into_reading(self) -> CellReading {
        CellReading {
            unit: self.scene.unit.n,
            cell: self.scene.place,
            origin: self.origin,
            end: self.end,
            records: self.records.into_iter().flatten().collect(),
            unknown_records: self.unknown_records,
            stray_bytes: self.stray_bytes,
            driver_facts: self.driver_facts,
        }
    }

    fn refuse(&self, req: Option<u32>, why: impl Into<String>) -> Refusal {
        let folder = self.scene.folder();
        let place = match req {
            Some(req) => format!("{folder}/{CELL_WIRE}, request {req}"),
            None => format!("{folder}/{CELL_WIRE}"),
        };
        Refusal::Order {
            place,
            why: why.into(),
        }
    }

    pub(super) fn take(&mut self, record: &WireRecord<'_>) -> Result<(), Refusal> {
        let (at, req) = (record.head.t, record.head.req);
        if at < self.last {
            return Err(self.refuse(req, "a time is before that of the record above"));
        }
        self.last = at;
        // A driver's closing clock bracket may follow the end.
        let of_the_driver = matches!(
            record.payload,
            Payload::Clock { .. } | Payload::Driver { .. }
        );
        if self.ended && !of_the_driver {
            return Err(self.refuse(req, "a record after the cell's end"));
        }
        if req.is_some_and(|req| req as usize >= self.total()) {
            return Err(self.refuse(req, "the plan has no such request"));
        }
        match req {
            Some(req) => self.take_request(record, req),
            None => self.take_cell(record),
        }
    }

    fn take_cell(&mut self, record: &WireRecord<'_>) -> Result<(), Refusal> {
        let at = record.head.t;
        match (record.payload, record.head.conn) {
            (Payload::CellStart { origin_ns }, _) => {
                let before = self.origin.replace(MonoNs(origin_ns));
                if before.is_some() {
                    return Err(self.refuse(None, "the cell starts a second time"));
                }
            }
            (Payload::CellEnd, _) => self.ended = true,
            (Payload::Clock { offset_ns, .. }, _) => self.clock_offset = Some(offset_ns),
            (Payload::Driver { .. }, _) => self.driver_facts += 1,
            (Payload::Connect { .. }, Some(conn)) => self.open(conn, None)?,
            (Payload::Connected, Some(conn)) if self.tls.is_none() => self.stands(conn, at),
            (Payload::Tls { facts }, Some(conn)) => {
                let event = self.tls_event(None, facts)?;
                if event == TlsEvent::Handshake {
                    self.stands(conn, at);
                }
            }
            (Payload::Recv(bytes), Some(_)) => self.stray_bytes += bytes.len() as u64,
            (Payload::Close, Some(conn)) => {
                self.connections.remove(&conn);
            }
            _ => {}
        }
        Ok(())
    }

    /// A connection that was opened in advance can carry requests from now on.
    fn stands(&mut self, conn: u32, at: MonoNs) {
        if let Some(connection) = self.connections.get_mut(&conn) {
            connection.idle_since = Some(at);
        }
    }

    /// What a record of the TLS layer tells; certificates must have been judged as the plan says.
    fn tls_event(&self, req: Option<u32>, facts: &str) -> Result<TlsEvent, Refusal> {
        let Some(trust) = self.tls else {
            return Err(self.refuse(req, "a record of TLS where the plan has none"));
        };
        let facts: TlsFacts = serde_json::from_str(facts)
            .map_err(|error| self.refuse(req, format!("a record of TLS tells nothing: {error}")))?;
        let is_judged = trust != Tls::Insecure;
        if facts.event == TlsEvent::Handshake && facts.verified != Some(is_judged) {
            let word = if is_judged {
                "verified"
            } else {
                "not verified"
            };
            let why = format!("the plan says that its peer is {word}, the handshake otherwise");
            return Err(self.refuse(req, why));
        }
        Ok(facts.event)
    }

    fn take_tls(&mut self, record: &WireRecord<'_>, req: u32, facts: &str) -> Result<(), Refusal> {
        let at = record.head.t;
        match self.tls_event(Some(req), facts)? {
            TlsEvent::Handshake => {
                let conn = self.named(record.head.conn, req)?;
                let carried = self.carry(conn, req, None)?;
                let conversation = self.conversation(req);
                conversation.tls = Some(at);
                conversation.conn = Some(carried);
            }
            TlsEvent::Failed => self.conversation(req).tls_failed = Some(at),
            TlsEvent::Eof => {
                let instants = self.instants(record);
                let conversation = self.conversation(req);
                conversation.eof = Some(instants);
                conversation.is_bare_end = true;
                conversation.peer_end = Some(PeerClose::Eof);
            }
            TlsEvent::Close => {}
        }
        Ok(())
    }

    fn open(&mut self, conn: u32, req: Option<u32>) -> Result<(), Refusal> {
        let connection = Connection {
            carried: 0,
            req,
            idle_since: None,
        };
        if self.connections.insert(conn, connection).is_some() {
            return Err(self.refuse(req, format!("connection {conn} is opened a second time")));
        }
        Ok(())
    }

    fn take_request(&mut self, record: &WireRecord<'_>, req: u32) -> Result<(), Refusal> {
        let (at, conn) = (record.head.t, record.head.conn);
        if self.rows[req as usize].is_some() {
            return Err(self.refuse(Some(req), "a record after its terminal record"));
        }
        match record.payload {
            Payload::Dispatch { intended_ns } => self.dispatch(req, at, MonoNs(intended_ns))?,
            Payload::Admit => self.admit(req, at)?,
            Payload::Connect { .. } => {
                let conn = self.named(conn, req)?;
                self.open(conn, Some(req))?;
                self.conversation(req).connect = Some(at);
            }
            Payload::Connected => {
                let conn = self.named(conn, req)?;
                // With TLS a connection carries nothing before its handshake is done.
                let facts = match self.tls {
                    None => Some(self.carry(conn, req, None)?),
                    Some(_) => None,
                };
                let conversation = self.conversation(req);
                conversation.connected = Some(at);
                conversation.conn = facts;
            }
            Payload::Tls { facts } => self.take_tls(record, req, facts)?,
            Payload::SendStart { body, head } => {
                let conn = self.named(conn, req)?;
                self.adopt(conn, req)?;
                self.check_request(req, body, head)?;
                let conversation = self.conversation(req);
                conversation.send_start = Some(at);
                conversation.head_bytes = head.len() as u64;
            }
            Payload::Sent { bytes } => self.sent(req, at, bytes)?,
            Payload::Recv(bytes) => {
                let instants = self.instants(record);
                self.receive(req, bytes, instants)?;
            }
            Payload::Eof => {
                let instants = self.instants(record);
                let conversation = self.conversation(req);
                conversation.eof = Some(instants);
                conversation.peer_end = Some(PeerClose::Eof);
            }
            Payload::Error { op, errno } => {
                let conversation = self.conversation(req);
                if terminal::is_reset(errno) {
                    conversation.peer_end = Some(PeerClose::Reset);
                }
                if terminal::is_broken_send(op, errno) {
                    conversation.broken_send = errno;
                } else {
                    conversation.error = Some((at, op, errno));
                }
            }
            Payload::Timer(timer) => self.conversation(req).timer = Some((at, timer)),
            Payload::Terminal { .. } => self.terminate(record, req)?,
            _ => {}
        }
        Ok(())
    }

    fn conversation(&mut self, req: u32) -> &mut Conversation {
        self.conversations.entry(req).or_default()
    }

    fn named(&self, conn: Option<u32>, req: u32) -> Result<u32, Refusal> {
        conn.ok_or_else(|| self.refuse(Some(req), "a record of a connection names none"))
    }

    /// The load hands requests over in the plan's order, at or after their offsets.
    fn dispatch(&mut self, req: u32, at: MonoNs, claimed: MonoNs) -> Result<(), Refusal> {
        if req != self.next_dispatch {
            let why = format!("dispatched where request {} is due", self.next_dispatch);
            return Err(self.refuse(Some(req), why));
        }
        self.next_dispatch += 1;
        let Some(intended) = self.intended(req) else {
            return Err(self.refuse(Some(req), "dispatched before the cell's origin is set"));
        };
        if claimed != intended {
            return Err(Refusal::Disagreement {
                place: format!("{}/{CELL_WIRE}, request {req}", self.scene.folder()),
                field: "intended".to_owned(),
                claimed: claimed.0.to_string(),
                replayed: intended.0.to_string(),
            });
        }
        if at < intended {
            return Err(self.refuse(Some(req), "dispatched before it was due"));
        }
        self.conversation(req).dispatched = Some(at);
        Ok(())
    }

    /// Admission is first in, first out, and never beyond the load's limit.
    fn admit(&mut self, req: u32, at: MonoNs) -> Result<(), Refusal> {
        if req != self.next_admit || req >= self.next_dispatch {
            let why = format!("admitted where request {} is due", self.next_admit);
            return Err(self.refuse(Some(req), why));
        }
        self.next_admit += 1;
        self.in_flight += 1;
        let limit = match self.scene.cell.load {
            Load::Open { cap, .. } => cap,
            Load::Closed { clients, .. } => Some(clients),
        };
        if limit.is_some_and(|limit| self.in_flight > limit) {
            let why = format!(
                "{} requests are in flight, the load allows fewer",
                self.in_flight
            );
            return Err(self.refuse(Some(req), why));
        }
        self.conversation(req).admitted = Some(at);
        Ok(())
    }

    fn intended(&self, req: u32) -> Option<MonoNs> {
        let offset = match &self.trace.offsets_ns {
            Some(offsets) => *offsets.get(req as usize)?,
            None => OffsetNs(0),
        };
        Some(self.origin?.at(offset))
    }

    /// Puts a request on a connection.
    fn carry(&mut self, conn: u32, req: u32, idle_ns: Option<u64>) -> Result<ConnFacts, Refusal> {
        let Some(connection) = self.connections.get_mut(&conn) else {
            return Err(self.refuse(Some(req), format!("connection {conn} was never opened")));
        };
        if connection.req.is_some_and(|other| other != req) {
            let why = format!("connection {conn} carries another request");
            return Err(self.refuse(Some(req), why));
        }
        connection.req = Some(req);
        connection.idle_since = None;
        connection.carried += 1;
        Ok(ConnFacts {
            n: conn,
            nth: connection.carried - 1,
            idle_ns,
        })
    }

    /// A request on a connection that stood before it: used again, or opened in advance. It was
    /// taken at admission.
    fn adopt(&mut self, conn: u32, req: u32) -> Result<(), Refusal> {
        let conversation = self.conversation(req);
        if conversation.conn.is_some() {
            return Ok(());
        }
        let admitted = conversation.admitted;
        let since = self.connections.get(&conn).and_then(|it| it.idle_since);
        let (Some(admitted), Some(since)) = (admitted, since) else {
            return Err(self.refuse(Some(req), format!("connection {conn} was not idle")));
        };
        let facts = self.carry(conn, req, Some(admitted.since(since).0))?;
        self.conversation(req).conn = Some(facts);
        Ok(())
    }

    /// What was sent is what the plan says: the body by its hash, the id in the head.
    fn check_request(&self, req: u32, body: Hash, head: &[u8]) -> Result<(), Refusal> {
        let (class, prompt) = self.class_of(req)?;
        let planned = class.bodies.get(prompt as usize);
        if planned != Some(&body) {
            let why = format!("its body has the hash {body}, the plan says otherwise");
            return Err(self.refuse(Some(req), why));
        }
        let id = self.id(req);
        let has_id = head
            .split(|byte| *byte == b'\n')
            .filter_map(|line| line.strip_suffix(b"\r"))
            .filter_map(|line| {
                let colon = line.iter().position(|byte| *byte == b':')?;
                Some((&line[..colon], line[colon + 1..].trim_ascii()))
            })
            .any(|(name, value)| {
                name.eq_ignore_ascii_case(b"x-request-id") && value == id.as_bytes()
            });
        let line = format!("{} {} HTTP/1.1\r\n", class.method, class.path);
        if !has_id || !head.starts_with(line.as_bytes()) {
            return Err(self.refuse(Some(req), "its head is not that of the plan's request"));
        }
        Ok(())
    }

    fn class_of(&self, req: u32) -> Result<(&'a RequestClass, u32), Refusal> {
        let plan = &self.scene.frozen.plan;
        let place = self.trace.class_of(req as usize) as usize;
        let class = self.scene.cell.classes.get(place);
        let class = class.and_then(|class| plan.class(*class));
        let prompt = self.trace.prompts.get(req as usize);
        match (class, prompt) {
            (Some(class), Some(prompt)) => Ok((class, *prompt)),
            _ => Err(self.refuse(Some(req), "the plan gives it no class or prompt")),
        }
    }

    fn id(&self, req: u32) -> String {
        self.scene.cell.request_id(req as usize)
    }

    fn instants(&self, record: &WireRecord<'_>) -> Instants {
        let reaped = record.head.t;
        let takes_kernel = matches!(self.scene.cell.receive, Receive::Kernel { .. });
        let stamp = Some(record.head.kernel_ns).filter(|stamp| takes_kernel && *stamp != 0);
        let received = stamp
            .zip(self.clock_offset)
            .and_then(|(stamp, offset)| u64::try_from(i128::from(stamp) - i128::from(offset)).ok())
            // The two clocks are bracketed, not equal: a stamp cannot be later than its reap.
            .map_or(reaped, |stamp| MonoNs(stamp.min(reaped.0)));
        Instants { reaped, received }
    }

    fn receive(&mut self, req: u32, bytes: &[u8], at: Instants) -> Result<(), Refusal> {
        let limit = self.scene.frozen.plan.max_response_bytes.0;
        // Framing and heads come on top of the body that the plan bounds.
        let most = limit.saturating_mul(2).saturating_add(64 << 20);
        let conversation = self.conversation(req);
        let held = conversation.bytes.len() + bytes.len();
        if held as u64 > most {
            return Err(self.refuse(Some(req), format!("more than {most} bytes were received")));
        }
        conversation.bytes.extend_from_slice(bytes);
        let end = conversation.bytes.len();
        conversation.reads.push(ReadMark { end, at });
        Ok(())
    }

    fn terminate(&mut self, record: &WireRecord<'_>, req: u32) -> Result<(), Refusal> {
        let at = record.head.t;
        if let Some(conn) = record.head.conn {
            let stood = self.connections.get(&conn).and_then(|it| it.idle_since);
            if stood.is_some() {
                self.adopt(conn, req)?;
            }
            if let Some(connection) = self.connections.get_mut(&conn) {
                connection.req = None;
                connection.idle_since = Some(at);
            }
        }
        let conversation = self.conversations.remove(&req).unwrap_or_default();
        self.in_flight -= u32::from(conversation.admitted.is_some());
        let (class, prompt) = self.class_of(req)?;
        let place = self.trace.class_of(req as usize) as usize;
        let id = self.id(req);
        let planned = Planned {
            req,
            id: &id,
            class: class.n,
            prompt,
            intended: self.intended(req),
            asked: &self.asked[place],
            max_body_bytes: self.scene.frozen.plan.max_response_bytes.0,
        };
        let replayed = conversation.end(&planned, at);
        let row = &replayed.row;
        if let Payload::Terminal {
            terminal,
            phase,
            status,
            errno,
        } = record.payload
        {
            let claimed = ExchangeRow {
                terminal,
                phase,
                status,
                errno,
                end_ns: Some(at),
                ..row.clone()
            };
            if claimed != *row {
                let place = format!("{}/{CELL_WIRE}, request {req} ({id})", self.scene.folder());
                return Err(first_difference(&place, &claimed, row));
            }
        }
        self.end = self.end.max(Some(at));
        self.rows[req as usize] = Some(replayed.row);
        self.records[req as usize] = Some(replayed.record);
        Ok(())
    }

    /// The kernel accepted exactly the head and the body, or less of them by the end of the request.
    fn sent(&mut self, req: u32, at: MonoNs, bytes: u64) -> Result<(), Refusal> {
        let (class, prompt) = self.class_of(req)?;
        let body = class.bodies.get(prompt as usize);
        let size = body.and_then(|hash| self.scene.frozen.size(*hash));
        let conversation = self.conversation(req);
        let due = size.map(|size| size + conversation.head_bytes);
        let is_first = conversation.sent_bytes == 0;
        conversation.sent_bytes = bytes;
        conversation.sent = Some(at).filter(|_| due == Some(bytes));
        if is_first && due.is_some_and(|due| bytes <= due) {
            return Ok(());
        }
        let why = format!("{bytes} bytes were sent, not head and body or a part of them, once");
        Err(self.refuse(Some(req), why))
    }
}
