//! Which request is due, and which may be sent.
//!
//! Both loads are one machine with two cursors. A request is *dispatched* when it is due: at its
//! offset in an open load, at the origin in a closed one. It is *admitted*, first in first out, when
//! fewer than `limit` are in flight; an open load without a cap has no limit. No answer moves the
//! first cursor.

use assize_units::{MonoNs, OffsetNs};

use crate::cell::LoadSpec;

/// The two cursors of a cell's load.
#[derive(Debug)]
pub(crate) struct Load {
    total: u32,
    limit: u32,
    dispatched: u32,
    admitted: u32,
    in_flight: u32,
    closed: bool,
}

impl Load {
    pub fn new(spec: &LoadSpec, total: u32) -> Load {
        let (limit, closed) = match spec {
            LoadSpec::Open { cap, .. } => (cap.unwrap_or(u32::MAX), false),
            LoadSpec::Closed { clients } => (*clients, true),
        };
        Load {
            total,
            limit: limit.max(1),
            dispatched: 0,
            admitted: 0,
            in_flight: 0,
            closed,
        }
    }

    /// When the next undispatched request is due.
    pub fn next_due(&self, spec: &LoadSpec, origin: MonoNs) -> Option<MonoNs> {
        (self.dispatched < self.total).then(|| intended(spec, origin, self.dispatched))
    }

    /// Dispatches the next request if it is due.
    pub fn dispatch(&mut self, spec: &LoadSpec, origin: MonoNs, now: MonoNs) -> Option<u32> {
        let due = self.next_due(spec, origin)?;
        (due <= now).then(|| {
            self.dispatched += 1;
            self.dispatched - 1
        })
    }

    /// Admits the next dispatched request if the limit permits it.
    pub fn admit(&mut self) -> Option<u32> {
        self.can_admit().then(|| {
            self.admitted += 1;
            self.in_flight += 1;
            self.admitted - 1
        })
    }

    /// Whether all requests are due at the origin.
    pub fn is_closed(&self) -> bool {
        self.closed
    }

    pub fn can_admit(&self) -> bool {
        self.admitted < self.dispatched && self.in_flight < self.limit
    }

    /// One that was in flight has ended.
    pub fn release(&mut self) {
        self.in_flight -= 1;
    }

    /// Stops both cursors: what is not admitted never will be.
    pub fn abandon(&mut self) {
        self.dispatched = self.total;
        self.admitted = self.total;
    }

    pub fn all_admitted(&self) -> bool {
        self.admitted == self.total
    }

    /// Whether an ending request makes room for one that waits: then a late reap costs throughput.
    pub fn refills(&self) -> bool {
        (self.closed || self.limit != u32::MAX) && !self.all_admitted()
    }
}

/// The plan's instant of a request.
pub(crate) fn intended(spec: &LoadSpec, origin: MonoNs, index: u32) -> MonoNs {
    match spec {
        LoadSpec::Open { offsets, .. } => {
            origin.at(offsets.get(index as usize).copied().unwrap_or(OffsetNs(0)))
        }
        LoadSpec::Closed { .. } => origin,
    }
}
