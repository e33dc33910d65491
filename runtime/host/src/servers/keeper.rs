//! The keeper: a process between runner and server that makes certain of the server's end.
//!
//! It is a child subreaper, so whatever the server starts and abandons becomes its child. When its
//! standard input ends, because the runner stops the server or because the runner is no more
//! (killed with -9 too), it asks the server to end, waits, kills, and goes on until it has no child
//! left; that is the proof that no descendant is left either.
//!
//! It starts the server by way of a *launcher*: itself, started once more, which makes a session of
//! its own, arranges to be killed should the keeper die, and becomes the server.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitCode, Stdio};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::{
    Pid, PidfdFlags, Signal, getpid, getppid, pidfd_open, set_child_subreaper,
    set_parent_process_death_signal, setsid,
};

use super::lines::{Lines, Next, timespec};
use super::protocol::{Refuser, Start, Told, line};
use super::tree::{Tree, signal_named};

/// The argument that makes a launcher of a keeper.
const LAUNCH: &str = "launch";
/// How often orphans that ended by themselves are buried while the server runs.
const BURY_EVERY: Duration = Duration::from_secs(10);
/// How often the server is looked at where the kernel has no pidfd.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// Runs a keeper to its end: what the hidden verb of `assize` calls with the arguments after it.
///
/// Standard input and output are pipes to the runner; what the server prints goes to standard
/// error.
pub fn main(arguments: &[OsString]) -> ExitCode {
    match arguments {
        [] => keep(),
        [word, keeper, command @ ..] if word == LAUNCH => launch(keeper, command),
        _ => ExitCode::from(2),
    }
}

fn keep() -> ExitCode {
    // Away from the terminal, whose Ctrl-C is the runner's affair. It fails where the keeper leads
    // a group already, which is as good.
    let _ = setsid();
    let stdin = io::stdin();
    let mut orders = Lines::default();
    // A runner that is gone, or is none, wants nothing.
    let Ok(Next::Line(order)) = orders.next(&stdin, None) else {
        return ExitCode::FAILURE;
    };
    match prepare(&order).and_then(|(start, signal)| Ok((begin(&start)?, start, signal))) {
        Ok((server, start, signal)) => watch(server, &start, signal),
        Err(refused) => {
            tell(&refused);
            ExitCode::FAILURE
        }
    }
}

fn prepare(order: &[u8]) -> Result<(Start, Signal), Told> {
    let refused = |message: String| Told::Refused {
        by: Refuser::Keeper,
        message,
        errno: 0,
    };
    let start: Start =
        serde_json::from_slice(order).map_err(|error| refused(format!("the order: {error}")))?;
    let signal = signal_named(&start.stop_signal)
        .ok_or_else(|| refused(format!("unknown signal {}", start.stop_signal)))?;
    set_child_subreaper(Some(getpid()))
        .map_err(|errno| refusal(Refuser::Keeper, &io::Error::from(errno)))?;
    Ok((start, signal))
}

/// Starts the server and returns once its program runs.
fn begin(start: &Start) -> Result<Pid, Told> {
    let own = |error: io::Error| refusal(Refuser::Keeper, &error);
    let (program, arguments) = start
        .keeper
        .split_first()
        .ok_or_else(|| own(io::Error::from(io::ErrorKind::InvalidInput)))?;
    let (errors, report) = pipe_with(PipeFlags::CLOEXEC).map_err(|errno| own(errno.into()))?;
    let output = io::stderr().as_fd().try_clone_to_owned().map_err(own)?;
    let environment = start.environment.iter().map(|(name, value)| (name, value));
    let launcher = Command::new(program)
        .args(arguments)
        .arg(LAUNCH)
        .arg(getpid().as_raw_nonzero().to_string())
        .args(&start.command)
        .env_clear()
        .envs(environment)
        .stdin(Stdio::from(report))
        .stdout(Stdio::from(output))
        .spawn()
        .map_err(own)?;
    // The launcher's end of the pipe closes when it becomes the server.
    let mut words = String::new();
    File::from(errors).read_to_string(&mut words).map_err(own)?;
    if !words.is_empty() {
        return Err(serde_json::from_str(&words).unwrap_or(Told::Refused {
            by: Refuser::Keeper,
            message: words,
            errno: 0,
        }));
    }
    Pid::from_raw(launcher.id() as i32).ok_or_else(|| own(io::Error::other("no process id")))
}

