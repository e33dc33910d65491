//! What the language defines and this build cannot execute: one table. Whoever builds a part
//! deletes its line, and the lowering that stands already takes effect.

use super::shape::Shape;

/// Where a part of the language is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// A key of a mapping.
    Key(Shape),
    /// A key whose value is a mapping by request class.
    ByClass(Shape),
    /// An arrival process of a cell.
    Process(Shape),
}

/// A part of the language that this build cannot execute.
#[derive(Clone, Copy, Debug)]
pub struct Unsupported {
    /// Where it is written.
    pub place: Place,
    /// The key or the process.
    pub word: &'static str,
    /// What to do instead.
    pub advice: &'static str,
}

const fn key(shape: Shape, word: &'static str, advice: &'static str) -> Unsupported {
    Unsupported {
        place: Place::Key(shape),
        word,
        advice,
    }
}

/// Everything that is refused with `E0106`.
pub const TABLE: &[Unsupported] = &[
    key(
        Shape::Study,
        "requires",
        "remove it, and check the other evidence with `assize verify`",
    ),
    key(
        Shape::Study,
        "provenance",
        "remove it; what must be stated goes under `scope:`",
    ),
    key(
        Shape::Study,
        "pilots",
        "run the pilot as a study of its own, and write its figure under `let:`",
    ),
    key(
        Shape::Study,
        "gates",
        "remove it, and check the outputs before the run",
    ),
    key(
        Shape::Study,
        "watch",
        "remove it, and sample beside the run by your own means",
    ),
    key(
        Shape::Study,
        "profile",
        "remove it, and profile in a run of its own",
    ),
    key(
        Shape::Study,
        "host",
        "remove it; the evidence records what the host was",
    ),
    key(
        Shape::Study,
        "control",
        "remove it, or make it a cell of every block",
    ),
    key(
        Shape::Study,
        "external",
        "remove it; a server file may list files under its own `external:`",
    ),
    key(
        Shape::Study,
        "replicates",
        "remove it, and name the other plan under `question:`",
    ),
    key(Shape::Module, "gates", "remove it"),
    key(
        Shape::Prompts,
        "trace",
        "write the trace's prompts to a JSONL file, and name it with `file:`",
    ),
    key(
        Shape::Prompts,
        "format",
        "remove it: it belongs to `trace:`",
    ),
    key(Shape::Prompts, "take", "remove it: it belongs to `trace:`"),
    key(
        Shape::Prompts,
        "tokenizer",
        "use rows with `prompt_token_ids`, or `synthetic: tokens` with `vocabulary:`",
    ),
    key(
        Shape::Prompts,
        "turns",
        "write each turn as a row of its own",
    ),
    key(
        Shape::Request,
        "turns",
        "write each turn as a row of its own",
    ),
    key(Shape::Request, "think", "remove it: it belongs to `turns:`"),
    key(Shape::Arm, "quota", "choose loads that keep within it"),
    key(
        Shape::Arm,
        "provenance",
        "remove it; what must be stated goes under `scope:`",
    ),
    key(
        Shape::Arm,
        "discloses",
        "remove it; the author's words go under `scope:`",
    ),
    key(Shape::Cell, "sessions", "use `requests:`"),
    key(Shape::Warmup, "sessions", "use `requests:`"),
    key(
        Shape::Blocks,
        "every",
        "remove it: a block starts when the one before has ended",
    ),
    Unsupported {
        place: Place::ByClass(Shape::Cell),
        word: "load",
        advice: "make a cell for each class",
    },
    Unsupported {
        place: Place::ByClass(Shape::Cell),
        word: "requests",
        advice: "make a cell for each class",
    },
    Unsupported {
        place: Place::ByClass(Shape::Warmup),
        word: "load",
        advice: "give the warmup one load",
    },
    Unsupported {
        place: Place::ByClass(Shape::Warmup),
        word: "requests",
        advice: "give the warmup one number",
    },
    Unsupported {
        place: Place::Process(Shape::Cell),
        word: "replay",
        advice: "use `poisson(rate)` or `every(gap)` at the trace's mean rate",
    },
    Unsupported {
        place: Place::Process(Shape::Cell),
        word: "batch",
        advice: "a batch is for the `warmup:`; in a cell use `burst(n, gap)` or `closed(n)`",
    },
    Unsupported {
        place: Place::Process(Shape::Warmup),
        word: "replay",
        advice: "warm up with `closed(n)`",
    },
];

/// The line of the table for a word at a place.
pub(super) fn find(place: Place, word: &str) -> Option<&'static Unsupported> {
    TABLE
        .iter()
        .find(|line| line.place == place && line.word == word)
}
