//! Which driver, and why: the plan names one, or `any`.

use assize_core::{Driver, DriverFailure};

use crate::{EpollDriver, UringDriver};

/// What a plan asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DriverChoice {
    /// io_uring, or nothing.
    Uring,
    /// epoll, or nothing.
    Epoll,
    /// io_uring where kernel and sandbox permit it, otherwise epoll.
    Any,
}

/// How to find out what is to be had.
#[derive(Clone, Copy, Debug)]
pub struct Probe {
    /// Makes an io_uring driver, told why.
    pub uring: fn(&str) -> Result<UringDriver, DriverFailure>,
    /// Makes an epoll driver, told why.
    pub epoll: fn(&str) -> Result<EpollDriver, DriverFailure>,
}

impl Probe {
    /// Asks the system that this runs on. Nothing else alters the answer.
    pub const SYSTEM: Probe = Probe {
        uring: UringDriver::new,
        epoll: EpollDriver::new,
    };
}

/// A driver that was asked for is not to be had.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DriverRefusal {
    /// The plan pins a driver.
    #[error("the plan asks for the {driver} driver, which is not to be had: {reason}")]
    Pinned {
        /// Which one.
        driver: &'static str,
        /// What the system said, and what may be behind it.
        reason: String,
    },
    /// Neither is to be had.
    #[error("no driver is to be had: {reason}")]
    None {
        /// What the system said to each.
        reason: String,
    },
}

/// The driver that a plan asks for. Its facts say why it is this one.
pub fn choose(choice: DriverChoice, probe: Probe) -> Result<Box<dyn Driver>, DriverRefusal> {
    match choice {
        DriverChoice::Uring => match (probe.uring)("the plan asks for it") {
            Ok(driver) => Ok(Box::new(driver)),
            Err(failure) => Err(DriverRefusal::Pinned {
                driver: "io_uring",
                reason: explain(&failure, &Surroundings::read()),
            }),
        },
        DriverChoice::Epoll => match (probe.epoll)("the plan asks for it") {
            Ok(driver) => Ok(Box::new(driver)),
            Err(failure) => Err(DriverRefusal::Pinned {
                driver: "epoll",
                reason: failure.to_string(),
            }),
        },
        DriverChoice::Any => any(probe),
    }
}

fn any(probe: Probe) -> Result<Box<dyn Driver>, DriverRefusal> {
    let refused = match (probe.uring)("kernel and sandbox permit io_uring") {
        Ok(driver) => return Ok(Box::new(driver)),
        Err(failure) => explain(&failure, &Surroundings::read()),
    };
    match (probe.epoll)(&format!("{refused}; using epoll")) {
        Ok(driver) => Ok(Box::new(driver)),
        Err(failure) => Err(DriverRefusal::None {
            reason: format!("{refused}; {failure}"),
        }),
    }
}

/// What may stand in the way of io_uring.
#[derive(Debug, Default)]
struct Surroundings {
    /// kernel.io_uring_disabled.
    disabled: Option<String>,
    /// `Seccomp` of this thread: 0 none, 1 strict, 2 filter.
    seccomp: Option<String>,
    /// Linux's release.
    release: String,
}

impl Surroundings {
    #[expect(
        clippy::disallowed_methods,
        reason = "what the kernel says of itself is not a file of the study"
    )]
    fn read() -> Surroundings {
        let read = |path| std::fs::read_to_string(path).ok();
        let disabled = read("/proc/sys/kernel/io_uring_disabled");
        let status = read("/proc/thread-self/status").unwrap_or_default();
        let seccomp = status
            .lines()
            .find_map(|line| line.strip_prefix("Seccomp:"));
        Surroundings {
            disabled: disabled.map(|value| value.trim().to_owned()),
            seccomp: seccomp.map(|value| value.trim().to_owned()),
            release: rustix::system::uname()
                .release()
                .to_string_lossy()
                .into_owned(),
        }
    }
}

/// What was refused, and each circumstance that explains it.
fn explain(failure: &DriverFailure, around: &Surroundings) -> String {
    let name = match failure.errno {
        libc::EPERM => "EPERM".to_owned(),
        libc::ENOSYS => "ENOSYS".to_owned(),
        libc::EINVAL => "EINVAL".to_owned(),
        libc::ENOMEM => "ENOMEM".to_owned(),
        libc::EMFILE => "EMFILE".to_owned(),
        errno => format!("errno {errno}"),
    };
    let mut words = vec![format!("{}: {name}", failure.operation)];
    if let Some(value) = around.disabled.as_deref().filter(|value| *value != "0") {
        words.push(format!("sysctl kernel.io_uring_disabled={value}"));
    }
    if around.seccomp.as_deref() == Some("2") {
        words.push("Seccomp: 2 (a filter, as of a container's profile)".to_owned());
    }
    if matches!(failure.errno, libc::ENOSYS | libc::EINVAL) {
        words.push(format!("Linux {}", around.release));
    }
    if failure.errno == libc::ENOMEM {
        words.push("the limit of locked memory may be too low".to_owned());
    }
    words.join("; ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(operation: &str, errno: i32) -> DriverFailure {
        crate::failure(operation, rustix::io::Errno::from_raw_os_error(errno))
    }

    const NO_URING: Probe = Probe {
        uring: |_| Err(refused_setup()),
        epoll: EpollDriver::new,
    };

    fn refused_setup() -> DriverFailure {
        refused("io_uring_setup", libc::EPERM)
    }

    #[test]
    fn any_takes_epoll_and_says_why() {
        let facts = choose(DriverChoice::Any, NO_URING).unwrap().facts();
        assert_eq!(facts.name, "epoll");
        assert!(
            facts.why.starts_with("io_uring_setup: EPERM"),
            "{}",
            facts.why
        );
        assert!(facts.why.ends_with("; using epoll"), "{}", facts.why);
    }

    #[test]
    fn a_pinned_driver_is_never_replaced() {
        let refusal = choose(DriverChoice::Uring, NO_URING).err().unwrap();
        assert!(matches!(
            refusal,
            DriverRefusal::Pinned {
                driver: "io_uring",
                ..
            }
        ));
        let facts = choose(DriverChoice::Epoll, Probe::SYSTEM).unwrap().facts();
        assert_eq!(
            (facts.name.as_str(), facts.why.as_str()),
            ("epoll", "the plan asks for it")
        );
    }

    #[test]
    fn neither_is_a_refusal_with_both_reasons() {
        let probe = Probe {
            epoll: |_| Err(refused("epoll_pwait2", libc::ENOSYS)),
            ..NO_URING
        };
        let refusal = choose(DriverChoice::Any, probe).err().unwrap().to_string();
        assert!(refusal.contains("io_uring_setup: EPERM"), "{refusal}");
        assert!(refusal.contains("epoll_pwait2"), "{refusal}");
    }

    #[test]
    fn each_circumstance_is_named() {
        let around = Surroundings {
            disabled: Some("2".to_owned()),
            seccomp: Some("2".to_owned()),
            release: "6.1.0".to_owned(),
        };
        assert_eq!(
            explain(&refused_setup(), &around),
            "io_uring_setup: EPERM; sysctl kernel.io_uring_disabled=2; \
             Seccomp: 2 (a filter, as of a container's profile)"
        );
        let plain = Surroundings {
            disabled: Some("0".to_owned()),
            seccomp: Some("0".to_owned()),
            ..around
        };
        assert_eq!(
            explain(&refused("multishot receive", libc::EINVAL), &plain),
            "multishot receive: EINVAL; Linux 6.1.0"
        );
    }
}
