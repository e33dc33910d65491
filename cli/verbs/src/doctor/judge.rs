//! What was found, judged.

use assize_core::DriverFacts;
use assize_evidence::HostFacts;
use assize_host::facts::NOT_AVAILABLE;
use assize_units::format_duration;

use super::{Finding, Looked, State};

/// All findings, in the order in which they are shown.
pub fn judge(looked: &Looked) -> Vec<Finding> {
    let facts = &looked.facts;
    vec![
        governor(facts),
        smt(facts),
        clock_source(facts),
        cpu_quota(facts),
        open_files(facts),
        locked_memory(facts),
        ephemeral_ports(facts),
        huge_pages(facts),
        io_uring(looked),
        other_load(facts),
        steal(looked),
        loopback(looked),
    ]
}

/// What a check makes of what it found.
type Verdict = (State, Option<&'static str>);

const FINE: Verdict = (State::Fine, None);

fn mind(advice: &'static str) -> Verdict {
    (State::Mind, Some(advice))
}

fn bad(advice: &'static str) -> Verdict {
    (State::Bad, Some(advice))
}

/// A finding whose found text and verdict are there, or `not available`.
fn finding(name: &'static str, why: &'static str, seen: Option<(String, Verdict)>) -> Finding {
    let (found, (state, advice)) =
        seen.unwrap_or_else(|| (NOT_AVAILABLE.to_owned(), (State::NotAvailable, None)));
    Finding {
        name,
        found,
        state,
        why,
        advice,
    }
}

fn told<'a>(facts: &'a HostFacts, group: &str, name: &str) -> Option<&'a str> {
    facts
        .get(group, name)
        .filter(|value| *value != NOT_AVAILABLE)
}

fn governor(facts: &HostFacts) -> Finding {
    const ADVICE: &str = "cpupower frequency-set -g performance";
    let seen = told(facts, "cpu", "governor").map(|governor| {
        let verdict = match governor {
            "performance" => FINE,
            // These drivers scale by load under this name; others stay at the lowest clock.
            "powersave" if scales_by_load(facts) => mind(ADVICE),
            "powersave" => bad(ADVICE),
            _ => mind(ADVICE),
        };
        let driver = told(facts, "cpu", "frequency_driver");
        let by = driver
            .map(|driver| format!(" ({driver})"))
            .unwrap_or_default();
        (format!("{governor}{by}"), verdict)
    });
    finding(
        "governor",
        "a clock that rises only under load makes latencies at low rates look worse than at high ones",
        seen,
    )
}

fn scales_by_load(facts: &HostFacts) -> bool {
    let driver = told(facts, "cpu", "frequency_driver").unwrap_or_default();
    driver.starts_with("intel_pstate") || driver.starts_with("amd-pstate")
}

fn smt(facts: &HostFacts) -> Finding {
    let seen = told(facts, "cpu", "smt").map(|smt| {
        let verdict = match smt {
            "on" => mind("pin client and server to different cores, or: echo off > /sys/devices/system/cpu/smt/control"),
            _ => FINE,
        };
        (smt.to_owned(), verdict)
    });
    finding(
        "SMT",
        "two threads of one core share its units: a client can slow a server that has another processor's number",
        seen,
    )
}

fn clock_source(facts: &HostFacts) -> Finding {
    const ADVICE: &str = "see dmesg for why a faster clock was given up; clocksource=tsc on the kernel's command line where it is stable";
    let seen = told(facts, "clock", "source").map(|source| {
        let verdict = match source {
            "tsc" | "kvm-clock" | "arch_sys_counter" => FINE,
            source if source.starts_with("hyperv_clocksource") => FINE,
            "hpet" | "acpi_pm" | "jiffies" | "refined-jiffies" | "pit" => bad(ADVICE),
            _ => mind(ADVICE),
        };
        (source.to_owned(), verdict)
    });
    finding(
        "clock source",
        "each timestamp reads it; a slow one costs a system call or a microsecond every time",
        seen,
    )
}

fn cpu_quota(facts: &HostFacts) -> Finding {
    const ADVICE: &str = "give the group more processors or no limit (cpu.max; docker run --cpus)";
    let seen = told(facts, "cgroup", "cpu_quota").map(|quota| {
        let verdict = match parse_quota(quota) {
            None => FINE,
            Some((quota_us, period_us)) if quota_us < period_us => bad(ADVICE),
            Some(_) => mind(ADVICE),
        };
        let throttled = told(facts, "cgroup", "throttled_periods")
            .filter(|periods| *periods != "0")
            .map(|periods| format!("; used up in {periods} periods so far"));
        (format!("{quota}{}", throttled.unwrap_or_default()), verdict)
    });
    finding(
        "cgroup quota",
        "when it is used up, client and server stand still to the end of the period",
        seen,
    )
}

