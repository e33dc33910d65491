//! What is refused before the parser sees it, and what the parser's own errors mean here.

use assize_codes as codes;

use super::{MAX_BYTES, MAX_DEPTH, MAX_NODES};
use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::source::{Source, SourceId, Span};

/// Looks at the bare text; false where it need not be parsed at all.
pub(super) fn text(source: &Source, id: SourceId, diagnostics: &mut Diagnostics) -> bool {
    let text = source.text();
    if text.len() > MAX_BYTES {
        diagnostics.push(
            Diagnostic::new(
                codes::E0113,
                Span::new(id, 0, 0),
                format!("the file has {} bytes; the most is {MAX_BYTES}", text.len()),
            )
            .help("move prompts and items into files of their own, and name those"),
        );
        return false;
    }
    let before = diagnostics.len();
    for (at, c) in text.char_indices() {
        if c.is_control() && !matches!(c, '\n' | '\r' | '\t') {
            diagnostics.push(
                Diagnostic::new(
                    codes::E0101,
                    Span::new(id, at, at + c.len_utf8()),
                    format!(
                        "the file holds the control character U+{:04X}",
                        u32::from(c)
                    ),
                )
                .help("remove it; in double quotes it may be written as an escape"),
            );
            break;
        }
    }
    let mut start = 0;
    for line in text.split_inclusive('\n') {
        let indent = line.len() - line.trim_start_matches([' ', '\t']).len();
        let blank = line.trim().is_empty();
        if let Some(tab) = line[..indent].find('\t').filter(|_| !blank) {
            diagnostics.push(
                Diagnostic::new(
                    codes::E0102,
                    Span::new(id, start + tab, start + tab + 1),
                    "a tab indents this line; YAML indents with spaces",
                )
                .help_edit(
                    "use spaces",
                    Span::new(id, start + tab, start + tab + 1),
                    "  ",
                ),
            );
            break;
        }
        start += line.len();
    }
    diagnostics.len() == before
}

/// The parser's error in the language's own words.
pub(super) fn explain(source: &Source, id: SourceId, error: &serde_saphyr::Error) -> Diagnostic {
    let at = error.location().map_or(0, |location| {
        byte_at(source, location.line(), location.column())
    });
    let place = Span::new(id, at, next_char(source.text(), at));
    let message = headline(error);
    if message.contains("mapping values are not allowed")
        && let Some(diagnostic) = colon(source, id, at)
    {
        return diagnostic;
    }
    if let Some(diagnostic) = budget(&message, source, id, at) {
        return diagnostic;
    }
    let diagnostic = Diagnostic::new(codes::E0101, place, format!("this is no YAML: {message}"));
    match source.text()[at..].chars().next() {
        Some(mark @ ('`' | '@' | '%')) => diagnostic.help(format!(
            "a text that begins with `{mark}` goes in double quotes"
        )),
        _ if message.contains("unclosed") => diagnostic.help("close it"),
        _ => diagnostic,
    }
}

/// The parser's message without the place, which the diagnostic shows itself.
fn headline(error: &serde_saphyr::Error) -> String {
    let message = error.to_string();
    let first = message.lines().next().unwrap_or_default();
    let cut = first.rfind(" at line ").unwrap_or(first.len());
    first[..cut].to_owned()
}

