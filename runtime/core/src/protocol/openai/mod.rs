//! What the events of an OpenAI-compatible stream say: pure, and never run while a cell is measured.
//!
//! The runtime uses it where an answer is looked at as it comes and no figure depends on it
//! (`bench`'s live line, `record: events`). Figures and verdicts are the reader's, which has its
//! own classifier, written apart.
//!
//! Definitions (`docs/protocol.md`):
//!
//! - *token-bearing*: a choice with non-empty content, reasoning, text, tool-function name or
//!   arguments, or with a non-empty `token_ids`. Role-only and empty chunks bear none.
//! - *output*: the same without `token_ids`.
//! - A stream is *valid* when every event is well-formed, each non-empty `choices` has exactly one
//!   entry whose index is due, every due index finished once with a supported reason, nothing but
//!   usage came after that, and exactly one `[DONE]` came, as the last event.

mod chunk;

pub use chunk::{Choice, Chunk, Malformed};

/// What one event is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Meaning {
    /// `[DONE]`, exactly.
    Done,
    /// An event named `ping`, whatever its data: a sign of life.
    Ping,
    /// A JSON object.
    Chunk(Chunk),
}

/// Classifies one event by its name and data.
pub fn classify(event: &[u8], data: &[u8]) -> Result<Meaning, Malformed> {
    if event == b"error" {
        // Whatever it carries, its name says what it is.
        let mut chunk = Chunk::parse(data).unwrap_or_else(|_| Chunk::bare_error());
        chunk.error = true;
        return Ok(Meaning::Chunk(chunk));
    }
    if data == b"[DONE]" {
        return Ok(Meaning::Done);
    }
    if event == b"ping" {
        return Ok(Meaning::Ping);
    }
    Ok(Meaning::Chunk(Chunk::parse(data)?))
}

/// Why a stream is no valid completion. The first in this order that applies is the verdict.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, thiserror::Error)]
pub enum StreamFault {
    /// An error object, an event named `error`, or the finish reason `error`.
    #[error("the server reported an error in the stream")]
    ErrorEvent,
    /// An event that is no JSON object of the due shape.
    #[error("an event is malformed")]
    MalformedEvent,
    /// An unexpected choice, or something after the finish or after `[DONE]`.
    #[error("the events break the protocol's order")]
    Protocol,
    /// A finish reason outside the supported set.
    #[error("the finish reason is not supported")]
    BadFinish,
    /// No finish reason, or no `[DONE]`.
    #[error("the stream is incomplete")]
    Incomplete,
}

/// What a whole stream came to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// Events, `[DONE]` and whatever follows it included.
    pub events: u64,
    /// Token-bearing events.
    pub token_events: u64,
    /// Chunks without any choice, error objects apart.
    pub empty_choice_events: u64,
    /// All content and text, in order.
    pub content: String,
    /// All reasoning, in order.
    pub reasoning: String,
    /// All tool-call arguments, in order.
    pub tool_args: String,
    /// Whether `[DONE]` came.
    pub done: bool,
    /// The last finish reason.
    pub finish_reason: Option<String>,
    /// `completion_tokens` of the last usage.
    pub completion_tokens: Option<u64>,
    /// Why the stream is no valid completion; `None` if it is one.
    pub fault: Option<StreamFault>,
}

/// Folds the events of one stream, in order, into a [`Summary`].
#[derive(Clone, Debug)]
pub struct StreamFold {
    summary: Summary,
    finished: Vec<bool>,
    done_due: bool,
}

impl StreamFold {
    /// A fold over a stream that answers `prompts` prompts (or asks for so many choices of one),
    /// by a server that ends its streams with `[DONE]` or, if not `done_due`, without.
    pub fn new(prompts: usize, done_due: bool) -> Self {
        StreamFold {
            summary: Summary::default(),
            finished: vec![false; prompts],
            done_due,
        }
    }

    /// Takes the next event.
    pub fn take(&mut self, event: &[u8], data: &[u8]) {
        self.summary.events += 1;
        if self.summary.done {
            return self.fault(StreamFault::Protocol);
        }
        match classify(event, data) {
            Ok(Meaning::Done) => self.summary.done = true,
            Ok(Meaning::Ping) => {}
            Ok(Meaning::Chunk(chunk)) => self.take_chunk(&chunk),
            Err(Malformed) => self.fault(StreamFault::MalformedEvent),
        }
    }

    /// The stream's body ended.
    pub fn finish(mut self) -> Summary {
        let finished = self.finished.iter().all(|&finished| finished);
        if !finished || (self.done_due && !self.summary.done) {
            self.fault(StreamFault::Incomplete);
        }
        self.summary
    }

    fn take_chunk(&mut self, chunk: &Chunk) {
        if chunk.error {
            self.fault(StreamFault::ErrorEvent);
        }
        if let Some(tokens) = chunk.completion_tokens {
            self.summary.completion_tokens = Some(tokens);
        }
        if chunk.choices.len() > 1 {
            self.fault(StreamFault::Protocol);
        }
        self.summary.empty_choice_events += u64::from(chunk.is_empty());
        let mut bears = false;
        for choice in &chunk.choices {
            if choice.lacks_index {
                self.fault(StreamFault::MalformedEvent);
            }
            match usize::try_from(choice.index)
                .ok()
                .and_then(|index| self.finished.get(index).copied().map(|f| (index, f)))
            {
                Some((index, false)) => {
                    bears |= choice.bears_token();
                    self.take_choice(index, choice);
                }
                _ => self.fault(StreamFault::Protocol),
            }
        }
        self.summary.token_events += u64::from(bears);
    }

    fn take_choice(&mut self, index: usize, choice: &Choice) {
        self.summary.content.push_str(&choice.content);
        self.summary.reasoning.push_str(&choice.reasoning);
        self.summary.tool_args.push_str(&choice.tool_args);
        let Some(reason) = &choice.finish_reason else {
            return;
        };
        self.finished[index] = true;
        self.summary.finish_reason = Some(reason.clone());
        match reason.as_str() {
            "stop" | "length" | "tool_calls" | "function_call" | "content_filter" => {}
            "error" => self.fault(StreamFault::ErrorEvent),
            _ => self.fault(StreamFault::BadFinish),
        }
    }

    fn fault(&mut self, fault: StreamFault) {
        let worst = self.summary.fault.map_or(fault, |before| before.min(fault));
        self.summary.fault = Some(worst);
    }
}
