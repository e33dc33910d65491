//! Deadlines of requests: a heap whose entries die with their requests.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use assize_units::MonoNs;

use crate::sink::TimerKind;

/// Deadlines, the earliest first. An entry of an ended request is dropped when it comes up.
#[derive(Debug)]
pub(crate) struct Deadlines {
    heap: BinaryHeap<Reverse<(MonoNs, u32, TimerKind)>>,
}

impl Deadlines {
    /// Room for one deadline a request; more are taken as they come.
    pub fn new(requests: usize) -> Deadlines {
        Deadlines {
            heap: BinaryHeap::with_capacity(requests),
        }
    }

    pub fn push(&mut self, at: MonoNs, req: u32, kind: TimerKind) {
        self.heap.push(Reverse((at, req, kind)));
    }

    pub fn next(&self) -> Option<MonoNs> {
        self.heap.peek().map(|Reverse((at, _, _))| *at)
    }

    pub fn pop_due(&mut self, now: MonoNs) -> Option<(MonoNs, u32, TimerKind)> {
        (self.next()? <= now).then(|| self.heap.pop().expect("peeked above").0)
    }
}
