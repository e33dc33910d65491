//! Properties that hold for any bytes whatever.

use assize_reader::replay::answer::read_answer;
use assize_reader::replay::http::{Ending, Limits, read_response};
use assize_reader::replay::openai::Asked;
use assize_reader::replay::sse;
use proptest::prelude::*;

/// Bytes that often come near a response: pieces of real ones, shuffled, with some noise.
fn near_http() -> impl Strategy<Value = Vec<u8>> {
    let piece = prop_oneof![
        Just(b"HTTP/1.1 200 OK\r\n".to_vec()),
        Just(b"HTTP/1.1 103 Early Hints\r\n\r\n".to_vec()),
        Just(b"HTTP/1.0 204 \r\n".to_vec()),
        Just(b"Content-Length: 7\r\n".to_vec()),
        Just(b"Transfer-Encoding: chunked\r\n".to_vec()),
        Just(b"Content-Type: text/event-stream\r\n".to_vec()),
        Just(b"\r\n".to_vec()),
        Just(b"5\r\ndata:\r\n".to_vec()),
        Just(b"0\r\n\r\n".to_vec()),
        Just(b"3;x=\"y\"\r\n{}\n\r\n".to_vec()),
        Just(b"data: {\"choices\":[]}\n\n".to_vec()),
        Just(b"data: [DONE]\n\n".to_vec()),
        proptest::collection::vec(any::<u8>(), 0..6),
    ];
    proptest::collection::vec(piece, 0..14).prop_map(|pieces| pieces.concat())
}

/// Events over blank lines of every kind.
fn near_sse() -> impl Strategy<Value = Vec<u8>> {
    let piece = prop_oneof![
        Just(&b"data: a"[..]),
        Just(&b"data"[..]),
        Just(&b": c"[..]),
        Just(&b"id: 7"[..]),
        Just(&b"event: error"[..]),
        Just(&b"\r"[..]),
        Just(&b"\n"[..]),
        Just(&b"\r\n"[..]),
        Just(&b"\xef\xbb\xbf"[..]),
        Just(&b"\x00\xff"[..]),
    ];
    proptest::collection::vec(piece, 0..40).prop_map(|pieces| pieces.concat())
}

proptest! {
    #[test]
    fn the_body_lies_in_the_stream_in_order(stream in near_http(), eof: bool) {
        let response = read_response(&stream, eof, &Limits::default());
        let spans = response.body.spans();
        prop_assert!(spans.iter().all(|span| span.start < span.end && span.end <= stream.len()));
        prop_assert!(spans.windows(2).all(|pair| pair[0].end <= pair[1].start));
        let bytes = response.body.bytes(&stream);
        prop_assert_eq!(bytes.len(), response.body.len());
        for (at, byte) in bytes.iter().enumerate() {
            let place = response.body.place(at);
            prop_assert_eq!(place.map(|place| stream[place]), Some(*byte));
        }
        prop_assert_eq!(response.body.place(bytes.len()), None);
        if let Some(fault) = response.fault() {
            prop_assert!(fault.at <= stream.len());
        }
    }

    /// Reading more never changes what was complete, and never mends what was refused.
    #[test]
    fn what_is_decided_stays_decided(stream in near_http(), more in near_http()) {
        let limits = Limits::default();
        let early = read_response(&stream, false, &limits);
        let longer = [stream.as_slice(), &more].concat();
        let late = read_response(&longer, false, &limits);
        match early.ending {
            Ending::Unfinished(_) => prop_assert!(
                late.body.bytes(&longer).starts_with(&early.body.bytes(&stream))
            ),
            decided => {
                prop_assert_eq!(decided, late.ending);
                prop_assert_eq!(early.body, late.body);
            }
        }
    }

    #[test]
    fn no_bytes_and_no_limits_bring_a_panic(stream in near_http(), eof: bool, head in 0usize..80, lines in 0usize..20) {
        let limits = Limits { head_bytes: head, fields: 2, interim: 1, chunk_line_bytes: lines };
        for stream_asked in [true, false] {
            let asked = Asked { stream: stream_asked, ..Asked::default() };
            let answer = read_answer(&stream, eof, &asked, &limits);
            let understood = answer.completion.events.len();
            prop_assert!(understood == 0 || understood == answer.event_places.len());
            prop_assert!(answer.event_places.is_sorted());
        }
    }

    #[test]
    fn any_noise_is_read_to_an_ending(stream in proptest::collection::vec(any::<u8>(), 0..300), eof: bool) {
        let response = read_response(&stream, eof, &Limits::default());
        prop_assert!(!eof || !matches!(response.ending, Ending::Unfinished(_)));
    }

    /// Wherever a body is cut, the first part has exactly the events that end in it.
    #[test]
    fn an_event_is_complete_at_its_place_and_not_before(body in near_sse(), cut in 0usize..200) {
        let whole = sse::decode(&body);
        let cut = cut.min(body.len());
        let part = sse::decode(&body[..cut]);
        let before = whole.events.partition_point(|event| event.completed_at < cut);
        prop_assert_eq!(&part.events[..], &whole.events[..before]);
        prop_assert!(whole.events.iter().all(|event| matches!(body[event.completed_at], b'\r' | b'\n')));
    }

    /// An event's stretch of the body, decoded alone, is that event again.
    #[test]
    fn an_event_stands_alone(body in near_sse()) {
        prop_assume!(!body.contains(&0xef));
        for event in sse::decode(&body).events {
            let alone = sse::decode(&body[event.start..=event.completed_at]);
            prop_assert_eq!(alone.events.len(), 1);
            prop_assert_eq!(&alone.events[0].data, &event.data);
            prop_assert_eq!(alone.events[0].name, event.name);
        }
    }
}

/// A line that ends before it can be what is due is refused by its CR, without waiting for the LF.
#[test]
fn a_lone_cr_ends_what_cannot_be() {
    let kind = |stream: &[u8]| {
        let fault = read_response(stream, true, &Limits::default()).fault();
        fault.map(|fault| fault.kind.name())
    };
    assert_eq!(kind(b"\r"), Some("bad_status_line"));
    assert_eq!(kind(b"HTTP/1.1 20\r"), Some("bad_status_line"));
    assert_eq!(kind(b"HTTP/1.1 200\r"), Some("eof_in_head"));
    let chunked = |rest: &str| {
        format!("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n{rest}").into_bytes()
    };
    assert_eq!(kind(&chunked("\r")), Some("bad_chunk_size"));
    assert_eq!(kind(&chunked("5\r")), Some("incomplete_body"));
}
