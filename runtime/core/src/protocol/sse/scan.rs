//! The incremental scanner.

use super::BOM;

/// Finds the ends of events in a stream of reads, in constant memory.
///
/// Bytes are looked at once, by `memchr`. Where a line spans reads, its first few bytes are kept:
/// as many as tell `data: [DONE]` from everything else.
#[derive(Clone, Debug)]
pub struct Scanner {
    /// The next line is the stream's first and may begin with a byte order mark.
    first_line: bool,
    /// The last byte taken was a CR that ended a line; an LF that follows belongs to it.
    after_cr: bool,
    data: Data,
    /// The unfinished line of earlier reads.
    line: LineStart,
}

/// One event of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SseEvent {
    /// Its data is exactly `[DONE]`.
    pub done: bool,
}

/// What the `data` lines of the current block make so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Data {
    Absent,
    Done,
    Other,
}

/// The longest line that can matter, `data: [DONE]` after a byte order mark, and one byte more.
const LINE_START_BYTES: usize = BOM.len() + DONE_LINE.len() + 1;
const DONE_LINE: &[u8] = b"data: [DONE]";

/// The first bytes of a line.
#[derive(Clone, Copy, Debug)]
struct LineStart {
    bytes: [u8; LINE_START_BYTES],
    len: usize,
}

impl Default for Scanner {
    fn default() -> Self {
        Scanner::new()
    }
}

impl Scanner {
    /// A scanner before the first byte of a stream.
    pub fn new() -> Self {
        Scanner {
            first_line: true,
            after_cr: false,
            data: Data::Absent,
            line: LineStart {
                bytes: [0; LINE_START_BYTES],
                len: 0,
            },
        }
    }

    /// Starts over, for another stream.
    pub fn reset(&mut self) {
        *self = Scanner::new();
    }

    /// Takes bytes from the front of `input` up to the end of the next event; `None` when all of
    /// `input` was taken and no event ended in it.
    pub fn poll(&mut self, input: &mut &[u8]) -> Option<SseEvent> {
        if self.after_cr && !input.is_empty() {
            self.after_cr = false;
            *input = input.strip_prefix(b"\n").unwrap_or(input);
        }
        while let Some(end) = line_end(input) {
            let (line, rest) = (&input[..end], &input[end + 1..]);
            *input = if input[end] == b'\n' {
                rest
            } else if let Some(after_lf) = rest.strip_prefix(b"\n") {
                after_lf
            } else {
                self.after_cr = rest.is_empty();
                rest
            };
            if let Some(event) = self.end_line(line) {
                return Some(event);
            }
        }
        self.line.extend(input);
        *input = &[];
        None
    }

    /// Whether the bytes so far end within an event: data without the blank line that would
    /// dispatch it, or an unfinished line that is no comment. The algorithm discards such a rest;
    /// Assize counts it.
    pub fn pending(&self) -> bool {
        let mut line = &self.line.bytes[..self.line.len];
        if self.first_line {
            line = line.strip_prefix(BOM).unwrap_or(line);
        }
        self.data != Data::Absent || line.first().is_some_and(|&byte| byte != b':')
    }

    fn end_line(&mut self, tail: &[u8]) -> Option<SseEvent> {
        let kept;
        let mut line = tail;
        if self.line.len > 0 {
            self.line.extend(tail);
            kept = self.line;
            line = &kept.bytes[..kept.len];
            self.line.len = 0;
        }
        if self.first_line {
            self.first_line = false;
            line = line.strip_prefix(BOM).unwrap_or(line);
        }
        if line.is_empty() {
            return self.dispatch();
        }
        if let Some(value) = data_value(line) {
            self.data = match (self.data, value) {
                (Data::Absent, b"[DONE]") => Data::Done,
                _ => Data::Other,
            };
        }
        None
    }

    fn dispatch(&mut self) -> Option<SseEvent> {
        let data = std::mem::replace(&mut self.data, Data::Absent);
        (data != Data::Absent).then_some(SseEvent {
            done: data == Data::Done,
        })
    }
}

/// Where the first line of `bytes` ends. A blank line, which follows each event's last, and an
/// input that is used up are told without a search.
fn line_end(bytes: &[u8]) -> Option<usize> {
    match bytes {
        [] => None,
        [b'\n' | b'\r', ..] => Some(0),
        _ => memchr::memchr2(b'\n', b'\r', bytes),
    }
}

/// The value of a `data` line, one blank after the colon removed; `None` for any other line.
fn data_value(line: &[u8]) -> Option<&[u8]> {
    match line.strip_prefix(b"data")? {
        [] => Some(b""),
        [b':', b' ', value @ ..] | [b':', value @ ..] => Some(value),
        _ => None,
    }
}

impl LineStart {
    /// Appends what of `bytes` still fits. A line that does not fit can be no `[DONE]` line.
    fn extend(&mut self, bytes: &[u8]) {
        let taken = bytes.len().min(LINE_START_BYTES - self.len);
        self.bytes[self.len..self.len + taken].copy_from_slice(&bytes[..taken]);
        self.len += taken;
    }
}
