//! The event scanner over any bytes and any reads, and against the decoder.

use assize_core::protocol::sse::{Scanner, decode};

use crate::reads::{Input, read_of};

/// What a stream came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scan {
    /// Of each event, whether it is `[DONE]`, and the read that completed it.
    pub events: Vec<(bool, usize)>,
    /// Whether the stream ends within an event.
    pub pending: bool,
}

/// Scans `reads` as one stream.
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

/// The same bytes give the same events by any reads, each in the read of the byte that completed
/// it, and the decoder finds the same.
pub fn check(data: &[u8]) {
    let Some(input) = Input::of(data) else { return };
    let bytewise = scan(&input.bytewise());
    for reads in [input.whole(), input.drawn()] {
        let due = Scan {
            events: bytewise
                .events
                .iter()
                .map(|&(done, at)| (done, read_of(&reads, at)))
                .collect(),
            pending: bytewise.pending,
        };
        assert_eq!(scan(&reads), due);
    }
    let decoded = decode(input.stream);
    assert_eq!(decoded.events.len(), bytewise.events.len());
    for (event, (done, _)) in decoded.events.iter().zip(&bytewise.events) {
        assert_eq!(*event.data == *b"[DONE]", *done);
    }
    assert_eq!(decoded.pending, bytewise.pending);
}
