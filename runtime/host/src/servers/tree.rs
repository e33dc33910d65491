//! A server and all that it started, as the processes that a keeper answers for.
#![expect(
    clippy::disallowed_methods,
    reason = "ending processes looks into /proc, waits, and bounds its waits by the system's clock; \
              nothing is measured while it does"
)]

use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::process::{
    Pid, Signal, WaitOptions, WaitStatus, getpid, kill_process, kill_process_group, wait,
};

/// How long what a server left behind may take to end once it was asked.
pub(super) const REST_WITHIN: Duration = Duration::from_secs(2);
/// How long killed processes may take to be gone; one that waits in a device driver can take long.
pub(super) const KILL_WITHIN: Duration = Duration::from_secs(30);
/// Between two looks.
const PAUSE: Duration = Duration::from_millis(5);

/// The children of this process, which must be a child subreaper: a server, and every descendant
/// of it whose own parents are gone.
pub(super) struct Tree {
    server: Pid,
    status: Option<WaitStatus>,
}

/// How a tree ended.
pub(super) struct Ending {
    /// Whether the server was killed.
    pub killed: bool,
    /// Other processes that were killed.
    pub swept: u32,
    /// Children that are still there.
    pub left: u32,
}

impl Tree {
    /// A tree whose root has just been started by this process.
    pub fn new(server: Pid) -> Tree {
        Tree {
            server,
            status: None,
        }
    }

    /// How the server ended, once it has.
    pub fn status(&self) -> Option<String> {
        self.status.map(words)
    }

    /// Buries the dead; `false` once there is no child left, which is the proof that no descendant
    /// is: each has a living ancestor among the children, or is one.
    pub fn reap(&mut self) -> bool {
        loop {
            match wait(WaitOptions::NOHANG) {
                Ok(Some((pid, status))) if pid == self.server => self.status = Some(status),
                Ok(Some(_)) | Err(Errno::INTR) => {}
                Err(Errno::CHILD) => return false,
                Ok(None) | Err(_) => return true,
            }
        }
    }

    /// Ends everything: asks by `signal`, waits at most `within`, kills.
    ///
    /// The server's process group is asked, as a terminal would, since wrappers (`sh`, `uv run`)
    /// do not all pass a signal on. What outlives the server is asked once more.
    pub fn end(&mut self, signal: Signal, within: Duration) -> Ending {
        if self.reap() && self.status.is_none() {
            // It may have ended since.
            let _ = kill_process_group(self.server, signal);
        }
        let mut until = Instant::now() + within;
        let mut rest_asked = false;
        while self.reap() && Instant::now() < until {
            if self.status.is_some() && !rest_asked {
                rest_asked = true;
                until = until.min(Instant::now() + REST_WITHIN);
                for child in children() {
                    let _ = kill_process(child.pid, signal);
                }
            }
            std::thread::sleep(PAUSE);
        }
        self.kill()
    }

    /// Kills children until there is none.
    ///
    /// Children alone: nobody else can bury them, so their ids cannot pass to a stranger between
    /// look and blow. What they leave behind becomes a child and has its turn in the next round.
    fn kill(&mut self) -> Ending {
        let mut ending = Ending {
            killed: false,
            swept: 0,
            left: 0,
        };
        let mut struck: Vec<Pid> = Vec::new();
        let until = Instant::now() + KILL_WITHIN;
        while self.reap() {
            let found = children();
            if Instant::now() >= until {
                ending.left = u32::try_from(found.len()).unwrap_or(u32::MAX).max(1);
                return ending;
            }
            for child in found {
                let _ = kill_process(child.pid, Signal::KILL);
                if child.dead || struck.contains(&child.pid) {
                    continue;
                }
                struck.push(child.pid);
                if child.pid == self.server {
                    ending.killed = true;
                } else {
                    ending.swept += 1;
                }
            }
            std::thread::sleep(PAUSE);
        }
        ending
    }
}

/// The signal of a server file's name for it: `TERM`, `SIGINT`.
pub(super) fn signal_named(name: &str) -> Option<Signal> {
    match name.strip_prefix("SIG").unwrap_or(name) {
        "TERM" => Some(Signal::TERM),
        "INT" => Some(Signal::INT),
        "QUIT" => Some(Signal::QUIT),
        "HUP" => Some(Signal::HUP),
        "USR1" => Some(Signal::USR1),
        "USR2" => Some(Signal::USR2),
        "KILL" => Some(Signal::KILL),
        _ => None,
    }
}

