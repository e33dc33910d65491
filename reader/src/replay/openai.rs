//! What the events of an OpenAI-compatible answer mean, and whether it is a valid completion.
//!
//! A valid completion (docs/metrics): every event is well-formed; each non-empty `choices` has
//! exactly one, whose index is 0, or one of 0 to p − 1 for a batch of p prompts; strings or null
//! where strings are due; each choice finished once, for a supported reason; nothing but usage
//! after it; exactly one `[DONE]` where the engine sends one; the declared output length met where
//! one is forced.

mod said;
mod shape;

use std::borrow::Cow;

use self::said::Said;
use self::shape::{Chunk, Object};
use super::sse::SseEvent;

pub use self::shape::Usage;

/// What was asked of the server, as far as it decides whether an answer is valid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Asked {
    /// Whether a stream of events was asked for.
    pub stream: bool,
    /// The number of prompts in the request: the choices due, with the indices from 0.
    pub choices: u32,
    /// The tokens that each choice was forced to have.
    pub forced_tokens: Option<u64>,
    /// Whether the engine is known to end its streams with `[DONE]`.
    pub done_due: bool,
}

impl Default for Asked {
    fn default() -> Self {
        Asked {
            stream: true,
            choices: 1,
            forced_tokens: None,
            done_due: true,
        }
    }
}

/// Why an answer whose framing is complete is no valid completion: a closed set.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize, serde::Deserialize,
)]
#[serde(rename_all = "snake_case")]
pub enum Invalid {
    /// The status is not 2xx.
    HttpStatus,
    /// A stream was asked for and the answer is no `text/event-stream`.
    WrongContentType,
    /// An event is not what the protocol allows.
    MalformedEvent,
    /// The server reported an error inside a 2xx answer.
    ErrorEvent,
    /// The stream ended without `[DONE]`.
    MissingDone,
    /// Something followed `[DONE]`.
    ExtraAfterDone,
    /// A choice has no finish reason, an unsupported one, or goes on after it.
    BadFinish,
    /// The forced length was not met, or nothing says that it was.
    WrongLength,
}

impl Invalid {
    /// The name used in records and reports.
    pub fn name(self) -> &'static str {
        match self {
            Invalid::HttpStatus => "http_status",
            Invalid::WrongContentType => "wrong_content_type",
            Invalid::MalformedEvent => "malformed_event",
            Invalid::ErrorEvent => "error_event",
            Invalid::MissingDone => "missing_done",
            Invalid::ExtraAfterDone => "extra_after_done",
            Invalid::BadFinish => "bad_finish",
            Invalid::WrongLength => "wrong_length",
        }
    }
}

/// The first thing that makes an answer invalid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Flaw {
    /// Its kind.
    pub kind: Invalid,
    /// The number of the event that shows it; none where the end does.
    pub event: Option<usize>,
    /// What is wrong, for a person.
    pub why: &'static str,
}

/// What one event is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventKind {
    /// An object with exactly one choice.
    Choice,
    /// An object without a choice: usage, a filter's verdict, or nothing at all.
    NoChoice,
    /// `[DONE]`, exactly.
    Done,
    /// A named ping.
    Ping,
    /// An error object, an event named `error`, or a choice that finished by `error`.
    Error,
    /// Anything at all after `[DONE]`; nothing of it counts.
    AfterDone,
    /// Anything else, and what is wrong with it.
    Malformed(&'static str),
}

/// Why a choice ended.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Finish {
    /// `stop`.
    Stop,
    /// `length`.
    Length,
    /// `tool_calls`.
    ToolCalls,
    /// `function_call`.
    FunctionCall,
    /// `content_filter`.
    ContentFilter,
    /// A reason that is not supported; the answer is invalid.
    Unsupported(String),
}

impl Finish {
    fn parse(text: String) -> Finish {
        match text.as_str() {
            "stop" => Finish::Stop,
            "length" => Finish::Length,
            "tool_calls" => Finish::ToolCalls,
            "function_call" => Finish::FunctionCall,
            "content_filter" => Finish::ContentFilter,
            _ => Finish::Unsupported(text),
        }
    }

    /// The reason as the server words it.
    pub fn name(&self) -> &str {
        match self {
            Finish::Stop => "stop",
            Finish::Length => "length",
            Finish::ToolCalls => "tool_calls",
            Finish::FunctionCall => "function_call",
            Finish::ContentFilter => "content_filter",
            Finish::Unsupported(text) => text,
        }
    }
}

