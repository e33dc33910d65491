//! `calibrate`: how true the stamps are here, how late requests are sent, and what observing costs.
//!
//! The real drivers read from a peer in a process of its own, which stamps each write on the same
//! CLOCK_MONOTONIC. `docs/calibrate.md` defines each figure.

mod cells;
mod peer;
mod stamps;

use assize_codes::E0911;
use assize_core::ReceiveMode;
use assize_drivers::{DriverChoice, Probe, choose};
use assize_host::facts;
use assize_units::DurNs;
use serde::Serialize;

use crate::doctor::steal_permille;
use crate::problem::Problem;

pub use peer::{PeerLink, PeerProcess, serve_peer};
pub use stamps::Distribution;

use cells::{Bench, Measured};

/// How much is measured.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Amounts {
    /// Streams at once.
    pub streams: u32,
    /// Events of each stream.
    pub events: u32,
    /// From one event of a stream to the next.
    pub gap_ns: DurNs,
    /// Short requests, for dispatch lag and cost of a request.
    pub requests: u32,
    /// From one of them to the next.
    pub request_gap_ns: DurNs,
    /// Rates of events a second that are tried one after the other.
    pub rates: Vec<u32>,
    /// How long each is tried.
    pub rung_ns: DurNs,
    /// When so much time has passed, no further rate is tried.
    pub budget_ns: DurNs,
}

impl Amounts {
    /// Under a minute.
    pub fn full() -> Amounts {
        Amounts {
            streams: 32,
            events: 100,
            gap_ns: DurNs::from_ms(10),
            requests: 500,
            request_gap_ns: DurNs::from_ms(2),
            rates: vec![2_000, 5_000, 10_000, 20_000, 40_000, 80_000],
            rung_ns: DurNs::from_ms(400),
            budget_ns: DurNs::from_s(45),
        }
    }

    /// About ten seconds, with fewer samples.
    pub fn quick() -> Amounts {
        Amounts {
            events: 25,
            requests: 100,
            rates: vec![2_000, 10_000, 40_000],
            rung_ns: DurNs::from_ms(150),
            ..Amounts::full()
        }
    }
}

/// What was measured.
#[derive(Clone, Debug, Serialize)]
pub struct Calibration {
    /// How much.
    pub amounts: Amounts,
    /// One for each driver, way of receiving and recording.
    pub rows: Vec<Row>,
    /// Drivers that are not to be had.
    pub absent: Vec<Absent>,
    /// The host beside the figures.
    pub host: Beside,
}

/// A driver that is not to be had.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Absent {
    /// Which one.
    pub driver: &'static str,
    /// What the system said.
    pub why: String,
}

/// What else the host was doing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Beside {
    /// Load average over 1, 5 and 15 minutes, before.
    pub load_before: Option<String>,
    /// The same, after.
    pub load_after: Option<String>,
    /// Processors.
    pub online: Option<String>,
    /// CPU time that a hypervisor gave to others, in thousandths of all there was.
    pub steal_permille: Option<u64>,
    /// How long it took.
    pub took_ns: DurNs,
}

/// One way of observing.
#[derive(Clone, Debug, Serialize)]
pub struct Row {
    /// The driver.
    pub driver: &'static str,
    /// As a study says it: `reap` or `kernel(gather = 500us)`.
    pub receive: &'static str,
    /// Whether each byte was recorded.
    pub recording: bool,
    /// A receive's stamp minus the peer's stamp of the same write.
    pub receive_error: Option<Distribution>,
    /// Stamps before the peer's own: the two clocks' conversion. They count as no error.
    pub early: u64,
    /// Receives that bore the kernel's stamp, of `receives`.
    pub kernel_stamped: u64,
    /// Receives that brought bytes.
    pub receives: u64,
    /// Dispatched minus intended.
    pub dispatch_lag: Option<Distribution>,
    /// CPU time of the process for each event.
    pub cpu_per_event_ns: Option<DurNs>,
    /// CPU time of the process for each short request.
    pub cpu_per_request_ns: Option<DurNs>,
    /// The highest rate of events a second that was held.
    pub held: Option<u32>,
    /// Why no higher one was.
    pub limit: Limit,
    /// Each try of a rate.
    pub rungs: Vec<Rung>,
    /// Requests that did not end well, in all measurements but that of rates.
    pub failed: u64,
}

/// One try of a rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Rung {
    /// Events a second.
    pub rate: u32,
    /// Receive error at p99.
    pub p99_ns: Option<DurNs>,
    /// How it went.
    pub outcome: Outcome,
}

/// How a rate went.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// Every event came, with an error under a millisecond at p99.
    Held,
    /// The error was larger, or events are missing.
    NotHeld,
    /// The peer did not write at that rate.
    PeerBehind,
}

/// Why no higher rate was held.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Limit {
    /// All that were tried were held.
    HighestTried,
    /// The next was not held.
    NotHeld,
    /// The peer could not write faster.
    Peer,
    /// The time for it was over.
    Time,
}

