//! Nanoseconds per event and throughput in bytes, for `http1`, `sse` and both together.
//!
//! `cargo bench -p assize-core`. `docs/protocol.md` records instructions per event.

use std::hint::black_box;

use assize_core::protocol::http1::{Event, Limits, ResponseParser};
use assize_core::protocol::sse::{self, Scanner};
use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};

const EVENTS: u64 = 1000;

/// A chunk as vLLM sends one for one token, about 240 bytes.
const EVENT: &str = concat!(
    r#"data: {"id":"chatcmpl-9845d5938ee75f70a1b2c3d4","object":"chat.completion.chunk","#,
    r#""created":1796056432,"model":"Qwen/Qwen3-0.6B","choices":[{"index":0,"delta":"#,
    r#"{"content":" token"},"logprobs":null,"finish_reason":null,"token_ids":null}]}"#,
    "\n\n"
);

const HEAD: &str = "HTTP/1.1 200 OK\r\ndate: Mon, 30 Nov 2026 16:33:59 GMT\r\nserver: uvicorn\r\n\
    content-type: text/event-stream; charset=utf-8\r\ntransfer-encoding: chunked\r\n\r\n";

fn stream() -> Vec<u8> {
    EVENT.repeat(EVENTS as usize).into_bytes()
}

/// The stream as an answer with one event a chunk, as servers write it.
fn answer() -> Vec<u8> {
    let chunk = format!("{:x}\r\n{EVENT}\r\n", EVENT.len());
    format!("{HEAD}{}0\r\n\r\n", chunk.repeat(EVENTS as usize)).into_bytes()
}

fn scan(scanner: &mut Scanner, mut bytes: &[u8]) -> u64 {
    let mut events = 0;
    while let Some(event) = scanner.poll(&mut bytes) {
        black_box(event);
        events += 1;
    }
    events
}

fn parse(parser: &mut ResponseParser, answer: &[u8], every: usize, mut body: impl FnMut(&[u8])) {
    parser.reset();
    for mut read in answer.chunks(every) {
        while let Some(event) = parser.poll(&mut read).expect("a valid answer") {
            if let Event::Body(bytes) = event {
                body(bytes);
            }
        }
    }
    assert!(parser.ended());
}

/// Read sizes: one event a read, one receive buffer, and a cut within every event.
fn read_sizes(event_bytes: usize) -> [(&'static str, usize); 3] {
    [("event", event_bytes), ("4096", 4096), ("100", 100)]
}

fn layers(c: &mut Criterion, unit: &str, throughput: impl Fn(usize) -> Throughput) {
    let (stream, answer) = (stream(), answer());
    let chunk_bytes = EVENT.len() + "f0\r\n\r\n".len();
    let mut parser = ResponseParser::new(Limits::default());

    let mut group = c.benchmark_group(format!("sse/{unit}"));
    group.throughput(throughput(stream.len()));
    for (name, every) in read_sizes(EVENT.len()) {
        group.bench_function(BenchmarkId::new("reads", name), |b| {
            b.iter(|| {
                let mut scanner = Scanner::new();
                let reads = black_box(&stream).chunks(every);
                reads.map(|read| scan(&mut scanner, read)).sum::<u64>()
            });
        });
    }
    group.bench_function("decode", |b| {
        b.iter(|| sse::decode(black_box(&stream)).events.len());
    });
    group.finish();

    let mut group = c.benchmark_group(format!("http1/{unit}"));
    group.throughput(throughput(answer.len()));
    for (name, every) in read_sizes(chunk_bytes) {
        group.bench_function(BenchmarkId::new("reads", name), |b| {
            b.iter(|| {
                parse(&mut parser, black_box(&answer), every, |body| {
                    black_box(body);
                });
            });
        });
    }
    group.finish();

    let mut group = c.benchmark_group(format!("both/{unit}"));
    group.throughput(throughput(answer.len()));
    for (name, every) in read_sizes(chunk_bytes) {
        group.bench_function(BenchmarkId::new("reads", name), |b| {
            b.iter(|| {
                let mut scanner = Scanner::new();
                let mut events = 0;
                parse(&mut parser, black_box(&answer), every, |body| {
                    events += scan(&mut scanner, body);
                });
                assert_eq!(events, EVENTS);
            });
        });
    }
    group.finish();
}

fn per_event(c: &mut Criterion) {
    layers(c, "events", |_| Throughput::Elements(EVENTS));
}

fn per_byte(c: &mut Criterion) {
    layers(c, "bytes", |bytes| Throughput::Bytes(bytes as u64));
}

fn head(c: &mut Criterion) {
    let answer = format!("{HEAD}0\r\n\r\n").into_bytes();
    let mut parser = ResponseParser::new(Limits::default());
    let mut group = c.benchmark_group("http1/heads");
    group.throughput(Throughput::Elements(1));
    for (name, every) in [("whole", answer.len()), ("100", 100)] {
        group.bench_function(BenchmarkId::new("reads", name), |b| {
            b.iter(|| parse(&mut parser, black_box(&answer), every, |_| {}));
        });
    }
    group.finish();
}

criterion_group!(benches, per_event, per_byte, head);
criterion_main!(benches);
