//! Lines of styled text. Every piece of text is made harmless where it enters a line, and styles
//! become escape sequences only where the lines leave: nothing foreign can be one.

use unicode_width::{UnicodeWidthChar as _, UnicodeWidthStr as _};

use crate::shown::visible;

/// How a piece of text looks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Tone {
    Plain,
    Strong,
    Quiet,
    Good,
    Halt,
}

impl Tone {
    fn code(self) -> Option<&'static str> {
        match self {
            Tone::Plain => None,
            Tone::Strong => Some("1"),
            Tone::Quiet => Some("2"),
            Tone::Good => Some("1;32"),
            Tone::Halt => Some("1;33"),
        }
    }
}

/// One line.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Line {
    pieces: Vec<(String, Tone)>,
}

impl Line {
    pub(super) fn of(text: &str, tone: Tone) -> Line {
        Line::default().and(text, tone)
    }

    pub(super) fn and(mut self, text: &str, tone: Tone) -> Line {
        self.pieces.push((visible(text), tone));
        self
    }

    pub(super) fn indented(mut self, indent: &str) -> Line {
        self.pieces.insert(0, (indent.to_owned(), Tone::Plain));
        self
    }

    /// This line, and another after it from the column `at` on.
    pub(super) fn joined(mut self, at: usize, other: Line) -> Line {
        let blanks = at.saturating_sub(self.width());
        self.pieces.push((" ".repeat(blanks), Tone::Plain));
        self.pieces.extend(other.pieces);
        self
    }

    pub(super) fn width(&self) -> usize {
        self.pieces.iter().map(|(text, _)| text.width()).sum()
    }

    /// The line within so many columns, with an ellipsis where it was longer.
    pub(super) fn cut(self, columns: usize) -> Line {
        if self.width() <= columns {
            return self;
        }
        let mut left = columns.saturating_sub(1);
        let mut cut = Line::default();
        for (text, tone) in self.pieces {
            let whole = text.width();
            if whole <= left {
                left -= whole;
                cut.pieces.push((text, tone));
                continue;
            }
            let mut kept = fitting(&text, left).to_owned();
            kept.push('\u{2026}');
            cut.pieces.push((kept, tone));
            break;
        }
        cut
    }
}

/// The longest beginning of `text` within so many columns.
pub(super) fn fitting(text: &str, columns: usize) -> &str {
    let mut used = 0;
    for (at, c) in text.char_indices() {
        used += c.width().unwrap_or(0);
        if used > columns {
            return &text[..at];
        }
    }
    text
}

/// What is written on.
pub(super) struct Paper {
    width: usize,
    colour: bool,
    text: String,
}

impl Paper {
    pub(super) fn new(width: usize, colour: bool) -> Paper {
        Paper {
            width,
            colour,
            text: String::new(),
        }
    }

    pub(super) fn width(&self) -> usize {
        self.width
    }

    pub(super) fn gap(&mut self) {
        self.text.push('\n');
    }

    pub(super) fn line(&mut self, line: Line) {
        let line = line.cut(self.width);
        let mut written = String::new();
        for (text, tone) in &line.pieces {
            match tone.code().filter(|_| self.colour && !text.is_empty()) {
                Some(code) => written.push_str(&format!("\u{1b}[{code}m{text}\u{1b}[0m")),
                None => written.push_str(text),
            }
        }
        self.text.push_str(written.trim_end_matches(' '));
        self.text.push('\n');
    }

    /// Text broken between words; a word longer than a line is broken where it must be.
    pub(super) fn paragraph(&mut self, indent: &str, text: &str, tone: Tone, most: usize) {
        let columns = self.width.min(most).saturating_sub(indent.len()).max(1);
        for row in wrapped(&visible(text), columns) {
            self.line(Line::of(&row, tone).indented(indent));
        }
    }

    /// A name and its value, which goes on under itself.
    pub(super) fn pair(&mut self, name: &str, column: usize, value: &str) {
        let columns = self.width.saturating_sub(2 + column).max(1);
        for (place, row) in wrapped(&visible(value), columns).into_iter().enumerate() {
            let name = if place == 0 { name } else { "" };
            let line = Line::of(name, Tone::Quiet).joined(column, Line::of(&row, Tone::Plain));
            self.line(line.indented("  "));
        }
    }

    pub(super) fn finish(self) -> String {
        self.text
    }
}

/// Text in rows of so many columns, broken between words.
pub(super) fn wrapped(text: &str, columns: usize) -> Vec<String> {
    let mut rows = Vec::new();
    let mut row = String::new();
    for word in text.split(' ').filter(|word| !word.is_empty()) {
        let needed = row.width() + usize::from(!row.is_empty()) + word.width();
        if needed > columns && !row.is_empty() {
            rows.push(std::mem::take(&mut row));
        }
        if !row.is_empty() {
            row.push(' ');
        }
        let mut rest = word;
        while rest.width() > columns {
            let head = fitting(rest, columns);
            // A character wider than the row still goes somewhere.
            let end = if head.is_empty() {
                rest.chars().next().map_or(rest.len(), char::len_utf8)
            } else {
                head.len()
            };
            rows.push(rest[..end].to_owned());
            rest = &rest[end..];
        }
        row.push_str(rest);
    }
    if !row.is_empty() {
        rows.push(row);
    }
    rows
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_kept_whole_where_they_can_be() {
        assert_eq!(wrapped("one two three", 7), ["one two", "three"]);
        assert_eq!(wrapped("a 0123456789 b", 4), ["a", "0123", "4567", "89 b"]);
        assert_eq!(wrapped("漢字漢字", 4), ["漢字", "漢字"]);
        assert_eq!(wrapped("漢", 1), ["漢"]);
    }

    #[test]
    fn a_cut_line_fits() {
        let line = Line::of("abc", Tone::Strong).and("defgh", Tone::Plain);
        let cut = line.clone().cut(6);
        assert_eq!(cut.width(), 6);
        assert_eq!(line.clone().cut(8), line);
    }
}