/// When a process started, in clock ticks since boot: with its id the name of one process, where
/// ids alone are used again.
pub(super) fn start_ticks(pid: Pid) -> Option<u64> {
    Some(read_stat(pid)?.start_ticks)
}

/// Kills what is left in the session of a server whose keeper is gone: no proof that nothing is,
/// but all that can be done from outside.
pub(super) fn kill_session(leader: Pid, leader_start_ticks: u64) {
    // The id of a session is not given to another process while the session has a member, so a
    // leader of another age means that the session has ended.
    if start_ticks(leader).is_some_and(|ticks| ticks != leader_start_ticks) {
        return;
    }
    for pid in all_processes() {
        if read_stat(pid).is_some_and(|stat| stat.session == leader.as_raw_nonzero().get()) {
            let _ = kill_process(pid, Signal::KILL);
        }
    }
}

struct ChildProcess {
    pid: Pid,
    dead: bool,
}

fn children() -> Vec<ChildProcess> {
    let own = getpid().as_raw_nonzero().get();
    let child = |pid| {
        let stat = read_stat(pid).filter(|stat| stat.parent == own)?;
        Some(ChildProcess {
            pid,
            dead: stat.state == 'Z',
        })
    };
    all_processes().into_iter().filter_map(child).collect()
}

fn all_processes() -> Vec<Pid> {
    let Ok(entries) = std::fs::read_dir("/proc") else {
        return Vec::new();
    };
    entries
        .filter_map(|entry| Pid::from_raw(entry.ok()?.file_name().to_str()?.parse().ok()?))
        .collect()
}

fn read_stat(pid: Pid) -> Option<Stat> {
    let path = format!("/proc/{}/stat", pid.as_raw_nonzero());
    // A name is bytes of the program's choice.
    Stat::parse(&String::from_utf8_lossy(&std::fs::read(path).ok()?))
}

#[derive(Debug, PartialEq, Eq)]
struct Stat {
    state: char,
    parent: i32,
    session: i32,
    start_ticks: u64,
}

impl Stat {
    /// proc_pid_stat(5): the name, in parentheses, may hold blanks and parentheses itself.
    fn parse(text: &str) -> Option<Stat> {
        let mut fields = text.rsplit_once(')')?.1.split_ascii_whitespace();
        Some(Stat {
            state: fields.next()?.chars().next()?,
            parent: fields.next()?.parse().ok()?,
            session: fields.nth(1)?.parse().ok()?,
            start_ticks: fields.nth(15)?.parse().ok()?,
        })
    }
}

fn words(status: WaitStatus) -> String {
    match (status.exit_status(), status.terminating_signal()) {
        (Some(code), _) => format!("exit status {code}"),
        (None, Some(signal)) => format!("signal {signal}"),
        (None, None) => format!("wait status {}", status.as_raw()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stat_line_is_read_whatever_the_name_is() {
        let line = "4242 (a) b (c)) S 17 4242 4240 0 -1 4194560 159 0 0 0 0 0 0 0 20 0 1 0 98765 \
                    3411968 345 18446744073709551615 1 1 0 0 0 0 0 0 0 0 0 0 17 1 0 0 0 0 0\n";
        let stat = Stat {
            state: 'S',
            parent: 17,
            session: 4240,
            start_ticks: 98765,
        };
        assert_eq!(Stat::parse(line), Some(stat));
        assert_eq!(Stat::parse("4242 (x"), None);
        assert_eq!(Stat::parse("4242 (x) S 17"), None);
    }

    #[test]
    fn this_process_has_an_age_and_a_parent() {
        let own = read_stat(getpid()).unwrap();
        assert_eq!(start_ticks(getpid()), Some(own.start_ticks));
        // A parent outside of this PID namespace has the id 0, and so has a session.
        assert_eq!(own.parent, Pid::as_raw(rustix::process::getppid()));
    }

    #[test]
    fn signals_have_their_usual_names() {
        assert_eq!(signal_named("TERM"), Some(Signal::TERM));
        assert_eq!(signal_named("SIGINT"), Some(Signal::INT));
        assert_eq!(signal_named("15"), None);
    }
}
