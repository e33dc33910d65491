//! One HTTP/1.1 response, read from the whole of what was received for it.
//!
//! A strict client's reading of RFC 9112: lines end in CRLF alone, a message has one framing, and
//! whatever a peer could read differently is refused with its place. Nothing is incremental here
//! and nothing is shared with the runtime, whose parser this one checks.

mod chunked;
mod head;
mod line;

use std::borrow::Cow;
use std::ops::Range;

/// What is refused as too much. Each limit is inclusive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of one head or of one trailer section, its blank line included.
    pub head_bytes: usize,
    /// Fields in one head or in one trailer section.
    pub fields: usize,
    /// Interim (1xx) responses before the final one.
    pub interim: usize,
    /// Bytes of one chunk-size line, its CRLF included.
    pub chunk_line_bytes: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            head_bytes: 64 << 10,
            fields: 256,
            interim: 32,
            chunk_line_bytes: 16 << 10,
        }
    }
}

/// A field of a head or of a trailer section, as places in the received stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Field {
    /// The name, in the case that was received.
    pub name: Range<usize>,
    /// The value without the blanks around it.
    pub value: Range<usize>,
}

/// The head of a final response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Head {
    /// The minor version: 0 or 1.
    pub minor: u8,
    /// The status, 200 to 999.
    pub status: u16,
    /// The fields in the order received.
    pub fields: Vec<Field>,
    /// The place of the status line's first byte.
    pub start: usize,
    /// The place after the blank line.
    pub end: usize,
    /// How the body's end is found.
    pub framing: Framing,
}

/// How the end of a body is found (RFC 9112, section 6.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Framing {
    /// The status allows no body.
    None,
    /// A `Content-Length`.
    Length(u64),
    /// `Transfer-Encoding: chunked`.
    Chunked,
    /// The end of the connection.
    Close,
}

/// How far the bytes go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// The message is complete; `end` is the place after its last byte.
    Complete {
        /// The place after the message's last byte.
        end: usize,
    },
    /// What was received is a beginning of a response and the connection is still open.
    Unfinished(Part),
    /// The response is refused.
    Failed(Fault),
}

/// The part of a message that the bytes end in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// Nothing of the final response has come, whether or not an interim one has.
    BeforeHead,
    /// Inside the final response's head, or an interim one's.
    Head,
    /// After the head.
    Body,
}

/// Why a response is refused, and where.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fault {
    /// The reason.
    pub kind: FaultKind,
    /// The place in the received stream.
    pub at: usize,
}

/// The reasons for which a response is refused: a closed set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum FaultKind {
    /// The connection ended before a byte of the final response.
    EofBeforeResponse,
    /// The connection ended inside a head.
    EofInHead,
    /// The status line is none of HTTP/1.0 or HTTP/1.1.
    BadStatusLine,
    /// A line of the head is no field.
    BadHeader,
    /// The head is longer, or has more fields, than the limits allow; or too many interim responses.
    HeaderLimit,
    /// 101, which nobody asked for.
    UnexpectedUpgrade,
    /// `Content-Length` is no single unsigned 64-bit decimal.
    BadContentLength,
    /// `Transfer-Encoding` is anything but one `chunked` of an HTTP/1.1 response.
    BadTransferEncoding,
    /// Both `Content-Length` and `Transfer-Encoding`.
    AmbiguousFraming,
    /// A chunk-size line is not hexadecimal digits with an optional extension.
    BadChunkSize,
    /// A chunk's data is not followed by CRLF.
    BadChunk,
    /// A line of the trailer section is no field.
    BadTrailer,
    /// A chunk-size line or the trailer section is longer, or has more fields, than the limits allow.
    FramingLimit,
    /// The connection ended before the message did.
    IncompleteBody,
}

