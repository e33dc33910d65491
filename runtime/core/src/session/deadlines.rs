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
    /// Room for as many as can be pending at once.
    pub fn new(most: usize) -> Deadlines {
        Deadlines {
            heap: BinaryHeap::with_capacity(most),
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

    /// Drops the first deadlines that no longer mean anything, so that nobody wakes for them.
    pub fn drop_first_while(&mut self, settled: impl Fn(u32, TimerKind) -> bool) {
        while let Some(Reverse((_, req, kind))) = self.heap.peek() {
            if !settled(*req, *kind) {
                return;
            }
            self.heap.pop();
        }
    }
}
