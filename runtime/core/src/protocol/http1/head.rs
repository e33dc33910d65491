//! Heads: where one ends, and what it says about the body and the connection.

use std::mem::MaybeUninit;

use super::Http1Error;
use super::fields::{FieldFault, FieldLines, is_text};

/// The most header fields that one head may have, whatever [`super::Limits`] says.
pub(super) const MAX_HEADERS: usize = 256;

/// What the head of a final answer says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Head {
    /// The status code, 200 to 999.
    pub status: u16,
    /// How the end of the body is known.
    pub framing: Framing,
    /// `Content-Type` is `text/event-stream`, in any case and with any parameters.
    pub event_stream: bool,
    /// A `Content-Encoding` other than `identity`, although nothing else was asked for.
    pub encoded: bool,
    /// Version, `Connection` and framing allow another request on this connection.
    pub keep_alive: bool,
    /// A 3xx other than 304. Never followed.
    pub redirect: bool,
}

/// How the end of a body is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Framing {
    /// The status (1xx, 204, 304) forbids a body.
    Empty,
    /// `Content-Length`, in bytes.
    Length(u64),
    /// `Transfer-Encoding: chunked`.
    Chunked,
    /// By the end of the connection.
    Close,
}

/// Finds the empty line that ends a head, and judges the bytes as they come.
///
/// The status line is judged byte by byte, so that a peer which speaks another protocol is known by
/// its first wrong byte, before it falls silent; the fields are judged line by line.
#[derive(Clone, Copy, Debug)]
pub(super) struct HeadEnd {
    part: Part,
    fields: FieldLines,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    /// In the status line, at this place.
    Status(usize),
    StatusLf,
    Fields,
}

impl HeadEnd {
    pub(super) fn new() -> Self {
        HeadEnd {
            part: Part::Status(0),
            fields: FieldLines::new(),
        }
    }

    /// Whether no byte of a head has come yet.
    pub(super) fn is_untouched(&self) -> bool {
        self.part == Part::Status(0)
    }

    /// The offset in `input` just after the empty line, if it is there.
    pub(super) fn find(&mut self, input: &[u8], most: usize) -> Result<Option<usize>, Http1Error> {
        for (at, &byte) in input.iter().enumerate() {
            self.part = match self.part {
                Part::Status(STATUS_END..) if byte == b'\r' => Part::StatusLf,
                Part::Status(place) if fits_status_line(place, byte) => Part::Status(place + 1),
                Part::StatusLf if byte == b'\n' => Part::Fields,
                Part::Status(_) | Part::StatusLf => return Err(Http1Error::BadStatusLine),
                Part::Fields => match self.fields.take(byte, most) {
                    Ok(true) => return Ok(Some(at + 1)),
                    Ok(false) => Part::Fields,
                    Err(FieldFault::Malformed) => return Err(Http1Error::BadHeader),
                    Err(FieldFault::TooMany) => return Err(Http1Error::TooManyHeaders),
                },
            };
        }
        Ok(None)
    }
}

/// `HTTP/1.x`, a blank, three digits; then the end, or a blank and a reason (RFC 9112 4).
const PREFIX: &[u8; 7] = b"HTTP/1.";
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