impl FaultKind {
    /// The name used in reports and test cases.
    pub fn name(self) -> &'static str {
        match self {
            FaultKind::EofBeforeResponse => "eof_before_response",
            FaultKind::EofInHead => "eof_in_head",
            FaultKind::BadStatusLine => "bad_status_line",
            FaultKind::BadHeader => "bad_header",
            FaultKind::HeaderLimit => "header_limit",
            FaultKind::UnexpectedUpgrade => "unexpected_upgrade",
            FaultKind::BadContentLength => "bad_content_length",
            FaultKind::BadTransferEncoding => "bad_transfer_encoding",
            FaultKind::AmbiguousFraming => "ambiguous_framing",
            FaultKind::BadChunkSize => "bad_chunk_size",
            FaultKind::BadChunk => "bad_chunk",
            FaultKind::BadTrailer => "bad_trailer",
            FaultKind::FramingLimit => "framing_limit",
            FaultKind::IncompleteBody => "incomplete_body",
        }
    }
}

/// A body as places in the received stream: no byte is copied, and each has its place.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Body {
    spans: Vec<Range<usize>>,
    /// `ends[i]` is the length of the body up to the end of `spans[i]`.
    ends: Vec<usize>,
}

impl Body {
    /// The places, in order, none of them empty.
    pub fn spans(&self) -> &[Range<usize>] {
        &self.spans
    }

    /// The body's length in bytes.
    pub fn len(&self) -> usize {
        self.ends.last().copied().unwrap_or(0)
    }

    /// Whether there is no byte.
    pub fn is_empty(&self) -> bool {
        self.spans.is_empty()
    }

    /// The place in the stream of the body's byte `at`; `None` beyond its end.
    pub fn place(&self, at: usize) -> Option<usize> {
        let index = self.ends.partition_point(|end| *end <= at);
        let span = self.spans.get(index)?;
        let before = self.ends[index] - span.len();
        Some(span.start + (at - before))
    }

    /// The body's bytes, copied only where they lie in more than one place.
    pub fn bytes<'a>(&self, stream: &'a [u8]) -> Cow<'a, [u8]> {
        match self.spans.as_slice() {
            [] => Cow::Borrowed(&[]),
            [only] => Cow::Borrowed(&stream[only.clone()]),
            spans => {
                let mut joined = Vec::with_capacity(self.len());
                for span in spans {
                    joined.extend_from_slice(&stream[span.clone()]);
                }
                Cow::Owned(joined)
            }
        }
    }

    fn push(&mut self, span: Range<usize>) {
        if span.is_empty() {
            return;
        }
        self.ends.push(self.len() + span.len());
        self.spans.push(span);
    }
}

/// What was received for one request, read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Response {
    /// The statuses of the interim responses, in order.
    pub interim: Vec<u16>,
    /// The final head, where it is complete.
    pub head: Option<Head>,
    /// The body so far.
    pub body: Body,
    /// The trailer section's fields; never merged into the head's.
    pub trailers: Vec<Field>,
    /// How far the bytes go.
    pub ending: Ending,
    /// Whether another request may follow on this connection.
    pub keep_alive: bool,
    /// What lies after the complete message: surplus, never part of it.
    pub leftover: Range<usize>,
}

impl Response {
    /// The values of the fields called `name` (any case), in order.
    pub fn values<'a>(&'a self, stream: &'a [u8], name: &'a str) -> impl Iterator<Item = &'a [u8]> {
        let fields = self.head.iter().flat_map(|head| head.fields.iter());
        head::named(fields, stream, name)
    }

    /// The status of the final response, where its head is complete.
    pub fn status(&self) -> Option<u16> {
        self.head.as_ref().map(|head| head.status)
    }

    /// Why the response is refused, where it is.
    pub fn fault(&self) -> Option<Fault> {
        match self.ending {
            Ending::Failed(fault) => Some(fault),
            Ending::Complete { .. } | Ending::Unfinished(_) => None,
        }
    }

    /// Whether the message is complete.
    pub fn is_complete(&self) -> bool {
        matches!(self.ending, Ending::Complete { .. })
    }
}

