//! Field lines, of a head or of trailers, up to the empty line that ends them.

/// Passes field lines byte by byte and keeps none of them.
///
/// A line is judged when it is complete, as the reader does, so that a line cut by the end of the
/// connection is an end and not a fault; a bare CR or LF is a fault at once.
#[derive(Clone, Copy, Debug)]
pub(super) struct FieldLines {
    state: State,
    /// The current line is no field.
    bad: bool,
    count: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    LineStart,
    Name,
    Value,
    LineCr,
    LastCr,
}

/// Why a line is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FieldFault {
    Malformed,
    TooMany,
}

impl FieldLines {
    pub(super) fn new() -> Self {
        FieldLines {
            state: State::LineStart,
            bad: false,
            count: 0,
        }
    }

    /// Takes the next byte; gives whether it was the LF of the empty line.
    pub(super) fn take(&mut self, byte: u8, most: usize) -> Result<bool, FieldFault> {
        self.state = match (self.state, byte) {
            (State::LastCr, b'\n') => return Ok(true),
            (State::LineCr, b'\n') => {
                self.end_line(most)?;
                State::LineStart
            }
            (State::LineCr | State::LastCr, _) | (_, b'\n') => return Err(FieldFault::Malformed),
            (State::LineStart, b'\r') => State::LastCr,
            (State::Name, b'\r') => {
                self.bad = true;
                State::LineCr
            }
            (State::Value, b'\r') => State::LineCr,
            (State::Name, b':') => State::Value,
            (State::LineStart | State::Name, _) if is_token(byte) => State::Name,
            (State::Value, _) if is_text(byte) => State::Value,
            _ => {
                self.bad = true;
                State::Value
            }
        };
        Ok(false)
    }

    fn end_line(&mut self, most: usize) -> Result<(), FieldFault> {
        self.count += 1;
        if self.count > most {
            return Err(FieldFault::TooMany);
        }
        if self.bad {
            return Err(FieldFault::Malformed);
        }
        Ok(())
    }
}

/// A `tchar` of RFC 9110 5.6.2.
fn is_token(byte: u8) -> bool {
    TOKEN[usize::from(byte)]
}

const TOKEN: [bool; 256] = {
    let mut table = [false; 256];
    let mut byte = 0;
    while byte < table.len() {
        table[byte] = (byte as u8).is_ascii_alphanumeric();
        byte += 1;
    }
    let others = b"!#$%&'*+-.^_`|~";
    let mut index = 0;
    while index < others.len() {
        table[others[index] as usize] = true;
        index += 1;
    }
    table
};

/// Whether the byte may stand in a field value, a reason or a chunk extension (RFC 9110 5.5).
pub(super) fn is_text(byte: u8) -> bool {
    matches!(byte, b'\t' | b' '..=b'~' | 0x80..)
}
