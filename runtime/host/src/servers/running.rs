//! One server from its start to its end, as seen by the runner.
#![expect(
    clippy::disallowed_methods,
    reason = "waiting for a server's start and end is bounded by the system's clock and is no part \
              of a measurement"
)]

use std::io::Write;
use std::net::SocketAddr;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use assize_codes::{Code, E0901, E0902, E0907, E0908, E0909};
use assize_plan::ServerDef;
use rustix::process::Pid;

use super::launch::Launch;
use super::lines::{Lines, Next};
use super::log::Pump;
use super::processes::{Programs, failure};
use super::protocol::{Refuser, Start, Told, line};
use super::tree::{KILL_WITHIN, REST_WITHIN, kill_session, start_ticks};
use super::{Stopped, WorldFailure, ready};
use crate::{Base, Secrets};

/// How long a keeper may take to say that the server runs.
const KEEPER_WITHIN: Duration = Duration::from_secs(30);
/// What a keeper may take beyond its own limits.
const KEEPER_SLACK: Duration = Duration::from_secs(10);
/// How long the last of the output may take to arrive once every process is gone.
const OUTPUT_WITHIN: Duration = Duration::from_secs(10);
/// How long one question may go unanswered, and the pause to the next.
const ANSWER_WITHIN: Duration = Duration::from_secs(2);
const ASK_EVERY: Duration = Duration::from_millis(50);

/// A keeper and the server that it keeps.
pub(super) struct Running {
    arm: String,
    keeper: Child,
    /// Closing it is the order to stop.
    order: Option<ChildStdin>,
    told: ChildStdout,
    lines: Lines,
    output: Pump,
    /// The server's id and age.
    server: Option<(Pid, u64)>,
    stop_within: Duration,
    /// How the server ended, where it did so by itself.
    ended: Option<String>,
    gone: Option<Gone>,
}

/// The keeper's last word, or that there will be none.
#[derive(Clone)]
enum Gone {
    /// As told.
    Told {
        status: String,
        killed: bool,
        swept: u32,
        left: u32,
    },
    /// The keeper ended without it.
    Silent,
}

impl Running {
    /// Starts a keeper and gives it the order to start the server.
    pub fn begin(
        arm: &str,
        programs: &Programs,
        launch: &Launch,
        log: Box<dyn Write + Send>,
    ) -> Result<Running, WorldFailure> {
        let subject = programs.keeper.display().to_string();
        let failed = |error: &std::io::Error| WorldFailure::io(E0908, "start", &subject, error);
        let mut keeper = Command::new(&programs.keeper)
            .args(&programs.keeper_arguments)
            .env_clear()
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(|error| failed(&error))?;
        let (Some(mut order), Some(told), Some(output)) = (
            keeper.stdin.take(),
            keeper.stdout.take(),
            keeper.stderr.take(),
        ) else {
            unreachable!("all three were asked for as pipes");
        };
        let mut command = vec![programs.keeper.clone().into_os_string()];
        command.extend(programs.keeper_arguments.iter().cloned());
        let environment = launch.environment.clone().into_iter().collect();
        // A keeper that does not read it has ended, which is seen when it should answer.
        let _ = order.write_all(&line(&Start {
            keeper: command,
            command: launch.command.clone(),
            environment,
            stop_signal: launch.stop_signal.clone(),
            stop_within_ns: u64::try_from(launch.stop_within.as_nanos()).unwrap_or(u64::MAX),
        }));
        let output = Pump::start(output, log).inspect_err(|_| {
            let _ = keeper.kill();
            let _ = keeper.wait();
        });
        Ok(Running {
            arm: arm.to_owned(),
            output: output.map_err(|error| failed(&error))?,
            keeper,
            order: Some(order),
            told,
            lines: Lines::default(),
            server: None,
            stop_within: launch.stop_within,
            ended: None,
            gone: None,
        })
    }