/// `250000 us in 100000 us`; none for `unlimited`.
fn parse_quota(text: &str) -> Option<(u64, u64)> {
    let (quota, period) = text.split_once(" us in ")?;
    let period = period.strip_suffix(" us")?;
    Some((quota.parse().ok()?, period.parse().ok()?))
}

/// A soft limit of `soft of hard`; an unlimited one is the greatest number.
fn soft(text: &str) -> Option<u64> {
    match text.split_once(" of ")?.0 {
        "unlimited" => Some(u64::MAX),
        number => number.parse().ok(),
    }
}

fn open_files(facts: &HostFacts) -> Finding {
    const ADVICE: &str =
        "ulimit -n 65536 (LimitNOFILE= in a unit; docker run --ulimit nofile=65536)";
    let seen = told(facts, "limits", "open_files").and_then(|limit| {
        let verdict = match soft(limit)? {
            ..256 => bad(ADVICE),
            256..4096 => mind(ADVICE),
            _ => FINE,
        };
        Some((limit.to_owned(), verdict))
    });
    finding(
        "open files",
        "each request in flight needs one: an open loop on a slow server can reach the limit, and its requests then fail in the client",
        seen,
    )
}

fn locked_memory(facts: &HostFacts) -> Finding {
    let seen = told(facts, "limits", "locked_memory_bytes").and_then(|limit| {
        let verdict = match soft(limit)? {
            ..8_388_608 => mind(
                "ulimit -l 65536 (in KiB; LimitMEMLOCK= in a unit; docker run --ulimit memlock=-1)",
            ),
            _ => FINE,
        };
        Some((format!("{limit} bytes"), verdict))
    });
    finding(
        "locked memory",
        "io_uring's rings count towards it on older kernels, and a client's memory cannot be kept from paging beyond it",
        seen,
    )
}

fn ephemeral_ports(facts: &HostFacts) -> Finding {
    const ADVICE: &str =
        "sysctl net.ipv4.ip_local_port_range=\"15000 64999\", or let connections be used again";
    let seen = told(facts, "network", "ephemeral_ports").and_then(|range| {
        let (first, last) = range.split_once(' ')?;
        let (first, last) = (first.parse::<u64>().ok()?, last.parse::<u64>().ok()?);
        let ports = (last + 1).saturating_sub(first);
        let verdict = match ports {
            ..4000 => bad(ADVICE),
            4000..16_000 => mind(ADVICE),
            _ => FINE,
        };
        // TIME_WAIT lasts 60 s on Linux.
        let a_second = ports / 60;
        let found =
            format!("{first} to {last}: at least {a_second} new connections/s to one address");
        Some((found, verdict))
    });
    finding(
        "ephemeral ports",
        "each new connection to one address takes one, and a closed one may linger for a minute",
        seen,
    )
}

fn huge_pages(facts: &HostFacts) -> Finding {
    let seen = told(facts, "memory", "transparent_huge_pages").map(|mode| {
        let verdict = match mode {
            "always" => mind(
                "echo madvise > /sys/kernel/mm/transparent_hugepage/enabled, in all arms alike",
            ),
            _ => FINE,
        };
        (mode.to_owned(), verdict)
    });
    finding(
        "transparent huge pages",
        "with `always` an allocation can wait while pages are joined; servers differ in how they ask",
        seen,
    )
}

fn io_uring(looked: &Looked) -> Finding {
    const ADVICE: &str = "sysctl kernel.io_uring_disabled=0, and a seccomp profile that permits it \
         (docker run --security-opt seccomp=…); or pin `epoll` in the study so that all runs use the same";
    let seen = match (&looked.uring, &looked.epoll) {
        (Ok(facts), _) => (features(facts), FINE),
        (Err(refusal), Ok(_)) => (format!("{refusal}; epoll is used"), mind(ADVICE)),
        (Err(refusal), Err(other)) => (format!("{refusal}; {other}"), bad(ADVICE)),
    };
    finding(
        "io_uring",
        "the driver with the least lag; without it epoll is used, and two drivers' figures are not the same instrument's",
        Some(seen),
    )
}

fn features(facts: &DriverFacts) -> String {
    // An empty value is a list of nothing, such as of flags that were given up.
    let told = facts.features.iter().filter(|(_, value)| !value.is_empty());
    let listed = told.map(|(name, value)| format!("{name}: {value}"));
    let listed: Vec<String> = listed.collect();
    format!("permitted; {}", listed.join("; "))
}

