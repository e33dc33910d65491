//! From the parser's tree to ours: texts taken from the source, and the gaps between them looked at.

use assize_codes as codes;

use super::raw::{Raw, RawNode};
use super::{Node, NodeKind, Scalar, Style};
use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::source::{Source, SourceId, Span};

/// Builds the tree; `None` where a gap holds what may not stand there.
pub(super) fn build(
    raw: RawNode,
    source: &Source,
    id: SourceId,
    diagnostics: &mut Diagnostics,
) -> Option<Node> {
    let mut builder = Builder {
        source,
        id,
        at: 0,
        faults: Vec::new(),
    };
    let node = builder.node(raw);
    builder.gap(source.text().len());
    let clean = builder.faults.is_empty();
    for fault in builder.faults {
        diagnostics.push(fault);
    }
    clean.then_some(node)
}

struct Builder<'a> {
    source: &'a Source,
    id: SourceId,
    /// The end of the last text that was seen.
    at: usize,
    faults: Vec<Diagnostic>,
}

impl Builder<'_> {
    fn node(&mut self, raw: RawNode) -> Node {
        let (start, end) = bytes(&raw, self.source.text().len());
        match raw.value {
            Raw::Empty if start == end => Node {
                kind: NodeKind::Empty,
                span: self.empty_place(start),
            },
            Raw::Empty | Raw::Guessed => self.scalar(None, start, end),
            Raw::Text(text) => self.scalar(Some(text), start, end),
            Raw::List(items) => {
                let open = self.open(start, end, '[');
                let items: Vec<Node> = items.into_iter().map(|item| self.node(item)).collect();
                let last = items.last().map(|item| item.span);
                Node {
                    span: self.close(open, last, ']'),
                    kind: NodeKind::List(items),
                }
            }
            Raw::Map(entries) => {
                let open = self.open(start, end, '{');
                let entries: Vec<(Node, Node)> = entries
                    .into_iter()
                    .map(|(key, value)| (self.key(key), self.node(value)))
                    .collect();
                let last = entries.last().map(|(key, value)| key.span.to(value.span));
                Node {
                    span: self.close(open, last, '}'),
                    kind: NodeKind::Map(entries),
                }
            }
        }
    }

    /// A key; an empty one stands where its colon does, not where a value would be missing.
    fn key(&mut self, raw: RawNode) -> Node {
        let (start, _) = bytes(&raw, self.source.text().len());
        let mut node = self.node(raw);
        if node.kind == NodeKind::Empty {
            node.span = self.span(start, start);
        }
        node
    }

    fn scalar(&mut self, parsed: Option<String>, start: usize, end: usize) -> Node {
        let is_block = self.gap(start);
        self.at = self.at.max(end);
        let written = self.source.text().get(start..end).unwrap_or_default();
        let quoted = !is_block && written.starts_with(['"', '\'']);
        let inner = quoted
            .then(|| written.get(1..written.len().saturating_sub(1)))
            .flatten();
        let style = if is_block || written.contains(['\n', '\r']) {
            Style::Multiline
        } else if !quoted {
            Style::Plain
        } else if inner == parsed.as_deref() {
            Style::Quoted
        } else {
            Style::Escaped
        };
        let text = match style {
            Style::Plain => written.to_owned(),
            _ => parsed.unwrap_or_else(|| written.to_owned()),
        };
        Node {
            kind: NodeKind::Scalar(Scalar { text, style }),
            span: self.span(start, end),
        }
    }

    /// The first mark of a flow collection, or the beginning of a block one.
    fn open(&mut self, start: usize, end: usize, mark: char) -> (usize, bool) {
        let is_flow = self.source.text()[start..end].starts_with(mark);
        if is_flow {
            self.gap(start);
            self.at = self.at.max(end);
        }
        (start, is_flow)
    }

    /// The place of a collection: a flow one ends with its mark, a block one with its last value.
    fn close(&mut self, (start, is_flow): (usize, bool), last: Option<Span>, mark: char) -> Span {
        if !is_flow {
            return last.map_or(self.span(start, start), |last| {
                self.span(start.min(last.start as usize), last.end as usize)
            });
        }
        let text = self.source.text();
        let end = closing_mark(text, self.at, mark).unwrap_or(self.at);
        self.gap(end);
        self.at = self.at.max(end);
        self.span(start, end)
    }

    /// Where a value is missing: behind the last text, where one would be written.
    fn empty_place(&self, start: usize) -> Span {
        let text = self.source.text();
        let behind = text.get(self.at..start).and_then(|gap| gap.find(':'));
        let at = behind.map_or(self.at.max(start.min(self.at)), |colon| self.at + colon + 1);
        self.span(at, at)
    }

    fn span(&self, start: usize, end: usize) -> Span {
        Span::new(self.id, start, end)
    }

    /// Looks at what stands between the last text and `end`; says whether it opens a block scalar.
    fn gap(&mut self, end: usize) -> bool {
        let text = self.source.text();
        let mut opens_block = false;
        let mut at = self.at;
        while at < end {
            let rest = &text[at..end];
            let Some(mark) = rest.chars().next() else {
                break;
            };
            let line_start = at == 0 || text.as_bytes()[at - 1] == b'\n';
            match mark {
                ' ' | '\t' | '\r' | '\n' | ':' | ',' | '[' | ']' | '{' | '}' | '-' => at += 1,
                '.' if line_start && rest.starts_with("...") => at += 3,
                '#' => at += rest.find('\n').unwrap_or(rest.len()),
                '|' | '>' => {
                    opens_block = true;
                    let header = rest[1..]
                        .bytes()
                        .take_while(|byte| matches!(byte, b'+' | b'-' | b'0'..=b'9'));
                    at += 1 + header.count();
                }
                _ => {
                    // A directive is one fault, whatever stands behind it on its line.
                    let is_directive = mark == '%' && line_start;
                    let length = if is_directive {
                        rest.find(['\n', '\r'])
                    } else {
                        rest.find(|c: char| c.is_whitespace() || matches!(c, ',' | ']' | '}'))
                    };
                    let length = length.unwrap_or(rest.len()).max(mark.len_utf8());
                    self.faults.push(fault(
                        mark,
                        line_start,
                        &rest[..length],
                        Span::new(self.id, at, at + length),
                    ));
                    at += length;
                }
            }
        }
        self.at = self.at.max(end);
        opens_block
    }
}

