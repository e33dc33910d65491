//! Names: their one form, and the nearest that was meant.

use assize_codes as codes;

use super::Name;
use super::parse::{Parsed, prefix};
use super::token::{Input, RESERVED};
use crate::diagnostic::Diagnostic;

/// A name alone, not reserved.
pub fn parse_name(input: Input<'_>) -> Parsed<Name> {
    let text = input.text;
    let fault = |message: String| Diagnostic::new(codes::E0201, input.span, message);
    if text.len() > 64 {
        return Err(Box::new(
            fault(format!(
                "`{}…` is longer than 64 letters",
                &prefix(text, 24)
            ))
            .help("shorten it; `label:` holds what is shown"),
        ));
    }
    if let Some(fixed) = mend_name(text) {
        let diagnostic = fault(format!("`{text}` is no name"))
            .note("a name is lower case: letters, digits, `_`, single dashes, a letter first");
        return Err(Box::new(if fixed.is_empty() {
            diagnostic
        } else {
            diagnostic.help_edit(format!("did you mean `{fixed}`?"), input.span, fixed)
        }));
    }
    if RESERVED.contains(&text) {
        return Err(Box::new(
            Diagnostic::new(
                codes::E0202,
                input.span,
                format!("`{text}` is a word of the language and cannot be a name"),
            )
            .help("choose another name"),
        ));
    }
    Ok(Name::new(text, input.span))
}

/// The nearest form that is a name; none where the text is one, empty where nothing is near.
fn mend_name(text: &str) -> Option<String> {
    let mut parts = text.split('-');
    let plain = |part: &str| {
        !part.is_empty()
            && part
                .bytes()
                .all(|byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'_'))
    };
    if text.starts_with(|c: char| c.is_ascii_lowercase()) && parts.all(plain) {
        return None;
    }
    let lower: String = text
        .chars()
        .map(|c| match c {
            'a'..='z' | '0'..='9' | '_' => c,
            'A'..='Z' => c.to_ascii_lowercase(),
            _ => '-',
        })
        .collect();
    let joined: Vec<&str> = lower.split('-').filter(|part| !part.is_empty()).collect();
    let mended = joined.join("-");
    let is_name = mended.starts_with(|c: char| c.is_ascii_lowercase());
    Some(if is_name { mended } else { String::new() })
}
