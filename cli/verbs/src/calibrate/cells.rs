//! The cells that are run, and what is read off them.

use std::sync::Arc;

use assize_core::protocol::http1::Limits;
use assize_core::{
    CellSpec, ConnectionPolicy, Driver, LoadSpec, ReceiveMode, RequestSpec, RunControl, Session,
    Terminal,
};
use assize_evidence::wire::FileHeader;
use assize_evidence::{MemoryStore, Store};
use assize_host::{Backpressure, Recorder, RenderedCell, Secrets};
use assize_plan::Hash;
use assize_sim::WriteStamp;
use assize_units::{DurNs, MonoNs, OffsetNs};
use rustix::time::{ClockId, clock_gettime};

use super::failed;
use super::peer::{PeerLink, Stream};
use super::stamps::Watch;
use crate::problem::Problem;

/// Bytes of an event: about a token's with its usual fields.
const EVENT_BYTES: usize = 250;
/// As a plan has it where the study says nothing.
const SPIN: DurNs = DurNs::from_us(60);
/// Nothing here takes so long; it bounds what goes wrong.
const TIMEOUT: DurNs = DurNs::from_s(5);
/// Receives of one event at most that room is made for.
const READS_AN_EVENT: usize = 2;

const HEAD: &str = "POST /v1/completions HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-length: 2\r\n\r\n";
const BODY: &str = "{}";

/// A driver and its peer.
pub(super) struct Bench<'a> {
    pub driver: &'a mut dyn Driver,
    pub link: &'a mut PeerLink,
    pub receive: ReceiveMode,
    pub recording: bool,
}

/// What one cell gave.
#[derive(Clone, Debug, Default)]
pub(super) struct Measured {
    /// See [`super::stamps::Compared`].
    pub errors: Vec<DurNs>,
    pub early: u64,
    pub unmatched: u64,
    pub kernel_stamped: u64,
    pub receives: u64,
    /// Dispatched minus intended.
    pub lags: Vec<DurNs>,
    /// CPU time of the process over the cell, with the recorder's end.
    pub cpu_ns: DurNs,
    /// Events that came.
    pub events: u64,
    /// Requests that ended well, and others.
    pub complete: u64,
    pub failed: u64,
    /// From the peer's first event to its last.
    pub written_over: DurNs,
}

