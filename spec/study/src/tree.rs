//! The generic tree of a file, with the place of every key and value.
//!
//! Text becomes a tree or one syntax error ([`parse`]). What YAML allows and the language leaves
//! out (tags, anchors, directives, `?` keys, tabs, further documents) is refused here, mostly by
//! looking at what stands between two places: only blanks, comments and YAML's own marks may.

mod gaps;
mod raw;
mod refuse;

use crate::diagnostic::Diagnostics;
use crate::source::{Source, SourceId, Span};

/// The most bytes of one file.
pub const MAX_BYTES: usize = 1 << 20;
/// The most keys and values of one file.
pub const MAX_NODES: usize = 50_000;
/// The deepest nesting of one file.
pub const MAX_DEPTH: usize = 32;

/// A key or a value.
#[derive(Clone, Debug, PartialEq)]
pub struct Node {
    /// What it is.
    pub kind: NodeKind,
    /// Where it stands; of a mapping or list from its first mark or key to its last value.
    pub span: Span,
}

/// The kinds of node.
#[derive(Clone, Debug, PartialEq)]
pub enum NodeKind {
    /// Nothing was written.
    Empty,
    /// A text.
    Scalar(Scalar),
    /// A list.
    List(Vec<Node>),
    /// A mapping, with repeated keys as written.
    Map(Vec<(Node, Node)>),
}

/// A text as written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scalar {
    /// The text: of a plain one the source at its span, of any other the parser's string.
    pub text: String,
    /// How it was written.
    pub style: Style,
}

/// How a scalar was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Style {
    /// Without quotes, on one line.
    Plain,
    /// In quotes, on one line, and the same text without them.
    Quoted,
    /// In quotes, on one line, with escapes: bytes of the text are not bytes of the source.
    Escaped,
    /// Over several lines: folded, literal, or a plain or quoted one that goes on.
    Multiline,
}

impl Node {
    /// What it is, with an article, for diagnostics.
    pub fn describe(&self) -> &'static str {
        match self.kind {
            NodeKind::Empty => "nothing",
            NodeKind::Scalar(_) => "a text",
            NodeKind::List(_) => "a list",
            NodeKind::Map(_) => "a mapping",
        }
    }
}

/// The tree of a file; `None` where an error ended it.
pub fn parse(source: &Source, id: SourceId, diagnostics: &mut Diagnostics) -> Option<Node> {
    if !refuse::text(source, id, diagnostics) {
        return None;
    }
    let raw = match raw::parse(source.text()) {
        Ok(raw) => raw,
        Err(error) => {
            diagnostics.push(refuse::explain(source, id, &error));
            return None;
        }
    };
    gaps::build(raw, source, id, diagnostics)
}
