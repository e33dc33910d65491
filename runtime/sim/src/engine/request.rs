//! The server's side of HTTP/1.1 requests: from received bytes to one whole request at a time.

use std::ops::Range;

/// Finds whole requests in a connection's bytes. Incremental: any split of the bytes gives the
/// same requests.
#[derive(Debug)]
pub(crate) struct RequestReader {
    buffer: Vec<u8>,
    state: State,
    max_head: usize,
    max_body: usize,
}

/// What the bytes so far amount to.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Progress {
    /// More bytes are needed.
    Wait,
    /// The client waits for `100 Continue` before it sends its body; said once a request.
    Expects,
    /// A whole request; take it by [`RequestReader::take`].
    Ready,
    /// The bytes are no request: answer so and close.
    Malformed(Malformed),
}

/// Why bytes are no request that this server serves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Malformed {
    /// The head does not parse.
    Head,
    /// The head is longer than allowed.
    HeadTooLong,
    /// The framing is ambiguous or not served.
    Framing,
    /// A chunk does not parse.
    Chunk,
    /// The body is longer than allowed.
    BodyTooLong,
    /// The expectation is not `100-continue`.
    Expectation,
}

/// The parts of a head that decide an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RequestHead {
    pub(super) method: Method,
    pub(super) path: String,
    pub(super) keep_alive: bool,
    /// HTTP/1.1 or later: an answer may be chunked.
    pub(super) chunked_answer: bool,
    pub(super) request_id: Option<Vec<u8>>,
}

/// A request's method, as far as this server tells them apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Method {
    Get,
    Post,
    Other,
}

/// A whole request: its head, and where its body lies.
#[derive(Debug)]
pub(super) struct Request {
    pub(super) head: RequestHead,
    body: Body,
}

#[derive(Debug)]
enum Body {
    InBuffer(Range<usize>),
    Decoded(Vec<u8>),
}

#[derive(Debug)]
enum State {
    /// Looking for the blank line; bytes before the index were searched already.
    Head(usize),
    Length {
        head: RequestHead,
        body: Range<usize>,
    },
    Chunked {
        head: RequestHead,
        decoder: ChunkDecoder,
        at: usize,
    },
    Ready(Request, usize),
    Failed(Malformed),
}

impl RequestReader {
    pub(crate) fn new(max_head: usize, max_body: usize) -> RequestReader {
        RequestReader {
            buffer: Vec::new(),
            state: State::Head(0),
            max_head,
            max_body,
        }
    }

    /// Appends received bytes. False when a client sends more ahead than is kept: drop it.
    pub(crate) fn receive(&mut self, bytes: &[u8]) -> bool {
        if matches!(self.state, State::Failed(_)) {
            return true;
        }
        // One whole chunked request may be undecoded beside a head; four times covers its framing.
        let limit = self.max_head.saturating_add(self.max_body) * 4;
        if self.buffer.len() + bytes.len() > limit {
            return false;
        }
        self.buffer.extend_from_slice(bytes);
        true
    }

    /// Whether no byte of a further request has arrived.
    pub(super) fn is_idle(&self) -> bool {
        self.buffer.is_empty() && matches!(self.state, State::Head(_))
    }

    /// Whether the head of the next request has arrived, once the bytes were polled.
    pub(crate) fn has_head(&self) -> bool {
        !matches!(self.state, State::Head(_) | State::Failed(_))
    }

    /// Goes as far as the bytes allow.
    pub(crate) fn poll(&mut self) -> Progress {
        loop {
            match self.advance() {
                Ok(Some(progress)) => return progress,
                Ok(None) => {}
                Err(malformed) => {
                    self.state = State::Failed(malformed);
                    self.buffer = Vec::new();
                }
            }
        }
    }

    /// The request that [`Progress::Ready`] announced; its body is handed to `with`. Then the
    /// reader stands at the next request.
    pub(crate) fn take<R>(&mut self, with: impl FnOnce(&RequestHead, &[u8]) -> R) -> Option<R> {
        let State::Ready(request, end) = std::mem::replace(&mut self.state, State::Head(0)) else {
            return None;
        };
        let body = match &request.body {
            Body::InBuffer(range) => self.buffer.get(range.clone()).unwrap_or_default(),
            Body::Decoded(bytes) => bytes,
        };
        let result = with(&request.head, body);
        self.buffer.drain(..end.min(self.buffer.len()));
        if self.buffer.is_empty() && self.buffer.capacity() > 1 << 20 {
            self.buffer = Vec::new();
        }
        Some(result)
    }

