//! Servers as processes of this host.

use std::ffi::OsString;
use std::path::PathBuf;

use assize_codes::{Code, E0904};
use assize_plan::ServerDef;

use super::launch::Launch;
use super::port::check_free;
use super::running::Running;
use super::{Servers, StartServer, Started, Stopped, WorldFailure, ready};
use crate::{Base, Secrets};

/// The programs that [`Processes`] starts on its own account.
#[derive(Clone, Debug)]
pub struct Programs {
    /// The program whose `keeper_arguments` call [`super::keeper::main`] with what follows them.
    pub keeper: PathBuf,
    /// See `keeper`.
    pub keeper_arguments: Vec<OsString>,
    /// The program that serves the simulated engine, by [`super::sim_arguments`].
    pub sim: PathBuf,
}

/// Servers as child processes, one at a time.
///
/// Each gets a [`super::keeper`] of its own. Dropping it stops the running server.
pub struct Processes {
    programs: Programs,
    secrets: Secrets,
    running: Option<Running>,
}

impl Processes {
    /// Nothing runs yet.
    pub fn new(programs: Programs) -> Processes {
        Processes {
            programs,
            secrets: Secrets::none(),
            running: None,
        }
    }

    /// Masks `secrets` where a failure's message quotes what a server printed. The log is masked
    /// by its writer.
    #[must_use]
    pub fn masking(mut self, secrets: Secrets) -> Processes {
        self.secrets = secrets;
        self
    }
}

impl Servers for Processes {
    fn start(&mut self, server: StartServer<'_>) -> Result<Started, WorldFailure> {
        self.stop()?;
        let StartServer { arm, def, log } = server;
        let base = base_of(def)?;
        if !ready::is_path(&def.ready_path) {
            return Err(failure(
                E0904,
                "ask",
                &def.ready_path,
                "not a path of a URL",
            ));
        }
        #[expect(
            clippy::disallowed_methods,
            reason = "a server gets the names that its definition lists from the runner's environment"
        )]
        let variable = |name: &str| std::env::var_os(name);
        let launch = Launch::of(&self.programs, def, base.port, variable)?;
        // The one address that the load will be sent to.
        let address = base
            .resolve()
            .map_err(|error| WorldFailure::io(E0904, "look up", &base.authority, &error))?;
        check_free(address)?;

        let mut running = Running::begin(arm, &self.programs, &launch, log)?;
        let started = running
            .await_start()
            .and_then(|pid| running.await_ready(def, &base, address).map(|()| pid));
        match started {
            Ok(pid) => {
                self.running = Some(running);
                Ok(Started {
                    pid: pid.as_raw_nonzero().get() as u32,
                    command: launch.command,
                })
            }
            Err(failure) => Err(running.give_up(failure, &self.secrets)),
        }
    }

    fn check(&mut self) -> Result<(), WorldFailure> {
        let Some(running) = &mut self.running else {
            return Ok(());
        };
        running.check_log()?;
        match running.check_alive() {
            Ok(()) => Ok(()),
            Err(failure) => Err(running.with_quote(failure, &self.secrets)),
        }
    }

    fn stop(&mut self) -> Result<Stopped, WorldFailure> {
        match self.running.take() {
            Some(mut running) => running.end(),
            None => Ok(Stopped {
                status: "not running".to_owned(),
                killed: false,
            }),
        }
    }
}

impl Drop for Processes {
    fn drop(&mut self) {
        // Nobody is left to be told.
        let _ = self.stop();
    }
}

/// A server's base address. The run starts servers on this side of any TLS.
pub(super) fn base_of(def: &ServerDef) -> Result<Base, WorldFailure> {
    let base = Base::parse(&def.base).filter(|base| !base.tls);
    let message = "not of the form http://host:port/path";
    base.ok_or_else(|| failure(E0904, "read the address", &def.base, message))
}

/// A failure that has no number of the system.
pub(super) fn failure(code: Code, operation: &str, subject: &str, message: &str) -> WorldFailure {
    WorldFailure {
        code,
        operation: operation.to_owned(),
        subject: subject.to_owned(),
        message: message.to_owned(),
        errno: 0,
    }
}