fn other_load(facts: &HostFacts) -> Finding {
    const ADVICE: &str = "end what else runs (top), or wait for it, before a run";
    let seen = told(facts, "load", "average").and_then(|average| {
        let cpus = told(facts, "cpu", "online").and_then(count_listed)?;
        let minute = hundredths(average.split(' ').next()?)?;
        let verdict = match minute {
            load if load >= 100 * cpus => bad(ADVICE),
            load if load >= 25 * cpus => mind(ADVICE),
            _ => FINE,
        };
        let pressure = told(facts, "load", "cpu_pressure_percent")
            .map(|percent| format!("; something waited for one in {percent}% of the last 10 s"));
        let found = format!(
            "load average {average} on {cpus} processors{}",
            pressure.unwrap_or_default()
        );
        Some((found, verdict))
    });
    finding(
        "other load",
        "whatever else wants a processor delays client and server, and shows as their latency",
        seen,
    )
}

/// `1.25` as 125.
fn hundredths(text: &str) -> Option<u64> {
    let (whole, part) = text.split_once('.')?;
    if part.len() != 2 {
        return None;
    }
    let (whole, part) = (whole.parse::<u64>().ok()?, part.parse::<u64>().ok()?);
    whole.checked_mul(100)?.checked_add(part)
}

/// How many a list such as `0-3,8` names.
pub(super) fn count_listed(list: &str) -> Option<u64> {
    let mut count: u64 = 0;
    for part in list.split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last) = (first.parse::<u64>().ok()?, last.parse::<u64>().ok()?);
        let more = last.checked_sub(first)?.checked_add(1)?;
        count = count.checked_add(more)?;
    }
    Some(count)
}

fn steal(looked: &Looked) -> Finding {
    const ADVICE: &str =
        "measure on a machine whose processors are its own, or when its neighbours are quiet";
    let seen = looked.steal_permille.map(|permille| {
        let verdict = match permille {
            0..5 => FINE,
            5..50 => mind(ADVICE),
            _ => bad(ADVICE),
        };
        let found = format!(
            "{}.{}% of the processors' time in the last second",
            permille / 10,
            permille % 10
        );
        (found, verdict)
    });
    finding(
        "steal",
        "time that a hypervisor gave to other guests: everything here stood still meanwhile",
        seen,
    )
}