/// Reads one whole head, its empty line included, that [`HeadEnd`] let pass.
pub(super) fn parse_head(bytes: &[u8]) -> Result<Head, Http1Error> {
    let mut fields = [const { MaybeUninit::<httparse::Header<'_>>::uninit() }; MAX_HEADERS];
    let mut response = httparse::Response::new(&mut []);
    let parsed = httparse::ParserConfig::default().parse_response_with_uninit_headers(
        &mut response,
        bytes,
        &mut fields,
    );
    match parsed {
        Ok(httparse::Status::Complete(taken)) if taken == bytes.len() => {}
        // Cannot be, as far as the two agree; a fuzz target would tell.
        Ok(_) | Err(_) => return Err(Http1Error::BadHeader),
    }
    let (Some(status), Some(minor)) = (response.code, response.version) else {
        return Err(Http1Error::BadHeader);
    };
    if status == 101 {
        return Err(Http1Error::UnexpectedUpgrade);
    }
    Fields::read(response.headers).head(status, minor)
}

/// The fields that matter here, over all lines of the same name.
#[derive(Default)]
struct Fields {
    length: Option<Result<u64, Http1Error>>,
    transfer_coding: Option<Result<(), Http1Error>>,
    content_types: usize,
    event_streams: usize,
    encoded: bool,
    close: bool,
    keep_alive: bool,
}

impl Fields {
    fn read(headers: &[httparse::Header<'_>]) -> Fields {
        let mut fields = Fields::default();
        for header in headers {
            fields.take(header.name.as_bytes(), header.value);
        }
        fields
    }

    fn take(&mut self, name: &[u8], value: &[u8]) {
        // The length tells most names apart before any comparison of letters.
        match name.len() {
            10 if name.eq_ignore_ascii_case(b"connection") => {
                for token in elements(value) {
                    self.close |= token.eq_ignore_ascii_case(b"close");
                    self.keep_alive |= token.eq_ignore_ascii_case(b"keep-alive");
                }
            }
            12 if name.eq_ignore_ascii_case(b"content-type") => {
                self.content_types += 1;
                self.event_streams += usize::from(is_event_stream(value));
            }
            14 if name.eq_ignore_ascii_case(b"content-length") => {
                let length = parse_length(value).filter(|_| self.length.is_none());
                self.length = Some(length.ok_or(Http1Error::BadContentLength));
            }
            16 if name.eq_ignore_ascii_case(b"content-encoding") => {
                self.encoded |= elements(value).any(|c| !c.eq_ignore_ascii_case(b"identity"));
            }
            17 if name.eq_ignore_ascii_case(b"transfer-encoding") => {
                let alone =
                    self.transfer_coding.is_none() && value.eq_ignore_ascii_case(b"chunked");
                let coding = alone.then_some(());
                self.transfer_coding = Some(coding.ok_or(Http1Error::BadTransferEncoding));
            }
            _ => {}
        }
    }

    fn head(&self, status: u16, minor: u8) -> Result<Head, Http1Error> {
        let framing = self.framing(status, minor)?;
        let persistent = if minor == 0 { self.keep_alive } else { true };
        Ok(Head {
            status,
            framing,
            event_stream: self.content_types > 0 && self.event_streams == self.content_types,
            encoded: self.encoded,
            keep_alive: persistent && !self.close && framing != Framing::Close,
            redirect: (300..400).contains(&status) && status != 304,
        })
    }

    fn framing(&self, status: u16, minor: u8) -> Result<Framing, Http1Error> {
        if status < 200 || status == 204 || status == 304 {
            return Ok(Framing::Empty);
        }
        match (self.length, self.transfer_coding) {
            (Some(_), Some(_)) => Err(Http1Error::AmbiguousFraming),
            (Some(length), None) => length.map(Framing::Length),
            (None, Some(_)) if minor == 0 => Err(Http1Error::BadTransferEncoding),
            (None, Some(coding)) => coding.map(|()| Framing::Chunked),
            (None, None) => Ok(Framing::Close),
        }
    }
}

/// The elements of a comma-separated list; RFC 9110 5.6.1 has empty ones ignored.
fn elements(value: &[u8]) -> impl Iterator<Item = &[u8]> {
    value
        .split(|&b| b == b',')
        .map(trim_blanks)
        .filter(|element| !element.is_empty())
}

fn is_event_stream(value: &[u8]) -> bool {
    let essence = value.split(|&b| b == b';').next().unwrap_or_default();
    trim_blanks(essence).eq_ignore_ascii_case(b"text/event-stream")
}

fn trim_blanks(mut bytes: &[u8]) -> &[u8] {
    while let [b' ' | b'\t', rest @ ..] | [rest @ .., b' ' | b'\t'] = bytes {
        bytes = rest;
    }
    bytes
}

fn parse_length(digits: &[u8]) -> Option<u64> {
    if digits.is_empty() {
        return None;
    }
    digits.iter().try_fold(0_u64, |value, &digit| {
        if !digit.is_ascii_digit() {
            return None;
        }
        value.checked_mul(10)?.checked_add(u64::from(digit - b'0'))
    })
}
