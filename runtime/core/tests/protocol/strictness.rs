//! The decisions of `docs/protocol.md` that the case file does not hold.

use assize_core::protocol::http1::{ErrorGroup, Framing, Http1Error};
use assize_core::protocol::sse::decode;

use crate::drive::{self, Response};

fn respond(bytes: &[u8]) -> Response {
    drive::respond(&mut drive::parser(), &[bytes], true)
}

/// The framing that these header lines give a 200 over HTTP/1.1.
fn framing(fields: &str) -> Result<Framing, Http1Error> {
    framing_of("1.1 200", fields)
}

fn framing_of(start: &str, fields: &str) -> Result<Framing, Http1Error> {
    let bytes = format!("HTTP/{start} X\r\n{fields}\r\n");
    let response = drive::respond(&mut drive::parser(), &[bytes.as_bytes()], false);
    response
        .head
        .map(|head| head.framing)
        .ok_or_else(|| response.error.expect("a head or an error"))
}

fn keeps_alive(version: &str, fields: &str) -> bool {
    let bytes = format!("HTTP/{version} 200 OK\r\nContent-Length: 0\r\n{fields}\r\n");
    respond(bytes.as_bytes()).head.expect("a head").keep_alive
}

#[test]
fn a_length_stands_once() {
    let bad = Err(Http1Error::BadContentLength);
    for value in [
        "5, 5",
        "5, 6",
        "5,",
        ",5",
        "",
        "+5",
        "5.0",
        "18446744073709551616",
    ] {
        assert_eq!(
            framing(&format!("Content-Length: {value}\r\n")),
            bad,
            "{value}"
        );
    }
    assert_eq!(framing("Content-Length: 5\r\ncontent-length: 5\r\n"), bad);
    assert_eq!(framing("Content-Length: x\r\ncontent-length: 5\r\n"), bad);
    for value in ["18446744073709551615", "0018446744073709551615"] {
        assert_eq!(
            framing(&format!("Content-Length: {value}\r\n")),
            Ok(Framing::Length(u64::MAX))
        );
    }
}

#[test]
fn chunked_is_the_only_transfer_coding_and_stands_once() {
    for value in ["chunked", "CHUNKED\t"] {
        assert_eq!(
            framing(&format!("Transfer-Encoding:{value}\r\n")),
            Ok(Framing::Chunked)
        );
    }
    let bad = Err(Http1Error::BadTransferEncoding);
    for value in [
        "",
        ",",
        ", chunked",
        "gzip, chunked",
        "chunked, chunked",
        "chunked;a=b",
        "identity",
        "\"chunked\"",
        "chunked\r\nTransfer-Encoding: chunked",
    ] {
        assert_eq!(
            framing(&format!("Transfer-Encoding: {value}\r\n")),
            bad,
            "{value}"
        );
    }
    assert_eq!(framing_of("1.0 200", "Transfer-Encoding: chunked\r\n"), bad);
    assert_eq!(
        framing("Transfer-Encoding: gzip\r\nContent-Length: 1\r\n"),
        Err(Http1Error::AmbiguousFraming)
    );
}

#[test]
fn a_status_without_body_ends_with_its_head() {
    for start in ["1.1 204", "1.1 304", "1.0 304"] {
        for fields in [
            "Content-Length: x\r\n",
            "Transfer-Encoding: chunked\r\n",
            "",
        ] {
            assert_eq!(
                framing_of(start, fields),
                Ok(Framing::Empty),
                "{start} {fields}"
            );
        }
    }
    assert_eq!(
        framing_of("1.1 205", "Content-Length: 3\r\n"),
        Ok(Framing::Length(3))
    );
}

