//! What a run may ask of its host so that its clock readings come on time. Nothing of it is needed;
//! what was obtained is among the driver's facts.

use assize_core::{Driver, DriverFacts, DriverFailure, RunControl, Session, Sink};
use assize_units::MonoNs;
use rustix::io::Errno;
use rustix::mm::{MlockAllFlags, mlockall};
use rustix::process::{Resource, geteuid, getrlimit};
use rustix::thread::{
    CpuSet, current_timer_slack, sched_getaffinity, sched_setaffinity, set_current_timer_slack,
};

use crate::failure;

/// Timers of the driver's thread that the kernel may delay by this, in ns: the least there is. Its
/// default of 50,000 would be part of every dispatch with epoll.
const TIMER_SLACK_NS: u64 = 1;

/// What is asked for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CareRequest {
    /// The CPUs that the driver's thread may run on while a cell runs; empty leaves them. Servers,
    /// and the recorder's thread, are not held to them.
    pub cpus: Vec<u32>,
    /// Keep the process's memory from being paged out.
    pub lock_memory: bool,
}

/// A driver that takes care of its thread: while a cell runs, and not between cells, so that
/// servers which are started there inherit nothing of it.
pub struct Careful {
    driver: Box<dyn Driver>,
    facts: DriverFacts,
    inside: Care,
    outside: Care,
}

/// How a thread is scheduled.
#[derive(Clone)]
struct Care {
    cpus: CpuSet,
    timer_slack_ns: u64,
}

impl Careful {
    /// Asks for everything once; a refusal says what was refused, and why.
    pub fn new(driver: Box<dyn Driver>, request: &CareRequest) -> Result<Careful, DriverFailure> {
        let outside = Care::read()?;
        let mut inside = Care {
            timer_slack_ns: TIMER_SLACK_NS,
            ..outside.clone()
        };
        if !request.cpus.is_empty() {
            inside.cpus = set_of(&request.cpus)?;
        }
        let obtained = inside.apply().and_then(|()| Care::read());
        outside.apply()?;
        let obtained = obtained?;
        let memory = if request.lock_memory {
            lock_memory()?
        } else {
            "not locked"
        };
        let mut facts = driver.facts();
        let found = [
            ("cpu affinity in cells", listed(&obtained.cpus)),
            (
                "timer slack in cells",
                format!("{} ns", obtained.timer_slack_ns),
            ),
            ("memory", memory.to_owned()),
        ];
        facts
            .features
            .extend(found.map(|(name, value)| (name.to_owned(), value)));
        Ok(Careful {
            driver,
            facts,
            inside,
            outside,
        })
    }
}

impl Driver for Careful {
    fn facts(&self) -> DriverFacts {
        self.facts.clone()
    }

    fn now(&self) -> MonoNs {
        self.driver.now()
    }

    fn sleep_until(&mut self, until: MonoNs) {
        self.driver.sleep_until(until);
    }

    fn run_cell(
        &mut self,
        session: &mut Session,
        sink: &mut dyn Sink,
        control: &RunControl,
    ) -> Result<(), DriverFailure> {
        self.inside.apply()?;
        let ended = self.driver.run_cell(session, sink, control);
        self.outside.apply()?;
        ended
    }
}

impl Care {
    fn read() -> Result<Care, DriverFailure> {
        Ok(Care {
            cpus: sched_getaffinity(None).map_err(|errno| failure("sched_getaffinity", errno))?,
            timer_slack_ns: current_timer_slack().map_err(|errno| failure("timer slack", errno))?,
        })
    }

    fn apply(&self) -> Result<(), DriverFailure> {
        sched_setaffinity(None, &self.cpus)
            .map_err(|errno| failure("pinning to the CPUs that were asked for", errno))?;
        set_current_timer_slack(std::num::NonZeroU64::new(self.timer_slack_ns))
            .map_err(|errno| failure("timer slack", errno))
    }
}

fn set_of(cpus: &[u32]) -> Result<CpuSet, DriverFailure> {
    let mut set = CpuSet::new();
    for cpu in cpus {
        if *cpu as usize >= CpuSet::MAX_CPU {
            return Err(failure(
                "pinning to the CPUs that were asked for",
                Errno::INVAL,
            ));
        }
        set.set(*cpu as usize);
    }
    Ok(set)
}