/// What one event means.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EventMeaning {
    /// What it is.
    pub kind: EventKind,
    /// The index of its choice.
    pub choice: Option<u32>,
    /// Whether it bears a token: token ids, or a non-empty content, reasoning, text or tool call.
    pub token_bearing: bool,
    /// Whether a person would see something: token ids alone do not count.
    pub has_output: bool,
    /// The number of token ids, where the server returned them.
    pub token_ids: Option<u64>,
    /// The finish reason.
    pub finish: Option<Finish>,
    /// The usage it carries.
    pub usage: Option<Usage>,
}

impl EventMeaning {
    fn of_kind(kind: EventKind) -> EventMeaning {
        EventMeaning {
            kind,
            choice: None,
            token_bearing: false,
            has_output: false,
            token_ids: None,
            finish: None,
            usage: None,
        }
    }
}

/// What one choice said, joined over its events.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Output {
    /// Content or text.
    pub content: String,
    /// Reasoning.
    pub reasoning: String,
    /// The arguments of tool calls, in the order received, not taken apart by call.
    pub tool_arguments: String,
    /// Token ids, where they were returned.
    pub token_ids: Vec<u64>,
    /// Why it ended.
    pub finish: Option<Finish>,
}

/// A whole answer's meaning.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Completion {
    /// What each event means; empty for an answer that was no stream.
    pub events: Vec<EventMeaning>,
    /// The number of the first `[DONE]` event.
    pub done_event: Option<usize>,
    /// One for each choice asked for.
    pub outputs: Vec<Output>,
    /// The tokens generated, as usage states them.
    pub usage_tokens: Option<u64>,
    /// The tokens generated, as the token ids show them; none unless every token came with its id.
    pub id_tokens: Option<u64>,
    /// The first thing that makes it invalid.
    pub flaw: Option<Flaw>,
}

impl Completion {
    /// The output tokens: from usage where sent, else from token ids; never from text.
    pub fn output_tokens(&self) -> Option<u64> {
        self.usage_tokens.or(self.id_tokens)
    }

    /// Whether usage and token ids, both there, disagree.
    pub fn counts_disagree(&self) -> bool {
        matches!((self.usage_tokens, self.id_tokens), (Some(usage), Some(ids)) if usage != ids)
    }
}

/// Reads a stream's events.
///
/// `ended` says that the framing is complete: only then does the end itself show what is missing.
pub fn read_stream(events: &[SseEvent<'_>], asked: &Asked, ended: bool) -> Completion {
    let mut reader = Reader::new(asked);
    for event in events {
        reader.take_event(event);
    }
    if ended {
        reader.take_end();
    }
    reader.finish()
}

/// Reads the body of an answer that was not asked for as a stream.
pub fn read_whole(body: &[u8], asked: &Asked) -> Completion {
    let mut reader = Reader::new(asked);
    reader.take_whole(body);
    reader.finish()
}

/// What one event means by itself, whatever came before it.
pub fn classify(event: &SseEvent<'_>, choices: u32) -> EventMeaning {
    read_event(event, choices).0
}

fn read_event(event: &SseEvent<'_>, choices: u32) -> (EventMeaning, Option<Said>) {
    let plain = |kind| (EventMeaning::of_kind(kind), None);
    if event.name == b"error" {
        return plain(EventKind::Error);
    }
    let data = event.data.as_ref();
    if data == b"[DONE]" {
        return plain(EventKind::Done);
    }
    if event.name == b"ping" {
        return plain(EventKind::Ping);
    }
    if data.trim_ascii() == b"[DONE]" {
        return plain(EventKind::Malformed("blanks around [DONE]"));
    }
    let chunk = match parse(data) {
        Ok(chunk) => chunk,
        Err(why) => return plain(EventKind::Malformed(why)),
    };
    if is_error(&chunk) {
        return plain(EventKind::Error);
    }
    let usage = chunk.usage.map(|Object(usage)| usage);
    let mut listed = chunk.choices.unwrap_or_default().into_iter();
    let (first, second) = (listed.next(), listed.next());
    let Some(Object(choice)) = first else {
        let mut meaning = EventMeaning::of_kind(EventKind::NoChoice);
        meaning.usage = usage;
        return (meaning, None);
    };
    if second.is_some() {
        return plain(EventKind::Malformed("more than one choice"));
    }
    // What a choice without an index says is shown as the first one's; the answer is invalid.
    let index = choice.index.unwrap_or(0);
    if index >= choices {
        return plain(EventKind::Malformed(
            "a choice whose index was not asked for",
        ));
    }
    let said = Said::of(choice);
    let is_error = matches!(&said.finish, Some(Finish::Unsupported(reason)) if reason == "error");
    let meaning = EventMeaning {
        kind: if is_error {
            EventKind::Error
        } else {
            EventKind::Choice
        },
        choice: Some(index),
        token_bearing: said.has_output()
            || said.token_ids.as_ref().is_some_and(|ids| !ids.is_empty()),
        has_output: said.has_output(),
        token_ids: said.token_ids.as_ref().map(|ids| ids.len() as u64),
        finish: said.finish.clone(),
        usage,
    };
    (meaning, Some(said))
}

fn parse(data: &[u8]) -> Result<Chunk, &'static str> {
    let text = match std::str::from_utf8(data) {
        Ok(text) => Cow::Borrowed(text),
        // By the WHATWG rules a stream is decoded with replacement before anything reads it.
        Err(_) => String::from_utf8_lossy(data),
    };
    match serde_json::from_str::<Object<Chunk>>(&text) {
        Ok(Object(chunk)) => Ok(chunk),
        Err(error) if error.is_data() => Err("a field of the wrong type"),
        Err(_) => Err("no JSON"),
    }
}

