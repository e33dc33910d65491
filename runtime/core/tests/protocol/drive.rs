//! Feeds bytes to the parsers as reads, and notes what came of which byte.

use assize_core::protocol::http1::{Event, Head, Http1Error, Limits, ResponseParser};
use assize_core::protocol::sse::Scanner;

/// What a response came to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Response {
    pub informational: Vec<u16>,
    pub head: Option<Head>,
    pub body: Vec<u8>,
    /// `keep_alive` of the end, if the message was complete.
    pub end: Option<bool>,
    pub error: Option<Http1Error>,
    pub leftover: Vec<u8>,
}

/// The reads that `cuts` make of `bytes`; edges beyond the end are ignored.
pub fn reads<'b>(bytes: &'b [u8], cuts: &[usize]) -> Vec<&'b [u8]> {
    let mut start = 0;
    let mut reads = Vec::new();
    for &cut in cuts.iter().filter(|&&cut| cut < bytes.len()) {
        if cut > start {
            reads.push(&bytes[start..cut]);
            start = cut;
        }
    }
    reads.push(&bytes[start..]);
    reads
}

/// One response from `reads`, then the end of the connection where `eof` says so.
pub fn respond(parser: &mut ResponseParser, reads: &[&[u8]], eof: bool) -> Response {
    let mut response = Response::default();
    for read in reads {
        let mut input = *read;
        if let Err(error) = feed(parser, &mut input, &mut response) {
            response.error = Some(error);
            return response;
        }
        response.leftover.extend_from_slice(input);
    }
    if eof {
        match parser.handle_eof() {
            Ok(end) => response.end = end.map(|end| end.keep_alive).or(response.end),
            Err(error) => response.error = Some(error),
        }
    }
    response
}

fn feed(
    parser: &mut ResponseParser,
    input: &mut &[u8],
    response: &mut Response,
) -> Result<(), Http1Error> {
    while let Some(event) = parser.poll(input)? {
        match event {
            Event::Interim { status } => response.informational.push(status),
            Event::Head(head) => response.head = Some(head),
            Event::Body(bytes) => {
                assert!(!bytes.is_empty(), "an empty body slice");
                response.body.extend_from_slice(bytes);
            }
            Event::End(end) => response.end = Some(end.keep_alive),
        }
    }
    assert!(input.is_empty() || parser.ended(), "bytes left untaken");
    Ok(())
}

/// What of a response is timed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mark {
    Interim(u16),
    Head,
    End(bool),
    Error(Http1Error),
}

/// Each mark with the read that completed it.
pub fn timeline(reads: &[&[u8]]) -> Vec<(Mark, usize)> {
    let mut parser = parser();
    let mut marks = Vec::new();
    for (index, read) in reads.iter().enumerate() {
        let mut input = *read;
        loop {
            let mark = match parser.poll(&mut input) {
                Ok(Some(Event::Interim { status })) => Mark::Interim(status),
                Ok(Some(Event::Head(_))) => Mark::Head,
                Ok(Some(Event::End(end))) => Mark::End(end.keep_alive),
                Ok(Some(Event::Body(_))) => continue,
                Ok(None) => break,
                Err(error) => {
                    marks.push((Mark::Error(error), index));
                    return marks;
                }
            };
            marks.push((mark, index));
        }
    }
    marks
}

/// A fresh parser with the default limits.
pub fn parser() -> ResponseParser {
    ResponseParser::new(Limits::default())
}

/// What a stream came to: for each event whether it is `[DONE]` and the read that completed it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Scan {
    pub events: Vec<(bool, usize)>,
    pub pending: bool,
}

pub fn scan(reads: &[&[u8]]) -> Scan {
    let mut scanner = Scanner::new();
    let mut events = Vec::new();
    for (index, read) in reads.iter().enumerate() {
        let mut input = *read;
        while let Some(event) = scanner.poll(&mut input) {
            events.push((event.done, index));
        }
        assert!(input.is_empty(), "bytes left untaken");
    }
    Scan {
        events,
        pending: scanner.pending(),
    }
}

/// The read that holds the byte at `byte`, where `cuts` are the edges of the reads.
pub fn read_of(byte: usize, cuts: &[usize], len: usize) -> usize {
    let mut edges: Vec<usize> = cuts.iter().copied().filter(|&c| c < len && c > 0).collect();
    edges.dedup();
    edges.partition_point(|&edge| edge <= byte)
}

/// The scan that `cuts` must give, from a scan byte by byte: each event belongs to the read that
/// holds the byte which completed it.
pub fn regroup(bytewise: &Scan, cuts: &[usize], len: usize) -> Scan {
    Scan {
        events: bytewise
            .events
            .iter()
            .map(|&(done, byte)| (done, read_of(byte, cuts, len)))
            .collect(),
        pending: bytewise.pending,
    }
}
