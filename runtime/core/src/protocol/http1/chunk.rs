//! Chunked bodies (RFC 9112 7.1): everything but the data bytes themselves.

use super::fields::{FieldFault, FieldLines, is_text};
use super::{Http1Error, Limits};

/// Where a chunked body stands.
#[derive(Clone, Copy, Debug)]
pub(super) struct ChunkDecoder {
    state: State,
    /// The size being read, then what of the chunk's data is still due.
    size: u64,
    /// Bytes of the current size line, then of all trailers.
    line_bytes: usize,
    trailers: FieldLines,
}

/// What the framing came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ChunkStep {
    /// The input is empty.
    NeedsMore,
    /// The input begins with data bytes.
    Data,
    /// The final CRLF was taken.
    End,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Size {
        digits: u8,
    },
    AfterSize,
    Extension,
    SizeLf,
    /// Behind the CR of a padded size. Refused with the next byte: blanks before an extension are
    /// judged when the line is complete.
    PaddedLf,
    Data,
    DataCr,
    DataLf,
    Trailers,
}

/// A `u64` has at most so many hex digits.
const MOST_SIZE_DIGITS: u8 = 16;

impl ChunkDecoder {
    pub(super) fn new() -> Self {
        ChunkDecoder {
            state: State::Size { digits: 0 },
            size: 0,
            line_bytes: 0,
            trailers: FieldLines::new(),
        }
    }

    /// Whether data bytes are due next.
    pub(super) fn in_data(&self) -> bool {
        self.state == State::Data
    }

    /// Data bytes of this chunk that are still due.
    pub(super) fn data_left(&self) -> u64 {
        self.size
    }

    /// Notes that `taken` data bytes, at most [`Self::data_left`], were taken from the input.
    pub(super) fn take_data(&mut self, taken: u64) {
        self.size -= taken;
        if self.size == 0 {
            self.state = State::DataCr;
        }
    }

    /// Takes framing from the front of `input` until data, the end, or nothing is left.
    pub(super) fn poll(
        &mut self,
        input: &mut &[u8],
        limits: &Limits,
    ) -> Result<ChunkStep, Http1Error> {
        self.take_usual(input, limits);
        while let Some((&byte, rest)) = input.split_first() {
            match self.state {
                State::Data => return Ok(ChunkStep::Data),
                State::DataCr if byte == b'\r' => self.state = State::DataLf,
                State::DataLf if byte == b'\n' => {
                    self.line_bytes = 0;
                    self.state = State::Size { digits: 0 };
                }
                State::DataCr | State::DataLf => return Err(Http1Error::BadChunk),
                State::Trailers => {
                    if self.take_trailer(byte, limits)? {
                        *input = rest;
                        return Ok(ChunkStep::End);
                    }
                }
                _ => self.take_size_line(byte, limits)?,
            }
            *input = rest;
        }
        Ok(ChunkStep::NeedsMore)
    }

    /// The usual way from one chunk's data to the next one's, `CRLF size CRLF` in one read without
    /// an extension. Takes nothing where the bytes are anything else: they are then judged singly.
    fn take_usual(&mut self, input: &mut &[u8], limits: &Limits) {
        let line = match self.state {
            State::Size { digits: 0 } => *input,
            State::DataCr => match input {
                [b'\r', b'\n', line @ ..] => line,
                _ => return,
            },
            _ => return,
        };
        let mut size = 0_u64;
        for (digits, &byte) in line.iter().enumerate().take(usize::from(MOST_SIZE_DIGITS)) {
            if let Some(value) = hex_value(byte) {
                size = size << 4 | u64::from(value);
                continue;
            }
            let is_usual = size > 0 && digits + 2 <= limits.chunk_line_bytes;
            if let [b'\r', b'\n', data @ ..] = &line[digits..]
                && is_usual
            {
                self.size = size;
                self.state = State::Data;
                *input = data;
            }
            return;
        }
    }

    fn take_size_line(&mut self, byte: u8, limits: &Limits) -> Result<(), Http1Error> {
        self.line_bytes += 1;
        if self.line_bytes > limits.chunk_line_bytes {
            return Err(Http1Error::ChunkLineTooLarge);
        }
        self.state = match (self.state, byte) {
            (State::Size { digits }, b'0'..=b'9' | b'a'..=b'f' | b'A'..=b'F') => {
                self.digit(digits, byte)?
            }
            (State::AfterSize, b'\r') => State::PaddedLf,
            (State::Size { digits: 0 } | State::PaddedLf, _) => {
                return Err(Http1Error::BadChunkSize);
            }
            (State::Size { .. } | State::Extension, b'\r') => State::SizeLf,
            (State::SizeLf, b'\n') if self.size > 0 => State::Data,
            (State::SizeLf, b'\n') => {
                self.line_bytes = 0;
                State::Trailers
            }
            (State::Size { .. } | State::AfterSize, b' ' | b'\t') => State::AfterSize,
            (State::Size { .. } | State::AfterSize, b';') => State::Extension,
            (State::Extension, _) if is_text(byte) => State::Extension,
            (State::Extension | State::SizeLf, _) | (_, b'\n') => return Err(Http1Error::BadChunk),
            _ => return Err(Http1Error::BadChunkSize),
        };
        Ok(())
    }

    fn digit(&mut self, digits: u8, byte: u8) -> Result<State, Http1Error> {
        let value = hex_value(byte).ok_or(Http1Error::BadChunkSize)?;
        if digits == MOST_SIZE_DIGITS {
            return Err(Http1Error::BadChunkSize);
        }
        // The size is zero here when a line begins: all data of the chunk before was taken.
        self.size = self.size << 4 | u64::from(value);
        Ok(State::Size { digits: digits + 1 })
    }

    fn take_trailer(&mut self, byte: u8, limits: &Limits) -> Result<bool, Http1Error> {
        self.line_bytes += 1;
        if self.line_bytes > limits.trailer_bytes {
            return Err(Http1Error::TrailersTooLarge);
        }
        self.trailers
            .take(byte, limits.headers)
            .map_err(|fault| match fault {
                FieldFault::Malformed => Http1Error::BadTrailer,
                FieldFault::TooMany => Http1Error::TrailersTooLarge,
            })
    }
}

fn hex_value(byte: u8) -> Option<u8> {
    match byte {
        b'0'..=b'9' => Some(byte - b'0'),
        b'a'..=b'f' => Some(byte - b'a' + 10),
        b'A'..=b'F' => Some(byte - b'A' + 10),
        _ => None,
    }
}