impl Limit {
    /// In words.
    pub fn name(self) -> &'static str {
        match self {
            Limit::HighestTried => "highest tried",
            Limit::NotHeld => "next not held",
            Limit::Peer => "peer no faster",
            Limit::Time => "time was up",
        }
    }
}

/// The largest error at p99 of a rate that counts as held.
const HELD_BELOW: DurNs = DurNs::from_ms(1);

/// How often a rate is tried: on a busy host a single stall of a few milliseconds fails a short try.
const ATTEMPTS: usize = 3;

const DRIVERS: [(&str, DriverChoice); 2] = [
    ("io_uring", DriverChoice::Uring),
    ("epoll", DriverChoice::Epoll),
];

const RECEIVES: [(&str, ReceiveMode); 2] = [
    ("reap", ReceiveMode::Reap),
    (
        "kernel(gather = 500us)",
        ReceiveMode::Kernel {
            gather: DurNs::from_us(500),
        },
    ),
];

/// Measures each driver against the peer behind `link`.
pub fn calibrate(link: &mut PeerLink, amounts: Amounts) -> Result<Calibration, Problem> {
    let before = facts::gather();
    let mut drivers = Vec::new();
    let mut absent = Vec::new();
    for (driver, choice) in DRIVERS {
        match choose(choice, Probe::SYSTEM) {
            Ok(made) => drivers.push((driver, made)),
            Err(refusal) => absent.push(Absent {
                driver,
                why: refusal.to_string(),
            }),
        }
    }
    let Some(clock) = drivers.first().map(|(_, driver)| driver) else {
        let refusals: Vec<String> = absent.into_iter().map(|it| it.why).collect();
        return Err(failed(&refusals.join("; ")));
    };
    let start = clock.now();
    let mut rows = Vec::new();
    for (name, driver) in &mut drivers {
        for (receive_name, receive) in RECEIVES {
            for recording in [false, true] {
                let mut bench = Bench {
                    driver: driver.as_mut(),
                    link,
                    receive,
                    recording,
                };
                let end = start.after(amounts.budget_ns);
                let measured = row(&mut bench, &amounts, |now| now >= end)?;
                rows.push(Row {
                    driver: name,
                    receive: receive_name,
                    recording,
                    ..measured
                });
            }
        }
    }
    let took_ns = drivers[0].1.now().since(start);
    let after = facts::gather();
    let told = |facts: &assize_evidence::HostFacts, group, name| {
        let value = facts.get(group, name)?;
        (value != facts::NOT_AVAILABLE).then(|| value.to_owned())
    };
    Ok(Calibration {
        amounts,
        rows,
        absent,
        host: Beside {
            load_before: told(&before, "load", "average"),
            load_after: told(&after, "load", "average"),
            online: told(&after, "cpu", "online"),
            steal_permille: steal_permille(&before, &after, took_ns),
            took_ns,
        },
    })
}

/// The figures of one way of observing; who it is, the caller says.
fn row(
    bench: &mut Bench<'_>,
    amounts: &Amounts,
    is_over: impl Fn(assize_units::MonoNs) -> bool,
) -> Result<Row, Problem> {
    let streams = bench.streams(amounts.streams, amounts.events, amounts.gap_ns)?;
    let requests = bench.requests(amounts.requests, amounts.request_gap_ns)?;
    let (rungs, limit) = climb(&amounts.rates, |rate| {
        if is_over(bench.driver.now()) {
            return Ok(None);
        }
        rung(bench, amounts, rate).map(Some)
    })?;
    let held = rungs.iter().filter(|rung| rung.outcome == Outcome::Held);
    Ok(Row {
        driver: "",
        receive: "",
        recording: bench.recording,
        receive_error: Distribution::of(streams.errors.clone()),
        early: streams.early,
        kernel_stamped: streams.kernel_stamped,
        receives: streams.receives,
        dispatch_lag: Distribution::of(requests.lags.clone()),
        cpu_per_event_ns: share(streams.cpu_ns, streams.events),
        cpu_per_request_ns: share(requests.cpu_ns, requests.complete),
        held: held.map(|rung| rung.rate).max(),
        limit,
        rungs,
        failed: streams.failed + requests.failed,
    })
}

/// Tries rates, each up to [`ATTEMPTS`] times, until one is not held or the time is over.
fn climb(
    rates: &[u32],
    mut attempt: impl FnMut(u32) -> Result<Option<Rung>, Problem>,
) -> Result<(Vec<Rung>, Limit), Problem> {
    let mut rungs = Vec::new();
    for rate in rates {
        let mut limit = Limit::NotHeld;
        for _ in 0..ATTEMPTS {
            let Some(rung) = attempt(*rate)? else {
                return Ok((rungs, Limit::Time));
            };
            rungs.push(rung);
            limit = match rung.outcome {
                Outcome::Held => Limit::HighestTried,
                Outcome::NotHeld => Limit::NotHeld,
                Outcome::PeerBehind => Limit::Peer,
            };
            if rung.outcome == Outcome::Held {
                break;
            }
        }
        if limit != Limit::HighestTried {
            return Ok((rungs, limit));
        }
    }
    Ok((rungs, Limit::HighestTried))
}