    /// Waits until the server's program runs.
    pub fn await_start(&mut self) -> Result<Pid, WorldFailure> {
        let refused = |code: Code, message: &str, errno: i32| WorldFailure {
            errno,
            ..failure(code, "start", "the server", message)
        };
        match self.hear(Some(Instant::now() + KEEPER_WITHIN))? {
            Heard::Told(Told::Started { pid }) => {
                let pid = i32::try_from(pid).ok().and_then(Pid::from_raw);
                let pid = pid.ok_or_else(|| refused(E0908, "the keeper told no process id", 0))?;
                self.server = Some((pid, start_ticks(pid).unwrap_or(0)));
                Ok(pid)
            }
            Heard::Told(Told::Refused { by, message, errno }) => Err(match by {
                Refuser::Command => refused(E0901, &message, errno),
                Refuser::Keeper => refused(E0908, &message, errno),
            }),
            Heard::Told(_) => Err(refused(E0908, "the keeper speaks another language", 0)),
            Heard::Closed => Err(refused(E0908, "the keeper ended at once", 0)),
            Heard::Silence => Err(refused(E0908, "the keeper says nothing", 0)),
        }
    }

    /// Asks until the server answers 2xx, ends, or its time is over.
    pub fn await_ready(
        &mut self,
        def: &ServerDef,
        base: &Base,
        address: SocketAddr,
    ) -> Result<(), WorldFailure> {
        let within = Duration::from_nanos(def.ready_within_ns.0);
        let until = Instant::now() + within;
        loop {
            let limit = ANSWER_WITHIN.min(until.saturating_duration_since(Instant::now()));
            let answer = ready::ask(
                address,
                &base.authority,
                &def.ready_path,
                limit.max(Duration::from_millis(1)),
            );
            let ready = matches!(answer, Ok(200..=299));
            // A server that has ended cannot be the one that answered.
            let pause = if ready { Duration::ZERO } else { ASK_EVERY };
            self.listen(Instant::now() + pause)?;
            if let Some(status) = self.how_ended() {
                let message = format!("it ended before it was ready: {status}");
                return Err(failure(E0901, "start", &self.arm, &message));
            }
            if ready {
                return Ok(());
            }
            if Instant::now() >= until {
                let last = match answer {
                    Ok(status) => format!("status {status}"),
                    Err(error) => error.to_string(),
                };
                let message = format!(
                    "no 2xx from http://{}{} within {within:?}; the last try: {last}",
                    base.authority, def.ready_path
                );
                return Err(failure(E0901, "start", &self.arm, &message));
            }
        }
    }

    /// Whether the log has been written so far.
    pub fn check_log(&self) -> Result<(), WorldFailure> {
        match self.output.take_error() {
            None => Ok(()),
            Some(error) => {
                let subject = format!("the server's log of {}", self.arm);
                Err(WorldFailure::io(E0902, "write", subject, &error))
            }
        }
    }

    /// Whether the server has not ended, without waiting.
    pub fn check_alive(&mut self) -> Result<(), WorldFailure> {
        self.listen(Instant::now())?;
        match self.how_ended() {
            None => Ok(()),
            Some(status) => {
                let message = format!("it ended by itself: {status}");
                Err(failure(E0907, "keep", &self.arm, &message))
            }
        }
    }

    fn how_ended(&self) -> Option<String> {
        match (&self.ended, &self.gone) {
            (Some(status), _) | (None, Some(Gone::Told { status, .. })) => Some(status.clone()),
            (None, Some(Gone::Silent)) => {
                Some("its keeper was killed, and the server with it".to_owned())
            }
            (None, None) => None,
        }
    }

    /// Takes what the keeper tells until `until`, or until the server has ended.
    fn listen(&mut self, until: Instant) -> Result<(), WorldFailure> {
        while self.ended.is_none() && self.gone.is_none() {
            if !self.take(until)? {
                break;
            }
        }
        Ok(())
    }

    /// Takes one thing that the keeper tells; `false` where there is none.
    fn take(&mut self, until: Instant) -> Result<bool, WorldFailure> {
        match self.hear(Some(until))? {
            Heard::Told(Told::Ended { status }) => self.ended = Some(status),
            Heard::Told(Told::Gone {
                status,
                killed,
                swept,
                left,
            }) => {
                self.gone = Some(Gone::Told {
                    status,
                    killed,
                    swept,
                    left,
                });
            }
            Heard::Told(_) => {}
            Heard::Closed => self.gone = Some(Gone::Silent),
            Heard::Silence => return Ok(false),
        }
        Ok(true)
    }

