//! Writing: records into a segment's buffer (hot, no allocation), segments into a file (background).

use std::io::{self, Write};

use assize_units::MonoNs;

use super::payload::Payload;
use super::{FILE_HEADER_BYTES, SEGMENT_PAYLOAD_BYTES};
use super::{
    FileHeader, NONE, RECORD_HEAD_BYTES, RECORD_PAYLOAD_BYTES, SEGMENT_HEAD_BYTES, SEGMENT_MAGIC,
};

/// What a record's head carries besides kind and length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordHead {
    /// CLOCK_MONOTONIC.
    pub t: MonoNs,
    /// CLOCK_REALTIME as the kernel stamped the receive, 0 where it did not.
    pub kernel_ns: u64,
    /// The connection's number in the cell.
    pub conn: Option<u32>,
    /// The request's place in the cell.
    pub req: Option<u32>,
}

/// One segment's payload in memory.
#[derive(Debug)]
pub struct SegmentBuffer {
    bytes: Vec<u8>,
    records: u32,
}

impl Default for SegmentBuffer {
    fn default() -> Self {
        SegmentBuffer::new()
    }
}

impl SegmentBuffer {
    /// An empty segment with all its memory reserved and touched.
    pub fn new() -> SegmentBuffer {
        // Zeroes would be pages that nobody has touched yet.
        let mut bytes = vec![u8::MAX; SEGMENT_PAYLOAD_BYTES];
        bytes.clear();
        SegmentBuffer { bytes, records: 0 }
    }

    /// Appends a record; false where it no longer fits. One copy, no allocation.
    #[must_use]
    pub fn push(&mut self, head: RecordHead, payload: &Payload<'_>) -> bool {
        let (short, rest) = payload.parts();
        let short = short.as_slice();
        let len = short.len() + rest.len();
        let whole = padded_len(len);
        if self.bytes.len() + whole > SEGMENT_PAYLOAD_BYTES {
            return false;
        }
        let mut bytes = [0; RECORD_HEAD_BYTES];
        bytes[0] = payload.kind() as u8;
        bytes[4..8].copy_from_slice(&(len as u32).to_le_bytes());
        bytes[8..16].copy_from_slice(&head.t.0.to_le_bytes());
        bytes[16..24].copy_from_slice(&head.kernel_ns.to_le_bytes());
        bytes[24..28].copy_from_slice(&head.conn.unwrap_or(NONE).to_le_bytes());
        bytes[28..32].copy_from_slice(&head.req.unwrap_or(NONE).to_le_bytes());
        self.bytes.extend_from_slice(&bytes);
        self.bytes.extend_from_slice(short);
        self.bytes.extend_from_slice(rest);
        self.bytes
            .resize(self.bytes.len() + whole - RECORD_HEAD_BYTES - len, 0);
        self.records += 1;
        true
    }

    /// Whether it holds no record.
    pub fn is_empty(&self) -> bool {
        self.records == 0
    }

    /// The payload's bytes, for masking secrets before they are written. Lengths never change.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        &mut self.bytes
    }

    /// Empties it and keeps its memory.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.records = 0;
    }
}

/// Bytes that a record with a payload of `len` takes, its head included.
pub fn padded_len(len: usize) -> usize {
    debug_assert!(len <= RECORD_PAYLOAD_BYTES, "a record never spans segments");
    RECORD_HEAD_BYTES + len.next_multiple_of(8)
}

/// Writes segments, each bound to the one before it.
#[derive(Debug)]
pub struct WireWriter<W: Write> {
    out: W,
    seq: u32,
    prev_crc: u32,
}

impl<W: Write> WireWriter<W> {
    /// Writes the file header.
    pub fn new(mut out: W, header: FileHeader) -> io::Result<WireWriter<W>> {
        let bytes: [u8; FILE_HEADER_BYTES] = header.to_bytes();
        out.write_all(&bytes)?;
        Ok(WireWriter {
            out,
            seq: 0,
            prev_crc: crc32c::crc32c(&bytes),
        })
    }

    /// Writes one segment; an empty one is left out.
    pub fn write(&mut self, segment: &SegmentBuffer) -> io::Result<()> {
        if segment.is_empty() {
            return Ok(());
        }
        let mut head = [0; SEGMENT_HEAD_BYTES];
        head[..4].copy_from_slice(SEGMENT_MAGIC);
        head[4..8].copy_from_slice(&self.seq.to_le_bytes());
        head[8..12].copy_from_slice(&(segment.bytes.len() as u32).to_le_bytes());
        head[12..16].copy_from_slice(&segment.records.to_le_bytes());
        head[16..20].copy_from_slice(&crc32c::crc32c(&segment.bytes).to_le_bytes());
        head[20..24].copy_from_slice(&self.prev_crc.to_le_bytes());
        let own = crc32c::crc32c(&head[..24]);
        head[24..28].copy_from_slice(&own.to_le_bytes());
        self.out.write_all(&head)?;
        self.out.write_all(&segment.bytes)?;
        self.out.flush()?;
        self.prev_crc = crc32c::crc32c(&head);
        self.seq += 1;
        Ok(())
    }

    /// The file below.
    pub fn into_inner(self) -> W {
        self.out
    }

    /// The file below.
    pub fn get_mut(&mut self) -> &mut W {
        &mut self.out
    }
}
