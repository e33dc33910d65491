//! Running text for a terminal.

/// Words in lines of at most `width` columns, each behind `indent` blanks. A word that is longer
/// stands alone.
pub fn indented(indent: usize, text: &str, width: usize) -> String {
    let margin = " ".repeat(indent);
    let mut out = margin.clone();
    let mut column = indent;
    for word in text.split_whitespace() {
        let length = word.chars().count();
        let first = column == indent;
        if !first && column + 1 + length > width {
            out.push('\n');
            out.push_str(&margin);
            column = indent;
        } else if !first {
            out.push(' ');
            column += 1;
        }
        out.push_str(word);
        column += length;
    }
    out.push('\n');
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_line_is_too_long_and_no_word_is_lost() {
        assert_eq!(indented(2, "aa bb cc", 7), "  aa bb\n  cc\n");
        assert_eq!(indented(2, "aa bbbbbbbbb", 7), "  aa\n  bbbbbbbbb\n");
        assert_eq!(indented(0, "", 7), "\n");
    }
}
