//! What is refused before the parser sees it, and what the parser's own errors mean here.

use assize_codes as codes;

use super::{MAX_BYTES, MAX_DEPTH, MAX_NODES};
use crate::diagnostic::{Diagnostic, Diagnostics, is_hidden};
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
    if let Some(at) = lone_return(text) {
        diagnostics.push(
            Diagnostic::new(
                codes::E0101,
                Span::new(id, at, at + 1),
                "a carriage return stands without a line feed: YAML ends a line there, most editors do not",
            )
            .help("end every line with a line feed, or with both"),
        );
        return false;
    }
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
        let indent = line.len() - line.trim_start_matches(indents).len();
        let blank = line.trim().is_empty();
        let odd = line[..indent].char_indices().find(|(_, c)| *c != ' ');
        if let Some((at, c)) = odd.filter(|_| !blank) {
            let what = match c {
                '\t' => "a tab".to_owned(),
                other => format!("the character U+{:04X}", u32::from(other)),
            };
            let span = Span::new(id, start + at, start + at + c.len_utf8());
            diagnostics.push(
                Diagnostic::new(
                    codes::E0102,
                    span,
                    format!("{what} indents this line; YAML indents with spaces"),
                )
                .help_edit("use spaces", span, if c == '\t' { "  " } else { " " }),
            );
            break;
        }
        start += line.len();
    }
    diagnostics.len() == before
}

/// A carriage return that ends no line together with a line feed.
fn lone_return(text: &str) -> Option<usize> {
    text.match_indices('\r')
        .map(|(at, _)| at)
        .find(|at| text.as_bytes().get(at + 1) != Some(&b'\n'))
}

/// What looks like the blank at the beginning of a line.
fn indents(c: char) -> bool {
    c != '\n' && c != '\r' && (c.is_whitespace() || is_hidden(c))
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
        _ if message.contains("simple key expected") => {
            diagnostic.help(key_without_value(source, at))
        }
        _ => match WAYS_OUT.iter().find(|(part, _)| message.contains(part)) {
            Some((_, way_out)) => diagnostic.help(*way_out),
            None => diagnostic,
        },
    }
}

/// Parts of the parser's messages and what to do.
const WAYS_OUT: &[(&str, &str)] = &[
    ("unclosed", "close it"),
    (
        "trailing content after single-quoted",
        "a quote inside single quotes is written twice: `'it''s'`",
    ),
    (
        "trailing content after double-quoted",
        "a quote inside double quotes is written with a backslash before it",
    ),
    (
        "block sequence entries are not allowed",
        "a list begins on the line behind its key; a text that begins with `-` goes in double quotes",
    ),
    (
        "mapping keys are not allowed",
        "a text that begins with `?` goes in double quotes",
    ),
    (
        "mapping values are not allowed",
        "a text that holds a colon goes in double quotes",
    ),
    (
        "comments must be separated",
        "write a space before the `#`, or put the text in double quotes",
    ),
    (
        "block scalar",
        "behind `|` or `>` stands nothing but `+`, `-`, an indentation from 1 to 9 and a comment; the text begins on the next line",
    ),
    (
        "did not find expected key",
        "indent the keys of one mapping alike, and what belongs under a key deeper",
    ),
    (
        "did not find expected ','",
        "close it, and part its entries by commas",
    ),
    (
        "while parsing a quoted scalar",
        "write the character itself, or `\\uNNNN` of a character that exists; in single quotes a backslash is a backslash",
    ),
    (
        "misplaced bracket",
        "remove it, or put the text in double quotes",
    ),
    (
        "BOM",
        "remove it: a byte order mark is for the beginning of a file",
    ),
];

/// What to do where the parser found a text and no colon that makes it a key.
fn key_without_value(source: &Source, at: usize) -> String {
    let rest = &source.text()[at..];
    let line = rest.split('\n').next().unwrap_or(rest);
    let behind = line
        .find(':')
        .and_then(|colon| line[colon + 1..].chars().next().map(|next| (colon, next)));
    match behind {
        Some((_, next)) if is_hidden(next) => format!(
            "write a plain space behind the colon; U+{:04X} is none",
            u32::from(next)
        ),
        Some((colon, next)) if colon <= 64 && !next.is_whitespace() => {
            format!("write a space behind the colon: `{}: …`", &line[..colon])
        }
        _ => "write `key: value`; the further lines of a text are indented deeper than its key"
            .to_owned(),
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
    let nests = message.contains("recursion limit");
    if nests || message.starts_with("budget breached") {
        let limit = if nests || message.contains("Depth") {
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
