//! `doctor`: is this host fit to measure on, what stands in the way, and what to do about it.
//!
//! Findings are judged from [`Looked`] by pure functions. The limits are rules of thumb: they say
//! where to look, and nothing of what was measured depends on them.

mod judge;

use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::time::Duration;

use assize_core::{Driver, DriverFacts};
use assize_drivers::{DriverChoice, Probe, choose};
use assize_evidence::HostFacts;
use assize_host::facts;
use assize_units::DurNs;
use serde::Serialize;

use crate::problem::Status;

pub use judge::judge;

/// How a finding stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// Nothing to do.
    Fine,
    /// Good to know when figures are read.
    Mind,
    /// Figures of this host will suffer.
    Bad,
    /// The host does not tell.
    NotAvailable,
}

impl State {
    /// In words.
    pub fn name(self) -> &'static str {
        match self {
            State::Fine => "fine",
            State::Mind => "mind",
            State::Bad => "bad",
            State::NotAvailable => "not available",
        }
    }
}

/// One thing that was looked at.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// Its name.
    pub name: &'static str,
    /// What was found.
    pub found: String,
    /// How that stands.
    pub state: State,
    /// Why it matters.
    pub why: &'static str,
    /// What to do, where it is not fine.
    pub advice: Option<&'static str>,
}

/// What was looked at.
#[derive(Clone, Debug)]
pub struct Looked {
    /// The host's facts at the end of the look.
    pub facts: HostFacts,
    /// io_uring's own answer: the driver's facts, or what refused it.
    pub uring: Result<DriverFacts, String>,
    /// epoll's own answer.
    pub epoll: Result<DriverFacts, String>,
    /// Round trips over loopback, shortest first.
    pub round_trips: Vec<DurNs>,
    /// CPU time that a hypervisor gave to others during the look, in thousandths of all there was.
    pub steal_permille: Option<u64>,
}

impl Default for Looked {
    /// A host that tells nothing but has both drivers.
    fn default() -> Self {
        Looked {
            facts: HostFacts::default(),
            uring: Ok(DriverFacts::default()),
            epoll: Ok(DriverFacts::default()),
            round_trips: Vec::new(),
            steal_permille: None,
        }
    }
}

/// A host that was looked at.
#[derive(Clone, Debug, Serialize)]
pub struct Examined {
    /// One for each check.
    pub findings: Vec<Finding>,
    /// The facts they were judged by, as in `host.json`.
    pub facts: HostFacts,
}

impl Examined {
    /// With `strict`, 1 if anything is bad.
    pub fn status(&self, strict: bool) -> Status {
        let bad = self.findings.iter().any(|it| it.state == State::Bad);
        if strict && bad {
            Status::No
        } else {
            Status::Done
        }
    }
}

/// Looks at this host for about a second.
pub fn doctor() -> Examined {
    let looked = look();
    Examined {
        findings: judge(&looked),
        facts: looked.facts,
    }
}

/// How long steal is watched.
const WATCH: DurNs = DurNs::from_s(1);
/// Round trips over loopback, and how many go before.
const ROUND_TRIPS: usize = 400;
const WARMUP_TRIPS: usize = 50;

fn look() -> Looked {
    let make = |choice| choose(choice, Probe::SYSTEM).map_err(|refusal| refusal.to_string());
    let (uring, epoll) = (make(DriverChoice::Uring), make(DriverChoice::Epoll));
    let told = |driver: &Result<Box<dyn Driver>, String>| match driver {
        Ok(driver) => Ok(driver.facts()),
        Err(refusal) => Err(refusal.clone()),
    };
    let mut looked = Looked {
        uring: told(&uring),
        epoll: told(&epoll),
        ..Looked::default()
    };
    let before = facts::gather();
    if let Ok(mut driver) = uring.or(epoll) {
        let start = driver.now();
        // Without loopback there are no round trips, which is a finding.
        looked.round_trips = round_trips(driver.as_ref()).unwrap_or_default();
        driver.sleep_until(start.after(WATCH));
        let took = driver.now().since(start);
        looked.facts = facts::gather();
        looked.steal_permille = steal_permille(&before, &looked.facts, took);
    } else {
        looked.facts = before;
    }
    looked
}