    /// One transition; `None` asks for another.
    fn advance(&mut self) -> Result<Option<Progress>, Malformed> {
        match &mut self.state {
            State::Head(searched) => {
                let Some(end) = find_blank_line(&self.buffer, *searched) else {
                    *searched = self.buffer.len().saturating_sub(3);
                    if self.buffer.len() > self.max_head {
                        return Err(Malformed::HeadTooLong);
                    }
                    return Ok(Some(Progress::Wait));
                };
                self.enter_body(end)
            }
            State::Length { body, .. } if self.buffer.len() < body.end => Ok(Some(Progress::Wait)),
            State::Length { head, body } => {
                let (head, body) = (head.clone(), body.clone());
                let end = body.end;
                let body = Body::InBuffer(body);
                self.state = State::Ready(Request { head, body }, end);
                Ok(None)
            }
            State::Chunked { head, decoder, at } => {
                let done = decoder.decode(&self.buffer, at, self.max_body)?;
                // What is decoded need not be kept twice.
                self.buffer.drain(..*at);
                *at = 0;
                if !done {
                    return Ok(Some(Progress::Wait));
                }
                let body = Body::Decoded(std::mem::take(&mut decoder.body));
                let head = head.clone();
                self.state = State::Ready(Request { head, body }, 0);
                Ok(None)
            }
            State::Ready(..) => Ok(Some(Progress::Ready)),
            State::Failed(malformed) => Ok(Some(Progress::Malformed(*malformed))),
        }
    }

    fn enter_body(&mut self, end: usize) -> Result<Option<Progress>, Malformed> {
        if end > self.max_head {
            return Err(Malformed::HeadTooLong);
        }
        let (head, framing, expects) = parse_head(&self.buffer[..end])?;
        let waits = match framing {
            Framing::Length(length) => {
                let length = usize::try_from(length).map_err(|_| Malformed::BodyTooLong)?;
                if length > self.max_body {
                    return Err(Malformed::BodyTooLong);
                }
                let body = end..end + length;
                let waits = self.buffer.len() < body.end;
                self.state = State::Length { head, body };
                waits
            }
            Framing::Chunked => {
                self.state = State::Chunked {
                    head,
                    decoder: ChunkDecoder::default(),
                    at: end,
                };
                self.buffer.len() == end
            }
        };
        Ok((expects && waits).then_some(Progress::Expects))
    }
}

enum Framing {
    Length(u64),
    Chunked,
}

/// The index after the first blank line, searching from `from`.
fn find_blank_line(bytes: &[u8], from: usize) -> Option<usize> {
    let found = bytes.get(from..)?.windows(4).position(|w| w == b"\r\n\r\n");
    found.map(|place| from + place + 4)
}

fn parse_head(bytes: &[u8]) -> Result<(RequestHead, Framing, bool), Malformed> {
    let mut headers = [httparse::EMPTY_HEADER; 128];
    let mut parsed = httparse::Request::new(&mut headers);
    match parsed.parse(bytes) {
        Ok(httparse::Status::Complete(length)) if length == bytes.len() => {}
        _ => return Err(Malformed::Head),
    }
    let http11 = parsed.version == Some(1);
    let mut facts = HeaderFacts::default();
    for header in parsed.headers.iter() {
        facts.read(header.name, header.value)?;
    }
    let framing = facts.framing(http11)?;
    let method = match parsed.method {
        Some("GET") => Method::Get,
        Some("POST") => Method::Post,
        _ => Method::Other,
    };
    let target = parsed.path.unwrap_or_default();
    let path = target.split('?').next().unwrap_or_default().to_owned();
    let head = RequestHead {
        method,
        path,
        keep_alive: (http11 && !facts.close) || (!http11 && facts.keep_alive),
        chunked_answer: http11,
        request_id: facts.request_id,
    };
    Ok((head, framing, facts.expects && http11))
}

/// What the headers say about framing and the connection.
#[derive(Default)]
struct HeaderFacts {
    length: Option<u64>,
    chunked: bool,
    close: bool,
    keep_alive: bool,
    expects: bool,
    request_id: Option<Vec<u8>>,
}

