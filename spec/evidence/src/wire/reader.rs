//! Reading: one segment at a time, so that memory stays within one segment.

use std::io::{self, Read};

use assize_units::MonoNs;

use super::payload::{Payload, PayloadError};
use super::{
    FILE_HEADER_BYTES, FileHeader, Kind, NONE, RECORD_HEAD_BYTES, RecordHead, SEGMENT_HEAD_BYTES,
    SEGMENT_MAGIC, SEGMENT_PAYLOAD_BYTES, VERSION, le_u32, le_u64, padded_len,
};

/// Why a wire log cannot be read at all.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WireError {
    /// The first bytes are not those of a wire log.
    #[error("not a wire log")]
    NotAWireLog,
    /// It is of another version.
    #[error("wire log version {0}, this build reads {VERSION}")]
    Version(u16),
    /// Flags or reserved bytes are set.
    #[error("reserved bytes of the header are set")]
    Reserved,
    /// The header is cut.
    #[error("the header is cut")]
    CutHeader,
    /// A record of a known kind is malformed although its segment's checksum holds.
    #[error("segment {seq}: {source}")]
    Payload {
        /// The segment.
        seq: u32,
        /// What is wrong.
        source: PayloadError,
    },
    /// A record's length or padding is wrong although its segment's checksum holds.
    #[error("segment {0}: records do not fill their segment")]
    Records(u32),
    /// The file cannot be read.
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// How the segments of a file ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WireEnd {
    /// After a whole segment.
    Clean,
    /// Inside segment `seq`: cut off, or its checksum fails.
    Broken {
        /// The segment that could not be read.
        seq: u32,
        /// The time of the last record before it.
        after: Option<MonoNs>,
        /// Whether bytes are missing, or present and wrong.
        cut: bool,
    },
}

/// One record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record<'a> {
    /// Times and owners.
    pub head: RecordHead,
    /// What it says.
    pub payload: Payload<'a>,
}

/// Reads a wire log segment by segment.
#[derive(Debug)]
pub struct WireReader<R: Read> {
    input: R,
    header: FileHeader,
    prev_crc: u32,
    seq: u32,
    segment: Vec<u8>,
    last: Option<MonoNs>,
    unknown: u64,
    end: Option<WireEnd>,
}

impl<R: Read> WireReader<R> {
    /// Reads the file header.
    pub fn new(mut input: R) -> Result<WireReader<R>, WireError> {
        let mut bytes = [0; FILE_HEADER_BYTES];
        if read_up_to(&mut input, &mut bytes)? < FILE_HEADER_BYTES {
            return Err(if bytes.starts_with(b"ASSIZEW") {
                WireError::CutHeader
            } else {
                WireError::NotAWireLog
            });
        }
        let header = FileHeader::from_bytes(&bytes)?;
        Ok(WireReader {
            input,
            header,
            prev_crc: crc32c::crc32c(&bytes),
            seq: 0,
            segment: Vec::new(),
            last: None,
            unknown: 0,
            end: None,
        })
    }

    /// The file header.
    pub fn header(&self) -> &FileHeader {
        &self.header
    }

    /// Records of unknown kinds that were skipped so far.
    pub fn unknown_records(&self) -> u64 {
        self.unknown
    }

    /// How the file ended, once `next_segment` has returned false.
    pub fn end(&self) -> Option<WireEnd> {
        self.end
    }

    /// Hands every record of the next segment to `take`; false at the end of the file.
    pub fn next_segment(&mut self, mut take: impl FnMut(Record<'_>)) -> Result<bool, WireError> {
        if self.end.is_some() || !self.load_segment()? {
            return Ok(false);
        }
        let seq = self.seq - 1;
        let mut rest = self.segment.as_slice();
        while !rest.is_empty() {
            let Some((head, after)) = rest.split_at_checked(RECORD_HEAD_BYTES) else {
                return Err(WireError::Records(seq));
            };
            let len = le_u32(&head[4..8]) as usize;
            if len > after.len() {
                return Err(WireError::Records(seq));
            }
            let whole = padded_len(len) - RECORD_HEAD_BYTES;
            let padding = after.get(len..whole).ok_or(WireError::Records(seq))?;
            if padding.iter().any(|byte| *byte != 0) || head[1..4] != [0; 3] {
                return Err(WireError::Records(seq));
            }
            rest = &after[whole..];
            let owner = |bytes: &[u8]| Some(le_u32(bytes)).filter(|n| *n != NONE);
            let record_head = RecordHead {
                t: MonoNs(le_u64(&head[8..16])),
                kernel_ns: le_u64(&head[16..24]),
                conn: owner(&head[24..28]),
                req: owner(&head[28..32]),
            };
            self.last = Some(record_head.t);
            let Some(kind) = Kind::from_code(head[0]) else {
                self.unknown += 1;
                continue;
            };
            let payload = Payload::decode(kind, &after[..len])
                .map_err(|source| WireError::Payload { seq, source })?;
            take(Record {
                head: record_head,
                payload,
            });
        }
        Ok(true)
    }

    /// Reads and checks the next segment into memory; false at the end, which is then told.
    fn load_segment(&mut self) -> Result<bool, WireError> {
        let mut head = [0; SEGMENT_HEAD_BYTES];
        let read = read_up_to(&mut self.input, &mut head)?;
        if read == 0 {
            self.end = Some(WireEnd::Clean);
            return Ok(false);
        }
        let len = le_u32(&head[8..12]) as usize;
        let sound = read == SEGMENT_HEAD_BYTES
            && &head[..4] == SEGMENT_MAGIC
            && le_u32(&head[4..8]) == self.seq
            && le_u32(&head[20..24]) == self.prev_crc
            && le_u32(&head[24..28]) == crc32c::crc32c(&head[..24])
            && head[28..] == [0; 4]
            && len <= SEGMENT_PAYLOAD_BYTES;
        if !sound {
            return Ok(self.broken(read < SEGMENT_HEAD_BYTES));
        }
        self.segment.resize(len, 0);
        if read_up_to(&mut self.input, &mut self.segment)? < len {
            return Ok(self.broken(true));
        }
        if crc32c::crc32c(&self.segment) != le_u32(&head[16..20]) {
            return Ok(self.broken(false));
        }
        self.prev_crc = crc32c::crc32c(&head);
        self.seq += 1;
        Ok(true)
    }

    fn broken(&mut self, cut: bool) -> bool {
        self.end = Some(WireEnd::Broken {
            seq: self.seq,
            after: self.last,
            cut,
        });
        false
    }
}

/// Reads until the buffer is full or the input ends.
fn read_up_to(input: &mut impl Read, buffer: &mut [u8]) -> io::Result<usize> {
    let mut filled = 0;
    while filled < buffer.len() {
        match input.read(&mut buffer[filled..]) {
            Ok(0) => break,
            Ok(read) => filled += read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(filled)
}
