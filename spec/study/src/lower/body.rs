//! `body:` is the one free place: a plain JSON literal is that literal, all else is a text.

use assize_codes as codes;

use super::Lowering;
use crate::ast::{Body, BodyValue};
use crate::diagnostic::Diagnostic;
use crate::source::Spanned;
use crate::tree::{Node, NodeKind, Scalar, Style};

/// Plain words that are a truth value, nothing or no number to some readers of YAML.
const DOUBTFUL: &[&str] = &[
    "yes", "no", "on", "off", "true", "false", "null", "~", ".nan", ".inf", "-.inf", "+.inf",
];

impl Lowering<'_> {
    /// A JSON object.
    pub(super) fn body(&mut self, node: &Node) -> Option<Body> {
        let fields = self.entries(node, "`body`")?;
        let mut entries = Vec::new();
        for field in fields {
            if let Some(value) = field.value.and_then(|value| self.body_value(value)) {
                entries.push((Spanned::new(field.key, field.span), value));
            }
        }
        Some(Body { entries })
    }

    fn body_value(&mut self, node: &Node) -> Option<BodyValue> {
        match &node.kind {
            NodeKind::Empty => {
                self.wrong_kind(node, "a value is due here");
                None
            }
            NodeKind::Scalar(scalar) => self.body_scalar(node, scalar),
            NodeKind::List(_) => {
                let list = self.list(node, "this", Self::body_value)?;
                Some(BodyValue::List(list))
            }
            NodeKind::Map(_) => {
                let body = self.body(node)?;
                Some(BodyValue::Object(Spanned::new(body, node.span)))
            }
        }
    }

    fn body_scalar(&mut self, node: &Node, scalar: &Scalar) -> Option<BodyValue> {
        let text = Spanned::new(scalar.text.clone(), node.span);
        if scalar.style != Style::Plain {
            return Some(BodyValue::Text(text));
        }
        if is_json_literal(&scalar.text) {
            return Some(BodyValue::Literal(text));
        }
        if is_doubtful(&scalar.text) {
            let quoted = format!("\"{}\"", scalar.text);
            self.push(
                Diagnostic::new(
                    codes::E0118,
                    node.span,
                    format!("readers of YAML disagree on what `{}` is", scalar.text),
                )
                .help("write a JSON literal: `true`, `false`, `null` or a number such as `0.5`")
                .help_edit("or put the text in quotes", node.span, quoted),
            );
            return None;
        }
        Some(BodyValue::Text(text))
    }
}

/// `true`, `false`, `null` or a number by the grammar of RFC 8259.
fn is_json_literal(text: &str) -> bool {
    matches!(text, "true" | "false" | "null") || is_json_number(text)
}

fn is_json_number(text: &str) -> bool {
    let digits = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    let text = text.strip_prefix('-').unwrap_or(text);
    let (mantissa, exponent) = match text.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, Some(exponent)),
        None => (text, None),
    };
    let (whole, fraction) = match mantissa.split_once('.') {
        Some((whole, fraction)) => (whole, Some(fraction)),
        None => (mantissa, None),
    };
    let exponent = exponent.map(|text| text.strip_prefix(['+', '-']).unwrap_or(text));
    digits(whole)
        && (whole == "0" || !whole.starts_with('0'))
        && fraction.is_none_or(digits)
        && exponent.is_none_or(digits)
}

/// A word of [`DOUBTFUL`] in any case, or what looks like a number and is none of JSON's.
fn is_doubtful(text: &str) -> bool {
    let lower = text.to_lowercase();
    if DOUBTFUL.contains(&lower.as_str()) {
        return true;
    }
    let bare = lower.strip_prefix(['+', '-']).unwrap_or(&lower);
    let mut bytes = bare.bytes();
    let starts = match bytes.next() {
        Some(b'0'..=b'9') => true,
        Some(b'.') => bytes.next().is_some_and(|byte| byte.is_ascii_digit()),
        _ => false,
    };
    let decimal = bare
        .bytes()
        .all(|byte| matches!(byte, b'0'..=b'9' | b'_' | b'.' | b'e' | b'+' | b'-' | b':'));
    let looks_like_a_date = bare.matches('-').count() > 1;
    let radix = ["0x", "0o", "0b"].iter().any(|prefix| {
        bare.strip_prefix(prefix).is_some_and(|digits| {
            !digits.is_empty()
                && digits
                    .bytes()
                    .all(|byte| byte.is_ascii_hexdigit() || byte == b'_')
        })
    });
    starts && ((decimal && !looks_like_a_date) || radix)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_literals_are_taken_as_json_defines_them() {
        for text in ["true", "null", "0", "-1", "1.5", "1e3", "1.0E-3", "10"] {
            assert!(is_json_literal(text), "{text}");
        }
        for text in [
            "True", "01", ".5", "5.", "+5", "1e", "0x1", "1_000", "", "-", "NaN",
        ] {
            assert!(!is_json_literal(text), "{text}");
        }
    }

    #[test]
    fn what_readers_disagree_on_is_told_from_texts() {
        for text in [
            "no", "On", "TRUE", "~", "010", "0x1f", "0b11", "1_000", ".5", "5.", "+5", "1:30:00",
            ".nan",
        ] {
            assert!(is_doubtful(text), "{text}");
        }
        for text in [
            "none",
            "v1",
            "10ms",
            "2023-11-16",
            "a:b",
            "x",
            "1.2.3-beta",
            "0xyz",
        ] {
            assert!(!is_doubtful(text), "{text}");
        }
    }
}
