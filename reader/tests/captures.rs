//! Whole answers of real servers, as they stood on the wire, and the time of each read.

use std::path::Path;

use assize_reader::replay::answer::{Answer, read_answer};
use assize_reader::replay::http::Limits;
use assize_reader::replay::openai::{Asked, Invalid};
use serde_json::Value;

#[allow(
    clippy::disallowed_methods,
    reason = "a test reads its own fixtures, which lie beside it"
)]
fn fixture(name: &str, extension: &str) -> Vec<u8> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/captures");
    std::fs::read(folder.join(format!("{name}.{extension}"))).expect("a capture")
}

/// What one request of a capture asked for, from the request itself.
fn asked(request: &[u8]) -> Asked {
    let split = request
        .windows(4)
        .position(|window| window == b"\r\n\r\n")
        .expect("a blank line");
    let body: Value = serde_json::from_slice(&request[split + 4..]).unwrap_or(Value::Null);
    let batch = body["prompt"]
        .as_array()
        .filter(|prompts| prompts.first().is_some_and(Value::is_array))
        .map_or(1, Vec::len);
    let choices = body["n"].as_u64().unwrap_or(1) * batch as u64;
    let stream = body["stream"] == true;
    let counted = !stream || body["stream_options"]["include_usage"] == true;
    let forced = (counted && body["ignore_eos"] == true)
        .then(|| body["max_tokens"].as_u64())
        .flatten();
    Asked {
        stream,
        choices: choices as u32,
        forced_tokens: forced,
        done_due: true,
    }
}

/// The requests of a capture: one after another on one connection.
fn requests(bytes: &[u8]) -> Vec<&[u8]> {
    let starts: Vec<usize> = (0..bytes.len())
        .filter(|at| bytes[*at..].starts_with(b"POST /") || bytes[*at..].starts_with(b"GET /"))
        .collect();
    let ends = starts.iter().skip(1).copied().chain([bytes.len()]);
    let spans = starts.iter().zip(ends);
    spans.map(|(start, end)| &bytes[*start..end]).collect()
}

/// The answers of a capture, one for each request that got a byte.
fn answers(name: &str) -> Vec<(Asked, Vec<u8>, Answer)> {
    let (sent, received) = (fixture(name, "req"), fixture(name, "http"));
    let notes: Value = serde_json::from_slice(&fixture(name, "json")).expect("notes");
    let closed = notes["note"].as_array().expect("notes").iter().any(|note| {
        note.as_str()
            .is_some_and(|note| note.starts_with("peer closed"))
    });
    let edge = |number: usize| {
        let reads = notes["recv"].as_array().expect("reads");
        let of_request = reads.iter().filter(|read| read[0] == number);
        let last = of_request.filter_map(|read| read[2].as_u64()).max();
        last.map_or(received.len(), |edge| edge as usize)
    };
    let mut at = 0;
    let mut answers = Vec::new();
    for (number, request) in requests(&sent).into_iter().enumerate() {
        if at == received.len() {
            break;
        }
        let asked = asked(request);
        let bytes = received[at..edge(number)].to_vec();
        at += bytes.len();
        let eof = closed && at == received.len();
        let answer = read_answer(&bytes, eof, &asked, &Limits::default());
        if request.starts_with(b"POST") {
            answers.push((asked, bytes, answer));
        }
    }
    answers
}

fn outcome(answer: &Answer) -> &'static str {
    if let Some(fault) = answer.response.fault() {
        return fault.kind.name();
    }
    if answer.encoded {
        return "encoded";
    }
    answer
        .completion
        .flaw
        .map_or("valid", |flaw| flaw.kind.name())
}

fn names() -> Vec<String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/captures");
    #[allow(
        clippy::disallowed_methods,
        reason = "a test lists its own fixtures, which lie beside it"
    )]
    let entries = std::fs::read_dir(folder).expect("captures");
    let mut names: Vec<String> = entries
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .filter_map(|name| name.strip_suffix(".http").map(str::to_owned))
        .collect();
    names.sort();
    names
}

#[test]
fn each_capture_has_its_outcome() {
    let lines: Vec<String> = names()
        .iter()
        .flat_map(|name| {
            answers(name)
                .into_iter()
                .enumerate()
                .map(move |(number, (_, _, answer))| {
                    let completion = &answer.completion;
                    let bearing = completion
                        .events
                        .iter()
                        .filter(|event| event.token_bearing)
                        .count();
                    let count = |tokens: Option<u64>| {
                        tokens.map_or("-".to_owned(), |tokens| tokens.to_string())
                    };
                    format!(
                        "{name}#{number} {} {} events={} bearing={bearing} usage={} ids={} keep={}",
                        answer.response.status().unwrap_or(0),
                        outcome(&answer),
                        completion.events.len(),
                        count(completion.usage_tokens),
                        count(completion.id_tokens),
                        answer.response.keep_alive,
                    )
                })
        })
        .collect();
    assert!(lines.len() > 50);
    insta::assert_snapshot!(lines.join("\n"));
}

#[test]
fn each_event_lies_in_the_read_that_brought_its_last_byte() {
    let name = "vllm-chat-stream-usage";
    let notes: Value = serde_json::from_slice(&fixture(name, "json")).expect("notes");
    let edges: Vec<usize> = notes["recv"]
        .as_array()
        .expect("reads")
        .iter()
        .map(|read| read[2].as_u64().expect("an edge") as usize)
        .collect();
    let (_, _, answer) = answers(name).remove(0);
    let reads: Vec<usize> = answer
        .event_places
        .iter()
        .map(|place| edges.partition_point(|edge| edge <= place))
        .collect();
    // The head came alone; then the role and the first token each in a read of their own.
    assert_eq!(&reads[..3], &[1, 2, 3]);
    assert!(reads.is_sorted());
    assert_eq!(answer.event_places.len(), answer.completion.events.len());
}

#[test]
fn a_proxy_that_gave_up_is_no_valid_answer() {
    // nginx cut the stream after the head: a chunked body without its last chunk.
    let (_, _, answer) = answers("nginx-vllm-short-chat-stream").remove(0);
    assert_eq!(outcome(&answer), "incomplete_body");
    let (_, _, answer) = answers("nginx-vllm-limited-chat-stream").remove(0);
    assert_eq!(
        answer.completion.flaw.map(|flaw| flaw.kind),
        Some(Invalid::HttpStatus)
    );
}
