//! Canonical JSON: RFC 8785 over the profile that a plan keeps.
//!
//! The profile has no floating-point numbers and no integer beyond 2^53 − 1 in magnitude, so the
//! number rules of RFC 8785 reduce to plain decimal digits. What remains: keys sorted by their
//! UTF-16 code units, no blanks, the shortest escapes.

use serde::Serialize;
use serde_json::Value;

/// The largest integer that every JSON reader keeps exact: 2^53 − 1.
pub const MAX_SAFE_INTEGER: u64 = (1 << 53) - 1;

/// Why a value has no canonical form.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CanonicalError {
    /// A number is not an integer.
    #[error("{0} is not an integer: a plan holds no floating-point number")]
    NotAnInteger(String),
    /// An integer is beyond 2^53 − 1.
    #[error("{0} is beyond 2^53 - 1: write it as a hex string")]
    TooWide(String),
    /// The value cannot be made JSON at all.
    #[error(transparent)]
    Json(#[from] serde_json::Error),
}

/// The canonical bytes of a value.
pub fn to_canonical_json<T: Serialize>(value: &T) -> Result<Vec<u8>, CanonicalError> {
    let value = serde_json::to_value(value)?;
    let mut out = Vec::new();
    write_value(&value, &mut out)?;
    Ok(out)
}

fn write_value(value: &Value, out: &mut Vec<u8>) -> Result<(), CanonicalError> {
    match value {
        Value::Null => out.extend_from_slice(b"null"),
        Value::Bool(true) => out.extend_from_slice(b"true"),
        Value::Bool(false) => out.extend_from_slice(b"false"),
        Value::Number(number) => write_number(number, out)?,
        Value::String(text) => write_string(text, out),
        Value::Array(items) => {
            out.push(b'[');
            for (place, item) in items.iter().enumerate() {
                if place > 0 {
                    out.push(b',');
                }
                write_value(item, out)?;
            }
            out.push(b']');
        }
        Value::Object(map) => {
            let mut entries: Vec<(Vec<u16>, &String, &Value)> = map
                .iter()
                .map(|(key, value)| (key.encode_utf16().collect(), key, value))
                .collect();
            entries.sort_by(|a, b| a.0.cmp(&b.0));
            out.push(b'{');
            for (place, (_, key, value)) in entries.into_iter().enumerate() {
                if place > 0 {
                    out.push(b',');
                }
                write_string(key, out);
                out.push(b':');
                write_value(value, out)?;
            }
            out.push(b'}');
        }
    }
    Ok(())
}

fn write_number(number: &serde_json::Number, out: &mut Vec<u8>) -> Result<(), CanonicalError> {
    let magnitude = match (number.as_u64(), number.as_i64()) {
        (Some(value), _) => value,
        (None, Some(value)) => value.unsigned_abs(),
        (None, None) => return Err(CanonicalError::NotAnInteger(number.to_string())),
    };
    if magnitude > MAX_SAFE_INTEGER {
        return Err(CanonicalError::TooWide(number.to_string()));
    }
    out.extend_from_slice(number.to_string().as_bytes());
    Ok(())
}

fn write_string(text: &str, out: &mut Vec<u8>) {
    out.push(b'"');
    for character in text.chars() {
        match character {
            '"' => out.extend_from_slice(b"\\\""),
            '\\' => out.extend_from_slice(b"\\\\"),
            '\u{8}' => out.extend_from_slice(b"\\b"),
            '\t' => out.extend_from_slice(b"\\t"),
            '\n' => out.extend_from_slice(b"\\n"),
            '\u{c}' => out.extend_from_slice(b"\\f"),
            '\r' => out.extend_from_slice(b"\\r"),
            control if control < ' ' => {
                out.extend_from_slice(format!("\\u{:04x}", u32::from(control)).as_bytes());
            }
            other => {
                let mut buffer = [0; 4];
                out.extend_from_slice(other.encode_utf8(&mut buffer).as_bytes());
            }
        }
    }
    out.push(b'"');
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn canonical(value: Value) -> String {
        String::from_utf8(to_canonical_json(&value).unwrap()).unwrap()
    }

    #[test]
    fn keys_are_sorted_by_utf16_code_units() {
        // RFC 8785, 3.2.3: the smiley's surrogates (D83D) sort before U+FB33.
        let value = json!({"\u{20ac}": 1, "\r": 2, "\u{fb33}": 3, "1": 4, "\u{1f600}": 5, "\u{80}": 6, "\u{f6}": 7});
        assert_eq!(
            canonical(value),
            "{\"\\r\":2,\"1\":4,\"\u{80}\":6,\"\u{f6}\":7,\"\u{20ac}\":1,\"\u{1f600}\":5,\"\u{fb33}\":3}"
        );
    }

    #[test]
    fn escapes_are_the_shortest() {
        assert_eq!(
            canonical(json!("\u{0}\u{8}\t\n\u{c}\r\u{1f}\"\\/é")),
            r#""\u0000\b\t\n\f\r\u001f\"\\/é""#
        );
    }

    #[test]
    fn floats_and_wide_integers_are_refused() {
        assert!(matches!(
            to_canonical_json(&json!(1.5)),
            Err(CanonicalError::NotAnInteger(_))
        ));
        assert!(matches!(
            to_canonical_json(&json!(1u64 << 53)),
            Err(CanonicalError::TooWide(_))
        ));
        assert!(matches!(
            to_canonical_json(&json!(-(1i64 << 53))),
            Err(CanonicalError::TooWide(_))
        ));
        assert_eq!(
            canonical(json!([MAX_SAFE_INTEGER, -5])),
            "[9007199254740991,-5]"
        );
    }
}