#[test]
fn keep_alive_follows_version_and_connection() {
    assert!(keeps_alive("1.1", ""));
    assert!(keeps_alive("1.1", "Connection: upgrade,\r\n"));
    assert!(!keeps_alive("1.1", "Connection: x,\tCLOSE ,y\r\n"));
    assert!(!keeps_alive(
        "1.1",
        "Connection: keep-alive\r\nConnection: close\r\n"
    ));
    assert!(keeps_alive("1.1", "Connection: closed\r\n"));
    assert!(!keeps_alive("1.0", ""));
    assert!(keeps_alive("1.0", "Connection: Keep-Alive\r\n"));
    assert!(!keeps_alive("1.0", "Connection: keep-alive, close\r\n"));
}

#[test]
fn status_must_have_a_class() {
    assert_eq!(framing_of("1.1 099", ""), Err(Http1Error::BadStatusLine));
    assert_eq!(framing_of("1.1 999", ""), Ok(Framing::Close));
}

#[test]
fn another_protocol_is_refused_at_its_first_wrong_byte() {
    for (bytes, taken) in [
        (&b"SSH-2.0"[..], 1),
        (b"HTTP/1.1 2 O", 11),
        (b"HTTP/1.2", 8),
        (b"HTTP/1.1 099", 10),
        (b"HTTP/1.1 200\t", 13),
        (b"HTTP/1.1 200 \x7F", 14),
        (b"HTTP/2", 6),
        (b"\r\n", 1),
        (b"HTTP/1.1\r\n", 9),
        (b"http/1.1", 1),
    ] {
        let before = drive::timeline(&[&bytes[..taken - 1]]);
        assert_eq!(before, []);
        let at = drive::timeline(&[&bytes[..taken]]);
        assert_eq!(at, [(drive::Mark::Error(Http1Error::BadStatusLine), 0)]);
    }
}

#[test]
fn crlf_alone_ends_a_line() {
    for (bytes, due) in [
        ("HTTP/1.1 204 N\n\r\n", Http1Error::BadStatusLine),
        ("HTTP/1.1 204\n", Http1Error::BadStatusLine),
        ("HTTP/1.1 204 N\rX\r\n\r\n", Http1Error::BadStatusLine),
        ("HTTP/1.1 204 N\r\n\n", Http1Error::BadHeader),
        ("HTTP/1.1 204 N\r\nA: b\n\r\n", Http1Error::BadHeader),
        ("HTTP/1.1 204 N\r\nA: b\r\n\n", Http1Error::BadHeader),
        (
            "HTTP/1.1 204 N\r\nA: b\rc: d\r\n\r\n",
            Http1Error::BadHeader,
        ),
        ("HTTP/1.1 204 N\r\nA: b\r\r\n\r\n", Http1Error::BadHeader),
        ("HTTP/1.1 204 N\r\n\r\r\n\r\n", Http1Error::BadHeader),
    ] {
        assert_eq!(respond(bytes.as_bytes()).error, Some(due), "{bytes:?}");
    }
    let head = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
    let body = |chunks: &str| respond(format!("{head}{chunks}").as_bytes()).error;
    assert_eq!(body("2\r\nhi\r\n0\r\n\r\n"), None);
    assert_eq!(body("2\nhi\r\n0\r\n\r\n"), Some(Http1Error::BadChunk));
    assert_eq!(body("2;a\nhi\r\n0\r\n\r\n"), Some(Http1Error::BadChunk));
    assert_eq!(body("2\r\nhi\n0\r\n\r\n"), Some(Http1Error::BadChunk));
    assert_eq!(body("0\r\n\n"), Some(Http1Error::BadTrailer));
    assert_eq!(body("0\r\nA: b\n\r\n"), Some(Http1Error::BadTrailer));
    assert_eq!(body("0\r\n\rx"), Some(Http1Error::BadTrailer));
}

