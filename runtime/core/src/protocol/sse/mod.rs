//! Server-sent events by the WHATWG algorithm (HTML, "Server-sent events", parsing an event stream).
//!
//! [`Scanner`] finds where events end while bytes pass; that is all a measured window needs.
//! [`decode`] reads the fields of events that are at rest.
//!
//! Decisions, each with its reason in `docs/protocol.md`:
//!
//! - An event ends with the byte that makes its blank line blank. A CR does, without waiting for
//!   the LF that may follow: the event's time is that of the read which brought the CR. The LF, in
//!   this read or the next, then belongs to that line end and makes no line of its own.
//! - Only a block with a `data` field is an event. Comments and other fields alone are not.
//! - The marker is the data `[DONE]`, exactly: one `data` line, at most one blank after the colon.
//! - Bytes stay bytes: nothing is decoded as UTF-8, so no character can be torn by a read.

mod decode;
mod scan;

pub use decode::{Decoded, Message, decode};
pub use scan::{Scanner, SseEvent};

/// The byte order mark that may stand once before a stream.
const BOM: &[u8] = b"\xEF\xBB\xBF";

/// One line, its end removed, as the algorithm splits it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Line<'l> {
    Blank,
    Comment,
    Field { name: &'l [u8], value: &'l [u8] },
}

impl<'l> Line<'l> {
    fn of(line: &'l [u8]) -> Line<'l> {
        let Some(colon) = memchr::memchr(b':', line) else {
            return match line {
                [] => Line::Blank,
                name => Line::Field { name, value: b"" },
            };
        };
        if colon == 0 {
            return Line::Comment;
        }
        let (name, value) = (&line[..colon], &line[colon + 1..]);
        Line::Field {
            name,
            value: value.strip_prefix(b" ").unwrap_or(value),
        }
    }
}
