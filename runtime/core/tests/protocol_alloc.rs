//! Nothing is allocated per response or per event, once the parsers are warm.
#![allow(unsafe_code, reason = "a counting allocator")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use assize_core::protocol::http1::{Event, Limits, ResponseParser};
use assize_core::protocol::sse::Scanner;

struct Counting;

thread_local! {
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
}

fn count() {
    ALLOCATIONS.with(|allocations| allocations.set(allocations.get() + 1));
}

// SAFETY: every call goes to the system's allocator unaltered; the count is a thread-local cell
// without a destructor, so counting neither allocates nor outlives its thread.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count();
        // SAFETY: the caller's contract is that of `System`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the caller's contract is that of `System`.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        count();
        // SAFETY: the caller's contract is that of `System`.
        unsafe { System.realloc(pointer, layout, new_size) }
    }
}

#[global_allocator]
static GLOBAL: Counting = Counting;

fn allocations(work: impl FnOnce()) -> u64 {
    let before = ALLOCATIONS.get();
    work();
    ALLOCATIONS.get() - before
}

const EVENTS: u64 = 10_000;

fn answer() -> Vec<u8> {
    let event = r#"data: {"id":"c","choices":[{"index":0,"delta":{"content":"a"}}]}"#;
    let mut bytes =
        b"HTTP/1.1 103 Early Hints\r\n\r\nHTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\
        Transfer-Encoding: chunked\r\n\r\n"
            .to_vec();
    for _ in 1..EVENTS {
        bytes.extend_from_slice(format!("{:x}\r\n{event}\n\n\r\n", event.len() + 2).as_bytes());
    }
    bytes.extend_from_slice(b"e\r\ndata: [DONE]\n\n\r\n0\r\nX-Sum: 1\r\n\r\n");
    bytes
}

/// Feeds one answer in reads of `every` bytes; gives the events and whether the last was `[DONE]`.
fn feed(parser: &mut ResponseParser, answer: &[u8], every: usize) -> (u64, bool) {
    let mut scanner = Scanner::new();
    let mut events = 0;
    let mut done = false;
    parser.reset();
    for mut read in answer.chunks(every) {
        while let Some(event) = parser.poll(&mut read).expect("a valid answer") {
            let Event::Body(mut body) = event else {
                continue;
            };
            while let Some(event) = scanner.poll(&mut body) {
                events += 1;
                done = event.done;
            }
        }
    }
    assert!(parser.ended() && !scanner.pending());
    (events, done)
}

#[test]
fn a_warm_parser_allocates_nothing() {
    let answer = answer();
    let mut parser = ResponseParser::new(Limits::default());
    let cold = allocations(|| {
        feed(&mut parser, &answer, 7);
    });
    assert!(
        cold > 0,
        "the head spans reads, so its buffer was allocated"
    );
    for every in [1, 7, 64, 4096, answer.len()] {
        let warm = allocations(|| {
            assert_eq!(feed(&mut parser, &answer, every), (EVENTS, true));
        });
        assert_eq!(warm, 0, "reads of {every}");
    }
}

#[test]
fn a_head_within_one_read_allocates_nothing_even_cold() {
    let answer = answer();
    let cold = allocations(|| {
        let mut parser = ResponseParser::new(Limits::default());
        feed(&mut parser, &answer, 4096);
    });
    assert_eq!(cold, 0);
}
