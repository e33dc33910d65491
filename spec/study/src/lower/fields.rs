//! Mappings and lists: their keys, what is missing, what is there twice, what a comma tore apart.

use std::collections::BTreeMap;

use assize_codes as codes;

use super::Lowering;
use super::shape::Shape;
use super::unsupported::{self, Place};
use crate::ast::{Named, Section};
use crate::diagnostic::Diagnostic;
use crate::expr::{Input, Name, parse_name};
use crate::source::{Span, Spanned};
use crate::suggest::nearest;
use crate::tree::{Node, NodeKind, Style};

/// A key and its value; the value is none where it is already reported as wrong.
pub(super) struct Field<'t> {
    pub(super) key: String,
    pub(super) span: Span,
    pub(super) value: Option<&'t Node>,
}

/// The fields of one mapping of a fixed shape.
pub(super) struct Fields<'t> {
    pub(super) shape: Shape,
    /// Where a missing key is reported: the entry's name, or the whole mapping.
    pub(super) place: Span,
    list: Vec<Field<'t>>,
}

impl<'t> Fields<'t> {
    /// The value of a key.
    pub(super) fn get(&self, key: &str) -> Option<&'t Node> {
        self.list
            .iter()
            .find(|field| field.key == key)
            .and_then(|field| field.value)
    }

    /// The place of a key.
    pub(super) fn key_span(&self, key: &str) -> Option<Span> {
        self.list
            .iter()
            .find(|field| field.key == key)
            .map(|field| field.span)
    }

    /// Whether a key was written, even wrongly.
    pub(super) fn has(&self, key: &str) -> bool {
        self.key_span(key).is_some()
    }

    /// The keys and their values, in the order of the file.
    pub(super) fn iter(&self) -> impl Iterator<Item = &Field<'t>> {
        self.list.iter()
    }
}

