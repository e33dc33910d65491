//! The runtime's parsers against the reader's, which share no code with them.
//!
//! What an OpenAI stream says is compared where it is valid. Errors are compared by group: the two parsers look at the same bytes in another order, so within
//! a group either may name another byte first.

use assize_core::protocol::http1::{ErrorGroup, Framing, Http1Error, Limits, ResponseParser};
use assize_core::protocol::openai::StreamFold;
use assize_core::protocol::sse::{Message, decode};
use assize_reader::replay::http::{self, Ending, FaultKind, read_response};
use assize_reader::replay::openai::{Asked, Finish, read_stream};
use assize_reader::replay::sse as reader_sse;

use crate::http1::{Outcome, parse};
use crate::reads::Input;
use crate::sse::scan;

/// Response, events and their places are the same by both.
pub fn check(data: &[u8]) {
    let Some(input) = Input::of(data) else { return };
    compare_responses(&input);
    compare_streams(input.stream);
}

fn compare_responses(input: &Input<'_>) {
    // The reader holds the plan's limit on bodies against the whole answer, not while it parses.
    let mut parser = ResponseParser::new(Limits {
        body_bytes: u64::MAX,
        ..Limits::default()
    });
    let ours = parse(&mut parser, &input.bytewise(), input.eof);
    let theirs = read_response(input.stream, input.eof, &http::Limits::default());
    let body = theirs.body.bytes(input.stream);
    match (ours.error, theirs.ending) {
        (None, Ending::Complete { end }) => {
            compare_complete(&ours, &theirs, end, input);
            assert_eq!(ours.body, *body);
        }
        (None, Ending::Unfinished(_)) => {
            assert_eq!(ours.end, None);
            assert_eq!(ours.body, *body);
        }
        (Some(error), Ending::Failed(fault)) => assert!(
            alike(error, fault.kind),
            "{error:?} here, {:?} by the reader",
            fault.kind
        ),
        (error, ending) => panic!("{error:?} here, {ending:?} by the reader"),
    }
    assert_eq!(ours.interim.len(), theirs.interim.len());
    assert_eq!(ours.head.map(|head| head.status), theirs.status());
    compare_streams(&body);
}

fn compare_complete(ours: &Outcome, theirs: &http::Response, end: usize, input: &Input<'_>) {
    let surplus = input.stream.len() - end;
    assert_eq!(ours.surplus, surplus);
    let (Some(here), Some(there)) = (ours.head, &theirs.head) else {
        panic!("a complete message has a head");
    };
    assert_eq!(ours.reads[0], Some(there.end - 1));
    let framing = match there.framing {
        http::Framing::None => Framing::Empty,
        http::Framing::Length(length) => Framing::Length(length),
        http::Framing::Chunked => Framing::Chunked,
        http::Framing::Close => Framing::Close,
    };
    assert_eq!(here.framing, framing);
    let reusable = ours.end == Some(true) && surplus == 0 && !input.eof;
    assert_eq!(reusable, theirs.keep_alive);
}

fn alike(error: Http1Error, kind: FaultKind) -> bool {
    let group = match kind {
        FaultKind::EofBeforeResponse => ErrorGroup::EofBeforeResponse,
        FaultKind::EofInHead | FaultKind::IncompleteBody => ErrorGroup::Truncated,
        FaultKind::BadStatusLine | FaultKind::BadHeader | FaultKind::UnexpectedUpgrade => {
            ErrorGroup::MalformedHead
        }
        FaultKind::HeaderLimit | FaultKind::FramingLimit => ErrorGroup::TooLarge,
        FaultKind::BadContentLength
        | FaultKind::BadTransferEncoding
        | FaultKind::AmbiguousFraming
        | FaultKind::BadChunkSize
        | FaultKind::BadChunk
        | FaultKind::BadTrailer => ErrorGroup::MalformedFraming,
    };
    error.group() == group
}

fn compare_streams(stream: &[u8]) {
    let theirs = reader_sse::decode(stream);
    let reads: Vec<&[u8]> = stream.chunks(1).collect();
    let scanned = scan(&reads);
    let places: Vec<(bool, usize)> = theirs
        .events
        .iter()
        .map(|event| (*event.data == *b"[DONE]", event.completed_at))
        .collect();
    assert_eq!(scanned.events, places);
    assert_eq!(scanned.pending, theirs.pending_at_eof);
    let ours = decode(stream);
    assert_eq!(ours.comments as u64, theirs.comments);
    assert_eq!(ours.retry_ms, theirs.retry_ms);
    for (here, there) in ours.events.iter().zip(&theirs.events) {
        let name: &[u8] = if there.name.is_empty() {
            b"message"
        } else {
            there.name
        };
        assert_eq!(here.event, name);
        assert_eq!(here.data, there.data);
        assert_eq!(here.last_event_id, there.last_event_id);
    }
    compare_meanings(&ours.events, &theirs.events);
}

/// A stream is a valid completion by both or by neither, and a valid one says the same. Why a stream
/// is none is the reader's to say.
fn compare_meanings(ours: &[Message<'_>], theirs: &[reader_sse::SseEvent<'_>]) {
    let mut fold = StreamFold::new(1, true);
    for event in ours {
        fold.take(event.event, &event.data);
    }
    let here = fold.finish();
    let there = read_stream(theirs, &Asked::default(), true);
    assert_eq!(
        here.fault.is_none(),
        there.flaw.is_none(),
        "{:?} here, {:?} by the reader",
        here.fault,
        there.flaw
    );
    if there.flaw.is_some() {
        return;
    }
    let output = &there.outputs[0];
    assert_eq!(here.content, output.content);
    assert_eq!(here.reasoning, output.reasoning);
    assert_eq!(here.tool_args, output.tool_arguments);
    assert_eq!(
        here.finish_reason.as_deref(),
        output.finish.as_ref().map(Finish::name)
    );
    let bearing = there.events.iter().filter(|event| event.token_bearing);
    assert_eq!(here.token_events, bearing.count() as u64);
}
