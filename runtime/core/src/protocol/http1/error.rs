//! How a response can be wrong.

/// Why a response could not be taken. A closed set, so that a caller maps each by a total match.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
pub enum Http1Error {
    /// The bytes do not begin with a status line of HTTP/1.0 or HTTP/1.1.
    #[error("malformed status line")]
    BadStatusLine,
    /// A header field breaks the grammar, or is folded over two lines.
    #[error("malformed header field")]
    BadHeader,
    /// 101, although no upgrade was asked for.
    #[error("101 Switching Protocols without an upgrade having been asked for")]
    UnexpectedUpgrade,
    /// A `Content-Length` that is no number of at most 64 bits, or more than one.
    #[error("malformed or repeated Content-Length")]
    BadContentLength,
    /// A `Transfer-Encoding` other than `chunked` alone, or in HTTP/1.0.
    #[error("Transfer-Encoding other than chunked alone, or in HTTP/1.0")]
    BadTransferEncoding,
    /// `Transfer-Encoding` and `Content-Length` in one head.
    #[error("Transfer-Encoding and Content-Length together")]
    AmbiguousFraming,
    /// A chunk size without a digit, with more than 16, or followed by something else.
    #[error("malformed chunk size")]
    BadChunkSize,
    /// Chunk framing without its CRLF, or a control character in a chunk extension.
    #[error("malformed chunk framing")]
    BadChunk,
    /// A trailer field breaks the grammar.
    #[error("malformed trailer field")]
    BadTrailer,
    /// A head longer than its limit.
    #[error("head over its limit")]
    HeadTooLarge,
    /// More header fields than the limit.
    #[error("header fields over their limit")]
    TooManyHeaders,
    /// More interim answers than the limit.
    #[error("interim answers over their limit")]
    TooManyInterim,
    /// A chunk-size line longer than its limit.
    #[error("chunk-size line over its limit")]
    ChunkLineTooLarge,
    /// Trailers longer, or more fields in them, than their limit.
    #[error("trailers over their limit")]
    TrailersTooLarge,
    /// A body longer than its limit.
    #[error("body over its limit")]
    BodyTooLarge,
    /// The connection ended before the first byte of a final head.
    #[error("connection ended before a response")]
    EofBeforeResponse,
    /// The connection ended within a head.
    #[error("connection ended within a head")]
    EofInHead,
    /// The connection ended within body bytes that the framing had promised.
    #[error("connection ended within the body")]
    EofInBody,
    /// The connection ended within chunk framing: before the last chunk or its final CRLF.
    #[error("connection ended within chunk framing")]
    EofInChunkFraming,
}

/// The classes of [`Http1Error`] that a terminal state tells apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ErrorGroup {
    /// The head breaks the grammar, or says what was not asked for.
    MalformedHead,
    /// The length of the body can't be known, or its chunks break the grammar.
    MalformedFraming,
    /// The connection ended within a response that had begun.
    Truncated,
    /// A limit was passed.
    TooLarge,
    /// The connection ended before any byte of a final response.
    EofBeforeResponse,
}

impl Http1Error {
    /// The class of this error.
    pub fn group(self) -> ErrorGroup {
        match self {
            Http1Error::BadStatusLine | Http1Error::BadHeader | Http1Error::UnexpectedUpgrade => {
                ErrorGroup::MalformedHead
            }
            Http1Error::BadContentLength
            | Http1Error::BadTransferEncoding
            | Http1Error::AmbiguousFraming
            | Http1Error::BadChunkSize
            | Http1Error::BadChunk
            | Http1Error::BadTrailer => ErrorGroup::MalformedFraming,
            Http1Error::HeadTooLarge
            | Http1Error::TooManyHeaders
            | Http1Error::TooManyInterim
            | Http1Error::ChunkLineTooLarge
            | Http1Error::TrailersTooLarge
            | Http1Error::BodyTooLarge => ErrorGroup::TooLarge,
            Http1Error::EofInHead | Http1Error::EofInBody | Http1Error::EofInChunkFraming => {
                ErrorGroup::Truncated
            }
            Http1Error::EofBeforeResponse => ErrorGroup::EofBeforeResponse,
        }
    }

    /// The name by which conformance cases and records call this error.
    pub fn name(self) -> &'static str {
        match self {
            Http1Error::BadStatusLine => "bad_status_line",
            Http1Error::BadHeader => "bad_header",
            Http1Error::UnexpectedUpgrade => "unexpected_upgrade",
            Http1Error::BadContentLength => "bad_content_length",
            Http1Error::BadTransferEncoding => "bad_transfer_encoding",
            Http1Error::AmbiguousFraming => "ambiguous_framing",
            Http1Error::BadChunkSize => "bad_chunk_size",
            Http1Error::BadChunk => "bad_chunk",
            Http1Error::BadTrailer => "bad_trailer",
            Http1Error::HeadTooLarge | Http1Error::TooManyHeaders => "header_limit",
            Http1Error::TooManyInterim => "interim_limit",
            Http1Error::ChunkLineTooLarge => "chunk_line_limit",
            Http1Error::TrailersTooLarge => "trailer_limit",
            Http1Error::BodyTooLarge => "body_limit",
            Http1Error::EofBeforeResponse => "eof_before_response",
            Http1Error::EofInHead => "eof_in_head",
            Http1Error::EofInBody | Http1Error::EofInChunkFraming => "incomplete_body",
        }
    }
}
