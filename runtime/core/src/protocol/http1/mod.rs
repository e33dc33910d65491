//! The response side of HTTP/1.1 (RFC 9112), as the client of one request on a connection.
//!
//! [`ResponseParser`] takes bytes from the front of a read and yields [`Event`]s; a body is lent,
//! never copied. It takes exactly the bytes of one response, so what remains in the input after
//! [`Event::End`] is surplus: never body, never the next response's.
//!
//! # Strictness
//!
//! One rule decides: what the RFC only permits a recipient to forgive is refused, since no server
//! worth measuring needs it and two readers could take it differently; the reader's own parser
//! keeps to the same. `docs/protocol.md` gives the decisions and their reasons:
//!
//! - Head: `HTTP/1.0` and `HTTP/1.1` alone; the status line is judged byte by byte as it comes.
//!   CRLF alone ends a line. Refused: a bare LF or CR, a field folded over two lines, an empty
//!   line before the status line, a blank before the colon, control characters.
//! - `Content-Length`: one field of digits, at most `u64::MAX`. Repeated or listed values are
//!   refused, equal ones too.
//! - `Transfer-Encoding`: one field that says `chunked`, in HTTP/1.1. Anything else is refused, as
//!   are `Transfer-Encoding` and `Content-Length` together.
//! - Chunks: 1 to 16 hex digits; an extension is skipped unread up to a limit. Trailers are
//!   checked for form, counted and dropped.
//! - 1xx answers are passed over up to a limit; 101 is refused, since no upgrade was asked for.
//! - 204 and 304 end with their head, whatever lengths it names.
//! - An end of the connection ends a body only where nothing else does.

mod chunk;
mod error;
mod fields;
mod head;

pub use error::{ErrorGroup, Http1Error};
pub use head::{Framing, Head};

use chunk::{ChunkDecoder, ChunkStep};
use head::{HeadEnd, parse_head};

/// What a peer may send at most, so that no answer can hold memory or time without end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of one head, status line and final empty line included. Default 64 KiB.
    pub head_bytes: usize,
    /// Fields in one head, and in one trailer section; above 256 means 256. Default 256.
    pub headers: usize,
    /// Interim (1xx) heads before the final one. Default 32.
    pub interim: usize,
    /// Bytes of one chunk-size line with its extensions. Default 16 KiB.
    pub chunk_line_bytes: usize,
    /// Bytes of all trailers of one response together. Default 64 KiB.
    pub trailer_bytes: usize,
    /// Bytes of the body, framing not counted. A `Content-Length` beyond it fails at once, any
    /// other body at the first byte beyond it. Default 4 GiB.
    pub body_bytes: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            head_bytes: 64 << 10,
            headers: head::MAX_HEADERS,
            interim: 32,
            chunk_line_bytes: 16 << 10,
            trailer_bytes: 64 << 10,
            body_bytes: 4 << 30,
        }
    }
}

/// One step of a response. A body slice borrows from the input it came in and is never empty.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event<'i> {
    /// An interim answer (1xx but 101) was passed over.
    Interim {
        /// Its status code, 100 to 199.
        status: u16,
    },
    /// The final head is complete.
    Head(Head),
    /// Bytes of the body, chunk framing removed.
    Body(&'i [u8]),
    /// The message is complete.
    End(End),
}

/// The end of a complete message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct End {
    /// Whether head and framing allow another request on this connection. Surplus bytes in the
    /// input forbid it too, and only the caller can see those.
    pub keep_alive: bool,
}

/// Incremental parser of one response at a time.
///
/// Allocates only when a head spans reads, and keeps that buffer over [`ResponseParser::reset`].
#[derive(Clone, Debug)]
pub struct ResponseParser {
    limits: Limits,
    state: State,
    /// The part of an unfinished head that earlier reads brought.
    head: Vec<u8>,
    head_end: HeadEnd,
    chunks: ChunkDecoder,
    interim: usize,
    keep_alive: bool,
    started: bool,
    head_done: bool,
    body_bytes: u64,
}

#[derive(Clone, Copy, Debug)]
enum State {
    Head,
    Length { left: u64 },
    Chunked,
    Close,
    Ending,
    Ended,
    Failed(Http1Error),
}

impl ResponseParser {
    /// A parser that awaits a response.
    pub fn new(limits: Limits) -> Self {
        ResponseParser {
            limits: Limits {
                headers: limits.headers.min(head::MAX_HEADERS),
                ..limits
            },
            state: State::Head,
            head: Vec::new(),
            head_end: HeadEnd::new(),
            chunks: ChunkDecoder::new(),
            interim: 0,
            keep_alive: false,
            started: false,
            head_done: false,
            body_bytes: 0,
        }
    }

    /// Awaits the next response; keeps limits and buffers.
    pub fn reset(&mut self) {
        self.state = State::Head;
        self.head.clear();
        self.head_end = HeadEnd::new();
        self.interim = 0;
        self.keep_alive = false;
        self.started = false;
        self.head_done = false;
        self.body_bytes = 0;
    }