/// Waits for the server's end or the runner's word, whichever is first; then ends it all.
fn watch(server: Pid, start: &Start, signal: Signal) -> ExitCode {
    tell(&Told::Started {
        pid: server.as_raw_nonzero().get() as u32,
    });
    let mut tree = Tree::new(server);
    wait_for_an_end(server, &mut tree);
    if let Some(status) = tree.status() {
        tell(&Told::Ended { status });
    }
    let ending = tree.end(signal, Duration::from_nanos(start.stop_within_ns));
    tell(&Told::Gone {
        status: tree.status().unwrap_or_else(|| "still there".to_owned()),
        killed: ending.killed,
        swept: ending.swept,
        left: ending.left,
    });
    ExitCode::from(u8::from(ending.left > 0))
}

fn wait_for_an_end(server: Pid, tree: &mut Tree) {
    let stdin = io::stdin();
    let handle = pidfd_open(server, PidfdFlags::empty()).ok();
    let pause = timespec(if handle.is_some() {
        BURY_EVERY
    } else {
        LOOK_EVERY
    });
    loop {
        tree.reap();
        if tree.status().is_some() {
            return;
        }
        let mut polled = vec![PollFd::new(&stdin, PollFlags::IN)];
        polled.extend(
            handle
                .as_ref()
                .map(|handle| PollFd::new(handle, PollFlags::IN)),
        );
        let polled_well = poll(&mut polled, Some(&pause));
        // Nothing is ever written after the order: what can be read is the end.
        let told = !polled[0].revents().is_empty();
        match polled_well {
            Ok(_) if told => return,
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(_) => return,
        }
    }
}

/// Becomes the server. Standard input is the pipe on which a failure to do so is told.
fn launch(keeper: &OsStr, command: &[OsString]) -> ExitCode {
    let Ok(report) = io::stdin().as_fd().try_clone_to_owned() else {
        return ExitCode::FAILURE;
    };
    let refused = match become_server(keeper, command) {
        Ok(never) => match never {},
        Err(refused) => refused,
    };
    tell_launcher_error(report, &refused);
    ExitCode::from(127)
}

fn become_server(keeper: &OsStr, command: &[OsString]) -> Result<std::convert::Infallible, Told> {
    let own = |error: io::Error| refusal(Refuser::Keeper, &error);
    setsid().map_err(|errno| own(errno.into()))?;
    // The signal comes when the thread ends that started this process: the keeper has but one.
    set_parent_process_death_signal(Some(Signal::KILL)).map_err(|errno| own(errno.into()))?;
    let parent = getppid().map_or(0, |pid| pid.as_raw_nonzero().get());
    if keeper.as_bytes() != parent.to_string().as_bytes() {
        return Err(own(io::Error::other("the keeper is gone")));
    }
    let Some((program, arguments)) = command.split_first() else {
        let empty = io::Error::new(io::ErrorKind::InvalidInput, "the command is empty");
        return Err(refusal(Refuser::Command, &empty));
    };
    let error = Command::new(program)
        .args(arguments)
        .stdin(Stdio::null())
        .exec();
    Err(refusal(Refuser::Command, &error))
}

fn tell_launcher_error(report: OwnedFd, refused: &Told) {
    // With nobody to read it there is nothing more to do.
    let _ = File::from(report).write_all(&line(refused));
}

fn refusal(by: Refuser, error: &io::Error) -> Told {
    Told::Refused {
        by,
        message: error.to_string(),
        errno: error.raw_os_error().unwrap_or(0),
    }
}

fn tell(told: &Told) {
    // A runner that is gone reads nothing; the server is ended all the same.
    let mut stdout = io::stdout();
    let _ = stdout.write_all(&line(told));
    let _ = stdout.flush();
}
