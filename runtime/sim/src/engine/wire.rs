//! HTTP/1.1 answers as bytes.

/// The head of an answer.
#[derive(Clone, Copy, Debug)]
pub(super) struct ResponseHead<'a> {
    pub(super) status: u16,
    pub(super) content_type: &'static str,
    pub(super) framing: BodyFraming,
    pub(super) keep_alive: bool,
    pub(super) request_id: Option<&'a [u8]>,
    /// Says `content-encoding: gzip` although nothing is encoded.
    pub(super) gzip_claim: bool,
    pub(super) location: Option<&'static str>,
}

/// How an answer's body ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BodyFraming {
    Length(usize),
    Chunked,
    UntilClose,
}

impl ResponseHead<'_> {
    /// Appends the head with its blank line, header names in lower case as uvicorn's.
    pub(super) fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(b"HTTP/1.1 ");
        write_decimal(u64::from(self.status), out);
        out.push(b' ');
        out.extend_from_slice(reason_phrase(self.status).as_bytes());
        out.extend_from_slice(b"\r\nserver: assize-sim\r\n");
        if !self.content_type.is_empty() {
            write_header("content-type", self.content_type.as_bytes(), out);
        }
        match self.framing {
            BodyFraming::Length(length) => {
                out.extend_from_slice(b"content-length: ");
                write_decimal(length as u64, out);
                out.extend_from_slice(b"\r\n");
            }
            BodyFraming::Chunked => write_header("transfer-encoding", b"chunked", out),
            BodyFraming::UntilClose => {}
        }
        if self.gzip_claim {
            write_header("content-encoding", b"gzip", out);
        }
        if let Some(location) = self.location {
            write_header("location", location.as_bytes(), out);
        }
        if let Some(id) = self.request_id {
            write_header("x-request-id", id, out);
        }
        if !self.keep_alive || self.framing == BodyFraming::UntilClose {
            write_header("connection", b"close", out);
        }
        out.extend_from_slice(b"\r\n");
    }
}

/// Appends one chunk of a chunked body.
pub(crate) fn write_chunk(bytes: &[u8], out: &mut Vec<u8>) {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    out.reserve(bytes.len() + 20);
    let length = bytes.len() as u64;
    let digits = (64 - (length | 1).leading_zeros()).div_ceil(4);
    for place in (0..digits).rev() {
        out.push(DIGITS[(length >> (4 * place) & 15) as usize]);
    }
    out.extend_from_slice(b"\r\n");
    out.extend_from_slice(bytes);
    out.extend_from_slice(b"\r\n");
}

/// Appends a number in decimal.
pub(super) fn write_decimal(value: u64, out: &mut Vec<u8>) {
    let mut digits = [0u8; 20];
    let mut at = digits.len();
    let mut rest = value;
    loop {
        at -= 1;
        digits[at] = b'0' + (rest % 10) as u8;
        rest /= 10;
        if rest == 0 {
            break;
        }
    }
    out.extend_from_slice(&digits[at..]);
}

/// Appends a JSON list of ids, or `null`.
pub(super) fn write_ids(ids: Option<&[u32]>, out: &mut Vec<u8>) {
    let Some(ids) = ids else {
        out.extend_from_slice(b"null");
        return;
    };
    out.push(b'[');
    for (index, id) in ids.iter().enumerate() {
        if index > 0 {
            out.push(b',');
        }
        write_decimal(u64::from(*id), out);
    }
    out.push(b']');
}

fn write_header(name: &str, value: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(name.as_bytes());
    out.extend_from_slice(b": ");
    out.extend_from_slice(value);
    out.extend_from_slice(b"\r\n");
}

fn reason_phrase(status: u16) -> &'static str {
    match status {
        200 => "OK",
        301 => "Moved Permanently",
        302 => "Found",
        307 => "Temporary Redirect",
        308 => "Permanent Redirect",
        400 => "Bad Request",
        404 => "Not Found",
        405 => "Method Not Allowed",
        413 => "Payload Too Large",
        417 => "Expectation Failed",
        422 => "Unprocessable Entity",
        429 => "Too Many Requests",
        431 => "Request Header Fields Too Large",
        500 => "Internal Server Error",
        502 => "Bad Gateway",
        503 => "Service Unavailable",
        _ => "Status",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chunk_s_size_is_the_shortest_hexadecimal_number() {
        for (length, size) in [
            (1usize, "1"),
            (15, "f"),
            (16, "10"),
            (237, "ed"),
            (4096, "1000"),
        ] {
            let mut out = Vec::new();
            write_chunk(&vec![b'x'; length], &mut out);
            assert!(
                out.starts_with(format!("{size}\r\nx").as_bytes()),
                "{length}"
            );
            assert_eq!(out.len(), size.len() + length + 4);
        }
    }

    #[test]
    fn numbers_are_decimal() {
        for value in [0, 9, 10, 65_535, u64::MAX] {
            let mut out = Vec::new();
            write_decimal(value, &mut out);
            assert_eq!(out, value.to_string().as_bytes());
        }
    }
}
