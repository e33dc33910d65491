//! What a process may ask of its host so that its clock readings come on time. Nothing of it is
//! needed; each is asked for, and what was obtained is a fact.

use rustix::io::Errno;
use rustix::mm::{MlockAllFlags, mlockall};
use rustix::thread::{
    CpuSet, current_timer_slack, sched_getaffinity, sched_getcpu, sched_setaffinity,
    set_current_timer_slack,
};

/// What is asked for, for the calling thread and its process.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CareRequest {
    /// The CPUs that the thread may run on; empty leaves them.
    pub cpus: Vec<u32>,
    /// Keep the process's memory, now and later, from being paged out.
    pub lock_memory: bool,
    /// By how much the kernel may delay the thread's timers, in ns; the kernel's default is 50,000.
    pub timer_slack_ns: Option<u64>,
}

/// One request, and what came of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CareFact {
    /// What it is.
    pub name: &'static str,
    /// What was asked for.
    pub requested: String,
    /// What is so now, read back where it can be.
    pub obtained: String,
}

/// Asks for each, once; a refusal is a fact and stops nothing.
pub fn apply(request: &CareRequest) -> Vec<CareFact> {
    vec![
        pin(&request.cpus),
        lock_memory(request.lock_memory),
        timer_slack(request.timer_slack_ns),
    ]
}

fn pin(cpus: &[u32]) -> CareFact {
    let mut obtained = String::new();
    if !cpus.is_empty() {
        let mut set = CpuSet::new();
        let known = cpus.iter().map(|cpu| *cpu as usize);
        known
            .filter(|cpu| *cpu < CpuSet::MAX_CPU)
            .for_each(|cpu| set.set(cpu));
        if let Err(errno) = sched_setaffinity(None, &set) {
            obtained = format!("refused ({errno}); ");
        }
    }
    obtained.push_str(&match sched_getaffinity(None) {
        Ok(set) => format!("{} (now on {})", listed(&set), sched_getcpu()),
        Err(errno) => format!("unknown ({errno})"),
    });
    let requested: Vec<String> = cpus.iter().map(u32::to_string).collect();
    CareFact {
        name: "cpu affinity",
        requested: or_nothing(requested.join(",")),
        obtained,
    }
}

fn listed(set: &CpuSet) -> String {
    let cpus = (0..CpuSet::MAX_CPU).filter(|cpu| set.is_set(*cpu));
    cpus.map(|cpu| cpu.to_string())
        .collect::<Vec<_>>()
        .join(",")
}

fn lock_memory(requested: bool) -> CareFact {
    let obtained = if requested {
        outcome(
            mlockall(MlockAllFlags::CURRENT | MlockAllFlags::FUTURE),
            "locked",
        )
    } else {
        "not locked".to_owned()
    };
    CareFact {
        name: "memory lock",
        requested: or_nothing(if requested { "now and later" } else { "" }.to_owned()),
        obtained,
    }
}

fn timer_slack(requested_ns: Option<u64>) -> CareFact {
    let mut obtained = String::new();
    // 0 would mean the default.
    if let Some(ns) = requested_ns
        && let Err(errno) = set_current_timer_slack(std::num::NonZeroU64::new(ns))
    {
        obtained = format!("refused ({errno}); ");
    }
    obtained.push_str(&match current_timer_slack() {
        Ok(ns) => format!("{ns} ns"),
        Err(errno) => format!("unknown ({errno})"),
    });
    CareFact {
        name: "timer slack",
        requested: or_nothing(
            requested_ns
                .map(|ns| format!("{ns} ns"))
                .unwrap_or_default(),
        ),
        obtained,
    }
}

fn outcome(answer: Result<(), Errno>, done: &str) -> String {
    match answer {
        Ok(()) => done.to_owned(),
        Err(errno) => format!("refused ({errno})"),
    }
}

fn or_nothing(text: String) -> String {
    if text.is_empty() {
        "nothing".to_owned()
    } else {
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fact(facts: &[CareFact], name: &str) -> CareFact {
        facts.iter().find(|fact| fact.name == name).unwrap().clone()
    }

    #[test]
    fn asking_for_nothing_changes_nothing() {
        let before = current_timer_slack().unwrap();
        let facts = apply(&CareRequest::default());
        assert!(facts.iter().all(|fact| fact.requested == "nothing"));
        assert_eq!(fact(&facts, "memory lock").obtained, "not locked");
        assert_eq!(current_timer_slack().unwrap(), before);
    }

    #[test]
    fn what_was_obtained_is_read_back() {
        let asked = std::thread::spawn(|| {
            let cpu = sched_getcpu() as u32;
            let request = CareRequest {
                cpus: vec![cpu],
                timer_slack_ns: Some(1_000),
                ..CareRequest::default()
            };
            (cpu, apply(&request), apply(&CareRequest::default()))
        });
        let (cpu, facts, later) = asked.join().unwrap();
        assert_eq!(fact(&facts, "timer slack").obtained, "1000 ns");
        assert_eq!(
            fact(&facts, "cpu affinity").obtained,
            format!("{cpu} (now on {cpu})")
        );
        assert_eq!(fact(&later, "timer slack").obtained, "1000 ns");
    }

    #[test]
    fn an_impossible_cpu_is_refused_and_said() {
        let request = CareRequest {
            cpus: vec![u32::MAX],
            ..CareRequest::default()
        };
        let facts = std::thread::spawn(move || apply(&request)).join().unwrap();
        let pinned = fact(&facts, "cpu affinity");
        assert!(pinned.obtained.starts_with("refused ("), "{pinned:?}");
    }
}
