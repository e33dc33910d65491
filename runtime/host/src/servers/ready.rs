//! Whether a server is ready: one plain HTTP request, strictly read.
#![expect(
    clippy::disallowed_methods,
    reason = "waiting for a server is no part of a measurement and needs no driver; its limits are \
              the operating system's clock"
)]

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

/// Longest head of an answer.
const HEAD_BYTES: usize = 16 << 10;
/// How much of the body, and for how long, is read so that the server need not see a reset.
const BODY_BYTES: usize = 64 << 10;
const BODY_WITHIN: Duration = Duration::from_millis(200);

/// Why a server did not answer the question.
#[derive(Debug, thiserror::Error)]
pub(super) enum Unanswered {
    /// No connection, or it broke, or time ran out.
    #[error("{0}")]
    Io(#[from] io::Error),
    /// What came is no HTTP/1 answer.
    #[error("the answer is not HTTP/1.1")]
    NotHttp,
}

/// Asks `GET path` and returns the status. `limit` bounds each of connecting and answering.
pub(super) fn ask(
    address: SocketAddr,
    host: &str,
    path: &str,
    limit: Duration,
) -> Result<u16, Unanswered> {
    let mut stream = TcpStream::connect_timeout(&address, limit)?;
    let until = Instant::now() + limit;
    let request = format!(
        "GET {path} HTTP/1.1\r\nHost: {host}\r\nAccept: */*\r\nUser-Agent: assize\r\n\
         Connection: close\r\n\r\n"
    );
    stream.set_write_timeout(Some(limit))?;
    stream.write_all(request.as_bytes())?;
    let head = read_head(&mut stream, until)?;
    let status = parse_status(&head).ok_or(Unanswered::NotHttp)?;
    drain(&mut stream);
    Ok(status)
}

/// Whether a path can stand in a request line as it is.
pub(super) fn is_path(path: &str) -> bool {
    path.starts_with('/') && path.len() <= 2048 && path.bytes().all(|byte| byte.is_ascii_graphic())
}

/// Reads up to the empty line that ends the head.
fn read_head(stream: &mut TcpStream, until: Instant) -> Result<Vec<u8>, Unanswered> {
    let mut head = Vec::new();
    let mut piece = [0; 2048];
    while !head.windows(4).any(|bytes| bytes == b"\r\n\r\n") {
        if head.len() >= HEAD_BYTES {
            return Err(Unanswered::NotHttp);
        }
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(io::Error::from(io::ErrorKind::TimedOut).into());
        }
        stream.set_read_timeout(Some(left))?;
        match stream.read(&mut piece) {
            Ok(0) => return Err(io::Error::from(io::ErrorKind::UnexpectedEof).into()),
            Ok(taken) => head.extend_from_slice(&piece[..taken]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                return Err(io::Error::from(io::ErrorKind::TimedOut).into());
            }
            Err(error) => return Err(error.into()),
        }
    }
    Ok(head)
}

/// `HTTP/1.1 204 No Content` and `HTTP/1.0 200`: a version, one blank, three digits.
fn parse_status(head: &[u8]) -> Option<u16> {
    let line = head.split(|byte| *byte == b'\r').next()?;
    let rest = line
        .strip_prefix(b"HTTP/1.1 ")
        .or_else(|| line.strip_prefix(b"HTTP/1.0 "))?;
    let (digits, reason) = rest.split_at_checked(3)?;
    let whole = reason.is_empty() || reason[0] == b' ';
    if !whole || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    std::str::from_utf8(digits).ok()?.parse().ok()
}

/// Takes what follows the head, if it is little and comes at once.
fn drain(stream: &mut TcpStream) {
    let until = Instant::now() + BODY_WITHIN;
    let mut piece = [0; 4096];
    let mut taken = 0;
    while taken < BODY_BYTES {
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() || stream.set_read_timeout(Some(left)).is_err() {
            return;
        }
        match stream.read(&mut piece) {
            Ok(0) | Err(_) => return,
            Ok(more) => taken += more,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;

    #[test]
    fn a_status_line_is_read_strictly() {
        let status = |line: &str| parse_status(format!("{line}\r\na: b\r\n\r\n").as_bytes());
        assert_eq!(status("HTTP/1.1 200 OK"), Some(200));
        assert_eq!(status("HTTP/1.0 503"), Some(503));
        for line in [
            "HTTP/2 200",
            "HTTP/1.1  200",
            "HTTP/1.1 20",
            "HTTP/1.1 2000",
            "HTTP/1.1 +20",
            "ok",
            "",
        ] {
            assert_eq!(status(line), None, "{line:?}");
        }
    }

    #[test]
    fn a_path_holds_no_blank_and_no_line_end() {
        assert!(is_path("/health?full=1"));
        for path in ["health", "/a b", "/a\r\nx: y", "/\u{e4}", ""] {
            assert!(!is_path(path), "{path:?}");
        }
    }

    /// Serves one connection: takes the request, sends `answer` and closes. Returns the request.
    fn exchange(answer: &[u8]) -> (Result<u16, Unanswered>, String) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let answer = answer.to_vec();
        let server = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let mut request = Vec::new();
            let mut byte = [0];
            while !request.ends_with(b"\r\n\r\n") && stream.read(&mut byte).unwrap() == 1 {
                request.push(byte[0]);
            }
            // A reader that gave up closes first.
            let _ = stream.write_all(&answer);
            String::from_utf8(request).unwrap()
        });
        let status = ask(address, "localhost:1", "/health", Duration::from_mins(1));
        (status, server.join().unwrap())
    }

    #[test]
    fn one_question_is_asked_and_its_status_returned() {
        let (status, request) = exchange(b"HTTP/1.1 204 No Content\r\nx: y\r\n\r\n");
        assert_eq!(status.unwrap(), 204);
        assert_eq!(
            request,
            "GET /health HTTP/1.1\r\nHost: localhost:1\r\nAccept: */*\r\nUser-Agent: assize\r\n\
             Connection: close\r\n\r\n"
        );
    }

    #[test]
    fn a_cut_head_and_an_endless_one_are_no_answer() {
        let (status, _) = exchange(b"HTTP/1.1 200 OK\r\nx: y\r\n");
        assert!(
            matches!(status, Err(Unanswered::Io(error)) if error.kind() == io::ErrorKind::UnexpectedEof)
        );
        let (status, _) = exchange(&vec![b'x'; 2 * HEAD_BYTES]);
        assert!(matches!(status, Err(Unanswered::NotHttp)));
    }
}