impl HeaderFacts {
    fn read(&mut self, name: &str, value: &[u8]) -> Result<(), Malformed> {
        if name.eq_ignore_ascii_case("content-length") {
            let length = parse_length(value).ok_or(Malformed::Framing)?;
            if self.length.is_some_and(|known| known != length) {
                return Err(Malformed::Framing);
            }
            self.length = Some(length);
        } else if name.eq_ignore_ascii_case("transfer-encoding") {
            if self.chunked || !value.trim_ascii().eq_ignore_ascii_case(b"chunked") {
                return Err(Malformed::Framing);
            }
            self.chunked = true;
        } else if name.eq_ignore_ascii_case("connection") {
            for option in value.split(|byte| *byte == b',') {
                self.close |= option.trim_ascii().eq_ignore_ascii_case(b"close");
                self.keep_alive |= option.trim_ascii().eq_ignore_ascii_case(b"keep-alive");
            }
        } else if name.eq_ignore_ascii_case("expect") {
            if !value.trim_ascii().eq_ignore_ascii_case(b"100-continue") {
                return Err(Malformed::Expectation);
            }
            self.expects = true;
        } else if name.eq_ignore_ascii_case("x-request-id") {
            self.request_id = Some(value.to_vec());
        }
        Ok(())
    }

    fn framing(&self, http11: bool) -> Result<Framing, Malformed> {
        match (self.chunked, self.length) {
            (true, Some(_)) => Err(Malformed::Framing),
            (true, None) if !http11 => Err(Malformed::Framing),
            (true, None) => Ok(Framing::Chunked),
            (false, length) => Ok(Framing::Length(length.unwrap_or(0))),
        }
    }
}

fn parse_length(value: &[u8]) -> Option<u64> {
    let digits = value.trim_ascii();
    if digits.is_empty() || digits.len() > 19 || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    std::str::from_utf8(digits).ok()?.parse().ok()
}

/// Decodes a chunked request body.
#[derive(Debug, Default)]
struct ChunkDecoder {
    body: Vec<u8>,
    part: ChunkPart,
    trailer_bytes: usize,
}

#[derive(Clone, Copy, Debug, Default)]
enum ChunkPart {
    #[default]
    Size,
    Data(usize),
    DataEnd,
    Trailer,
}

/// Longest chunk-size line with its extension, and longest trailer section.
const MAX_CHUNK_LINE: usize = 1024;
const MAX_TRAILERS: usize = 16 << 10;

impl ChunkDecoder {
    /// Consumes from `bytes[*at..]`; true when the last chunk and its trailers are read.
    fn decode(&mut self, bytes: &[u8], at: &mut usize, max_body: usize) -> Result<bool, Malformed> {
        loop {
            let rest = &bytes[*at..];
            match self.part {
                ChunkPart::Size => {
                    let Some(line) = take_line(rest, MAX_CHUNK_LINE)? else {
                        return Ok(false);
                    };
                    *at += line.len() + 2;
                    let size = parse_chunk_size(line).ok_or(Malformed::Chunk)?;
                    if size > max_body - self.body.len() {
                        return Err(Malformed::BodyTooLong);
                    }
                    self.part = match size {
                        0 => ChunkPart::Trailer,
                        size => ChunkPart::Data(size),
                    };
                }
                ChunkPart::Data(left) => {
                    let taken = left.min(rest.len());
                    self.body.extend_from_slice(&rest[..taken]);
                    *at += taken;
                    if taken < left {
                        self.part = ChunkPart::Data(left - taken);
                        return Ok(false);
                    }
                    self.part = ChunkPart::DataEnd;
                }
                ChunkPart::DataEnd => {
                    let Some(line) = take_line(rest, 0)? else {
                        return Ok(false);
                    };
                    *at += line.len() + 2;
                    self.part = ChunkPart::Size;
                }
                ChunkPart::Trailer => {
                    let left = MAX_TRAILERS - self.trailer_bytes.min(MAX_TRAILERS);
                    let Some(line) = take_line(rest, left)? else {
                        return Ok(false);
                    };
                    *at += line.len() + 2;
                    self.trailer_bytes += line.len() + 2;
                    if line.is_empty() {
                        return Ok(true);
                    }
                }
            }
        }
    }
}

/// A line without its CRLF; `None` while it is incomplete; an error when longer than `limit`.
fn take_line(bytes: &[u8], limit: usize) -> Result<Option<&[u8]>, Malformed> {
    let window = &bytes[..bytes.len().min(limit + 2)];
    if let Some(end) = window.iter().position(|byte| *byte == b'\n') {
        return match window[..end].split_last() {
            Some((b'\r', line)) => Ok(Some(line)),
            _ => Err(Malformed::Chunk),
        };
    }
    if window.len() > limit + 1 {
        return Err(Malformed::Chunk);
    }
    Ok(None)
}