/// A breach of the parser's budget: anchors, documents, size.
fn budget(message: &str, source: &Source, id: SourceId, at: usize) -> Option<Diagnostic> {
    let text = source.text();
    let refused = |span: Span, what: &str, help: &str| {
        Diagnostic::new(
            codes::E0102,
            span,
            format!("{what}, which the study language leaves out"),
        )
        .help(help)
    };
    let word = |start: usize| {
        let length = text[start..]
            .find(char::is_whitespace)
            .unwrap_or(text.len() - start);
        (
            &text[start..start + length],
            Span::new(id, start, start + length),
        )
    };
    if message.contains("Anchors") {
        let start = text[..at].rfind('&').unwrap_or(at);
        let (written, span) = word(start);
        let what = format!("`{written}` is an anchor");
        return Some(refused(
            span,
            &what,
            "name the entry, and complete it with `like:`",
        ));
    }
    if message.contains("Aliases") || message.contains("alias references") {
        let start = text[..next_char(text, at)].rfind('*').unwrap_or(at);
        let (written, span) = word(start);
        let what = format!("`{written}` is an alias");
        return Some(refused(
            span,
            &what,
            "name the entry, and complete it with `like:`",
        ));
    }
    if message.contains("Documents") {
        let (_, span) = word(at);
        return Some(refused(
            span,
            "a second document begins here",
            "keep one document a file",
        ));
    }
    if message.contains("binary") || message.contains("tag") {
        let line = text[..at].rfind('\n').map_or(0, |end| end + 1);
        if let Some(found) = text[line..at].rfind('!') {
            let start = text[line..=line + found]
                .rfind(|c: char| c != '!')
                .map_or(line, |before| line + before + 1);
            let (written, span) = word(start);
            let what = format!("`{written}` is a tag");
            return Some(refused(
                span,
                &what,
                "leave the tag out: the place of a value gives its type",
            ));
        }
    }
    if message.starts_with("budget breached") {
        let limit = if message.contains("Depth") {
            format!("the file nests deeper than {MAX_DEPTH} levels")
        } else {
            format!("the file has more than {MAX_NODES} keys and values")
        };
        return Some(
            Diagnostic::new(codes::E0113, Span::new(id, at, at), limit)
                .help("a study is a page or two; move data into files of their own"),
        );
    }
    None
}

/// A second colon on a line: an argument that is named with one, or a text that holds one.
fn colon(source: &Source, id: SourceId, at: usize) -> Option<Diagnostic> {
    let text = source.text();
    let start = text[..at].rfind('\n').map_or(0, |end| end + 1);
    let end = text[at..].find('\n').map_or(text.len(), |end| at + end);
    let line = text[start..end].trim_end();
    let end = start + line.len();
    let colon = (start..end)
        .rev()
        .filter(|place| *place <= at)
        .find(|place| text.as_bytes()[*place] == b':')?;
    let before = &text[start..colon];
    let open = before.matches('(').count();
    if open > before.matches(')').count() {
        let span = Span::new(id, colon, colon + 1);
        return Some(
            Diagnostic::new(codes::E0104, span, "an argument is named with `=`, not `:`")
                .help_edit("write `=`", span, " ="),
        );
    }
    let key_end = before.find(": ")?;
    let value = start + key_end + 2;
    let value = value + (text[value..end].len() - text[value..end].trim_start().len());
    if value >= colon {
        return None;
    }
    let span = Span::new(id, value, end);
    let key = before[..key_end].trim().trim_start_matches("- ");
    let shown = &text[value..end];
    Some(
        Diagnostic::new(
            codes::E0105,
            Span::new(id, colon, colon + 1),
            format!("YAML takes `{key}: {shown}` as a mapping"),
        )
        .label("because of this colon")
        .help_edit(
            "put the text in double quotes",
            span,
            format!("\"{}\"", shown.replace('\\', "\\\\").replace('"', "\\\"")),
        ),
    )
}

/// The byte offset of a line and a column in characters, both from 1.
fn byte_at(source: &Source, line: u64, column: u64) -> usize {
    let text = source.text();
    let index = |value: u64| usize::try_from(value.saturating_sub(1)).unwrap_or(usize::MAX);
    let Some(start) = source.line_start(index(line)) else {
        return text.len();
    };
    text[start..]
        .char_indices()
        .map(|(at, _)| start + at)
        .nth(index(column))
        .unwrap_or(text.len())
}

fn next_char(text: &str, at: usize) -> usize {
    text[at..]
        .chars()
        .next()
        .filter(|c| *c != '\n')
        .map_or(at, |c| at + c.len_utf8())
}
