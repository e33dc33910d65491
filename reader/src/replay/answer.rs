//! The bytes received for one request, read through all three layers, each event with its place.

use super::http::{self, Limits, Response};
use super::openai::{self, Asked, Completion, Flaw, Invalid};
use super::sse;

/// One answer, read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// The HTTP layer.
    pub response: Response,
    /// The place in the received stream of the byte that completed each event.
    pub event_places: Vec<usize>,
    /// Comment lines between the events.
    pub comments: u64,
    /// Whether the body ended inside an event.
    pub truncated_event: bool,
    /// What the events, or the whole body, mean.
    pub completion: Completion,
    /// Whether a coding other than identity was applied, which nobody asked for.
    pub encoded: bool,
}

/// Reads what was received for one request.
///
/// An encoded answer, or one whose status or type is wrong, is framed and not read further.
pub fn read_answer(stream: &[u8], eof: bool, asked: &Asked, limits: &Limits) -> Answer {
    let response = http::read_response(stream, eof, limits);
    let encoded = is_encoded(&response, stream);
    let flaw = status_flaw(&response, stream, asked);
    if encoded || flaw.is_some() || response.head.is_none() {
        let mut completion = openai::read_stream(&[], asked, false);
        completion.flaw = flaw;
        return Answer::unread(response, completion, encoded);
    }
    let ended = response.is_complete();
    let body = response.body.bytes(stream);
    if !asked.stream {
        let completion = if ended {
            openai::read_whole(&body, asked)
        } else {
            openai::read_stream(&[], asked, false)
        };
        return Answer::unread(response, completion, encoded);
    }
    let decoded = sse::decode(&body);
    let place = |event: &sse::SseEvent<'_>| response.body.place(event.completed_at);
    Answer {
        event_places: decoded.events.iter().filter_map(place).collect(),
        comments: decoded.comments,
        truncated_event: ended && decoded.pending_at_eof,
        completion: openai::read_stream(&decoded.events, asked, ended),
        encoded,
        response,
    }
}

impl Answer {
    fn unread(response: Response, completion: Completion, encoded: bool) -> Answer {
        Answer {
            response,
            event_places: Vec::new(),
            comments: 0,
            truncated_event: false,
            completion,
            encoded,
        }
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