impl Bench<'_> {
    /// Streams at once, whose starts are spread over one gap so that events do not come in step.
    pub fn streams(&mut self, streams: u32, events: u32, gap: DurNs) -> Result<Measured, Problem> {
        let offsets = (0..streams).map(|place| gap.0 * u64::from(place) / u64::from(streams));
        let stream = Stream {
            connections: streams,
            events,
            event_bytes: EVENT_BYTES,
            // After the head, so that each event is a receive of its own.
            first: gap,
            gap,
        };
        self.cell(
            stream,
            offsets.map(OffsetNs).collect(),
            ConnectionPolicy::Fresh,
        )
    }

    /// Short requests at equal gaps, on connections that are used again.
    pub fn requests(&mut self, requests: u32, gap: DurNs) -> Result<Measured, Problem> {
        let offsets = (0..requests).map(|place| gap.0 * u64::from(place));
        let stream = Stream {
            connections: requests,
            events: 1,
            event_bytes: EVENT_BYTES,
            first: DurNs::ZERO,
            gap: DurNs::ZERO,
        };
        let reuse = ConnectionPolicy::Reuse { idle: TIMEOUT };
        self.cell(stream, offsets.map(OffsetNs).collect(), reuse)
    }

    fn cell(
        &mut self,
        stream: Stream,
        offsets: Vec<OffsetNs>,
        connections: ConnectionPolicy,
    ) -> Result<Measured, Problem> {
        let address = self.link.serve(stream)?;
        let last = offsets.last().map_or(0, |offset| offset.0);
        let longest = DurNs(stream.gap.0 * u64::from(stream.events) + last + TIMEOUT.0);
        let request = RequestSpec {
            target: 0,
            head: HEAD.into(),
            body: Arc::from(BODY.as_bytes()),
            timeout: longest,
            connect_timeout: None,
            idle_timeout: None,
        };
        let spec = Arc::new(CellSpec {
            requests: vec![request; offsets.len()],
            load: LoadSpec::Open { offsets, cap: None },
            targets: vec![address.into()],
            connections,
            drain: longest,
            limits: Limits::default(),
            spin: SPIN,
            receive: self.receive,
        });
        let receives =
            spec.requests.len() * (stream.events as usize * READS_AN_EVENT + READS_AN_EVENT);
        let recorder = if self.recording {
            Some(self.recorder(&spec)?)
        } else {
            None
        };
        let mut session = Session::new(spec.clone());
        let mut watch = Watch::new(recorder, receives, spec.requests.len());
        let before = process_cpu_ns();
        let driven = self
            .driver
            .run_cell(&mut session, &mut watch, &RunControl::default());
        let recorded = watch.finish_record();
        let cpu_ns = DurNs(process_cpu_ns().saturating_sub(before));
        let writes = self.link.stop()?;
        driven.map_err(|failure| failed(&failure.to_string()))?;
        if let Some(end) = recorded {
            if end.overflowed {
                return Err(failed("the recorder could not keep up"));
            }
            if let Some(error) = end.error {
                return Err(failed(&format!("the record: {error}")));
            }
        }
        let compared = watch.compare(&writes);
        let mut measured = Measured {
            errors: compared.errors,
            early: compared.early,
            unmatched: compared.unmatched,
            kernel_stamped: watch.kernel_stamped,
            receives: watch.receives(),
            cpu_ns,
            written_over: span_of_events(&writes),
            ..Measured::default()
        };
        measured.read(&session);
        Ok(measured)
    }

    /// Into memory: what a disk adds is the host's, and is spent by the writer's thread.
    fn recorder(&self, spec: &Arc<CellSpec>) -> Result<Recorder, Problem> {
        let kept = |error: std::io::Error| failed(&format!("the record: {error}"));
        let header = FileHeader {
            unit: 0,
            cell: 0,
            plan: Hash::of(b""),
            begun: self.driver.now(),
        };
        Recorder::new(
            MemoryStore::new().create("wire").map_err(kept)?,
            header,
            Arc::new(RenderedCell::without_plan(spec.clone())),
            Secrets::none(),
            Backpressure::Overflow,
        )
        .map_err(kept)
    }
}

impl Measured {
    fn read(&mut self, session: &Session) {
        for exchange in session.exchanges() {
            self.events += u64::from(exchange.events - exchange.done_events);
            match exchange.terminal {
                Some(Terminal::Complete) => self.complete += 1,
                _ => self.failed += 1,
            }
            if let (Some(dispatched), Some(intended)) = (exchange.dispatched, exchange.intended) {
                self.lags.push(dispatched.since(intended));
            }
        }
    }
}

/// From the first event written to the last. The first write of a connection is its head.
fn span_of_events(writes: &[WriteStamp]) -> DurNs {
    let mut begun = std::collections::BTreeSet::new();
    let events: Vec<MonoNs> = writes
        .iter()
        .filter(|write| !begun.insert(write.conn))
        .map(|write| write.at)
        .collect();
    match (events.iter().min(), events.iter().max()) {
        (Some(first), Some(last)) => last.since(*first),
        _ => DurNs::ZERO,
    }
}

/// CPU time of all threads of this process.
fn process_cpu_ns() -> u64 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    let part = |value: i64| u64::try_from(value).unwrap_or(0);
    part(time.tv_sec) * 1_000_000_000 + part(time.tv_nsec)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn heads_do_not_count_as_events() {
        let write = |conn, at| WriteStamp {
            conn,
            at: MonoNs(at),
            bytes: 1,
        };
        let writes = [write(0, 5), write(1, 7), write(0, 10), write(1, 30)];
        assert_eq!(span_of_events(&writes), DurNs(20));
        assert_eq!(span_of_events(&writes[..2]), DurNs::ZERO);
    }
}