    fn hear(&mut self, until: Option<Instant>) -> Result<Heard, WorldFailure> {
        let failed = |error: &std::io::Error| WorldFailure::io(E0908, "hear", "the keeper", error);
        match self.lines.next(&self.told, until) {
            Ok(Next::Line(line)) => serde_json::from_slice(&line)
                .map(Heard::Told)
                .map_err(|error| failed(&error.into())),
            Ok(Next::Closed) => Ok(Heard::Closed),
            Ok(Next::TimedOut) => Ok(Heard::Silence),
            Err(error) => Err(failed(&error)),
        }
    }

    /// Ends the server and says so in the failure that is the reason.
    pub fn give_up(mut self, failure: WorldFailure, secrets: &Secrets) -> WorldFailure {
        let ended = self.end();
        let mut failure = self.with_quote(failure, secrets);
        // That something is left is worse than what made it stop.
        if let Err(worse) = ended
            && worse.code == E0909
        {
            failure.message = format!("{}; and {worse}", failure.message);
        }
        failure
    }

    /// Adds the last that the server printed.
    pub fn with_quote(&self, mut failure: WorldFailure, secrets: &Secrets) -> WorldFailure {
        let quote = self.output.quote(secrets);
        if !quote.is_empty() {
            failure.message = format!("{}\nthe last that it printed:\n{quote}", failure.message);
        }
        failure
    }

    /// Stops the server; returns once no process of its is left and its output is written.
    pub fn end(&mut self) -> Result<Stopped, WorldFailure> {
        self.order = None;
        let limit = self.stop_within + REST_WITHIN + KILL_WITHIN + KEEPER_SLACK;
        let until = Instant::now() + limit;
        let heard = loop {
            if let Some(gone) = &self.gone {
                break Ok(gone.clone());
            }
            match self.take(until) {
                Ok(true) => {}
                Ok(false) => break Ok(Gone::Silent),
                Err(error) => break Err(error),
            }
        };
        let last_word = matches!(heard, Ok(Gone::Told { .. }));
        self.bury_keeper(last_word);
        let written = self.output.wait(OUTPUT_WITHIN);
        match heard? {
            Gone::Told {
                status,
                killed,
                swept,
                left: 0,
            } if written => self.check_log().map(|()| Stopped {
                status: self.describe(&status, swept),
                killed,
            }),
            Gone::Told { left: 0, .. } => Err(self.left_over("something holds its output open")),
            Gone::Told { left, .. } => Err(self.left_over(&format!("{left} processes outlive it"))),
            // Without a server there was nothing to stop.
            Gone::Silent if self.server.is_none() => Ok(Stopped {
                status: "not running".to_owned(),
                killed: false,
            }),
            Gone::Silent => Err(self.left_over("its keeper ended before it did")),
        }
    }

    /// Takes leave of the keeper. One that did not say that all is done is killed, which kills the
    /// server, and so is what remains of the server's session.
    fn bury_keeper(&mut self, last_word: bool) {
        if !last_word {
            let _ = self.keeper.kill();
            if let Some((leader, ticks)) = self.server {
                kill_session(leader, ticks);
            }
        }
        let _ = self.keeper.wait();
    }

    fn describe(&self, status: &str, swept: u32) -> String {
        let by_itself = if self.ended.is_some() {
            "ended by itself: "
        } else {
            ""
        };
        let rest = match swept {
            0 => String::new(),
            1 => "; 1 process that it left behind was killed".to_owned(),
            _ => format!("; {swept} processes that it left behind were killed"),
        };
        format!("{by_itself}{status}{rest}")
    }

    fn left_over(&self, message: &str) -> WorldFailure {
        failure(E0909, "stop the server of", &self.arm, message)
    }
}

enum Heard {
    Told(Told),
    Closed,
    Silence,
}
