//! Diagnostics for people, for programs and for a code host's annotations.

use std::fmt::Write as _;

use annotate_snippets::{Annotation, AnnotationKind, Group, Level, Patch, Renderer, Snippet};
use serde_json::{Value, json};

use super::{Diagnostic, Diagnostics, Help, Severity};
use crate::source::{Sources, Span};

/// The width to which long lines are cut.
const WIDTH: usize = 120;

/// For people: each diagnostic with its lines of source, sorted by place; colours where asked for.
pub fn render_human(diagnostics: &Diagnostics, sources: &Sources, colour: bool) -> String {
    let renderer = if colour {
        Renderer::styled()
    } else {
        Renderer::plain()
    }
    .term_width(WIDTH);
    let mut out = String::new();
    for diagnostic in diagnostics.sorted() {
        let report = groups(diagnostic, sources);
        out.push_str(&renderer.render(&report));
        out.push_str("\n\n");
    }
    out
}

/// For programs: one object of the format `assize-diagnostics/1`.
pub fn render_json(diagnostics: &Diagnostics, sources: &Sources) -> String {
    let list: Vec<Value> = diagnostics
        .sorted()
        .into_iter()
        .map(|diagnostic| to_json(diagnostic, sources))
        .collect();
    let document = json!({ "format": "assize-diagnostics/1", "diagnostics": list });
    format!("{document:#}\n")
}

/// Workflow commands that a code host turns into annotations of the changed lines.
pub fn render_github(diagnostics: &Diagnostics, sources: &Sources) -> String {
    let mut out = String::new();
    for diagnostic in diagnostics.sorted() {
        let place = place(diagnostic.primary.span, sources);
        let mut message = diagnostic.message.clone();
        for help in &diagnostic.help {
            let _ = write!(message, "\nhelp: {}", help.text);
        }
        let _ = writeln!(
            out,
            "::{} file={},line={},col={},endLine={},endColumn={},title={}::{}",
            diagnostic.severity().word(),
            escape_property(place.file),
            place.start.line,
            place.start.column,
            place.end.line,
            place.end.column,
            diagnostic.code,
            escape_message(&message),
        );
    }
    out
}

fn groups<'a>(diagnostic: &'a Diagnostic, sources: &'a Sources) -> Vec<Group<'a>> {
    let level = match diagnostic.severity() {
        Severity::Error => Level::ERROR,
        Severity::Warning => Level::WARNING,
    };
    let mut main = level
        .primary_title(diagnostic.message.as_str())
        .id(diagnostic.code.id)
        .elements(snippets(diagnostic, sources));
    for note in &diagnostic.notes {
        main = main.element(Level::NOTE.message(note.as_str()));
    }
    let mut patches = Vec::new();
    for help in &diagnostic.help {
        if help.edits.is_empty() {
            main = main.element(Level::HELP.message(help.text.as_str()));
        } else {
            patches.push(patch_group(help, sources));
        }
    }
    std::iter::once(main).chain(patches).collect()
}

/// One snippet for each source that the diagnostic points into, the primary's first.
fn snippets<'a>(
    diagnostic: &'a Diagnostic,
    sources: &'a Sources,
) -> Vec<Snippet<'a, Annotation<'a>>> {
    let primary = std::iter::once((AnnotationKind::Primary, &diagnostic.primary));
    let secondary = diagnostic
        .secondary
        .iter()
        .map(|label| (AnnotationKind::Context, label));
    let labels: Vec<_> = primary.chain(secondary).collect();

    let mut order = Vec::new();
    for (_, label) in &labels {
        if !order.contains(&label.span.source) {
            order.push(label.span.source);
        }
    }
    order
        .into_iter()
        .filter_map(|id| sources.get(id).map(|source| (id, source)))
        .map(|(id, source)| {
            let annotations = labels
                .iter()
                .filter(|(_, label)| label.span.source == id)
                .map(|(kind, label)| {
                    let text = (!label.text.is_empty()).then_some(label.text.as_str());
                    let length = source.text().len();
                    let range = label.span.range();
                    kind.span(range.start.min(length)..range.end.min(length))
                        .label(text)
                });
            Snippet::source(source.text())
                .path(source.name())
                .annotations(annotations)
        })
        .collect()
}

fn patch_group<'a>(help: &'a Help, sources: &'a Sources) -> Group<'a> {
    let title = Level::HELP.secondary_title(help.text.as_str());
    let Some(source) = help
        .edits
        .first()
        .and_then(|edit| sources.get(edit.span.source))
    else {
        return Group::with_title(title);
    };
    let patches = help
        .edits
        .iter()
        .map(|edit| Patch::new(edit.span.range(), edit.replacement.as_str()));
    title.element(
        Snippet::source(source.text())
            .path(source.name())
            .patches(patches),
    )
}

struct Place<'a> {
    file: &'a str,
    start: crate::source::Position,
    end: crate::source::Position,
}

fn place(span: Span, sources: &Sources) -> Place<'_> {
    let origin = crate::source::Position { line: 1, column: 1 };
    sources.get(span.source).map_or(
        Place {
            file: "",
            start: origin,
            end: origin,
        },
        |source| Place {
            file: source.name(),
            start: source.position(span.start as usize),
            end: source.position(span.end as usize),
        },
    )
}

fn place_json(span: Span, sources: &Sources) -> Value {
    let place = place(span, sources);
    json!({
        "file": place.file,
        "start": { "line": place.start.line, "column": place.start.column, "byte": span.start },
        "end": { "line": place.end.line, "column": place.end.column, "byte": span.end },
    })
}

fn to_json(diagnostic: &Diagnostic, sources: &Sources) -> Value {
    let related: Vec<Value> = diagnostic
        .secondary
        .iter()
        .map(|label| json!({ "place": place_json(label.span, sources), "message": label.text }))
        .collect();
    let help: Vec<Value> = diagnostic
        .help
        .iter()
        .map(|help| {
            let edits: Vec<Value> = help
                .edits
                .iter()
                .map(|edit| {
                    json!({
                        "place": place_json(edit.span, sources),
                        "replacement": edit.replacement,
                    })
                })
                .collect();
            json!({ "message": help.text, "edits": edits })
        })
        .collect();
    json!({
        "code": diagnostic.code.id,
        "kind": diagnostic.code.kind.word(),
        "severity": diagnostic.severity().word(),
        "message": diagnostic.message,
        "place": place_json(diagnostic.primary.span, sources),
        "label": diagnostic.primary.text,
        "related": related,
        "notes": diagnostic.notes,
        "help": help,
    })
}

fn escape_message(text: &str) -> String {
    text.replace('%', "%25")
        .replace('\r', "%0D")
        .replace('\n', "%0A")
}

fn escape_property(text: &str) -> String {
    escape_message(text).replace(':', "%3A").replace(',', "%2C")
}