/// An error member, or the object that servers of the first hour sent as a whole.
fn is_error(chunk: &Chunk) -> bool {
    chunk.error || chunk.object.as_deref() == Some("error")
}

/// A choice's progress.
#[derive(Default)]
struct Progress {
    output: Output,
    usage: Option<u64>,
}

/// Where the newest usage came from.
#[derive(Clone, Copy)]
enum UsageSource {
    Nowhere,
    /// An event without a choice: it speaks for the whole answer.
    Answer(Option<u64>),
    /// Events with a choice: each speaks for its own.
    Choices,
}

struct Reader<'a> {
    asked: &'a Asked,
    events: Vec<EventMeaning>,
    done_event: Option<usize>,
    choices: Vec<Progress>,
    usage: UsageSource,
    saw_ids: bool,
    lacks_ids: bool,
    flaw: Option<Flaw>,
}

/// More choices than any request has prompts: a bound before anything is reserved.
const MAX_CHOICES: u32 = 1 << 16;

impl<'a> Reader<'a> {
    fn new(asked: &'a Asked) -> Reader<'a> {
        let count = asked.choices.min(MAX_CHOICES);
        Reader {
            asked,
            events: Vec::new(),
            done_event: None,
            choices: (0..count).map(|_| Progress::default()).collect(),
            usage: UsageSource::Nowhere,
            saw_ids: false,
            lacks_ids: false,
            flaw: None,
        }
    }

    fn take_event(&mut self, event: &SseEvent<'_>) {
        let number = self.events.len();
        if self.done_event.is_some() {
            self.note(Invalid::ExtraAfterDone, number, "an event after [DONE]");
            self.events
                .push(EventMeaning::of_kind(EventKind::AfterDone));
            return;
        }
        let (meaning, said) = read_event(event, self.choices.len() as u32);
        match meaning.kind {
            EventKind::Done => self.done_event = Some(number),
            EventKind::Error => self.note(Invalid::ErrorEvent, number, "the server's error"),
            EventKind::Malformed(why) => self.note(Invalid::MalformedEvent, number, why),
            EventKind::Choice | EventKind::NoChoice | EventKind::Ping | EventKind::AfterDone => {}
        }
        if let (Some(index), Some(said)) = (meaning.choice, said) {
            self.take_said(index, said, number);
        }
        self.take_usage(meaning.choice, meaning.usage);
        self.events.push(meaning);
    }

    fn take_said(&mut self, index: u32, said: Said, number: usize) {
        if said.lacks_index {
            let why = "a choice without an index";
            self.note(Invalid::MalformedEvent, number, why);
        }
        let is_bare = said.has_output() && said.token_ids.is_none();
        self.lacks_ids |= is_bare;
        self.saw_ids |= said.token_ids.is_some();
        let Some(progress) = self.choices.get_mut(index as usize) else {
            return;
        };
        let output = &mut progress.output;
        if output.finish.is_some() {
            self.note(Invalid::BadFinish, number, "a choice goes on after its end");
            return;
        }
        output.content += &said.content;
        output.reasoning += &said.reasoning;
        output.tool_arguments += &said.tool_arguments;
        output.token_ids.extend(said.token_ids.unwrap_or_default());
        let is_unsupported = matches!(said.finish, Some(Finish::Unsupported(_)));
        output.finish = said.finish;
        if is_unsupported {
            self.note(
                Invalid::BadFinish,
                number,
                "a finish reason that is not supported",
            );
        }
    }

    fn take_usage(&mut self, choice: Option<u32>, usage: Option<Usage>) {
        let Some(usage) = usage else {
            return;
        };
        let tokens = usage.completion_tokens;
        match choice.and_then(|index| self.choices.get_mut(index as usize)) {
            None => self.usage = UsageSource::Answer(tokens),
            Some(progress) => {
                progress.usage = tokens;
                self.usage = UsageSource::Choices;
            }
        }
    }

    fn take_end(&mut self) {
        if self.asked.done_due && self.done_event.is_none() {
            self.note_end(Invalid::MissingDone, "no [DONE]");
        }
        self.take_finishes();
    }

    fn take_finishes(&mut self) {
        if self
            .choices
            .iter()
            .any(|progress| progress.output.finish.is_none())
        {
            self.note_end(Invalid::BadFinish, "a choice without a finish reason");
        }
        let due = self
            .asked
            .forced_tokens
            .map(|each| each.saturating_mul(self.choices.len() as u64));
        let found = self.usage_tokens().or_else(|| self.id_tokens());
        match (due, found) {
            (None, _) => {}
            (Some(due), Some(found)) if due == found => {}
            (Some(_), Some(_)) => {
                self.note_end(Invalid::WrongLength, "not the number of tokens forced");
            }
            (Some(_), None) => self.note_end(
                Invalid::WrongLength,
                "neither usage nor token ids show the number of tokens forced",
            ),
        }
    }

    fn take_whole(&mut self, body: &[u8]) {
        let chunk = match parse(body) {
            Ok(chunk) => chunk,
            Err(why) => return self.note_end(Invalid::MalformedEvent, why),
        };
        if is_error(&chunk) {
            return self.note_end(Invalid::ErrorEvent, "the server's error");
        }
        for Object(choice) in chunk.choices.unwrap_or_default() {
            let index = choice.index.unwrap_or(0);
            if index as usize >= self.choices.len() {
                self.note_end(
                    Invalid::MalformedEvent,
                    "a choice whose index was not asked for",
                );
                continue;
            }
            self.take_said(index, Said::of(choice), 0);
        }
        self.take_usage(None, chunk.usage.map(|Object(usage)| usage));
        self.take_finishes();
        // An answer that is no stream has no events to point at.
        self.flaw = self.flaw.map(|flaw| Flaw {
            event: None,
            ..flaw
        });
    }

    fn usage_tokens(&self) -> Option<u64> {
        match self.usage {
            UsageSource::Nowhere => None,
            UsageSource::Answer(tokens) => tokens,
            UsageSource::Choices => self
                .choices
                .iter()
                .map(|progress| progress.usage)
                .try_fold(0u64, |sum, tokens| sum.checked_add(tokens?)),
        }
    }

    fn id_tokens(&self) -> Option<u64> {
        let count = |progress: &Progress| progress.output.token_ids.len() as u64;
        (self.saw_ids && !self.lacks_ids).then(|| self.choices.iter().map(count).sum())
    }

    fn note(&mut self, kind: Invalid, event: usize, why: &'static str) {
        let event = Some(event);
        self.flaw.get_or_insert(Flaw { kind, event, why });
    }

    fn note_end(&mut self, kind: Invalid, why: &'static str) {
        let event = None;
        self.flaw.get_or_insert(Flaw { kind, event, why });
    }

    fn finish(self) -> Completion {
        Completion {
            usage_tokens: self.usage_tokens(),
            id_tokens: self.id_tokens(),
            events: self.events,
            done_event: self.done_event,
            outputs: self
                .choices
                .into_iter()
                .map(|progress| progress.output)
                .collect(),
            flaw: self.flaw,
        }
    }
}
