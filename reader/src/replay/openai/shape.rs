//! The JSON of OpenAI-compatible answers, as far as a figure depends on it.
//!
//! Fields that decide nothing are skipped unread, so that a number beyond 64 bits or beyond a
//! double in one of them is no fault. A field that is read has one type, or null.

use std::marker::PhantomData;

use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserialize, Deserializer, IgnoredAny, MapAccess, Visitor};

/// A JSON object. Without this a derived structure would take an array as well.
#[derive(Debug)]
pub(super) struct Object<T>(pub(super) T);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Object<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct OnlyMap<T>(PhantomData<T>);
        impl<'de, T: Deserialize<'de>> Visitor<'de> for OnlyMap<T> {
            type Value = Object<T>;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Self::Value, A::Error> {
                T::deserialize(MapAccessDeserializer::new(map)).map(Object)
            }
        }
        deserializer.deserialize_map(OnlyMap(PhantomData))
    }
}

/// A JSON string. One half of a surrogate pair may stand alone in it: RFC 8259 (8.2) allows the
/// text, and servers that count in UTF-16 cut a character so. It becomes U+FFFD.
#[derive(Debug, Default)]
pub(super) struct Text(pub(super) String);

impl<'de> Deserialize<'de> for Text {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        // As bytes a string may hold lone surrogates, each encoded in three bytes.
        deserializer.deserialize_bytes(OnlyText)
    }
}

struct OnlyText;

impl Visitor<'_> for OnlyText {
    type Value = Text;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("a string")
    }

    fn visit_bytes<E: serde::de::Error>(self, bytes: &[u8]) -> Result<Text, E> {
        let mut text = String::with_capacity(bytes.len());
        for chunk in bytes.utf8_chunks() {
            text.push_str(chunk.valid());
            if chunk.invalid().first() == Some(&0xed) {
                text.push(char::REPLACEMENT_CHARACTER);
            }
        }
        Ok(Text(text))
    }
}

/// A streamed chunk, or a whole answer: `delta` or `message` tells which.
#[derive(Debug, serde::Deserialize)]
pub(super) struct Chunk {
    /// The kind of object, where it is told as a string.
    #[serde(default, deserialize_with = "text_if_any")]
    pub(super) object: Option<String>,
    pub(super) choices: Option<Vec<Object<Choice>>>,
    pub(super) usage: Option<Object<Usage>>,
    #[serde(default, deserialize_with = "is_there")]
    pub(super) error: bool,
}

#[derive(Debug, serde::Deserialize)]
pub(super) struct Choice {
    pub(super) index: Option<u32>,
    pub(super) text: Option<Text>,
    pub(super) delta: Option<Object<Delta>>,
    pub(super) message: Option<Object<Delta>>,
    pub(super) finish_reason: Option<Text>,
    pub(super) token_ids: Option<Vec<u64>>,
}

#[derive(Debug, serde::Deserialize)]
pub(super) struct Delta {
    pub(super) content: Option<Text>,
    pub(super) reasoning_content: Option<Text>,
    pub(super) reasoning: Option<Text>,
    pub(super) tool_calls: Option<Vec<Object<ToolCall>>>,
    pub(super) function_call: Option<Object<Function>>,
    pub(super) token_ids: Option<Vec<u64>>,
}

#[derive(Debug, serde::Deserialize)]
pub(super) struct ToolCall {
    pub(super) function: Option<Object<Function>>,
}

#[derive(Debug, serde::Deserialize)]
pub(super) struct Function {
    pub(super) name: Option<Text>,
    pub(super) arguments: Option<Text>,
}

/// Token counts as the server states them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Deserialize, serde::Serialize)]
pub struct Usage {
    /// Tokens of the prompt.
    pub prompt_tokens: Option<u64>,
    /// Tokens generated.
    pub completion_tokens: Option<u64>,
    /// The server's own total: another number where hidden tokens are left out of the others.
    pub total_tokens: Option<u64>,
}

/// A string, or nothing where the value is anything else: for a field that decides little.
fn text_if_any<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    let value = serde_json::Value::deserialize(deserializer)?;
    Ok(value.as_str().map(str::to_owned))
}

/// Whether a value is there and not null.
fn is_there<'de, D: Deserializer<'de>>(deserializer: D) -> Result<bool, D::Error> {
    Option::<IgnoredAny>::deserialize(deserializer).map(|value| value.is_some())
}