/// Reads the whole of what was received for one request that was neither `HEAD` nor `CONNECT`.
///
/// `eof` says that the peer ended the connection in order after these bytes. A connection that
/// was reset or abandoned has not ended: pass `false`, and a body that only the end of the
/// connection would complete stays unfinished.
pub fn read_response(stream: &[u8], eof: bool, limits: &Limits) -> Response {
    let mut response = Response {
        interim: Vec::new(),
        head: None,
        body: Body::default(),
        trailers: Vec::new(),
        ending: Ending::Unfinished(Part::BeforeHead),
        keep_alive: false,
        leftover: stream.len()..stream.len(),
    };
    response.ending = match read_heads(&mut response, stream, limits) {
        Ok(()) => read_body(&mut response, stream, eof, limits),
        Err(Stop::Short(part)) => short(part, eof, stream.len()),
        Err(Stop::Fault(fault)) => Ending::Failed(fault),
    };
    if let Ending::Complete { end } = response.ending {
        response.leftover = end..stream.len();
        response.keep_alive = may_continue(&response, stream, eof);
    }
    response
}

/// Why a part could not be read to its end.
#[derive(Clone, Copy, Debug)]
enum Stop {
    /// The bytes end inside it.
    Short(Part),
    /// It is refused.
    Fault(Fault),
}

impl Stop {
    fn fault(kind: FaultKind, at: usize) -> Stop {
        Stop::Fault(Fault { kind, at })
    }
}

fn read_heads(response: &mut Response, stream: &[u8], limits: &Limits) -> Result<(), Stop> {
    let mut at = 0;
    loop {
        if at == stream.len() {
            return Err(Stop::Short(Part::BeforeHead));
        }
        let head = head::read_head(stream, at, limits)?;
        if head.status == 101 {
            return Err(Stop::fault(FaultKind::UnexpectedUpgrade, at));
        }
        if head.status >= 200 {
            response.head = Some(head);
            return Ok(());
        }
        if response.interim.len() == limits.interim {
            return Err(Stop::fault(FaultKind::HeaderLimit, at));
        }
        response.interim.push(head.status);
        at = head.end;
    }
}

fn read_body(response: &mut Response, stream: &[u8], eof: bool, limits: &Limits) -> Ending {
    let Some((start, framing)) = response.head.as_ref().map(|head| (head.end, head.framing)) else {
        return Ending::Unfinished(Part::Head);
    };
    let available = stream.len() - start;
    match framing {
        Framing::None => Ending::Complete { end: start },
        Framing::Length(length) => {
            let whole = usize::try_from(length)
                .ok()
                .filter(|length| *length <= available);
            response
                .body
                .push(start..start + whole.unwrap_or(available));
            match whole {
                Some(length) => Ending::Complete {
                    end: start + length,
                },
                None => short(Part::Body, eof, stream.len()),
            }
        }
        Framing::Close => {
            response.body.push(start..stream.len());
            if eof {
                Ending::Complete { end: stream.len() }
            } else {
                Ending::Unfinished(Part::Body)
            }
        }
        Framing::Chunked => {
            match chunked::read_chunks(
                stream,
                start,
                limits,
                &mut response.body,
                &mut response.trailers,
            ) {
                Ok(end) => Ending::Complete { end },
                Err(Stop::Short(part)) => short(part, eof, stream.len()),
                Err(Stop::Fault(fault)) => Ending::Failed(fault),
            }
        }
    }
}

fn short(part: Part, eof: bool, at: usize) -> Ending {
    if !eof {
        return Ending::Unfinished(part);
    }
    let kind = match part {
        Part::BeforeHead => FaultKind::EofBeforeResponse,
        Part::Head => FaultKind::EofInHead,
        Part::Body => FaultKind::IncompleteBody,
    };
    Ending::Failed(Fault { kind, at })
}

/// RFC 9112, section 9.3; bytes that nobody asked for end the connection's use as well.
fn may_continue(response: &Response, stream: &[u8], eof: bool) -> bool {
    let Some(head) = &response.head else {
        return false;
    };
    if eof || head.framing == Framing::Close || !response.leftover.is_empty() {
        return false;
    }
    let said = |option: &[u8]| {
        response
            .values(stream, "connection")
            .flat_map(|value| value.split(|byte| *byte == b','))
            .any(|listed| listed.trim_ascii().eq_ignore_ascii_case(option))
    };
    !said(b"close") && (head.minor == 1 || said(b"keep-alive"))
}
