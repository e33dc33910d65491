//! Chunked bodies (RFC 9112, section 7.1).

use super::head::Section;
use super::line::{Line, is_text, line_at};
use super::{Body, FaultKind, Field, Limits, Part, Stop};

/// Reads chunks and trailers from `start` on; gives the place after the message.
pub(super) fn read_chunks(
    stream: &[u8],
    start: usize,
    limits: &Limits,
    body: &mut Body,
    trailers: &mut Vec<Field>,
) -> Result<usize, Stop> {
    let mut at = start;
    loop {
        let (size, data) = read_size(stream, at, limits)?;
        if size == 0 {
            let section = Section {
                stream,
                start: data,
                limits,
                fault: FaultKind::BadTrailer,
                limit_fault: FaultKind::FramingLimit,
                part: Part::Body,
            };
            let (fields, end) = section.read_fields(data)?;
            *trailers = fields;
            return Ok(end);
        }
        let available = stream.len() - data;
        let whole = usize::try_from(size).ok().filter(|size| *size <= available);
        body.push(data..data + whole.unwrap_or(available));
        let Some(size) = whole else {
            return Err(Stop::Short(Part::Body));
        };
        at = read_chunk_end(stream, data + size)?;
    }
}

/// The size on the line at `at`, and the place of the data after it.
///
/// One to sixteen hexadecimal digits; then the line's end, or blanks, a semicolon and any text:
/// extensions are bounded and skipped, their inner grammar decides nothing.
fn read_size(stream: &[u8], at: usize, limits: &Limits) -> Result<(u64, usize), Stop> {
    let refused = |at: usize| Stop::fault(FaultKind::BadChunkSize, at);
    let line = line_at(stream, at, limits.chunk_line_bytes);
    let end = match line {
        Some(Line::Whole { end, .. } | Line::Short { end }) => end,
        Some(Line::Bare { at }) => at,
        None => stream.len().min(at + limits.chunk_line_bytes),
    };
    let text = &stream[at..end];
    let digits = text
        .iter()
        .take_while(|byte| byte.is_ascii_hexdigit())
        .count();
    // A CR, with its LF or not yet, where the first digit is due.
    let is_empty_line = text.is_empty() && end < stream.len();
    if digits > 16 || (digits == 0 && !text.is_empty()) || is_empty_line {
        return Err(refused(at));
    }
    let rest = &text[digits..];
    let blanks = rest
        .iter()
        .take_while(|byte| matches!(byte, b' ' | b'\t'))
        .count();
    let is_short = matches!(line, Some(Line::Short { .. }));
    match rest.get(blanks) {
        Some(b';') => {}
        None if rest.is_empty() || is_short => {}
        Some(_) | None => return Err(refused(at + digits)),
    }
    if let Some(place) = rest.iter().position(|byte| !is_text(*byte)) {
        return Err(Stop::fault(FaultKind::BadChunk, at + digits + place));
    }
    match line {
        Some(Line::Whole { next, .. }) if digits > 0 => {
            let size = text[..digits]
                .iter()
                .fold(0u64, |size, digit| (size << 4) | hex_value(*digit));
            Ok((size, next))
        }
        Some(Line::Short { .. }) => Err(Stop::Short(Part::Body)),
        // The size is there; what is wrong is the line's end.
        Some(Line::Bare { at }) if digits > 0 => Err(Stop::fault(FaultKind::BadChunk, at)),
        Some(Line::Bare { .. } | Line::Whole { .. }) => Err(refused(at)),
        None => Err(Stop::fault(FaultKind::FramingLimit, end)),
    }
}

fn read_chunk_end(stream: &[u8], at: usize) -> Result<usize, Stop> {
    for (offset, wanted) in b"\r\n".iter().enumerate() {
        match stream.get(at + offset) {
            None => return Err(Stop::Short(Part::Body)),
            Some(byte) if byte == wanted => {}
            Some(_) => return Err(Stop::fault(FaultKind::BadChunk, at + offset)),
        }
    }
    Ok(at + 2)
}

fn hex_value(digit: u8) -> u64 {
    u64::from(match digit {
        b'0'..=b'9' => digit - b'0',
        b'a'..=b'f' => digit - b'a' + 10,
        _ => digit - b'A' + 10,
    })
}