fn listed(set: &CpuSet) -> String {
    let cpus = (0..CpuSet::MAX_CPU).filter(|cpu| set.is_set(*cpu));
    cpus.map(|cpu| cpu.to_string())
        .collect::<Vec<_>>()
        .join(",")
}

/// Memory that comes later is locked too where no limit can make an allocation fail for it.
fn lock_memory() -> Result<&'static str, DriverFailure> {
    let unlimited = geteuid().is_root() || getrlimit(Resource::Memlock).current.is_none();
    let (flags, words) = if unlimited {
        let flags = MlockAllFlags::CURRENT | MlockAllFlags::FUTURE;
        (flags, "locked, now and later")
    } else {
        (
            MlockAllFlags::CURRENT,
            "locked, what there was at the start",
        )
    };
    mlockall(flags).map_err(|errno| failure("locking memory", errno))?;
    Ok(words)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    /// Notes how its thread was scheduled while it ran.
    struct Looking(Arc<std::sync::Mutex<Option<Care>>>);

    impl Driver for Looking {
        fn facts(&self) -> DriverFacts {
            DriverFacts::default()
        }

        fn now(&self) -> MonoNs {
            MonoNs(0)
        }

        fn sleep_until(&mut self, _: MonoNs) {}

        fn run_cell(
            &mut self,
            _: &mut Session,
            _: &mut dyn Sink,
            _: &RunControl,
        ) -> Result<(), DriverFailure> {
            *self.0.lock().unwrap() = Some(Care::read()?);
            Ok(())
        }
    }

    fn session() -> Session {
        use assize_core::{CellSpec, ConnectionPolicy, LoadSpec, ReceiveMode};
        Session::new(Arc::new(CellSpec {
            requests: Vec::new(),
            load: LoadSpec::Closed { clients: 1 },
            targets: Vec::new(),
            connections: ConnectionPolicy::Fresh,
            drain: assize_units::DurNs::ZERO,
            limits: assize_core::protocol::http1::Limits::default(),
            spin: assize_units::DurNs::ZERO,
            receive: ReceiveMode::Reap,
        }))
    }

    #[test]
    fn a_cell_has_it_and_what_comes_after_has_not() {
        let run = || {
            let before = Care::read().unwrap();
            let cpu = (0..CpuSet::MAX_CPU).find(|cpu| before.cpus.is_set(*cpu));
            let cpu = u32::try_from(cpu.unwrap()).unwrap();
            let request = CareRequest {
                cpus: vec![cpu],
                lock_memory: false,
            };
            let seen = Arc::default();
            let mut driver = Careful::new(Box::new(Looking(Arc::clone(&seen))), &request).unwrap();
            let facts = driver.facts().features;
            driver
                .run_cell(
                    &mut session(),
                    &mut assize_core::NullSink,
                    &RunControl::default(),
                )
                .unwrap();
            let within = seen.lock().unwrap().clone().unwrap();
            assert_eq!(listed(&within.cpus), cpu.to_string());
            assert_eq!(within.timer_slack_ns, TIMER_SLACK_NS);
            let after = Care::read().unwrap();
            assert_eq!(listed(&after.cpus), listed(&before.cpus));
            assert_eq!(after.timer_slack_ns, before.timer_slack_ns);
            let fact = |name: &str| facts.iter().find(|fact| fact.0 == name).unwrap().1.clone();
            assert_eq!(fact("cpu affinity in cells"), cpu.to_string());
            assert_eq!(fact("timer slack in cells"), "1 ns");
            assert_eq!(fact("memory"), "not locked");
        };
        // A thread of its own: others of this test process are not to be pinned.
        std::thread::spawn(run).join().unwrap();
    }

    #[test]
    fn an_impossible_cpu_is_refused_and_changes_nothing() {
        let run = || {
            let before = Care::read().unwrap();
            for cpu in [CpuSet::MAX_CPU as u32 - 1, u32::MAX] {
                let request = CareRequest {
                    cpus: vec![cpu],
                    lock_memory: false,
                };
                let refused = Careful::new(Box::new(Looking(Arc::default())), &request);
                let refused = refused.err().unwrap();
                assert_eq!(refused.errno, libc::EINVAL, "{refused}");
            }
            let after = Care::read().unwrap();
            assert_eq!(listed(&after.cpus), listed(&before.cpus));
            assert_eq!(after.timer_slack_ns, before.timer_slack_ns);
        };
        std::thread::spawn(run).join().unwrap();
    }
}
