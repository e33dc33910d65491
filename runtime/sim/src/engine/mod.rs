//! A whole inference server as a state machine: bytes and instants in, bytes and deadlines out.

mod answer;
mod api;
mod config;
pub(crate) mod draw;
mod duration;
mod fault;
mod fault_text;
mod lengths;
mod metrics;
pub(crate) mod request;
mod scheduler;
mod slab;
mod text;
pub(crate) mod wire;

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap, VecDeque};

use assize_units::MonoNs;

use answer::{Answer, Ending, Setting};
use api::{Generate, Refusal, Route};
use draw::{Purpose, draw};
use metrics::Counters;
use request::{Progress, RequestHead, RequestReader};
use scheduler::{Emission, Owner, Scheduler, SeqSpec};
use slab::Slab;
use wire::{BodyFraming, ResponseHead};

pub use config::{ConfigError, EngineConfig};
pub use duration::{Percent, parse_duration, write_duration};
pub use fault::{Fault, FaultRule};
pub use fault_text::FaultTextError;

/// A connection, by a number that its host never uses twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ConnId(pub u64);

/// What the host of an engine must do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EngineOutput {
    /// Write these bytes, all in one write where the socket takes them.
    Send {
        /// The connection.
        conn: ConnId,
        /// The bytes.
        bytes: Vec<u8>,
    },
    /// Close the connection once all bytes sent before are written; the engine has forgotten it.
    Close {
        /// The connection.
        conn: ConnId,
        /// Reset (RST) it instead of an orderly close (FIN).
        abort: bool,
    },
    /// Read nothing more from the connection, or read it again. A connection is read from the
    /// start; an engine reads always, a script may not.
    Reading {
        /// The connection.
        conn: ConnId,
        /// Whether its bytes are read from now on.
        on: bool,
    },
}

/// A simulated inference server.
///
/// Every input carries the instant at which it happened; instants must not go backwards (an
/// earlier one is taken as the latest seen). After each input, poll
/// [`poll_output`](Engine::poll_output) until it yields nothing, then call
/// [`handle_timeout`](Engine::handle_timeout) at [`poll_timeout`](Engine::poll_timeout) or later.
/// A late call changes no instant of the model: steps follow each other without gaps, and only
/// the bytes leave later.
#[derive(Debug)]
pub struct Engine {
    config: EngineConfig,
    now: MonoNs,
    ready_at: MonoNs,
    conns: HashMap<ConnId, Conn>,
    answers: Slab<Answer>,
    scheduler: Scheduler,
    /// Releases of withheld answers: instant, request, answer.
    releases: BinaryHeap<Reverse<(MonoNs, u64, u32)>>,
    /// Idle connections in the order of their deadlines, with the activity they had then.
    idle: VecDeque<(MonoNs, ConnId, u64)>,
    /// Connections with output, in order.
    dirty: VecDeque<ConnId>,
    emissions: Vec<Emission>,
    spare: Vec<Vec<u8>>,
    requests: u64,
    counters: Counters,
}

#[derive(Debug)]
struct Conn {
    reader: RequestReader,
    answer: Option<u32>,
    out: Vec<u8>,
    dirty: bool,
    /// Close after `out`; true for a reset.
    closing: Option<bool>,
    byte_by_byte: bool,
    /// Grows with each input, so that an old idle deadline is told from a live one.
    activity: u64,
}

impl Engine {
    /// A server that starts at `now`.
    pub fn new(config: EngineConfig, now: MonoNs) -> Result<Engine, ConfigError> {
        config.validate()?;
        Ok(Engine {
            now,
            ready_at: now.after(config.startup),
            conns: HashMap::new(),
            answers: Slab::new(),
            scheduler: Scheduler::new(&config),
            releases: BinaryHeap::new(),
            idle: VecDeque::new(),
            dirty: VecDeque::new(),
            emissions: Vec::new(),
            spare: Vec::new(),
            requests: 0,
            counters: Counters::default(),
            config,
        })
    }

    /// The configuration.
    pub fn config(&self) -> &EngineConfig {
        &self.config
    }

