//! Events at rest, decoded into fields.

use std::borrow::Cow;

use super::{BOM, Line};

/// What [`decode`] found in a stream, or in the bytes of one event.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Decoded<'s> {
    /// The events, in order.
    pub events: Vec<Message<'s>>,
    /// The last valid `retry` field, in milliseconds.
    pub retry_ms: Option<u64>,
    /// Comment lines.
    pub comments: usize,
    /// The stream ends within an event, as [`super::Scanner::pending`] says.
    pub pending: bool,
}

/// One event. Values are bytes as they came: the algorithm puts U+FFFD in place of what is not
/// UTF-8, which [`Message::is_utf8`] tells instead.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message<'s> {
    /// The event's name; `message` where the stream names none.
    pub event: &'s [u8],
    /// The `data` values, joined by LF.
    pub data: Cow<'s, [u8]>,
    /// The last `id` up to here; empty if there was none.
    pub last_event_id: &'s [u8],
}

impl Message<'_> {
    /// Whether name, data and id are all UTF-8.
    pub fn is_utf8(&self) -> bool {
        [self.event, &self.data, self.last_event_id]
            .into_iter()
            .all(|bytes| std::str::from_utf8(bytes).is_ok())
    }
}

/// Decodes a whole stream, or one finished event's bytes.
///
/// A byte order mark is removed from the very front alone, so give the bytes of a later event
/// without what stands before it. Allocates; never called while a cell is measured.
pub fn decode(stream: &[u8]) -> Decoded<'_> {
    let mut decoder = Decoder::default();
    let mut rest = stream.strip_prefix(BOM).unwrap_or(stream);
    while let Some(end) = memchr::memchr2(b'\n', b'\r', rest) {
        let (line, after) = (&rest[..end], &rest[end..]);
        rest = after.strip_prefix(b"\r\n").unwrap_or(&after[1..]);
        decoder.take(Line::of(line));
    }
    decoder.finish(rest)
}

#[derive(Default)]
struct Decoder<'s> {
    decoded: Decoded<'s>,
    event: &'s [u8],
    data: Option<Cow<'s, [u8]>>,
    last_event_id: &'s [u8],
}

impl<'s> Decoder<'s> {
    fn take(&mut self, line: Line<'s>) {
        match line {
            Line::Blank => self.dispatch(),
            Line::Comment => self.decoded.comments += 1,
            Line::Field { name, value } => match name {
                b"event" => self.event = value,
                b"data" => self.append(value),
                b"id" if !value.contains(&0) => self.last_event_id = value,
                b"retry" => self.decoded.retry_ms = retry_ms(value).or(self.decoded.retry_ms),
                _ => {}
            },
        }
    }

    fn append(&mut self, value: &'s [u8]) {
        match &mut self.data {
            None => self.data = Some(Cow::Borrowed(value)),
            Some(data) => {
                let data = data.to_mut();
                data.push(b'\n');
                data.extend_from_slice(value);
            }
        }
    }

    fn dispatch(&mut self) {
        let event = std::mem::take(&mut self.event);
        let Some(data) = self.data.take() else {
            return;
        };
        self.decoded.events.push(Message {
            event: if event.is_empty() { b"message" } else { event },
            data,
            last_event_id: self.last_event_id,
        });
    }

    fn finish(mut self, unfinished: &[u8]) -> Decoded<'s> {
        let in_field = unfinished.first().is_some_and(|&byte| byte != b':');
        self.decoded.pending = in_field || self.data.is_some();
        self.decoded
    }
}

/// Digits alone, as the algorithm asks; a number beyond 64 bits is no waiting time and is ignored.
fn retry_ms(value: &[u8]) -> Option<u64> {
    if value.is_empty() || !value.iter().all(u8::is_ascii_digit) {
        return None;
    }
    std::str::from_utf8(value).ok()?.parse().ok()
}