fn loopback(looked: &Looked) -> Finding {
    const ADVICE: &str = "see other load, governor and idle states; a sandbox that handles system calls itself costs as much";
    let trips = &looked.round_trips;
    let rank = |percent: usize| trips.get((trips.len() * percent).div_ceil(100).max(1) - 1);
    let seen = rank(50).zip(rank(99)).map(|(middle, late)| {
        let verdict = match middle.0 {
            ..60_000 => FINE,
            60_000..250_000 => mind(ADVICE),
            _ => bad(ADVICE),
        };
        let found = format!(
            "p50 {}, p99 {} of {}",
            format_duration(*middle),
            format_duration(*late),
            trips.len()
        );
        (found, verdict)
    });
    finding(
        "loopback round trip",
        "two sends and two wakes: no latency to a local server can be shorter, nor told from it",
        seen,
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use assize_units::DurNs;

    fn facts(values: &[(&str, &str, &str)]) -> HostFacts {
        let mut facts = HostFacts::default();
        for (group, name, value) in values {
            facts.set(group, name, *value);
        }
        facts
    }

    fn looked(values: &[(&str, &str, &str)]) -> Looked {
        Looked {
            facts: facts(values),
            ..Looked::default()
        }
    }

    fn state(looked: &Looked, name: &str) -> State {
        let findings = judge(looked);
        findings.iter().find(|it| it.name == name).unwrap().state
    }

    /// The states that a check gives to values of one fact.
    fn states(name: &str, group: &str, fact: &str, values: &[&str]) -> Vec<State> {
        let of = |value: &&str| state(&looked(&[(group, fact, value)]), name);
        values.iter().map(of).collect()
    }

    #[test]
    fn a_host_that_tells_nothing_is_neither_fine_nor_bad() {
        for finding in judge(&Looked::default()) {
            let expected = match finding.name {
                "io_uring" => State::Fine,
                _ => State::NotAvailable,
            };
            assert_eq!(finding.state, expected, "{}", finding.name);
        }
    }

    #[test]
    fn what_is_not_fine_has_an_advice_and_everything_a_reason() {
        let worst = Looked {
            uring: Err("EPERM".into()),
            epoll: Err("ENOSYS".into()),
            round_trips: vec![DurNs::from_ms(1)],
            steal_permille: Some(100),
            ..looked(&[
                ("cpu", "governor", "powersave"),
                ("cpu", "smt", "on"),
                ("cpu", "online", "0"),
                ("clock", "source", "hpet"),
                ("cgroup", "cpu_quota", "50000 us in 100000 us"),
                ("limits", "open_files", "64 of 64"),
                ("limits", "locked_memory_bytes", "65536 of 65536"),
                ("network", "ephemeral_ports", "60000 60999"),
                ("memory", "transparent_huge_pages", "always"),
                ("load", "average", "9.00 9.00 9.00"),
            ])
        };
        for finding in judge(&worst) {
            assert!(
                matches!(finding.state, State::Mind | State::Bad),
                "{finding:?}"
            );
            assert!(finding.advice.is_some() && !finding.why.is_empty());
        }
    }

    #[test]
    fn each_fact_has_its_limits() {
        use State::{Bad, Fine, Mind, NotAvailable};
        assert_eq!(
            states(
                "clock source",
                "clock",
                "source",
                &["tsc", "xen", "hpet", NOT_AVAILABLE]
            ),
            [Fine, Mind, Bad, NotAvailable]
        );
        assert_eq!(
            states(
                "cgroup quota",
                "cgroup",
                "cpu_quota",
                &[
                    "unlimited",
                    "200000 us in 100000 us",
                    "99999 us in 100000 us"
                ]
            ),
            [Fine, Mind, Bad]
        );
        assert_eq!(
            states(
                "open files",
                "limits",
                "open_files",
                &[
                    "unlimited of unlimited",
                    "4096 of 4096",
                    "1024 of 524288",
                    "255 of 4096",
                    "?"
                ]
            ),
            [Fine, Fine, Mind, Bad, NotAvailable]
        );
        assert_eq!(
            states(
                "ephemeral ports",
                "network",
                "ephemeral_ports",
                &["32768 60999", "50000 60999", "60000 60100", "9 1"]
            ),
            [Fine, Mind, Bad, Bad]
        );
        assert_eq!(
            states("SMT", "cpu", "smt", &["on", "off", "notsupported"]),
            [Mind, Fine, Fine]
        );
    }

    #[test]
    fn a_powersave_governor_is_judged_by_its_driver() {
        let of = |driver| {
            let looked = looked(&[
                ("cpu", "governor", "powersave"),
                ("cpu", "frequency_driver", driver),
            ]);
            state(&looked, "governor")
        };
        assert_eq!(of("intel_pstate"), State::Mind);
        assert_eq!(of("acpi-cpufreq"), State::Bad);
    }

    #[test]
    fn load_is_judged_by_the_processors_there_are() {
        let of = |average, online| {
            let looked = looked(&[("load", "average", average), ("cpu", "online", online)]);
            state(&looked, "other load")
        };
        assert_eq!(of("0.90 5.00 5.00", "0-3"), State::Fine);
        assert_eq!(of("1.00 0.00 0.00", "0-3"), State::Mind);
        assert_eq!(of("4.00 0.00 0.00", "0-3"), State::Bad);
        assert_eq!(of("4.00 0.00 0.00", "0-1,8-15"), State::Mind);
        assert_eq!(of("much", "0-1"), State::NotAvailable);
    }

    #[test]
    fn a_refused_ring_is_bad_only_without_epoll() {
        let refused = Looked {
            uring: Err("io_uring_setup: EPERM".into()),
            ..Looked::default()
        };
        assert_eq!(state(&refused, "io_uring"), State::Mind);
        let neither = Looked {
            epoll: Err("epoll_pwait2: ENOSYS".into()),
            ..refused
        };
        assert_eq!(state(&neither, "io_uring"), State::Bad);
    }

    #[test]
    fn round_trips_are_judged_by_their_median() {
        let of = |trips: &[u64]| Looked {
            round_trips: trips.iter().copied().map(DurNs::from_us).collect(),
            ..Looked::default()
        };
        let late = of(&[20, 20, 900]);
        assert_eq!(state(&late, "loopback round trip"), State::Fine);
        let found = judge(&late).pop().unwrap().found;
        assert_eq!(found, "p50 20.0 µs, p99 900 µs of 3");
        assert_eq!(
            state(&of(&[20, 300, 900]), "loopback round trip"),
            State::Bad
        );
    }
}