    /// A connection was accepted.
    pub fn handle_open(&mut self, now: MonoNs, conn: ConnId) {
        self.handle_timeout(now);
        let full = self.conns.len() >= self.config.max_connections as usize;
        let (max_head, max_body) = (self.config.max_head_bytes, self.config.max_body_bytes);
        let state = Conn {
            reader: RequestReader::new(max_head as usize, max_body as usize),
            answer: None,
            out: Vec::new(),
            dirty: false,
            closing: full.then_some(true),
            byte_by_byte: false,
            activity: 0,
        };
        self.conns.insert(conn, state);
        if full {
            self.mark_dirty(conn);
        }
    }

    /// Bytes arrived on a connection.
    pub fn handle_received(&mut self, now: MonoNs, conn: ConnId, bytes: &[u8]) {
        self.handle_timeout(now);
        let Some(state) = self.conns.get_mut(&conn) else {
            return;
        };
        if state.closing.is_some() {
            return;
        }
        state.activity += 1;
        if !state.reader.receive(bytes) {
            return self.drop_conn(conn, true);
        }
        self.serve_next(conn);
        self.scheduler.start(self.now);
    }

    /// The peer closed or reset a connection: its answer is cancelled.
    pub fn handle_closed(&mut self, now: MonoNs, conn: ConnId) {
        self.handle_timeout(now);
        if let Some(state) = self.conns.remove(&conn)
            && let Some(key) = state.answer
        {
            self.cancel_answer(key);
        }
    }

    /// Does all that is due until `now`.
    pub fn handle_timeout(&mut self, now: MonoNs) {
        while let Some(due) = self.poll_timeout()
            && due <= now
        {
            self.now = self.now.max(due);
            self.do_due(due);
        }
        self.now = self.now.max(now);
    }

    /// The next deadline.
    pub fn poll_timeout(&self) -> Option<MonoNs> {
        let release = self.releases.peek().map(|Reverse((at, _, _))| *at);
        let idle = self.idle.front().map(|(at, _, _)| *at);
        [self.scheduler.poll_timeout(), release, idle]
            .into_iter()
            .flatten()
            .min()
    }

    /// The next thing for the host to do.
    pub fn poll_output(&mut self) -> Option<EngineOutput> {
        loop {
            let conn = *self.dirty.front()?;
            let Some(state) = self.conns.get_mut(&conn) else {
                self.dirty.pop_front();
                continue;
            };
            if state.byte_by_byte && state.out.len() > 1 {
                let bytes = vec![state.out.remove(0)];
                return Some(EngineOutput::Send { conn, bytes });
            }
            if !state.out.is_empty() {
                let spare = self.spare.pop().unwrap_or_default();
                let bytes = std::mem::replace(&mut state.out, spare);
                return Some(EngineOutput::Send { conn, bytes });
            }
            self.dirty.pop_front();
            state.dirty = false;
            if let Some(abort) = state.closing {
                self.conns.remove(&conn);
                return Some(EngineOutput::Close { conn, abort });
            }
        }
    }

    /// Gives back the bytes of a [`EngineOutput::Send`] once written, to be used again.
    pub fn recycle(&mut self, mut bytes: Vec<u8>) {
        if self.spare.len() < 64 && bytes.capacity() <= 64 << 10 {
            bytes.clear();
            self.spare.push(bytes);
        }
    }

    fn do_due(&mut self, due: MonoNs) {
        if let Some(Reverse((at, request, key))) = self.releases.peek().copied()
            && at <= due
        {
            self.releases.pop();
            self.release(key, request);
        } else if self.scheduler.poll_timeout().is_some_and(|at| at <= due) {
            self.finish_step();
        } else if let Some((_, conn, activity)) = self.idle.pop_front() {
            self.close_idle(conn, activity);
        }
    }

    fn finish_step(&mut self) {
        let mut emissions = std::mem::take(&mut self.emissions);
        self.scheduler.finish_step(&mut emissions);
        for emission in emissions.drain(..) {
            self.take_token(emission);
        }
        self.emissions = emissions;
        self.scheduler.start(self.now);
    }

    fn take_token(&mut self, emission: Emission) {
        let Owner { answer, choice } = emission.owner;
        let now = self.now;
        let Some(state) = self.answers.get_mut(answer) else {
            return;
        };
        if emission.token == 0
            && let Some(place) = state.choices.get(choice as usize)
        {
            self.counters.prompt_tokens += u64::from(place.prompt_tokens);
        }
        self.counters.generation_tokens += 1;
        if emission.last
            && let Some(place) = state.choices.get(choice as usize)
        {
            self.counters.finished(place.finish_reason);
        }
        let withheld = state.release_at();
        state.push_token(now, choice, emission.token, emission.last);
        let release = state.release_at().filter(|_| withheld.is_none());
        if let Some(at) = release {
            self.releases.push(Reverse((at, state.request, answer)));
        }
        self.flush_and_serve(answer);
    }