    /// Takes bytes from the front of `input` up to the next event.
    ///
    /// `None` means that the response needs more bytes and `input` is empty, or that it has ended
    /// and what remains in `input` is surplus. Call again until `None`: an [`Event::End`] may come
    /// of an empty input. After an error every call gives the same error.
    pub fn poll<'i>(&mut self, input: &mut &'i [u8]) -> Result<Option<Event<'i>>, Http1Error> {
        let step = self.step(input);
        if let Err(error) = step {
            self.state = State::Failed(error);
        }
        step
    }

    /// The peer closed its side in an orderly way, and every byte before that was polled.
    ///
    /// Gives the end of a body that the close delimits, `None` if the response had ended before,
    /// and otherwise an error that tells how far the response had come. A reset, a timeout or a
    /// TLS session without its closing alert is not an end: do not call this for them.
    pub fn handle_eof(&mut self) -> Result<Option<End>, Http1Error> {
        let error = match self.state {
            State::Close | State::Ending => {
                self.state = State::Ended;
                return Ok(Some(End { keep_alive: false }));
            }
            State::Ended => return Ok(None),
            State::Head if self.head_end.is_untouched() => Http1Error::EofBeforeResponse,
            State::Head => Http1Error::EofInHead,
            State::Length { .. } => Http1Error::EofInBody,
            State::Chunked if self.chunks.in_data() => Http1Error::EofInBody,
            State::Chunked => Http1Error::EofInChunkFraming,
            State::Failed(error) => error,
        };
        self.state = State::Failed(error);
        Err(error)
    }

    /// Whether any byte has come since the last reset, interim answers included.
    pub fn started(&self) -> bool {
        self.started
    }

    /// Whether the final head was complete.
    pub fn head_done(&self) -> bool {
        self.head_done
    }

    /// Whether the message was complete.
    pub fn ended(&self) -> bool {
        matches!(self.state, State::Ended)
    }

    /// Bytes of the body so far, chunk framing not counted.
    pub fn body_bytes(&self) -> u64 {
        self.body_bytes
    }

    fn step<'i>(&mut self, input: &mut &'i [u8]) -> Result<Option<Event<'i>>, Http1Error> {
        match self.state {
            State::Head => self.step_head(input),
            State::Length { left } => self.step_length(input, left),
            State::Chunked => self.step_chunks(input),
            State::Close if input.is_empty() => Ok(None),
            State::Close => {
                let body = self.take_body(input, u64::MAX)?;
                Ok(Some(Event::Body(body)))
            }
            State::Ending => Ok(Some(self.end())),
            State::Ended => Ok(None),
            State::Failed(error) => Err(error),
        }
    }

    fn step_head<'i>(&mut self, input: &mut &'i [u8]) -> Result<Option<Event<'i>>, Http1Error> {
        if input.is_empty() {
            return Ok(None);
        }
        self.started = true;
        let allowed = (self.limits.head_bytes - self.head.len()).min(input.len());
        let end = self.head_end.find(&input[..allowed], self.limits.headers)?;
        if end.is_none() && allowed < input.len() {
            return Err(Http1Error::HeadTooLarge);
        }
        let (front, rest) = input.split_at(end.unwrap_or(allowed));
        *input = rest;
        if end.is_none() {
            self.head.extend_from_slice(front);
            return Ok(None);
        }
        self.head_end = HeadEnd::new();
        let head = if self.head.is_empty() {
            parse_head(front)
        } else {
            self.head.extend_from_slice(front);
            let head = parse_head(&self.head);
            self.head.clear();
            head
        }?;
        self.finish_head(head).map(Some)
    }

    fn finish_head<'i>(&mut self, head: Head) -> Result<Event<'i>, Http1Error> {
        if head.status < 200 {
            self.interim += 1;
            if self.interim > self.limits.interim {
                return Err(Http1Error::TooManyInterim);
            }
            return Ok(Event::Interim {
                status: head.status,
            });
        }
        self.head_done = true;
        self.keep_alive = head.keep_alive;
        self.state = match head.framing {
            Framing::Empty | Framing::Length(0) => State::Ending,
            Framing::Length(length) if length > self.limits.body_bytes => {
                State::Failed(Http1Error::BodyTooLarge)
            }
            Framing::Length(left) => State::Length { left },
            Framing::Chunked => {
                self.chunks = ChunkDecoder::new();
                State::Chunked
            }
            Framing::Close => State::Close,
        };
        Ok(Event::Head(head))
    }

    fn step_length<'i>(
        &mut self,
        input: &mut &'i [u8],
        left: u64,
    ) -> Result<Option<Event<'i>>, Http1Error> {
        if input.is_empty() {
            return Ok(None);
        }
        let body = self.take_body(input, left)?;
        let left = left - body.len() as u64;
        self.state = if left == 0 {
            State::Ending
        } else {
            State::Length { left }
        };
        Ok(Some(Event::Body(body)))
    }

    fn step_chunks<'i>(&mut self, input: &mut &'i [u8]) -> Result<Option<Event<'i>>, Http1Error> {
        match self.chunks.poll(input, &self.limits)? {
            ChunkStep::NeedsMore => Ok(None),
            ChunkStep::End => Ok(Some(self.end())),
            ChunkStep::Data => {
                let body = self.take_body(input, self.chunks.data_left())?;
                self.chunks.take_data(body.len() as u64);
                Ok(Some(Event::Body(body)))
            }
        }
    }

    /// At most `left` bytes of a non-empty input, and at most what the body limit still allows.
    fn take_body<'i>(&mut self, input: &mut &'i [u8], left: u64) -> Result<&'i [u8], Http1Error> {
        let allowed = self.limits.body_bytes - self.body_bytes;
        if allowed == 0 {
            return Err(Http1Error::BodyTooLarge);
        }
        let most = left.min(allowed).min(input.len() as u64) as usize;
        let (body, rest) = input.split_at(most);
        *input = rest;
        self.body_bytes += most as u64;
        Ok(body)
    }

    fn end<'i>(&mut self) -> Event<'i> {
        self.state = State::Ended;
        Event::End(End {
            keep_alive: self.keep_alive,
        })
    }
}
