//! Words of closed sets, and settings that take arguments.

use super::Text;
use crate::expr::Expr;

/// A closed set of words.
macro_rules! words {
    ($(#[$doc:meta])* $name:ident { $($(#[$variant_doc:meta])* $variant:ident = $word:literal,)* }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum $name {
            $($(#[$variant_doc])* $variant,)*
        }

        impl $name {
            /// Every word with its meaning.
            pub const WORDS: &'static [(&'static str, $name)] = &[$(($word, $name::$variant),)*];

            /// The word as it is written.
            pub fn word(self) -> &'static str {
                match self {
                    $($name::$variant => $word,)*
                }
            }
        }
    };
}

pub(super) use words;

words! {
    /// The interface that a request speaks.
    Api {
        /// `POST …/completions`
        OpenAiCompletions = "openai/completions",
        /// `POST …/chat/completions`
        OpenAiChat = "openai/chat",
    }
}

words! {
    /// The order of the arms in the blocks of a set.
    ArmOrder {
        /// Rows of a Williams design.
        Counterbalanced = "counterbalanced",
        /// Each block begins one arm later.
        Rotating = "rotating",
        /// As listed, in every block.
        Fixed = "fixed",
        /// Drawn for each block.
        Shuffled = "shuffled",
    }
}

words! {
    /// The order of the cells in the blocks of a set.
    CellOrder {
        /// As listed, and backwards in every other block.
        Alternating = "alternating",
        /// Each block begins one cell later.
        Rotating = "rotating",
        /// As listed, in every block.
        Fixed = "fixed",
        /// Drawn for each block.
        Shuffled = "shuffled",
    }
}

words! {
    /// The state of the engine's prefix cache when a cell begins.
    Cache {
        /// Emptied by the engine's own call, the answer recorded.
        Cold = "cold",
        /// The cell's own requests once before, recorded apart.
        Primed = "primed",
        /// As the cell before left it.
        AsLeft = "as_left",
    }
}

words! {
    /// Which driver must run.
    Driver {
        /// io_uring where it is to be had, otherwise epoll.
        Any = "any",
        /// io_uring or a refusal.
        IoUring = "io_uring",
        /// epoll or a refusal.
        Epoll = "epoll",
    }
}

words! {
    /// What happens to a unit that was cut short.
    Interrupted {
        /// It stays as it is and counts as missing.
        Final = "final",
        /// It is run again from its beginning.
        Rerun = "rerun",
    }
}

words! {
    /// What the log of the wire holds.
    Record {
        /// Every received byte.
        Wire = "wire",
        /// The fields of each event.
        Events = "events",
    }
}

/// The connections of a cell.
#[derive(Clone, Debug, PartialEq)]
pub enum Connections {
    /// `fresh`: a new connection for each request.
    Fresh,
    /// `reuse` or `reuse(idle = 4s)`: kept ones.
    Reuse {
        /// How long an idle connection is kept.
        idle: Option<Expr>,
    },
}

/// How receives are taken.
#[derive(Clone, Debug, PartialEq)]
pub enum Receive {
    /// `reap`: one reading of the clock for each batch of completions.
    Reap,
    /// `kernel` or `kernel(gather = 500us)`: the kernel's receive times too.
    Kernel {
        /// How long completions are gathered.
        gather: Option<Expr>,
    },
}

/// How many tokens a request asks for.
#[derive(Clone, Debug, PartialEq)]
pub enum Output {
    /// `exactly(128)`
    Exactly(Expr),
    /// `at_most(128)`
    AtMost(Expr),
}

/// Where the prompts of a panel come from.
#[derive(Clone, Debug, PartialEq)]
pub enum PanelSource {
    /// `file`: a JSONL file.
    File(Text),
    /// `trace`: a file of arrivals and lengths.
    Trace(Text),
    /// `synthetic: tokens`: drawn token ids.
    SyntheticTokens,
}
