//! One answer to one generation request: tokens in, wire bytes out, with its fault.

mod render;

use assize_units::{DurNs, MonoNs};

use crate::engine::ConnId;
use crate::engine::api::{Api, Generate, Refusal};
use crate::engine::fault::Fault;
use crate::engine::request::RequestHead;
use crate::engine::text::{token_at, write_token};
use crate::engine::wire::{BodyFraming, ResponseHead, write_chunk};
use render::render_prefix;

/// An answer under way.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) conn: ConnId,
    /// The request's number among generation requests.
    pub(super) request: u64,
    pub(super) choices: Vec<Choice>,
    shape: Shape,
    head: RequestHead,
    fault: Option<Fault>,
    prefix: Vec<u8>,
    prompt_tokens: u64,
    completion_tokens: u64,
    choices_left: usize,
    events: u32,
    role_sent: bool,
    /// Bytes that may go to the connection now.
    ready: Vec<u8>,
    /// Bytes that are withheld.
    held: Vec<u8>,
    withheld: Withheld,
    ending: Option<Ending>,
    scratch: Vec<u8>,
}

/// One prompt's answer.
#[derive(Debug)]
pub(super) struct Choice {
    /// The sequence in the scheduler, until it is finished.
    pub(super) seq: Option<u32>,
    pub(super) prompt_tokens: u32,
    pub(super) output_tokens: u32,
    /// `length` or `stop`.
    pub(super) finish_reason: &'static str,
    pub(super) answer_seed: u64,
    /// The prompt's ids, where they are to be returned.
    pub(super) prompt_ids: Option<Vec<u32>>,
    generated: u32,
    pending: u32,
    text: Vec<u8>,
    ids: Vec<u32>,
}

/// How an answer ends for its connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ending {
    /// The connection serves the next request.
    KeepAlive,
    /// The connection is closed.
    Close,
    /// The connection is reset.
    Reset,
}

/// What stands between an answer's bytes and its connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Withheld {
    No,
    Until(MonoNs),
    UntilEnd,
    Forever,
}

#[derive(Clone, Copy, Debug)]
struct Shape {
    api: Api,
    stream: bool,
    include_usage: bool,
    continuous_usage: bool,
    return_token_ids: bool,
    vocabulary: u32,
    tokens_per_event: u32,
}

/// What an answer takes from its engine.
#[derive(Clone, Copy, Debug)]
pub(super) struct Setting<'a> {
    pub(super) model: &'a str,
    pub(super) vocabulary: u32,
    pub(super) tokens_per_event: u32,
    /// Sixteen hexadecimal digits of the answer's id.
    pub(super) id: u64,
    /// Whole seconds of the engine's clock.
    pub(super) created_s: u64,
}

impl Choice {
    pub(super) fn new(
        prompt_tokens: u32,
        output_tokens: u32,
        finish_reason: &'static str,
        answer_seed: u64,
        prompt_ids: Option<Vec<u32>>,
    ) -> Choice {
        Choice {
            seq: None,
            prompt_tokens,
            output_tokens,
            finish_reason,
            answer_seed,
            prompt_ids,
            generated: 0,
            pending: 0,
            text: Vec::new(),
            ids: Vec::new(),
        }
    }
}

impl Answer {
    pub(super) fn new(
        conn: ConnId,
        request: u64,
        head: &RequestHead,
        generate: &Generate,
        choices: Vec<Choice>,
        fault: Option<Fault>,
        setting: Setting<'_>,
    ) -> Answer {
        let shape = Shape {
            api: generate.api,
            stream: generate.stream,
            include_usage: generate.include_usage,
            continuous_usage: generate.continuous_usage,
            return_token_ids: generate.return_token_ids,
            vocabulary: setting.vocabulary,
            tokens_per_event: setting.tokens_per_event,
        };
        Answer {
            conn,
            request,
            shape,
            head: head.clone(),
            fault,
            prefix: render_prefix(shape, setting),
            prompt_tokens: choices.iter().map(|c| u64::from(c.prompt_tokens)).sum(),
            completion_tokens: 0,
            choices_left: choices.len(),
            choices,
            events: 0,
            role_sent: false,
            ready: Vec::new(),
            held: Vec::new(),
            withheld: Withheld::No,
            ending: None,
            scratch: Vec::with_capacity(512),
        }
    }

    /// The request has been accepted: faults before the head strike, a stream's head is written.
    pub(super) fn begin(&mut self, now: MonoNs) {
        match self.fault {
            Some(Fault::ResetBeforeHead) => return self.end(Ending::Reset),
            Some(Fault::CloseBeforeHead) => return self.end(Ending::Close),
            Some(Fault::Status { code }) => return self.refuse(code),
            Some(Fault::Hang) => self.withheld = Withheld::Forever,
            Some(Fault::SlowHead { time }) => self.withheld = Withheld::Until(now.after(time)),
            Some(Fault::Coalesced) => self.withheld = Withheld::UntilEnd,
            _ => {}
        }
        if self.shape.stream {
            self.write_stream_head();
        }
        if self.shape.stream && self.fault == Some(Fault::EmptyStream) {
            self.write_done(now);
        }
    }

