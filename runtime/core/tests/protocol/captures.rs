//! Whole answers of real servers, as they stood on the wire: `tests/fixtures/captures`.
//!
//! `expected.txt` beside them has one line a response; it was read, not only written.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use assize_core::protocol::openai::StreamFold;
use assize_core::protocol::sse::decode;

use crate::drive::{self, Response};

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/captures")
}

fn captures() -> Vec<(String, Vec<u8>)> {
    let mut captures: Vec<_> = std::fs::read_dir(folder())
        .expect("the folder")
        .map(|entry| entry.expect("an entry").path())
        .filter(|path| path.extension().is_some_and(|e| e == "http"))
        .map(|path| {
            let name = path.file_stem().expect("a name").to_string_lossy();
            (name.into_owned(), std::fs::read(&path).expect("a capture"))
        })
        .collect();
    captures.sort();
    captures
}

/// All responses that lie in `bytes` one after another, the connection's end behind them.
fn responses(bytes: &[u8], every: usize) -> Vec<Response> {
    let mut parser = drive::parser();
    let mut rest = bytes.to_vec();
    let mut responses = Vec::new();
    while !rest.is_empty() {
        parser.reset();
        let reads: Vec<&[u8]> = rest.chunks(every).collect();
        let response = drive::respond(&mut parser, &reads, true);
        rest.clone_from(&response.leftover);
        responses.push(response);
    }
    responses
}

fn describe(name: &str, response: &Response) -> String {
    let head = response.head.expect("a head");
    let mut line = format!("{name}: {} {:?}", head.status, head.framing);
    for (flag, set) in [
        ("keep-alive", head.keep_alive),
        ("encoded", head.encoded),
        ("redirect", head.redirect),
    ] {
        if set {
            let _ = write!(line, " {flag}");
        }
    }
    let _ = write!(line, ", {} bytes", response.body.len());
    match response.error {
        None => line += " complete",
        Some(error) => {
            let _ = write!(line, " {}", error.name());
        }
    }
    if head.event_stream && !head.encoded {
        let mut fold = StreamFold::new(
            if name.ends_with("n2") || name.ends_with("batch2") {
                2
            } else {
                1
            },
            true,
        );
        for event in decode(&response.body).events {
            fold.take(event.event, &event.data);
        }
        let summary = fold.finish();
        let _ = write!(
            line,
            ", {} events {} with tokens, usage {:?}, finish {:?}, fault {:?}",
            summary.events,
            summary.token_events,
            summary.completion_tokens,
            summary.finish_reason,
            summary.fault
        );
    }
    line + "\n"
}

#[test]
fn captures_of_real_servers_are_taken_whole() {
    let mut table = String::new();
    for (name, bytes) in captures() {
        for response in responses(&bytes, bytes.len()) {
            table += &describe(&name, &response);
        }
    }
    let expected = std::fs::read_to_string(folder().join("expected.txt")).expect("the table");
    assert_eq!(table, expected);
}

#[test]
fn captures_are_the_same_by_reads_of_any_size() {
    for (name, bytes) in captures() {
        let whole = responses(&bytes, bytes.len());
        for every in [1, 2, 3, 7, 64, 1021] {
            assert_eq!(responses(&bytes, every), whole, "{name} by {every}");
        }
    }
}

#[test]
fn events_of_captures_belong_to_the_read_that_completed_them() {
    for (_, bytes) in captures() {
        for response in responses(&bytes, bytes.len()) {
            let body = &response.body;
            let every_byte: Vec<usize> = (1..body.len()).collect();
            let bytewise = drive::scan(&drive::reads(body, &every_byte));
            for every in [2, 5, 113] {
                let cuts: Vec<usize> = (every..body.len()).step_by(every).collect();
                let scan = drive::scan(&drive::reads(body, &cuts));
                assert_eq!(scan, drive::regroup(&bytewise, &cuts, body.len()));
            }
        }
    }
}
