//! Diagnostics as data: what is wrong, where, why, and the edit that mends it.

mod render;
mod visible;

pub use render::{render_github, render_human, render_json};
pub(crate) use visible::is_hidden;
use visible::visible;

use std::collections::BTreeSet;

use assize_codes::Code;

use crate::source::Span;

/// How much a diagnostic weighs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Severity {
    /// The study cannot be compiled.
    Error,
    /// It can, and the author ought to know.
    Warning,
}

impl Severity {
    /// The word in output.
    pub fn word(self) -> &'static str {
        match self {
            Severity::Error => "error",
            Severity::Warning => "warning",
        }
    }
}

/// A place and what it has to do with the diagnostic.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Label {
    /// The place.
    pub span: Span,
    /// What is said of it; may be empty.
    pub text: String,
}

/// A replacement of the text at a place; an empty place is an insertion.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Edit {
    /// What is replaced.
    pub span: Span,
    /// By what.
    pub replacement: String,
}

/// A way out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Help {
    /// What to do.
    pub text: String,
    /// The edits that do it; none where only the author can know.
    pub edits: Vec<Edit>,
}

/// One diagnostic.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    /// The stable code; its letter gives the severity.
    pub code: Code,
    /// The headline: it stands alone, in the study's own words.
    pub message: String,
    /// The place of the fault.
    pub primary: Label,
    /// Other places that explain it.
    pub secondary: Vec<Label>,
    /// Further sentences without a place.
    pub notes: Vec<String>,
    /// Ways out.
    pub help: Vec<Help>,
}

impl Diagnostic {
    /// A diagnostic at a place.
    pub fn new(code: Code, span: Span, message: impl Into<String>) -> Diagnostic {
        Diagnostic {
            code,
            message: message.into(),
            primary: Label {
                span,
                text: String::new(),
            },
            secondary: Vec::new(),
            notes: Vec::new(),
            help: Vec::new(),
        }
    }

    /// With a text at the primary place.
    pub fn label(mut self, text: impl Into<String>) -> Diagnostic {
        self.primary.text = text.into();
        self
    }

    /// With a second place and why it matters.
    pub fn also(mut self, span: Span, text: impl Into<String>) -> Diagnostic {
        self.secondary.push(Label {
            span,
            text: text.into(),
        });
        self
    }

    /// With a sentence that has no place.
    pub fn note(mut self, text: impl Into<String>) -> Diagnostic {
        self.notes.push(text.into());
        self
    }

    /// With a way out in words.
    pub fn help(mut self, text: impl Into<String>) -> Diagnostic {
        self.help.push(Help {
            text: text.into(),
            edits: Vec::new(),
        });
        self
    }

    /// With a way out that is one replacement.
    pub fn help_edit(
        mut self,
        text: impl Into<String>,
        span: Span,
        replacement: impl Into<String>,
    ) -> Diagnostic {
        self.help.push(Help {
            text: text.into(),
            edits: vec![Edit {
                span,
                replacement: replacement.into(),
            }],
        });
        self
    }

    /// Parts of the study are quoted in the texts: what cannot be seen in them is spelt out, and what
    /// is endless is cut.
    fn make_visible(&mut self) {
        let labels = self.secondary.iter_mut().chain([&mut self.primary]);
        let texts = labels.map(|label| &mut label.text);
        let texts = texts.chain(self.notes.iter_mut());
        let texts = texts.chain(self.help.iter_mut().map(|help| &mut help.text));
        for text in texts.chain([&mut self.message]) {
            if let Some(shown) = visible(text) {
                *text = shown;
            }
        }
    }

    /// Error or warning, by the letter of the code.
    pub fn severity(&self) -> Severity {
        if self.code.is_warning() {
            Severity::Warning
        } else {
            Severity::Error
        }
    }
}

/// The diagnostics of one run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Diagnostics {
    list: Vec<Diagnostic>,
    known: BTreeSet<(&'static str, Span, String)>,
    left_out: usize,
}

impl Diagnostics {
    /// None yet.
    pub fn new() -> Diagnostics {
        Diagnostics::default()
    }

    /// The most diagnostics that one run keeps; further ones are counted.
    pub const MAX: usize = 1_000;

    /// Adds one, unless the same was already reported at the same place.
    pub fn push(&mut self, mut diagnostic: Diagnostic) {
        if self.list.len() == Self::MAX {
            self.left_out += 1;
            return;
        }
        diagnostic.make_visible();
        let message = diagnostic.message.clone();
        let key = (diagnostic.code.id, diagnostic.primary.span, message);
        if self.known.insert(key) {
            self.list.push(diagnostic);
        }
    }

    /// Adds all of another run's.
    pub fn extend(&mut self, others: Diagnostics) {
        for diagnostic in others.list {
            self.push(diagnostic);
        }
        self.left_out += others.left_out;
    }

    /// How many came after the [`Diagnostics::MAX`]th and were not kept.
    pub fn left_out(&self) -> usize {
        self.left_out
    }

    /// The diagnostics sorted by place, then by code.
    pub fn sorted(&self) -> Vec<&Diagnostic> {
        let mut sorted: Vec<&Diagnostic> = self.list.iter().collect();
        sorted.sort_by_key(|diagnostic| (diagnostic.primary.span, diagnostic.code.id));
        sorted
    }

    /// The diagnostics in the order in which they were found.
    pub fn iter(&self) -> std::slice::Iter<'_, Diagnostic> {
        self.list.iter()
    }

    /// Whether there are none, not even warnings.
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.list.len()
    }

    /// How many of them are errors.
    pub fn error_count(&self) -> usize {
        self.list
            .iter()
            .filter(|diagnostic| diagnostic.severity() == Severity::Error)
            .count()
    }

    /// Whether any is an error.
    pub fn has_errors(&self) -> bool {
        self.error_count() > 0
    }
}

impl<'a> IntoIterator for &'a Diagnostics {
    type Item = &'a Diagnostic;
    type IntoIter = std::slice::Iter<'a, Diagnostic>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}
