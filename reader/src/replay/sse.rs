//! Server-sent events of a whole body, by the WHATWG rules (HTML, sections 9.2.5 and 9.2.6).

use std::borrow::Cow;
use std::ops::Range;

/// One dispatched event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SseEvent<'a> {
    /// The event's type; empty means `message`.
    pub name: &'a [u8],
    /// The data lines joined by LF; bytes as received, valid UTF-8 or not.
    pub data: Cow<'a, [u8]>,
    /// The last event id at the time of dispatch.
    pub last_event_id: &'a [u8],
    /// The place in the body of the first byte after the event before this one.
    pub start: usize,
    /// The place in the body of the byte that completed the event: the first byte of the blank
    /// line's end. A CR completes it, whether an LF follows or not.
    pub completed_at: usize,
}

/// A body's events and what else it said.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SseStream<'a> {
    /// The dispatched events in order.
    pub events: Vec<SseEvent<'a>>,
    /// Comment lines.
    pub comments: u64,
    /// The last valid `retry`, in milliseconds.
    pub retry_ms: Option<u64>,
    /// Whether the body ends inside an event, which is then not dispatched.
    pub pending_at_eof: bool,
}

/// Decodes a whole body.
pub fn decode(body: &[u8]) -> SseStream<'_> {
    let start = if body.starts_with(BOM) { BOM.len() } else { 0 };
    let mut decoder = Decoder {
        body,
        stream: SseStream::default(),
        name: &[],
        data: None,
        last_event_id: &[],
        block_start: 0,
    };
    let mut at = start;
    while let Some(line) = next_line(body, at) {
        decoder.take_line(&line);
        at = line.next;
    }
    let unfinished = &body[at..];
    let begins_field = !unfinished.is_empty() && unfinished[0] != b':';
    decoder.stream.pending_at_eof = decoder.data.is_some() || begins_field;
    decoder.stream
}

const BOM: &[u8] = b"\xef\xbb\xbf";

struct TextLine {
    text: Range<usize>,
    /// The place of the CR or LF that ended it.
    ended_at: usize,
    next: usize,
}

fn next_line(body: &[u8], at: usize) -> Option<TextLine> {
    let length = body[at..]
        .iter()
        .position(|byte| matches!(byte, b'\r' | b'\n'))?;
    let ended_at = at + length;
    let is_pair = body[ended_at] == b'\r' && body.get(ended_at + 1) == Some(&b'\n');
    Some(TextLine {
        text: at..ended_at,
        ended_at,
        next: ended_at + 1 + usize::from(is_pair),
    })
}

struct Decoder<'a> {
    body: &'a [u8],
    stream: SseStream<'a>,
    name: &'a [u8],
    data: Option<Cow<'a, [u8]>>,
    last_event_id: &'a [u8],
    block_start: usize,
}

impl<'a> Decoder<'a> {
    fn take_line(&mut self, line: &TextLine) {
        let text = &self.body[line.text.clone()];
        match text.first() {
            None => self.dispatch(line),
            Some(b':') => self.stream.comments += 1,
            Some(_) => self.take_field(text),
        }
    }

    fn take_field(&mut self, text: &'a [u8]) {
        let colon = text.iter().position(|byte| *byte == b':');
        let (field, value) = match colon {
            None => (text, &text[text.len()..]),
            Some(colon) => (&text[..colon], &text[colon + 1..]),
        };
        let value = value.strip_prefix(b" ").unwrap_or(value);
        match field {
            b"data" => self.take_data(value),
            b"event" => self.name = value,
            b"id" if !value.contains(&0) => self.last_event_id = value,
            b"retry" => self.take_retry(value),
            _ => {}
        }
    }

    fn take_data(&mut self, value: &'a [u8]) {
        match &mut self.data {
            None => self.data = Some(Cow::Borrowed(value)),
            Some(data) => {
                let joined = data.to_mut();
                joined.push(b'\n');
                joined.extend_from_slice(value);
            }
        }
    }

    fn take_retry(&mut self, value: &[u8]) {
        let is_number = !value.is_empty() && value.iter().all(u8::is_ascii_digit);
        let text = is_number.then(|| std::str::from_utf8(value).ok()).flatten();
        if let Some(value) = text.and_then(|text| text.parse().ok()) {
            self.stream.retry_ms = Some(value);
        }
    }

    /// A blank line: dispatches where there was a data field, and begins anew in any case.
    ///
    /// The specification appends an LF to the buffer for each data field, so that its buffer is
    /// empty only where there was none: an empty data field does dispatch.
    fn dispatch(&mut self, blank: &TextLine) {
        let name = std::mem::take(&mut self.name);
        let start = std::mem::replace(&mut self.block_start, blank.next);
        if let Some(data) = self.data.take() {
            self.stream.events.push(SseEvent {
                name,
                data,
                last_event_id: self.last_event_id,
                start,
                completed_at: blank.ended_at,
            });
        }
    }
}
