//! One event's JSON, in the shapes that servers send.

use std::fmt;
use std::marker::PhantomData;

use serde::Deserialize;
use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserializer, IgnoredAny, MapAccess, Visitor};

/// The data is no JSON object, or a field that matters has another type than the API gives it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the event's data is no JSON object of the due shape")]
pub struct Malformed;

/// What one chunk says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Chunk {
    /// It carries a non-null `error`, is itself an `"object":"error"`, or belongs to an event named
    /// `error`.
    pub error: bool,
    /// Its choices.
    pub choices: Vec<Choice>,
    /// `usage.completion_tokens`.
    pub completion_tokens: Option<u64>,
    has_error_field: bool,
}

/// What one choice of a chunk says. Absent and null fields are empty.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Choice {
    /// Its index; 0 where none is given.
    pub index: u64,
    /// None is given, so the stream is no valid one.
    pub lacks_index: bool,
    /// `delta.content` (or `message.content`), or `text` of the legacy API.
    pub content: String,
    /// `delta.reasoning_content`, or `delta.reasoning` where that is empty.
    pub reasoning: String,
    /// Arguments of all tool calls, or of the legacy `function_call`.
    pub tool_args: String,
    /// Whether a tool's or function's name is given.
    pub names_tool: bool,
    /// Entries of `token_ids`.
    pub token_ids: usize,
    /// The finish reason; an empty one counts as none.
    pub finish_reason: Option<String>,
}

impl Chunk {
    pub(super) fn parse(data: &[u8]) -> Result<Chunk, Malformed> {
        // The WHATWG algorithm decodes a stream with U+FFFD for what is not UTF-8.
        let text = String::from_utf8_lossy(data);
        let Object(json) =
            serde_json::from_str::<Object<ChunkJson>>(&text).map_err(|_| Malformed)?;
        let error = json.error.is_some() || json.object.0;
        Ok(Chunk {
            error,
            choices: json
                .choices
                .unwrap_or_default()
                .into_iter()
                .map(|Object(choice)| Choice::from(choice))
                .collect(),
            completion_tokens: json.usage.and_then(|Object(u)| u.completion_tokens),
            has_error_field: error,
        })
    }

    /// What an event named `error` carries that is no chunk.
    pub(super) fn bare_error() -> Chunk {
        Chunk {
            error: true,
            has_error_field: true,
            ..Chunk::default()
        }
    }

    /// Whether it has no choice and is no error object: usage, filter results, a heartbeat.
    pub fn is_empty(&self) -> bool {
        self.choices.is_empty() && !self.has_error_field
    }
}

impl Choice {
    /// Whether at least one token came with it.
    pub fn bears_token(&self) -> bool {
        self.bears_output() || self.token_ids > 0
    }

    /// Whether it has visible output: content, reasoning, or a tool's name or arguments.
    pub fn bears_output(&self) -> bool {
        self.names_tool
            || ![&self.content, &self.reasoning, &self.tool_args]
                .iter()
                .all(|text| text.is_empty())
    }
}

#[derive(Deserialize)]
struct ChunkJson {
    choices: Option<Vec<Object<ChoiceJson>>>,
    usage: Option<Object<UsageJson>>,
    error: Option<IgnoredAny>,
    #[serde(default)]
    object: SaysError,
}

/// Whether a value is the string `error`.
#[derive(Default)]
struct SaysError(bool);

impl<'de> Deserialize<'de> for SaysError {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let value = serde_json::Value::deserialize(deserializer)?;
        Ok(SaysError(value == "error"))
    }
}

/// A JSON string as text. `serde_json` refuses a lone surrogate in a `String`, but JSON does not:
/// half of a pair is what a server sends that cuts its text between UTF-16 units.
#[derive(Default)]
struct Lenient(String);

impl<'de> Deserialize<'de> for Lenient {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_bytes(LenientVisitor)
    }
}

struct LenientVisitor;