    /// Takes one token of a choice.
    pub(super) fn push_token(&mut self, now: MonoNs, choice: u32, token: u32, last: bool) {
        if self.ending.is_some() {
            return;
        }
        let shape = self.shape;
        let Some(place) = self.choices.get_mut(choice as usize) else {
            return;
        };
        let id = token_at(place.answer_seed, token, shape.vocabulary);
        write_token(id, &mut place.text);
        if shape.return_token_ids {
            place.ids.push(id);
        }
        place.generated += 1;
        place.pending += 1;
        self.completion_tokens += 1;
        if last {
            place.seq = None;
            self.choices_left -= 1;
        }
        // As vLLM's stream interval: the first token at once, then every k-th, and the last.
        let due = last || token == 0 || place.pending >= shape.tokens_per_event;
        if shape.stream && due {
            self.write_token_event(now, choice, last);
        }
        if self.choices_left == 0 && self.ending.is_none() {
            self.write_end(now);
        }
    }

    /// When what is withheld may go.
    pub(super) fn release_at(&self) -> Option<MonoNs> {
        match self.withheld {
            Withheld::Until(at) => Some(at),
            _ => None,
        }
    }

    /// Lets go what was withheld until `now`.
    pub(super) fn release(&mut self, now: MonoNs) {
        if matches!(self.withheld, Withheld::Until(at) if at <= now) {
            self.withheld = Withheld::No;
            self.ready.append(&mut self.held);
        }
    }

    /// Moves what may be sent now to `out`.
    pub(super) fn drain_into(&mut self, out: &mut Vec<u8>) {
        out.append(&mut self.ready);
    }

    /// How the answer ends, once all its bytes may be sent.
    pub(super) fn ending(&self) -> Option<Ending> {
        match self.withheld {
            Withheld::No => self.ending,
            _ => None,
        }
    }

    /// Whether no further token alters the answer.
    pub(super) fn is_written(&self) -> bool {
        self.ending.is_some()
    }

    pub(super) fn is_byte_by_byte(&self) -> bool {
        self.fault == Some(Fault::ByteByByte)
    }

    fn end(&mut self, ending: Ending) {
        self.ending = Some(ending);
        if self.withheld == Withheld::UntilEnd {
            self.withheld = Withheld::No;
            self.ready.append(&mut self.held);
        }
    }

    fn end_well(&mut self) {
        let ending = if self.head.keep_alive && !self.until_close() {
            Ending::KeepAlive
        } else {
            Ending::Close
        };
        self.end(ending);
    }

    /// Where bytes go now; `None` when nothing is ever sent again.
    fn out(&mut self) -> Option<&mut Vec<u8>> {
        match self.withheld {
            Withheld::No => Some(&mut self.ready),
            Withheld::Until(_) | Withheld::UntilEnd => Some(&mut self.held),
            Withheld::Forever => None,
        }
    }

    /// A stream to an HTTP/1.0 client is not chunked: it ends with the connection.
    fn until_close(&self) -> bool {
        self.shape.stream && !self.head.chunked_answer
    }

    fn refuse(&mut self, code: u16) {
        let body = Refusal::new(code, "The simulated engine fails on purpose.").body();
        let head = ResponseHead {
            status: code,
            content_type: "application/json",
            framing: BodyFraming::Length(body.len()),
            keep_alive: self.head.keep_alive,
            request_id: self.head.request_id.as_deref(),
            gzip_claim: false,
            location: (300..400).contains(&code).then_some("/v1/elsewhere"),
        };
        head.write(&mut self.ready);
        self.ready.extend_from_slice(&body);
        self.end_well();
    }

    fn write_head(&mut self, content_type: &'static str, framing: BodyFraming) {
        let content_type = match self.fault {
            Some(Fault::WrongContentType) => "text/plain; charset=utf-8",
            _ => content_type,
        };
        let head = ResponseHead {
            status: 200,
            content_type,
            framing,
            keep_alive: self.head.keep_alive,
            request_id: self.head.request_id.as_deref(),
            gzip_claim: self.fault == Some(Fault::GzipClaim),
            location: None,
        };
        let mut bytes = Vec::with_capacity(256);
        head.write(&mut bytes);
        if let Some(out) = self.out() {
            out.append(&mut bytes);
        }
    }

