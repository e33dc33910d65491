//! What the bytes of a record mean, by its kind.

use assize_plan::Hash;

use super::{Kind, le_u32, le_u64};
use crate::terminal::{Phase, Terminal};

/// An operation of the system on a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum SocketOp {
    /// Making a socket or connecting it.
    Connect = 0,
    /// Sending.
    Send = 1,
    /// Receiving.
    Receive = 2,
}

/// A deadline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Timer {
    /// From admission to the end.
    Request = 0,
    /// Connecting.
    Connect = 1,
    /// Silence between events.
    Idle = 2,
    /// The cell's drain.
    Drain = 3,
}

/// A record's meaning, decoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Payload<'a> {
    /// u64 origin_ns.
    CellStart {
        /// The cell's origin.
        origin_ns: u64,
    },
    /// u64 intended_ns.
    Dispatch {
        /// When the request was due.
        intended_ns: u64,
    },
    /// Empty.
    Admit,
    /// UTF-8 `address:port`.
    Connect {
        /// To where.
        addr: &'a str,
    },
    /// Empty.
    Connected,
    /// UTF-8 JSON: what the TLS layer agreed on.
    Tls {
        /// The text.
        facts: &'a str,
    },
    /// u8\[32\] hash of the body, then the head with its credentials masked.
    SendStart {
        /// The SHA-256 of the body.
        body: Hash,
        /// The head as sent, credentials masked by as many `*`.
        head: &'a [u8],
    },
    /// u64 bytes.
    Sent {
        /// Bytes that the kernel accepted.
        bytes: u64,
    },
    /// The bytes.
    Recv(&'a [u8]),
    /// Empty.
    Eof,
    /// i32 errno, u8 operation, 3 zero bytes.
    Error {
        /// The operation.
        op: SocketOp,
        /// The error number.
        errno: i32,
    },
    /// Empty.
    Close,
    /// u8 timer.
    Timer(Timer),
    /// u8 terminal, u8 phase, u16 status, i32 errno.
    Terminal {
        /// How the request ended.
        terminal: Terminal,
        /// How far it had come.
        phase: Phase,
        /// The response's status, 0 before its head was complete.
        status: u16,
        /// The system's error number, 0 where there is none.
        errno: i32,
    },
    /// i64 offset_ns, u64 bracket_ns.
    Clock {
        /// CLOCK_REALTIME − CLOCK_MONOTONIC.
        offset_ns: i64,
        /// The distance of the two monotonic readings around it.
        bracket_ns: u64,
    },
    /// UTF-8 text.
    Driver {
        /// The text.
        fact: &'a str,
    },
    /// Empty.
    CellEnd,
}

/// A record whose bytes are not what its kind needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a {kind:?} record of {len} bytes is malformed")]
pub struct PayloadError {
    /// The kind.
    pub kind: Kind,
    /// The length of its payload.
    pub len: usize,
}

impl<'a> Payload<'a> {
    /// The kind of the record.
    pub fn kind(&self) -> Kind {
        match self {
            Payload::CellStart { .. } => Kind::CellStart,
            Payload::Dispatch { .. } => Kind::Dispatch,
            Payload::Admit => Kind::Admit,
            Payload::Connect { .. } => Kind::Connect,
            Payload::Connected => Kind::Connected,
            Payload::Tls { .. } => Kind::Tls,
            Payload::SendStart { .. } => Kind::SendStart,
            Payload::Sent { .. } => Kind::Sent,
            Payload::Recv(_) => Kind::Recv,
            Payload::Eof => Kind::Eof,
            Payload::Error { .. } => Kind::Error,
            Payload::Close => Kind::Close,
            Payload::Timer(_) => Kind::Timer,
            Payload::Terminal { .. } => Kind::Terminal,
            Payload::Clock { .. } => Kind::Clock,
            Payload::Driver { .. } => Kind::Driver,
            Payload::CellEnd => Kind::CellEnd,
        }
    }

