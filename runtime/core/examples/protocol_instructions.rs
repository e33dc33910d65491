//! One answer through both parsers, for instruction counts: `docs/protocol.md` has the command.

use std::hint::black_box;

use assize_core::protocol::http1::{Event, Limits, ResponseParser};
use assize_core::protocol::sse::Scanner;

fn main() {
    let events: usize = std::env::args()
        .nth(1)
        .and_then(|count| count.parse().ok())
        .expect("the number of events");
    let event = format!("data: {{\"choices\":[{}]}}\n\n", "x".repeat(220));
    let chunk = format!("{:x}\r\n{event}\r\n", event.len());
    let head =
        b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n";
    let mut parser = ResponseParser::new(Limits::default());
    let mut scanner = Scanner::new();
    let mut found = 0;
    for read in std::iter::once(&head[..]).chain(std::iter::repeat_n(chunk.as_bytes(), events)) {
        let mut read = black_box(read);
        while let Some(event) = parser.poll(&mut read).expect("a valid answer") {
            let Event::Body(mut body) = event else {
                continue;
            };
            while let Some(event) = scanner.poll(&mut body) {
                found += usize::from(!event.done);
            }
        }
    }
    assert_eq!(found, events);
}
