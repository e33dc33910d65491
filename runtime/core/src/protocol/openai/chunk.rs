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
    /// It carries a non-null `error`, or belongs to an event named `error`.
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
    /// `delta.content`, or `text` of the legacy API.
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
        let text = std::str::from_utf8(data).map_err(|_| Malformed)?;
        let Object(json) =
            serde_json::from_str::<Object<ChunkJson>>(text).map_err(|_| Malformed)?;
        let error = json.error.is_some();
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
}

#[derive(Deserialize)]
struct UsageJson {
    completion_tokens: Option<u64>,
}

#[derive(Deserialize)]
struct ChoiceJson {
    #[serde(default)]
    index: u64,
    delta: Option<Object<DeltaJson>>,
    text: Option<String>,
    token_ids: Option<Vec<IgnoredAny>>,
    finish_reason: Option<String>,
}

#[derive(Deserialize, Default)]
struct DeltaJson {
    content: Option<String>,
    reasoning_content: Option<String>,
    reasoning: Option<String>,
    tool_calls: Option<Vec<Object<ToolCallJson>>>,
    function_call: Option<Object<FunctionJson>>,
}

#[derive(Deserialize)]
struct ToolCallJson {
    function: Option<Object<FunctionJson>>,
}

#[derive(Deserialize)]
struct FunctionJson {
    name: Option<String>,
    arguments: Option<String>,
}

impl From<ChoiceJson> for Choice {
    fn from(json: ChoiceJson) -> Choice {
        let delta = json.delta.map(|Object(delta)| delta).unwrap_or_default();
        let reasoning_content = delta.reasoning_content.unwrap_or_default();
        let mut choice = Choice {
            index: json.index,
            content: delta.content.unwrap_or_default() + &json.text.unwrap_or_default(),
            reasoning: if reasoning_content.is_empty() {
                delta.reasoning.unwrap_or_default()
            } else {
                reasoning_content
            },
            token_ids: json.token_ids.map_or(0, |ids| ids.len()),
            finish_reason: json.finish_reason.filter(|reason| !reason.is_empty()),
            ..Choice::default()
        };
        let calls = delta.tool_calls.unwrap_or_default().into_iter();
        for Object(function) in calls
            .filter_map(|Object(call)| call.function)
            .chain(delta.function_call)
        {
            choice.names_tool |= function.name.is_some_and(|name| !name.is_empty());
            choice.tool_args += &function.arguments.unwrap_or_default();
        }
        choice
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
