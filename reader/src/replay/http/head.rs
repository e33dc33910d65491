//! The status line, the fields, and what they say about the body.

use std::ops::Range;

use super::line::{Line, is_text, line_at};
use super::{FaultKind, Field, Framing, Head, Limits, Part, Stop};

/// Reads the head that begins at `start`.
pub(super) fn read_head(stream: &[u8], start: usize, limits: &Limits) -> Result<Head, Stop> {
    let (minor, status, next) = read_status_line(stream, start, limits)?;
    let section = Section {
        stream,
        start,
        limits,
        fault: FaultKind::BadHeader,
        limit_fault: FaultKind::HeaderLimit,
        part: Part::Head,
    };
    let (fields, end) = section.read_fields(next)?;
    let framing = framing(stream, minor, status, &fields, start)?;
    Ok(Head {
        minor,
        status,
        fields,
        start,
        end,
        framing,
    })
}

/// The values of the fields called `name`, in any case.
pub(super) fn named<'a>(
    fields: impl Iterator<Item = &'a Field>,
    stream: &'a [u8],
    name: &'a str,
) -> impl Iterator<Item = &'a [u8]> {
    fields
        .filter(move |field| stream[field.name.clone()].eq_ignore_ascii_case(name.as_bytes()))
        .map(|field| &stream[field.value.clone()])
}

/// A run of fields up to a blank line: a head's, or a trailer section.
pub(super) struct Section<'a> {
    pub(super) stream: &'a [u8],
    /// Where the section's bytes begin to count.
    pub(super) start: usize,
    pub(super) limits: &'a Limits,
    pub(super) fault: FaultKind,
    pub(super) limit_fault: FaultKind,
    pub(super) part: Part,
}

impl Section<'_> {
    /// The fields from `at` on, and the place after the blank line.
    pub(super) fn read_fields(&self, mut at: usize) -> Result<(Vec<Field>, usize), Stop> {
        let mut fields = Vec::new();
        loop {
            let left = self.limits.head_bytes.saturating_sub(at - self.start);
            let Some(line) = line_at(self.stream, at, left) else {
                return Err(Stop::fault(self.limit_fault, at + left));
            };
            match line {
                Line::Bare { at } => return Err(Stop::fault(self.fault, at)),
                Line::Short { .. } => return Err(Stop::Short(self.part)),
                Line::Whole { end, next } if end == at => return Ok((fields, next)),
                Line::Whole { end, next } => {
                    if fields.len() == self.limits.fields {
                        return Err(Stop::fault(self.limit_fault, at));
                    }
                    fields.push(self.field(at..end)?);
                    at = next;
                }
            }
        }
    }

    fn field(&self, line: Range<usize>) -> Result<Field, Stop> {
        let refused = |offset: usize| Stop::fault(self.fault, line.start + offset);
        let text = &self.stream[line.clone()];
        let colon = text
            .iter()
            .position(|byte| !is_token(*byte))
            .filter(|place| *place > 0 && text[*place] == b':')
            .ok_or_else(|| refused(0))?;
        let value = &text[colon + 1..];
        if let Some(place) = value.iter().position(|byte| !is_text(*byte)) {
            return Err(refused(colon + 1 + place));
        }
        let blank = |byte: &u8| matches!(byte, b' ' | b'\t');
        let lead = value.iter().take_while(|byte| blank(byte)).count();
        let trail = value[lead..]
            .iter()
            .rev()
            .take_while(|byte| blank(byte))
            .count();
        Ok(Field {
            name: line.start..line.start + colon,
            value: line.start + colon + 1 + lead..line.end - trail,
        })
    }
}

/// RFC 9112, section 4: `HTTP/1.x SP 3DIGIT [SP reason]`; a beginning is judged as far as it goes.
fn read_status_line(
    stream: &[u8],
    start: usize,
    limits: &Limits,
) -> Result<(u8, u16, usize), Stop> {
    let refused = |at: usize| Stop::fault(FaultKind::BadStatusLine, at);
    let line = line_at(stream, start, limits.head_bytes);
    let (end, whole) = match line {
        Some(Line::Whole { end, next }) => (end, Some(next)),
        Some(Line::Short { end }) => (end, None),
        Some(Line::Bare { at }) => (at, None),
        None => (stream.len().min(start + limits.head_bytes), None),
    };
    let text = &stream[start..end];
    if let Some(place) = text
        .iter()
        .enumerate()
        .position(|(place, byte)| !fits_status_line(place, *byte))
    {
        return Err(refused(start + place));
    }
    match line {
        Some(Line::Bare { at }) => return Err(refused(at)),
        None => return Err(Stop::fault(FaultKind::HeaderLimit, end)),
        Some(Line::Whole { .. } | Line::Short { .. }) => {}
    }
    // A CR, with its LF or not yet, ends the line too early.
    if end < stream.len() && text.len() < STATUS_END {
        return Err(refused(end));
    }
    let Some(next) = whole else {
        return Err(Stop::Short(Part::Head));
    };
    let status = text[STATUS_START..STATUS_END]
        .iter()
        .fold(0u16, |value, digit| value * 10 + u16::from(digit - b'0'));
    Ok((text[7] - b'0', status, next))
}

const PREFIX: &[u8] = b"HTTP/1.";
const STATUS_START: usize = 9;
const STATUS_END: usize = 12;

fn fits_status_line(place: usize, byte: u8) -> bool {
    match place {
        0..7 => byte == PREFIX[place],
        7 => matches!(byte, b'0' | b'1'),
        8 | STATUS_END => byte == b' ',
        STATUS_START => matches!(byte, b'1'..=b'9'),
        10 | 11 => byte.is_ascii_digit(),
        _ => is_text(byte),
    }
}

/// RFC 9112, section 6.3, with its permissions declined: two framings, a repeated length or a
/// coding other than one `chunked` are refused, since no request of ours asks for them.
fn framing(
    stream: &[u8],
    minor: u8,
    status: u16,
    fields: &[Field],
    start: usize,
) -> Result<Framing, Stop> {
    if status < 200 || status == 204 || status == 304 {
        return Ok(Framing::None);
    }
    let mut lengths = named(fields.iter(), stream, "content-length");
    let mut codings = named(fields.iter(), stream, "transfer-encoding");
    let (length, coding) = (lengths.next(), codings.next());
    match (length, coding) {
        (Some(_), Some(_)) => Err(Stop::fault(FaultKind::AmbiguousFraming, start)),
        (None, None) => Ok(Framing::Close),
        (None, Some(coding)) => {
            let plain =
                minor == 1 && codings.next().is_none() && coding.eq_ignore_ascii_case(b"chunked");
            if plain {
                Ok(Framing::Chunked)
            } else {
                Err(Stop::fault(FaultKind::BadTransferEncoding, start))
            }
        }
        (Some(length), None) => {
            let value = decimal(length).filter(|_| lengths.next().is_none());
            value
                .map(Framing::Length)
                .ok_or_else(|| Stop::fault(FaultKind::BadContentLength, start))
        }
    }
}

fn decimal(text: &[u8]) -> Option<u64> {
    if text.is_empty() {
        return None;
    }
    text.iter().try_fold(0u64, |value, byte| {
        let digit = byte.is_ascii_digit().then(|| u64::from(byte - b'0'))?;
        value.checked_mul(10)?.checked_add(digit)
    })
}

/// RFC 9110, section 5.6.2.
fn is_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}