    fn write_stream_head(&mut self) {
        let framing = if self.until_close() {
            BodyFraming::UntilClose
        } else {
            BodyFraming::Chunked
        };
        self.write_head("text/event-stream; charset=utf-8", framing);
    }

    /// The event that carries a choice's pending tokens.
    fn write_token_event(&mut self, now: MonoNs, choice: u32, last: bool) {
        if self.shape.api == Api::Chat && !self.role_sent {
            self.role_sent = true;
            self.render_role_event();
            self.write_event(now);
        }
        self.render_token_event(choice, last);
        self.write_event(now);
    }

    /// Sends the event in `scratch`, unless the answer's fault strikes first.
    fn write_event(&mut self, now: MonoNs) {
        if self.ending.is_some() {
            return;
        }
        let event = std::mem::take(&mut self.scratch);
        self.strike(now, &event);
        if self.ending.is_none() {
            if self.fault == Some(Fault::Comments) {
                self.write_body(b": ping\n\n");
            }
            match self.fault {
                Some(Fault::MalformedEvent { after_events }) if after_events == self.events => {
                    self.write_body(&[&event[..event.len() / 2], b"\n\n"].concat());
                }
                _ => self.write_body(&event),
            }
            self.events += 1;
        }
        self.scratch = event;
    }

    /// Does what the fault does before the next event, if its place is here.
    fn strike(&mut self, now: MonoNs, event: &[u8]) {
        let here = |after: u32| after == self.events;
        match self.fault {
            Some(Fault::CloseMidStream { after_events }) if here(after_events) => {
                self.end(Ending::Close);
            }
            Some(Fault::ResetMidStream { after_events }) if here(after_events) => {
                self.end(Ending::Reset);
            }
            Some(Fault::HangMidStream { after_events }) if here(after_events) => {
                self.withheld = Withheld::Forever;
            }
            Some(Fault::Stall { after_events, time }) if here(after_events) => {
                self.stall(now, time);
            }
            Some(Fault::MalformedChunk { after_events }) if here(after_events) => {
                self.write_raw(b"zz\r\n");
                self.write_raw(event);
                self.end(Ending::Close);
            }
            Some(Fault::ErrorEvent { after_events }) if here(after_events) => {
                let refusal = Refusal::new(500, "EngineCore encountered an issue.");
                let error = [b"data: ".as_slice(), &refusal.body(), b"\n\n"].concat();
                self.write_body(&error);
                self.finish_stream(true);
            }
            _ => {}
        }
    }

    fn stall(&mut self, now: MonoNs, time: DurNs) {
        if self.withheld == Withheld::No {
            self.withheld = Withheld::Until(now.after(time));
        }
    }

    /// The last token is in: usage, `[DONE]`, the end of the body; or the whole answer.
    fn write_end(&mut self, now: MonoNs) {
        if !self.shape.stream {
            return self.write_whole();
        }
        if self.shape.include_usage {
            self.render_usage_event();
            self.write_event(now);
        }
        if self.ending.is_none() {
            self.write_done(now);
        }
    }

    fn write_done(&mut self, now: MonoNs) {
        self.strike(now, b"data: [DONE]\n\n");
        if self.ending.is_none() {
            self.finish_stream(self.fault != Some(Fault::MissingDone));
        }
    }

    fn finish_stream(&mut self, done: bool) {
        if done {
            self.write_body(b"data: [DONE]\n\n");
        }
        if self.fault == Some(Fault::ExtraAfterDone) {
            self.render_usage_event();
            let event = std::mem::take(&mut self.scratch);
            self.write_body(&event);
            self.scratch = event;
        }
        if !self.until_close() {
            self.write_raw(b"0\r\n\r\n");
        }
        self.end_well();
    }

    /// An answer that is not streamed.
    fn write_whole(&mut self) {
        let body = self.render_whole();
        self.write_head("application/json", BodyFraming::Length(body.len()));
        let cut = match self.fault {
            Some(Fault::CloseMidStream { .. }) => Some(Ending::Close),
            Some(Fault::ResetMidStream { .. }) => Some(Ending::Reset),
            _ => None,
        };
        match cut {
            Some(ending) => {
                self.write_raw(&body[..body.len() / 2]);
                self.end(ending);
            }
            None => {
                self.write_raw(&body);
                self.end_well();
            }
        }
    }

    /// Part of a stream's body, as a chunk of its own where the answer is chunked.
    fn write_body(&mut self, bytes: &[u8]) {
        let chunked = !self.until_close();
        let Some(out) = self.out() else {
            return;
        };
        if chunked {
            write_chunk(bytes, out);
        } else {
            out.extend_from_slice(bytes);
        }
    }

    fn write_raw(&mut self, bytes: &[u8]) {
        if let Some(out) = self.out() {
            out.extend_from_slice(bytes);
        }
    }
}
