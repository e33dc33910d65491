//! Lines that end in CRLF alone.

/// What lies at a place where a line is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Line {
    /// A whole line: its text ends at `end`, the next begins at `next`.
    Whole {
        /// The place of the CR.
        end: usize,
        /// The place after the LF.
        next: usize,
    },
    /// The bytes end before the line does; a CR at the very end belongs to the unfinished end.
    Short {
        /// The place after the text so far.
        end: usize,
    },
    /// A CR without LF, or an LF without CR.
    Bare {
        /// The place of the lonely byte.
        at: usize,
    },
}

/// The line at `start`, looking at no more than `limit` bytes; `None` where it is longer.
pub(super) fn line_at(stream: &[u8], start: usize, limit: usize) -> Option<Line> {
    let window_end = stream.len().min(start.saturating_add(limit));
    let text = &stream[start..window_end];
    let Some(found) = text.iter().position(|byte| matches!(byte, b'\r' | b'\n')) else {
        return (window_end == stream.len() && text.len() < limit)
            .then_some(Line::Short { end: window_end });
    };
    let end = start + found;
    if stream[end] == b'\n' {
        return Some(Line::Bare { at: end });
    }
    match stream.get(end + 1) {
        None => Some(Line::Short { end }),
        Some(b'\n') if end + 2 - start <= limit => Some(Line::Whole { end, next: end + 2 }),
        Some(b'\n') => None,
        Some(_) => Some(Line::Bare { at: end }),
    }
}

/// Whether the byte may stand in a field value, a reason or a chunk extension (RFC 9110,
/// section 5.5): a tab, a blank, visible ASCII, or a byte of 128 and above.
pub(super) fn is_text(byte: u8) -> bool {
    byte == b'\t' || (byte >= b' ' && byte != 0x7f)
}
