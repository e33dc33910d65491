//! Properties over any bytes and any reads.

use assize_core::protocol::http1::{Framing, Limits, ResponseParser};
use assize_core::protocol::openai::{StreamFold, classify};
use assize_core::protocol::sse::decode;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::{Index, select};

use crate::drive;

/// Sorted read edges within `len` bytes.
fn cuts(indices: &[Index], len: usize) -> Vec<usize> {
    let mut cuts: Vec<usize> = indices.iter().map(|index| index.index(len + 1)).collect();
    cuts.sort_unstable();
    cuts.dedup();
    cuts
}

fn edges() -> impl Strategy<Value = Vec<Index>> {
    vec(any::<Index>(), 0..24)
}

/// Streams made of what the algorithm treats apart, and of arbitrary bytes.
fn stream() -> impl Strategy<Value = Vec<u8>> {
    let piece = prop_oneof![
        8 => select(vec![
            &b"\n"[..], b"\r", b"\r\n", b"\n\n", b"\r\r", b"\r\n\r\n", b"\xEF\xBB\xBF", b"\xEF", b"data",
            b"data:", b"data: ", b"data: [DONE]", b"data:[DONE]", b"[DONE]", b"event: error", b"id: 7",
            b"id", b"retry: 10", b":", b" ", b"\0", b"{\"choices\":[]}", b"\xE2\x80\xA8",
        ]).prop_map(<[u8]>::to_vec),
        1 => vec(any::<u8>(), 0..20),
    ];
    vec(piece, 0..40).prop_map(|pieces| pieces.concat())
}

/// Bytes near enough to a response to get past its first line.
fn response_like() -> impl Strategy<Value = Vec<u8>> {
    let piece = prop_oneof![
        8 => select(vec![
            &b"HTTP/1.1 200 OK\r\n"[..], b"HTTP/1.0 200\r\n", b"HTTP/1.1 100 C\r\n\r\n", b"HTTP/1.1 204 N\r\n",
            b"Content-Length: 5\r\n", b"content-length: 3, 3\r\n", b"Transfer-Encoding: chunked\r\n",
            b"transfer-encoding:,CHUNKED\r\n", b"Connection: close\r\n", b"Connection: keep-alive\r\n",
            b"\r\n", b"\n", b"\r", b"5\r\nhello\r\n", b"0\r\n\r\n", b"0\r\nA: b\r\n\r\n", b"3;x=\"y\"\r\nabc\r\n",
            b"ffffffffffffffff\r\n", b" ", b":", b"hello",
        ]).prop_map(<[u8]>::to_vec),
        1 => vec(any::<u8>(), 0..12),
    ];
    (
        select(vec![
            &b"HTTP/1.1 200 OK\r\n"[..],
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n",
            b"",
        ]),
        vec(piece, 0..24),
    )
        .prop_map(|(start, pieces)| [start.to_vec(), pieces.concat()].concat())
}

/// How a generated response frames its body.
#[derive(Clone, Debug)]
enum Frame {
    Length,
    Chunks {
        edges: Vec<Index>,
        extension: String,
        trailers: Vec<String>,
    },
    Close,
}

fn frame() -> impl Strategy<Value = Frame> {
    prop_oneof![
        Just(Frame::Length),
        Just(Frame::Close),
        (
            edges(),
            "(;[a-z]{1,8}(=[a-z0-9]{1,8})?){0,2}",
            vec("[A-Za-z-]{1,12}: ?[ -~]{0,20}", 0..3)
        )
            .prop_map(|(edges, extension, trailers)| Frame::Chunks {
                edges,
                extension,
                trailers
            }),
    ]
}