    fn release(&mut self, key: u32, request: u64) {
        if let Some(answer) = self.answers.get_mut(key)
            && answer.request == request
        {
            answer.release(self.now);
            self.flush_and_serve(key);
            self.scheduler.start(self.now);
        }
    }

    /// Flushes an answer; if that ends it, the connection's next request is served.
    fn flush_and_serve(&mut self, key: u32) {
        let conn = self.answers.get(key).map(|answer| answer.conn);
        self.flush(key);
        if let Some(conn) = conn {
            self.serve_next(conn);
        }
    }

    /// Moves an answer's bytes to its connection, and ends it where it has ended.
    fn flush(&mut self, key: u32) {
        let Some(answer) = self.answers.get_mut(key) else {
            return;
        };
        let conn = answer.conn;
        let ending = answer.ending();
        if answer.is_written() {
            for choice in &mut answer.choices {
                if let Some(seq) = choice.seq.take() {
                    self.scheduler.cancel(seq);
                    self.counters.finished("abort");
                }
            }
        }
        if let Some(state) = self.conns.get_mut(&conn) {
            answer.drain_into(&mut state.out);
            if ending.is_some() {
                state.answer = None;
            }
        }
        if ending.is_some() {
            self.answers.remove(key);
        }
        self.mark_dirty(conn);
        match ending {
            None | Some(Ending::KeepAlive) => {}
            Some(Ending::Close) => self.drop_conn(conn, false),
            Some(Ending::Reset) => self.drop_conn(conn, true),
        }
    }

    fn cancel_answer(&mut self, key: u32) {
        let Some(mut answer) = self.answers.remove(key) else {
            return;
        };
        for choice in &mut answer.choices {
            if let Some(seq) = choice.seq.take() {
                self.scheduler.cancel(seq);
                self.counters.finished("abort");
            }
        }
    }

    /// Closes after what is already to be sent.
    fn drop_conn(&mut self, conn: ConnId, abort: bool) {
        let Some(state) = self.conns.get_mut(&conn) else {
            return;
        };
        state.closing = Some(abort);
        if let Some(key) = state.answer.take() {
            self.cancel_answer(key);
        }
        self.mark_dirty(conn);
    }

    fn mark_dirty(&mut self, conn: ConnId) {
        if let Some(state) = self.conns.get_mut(&conn)
            && !state.dirty
            && (!state.out.is_empty() || state.closing.is_some())
        {
            state.dirty = true;
            self.dirty.push_back(conn);
        }
    }

    fn close_idle(&mut self, conn: ConnId, activity: u64) {
        let idle = |state: &Conn| state.activity == activity && state.answer.is_none();
        if self.conns.get(&conn).is_some_and(idle) {
            self.drop_conn(conn, false);
        }
    }

    /// Serves the requests that have arrived, in order, until one takes time.
    fn serve_next(&mut self, conn: ConnId) {
        loop {
            let Some(state) = self.conns.get_mut(&conn) else {
                return;
            };
            if state.answer.is_some() || state.closing.is_some() {
                return;
            }
            match state.reader.poll() {
                Progress::Wait => return self.note_idle(conn),
                Progress::Expects => {
                    state
                        .out
                        .extend_from_slice(b"HTTP/1.1 100 Continue\r\n\r\n");
                    self.mark_dirty(conn);
                }
                Progress::Malformed(why) => {
                    self.reply(conn, None, &Reply::refusal(&why.into()));
                    return self.drop_conn(conn, false);
                }
                Progress::Ready => self.serve_one(conn),
            }
        }
    }

    /// Starts the idle time of a connection that has been answered.
    fn note_idle(&mut self, conn: ConnId) {
        let after = self.config.keep_alive;
        if let Some(state) = self.conns.get_mut(&conn)
            && state.reader.is_idle()
            && after.0 > 0
        {
            state.activity += 1;
            let entry = (self.now.after(after), conn, state.activity);
            self.idle.push_back(entry);
        }
    }

