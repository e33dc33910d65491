//! `calibrate`: how true the stamps are here, how late requests are sent, and what observing costs.
//!
//! The real drivers read from a peer in a process of its own, which stamps each write on the same
//! CLOCK_MONOTONIC. `docs/calibrate.md` defines each figure.

mod attached;
mod cells;
mod peer;
mod stamps;

use assize_codes::E0911;
use assize_core::{Driver, ReceiveMode};
use assize_drivers::{DriverChoice, Probe, choose};
use assize_evidence::HostFacts;
use assize_evidence::calibration::{
    AFFINITY_FACT, Absent, Amounts, Beside, CALIBRATION_FORMAT, Calibration, Limit, MEMORY_FACT,
    Outcome, ReceiveWay, Row, Rung,
};
use assize_host::facts;
use assize_units::DurNs;

use crate::doctor::steal_permille;
use crate::problem::Problem;
use crate::run::{CareRequest, careful};

pub use attached::Attached;
pub use peer::{PeerLink, PeerProcess, serve_peer};

use cells::{Bench, Measured};
use stamps::distribution;

/// Under a minute.
pub fn full_amounts() -> Amounts {
    Amounts {
        streams: 32,
        events: 100,
        gap_ns: DurNs::from_ms(10),
        requests: 500,
        request_gap_ns: DurNs::from_ms(2),
        rates: vec![2_000, 5_000, 10_000, 20_000, 40_000, 80_000, 100_000],
        rung_ns: DurNs::from_ms(400),
        budget_ns: DurNs::from_s(45),
    }
}

/// About ten seconds, with fewer samples.
pub fn quick_amounts() -> Amounts {
    Amounts {
        events: 25,
        requests: 100,
        rates: vec![2_000, 10_000, 40_000],
        rung_ns: DurNs::from_ms(150),
        ..full_amounts()
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

const GATHER: DurNs = DurNs::from_us(500);

const RECEIVES: [(ReceiveWay, ReceiveMode); 2] = [
    (ReceiveWay::Reap, ReceiveMode::Reap),
    (
        ReceiveWay::Kernel { gather: GATHER },
        ReceiveMode::Kernel { gather: GATHER },
    ),
];

/// Measures each driver against the peer behind `link`.
pub fn calibrate(
    link: &mut PeerLink,
    amounts: Amounts,
    care: &CareRequest,
) -> Result<Calibration, Problem> {
    let before = facts::gather();
    let mut drivers = Vec::new();
    let mut absent = Vec::new();
    for (driver, choice) in DRIVERS {
        match choose(choice, Probe::SYSTEM) {
            Ok(made) => drivers.push((driver, careful(made, care)?)),
            Err(refusal) => absent.push(Absent {
                driver: driver.to_owned(),
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
        for (way, receive) in RECEIVES {
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
                    driver: (*name).to_owned(),
                    receive: way,
                    ..measured
                });
            }
        }
    }
    let took_ns = drivers[0].1.now().since(start);
    let after = facts::gather();
    let host = Beside {
        affinity: feature(drivers[0].1.as_ref(), AFFINITY_FACT.1),
        memory: feature(drivers[0].1.as_ref(), MEMORY_FACT.1),
        ..beside(&before, &after, took_ns)
    };
    Ok(Calibration {
        format: CALIBRATION_FORMAT.to_owned(),
        tool: crate::TOOL.to_owned(),
        amounts,
        rows,
        absent,
        host,
    })
}

/// What a driver was given.
fn feature(driver: &dyn Driver, name: &str) -> Option<String> {
    let features = driver.facts().features;
    let found = features.into_iter().find(|(known, _)| known == name);
    found.map(|(_, value)| value)
}

/// The host, and what else it was doing meanwhile.
fn beside(before: &HostFacts, after: &HostFacts, took_ns: DurNs) -> Beside {
    let told = |facts: &HostFacts, group, name| facts.told(group, name).map(str::to_owned);
    Beside {
        load_before: told(before, "load", "average"),
        load_after: told(after, "load", "average"),
        online: told(after, "cpu", "online"),
        cpu: told(after, "cpu", "model"),
        kernel: told(after, "kernel", "release"),
        boot_id: told(after, "kernel", "boot_id"),
        affinity: None,
        memory: None,
        steal_permille: steal_permille(before, after, took_ns),
        took_ns,
    }
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
        driver: String::new(),
        receive: ReceiveWay::Reap,
        recording: bench.recording,
        receive_error: distribution(streams.errors.clone()),
        early: streams.early,
        kernel_stamped: streams.kernel_stamped,
        receives: streams.receives,
        dispatch_lag: distribution(requests.lags.clone()),
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
    let p99_ns = distribution(measured.errors.clone()).map(|errors| errors.p99_ns);
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
        let amounts = full_amounts();
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
