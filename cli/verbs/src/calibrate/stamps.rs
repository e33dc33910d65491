//! The two sides' stamps of the same bytes, and distributions of their differences.

use assize_core::{ConnId, Entry, Sink, Stamp};
use assize_evidence::calibration::Distribution;
use assize_host::{Recorder, RecorderEnd};
use assize_sim::WriteStamp;
use assize_units::{DurNs, MonoNs};

/// Nearest-rank percentiles of values in any order; none of none.
pub(super) fn distribution(mut values: Vec<DurNs>) -> Option<Distribution> {
    values.sort_unstable();
    let rank = |percent: usize| {
        let rank = (values.len() * percent).div_ceil(100).max(1);
        values.get(rank - 1).copied()
    };
    Some(Distribution {
        p50_ns: rank(50)?,
        p95_ns: rank(95)?,
        p99_ns: rank(99)?,
        max_ns: rank(100)?,
        samples: values.len() as u64,
    })
}

/// The header by which a peer tells a connection's number: connections may be accepted in another
/// order than they were begun in.
pub(super) const NUMBER_HEADER: &str = "x-connection: ";

/// Keeps a stamp of each receive, and hands everything to a recorder where there is one.
pub(super) struct Watch {
    recorder: Option<Recorder>,
    receives: Vec<Receive>,
    /// The peer's number of each connection, by the client's.
    numbers: Vec<Option<u64>>,
    /// Wall clock minus monotonic clock, as last read.
    ahead_ns: i64,
    pub kernel_stamped: u64,
}

/// One receive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Receive {
    serial: u32,
    at: MonoNs,
    bytes: u64,
}

impl Watch {
    /// Room for so many receives and connections is made before.
    pub fn new(recorder: Option<Recorder>, receives: usize, connections: usize) -> Watch {
        Watch {
            recorder,
            receives: Vec::with_capacity(receives),
            numbers: Vec::with_capacity(connections),
            ahead_ns: 0,
            kernel_stamped: 0,
        }
    }

    /// Ends the record, where there is one.
    pub fn finish_record(&mut self) -> Option<RecorderEnd> {
        self.recorder.take().map(Recorder::finish)
    }

    /// Receives that brought bytes.
    pub fn receives(&self) -> u64 {
        self.receives.len() as u64
    }

    fn receive(&mut self, at: Stamp, conn: ConnId, bytes: &[u8]) {
        let place = conn.serial as usize;
        if place >= self.numbers.len() {
            self.numbers.resize(place + 1, None);
        }
        if self.numbers[place].is_none() {
            self.numbers[place] = number_in(bytes);
        }
        let mono = match (at.kernel_ns, i64::try_from(at.kernel_ns)) {
            (1.., Ok(wall_ns)) => {
                self.kernel_stamped += 1;
                MonoNs(u64::try_from(wall_ns - self.ahead_ns).unwrap_or(0))
            }
            _ => at.mono,
        };
        self.receives.push(Receive {
            serial: conn.serial,
            at: mono,
            bytes: bytes.len() as u64,
        });
    }

    /// The differences to a peer's stamps.
    pub fn compare(&self, writes: &[WriteStamp]) -> Compared {
        compare(&self.receives, &self.numbers, writes)
    }
}

impl Sink for Watch {
    fn put(&mut self, at: Stamp, conn: Option<ConnId>, req: Option<u32>, entry: Entry<'_>) {
        match (&entry, conn) {
            (Entry::Received(bytes), Some(conn)) => self.receive(at, conn, bytes),
            (Entry::Clock { offset_ns, .. }, _) => self.ahead_ns = *offset_ns,
            _ => {}
        }
        if let Some(recorder) = &mut self.recorder {
            recorder.put(at, conn, req, entry);
        }
    }

    fn overflowed(&self) -> bool {
        self.recorder.as_ref().is_some_and(Sink::overflowed)
    }
}

/// The connection's number in the head of an answer.
fn number_in(bytes: &[u8]) -> Option<u64> {
    let text = std::str::from_utf8(bytes).ok()?;
    let (_, rest) = text.split_once(NUMBER_HEADER)?;
    rest.split_once("\r\n")?.0.parse().ok()
}

/// What the two sides' stamps say of each other.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Compared {
    /// For each write, the stamp of the receive that completed it minus its own.
    pub errors: Vec<DurNs>,
    /// Receives that were stamped before their write: no error is counted for them.
    pub early: u64,
    /// Writes on connections whose two sides do not agree on their bytes.
    pub unmatched: u64,
}

