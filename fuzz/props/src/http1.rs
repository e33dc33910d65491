//! The HTTP/1.1 response parser over any bytes and any reads.

use assize_core::protocol::http1::{Event, Head, Http1Error, Limits, ResponseParser};

use crate::reads::{Input, read_of};

/// What a response came to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// Statuses of interim answers.
    pub interim: Vec<u16>,
    /// The final head.
    pub head: Option<Head>,
    /// The body.
    pub body: Vec<u8>,
    /// Whether the connection may be used again, once the message is complete.
    pub end: Option<bool>,
    /// Why it failed.
    pub error: Option<Http1Error>,
    /// Bytes after the message.
    pub surplus: usize,
    /// The read that completed the head, and the one that completed the message.
    pub reads: [Option<usize>; 2],
}

/// Parses one response from `reads`.
pub fn parse(parser: &mut ResponseParser, reads: &[&[u8]], eof: bool) -> Outcome {
    let mut outcome = Outcome::default();
    for (index, read) in reads.iter().enumerate() {
        let mut input = *read;
        loop {
            match parser.poll(&mut input) {
                Ok(Some(event)) => note(&mut outcome, event, index),
                Ok(None) => break,
                Err(error) => {
                    assert_eq!(parser.poll(&mut input), Err(error), "an error lasts");
                    outcome.error = Some(error);
                    return outcome;
                }
            }
        }
        assert!(input.is_empty() || parser.ended(), "bytes left untaken");
        outcome.surplus += input.len();
    }
    if eof {
        match parser.handle_eof() {
            Ok(end) => outcome.end = end.map(|end| end.keep_alive).or(outcome.end),
            Err(error) => outcome.error = Some(error),
        }
    }
    assert_eq!(parser.ended(), outcome.end.is_some());
    assert_eq!(parser.head_done(), outcome.head.is_some());
    assert_eq!(parser.body_bytes(), outcome.body.len() as u64);
    outcome
}

fn note(outcome: &mut Outcome, event: Event<'_>, read: usize) {
    assert!(outcome.end.is_none(), "nothing follows the end");
    match event {
        Event::Interim { status } => {
            assert!(outcome.head.is_none() && (100..200).contains(&status) && status != 101);
            outcome.interim.push(status);
        }
        Event::Head(head) => {
            assert!(outcome.head.is_none() && head.status >= 200);
            outcome.head = Some(head);
            outcome.reads[0] = Some(read);
        }
        Event::Body(bytes) => {
            assert!(outcome.head.is_some() && !bytes.is_empty());
            outcome.body.extend_from_slice(bytes);
        }
        Event::End(end) => {
            assert!(outcome.head.is_some());
            outcome.end = Some(end.keep_alive);
            outcome.reads[1] = Some(read);
        }
    }
}

fn limits(small: bool) -> Limits {
    if !small {
        return Limits::default();
    }
    Limits {
        head_bytes: 64,
        headers: 3,
        interim: 1,
        chunk_line_bytes: 8,
        trailer_bytes: 16,
        body_bytes: 16,
    }
}

/// The same bytes give the same outcome by any reads, and each mark belongs to the read of the
/// byte that completed it.
pub fn check(data: &[u8]) {
    let Some(input) = Input::of(data) else { return };
    let limits = limits(input.small);
    let mut parser = ResponseParser::new(limits);
    let bytewise = parse(&mut parser, &input.bytewise(), input.eof);
    assert!(bytewise.body.len() as u64 <= limits.body_bytes);
    for reads in [input.whole(), input.drawn()] {
        parser.reset();
        let mut outcome = parse(&mut parser, &reads, input.eof);
        let due = bytewise.reads.map(|at| at.map(|at| read_of(&reads, at)));
        assert_eq!(outcome.reads, due);
        outcome.reads = bytewise.reads;
        assert_eq!(outcome, bytewise);
    }
}