/// Round trips of one byte between two threads, shortest first.
fn round_trips(clock: &dyn Driver) -> io::Result<Vec<DurNs>> {
    const LIMIT: Option<Duration> = Some(Duration::from_secs(1));
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    let mut near = TcpStream::connect(listener.local_addr()?)?;
    let (mut far, _) = listener.accept()?;
    for stream in [&near, &far] {
        stream.set_nodelay(true)?;
        stream.set_read_timeout(LIMIT)?;
    }
    let echo = std::thread::spawn(move || {
        let mut byte = [0];
        while far.read_exact(&mut byte).is_ok() && far.write_all(&byte).is_ok() {}
    });
    let mut trips = Vec::with_capacity(WARMUP_TRIPS + ROUND_TRIPS);
    let mut byte = [0];
    for _ in 0..WARMUP_TRIPS + ROUND_TRIPS {
        let sent = clock.now();
        near.write_all(&byte)?;
        near.read_exact(&mut byte)?;
        trips.push(clock.now().since(sent));
    }
    drop(near);
    echo.join()
        .map_err(|_| io::Error::other("the echoing thread"))?;
    let mut trips = trips.split_off(WARMUP_TRIPS);
    trips.sort_unstable();
    Ok(trips)
}

/// Steal between two looks, of the time that all processors had.
pub(crate) fn steal_permille(before: &HostFacts, after: &HostFacts, took: DurNs) -> Option<u64> {
    let ticks = |facts: &HostFacts| facts.get("load", "steal_ticks")?.parse::<u64>().ok();
    let stolen = ticks(after)?.checked_sub(ticks(before)?)?;
    let cpus = after.get("cpu", "online").and_then(judge::count_listed)?;
    let tick_ns = 1_000_000_000 / rustix::param::clock_ticks_per_second().max(1);
    let had_ns = took.0.checked_mul(cpus).filter(|had| *had > 0)?;
    Some(stolen.checked_mul(tick_ns)?.checked_mul(1000)? / had_ns)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn facts_of(steal: &str) -> HostFacts {
        let mut facts = HostFacts::default();
        facts.set("load", "steal_ticks", steal);
        facts.set("cpu", "online", "0-1");
        facts
    }

    #[test]
    fn steal_is_its_growth_in_the_time_that_there_was() {
        let tick_ns = 1_000_000_000 / rustix::param::clock_ticks_per_second();
        let took = DurNs(tick_ns * 100);
        let of = |before, after| steal_permille(&facts_of(before), &facts_of(after), took);
        // Ten of the two hundred ticks that two processors had.
        assert_eq!(of("500", "510"), Some(50));
        assert_eq!(of("500", "500"), Some(0));
        assert_eq!(of("500", "not available"), None);
        assert_eq!(
            steal_permille(&facts_of("1"), &facts_of("2"), DurNs::ZERO),
            None
        );
    }

    #[test]
    fn strict_alone_says_no() {
        let of = |state| Examined {
            findings: vec![Finding {
                name: "governor",
                found: String::new(),
                state,
                why: "",
                advice: None,
            }],
            facts: HostFacts::default(),
        };
        assert_eq!(of(State::Bad).status(true), Status::No);
        assert_eq!(of(State::Bad).status(false), Status::Done);
        assert_eq!(of(State::Mind).status(true), Status::Done);
    }

    #[test]
    fn this_host_is_looked_at() {
        let examined = doctor();
        let found = |name: &str| examined.findings.iter().find(|it| it.name == name).unwrap();
        assert_ne!(found("loopback round trip").state, State::NotAvailable);
        assert_ne!(found("other load").state, State::NotAvailable);
    }
}
