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

/// A streamed chunk, or a whole answer: `delta` or `message` tells which.
#[derive(Debug, serde::Deserialize)]
pub(super) struct Chunk {
    pub(super) choices: Option<Vec<Object<Choice>>>,
    pub(super) usage: Option<Object<Usage>>,
    #[serde(default, deserialize_with = "is_there")]
    pub(super) error: bool,
}

#[derive(Debug, serde::Deserialize)]
pub(super) struct Choice {
    pub(super) index: u32,
    pub(super) text: Option<String>,
    pub(super) delta: Option<Object<Delta>>,
    pub(super) message: Option<Object<Delta>>,
    pub(super) finish_reason: Option<String>,
    pub(super) token_ids: Option<Vec<u64>>,
}

#[derive(Debug, serde::Deserialize)]
pub(super) struct Delta {
    pub(super) content: Option<String>,
    pub(super) reasoning_content: Option<String>,
    pub(super) reasoning: Option<String>,
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
    pub(super) name: Option<String>,
    pub(super) arguments: Option<String>,
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

/// Whether a value is there and not null.
fn is_there<'de, D: Deserializer<'de>>(deserializer: D) -> Result<bool, D::Error> {
    Option::<IgnoredAny>::deserialize(deserializer).map(|value| value.is_some())
}