impl Visitor<'_> for LenientVisitor {
    type Value = Lenient;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a string")
    }

    fn visit_bytes<E: serde::de::Error>(self, mut bytes: &[u8]) -> Result<Lenient, E> {
        let mut text = String::new();
        loop {
            let valid = match std::str::from_utf8(bytes) {
                Ok(valid) => {
                    text.push_str(valid);
                    return Ok(Lenient(text));
                }
                Err(error) => error.valid_up_to(),
            };
            text.push_str(&String::from_utf8_lossy(&bytes[..valid]));
            text.push('\u{fffd}');
            // A surrogate's three bytes.
            bytes = bytes.get(valid + 3..).unwrap_or_default();
        }
    }
}

#[derive(Deserialize)]
struct UsageJson {
    completion_tokens: Option<u64>,
    // Of these the type alone matters.
    #[serde(rename = "prompt_tokens")]
    _prompt_tokens: Option<u64>,
    #[serde(rename = "total_tokens")]
    _total_tokens: Option<u64>,
}

#[derive(Deserialize)]
struct ChoiceJson {
    index: Option<u64>,
    delta: Option<Object<DeltaJson>>,
    message: Option<Object<DeltaJson>>,
    text: Option<Lenient>,
    token_ids: Option<Vec<u64>>,
    finish_reason: Option<Lenient>,
}

#[derive(Deserialize, Default)]
struct DeltaJson {
    content: Option<Lenient>,
    reasoning_content: Option<Lenient>,
    reasoning: Option<Lenient>,
    tool_calls: Option<Vec<Object<ToolCallJson>>>,
    function_call: Option<Object<FunctionJson>>,
    token_ids: Option<Vec<u64>>,
}

#[derive(Deserialize)]
struct ToolCallJson {
    function: Option<Object<FunctionJson>>,
}

#[derive(Deserialize)]
struct FunctionJson {
    name: Option<Lenient>,
    arguments: Option<Lenient>,
}

impl From<ChoiceJson> for Choice {
    fn from(json: ChoiceJson) -> Choice {
        let reason = json.finish_reason.map(|Lenient(reason)| reason);
        let mut choice = Choice {
            index: json.index.unwrap_or(0),
            lacks_index: json.index.is_none(),
            content: json.text.unwrap_or_default().0,
            token_ids: json.token_ids.as_ref().map_or(0, Vec::len),
            finish_reason: reason.filter(|reason| !reason.is_empty()),
            ..Choice::default()
        };
        let has_ids = json.token_ids.is_some();
        for Object(delta) in json.delta.into_iter().chain(json.message) {
            choice.take_delta(delta, has_ids);
        }
        choice
    }
}

impl Choice {
    fn take_delta(&mut self, delta: DeltaJson, has_ids: bool) {
        self.content += &delta.content.unwrap_or_default().0;
        let Lenient(mut reasoning) = delta.reasoning_content.unwrap_or_default();
        if reasoning.is_empty() {
            reasoning = delta.reasoning.unwrap_or_default().0;
        }
        self.reasoning += &reasoning;
        let calls = delta.tool_calls.unwrap_or_default().into_iter();
        for Object(function) in calls
            .filter_map(|Object(call)| call.function)
            .chain(delta.function_call)
        {
            self.names_tool |= function.name.is_some_and(|Lenient(name)| !name.is_empty());
            self.tool_args += &function.arguments.unwrap_or_default().0;
        }
        if let Some(ids) = delta.token_ids.filter(|_| !has_ids) {
            self.token_ids += ids.len();
        }
    }
}

/// A JSON object: what serde derives for a struct would take an array too.
struct Object<T>(T);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Object<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(ObjectVisitor(PhantomData))
    }
}

struct ObjectVisitor<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for ObjectVisitor<T> {
    type Value = Object<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Self::Value, A::Error> {
        T::deserialize(MapAccessDeserializer::new(map)).map(Object)
    }
}