fn render(interims: &[u16], fields: &[String], frame: &Frame, body: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for status in interims {
        bytes.extend_from_slice(format!("HTTP/1.1 {status} X\r\nA: b\r\n\r\n").as_bytes());
    }
    bytes.extend_from_slice(b"HTTP/1.1 200 OK\r\n");
    for field in fields {
        bytes.extend_from_slice(format!("x-{field}\r\n").as_bytes());
    }
    match frame {
        Frame::Close => {
            bytes.extend_from_slice(b"\r\n");
            bytes.extend_from_slice(body);
        }
        Frame::Length => {
            bytes.extend_from_slice(format!("Content-Length: {}\r\n\r\n", body.len()).as_bytes());
            bytes.extend_from_slice(body);
        }
        Frame::Chunks {
            edges,
            extension,
            trailers,
        } => {
            bytes.extend_from_slice(b"Transfer-Encoding: chunked\r\n\r\n");
            for chunk in drive::reads(body, &cuts(edges, body.len())) {
                if chunk.is_empty() {
                    continue;
                }
                bytes.extend_from_slice(format!("{:x}{extension}\r\n", chunk.len()).as_bytes());
                bytes.extend_from_slice(chunk);
                bytes.extend_from_slice(b"\r\n");
            }
            bytes.extend_from_slice(format!("0{extension}\r\n").as_bytes());
            for trailer in trailers {
                bytes.extend_from_slice(format!("{trailer}\r\n").as_bytes());
            }
            bytes.extend_from_slice(b"\r\n");
        }
    }
    bytes
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(512) })]

    /// Any split gives the same events; each belongs to the read of the byte that completed it.
    #[test]
    fn scanner_is_split_invariant(bytes in stream(), indices in edges()) {
        let every_byte: Vec<usize> = (1..bytes.len()).collect();
        let bytewise = drive::scan(&drive::reads(&bytes, &every_byte));
        let cuts = cuts(&indices, bytes.len());
        let cut = drive::scan(&drive::reads(&bytes, &cuts));
        prop_assert_eq!(cut, drive::regroup(&bytewise, &cuts, bytes.len()));
    }

    /// The scanner and the decoder, which share no state, agree on every event.
    #[test]
    fn scanner_agrees_with_decoder(bytes in stream()) {
        let decoded = decode(&bytes);
        let due: Vec<bool> = decoded.events.iter().map(|e| *e.data == *b"[DONE]").collect();
        let scan = drive::scan(&[&bytes]);
        let got: Vec<bool> = scan.events.iter().map(|&(done, _)| done).collect();
        prop_assert_eq!(got, due);
        prop_assert_eq!(scan.pending, decoded.pending);
    }

    /// What of a stream is decoded event by event is what is decoded at once.
    #[test]
    fn decoder_is_the_same_for_an_event_alone(data in "[ -~]{0,40}", name in "[a-z]{1,8}") {
        let event = format!("event: {name}\ndata: {data}\n\n");
        let stream = event.repeat(3);
        let alone = decode(event.as_bytes());
        prop_assert_eq!(alone.events.len(), 1);
        prop_assert!(alone.events[0].is_utf8());
        prop_assert_eq!(&*alone.events[0].data, data.as_bytes());
        for message in decode(stream.as_bytes()).events {
            prop_assert_eq!(&message, &alone.events[0]);
        }
    }

    /// A valid response comes out as it was, whatever the reads, and surplus is left alone.
    #[test]
    fn valid_responses_come_out_whole(
        interims in vec(select(vec![100_u16, 102, 103, 150, 199]), 0..4),
        fields in vec("[A-Za-z0-9-]{1,20}:[ \t]{0,2}[ -~]{0,40}", 0..12),
        frame in frame(),
        body in vec(any::<u8>(), 0..400),
        surplus in vec(any::<u8>(), 0..20),
        indices in edges(),
    ) {
        let mut bytes = render(&interims, &fields, &frame, &body);
        let closed = matches!(frame, Frame::Close);
        if !closed {
            bytes.extend_from_slice(&surplus);
        }
        let cuts = cuts(&indices, bytes.len());
        let mut parser = drive::parser();
        let response = drive::respond(&mut parser, &drive::reads(&bytes, &cuts), closed);
        prop_assert_eq!(response.error, None);
        prop_assert_eq!(&response.informational, &interims);
        prop_assert_eq!(&response.body, &body);
        prop_assert_eq!(response.end, Some(!closed));
        prop_assert_eq!(response.leftover, if closed { Vec::new() } else { surplus });
        prop_assert_eq!(parser.body_bytes(), body.len() as u64);
        let framing = response.head.map(|head| head.framing);
        prop_assert_eq!(framing, Some(match frame {
            Frame::Length => Framing::Length(body.len() as u64),
            Frame::Chunks { .. } => Framing::Chunked,
            Frame::Close => Framing::Close,
        }));
    }

    /// Right or wrong, the same bytes give the same response by any reads, each mark in the read
    /// of the byte that completed it.
    #[test]
    fn responses_are_split_invariant(bytes in response_like(), indices in edges(), eof: bool) {
        let whole = drive::respond(&mut drive::parser(), &[&bytes], eof);
        let cuts = cuts(&indices, bytes.len());
        let reads = drive::reads(&bytes, &cuts);
        prop_assert_eq!(drive::respond(&mut drive::parser(), &reads, eof), whole);
        let every_byte: Vec<usize> = (1..bytes.len()).collect();
        let bytewise = drive::timeline(&drive::reads(&bytes, &every_byte));
        let regrouped: Vec<_> = bytewise
            .into_iter()
            .map(|(mark, byte)| (mark, drive::read_of(byte, &cuts, bytes.len())))
            .filter(|(mark, _)| !matches!(mark, drive::Mark::Error(_)))
            .collect();
        let mut timeline = drive::timeline(&reads);
        timeline.retain(|(mark, _)| !matches!(mark, drive::Mark::Error(_)));
        prop_assert_eq!(timeline, regrouped);
    }

    /// A response that was parsed before, to any point, leaves no trace after a reset.
    #[test]
    fn reset_leaves_no_trace(before in response_like(), bytes in response_like(), eof: bool) {
        let mut used = drive::parser();
        let _ = drive::respond(&mut used, &[&before], eof);
        used.reset();
        let again = drive::respond(&mut used, &[&bytes], eof);
        prop_assert_eq!(again, drive::respond(&mut drive::parser(), &[&bytes], eof));
    }

    /// Small limits hold: no more body than allowed, and the same verdict by any reads.
    #[test]
    fn limits_are_split_invariant(
        bytes in response_like(),
        indices in edges(),
        head_bytes in 0_usize..80,
        body_bytes in 0_u64..12,
        small in 0_usize..20,
    ) {
        let limits = Limits {
            head_bytes,
            body_bytes,
            headers: small,
            interim: small / 8,
            chunk_line_bytes: small,
            trailer_bytes: small,
        };
        let whole = drive::respond(&mut ResponseParser::new(limits), &[&bytes], true);
        prop_assert!(whole.body.len() as u64 <= body_bytes);
        let reads = drive::reads(&bytes, &cuts(&indices, bytes.len()));
        let cut = drive::respond(&mut ResponseParser::new(limits), &reads, true);
        prop_assert_eq!(cut, whole);
    }

    /// Events cut anywhere by chunks and reads come out as from the bare stream.
    #[test]
    fn events_survive_chunks_and_reads(body in stream(), frame in frame(), indices in edges()) {
        let bytes = render(&[], &[], &frame, &body);
        let reads = drive::reads(&bytes, &cuts(&indices, bytes.len())).into_iter();
        let response = drive::respond(&mut drive::parser(), &reads.collect::<Vec<_>>(), true);
        prop_assert_eq!(drive::scan(&[&response.body]), drive::scan(&[&body]));
    }

    /// The classifier takes anything without panicking, and counts each event once.
    #[test]
    fn classifier_takes_anything(events in vec((".{0,8}", "\\PC{0,60}"), 0..8), junk in vec(any::<u8>(), 0..60)) {
        let _ = classify(b"message", &junk);
        let mut fold = StreamFold::new(1, true);
        for (name, data) in &events {
            fold.take(name.as_bytes(), data.as_bytes());
        }
        let summary = fold.finish();
        prop_assert_eq!(summary.events, events.len() as u64);
        prop_assert!(summary.token_events + summary.empty_choice_events <= summary.events);
    }
}