fn compare(receives: &[Receive], numbers: &[Option<u64>], writes: &[WriteStamp]) -> Compared {
    let mut compared = Compared::default();
    let mut by_conn: std::collections::BTreeMap<u64, (Vec<WriteStamp>, Vec<Receive>)> =
        std::collections::BTreeMap::new();
    for write in writes {
        by_conn.entry(write.conn).or_default().0.push(*write);
    }
    for receive in receives {
        let number = numbers.get(receive.serial as usize).copied().flatten();
        if let Some((_, receives)) = number.and_then(|number| by_conn.get_mut(&number)) {
            receives.push(*receive);
        }
    }
    for (writes, receives) in by_conn.values() {
        let written: u64 = writes.iter().map(|write| write.bytes).sum();
        let received: u64 = receives.iter().map(|receive| receive.bytes).sum();
        if written == received {
            compare_connection(writes, receives, &mut compared);
        } else {
            compared.unmatched += writes.len() as u64;
        }
    }
    compared
}

/// Each write with the receive that brought its last byte.
fn compare_connection(writes: &[WriteStamp], receives: &[Receive], compared: &mut Compared) {
    let mut receives = receives.iter();
    let (mut written, mut received) = (0, 0);
    let mut at = MonoNs(0);
    for write in writes {
        written += write.bytes;
        while received < written {
            let Some(next) = receives.next() else {
                return;
            };
            received += next.bytes;
            at = next.at;
        }
        compared.early += u64::from(at < write.at);
        compared.errors.push(at.since(write.at));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(conn: u64, at: u64, bytes: u64) -> WriteStamp {
        WriteStamp {
            conn,
            at: MonoNs(at),
            bytes,
        }
    }

    fn receive(serial: u32, at: u64, bytes: u64) -> Receive {
        Receive {
            serial,
            at: MonoNs(at),
            bytes,
        }
    }

    #[test]
    fn percentiles_are_nearest_rank() {
        let values: Vec<DurNs> = (1..=200).rev().map(DurNs).collect();
        let found = distribution(values).unwrap();
        assert_eq!(
            (found.p50_ns, found.p95_ns, found.p99_ns, found.max_ns),
            (DurNs(100), DurNs(190), DurNs(198), DurNs(200))
        );
        assert_eq!(distribution(Vec::new()), None);
        let one = distribution(vec![DurNs(7)]).unwrap();
        assert_eq!((one.p50_ns, one.samples), (DurNs(7), 1));
    }

    #[test]
    fn a_write_is_matched_with_the_receive_of_its_last_byte() {
        // Two writes in one receive, then one write in two.
        let writes = [write(0, 100, 10), write(0, 110, 5), write(0, 200, 8)];
        let receives = [receive(0, 130, 15), receive(0, 210, 3), receive(0, 240, 5)];
        let compared = compare(&receives, &[Some(0)], &writes);
        assert_eq!(compared.errors, [DurNs(30), DurNs(20), DurNs(40)]);
        assert_eq!((compared.early, compared.unmatched), (0, 0));
    }

    #[test]
    fn connections_are_told_apart_by_the_peer_s_number() {
        let writes = [write(0, 100, 4), write(1, 200, 4)];
        let receives = [receive(1, 103, 4), receive(0, 205, 4)];
        let compared = compare(&receives, &[Some(1), Some(0)], &writes);
        assert_eq!(compared.errors, [DurNs(3), DurNs(5)]);
    }

    #[test]
    fn early_stamps_and_missing_bytes_are_counted() {
        let writes = [write(0, 100, 4), write(1, 200, 4)];
        let receives = [receive(0, 99, 4), receive(1, 205, 3)];
        let compared = compare(&receives, &[Some(0), Some(1)], &writes);
        assert_eq!(compared.errors, [DurNs::ZERO]);
        assert_eq!((compared.early, compared.unmatched), (1, 1));
    }

    #[test]
    fn a_head_tells_its_connection() {
        let head = b"HTTP/1.1 200 OK\r\nx-connection: 17\r\n\r\n";
        assert_eq!(number_in(head), Some(17));
        assert_eq!(number_in(b"HTTP/1.1 200 OK\r\n\r\n"), None);
        assert_eq!(number_in(b"x-connection: \r\n"), None);
    }
}
