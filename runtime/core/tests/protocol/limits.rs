//! Every limit, at its edge and one beyond.

use assize_core::protocol::http1::{ErrorGroup, Http1Error, Limits, ResponseParser};

use crate::drive;

fn error(limits: Limits, bytes: &str) -> Option<Http1Error> {
    let response = drive::respond(&mut ResponseParser::new(limits), &[bytes.as_bytes()], true);
    if let Some(error) = response.error {
        assert_eq!(error.group(), ErrorGroup::TooLarge);
    }
    response.error
}

#[test]
fn head_bytes() {
    let head = "HTTP/1.1 204 N\r\nA: b\r\n\r\n";
    let limits = |head_bytes| Limits {
        head_bytes,
        ..Limits::default()
    };
    assert_eq!(error(limits(head.len()), head), None);
    assert_eq!(
        error(limits(head.len() - 1), head),
        Some(Http1Error::HeadTooLarge)
    );
}

#[test]
fn a_head_that_never_ends_is_refused_at_the_limit() {
    let endless = format!("HTTP/1.1 200 OK\r\na: {}", "b".repeat(100_000));
    let mut parser = drive::parser();
    let reads: Vec<&[u8]> = endless.as_bytes().chunks(1000).collect();
    let response = drive::respond(&mut parser, &reads, false);
    assert_eq!(response.error, Some(Http1Error::HeadTooLarge));
}

#[test]
fn headers() {
    let head = |n| format!("HTTP/1.1 204 N\r\n{}\r\n", "a: b\r\n".repeat(n));
    let limits = |headers| Limits {
        headers,
        ..Limits::default()
    };
    assert_eq!(error(limits(3), &head(3)), None);
    assert_eq!(error(limits(3), &head(4)), Some(Http1Error::TooManyHeaders));
    assert_eq!(error(limits(usize::MAX), &head(256)), None);
    assert_eq!(
        error(limits(usize::MAX), &head(257)),
        Some(Http1Error::TooManyHeaders)
    );
    assert_eq!(error(limits(0), &head(0)), None);
}

#[test]
fn interim() {
    let bytes = format!(
        "{}HTTP/1.1 204 N\r\n\r\n",
        "HTTP/1.1 102 P\r\n\r\n".repeat(3)
    );
    let limits = |interim| Limits {
        interim,
        ..Limits::default()
    };
    assert_eq!(error(limits(3), &bytes), None);
    assert_eq!(error(limits(2), &bytes), Some(Http1Error::TooManyInterim));
}

#[test]
fn chunk_line_bytes() {
    let bytes = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1;ab\r\nx\r\n0\r\n\r\n";
    let limits = |chunk_line_bytes| Limits {
        chunk_line_bytes,
        ..Limits::default()
    };
    assert_eq!(error(limits(6), bytes), None);
    assert_eq!(error(limits(5), bytes), Some(Http1Error::ChunkLineTooLarge));
    let plain = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n01\r\nx\r\n0\r\n\r\n";
    assert_eq!(error(limits(4), plain), None);
    assert_eq!(error(limits(3), plain), Some(Http1Error::ChunkLineTooLarge));
}

#[test]
fn trailer_bytes() {
    let bytes = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\na: b\r\nc: d\r\n\r\n";
    let limits = |trailer_bytes| Limits {
        trailer_bytes,
        ..Limits::default()
    };
    assert_eq!(error(limits(14), bytes), None);
    assert_eq!(error(limits(13), bytes), Some(Http1Error::TrailersTooLarge));
}

#[test]
fn body_bytes() {
    let limits = |body_bytes| Limits {
        body_bytes,
        ..Limits::default()
    };
    for bytes in [
        "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhe\r\n3\r\nllo\r\n0\r\n\r\n",
        "HTTP/1.1 200 OK\r\n\r\nhello",
    ] {
        assert_eq!(error(limits(5), bytes), None);
        assert_eq!(error(limits(4), bytes), Some(Http1Error::BodyTooLarge));
        let response = drive::respond(
            &mut ResponseParser::new(limits(4)),
            &[bytes.as_bytes()],
            true,
        );
        assert!(response.head.is_some_and(|head| head.status == 200));
        assert_eq!(error(limits(0), bytes), Some(Http1Error::BodyTooLarge));
    }
}

#[test]
fn trailers() {
    let bytes = |n| {
        let head = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n";
        format!("{head}{}\r\n", "a: b\r\n".repeat(n))
    };
    let limits = |headers| Limits {
        headers,
        ..Limits::default()
    };
    assert_eq!(error(limits(2), &bytes(2)), None);
    assert_eq!(
        error(limits(2), &bytes(3)),
        Some(Http1Error::TrailersTooLarge)
    );
    assert_eq!(
        error(limits(usize::MAX), &bytes(257)),
        Some(Http1Error::TrailersTooLarge)
    );
}