fn share(total: DurNs, of: u64) -> Option<DurNs> {
    total.0.checked_div(of).map(DurNs)
}

/// Tries one rate.
fn rung(bench: &mut Bench<'_>, amounts: &Amounts, rate: u32) -> Result<Rung, Problem> {
    let (gap, events) = shape(amounts, rate);
    let measured = bench.streams(amounts.streams, events, gap)?;
    let p99_ns = Distribution::of(measured.errors.clone()).map(|errors| errors.p99_ns);
    Ok(Rung {
        rate,
        p99_ns,
        outcome: outcome(
            &measured,
            p99_ns,
            planned_span(amounts.streams, events, gap),
        ),
    })
}

/// The gap and the events of each stream that make a rate for the time of a rung.
fn shape(amounts: &Amounts, rate: u32) -> (DurNs, u32) {
    let gap = 1_000_000_000 * u64::from(amounts.streams) / u64::from(rate.max(1));
    let events = (amounts.rung_ns.0 / gap.max(1)).max(2);
    (DurNs(gap), u32::try_from(events).unwrap_or(u32::MAX))
}

/// From the first event of all streams to the last, whose starts are spread over one gap.
fn planned_span(streams: u32, events: u32, gap: DurNs) -> DurNs {
    let gaps = u64::from(events.saturating_sub(1)) * u64::from(streams)
        + u64::from(streams.saturating_sub(1));
    DurNs((gap.0 * gaps) / u64::from(streams.max(1)))
}

fn outcome(measured: &Measured, p99: Option<DurNs>, planned: DurNs) -> Outcome {
    // A tenth slower, and two milliseconds for a short one.
    let slowest = planned.0 + planned.0 / 10 + 2_000_000;
    if measured.written_over.0 > slowest || measured.unmatched > 0 {
        return Outcome::PeerBehind;
    }
    match p99 {
        Some(p99) if p99 < HELD_BELOW && measured.failed == 0 => Outcome::Held,
        _ => Outcome::NotHeld,
    }
}

fn failed(why: &str) -> Problem {
    Problem::world(E0911, why)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_is_made_of_streams_and_gaps() {
        let amounts = Amounts::full();
        let (gap, events) = shape(&amounts, 80_000);
        assert_eq!((gap, events), (DurNs::from_us(400), 1000));
        // 32 streams of 2 events each 10 ms apart: 63 steps of 10 ms / 32.
        let span = planned_span(32, 2, DurNs::from_ms(10));
        assert_eq!(span, DurNs(10_000_000 * 63 / 32));
    }

    #[test]
    fn a_rate_is_tried_again_and_the_first_lost_one_ends_the_climb() {
        use Outcome::{Held, NotHeld, PeerBehind};
        let climbed = |outcomes: &[Outcome]| {
            let mut outcomes = outcomes.iter();
            let attempt = |rate| {
                Ok(outcomes.next().map(|outcome| Rung {
                    rate,
                    p99_ns: None,
                    outcome: *outcome,
                }))
            };
            let (rungs, limit) = climb(&[10, 20], attempt).unwrap();
            let rates: Vec<u32> = rungs.iter().map(|rung| rung.rate).collect();
            (rates, limit)
        };
        assert_eq!(climbed(&[Held, Held]), (vec![10, 20], Limit::HighestTried));
        assert_eq!(
            climbed(&[NotHeld, Held, PeerBehind, Held]),
            (vec![10, 10, 20, 20], Limit::HighestTried)
        );
        assert_eq!(
            climbed(&[Held, NotHeld, NotHeld, PeerBehind, Held]),
            (vec![10, 20, 20, 20], Limit::Peer)
        );
        assert_eq!(climbed(&[Held, NotHeld]), (vec![10, 20], Limit::Time));
    }

    #[test]
    fn a_rate_is_held_only_by_a_peer_that_kept_it() {
        let planned = DurNs::from_ms(100);
        let well = Measured {
            written_over: DurNs::from_ms(111),
            ..Measured::default()
        };
        let under = Some(DurNs(999_999));
        assert_eq!(outcome(&well, under, planned), Outcome::Held);
        assert_eq!(outcome(&well, Some(HELD_BELOW), planned), Outcome::NotHeld);
        assert_eq!(outcome(&well, None, planned), Outcome::NotHeld);
        let slow = Measured {
            written_over: DurNs::from_ms(113),
            ..Measured::default()
        };
        assert_eq!(outcome(&slow, under, planned), Outcome::PeerBehind);
        let failing = Measured { failed: 1, ..well };
        assert_eq!(outcome(&failing, under, planned), Outcome::NotHeld);
    }
}