    fn serve_one(&mut self, conn: ConnId) {
        let config = &self.config;
        let taken = self.conns.get_mut(&conn).and_then(|state| {
            state
                .reader
                .take(|head, body| (head.clone(), api::route(head, body, config)))
        });
        let Some((head, route)) = taken else {
            return;
        };
        if self.now < self.ready_at {
            let refusal = Refusal::new(503, "Loading model");
            return self.reply(conn, Some(&head), &Reply::refusal(&refusal));
        }
        let reply = match route {
            Route::Generate(generate) => return self.serve_generate(conn, &head, generate),
            Route::Refused(refusal) => Reply::refusal(&refusal),
            Route::Health => Reply::ok("", Vec::new()),
            Route::Models => Reply::ok("application/json", self.models()),
            Route::Metrics => Reply::ok(metrics::CONTENT_TYPE, self.metrics()),
        };
        self.reply(conn, Some(&head), &reply);
    }

    fn serve_generate(&mut self, conn: ConnId, head: &RequestHead, generate: Generate) {
        let request = self.requests;
        self.requests += 1;
        let fault = fault::fault_of(&self.config.faults, self.config.seed, request).cloned();
        let choices = match self.plan_choices(&generate, fault.as_ref()) {
            Ok(choices) => choices,
            Err(refusal) => return self.reply(conn, Some(head), &Reply::refusal(&refusal)),
        };
        let setting = Setting {
            model: &self.config.model,
            vocabulary: self.config.vocabulary,
            tokens_per_event: self.config.tokens_per_event,
            id: draw(self.config.seed, Purpose::AnswerId, request),
            created_s: self.now.0 / assize_units::NS_PER_S,
        };
        let mut answer = Answer::new(conn, request, head, &generate, choices, fault, setting);
        answer.begin(self.now);
        let release = answer.release_at();
        let (byte_by_byte, written) = (answer.is_byte_by_byte(), answer.is_written());
        let key = self.answers.insert(answer);
        if let Some(at) = release {
            self.releases.push(Reverse((at, request, key)));
        }
        if let Some(state) = self.conns.get_mut(&conn) {
            state.answer = Some(key);
            state.byte_by_byte = byte_by_byte;
        }
        if !written {
            self.submit(key);
        }
        self.flush(key);
    }

    fn submit(&mut self, key: u32) {
        let Some(answer) = self.answers.get_mut(key) else {
            return;
        };
        for (index, choice) in answer.choices.iter_mut().enumerate() {
            choice.seq = Some(self.scheduler.submit(SeqSpec {
                prompt_tokens: choice.prompt_tokens,
                output_tokens: choice.output_tokens,
                owner: Owner {
                    answer: key,
                    choice: index as u32,
                },
            }));
        }
    }

    fn reply(&mut self, conn: ConnId, head: Option<&RequestHead>, reply: &Reply) {
        let Some(state) = self.conns.get_mut(&conn) else {
            return;
        };
        let keep_alive = head.is_some_and(|head| head.keep_alive);
        let response = ResponseHead {
            status: reply.status,
            content_type: reply.content_type,
            framing: BodyFraming::Length(reply.body.len()),
            keep_alive,
            request_id: head.and_then(|head| head.request_id.as_deref()),
            gzip_claim: false,
            location: None,
        };
        response.write(&mut state.out);
        state.out.extend_from_slice(&reply.body);
        state.byte_by_byte = false;
        self.mark_dirty(conn);
        if !keep_alive {
            self.drop_conn(conn, false);
        }
    }

    fn models(&self) -> Vec<u8> {
        let created = self.ready_at.0 / assize_units::NS_PER_S;
        let list = serde_json::json!({"object": "list", "data": [{
            "id": self.config.model,
            "object": "model",
            "created": created,
            "owned_by": "assize-sim",
            "max_model_len": self.config.max_model_len,
        }]});
        list.to_string().into_bytes()
    }

    fn metrics(&self) -> Vec<u8> {
        metrics::render(&self.config, &self.scheduler, &self.counters)
    }
}

/// An answer that takes no time.
struct Reply {
    status: u16,
    content_type: &'static str,
    body: Vec<u8>,
}

impl Reply {
    fn ok(content_type: &'static str, body: Vec<u8>) -> Reply {
        Reply {
            status: 200,
            content_type,
            body,
        }
    }

    fn refusal(refusal: &Refusal) -> Reply {
        Reply {
            status: refusal.status,
            content_type: "application/json",
            body: refusal.body(),
        }
    }
}