    /// The bytes as up to two parts: a short one made here, and a borrowed one. Nothing is allocated.
    pub fn parts(&self) -> (Short, &'a [u8]) {
        let mut short = Short {
            bytes: [0; 32],
            len: 0,
        };
        let mut rest: &'a [u8] = &[];
        match *self {
            Payload::CellStart { origin_ns } => short.push(&origin_ns.to_le_bytes()),
            Payload::Dispatch { intended_ns } => short.push(&intended_ns.to_le_bytes()),
            Payload::Connect { addr } => rest = addr.as_bytes(),
            Payload::Tls { facts } => rest = facts.as_bytes(),
            Payload::SendStart { body, head } => {
                short.push(&body.0);
                rest = head;
            }
            Payload::Sent { bytes } => short.push(&bytes.to_le_bytes()),
            Payload::Recv(bytes) => rest = bytes,
            Payload::Error { op, errno } => {
                short.push(&errno.to_le_bytes());
                short.push(&[op as u8, 0, 0, 0]);
            }
            Payload::Timer(timer) => short.push(&[timer as u8]),
            Payload::Terminal {
                terminal,
                phase,
                status,
                errno,
            } => {
                short.push(&[terminal.code(), phase.code()]);
                short.push(&status.to_le_bytes());
                short.push(&errno.to_le_bytes());
            }
            Payload::Clock {
                offset_ns,
                bracket_ns,
            } => {
                short.push(&offset_ns.to_le_bytes());
                short.push(&bracket_ns.to_le_bytes());
            }
            Payload::Driver { fact } => rest = fact.as_bytes(),
            Payload::Admit
            | Payload::Connected
            | Payload::Eof
            | Payload::Close
            | Payload::CellEnd => {}
        }
        (short, rest)
    }

    /// Reads a payload of a known kind.
    pub fn decode(kind: Kind, bytes: &'a [u8]) -> Result<Payload<'a>, PayloadError> {
        decode(kind, bytes).ok_or(PayloadError {
            kind,
            len: bytes.len(),
        })
    }
}

/// At most 32 bytes, by value.
#[derive(Clone, Copy, Debug)]
pub struct Short {
    bytes: [u8; 32],
    len: usize,
}

impl Short {
    fn push(&mut self, bytes: &[u8]) {
        self.bytes[self.len..self.len + bytes.len()].copy_from_slice(bytes);
        self.len += bytes.len();
    }

    /// The bytes.
    pub fn as_slice(&self) -> &[u8] {
        &self.bytes[..self.len]
    }
}

fn decode(kind: Kind, bytes: &[u8]) -> Option<Payload<'_>> {
    let text = || std::str::from_utf8(bytes).ok();
    let exact = |len: usize| (bytes.len() == len).then_some(());
    Some(match kind {
        Kind::CellStart => {
            exact(8)?;
            Payload::CellStart {
                origin_ns: le_u64(bytes),
            }
        }
        Kind::Dispatch => {
            exact(8)?;
            Payload::Dispatch {
                intended_ns: le_u64(bytes),
            }
        }
        Kind::Connect => Payload::Connect { addr: text()? },
        Kind::Tls => Payload::Tls { facts: text()? },
        Kind::SendStart => {
            let (hash, head) = bytes.split_at_checked(32)?;
            Payload::SendStart {
                body: Hash(hash.try_into().ok()?),
                head,
            }
        }
        Kind::Sent => {
            exact(8)?;
            Payload::Sent {
                bytes: le_u64(bytes),
            }
        }
        Kind::Recv => Payload::Recv(bytes),
        Kind::Error => {
            exact(8)?;
            let op = match bytes[4] {
                0 => SocketOp::Connect,
                1 => SocketOp::Send,
                2 => SocketOp::Receive,
                _ => return None,
            };
            (bytes[5..] == [0; 3]).then_some(())?;
            Payload::Error {
                op,
                errno: le_u32(&bytes[..4]).cast_signed(),
            }
        }
        Kind::Timer => {
            exact(1)?;
            Payload::Timer(match bytes[0] {
                0 => Timer::Request,
                1 => Timer::Connect,
                2 => Timer::Idle,
                3 => Timer::Drain,
                _ => return None,
            })
        }
        Kind::Terminal => {
            exact(8)?;
            Payload::Terminal {
                terminal: Terminal::from_code(bytes[0])?,
                phase: Phase::from_code(bytes[1])?,
                status: u16::from_le_bytes([bytes[2], bytes[3]]),
                errno: le_u32(&bytes[4..]).cast_signed(),
            }
        }
        Kind::Clock => {
            exact(16)?;
            Payload::Clock {
                offset_ns: le_u64(&bytes[..8]).cast_signed(),
                bracket_ns: le_u64(&bytes[8..]),
            }
        }
        Kind::Driver => Payload::Driver { fact: text()? },
        Kind::Admit | Kind::Connected | Kind::Eof | Kind::Close | Kind::CellEnd => {
            exact(0)?;
            match kind {
                Kind::Admit => Payload::Admit,
                Kind::Connected => Payload::Connected,
                Kind::Eof => Payload::Eof,
                Kind::Close => Payload::Close,
                _ => Payload::CellEnd,
            }
        }
    })
}
