//! Server files: how an arm's server is started, or which simulated engine stands in for it.

use super::Text;
use super::setting::words;
use crate::expr::{Dimension, Expr};
use crate::source::{Span, Spanned};

/// A server file.
#[derive(Clone, Debug, PartialEq)]
pub struct ServerFile {
    /// `assize`: the version of the language.
    pub version: Spanned<u32>,
    /// A process or a simulated engine.
    pub kind: ServerKind,
}

/// What a server file describes.
#[derive(Clone, Debug, PartialEq)]
pub enum ServerKind {
    /// `command: […]`: a process.
    Process(Box<ServerProcess>),
    /// `sim: {…}`: the simulated engine.
    Sim(SimSettings),
}

/// A server that is started as a process.
#[derive(Clone, Debug, PartialEq)]
pub struct ServerProcess {
    /// `command`: the program and its arguments; an arm's `args` are appended.
    pub command: Spanned<Vec<Text>>,
    /// `base`: the address under which the interface's paths lie.
    pub base: Text,
    /// `ready`: how readiness is told.
    pub ready: Ready,
    /// `env`: its environment, name and value; an arm's `env` is merged into it.
    pub env: Vec<(Text, Text)>,
    /// `pass`: names of variables that are handed on from the caller's environment.
    pub pass: Vec<Text>,
    /// `stop`: how it is stopped.
    pub stop: Stop,
    /// `external`: files that are hashed at freezing and compared before the run.
    pub external: Vec<Text>,
}

/// `ready` of a server.
#[derive(Clone, Debug, PartialEq)]
pub struct Ready {
    /// `get`: the path that answers with success once it is ready.
    pub get: Text,
    /// `within`: the longest time until then.
    pub within: Expr,
}

/// `stop` of a server.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Stop {
    /// `signal`: the first signal; `TERM`.
    pub signal: Option<Spanned<Signal>>,
    /// `within`: the time until the process is killed.
    pub within: Option<Expr>,
}

words! {
    /// A signal that asks a server to stop.
    Signal {
        /// SIGTERM
        Term = "TERM",
        /// SIGINT
        Int = "INT",
        /// SIGQUIT
        Quit = "QUIT",
        /// SIGHUP
        Hup = "HUP",
    }
}

/// `sim`: the settings of a simulated engine, as written.
#[derive(Clone, Debug, PartialEq)]
pub struct SimSettings {
    /// The key `sim`.
    pub span: Span,
    /// The settings; each key at most once.
    pub entries: Vec<SimSetting>,
}

impl SimSettings {
    /// The value of a key, where it was written.
    pub fn get(&self, key: SimKey) -> Option<&Expr> {
        self.entries
            .iter()
            .find(|entry| entry.key.value == key)
            .map(|entry| &entry.value)
    }
}

/// One setting of a simulated engine.
#[derive(Clone, Debug, PartialEq)]
pub struct SimSetting {
    /// Which.
    pub key: Spanned<SimKey>,
    /// Its value: a literal of the key's dimension ([`SimKey::unit`]).
    pub value: Expr,
}

words! {
    /// A key of `sim`. A new setting is a line here and one in [`SimKey::unit`].
    SimKey {
        /// The time of one step of the batch.
        Step = "step",
        /// What each sequence adds to a step.
        StepPerSeq = "step_per_seq",
        /// What each prompt token costs.
        PrefillPerToken = "prefill_per_token",
        /// What each prefill costs besides.
        PrefillBase = "prefill_base",
        /// How many sequences run at once.
        MaxSeqs = "max_seqs",
        /// The spread of a step, as a percent of it.
        Jitter = "jitter",
        /// How many tokens one event carries.
        TokensPerEvent = "tokens_per_event",
        /// The seed of the engine's own draws.
        Seed = "seed",
        /// The port that it listens on.
        Port = "port",
    }
}

/// What a setting of the simulated engine measures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SimUnit {
    /// A value of a dimension.
    Of(Dimension),
    /// A whole number.
    Count,
    /// A percent.
    Percent,
}

impl SimKey {
    /// What the setting measures.
    pub fn unit(self) -> SimUnit {
        match self {
            SimKey::Step | SimKey::StepPerSeq | SimKey::PrefillPerToken | SimKey::PrefillBase => {
                SimUnit::Of(Dimension::DURATION)
            }
            SimKey::Jitter => SimUnit::Percent,
            SimKey::MaxSeqs | SimKey::TokensPerEvent | SimKey::Seed | SimKey::Port => {
                SimUnit::Count
            }
        }
    }
}