fn parse_chunk_size(line: &[u8]) -> Option<usize> {
    let digits = line.split(|byte| *byte == b';').next()?.trim_ascii_end();
    if digits.is_empty() || digits.len() > 15 || !digits.iter().all(u8::is_ascii_hexdigit) {
        return None;
    }
    usize::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// All requests of `bytes` fed in pieces of `size`, then the last progress.
    fn read(bytes: &[u8], size: usize) -> (Vec<(String, Vec<u8>)>, Progress) {
        let mut reader = RequestReader::new(512, 64);
        let (mut found, mut last) = (Vec::new(), Progress::Wait);
        for piece in bytes.chunks(size) {
            assert!(reader.receive(piece));
            loop {
                last = reader.poll();
                match last {
                    Progress::Ready => {
                        found.extend(reader.take(|head, body| (head.path.clone(), body.to_vec())));
                    }
                    Progress::Expects => found.push(("100".to_owned(), Vec::new())),
                    Progress::Wait | Progress::Malformed(_) => break,
                }
            }
        }
        (found, last)
    }

    #[test]
    fn any_split_gives_the_same_requests() {
        let bytes = b"POST /a?x=1 HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\n\r\nabc\
            GET /b HTTP/1.1\r\n\r\n\
            POST /c HTTP/1.1\r\ntransfer-encoding: Chunked\r\n\r\n3;q=1\r\nabc\r\n2\r\nde\r\n0\r\nt: 1\r\n\r\n\
            GET /d HTTP/1.1\r\n\r\n";
        let paths = |found: &[(String, Vec<u8>)]| {
            found
                .iter()
                .map(|(path, _)| path.clone())
                .collect::<Vec<_>>()
        };
        let (whole, end) = read(bytes, bytes.len());
        assert_eq!(end, Progress::Wait);
        assert_eq!(paths(&whole), ["/a", "/b", "/c", "/d"]);
        assert_eq!(whole[0].1, b"abc");
        assert_eq!(whole[2].1, b"abcde");
        for size in 1..bytes.len() {
            assert_eq!(read(bytes, size).0, whole, "pieces of {size}");
        }
    }

    #[test]
    fn what_is_no_request_says_why() {
        let failed = |bytes: &[u8]| match read(bytes, bytes.len()).1 {
            Progress::Malformed(why) => why,
            other => panic!("{other:?}"),
        };
        assert_eq!(failed(b"nonsense\r\n\r\n"), Malformed::Head);
        assert_eq!(failed(&[b'a'; 600]), Malformed::HeadTooLong);
        let post = |headers: &str| format!("POST / HTTP/1.1\r\n{headers}\r\n\r\n").into_bytes();
        for headers in [
            "Content-Length: 1\r\nContent-Length: 2",
            "Content-Length: 1\r\nTransfer-Encoding: chunked",
            "Content-Length: +1",
            "Transfer-Encoding: gzip, chunked",
        ] {
            assert_eq!(failed(&post(headers)), Malformed::Framing, "{headers}");
        }
        assert_eq!(failed(&post("Content-Length: 65")), Malformed::BodyTooLong);
        assert_eq!(failed(&post("Expect: tea")), Malformed::Expectation);
        let chunked = |body: &str| {
            let mut bytes = post("Transfer-Encoding: chunked");
            bytes.extend_from_slice(body.as_bytes());
            bytes
        };
        for body in ["\r\n", ";x\r\n", "1\nab", "1\r\nabc", "0x1\r\n"] {
            assert_eq!(failed(&chunked(body)), Malformed::Chunk, "{body:?}");
        }
        assert_eq!(failed(&chunked("41\r\n")), Malformed::BodyTooLong);
        assert_eq!(
            failed(&chunked("fffffffffffffff\r\n")),
            Malformed::BodyTooLong
        );
    }

    #[test]
    fn an_expectation_is_said_once_and_only_while_the_body_is_missing() {
        let head = "POST /a HTTP/1.1\r\nContent-Length: 2\r\nExpect: 100-continue\r\n\r\n";
        let (found, _) = read(format!("{head}ab").as_bytes(), 1);
        assert_eq!(found.len(), 2);
        assert_eq!(found[0].0, "100");
        let (found, _) = read(format!("{head}ab").as_bytes(), 1000);
        assert_eq!(found.len(), 1);
    }

    proptest::proptest! {
        #[test]
        fn arbitrary_bytes_never_panic(
            bytes in proptest::collection::vec(proptest::num::u8::ANY, 0..400),
            size in 1usize..50,
        ) {
            read(&bytes, size);
        }

        #[test]
        fn arbitrary_chunks_never_panic(
            tail in "[0-9a-f;\\r\\n x]{0,80}",
            size in 1usize..50,
        ) {
            let bytes = format!("POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n{tail}");
            read(bytes.as_bytes(), size);
        }
    }
}