#[test]
fn chunk_sizes_have_one_to_sixteen_digits() {
    let body = |chunks: &str| {
        let head = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
        respond(format!("{head}{chunks}").as_bytes())
    };
    assert_eq!(body("0000000000000002\r\nhi\r\n0\r\n\r\n").body, b"hi");
    for bad in [
        "00000000000000002\r\nhi",
        "\r\n",
        ";x\r\n",
        " \r\n",
        " 2\r\nhi",
        "2 3\r\nhi",
        "0x2\r\nhi",
    ] {
        assert_eq!(body(bad).error, Some(Http1Error::BadChunkSize), "{bad:?}");
    }
    for extension in [" ;a", ";", "\t ; a = \"b;\u{e9}\"", "; \"open"] {
        assert_eq!(
            body(&format!("2{extension}\r\nhi\r\n0\r\n\r\n")).body,
            b"hi"
        );
    }
    assert_eq!(body("2;a\0\r\nhi").error, Some(Http1Error::BadChunk));
    assert_eq!(body("2;a\rb\r\nhi").error, Some(Http1Error::BadChunk));
}

#[test]
fn trailers_must_be_fields() {
    let trailer = |line: &str| {
        let head = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n";
        respond(format!("{head}{line}\r\n\r\n").as_bytes()).error
    };
    for good in ["A:", "X-Checksum: abc", "a!#$%&'*+-.^_`|~9:\t\u{e9} "] {
        assert_eq!(trailer(good), None, "{good:?}");
    }
    for bad in [
        ": b",
        "A b: c",
        " A: b",
        "A",
        "A: b\r\n folded",
        "A: \0",
        "A: \rb",
    ] {
        assert_eq!(trailer(bad), Some(Http1Error::BadTrailer), "{bad:?}");
    }
}

#[test]
fn only_a_plain_answer_is_an_unencoded_event_stream() {
    let head = |fields: &str| {
        let bytes = format!("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n{fields}\r\n");
        respond(bytes.as_bytes()).head.expect("a head")
    };
    assert!(head("Content-Type: text/event-stream\r\n").event_stream);
    assert!(!head("").event_stream);
    assert!(!head("Content-Type: text/event-streams\r\n").event_stream);
    assert!(!head("Content-Type: text/event-stream\r\nContent-Type: text/html\r\n").event_stream);
    assert!(!head("Content-Encoding: identity\r\n").encoded);
    assert!(!head("Content-Encoding: , Identity\r\n").encoded);
    assert!(head("Content-Encoding: gzip, identity\r\n").encoded);
    assert!(head("Content-Encoding: identity\r\nContent-Encoding: br\r\n").encoded);
}

#[test]
fn a_field_is_judged_when_its_line_is_complete() {
    for (section, bad) in [
        ("HTTP/1.1 200 OK\r\n", Http1Error::BadHeader),
        (
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n",
            Http1Error::BadTrailer,
        ),
    ] {
        for line in [
            "a b\r\n",
            "a b: c\r\n",
            "a\r\n",
            ": c\r\n",
            "a: \0\r\n",
            " a: b\r\n",
        ] {
            let (unfinished, _) = line.split_at(line.len() - 1);
            let cut = respond(format!("{section}{unfinished}").as_bytes());
            assert_eq!(
                cut.error.map(Http1Error::group),
                Some(ErrorGroup::Truncated)
            );
            let whole = format!("{section}{line}");
            let marks = drive::timeline(&[whole.as_bytes()]);
            assert_eq!(
                marks.last(),
                Some(&(drive::Mark::Error(bad), 0)),
                "{line:?}"
            );
        }
    }
}

#[test]
fn eof_tells_how_far_the_response_had_come() {
    let chunked = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
    for (bytes, due) in [
        (String::new(), Http1Error::EofBeforeResponse),
        (
            "HTTP/1.1 103 E\r\n\r\n".into(),
            Http1Error::EofBeforeResponse,
        ),
        ("H".into(), Http1Error::EofInHead),
        (
            "HTTP/1.1 103 E\r\n\r\nHTTP/1.1 2".into(),
            Http1Error::EofInHead,
        ),
        (
            "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n".into(),
            Http1Error::EofInBody,
        ),
        (format!("{chunked}5\r\nhell"), Http1Error::EofInBody),
        (chunked.into(), Http1Error::EofInChunkFraming),
        (
            format!("{chunked}5\r\nhello"),
            Http1Error::EofInChunkFraming,
        ),
        (format!("{chunked}0\r\n\r"), Http1Error::EofInChunkFraming),
    ] {
        assert_eq!(respond(bytes.as_bytes()).error, Some(due), "{bytes:?}");
    }
    assert_eq!(respond(b"HTTP/1.1 200 OK\r\n\r\n").end, Some(false));
}

