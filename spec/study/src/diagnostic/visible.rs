//! Texts in which every character can be seen.

use std::fmt::Write as _;

/// The most characters of one text; a longer one loses its middle.
const MAX_CHARS: usize = 2_000;
/// How many characters are kept at the end of a text that is cut.
const KEPT_END: usize = 200;

/// The text with its hidden characters spelt out and its middle cut, where either is due.
pub(super) fn visible(text: &str) -> Option<String> {
    let length = text.chars().count();
    if length <= MAX_CHARS && !text.chars().any(is_hidden) {
        return None;
    }
    let skipped = if length > MAX_CHARS {
        MAX_CHARS - KEPT_END..length - KEPT_END
    } else {
        0..0
    };
    let mut shown = String::new();
    for (at, c) in text.chars().enumerate() {
        if skipped.contains(&at) {
            if at == skipped.start {
                shown.push('…');
            }
        } else if is_hidden(c) {
            let _ = write!(shown, "U+{:04X}", u32::from(c));
        } else {
            shown.push(c);
        }
    }
    Some(shown)
}

/// Controls, blanks that are no space, marks of direction and whatever else leaves no ink; a line
/// feed is none of them.
pub(crate) fn is_hidden(c: char) -> bool {
    let blank = c.is_whitespace() && !matches!(c, ' ' | '\n');
    let no_ink = matches!(
        c,
        '\u{00ad}'
            | '\u{034f}'
            | '\u{061c}'
            | '\u{115f}'
            | '\u{1160}'
            | '\u{180e}'
            | '\u{200b}'..='\u{200f}'
            | '\u{202a}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}'
            | '\u{3164}'
            | '\u{fe00}'..='\u{fe0f}'
            | '\u{feff}'
            | '\u{e0000}'..='\u{e0fff}'
    );
    blank || no_ink || (c.is_control() && c != '\n')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hidden_characters_are_spelt_out_and_seen_ones_stay() {
        assert_eq!(
            visible("`1\u{a0}ms` é µ\n").as_deref(),
            Some("`1U+00A0ms` é µ\n")
        );
        assert_eq!(visible("\u{1b}[31m").as_deref(), Some("U+001B[31m"));
        assert_eq!(visible("a\u{202e}b").as_deref(), Some("aU+202Eb"));
        assert_eq!(visible("plain, é, ½"), None);
    }

    #[test]
    fn a_long_text_loses_its_middle() {
        let shown = visible(&format!("head {} tail", "é".repeat(90_000))).expect("it is long");
        assert_eq!(shown.chars().count(), MAX_CHARS + 1);
        assert!(shown.starts_with("head é") && shown.ends_with("é tail"));
        assert_eq!(visible(&"é".repeat(MAX_CHARS)), None);
    }
}
