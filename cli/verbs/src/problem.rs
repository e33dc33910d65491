//! What a verb says when it cannot do what was asked.

use assize_codes::Code;
use assize_host::WorldFailure;
use assize_plan::BundleRefusal;

/// Exit statuses. Where two hold at once: 2 before 3 before 4 before 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// Did what was asked.
    Done = 0,
    /// The answer is no.
    No = 1,
    /// Wrong use.
    Usage = 2,
    /// The world failed.
    World = 3,
    /// Ended, but the evidence is incomplete or an `expect` failed.
    Incomplete = 4,
}

/// A refusal or a failure: not the author's text, so it has no span.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// Its code.
    pub code: Code,
    /// The status that it ends with.
    pub status: Status,
    /// One sentence.
    pub message: String,
    /// What to do, where there is more to say than the page says.
    pub help: Option<String>,
}

impl Problem {
    /// A refusal: the answer is no.
    pub fn refusal(code: Code, message: impl Into<String>) -> Problem {
        Problem {
            code,
            status: Status::No,
            message: message.into(),
            help: None,
        }
    }

    /// A failure of the world.
    pub fn world(code: Code, message: impl Into<String>) -> Problem {
        Problem {
            code,
            status: Status::World,
            message: message.into(),
            help: None,
        }
    }

    /// Wrong use of the command line.
    pub fn usage(code: Code, message: impl Into<String>) -> Problem {
        Problem {
            code,
            status: Status::Usage,
            message: message.into(),
            help: None,
        }
    }

    /// Adds what to do.
    #[must_use]
    pub fn help(mut self, help: impl Into<String>) -> Problem {
        self.help = Some(help.into());
        self
    }
}

impl From<WorldFailure> for Problem {
    fn from(failure: WorldFailure) -> Self {
        Problem::world(failure.code, failure.to_string())
    }
}

impl From<BundleRefusal> for Problem {
    fn from(refusal: BundleRefusal) -> Self {
        match refusal {
            BundleRefusal::Io { .. } => Problem::world(assize_codes::E0702, refusal.to_string()),
            _ => Problem::refusal(assize_codes::E0701, refusal.to_string()),
        }
    }
}