/// The byte after the next `mark` behind `from`, comments skipped.
fn closing_mark(text: &str, from: usize, mark: char) -> Option<usize> {
    let mut at = from;
    while let Some(c) = text.get(at..)?.chars().next() {
        if c == mark {
            return Some(at + 1);
        }
        at += if c == '#' {
            text[at..].find('\n')?
        } else {
            c.len_utf8()
        };
    }
    None
}

fn bytes(node: &RawNode, length: usize) -> (usize, usize) {
    let span = node.referenced.span();
    let narrow = |value: Option<u64>| value.and_then(|value| usize::try_from(value).ok());
    let start = narrow(span.byte_offset()).unwrap_or(0).min(length);
    let end = start + narrow(span.byte_len()).unwrap_or(0);
    (start, end.min(length))
}

fn fault(mark: char, line_start: bool, written: &str, span: Span) -> Diagnostic {
    let (what, help) = match mark {
        '!' => (
            "a tag",
            "leave the tag out: the place of a value gives its type",
        ),
        '&' => ("an anchor", "name the entry, and complete it with `like:`"),
        '*' => ("an alias", "name the entry, and complete it with `like:`"),
        '%' if line_start => (
            "a directive",
            "leave the line out: there is one form of YAML here",
        ),
        '?' => ("a `?` key", "write the key before its colon, on one line"),
        _ => ("a mark without a meaning", "leave it out"),
    };
    Diagnostic::new(
        codes::E0102,
        span,
        format!("`{written}` is {what}, which the study language leaves out"),
    )
    .help(help)
}
