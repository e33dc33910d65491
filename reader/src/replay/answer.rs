//! The bytes received for one request, read through all three layers, each event with its place.

use super::http::{self, Limits, Response};
use super::openai::{self, Asked, Completion, Flaw, Invalid};
use super::sse;

/// One answer, read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// The HTTP layer.
    pub response: Response,
    /// The place in the received stream of the byte that completed each event of an event stream,
    /// whatever its status and whatever it means.
    pub event_places: Vec<usize>,
    /// The numbers of the events whose data is exactly `[DONE]`.
    pub done_events: Vec<usize>,
    /// Comment lines between the events.
    pub comments: u64,
    /// Whether the body ended inside an event.
    pub truncated_event: bool,
    /// What the events, or the whole body, mean; without events where nothing was to be understood.
    pub completion: Completion,
    /// Whether a coding other than identity was applied, which nobody asked for.
    pub encoded: bool,
}

/// Reads what was received for one request.
///
/// An encoded answer, or one whose status or type is wrong, is framed and not understood.
pub fn read_answer(stream: &[u8], eof: bool, asked: &Asked, limits: &Limits) -> Answer {
    let response = http::read_response(stream, eof, limits);
    let encoded = is_encoded(&response, stream);
    let flaw = status_flaw(&response, stream, asked);
    let body = response.body.bytes(stream);
    let ended = response.is_complete();
    let decoded = if is_event_stream(&response, stream) {
        sse::decode(&body)
    } else {
        sse::SseStream::default()
    };
    let is_understood = !encoded && flaw.is_none() && response.head.is_some();
    let mut completion = match (is_understood, asked.stream) {
        (true, true) => openai::read_stream(&decoded.events, asked, ended),
        (true, false) if ended => openai::read_whole(&body, asked),
        _ => openai::read_stream(&[], asked, false),
    };
    completion.flaw = flaw.or(completion.flaw);
    let place = |event: &sse::SseEvent<'_>| response.body.place(event.completed_at);
    let is_done = |event: &sse::SseEvent<'_>| event.data.as_ref() == b"[DONE]";
    Answer {
        event_places: decoded.events.iter().filter_map(place).collect(),
        done_events: (0..decoded.events.len())
            .filter(|number| is_done(&decoded.events[*number]))
            .collect(),
        comments: decoded.comments,
        truncated_event: ended && decoded.pending_at_eof,
        completion,
        encoded,
        response,
    }
}

fn status_flaw(response: &Response, stream: &[u8], asked: &Asked) -> Option<Flaw> {
    let status = response.status()?;
    let flaw = |kind, why| {
        Some(Flaw {
            kind,
            event: None,
            why,
        })
    };
    if !(200..300).contains(&status) {
        return flaw(Invalid::HttpStatus, "the status is not 2xx");
    }
    if asked.stream && !is_event_stream(response, stream) {
        return flaw(
            Invalid::WrongContentType,
            "a stream was asked for and the answer is none",
        );
    }
    None
}

/// One or more equal media types; parameters decide nothing, UTF-8 is the only encoding there is.
fn is_event_stream(response: &Response, stream: &[u8]) -> bool {
    let mut types = response.values(stream, "content-type").peekable();
    types.peek().is_some()
        && types.all(|value| {
            let essence = value.split(|byte| *byte == b';').next().unwrap_or_default();
            essence
                .trim_ascii()
                .eq_ignore_ascii_case(b"text/event-stream")
        })
}

fn is_encoded(response: &Response, stream: &[u8]) -> bool {
    response
        .values(stream, "content-encoding")
        .flat_map(|value| value.split(|byte| *byte == b','))
        .map(<[u8]>::trim_ascii)
        .any(|coding| !coding.is_empty() && !coding.eq_ignore_ascii_case(b"identity"))
}