#[test]
fn an_error_and_an_end_last_until_the_reset() {
    let mut parser = drive::parser();
    let mut bad = &b"x"[..];
    assert_eq!(parser.poll(&mut bad), Err(Http1Error::BadStatusLine));
    let mut good = &b"HTTP/1.1 204 N\r\n\r\n"[..];
    assert_eq!(parser.poll(&mut good), Err(Http1Error::BadStatusLine));
    assert_eq!(parser.handle_eof(), Err(Http1Error::BadStatusLine));
    parser.reset();
    let response = drive::respond(&mut parser, &[good], true);
    assert_eq!(response.end, Some(true));
    assert!(parser.started() && parser.head_done() && parser.ended());
    assert_eq!(parser.handle_eof(), Ok(None));
    parser.reset();
    assert!(!parser.started() && !parser.head_done() && !parser.ended());
}

#[test]
fn the_done_marker_is_exact() {
    for (stream, done) in [
        ("data: [DONE]\n\n", true),
        ("data:[DONE]\n\n", true),
        ("data: [DONE]\r\r", true),
        ("\u{feff}data: [DONE]\n\n", true),
        (": ping\nid: 1\ndata: [DONE]\nretry: 5\n\n", true),
        ("event: message\ndata: [DONE]\n\n", true),
        ("data: [DONE] \n\n", false),
        ("data:  [DONE]\n\n", false),
        ("data: [DONE]x\n\n", false),
        ("\u{feff}data: [DONE]x\n\n", false),
        ("data: [DONE]\ndata\n\n", false),
        ("data\ndata: [DONE]\n\n", false),
        ("data: [done]\n\n", false),
        ("data: \"[DONE]\"\n\n", false),
    ] {
        for every in [1, 3, 100] {
            let reads: Vec<&[u8]> = stream.as_bytes().chunks(every).collect();
            let events: Vec<bool> = drive::scan(&reads).events.iter().map(|e| e.0).collect();
            assert_eq!(events, [done], "{stream:?} by {every}");
        }
        assert_eq!(
            *decode(stream.as_bytes()).events[0].data == *b"[DONE]",
            done
        );
    }
}

#[test]
fn a_cr_dispatches_without_waiting_for_its_lf() {
    let scan = drive::scan(&[b"data: a\r\n\r", b"\ndata: b\r\r", b"\n\n"]);
    assert_eq!(scan.events, [(false, 0), (false, 1)]);
    assert!(!scan.pending);
}

#[test]
fn what_is_pending_at_the_end_is_told() {
    for (stream, pending) in [
        ("", false),
        ("\u{feff}", false),
        ("data: a\n\n", false),
        (": ping\n", false),
        ("id: 7\n", false),
        ("data", true),
        ("data\n", true),
        ("data: a\r", true),
        ("data: a\n\n:", false),
        ("data: a\n\n\u{feff}:", true),
        ("\u{feff}: a", false),
        (": a\r\nb", true),
    ] {
        assert_eq!(
            drive::scan(&[stream.as_bytes()]).pending,
            pending,
            "{stream:?}"
        );
        assert_eq!(decode(stream.as_bytes()).pending, pending, "{stream:?}");
    }
}

#[test]
fn bytes_that_are_no_utf8_are_kept_and_told() {
    let decoded = decode(b"data: \xFF\xFE\n\n");
    assert_eq!(*decoded.events[0].data, *b"\xFF\xFE");
    assert!(!decoded.events[0].is_utf8());
}