impl Lowering<'_> {
    /// The fields of a mapping of a fixed shape; what is wrong with its keys is reported.
    pub(super) fn fields<'t>(
        &mut self,
        node: &'t Node,
        shape: Shape,
        place: Span,
    ) -> Option<Fields<'t>> {
        let list = self.entries(node, shape.describe())?;
        let list = list
            .into_iter()
            .filter(|field| self.check_key(field, shape))
            .collect();
        Some(Fields { shape, place, list })
    }

    fn check_key(&mut self, field: &Field<'_>, shape: Shape) -> bool {
        if let Some(line) = unsupported::find(Place::Key(shape), &field.key) {
            self.report_unsupported(line, field.span);
            return true;
        }
        if shape.keys().contains(&field.key.as_str()) {
            return true;
        }
        if shape == Shape::Module && Shape::Study.keys().contains(&field.key.as_str()) {
            self.push(
                Diagnostic::new(
                    codes::E0121,
                    field.span,
                    format!("a module runs nothing, so it has no `{}`", field.key),
                )
                .help("move it into the study that uses the module"),
            );
            return false;
        }
        let diagnostic = Diagnostic::new(
            codes::E0107,
            field.span,
            format!("`{}` is no key of {}", field.key, shape.describe()),
        );
        let near = nearest(&field.key, shape.keys().iter().copied());
        self.push(match near {
            Some(near) => diagnostic.help_edit(format!("did you mean `{near}`?"), field.span, near),
            None => diagnostic.help(format!("its keys are {}", shape.keys().join(" "))),
        });
        false
    }

    pub(super) fn report_unsupported(&mut self, line: &unsupported::Unsupported, span: Span) {
        let word = line.word;
        let what = match line.place {
            Place::Key(_) => format!("`{word}`"),
            Place::ByClass(_) => format!("`{word}` by request class"),
            Place::Process(Shape::Cell) if word == "batch" => "`batch` outside the warmup".into(),
            Place::Process(_) => format!("`{word}`"),
        };
        self.push(
            Diagnostic::new(
                codes::E0106,
                span,
                format!("{what} is not in this version of the language"),
            )
            .help(line.advice),
        );
    }

    /// Reports a key that has no default and was not written.
    pub(super) fn require(&mut self, fields: &Fields<'_>, key: &str, example: &str) {
        if fields.has(key) {
            return;
        }
        self.push(
            Diagnostic::new(
                codes::E0109,
                fields.place,
                format!("{} has no `{key}`", fields.shape.describe()),
            )
            .help(format!("add `{key}: {example}`")),
        );
    }

    /// Reports two keys that exclude each other.
    pub(super) fn exclude(&mut self, fields: &Fields<'_>, keys: &[&str], why: &str) {
        let mut written = keys
            .iter()
            .filter_map(|key| fields.key_span(key).map(|span| (*key, span)));
        let (Some((first, first_span)), Some((second, second_span))) =
            (written.next(), written.next())
        else {
            return;
        };
        self.push(
            Diagnostic::new(
                codes::E0120,
                second_span,
                format!("`{first}` and `{second}` exclude each other: {why}"),
            )
            .also(first_span, "the other key")
            .help("remove one of them"),
        );
    }

    /// The entries of a mapping with free names, each lowered by `lower`.
    pub(super) fn section<T>(
        &mut self,
        fields: &Fields<'_>,
        key: &str,
        mut lower: impl FnMut(&mut Self, &Node, &Name) -> Option<T>,
    ) -> Section<T> {
        let mut section = Section {
            span: fields.key_span(key),
            entries: Vec::new(),
        };
        let Some(node) = fields.get(key) else {
            return section;
        };
        let Some(list) = self.entries(node, &format!("`{key}`")) else {
            return section;
        };
        for field in list {
            let Some(name) = self.key_name(&field) else {
                continue;
            };
            if let Some(value) = field.value
                && let Some(item) = lower(self, value, &name)
            {
                section.entries.push(Named { name, item });
            }
        }
        section
    }

    /// A key that is a free name.
    pub(super) fn key_name(&mut self, field: &Field<'_>) -> Option<Name> {
        let input = Input {
            text: &field.key,
            span: field.span,
            start: None,
        };
        let name = parse_name(input);
        self.keep(name)
    }

    /// The entries of any mapping: keys that are texts, each once.
    pub(super) fn entries<'t>(&mut self, node: &'t Node, what: &str) -> Option<Vec<Field<'t>>> {
        let NodeKind::Map(entries) = &node.kind else {
            self.wrong_kind(node, &format!("{what} is a mapping"));
            return None;
        };
        let torn = if self.is_flow(node) {
            self.torn(entries.iter().map(|(key, value)| Piece {
                text: plain(value),
                bare: plain(key).filter(|_| matches!(value.kind, NodeKind::Empty)),
                span: value.span,
                end: key.span,
            }))
        } else {
            BTreeMap::new()
        };
        let mut fields: Vec<Field<'t>> = Vec::new();
        let mut known: BTreeMap<&str, Span> = BTreeMap::new();
        for (at, (key, value)) in entries.iter().enumerate() {
            if torn.get(&at) == Some(&Torn::Rest) {
                continue;
            }
            let NodeKind::Scalar(scalar) = &key.kind else {
                let span = key.span;
                self.push(
                    Diagnostic::new(codes::E0110, span, "a key is a text, and this is none")
                        .help("write `key: value`"),
                );
                continue;
            };
            if scalar.text == "<<" {
                self.push(
                    Diagnostic::new(
                        codes::E0102,
                        key.span,
                        "`<<` is a merge, which the study language leaves out",
                    )
                    .help("name the other entry with `like:`"),
                );
                continue;
            }
            if let Some(&first) = known.get(scalar.text.as_str()) {
                let line = self.line_of(first);
                let again = key.span;
                self.push(
                    Diagnostic::new(
                        codes::E0108,
                        again,
                        format!(
                            "`{}` is defined twice; the first is on line {line}",
                            scalar.text
                        ),
                    )
                    .also(first, "the first one")
                    .help("remove one of them, or give it another name"),
                );
                continue;
            }
            let value = match value.kind {
                _ if torn.contains_key(&at) => None,
                NodeKind::Empty => {
                    self.push(
                        Diagnostic::new(
                            codes::E0122,
                            key.span,
                            format!("`{}` has no value", scalar.text),
                        )
                        .help("give it one, or remove the key"),
                    );
                    None
                }
                _ => Some(value),
            };
            known.insert(&scalar.text, key.span);
            fields.push(Field {
                key: scalar.text.clone(),
                span: key.span,
                value,
            });
        }
        Some(fields)
    }

    /// The items of a list.
    pub(super) fn items<'t>(&mut self, node: &'t Node, what: &str) -> Option<Vec<&'t Node>> {
        let NodeKind::List(items) = &node.kind else {
            let NodeKind::Scalar(_) = &node.kind else {
                self.wrong_kind(node, &format!("{what} is a list"));
                return None;
            };
            let text = self.source.slice(node.span).to_owned();
            let span = node.span;
            self.push(
                Diagnostic::new(
                    codes::E0110,
                    span,
                    format!("{what} is a list, and this is a text"),
                )
                .help_edit("write a list of one", span, format!("[{text}]")),
            );
            return None;
        };
        let torn = if self.is_flow(node) {
            self.torn(items.iter().map(|item| Piece {
                text: plain(item),
                bare: plain(item),
                span: item.span,
                end: item.span,
            }))
        } else {
            BTreeMap::new()
        };
        let mut kept = Vec::new();
        for (at, item) in items.iter().enumerate() {
            if torn.contains_key(&at) {
                continue;
            }
            if item.kind == NodeKind::Empty {
                self.push(
                    Diagnostic::new(codes::E0122, item.span, "an item of this list is empty")
                        .help("write a value, or remove it"),
                );
                continue;
            }
            kept.push(item);
        }
        Some(kept)
    }

    /// The items of a list, each lowered; those that are wrong are left out.
    pub(super) fn list<T>(
        &mut self,
        node: &Node,
        what: &str,
        mut lower: impl FnMut(&mut Self, &Node) -> Option<T>,
    ) -> Option<Spanned<Vec<T>>> {
        let items = self.items(node, what)?;
        let list = items
            .into_iter()
            .filter_map(|item| lower(self, item))
            .collect();
        Some(Spanned::new(list, node.span))
    }

    /// Reports a node of another kind than its place wants.
    pub(super) fn wrong_kind(&mut self, node: &Node, want: &str) {
        if node.kind == NodeKind::Empty {
            self.push(
                Diagnostic::new(
                    codes::E0122,
                    node.span,
                    format!("{want}, and nothing was written"),
                )
                .help("give it a value, or remove the key"),
            );
            return;
        }
        let mut span = node.span;
        if matches!(node.kind, NodeKind::Map(_) | NodeKind::List(_)) {
            span = self.first_line(span);
        }
        self.push(Diagnostic::new(
            codes::E0110,
            span,
            format!("{want}, and this is {}", node.describe()),
        ));
    }

    fn is_flow(&self, node: &Node) -> bool {
        self.source.slice(node.span).starts_with(['{', '['])
    }

    /// Finds values that a comma tore apart inside braces or brackets, reports each once, and says
    /// which entries were part of one.
    fn torn<'t>(&mut self, pieces: impl Iterator<Item = Piece<'t>>) -> BTreeMap<usize, Torn> {
        let pieces: Vec<Piece<'t>> = pieces.collect();
        let mut torn = BTreeMap::new();
        let mut at = 0;
        while at < pieces.len() {
            let mut open = pieces[at].text.map_or(0, depth);
            let mut last = at;
            while open > 0 && last + 1 < pieces.len() {
                let Some(text) = pieces[last + 1].bare else {
                    break;
                };
                open += depth(text);
                last += 1;
            }
            if open <= 0 && last > at {
                let span = pieces[at].span.to(pieces[last].end);
                let whole = self.source.slice(span).to_owned();
                self.push(
                    Diagnostic::new(
                        codes::E0103,
                        span,
                        format!(
                            "`{whole}` is split by the comma: inside `{{ }}` and `[ ]` YAML ends a value there"
                        ),
                    )
                    .help_edit(
                        "put the value in quotes, or write the mapping over several lines",
                        span,
                        format!("\"{whole}\""),
                    ),
                );
                torn.insert(at, Torn::First);
                torn.extend((at + 1..=last).map(|rest| (rest, Torn::Rest)));
            }
            at = last + 1;
        }
        torn
    }
}

/// A value or an item as it may have been torn.
struct Piece<'t> {
    /// The text of the value.
    text: Option<&'t str>,
    /// The text, where it may be the rest of the value before it.
    bare: Option<&'t str>,
    span: Span,
    end: Span,
}

/// The part of a torn value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Torn {
    First,
    Rest,
}

fn plain(node: &Node) -> Option<&str> {
    match &node.kind {
        NodeKind::Scalar(scalar) if scalar.style == Style::Plain => Some(&scalar.text),
        _ => None,
    }
}

/// Opened parentheses less closed ones.
fn depth(text: &str) -> isize {
    text.bytes()
        .map(|byte| match byte {
            b'(' => 1,
            b')' => -1,
            _ => 0,
        })
        .sum()
}
