//! Heads: where one ends, and what it says about the body and the connection.

use std::mem::MaybeUninit;

use super::Http1Error;

/// The most header fields that one head may have, whatever [`super::Limits`] says.
pub(super) const MAX_HEADERS: usize = 256;

/// What every head must begin with; both versions spoken here do.
const PREFIX: &[u8; 7] = b"HTTP/1.";

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

/// Finds the empty line that ends a head, and refuses bytes that can't be one at the first wrong
/// byte, so that a peer which speaks another protocol is known before it falls silent.
#[derive(Clone, Copy, Debug)]
pub(super) struct HeadEnd {
    matched: usize,
    line: Line,
}

/// What the current line holds so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Line {
    Empty,
    Cr,
    Text,
}

impl HeadEnd {
    pub(super) fn new() -> Self {
        HeadEnd {
            matched: 0,
            line: Line::Empty,
        }
    }

    /// Whether no byte of a head has come yet.
    pub(super) fn is_untouched(self) -> bool {
        self.matched == 0
    }

    /// The offset in `input` just after the empty line, if it is there.
    pub(super) fn find(&mut self, input: &[u8]) -> Result<Option<usize>, Http1Error> {
        let due = &PREFIX[self.matched..];
        let seen = due.len().min(input.len());
        if due[..seen] != input[..seen] {
            return Err(Http1Error::BadStatusLine);
        }
        self.matched += seen;
        let mut start = 0;
        for at in memchr::memchr_iter(b'\n', input) {
            self.line.extend(&input[start..at]);
            if self.line != Line::Text {
                return Ok(Some(at + 1));
            }
            self.line = Line::Empty;
            start = at + 1;
        }
        self.line.extend(&input[start..]);
        Ok(None)
    }
}

impl Line {
    fn extend(&mut self, bytes: &[u8]) {
        *self = match (*self, bytes) {
            (line, []) => line,
            (Line::Empty, b"\r") => Line::Cr,
            _ => Line::Text,
        };
    }
}

/// Reads one whole head, its empty line included.
pub(super) fn parse_head(bytes: &[u8], most_headers: usize) -> Result<Head, Http1Error> {
    let mut fields = [const { MaybeUninit::<httparse::Header<'_>>::uninit() }; MAX_HEADERS];
    let fields = &mut fields[..most_headers.min(MAX_HEADERS)];
    let mut response = httparse::Response::new(&mut []);
    let parsed = httparse::ParserConfig::default().parse_response_with_uninit_headers(
        &mut response,
        bytes,
        fields,
    );
    match parsed {
        Ok(httparse::Status::Complete(taken)) if taken == bytes.len() => {}
        // The empty line was found before, so httparse and the search disagree about a line end.
        Ok(_) => return Err(Http1Error::BadHeader),
        Err(error) => return Err(head_error(error)),
    }
    let (Some(status @ 100..), Some(minor)) = (response.code, response.version) else {
        return Err(Http1Error::BadStatusLine);
    };
    if status == 101 {
        return Err(Http1Error::UnexpectedUpgrade);
    }
    Fields::read(response.headers)?.head(status, minor)
}

fn head_error(error: httparse::Error) -> Http1Error {
    match error {
        httparse::Error::HeaderName | httparse::Error::HeaderValue => Http1Error::BadHeader,
        httparse::Error::TooManyHeaders => Http1Error::TooManyHeaders,
        httparse::Error::NewLine
        | httparse::Error::Status
        | httparse::Error::Token
        | httparse::Error::Version => Http1Error::BadStatusLine,
    }
}

/// The fields that matter here, over all lines of the same name.
#[derive(Default)]
struct Fields {
    length: Option<Result<u64, Http1Error>>,
    codings: usize,
    chunked: bool,
    transfer_encoding: bool,
    content_types: usize,
    event_streams: usize,
    encoded: bool,
    close: bool,
    keep_alive: bool,
}

impl Fields {
    fn read(headers: &[httparse::Header<'_>]) -> Result<Fields, Http1Error> {
        let mut fields = Fields::default();
        for header in headers {
            fields.take(header.name.as_bytes(), header.value);
        }
        Ok(fields)
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
            14 if name.eq_ignore_ascii_case(b"content-length") => self.take_length(value),
            16 if name.eq_ignore_ascii_case(b"content-encoding") => {
                self.encoded |= elements(value).any(|c| !c.eq_ignore_ascii_case(b"identity"));
            }
            17 if name.eq_ignore_ascii_case(b"transfer-encoding") => {
                self.transfer_encoding = true;
                for coding in elements(value) {
                    self.codings += 1;
                    self.chunked = coding.eq_ignore_ascii_case(b"chunked");
                }
            }
            _ => {}
        }
    }

    fn take_length(&mut self, value: &[u8]) {
        for element in value.split(|&b| b == b',') {
            let length = parse_length(trim_blanks(element)).ok_or(Http1Error::BadContentLength);
            self.length = Some(match self.length {
                Some(before) if before != length => Err(Http1Error::BadContentLength),
                _ => length,
            });
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
        if self.transfer_encoding {
            return match self.length {
                Some(_) => Err(Http1Error::AmbiguousLength),
                None if minor >= 1 && self.codings == 1 && self.chunked => Ok(Framing::Chunked),
                None => Err(Http1Error::BadTransferEncoding),
            };
        }
        match self.length {
            Some(length) => length.map(Framing::Length),
            None => Ok(Framing::Close),
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
