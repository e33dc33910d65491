//! How a target's bytes are laid out: a seed for the read sizes, flags, and the stream.

/// Bytes before the stream: eight of the seed, one of flags.
const HEADER_BYTES: usize = 9;

/// A version of TLS.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TlsVersion {
    V12,
    V13,
}

/// One input of a target.
pub(crate) struct Input<'d> {
    /// The peer closes after the stream.
    pub eof: bool,
    /// Small limits are in force.
    pub small: bool,
    /// The stream comes after a TLS handshake, in TLS 1.2 or 1.3.
    pub established: Option<TlsVersion>,
    pub stream: &'d [u8],
    seed: u64,
}

impl<'d> Input<'d> {
    /// `None` where `data` is too short to hold a stream.
    pub(crate) fn of(data: &'d [u8]) -> Option<Input<'d>> {
        let (header, stream) = data.split_at_checked(HEADER_BYTES)?;
        let (seed, flags) = header.split_first_chunk::<8>()?;
        Some(Input {
            eof: flags[0] & 1 != 0,
            small: flags[0] & 2 != 0,
            established: match flags[0] & 0b1100 {
                0b0100 => Some(TlsVersion::V13),
                0b1100 => Some(TlsVersion::V12),
                _ => None,
            },
            stream,
            seed: u64::from_le_bytes(*seed),
        })
    }

    /// The stream as one read.
    pub(crate) fn whole(&self) -> Vec<&'d [u8]> {
        vec![self.stream]
    }

    /// The stream byte by byte.
    pub(crate) fn bytewise(&self) -> Vec<&'d [u8]> {
        self.stream.chunks(1).collect()
    }

    /// The stream in reads whose sizes the seed draws: mostly small ones.
    pub(crate) fn drawn(&self) -> Vec<&'d [u8]> {
        let mut state = self.seed;
        let mut rest = self.stream;
        let mut reads = Vec::new();
        while !rest.is_empty() {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            let most = 1_usize << (state >> 60);
            let size = 1 + (state >> 33) as usize % most;
            let (read, after) = rest.split_at(size.min(rest.len()));
            reads.push(read);
            rest = after;
        }
        reads
    }
}

/// The index of the read that holds the stream's byte at `at`.
pub(crate) fn read_of(reads: &[&[u8]], at: usize) -> usize {
    let mut end = 0;
    reads
        .iter()
        .position(|read| {
            end += read.len();
            at < end
        })
        .expect("a byte of the stream")
}
