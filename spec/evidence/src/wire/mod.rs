//! `wire.log`: every send and receive of a cell with its time and the received bytes.
//!
//! ```text
//! file    = header (64 B), then segments
//! segment = head (32 B), then a payload of at most 1 MiB
//! record  = head (32 B), then `len` bytes, zero-padded to a multiple of 8; never across segments
//! ```
//!
//! All integers are little-endian. A segment's head carries the checksum of its payload and of the
//! head before it, so that a cut, swapped or altered segment is found; one that fails ends the file.

mod payload;
mod reader;
mod writer;

pub use payload::{Payload, PayloadError, SocketOp, Timer};
pub use reader::{Record, WireEnd, WireError, WireReader};
pub use writer::{RecordHead, SegmentBuffer, WireWriter, padded_len};

use assize_plan::Hash;
use assize_units::MonoNs;

/// The first 8 bytes of a wire log.
pub const MAGIC: &[u8; 8] = b"ASSIZEW1";
/// The first 4 bytes of a segment.
pub const SEGMENT_MAGIC: &[u8; 4] = b"SEG1";
/// The version in the file header.
pub const VERSION: u16 = 1;
/// Bytes of the file header.
pub const FILE_HEADER_BYTES: usize = 64;
/// Bytes of a segment's head.
pub const SEGMENT_HEAD_BYTES: usize = 32;
/// Bytes of a record's head.
pub const RECORD_HEAD_BYTES: usize = 32;
/// Bytes of a segment's payload at most.
pub const SEGMENT_PAYLOAD_BYTES: usize = 1 << 20;
/// Bytes that one record can carry at most.
pub const RECORD_PAYLOAD_BYTES: usize = SEGMENT_PAYLOAD_BYTES - RECORD_HEAD_BYTES;
/// `conn` or `req` of a record that belongs to none.
pub const NONE: u32 = u32::MAX;

/// What a record says. Unknown kinds are skipped and counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Kind {
    /// The cell's origin is set.
    CellStart = 1,
    /// The load machine handed the request over.
    Dispatch = 2,
    /// The request was let go.
    Admit = 3,
    /// A connection is being made.
    Connect = 4,
    /// The connection stands.
    Connected = 5,
    /// The TLS handshake is complete.
    Tls = 6,
    /// The send was submitted.
    SendStart = 7,
    /// The kernel accepted the last byte.
    Sent = 8,
    /// Bytes came.
    Recv = 9,
    /// The peer ended its side.
    Eof = 10,
    /// An operation of the system failed.
    Error = 11,
    /// The client closes the connection.
    Close = 12,
    /// A deadline passed.
    Timer = 13,
    /// The request ended.
    Terminal = 14,
    /// Wall clock against monotonic clock.
    Clock = 15,
    /// A fact of the driver.
    Driver = 16,
    /// The cell has ended.
    CellEnd = 17,
}

impl Kind {
    /// Every kind, in the order of its byte.
    pub const ALL: &[Kind] = &[
        Kind::CellStart,
        Kind::Dispatch,
        Kind::Admit,
        Kind::Connect,
        Kind::Connected,
        Kind::Tls,
        Kind::SendStart,
        Kind::Sent,
        Kind::Recv,
        Kind::Eof,
        Kind::Error,
        Kind::Close,
        Kind::Timer,
        Kind::Terminal,
        Kind::Clock,
        Kind::Driver,
        Kind::CellEnd,
    ];

    /// The kind of a byte.
    pub fn from_code(code: u8) -> Option<Kind> {
        Kind::ALL.get(usize::from(code).checked_sub(1)?).copied()
    }
}

/// The file header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileHeader {
    /// The unit's number in the plan.
    pub unit: u32,
    /// The cell's place in its unit; [`NONE`] for the warmup.
    pub cell: u32,
    /// The plan's hash.
    pub plan: Hash,
    /// The clock when the file was begun.
    pub begun: MonoNs,
}

impl FileHeader {
    /// The 64 bytes.
    pub fn to_bytes(&self) -> [u8; FILE_HEADER_BYTES] {
        let mut bytes = [0; FILE_HEADER_BYTES];
        bytes[..8].copy_from_slice(MAGIC);
        bytes[8..10].copy_from_slice(&VERSION.to_le_bytes());
        bytes[12..16].copy_from_slice(&self.unit.to_le_bytes());
        bytes[16..48].copy_from_slice(&self.plan.0);
        bytes[48..56].copy_from_slice(&self.begun.0.to_le_bytes());
        bytes[56..60].copy_from_slice(&self.cell.to_le_bytes());
        bytes
    }

    /// Reads the 64 bytes; flags and the reserved word must be zero.
    pub fn from_bytes(bytes: &[u8; FILE_HEADER_BYTES]) -> Result<FileHeader, WireError> {
        if &bytes[..8] != MAGIC {
            return Err(WireError::NotAWireLog);
        }
        let version = u16::from_le_bytes([bytes[8], bytes[9]]);
        if version != VERSION {
            return Err(WireError::Version(version));
        }
        if bytes[10..12] != [0; 2] || bytes[60..64] != [0; 4] {
            return Err(WireError::Reserved);
        }
        let mut plan = [0; 32];
        plan.copy_from_slice(&bytes[16..48]);
        Ok(FileHeader {
            unit: le_u32(&bytes[12..16]),
            cell: le_u32(&bytes[56..60]),
            plan: Hash(plan),
            begun: MonoNs(le_u64(&bytes[48..56])),
        })
    }
}

fn le_u32(bytes: &[u8]) -> u32 {
    u32::from_le_bytes(bytes.try_into().expect("four bytes"))
}

fn le_u64(bytes: &[u8]) -> u64 {
    u64::from_le_bytes(bytes.try_into().expect("eight bytes"))
}
