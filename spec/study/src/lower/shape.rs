//! The mappings of the language and their keys.

/// A mapping with a fixed set of keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Shape {
    /// A file with `study:`.
    Study,
    /// A file with `module:`.
    Module,
    /// `limits`.
    Limits,
    /// An entry of `requires`.
    Requirement,
    /// An entry of `prompts`.
    Prompts,
    /// An entry of `requests`.
    Request,
    /// An entry of `arms`.
    Arm,
    /// `quota` of an arm.
    Quota,
    /// An entry of `pilots`.
    Pilot,
    /// An entry of `cells`.
    Cell,
    /// `warmup`.
    Warmup,
    /// An entry of `blocks`.
    Blocks,
    /// An entry of `gates`.
    Gate,
    /// An entry of `compare`.
    Compare,
    /// An entry of `decide`.
    Decision,
    /// An entry of `watch`.
    Watch,
    /// `profile`.
    Profile,
    /// An entry of `control`.
    Control,
    /// An entry of `engines`.
    Engine,
    /// `output` of an engine.
    EngineOutput,
    /// A server file.
    Server,
    /// `ready` of a server file.
    Ready,
    /// `stop` of a server file.
    Stop,
    /// `sim` of a server file.
    Sim,
}

impl Shape {
    /// What it is called, with its article.
    pub fn describe(self) -> &'static str {
        match self {
            Shape::Study => "a study",
            Shape::Module => "a module",
            Shape::Limits => "`limits`",
            Shape::Requirement => "a requirement",
            Shape::Prompts => "a panel of prompts",
            Shape::Request => "a request",
            Shape::Arm => "an arm",
            Shape::Quota => "`quota`",
            Shape::Pilot => "a pilot",
            Shape::Cell => "a cell",
            Shape::Warmup => "the warmup",
            Shape::Blocks => "a block set",
            Shape::Gate => "a gate",
            Shape::Compare => "a comparison",
            Shape::Decision => "a family of hypotheses",
            Shape::Watch => "a sampler",
            Shape::Profile => "`profile`",
            Shape::Control => "a control",
            Shape::Engine => "an engine",
            Shape::EngineOutput => "`output` of an engine",
            Shape::Server => "a server file",
            Shape::Ready => "`ready`",
            Shape::Stop => "`stop`",
            Shape::Sim => "`sim`",
        }
    }

    /// Its keys.
    pub fn keys(self) -> &'static [&'static str] {
        match self {
            Shape::Study => &[
                "assize",
                "study",
                "question",
                "use",
                "seed",
                "limits",
                "requires",
                "provenance",
                "prompts",
                "requests",
                "arms",
                "pilots",
                "let",
                "cells",
                "blocks",
                "warmup",
                "settle",
                "drain",
                "timeout",
                "connections",
                "cache",
                "send",
                "gates",
                "compare",
                "decide",
                "watch",
                "profile",
                "driver",
                "spin",
                "host",
                "interrupted",
                "max_response",
                "scope",
                "control",
                "external",
                "replicates",
            ],
            Shape::Module => &[
                "assize", "module", "doc", "use", "let", "requests", "arms", "cells", "blocks",
                "gates", "decide", "engines", "profiles",
            ],
            Shape::Limits => &["duration", "requests", "output"],
            Shape::Requirement => &["evidence", "verdict"],
            Shape::Prompts => &[
                "file",
                "trace",
                "synthetic",
                "format",
                "count",
                "tokens",
                "vocabulary",
                "tokenizer",
                "take",
                "turns",
            ],
            Shape::Request => &[
                "api", "prompt", "output", "body", "timeout", "headers", "turns", "think", "like",
                "abstract",
            ],
            Shape::Arm => &[
                "engine",
                "server",
                "args",
                "env",
                "endpoint",
                "ca",
                "insecure",
                "model",
                "key",
                "headers",
                "quota",
                "label",
                "provenance",
                "discloses",
                "like",
                "same_as",
                "abstract",
            ],
            Shape::Quota => &["requests", "tokens", "in_flight"],
            Shape::Pilot => &["arms", "cell", "load", "requests", "declared"],
            Shape::Cell => &[
                "for",
                "load",
                "requests",
                "sessions",
                "send",
                "stream",
                "settle",
                "drain",
                "timeout",
                "connections",
                "cache",
                "record",
                "receive",
                "like",
                "abstract",
            ],
            Shape::Warmup => &[
                "load",
                "requests",
                "sessions",
                "send",
                "stream",
                "settle",
                "drain",
                "timeout",
                "connections",
                "cache",
                "record",
                "receive",
            ],
            Shape::Blocks => &[
                "repeat",
                "arms",
                "cells",
                "arm_order",
                "cell_order",
                "every",
                "excluded",
                "restart",
                "like",
                "abstract",
            ],
            Shape::Gate => &[
                "rule",
                "send",
                "items",
                "reference",
                "score",
                "command",
                "discloses",
                "like",
                "abstract",
            ],
            Shape::Compare => &["arms", "differ"],
            Shape::Decision => &[
                "test",
                "correct",
                "interval",
                "valid",
                "hypotheses",
                "expect",
                "scope",
                "discloses",
                "like",
                "abstract",
            ],
            Shape::Watch => &["from", "command", "file", "every", "keep", "join"],
            Shape::Profile => &["when", "prelude", "cell", "requests", "start", "stop"],
            Shape::Control => &["cell", "metric", "command", "at", "tolerance", "on_drift"],
            Shape::Engine => &["done", "eviction", "metrics", "output"],
            Shape::EngineOutput => &["exactly", "at_most"],
            Shape::Server => &[
                "assize", "command", "base", "ready", "env", "pass", "stop", "external", "sim",
            ],
            Shape::Ready => &["get", "within"],
            Shape::Stop => &["signal", "within"],
            Shape::Sim => &[
                "step",
                "step_per_seq",
                "prefill_per_token",
                "prefill_base",
                "max_seqs",
                "jitter",
                "tokens_per_event",
                "seed",
                "port",
            ],
        }
    }
}
