//! Chunked bodies (RFC 9112 7.1): everything but the data bytes themselves.

use super::head::{MAX_HEADERS, is_text};
use super::{Http1Error, Limits};

/// Where a chunked body stands.
#[derive(Clone, Copy, Debug)]
pub(super) struct ChunkDecoder {
    state: State,
    /// The size being read, then what of the chunk's data is still due.
    size: u64,
    /// Bytes of the current size line, then of all trailers.
    line_bytes: usize,
    trailers: usize,
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
    Size { digits: u8 },
    AfterSize,
    Extension,
    SizeLf,
    Data,
    DataCr,
    DataLf,
    TrailerStart,
    TrailerName,
    TrailerValue,
    TrailerLf,
    FinalLf,
}

/// A `u64` has at most so many hex digits.
const MOST_SIZE_DIGITS: u8 = 16;

impl ChunkDecoder {
    pub(super) fn new() -> Self {
        ChunkDecoder {
            state: State::Size { digits: 0 },
            size: 0,
            line_bytes: 0,
            trailers: 0,
        }
    }

    /// Whether data bytes are due next.
    pub(super) fn in_data(self) -> bool {
        self.state == State::Data
    }

    /// Data bytes of this chunk that are still due.
    pub(super) fn data_left(self) -> u64 {
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
        while let Some((&byte, rest)) = input.split_first() {
            if self.state == State::Data {
                return Ok(ChunkStep::Data);
            }
            let final_lf = self.state == State::FinalLf;
            self.state = self.next(byte, limits)?;
            *input = rest;
            if final_lf {
                return Ok(ChunkStep::End);
            }
        }
        Ok(ChunkStep::NeedsMore)
    }

    fn next(&mut self, byte: u8, limits: &Limits) -> Result<State, Http1Error> {
        match (self.state, byte) {
            (State::DataCr, b'\r') => Ok(State::DataLf),
            (State::DataLf, b'\n') => {
                self.line_bytes = 0;
                Ok(State::Size { digits: 0 })
            }
            (State::Data | State::DataCr | State::DataLf, _) => Err(Http1Error::BadChunk),
            (State::Size { .. } | State::AfterSize | State::Extension | State::SizeLf, _) => {
                self.next_of_size_line(byte, limits)
            }
            _ => self.next_of_trailer(byte, limits),
        }
    }

    fn next_of_size_line(&mut self, byte: u8, limits: &Limits) -> Result<State, Http1Error> {
        self.line_bytes += 1;
        if self.line_bytes > limits.chunk_line_bytes {
            return Err(Http1Error::ChunkLineTooLarge);
        }
        match (self.state, byte) {
            (State::Size { digits: 0 }, _) => self.digit(0, byte),
            (State::Size { .. } | State::AfterSize, b'\n') => Err(Http1Error::BadChunk),
            (State::Size { .. } | State::Extension, b'\r') => Ok(State::SizeLf),
            (State::Size { .. } | State::AfterSize, b' ' | b'\t') => Ok(State::AfterSize),
            (State::Size { .. } | State::AfterSize, b';') => Ok(State::Extension),
            (State::Size { digits }, _) => self.digit(digits, byte),
            (State::Extension, _) if is_text(byte) => Ok(State::Extension),
            (State::SizeLf, b'\n') if self.size > 0 => Ok(State::Data),
            (State::SizeLf, b'\n') => {
                self.line_bytes = 0;
                Ok(State::TrailerStart)
            }
            (State::AfterSize, _) => Err(Http1Error::BadChunkSize),
            _ => Err(Http1Error::BadChunk),
        }
    }

    fn digit(&mut self, digits: u8, byte: u8) -> Result<State, Http1Error> {
        let value = (byte as char)
            .to_digit(16)
            .ok_or(Http1Error::BadChunkSize)?;
        if digits == MOST_SIZE_DIGITS {
            return Err(Http1Error::BadChunkSize);
        }
        // The size is zero here when a line begins: all data of the chunk before was taken.
        self.size = self.size << 4 | u64::from(value);
        Ok(State::Size { digits: digits + 1 })
    }

    fn next_of_trailer(&mut self, byte: u8, limits: &Limits) -> Result<State, Http1Error> {
        self.line_bytes += 1;
        if self.line_bytes > limits.trailer_bytes {
            return Err(Http1Error::TrailersTooLarge);
        }
        match (self.state, byte) {
            (State::TrailerStart, b'\r') => Ok(State::FinalLf),
            (State::TrailerStart, _) if is_token(byte) => {
                self.trailers += 1;
                if self.trailers > limits.headers.min(MAX_HEADERS) {
                    return Err(Http1Error::TrailersTooLarge);
                }
                Ok(State::TrailerName)
            }
            (State::TrailerName, _) if is_token(byte) => Ok(State::TrailerName),
            (State::TrailerName, b':') => Ok(State::TrailerValue),
            (State::TrailerValue, _) if is_text(byte) => Ok(State::TrailerValue),
            (State::TrailerValue, b'\r') => Ok(State::TrailerLf),
            (State::TrailerLf, b'\n') => Ok(State::TrailerStart),
            (State::FinalLf, b'\n') => Ok(State::FinalLf),
            (State::FinalLf, _) => Err(Http1Error::BadChunk),
            _ => Err(Http1Error::BadTrailer),
        }
    }
}

/// A `tchar` of RFC 9110 5.6.2.
fn is_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}
