//! What a request asks for: routes, request bodies, and errors in OpenAI's shape.

use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, SeqAccess, Visitor};

use super::config::EngineConfig;
use super::request::{Malformed, Method, RequestHead};

/// Where a request leads.
#[derive(Debug)]
pub(super) enum Route {
    Generate(Generate),
    Models,
    Health,
    Metrics,
    Refused(Refusal),
}

/// One request for text, checked.
#[derive(Debug)]
pub(super) struct Generate {
    pub(super) api: Api,
    pub(super) prompts: Vec<Prompt>,
    pub(super) max_tokens: Option<u32>,
    pub(super) min_tokens: u32,
    pub(super) ignore_eos: bool,
    pub(super) stream: bool,
    pub(super) include_usage: bool,
    pub(super) continuous_usage: bool,
    pub(super) return_token_ids: bool,
}

/// The endpoint, which decides the answer's shape.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Api {
    Completions,
    Chat,
}

/// A prompt as sent.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Prompt {
    Text(String),
    Ids(Vec<u32>),
}

/// An answer that is an error.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Refusal {
    pub(super) status: u16,
    pub(super) message: String,
    pub(super) param: Option<&'static str>,
}

/// Most prompts in one request.
const MAX_PROMPTS: usize = 1024;

/// Finds out what a whole request asks for.
pub(super) fn route(head: &RequestHead, body: &[u8], config: &EngineConfig) -> Route {
    let expected = match head.path.as_str() {
        "/v1/completions" | "/v1/chat/completions" => Method::Post,
        "/v1/models" | "/health" | "/metrics" => Method::Get,
        _ => return refused(404, "Not Found"),
    };
    if head.method != expected {
        return refused(405, "Method Not Allowed");
    }
    match head.path.as_str() {
        "/v1/models" => Route::Models,
        "/health" => Route::Health,
        "/metrics" => Route::Metrics,
        "/v1/completions" => generate(parse_completions(body), config),
        _ => generate(parse_chat(body), config),
    }
}

impl Refusal {
    pub(super) fn new(status: u16, message: impl Into<String>) -> Refusal {
        Refusal {
            status,
            message: message.into(),
            param: None,
        }
    }

    fn of(status: u16, param: &'static str, message: impl Into<String>) -> Refusal {
        Refusal {
            status,
            message: message.into(),
            param: Some(param),
        }
    }

    /// The error object, as vLLM writes it.
    pub(super) fn body(&self) -> Vec<u8> {
        let error = serde_json::json!({"error": {
            "message": self.message,
            "type": error_type(self.status),
            "param": self.param,
            "code": self.status,
        }});
        error.to_string().into_bytes()
    }
}

impl From<Malformed> for Refusal {
    fn from(malformed: Malformed) -> Refusal {
        match malformed {
            Malformed::Head => Refusal::new(400, "Invalid HTTP request received."),
            Malformed::HeadTooLong => Refusal::new(431, "The request head is too long."),
            Malformed::Framing => Refusal::new(400, "The request's framing is ambiguous."),
            Malformed::Chunk => Refusal::new(400, "A chunk of the request's body is malformed."),
            Malformed::BodyTooLong => Refusal::new(413, "The request body is too long."),
            Malformed::Expectation => Refusal::new(417, "The expectation is not 100-continue."),
        }
    }
}

fn refused(status: u16, message: &str) -> Route {
    Route::Refused(Refusal::new(status, message))
}

fn error_type(status: u16) -> &'static str {
    match status {
        404 => "NotFoundError",
        400..=499 => "BadRequestError",
        503 => "ServiceUnavailableError",
        _ => "InternalServerError",
    }
}

fn generate(parsed: Result<(Wire, Generate), Refusal>, config: &EngineConfig) -> Route {
    let checked = parsed.and_then(|(wire, generate)| {
        check_wire(&wire, config)?;
        check_prompts(&generate.prompts, config)?;
        Ok(generate)
    });
    match checked {
        Ok(generate) => Route::Generate(generate),
        Err(refusal) => Route::Refused(refusal),
    }
}

/// The keys that both endpoints share; others, such as `temperature`, alter nothing here.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Wire {
    model: Option<String>,
    max_tokens: Option<i64>,
    max_completion_tokens: Option<i64>,
    min_tokens: Option<i64>,
    ignore_eos: Option<bool>,
    stream: Option<bool>,
    stream_options: Option<StreamOptions>,
    return_token_ids: Option<bool>,
    n: Option<i64>,
    best_of: Option<i64>,
    echo: Option<bool>,
    logprobs: Option<serde_json::Value>,
    prompt: Option<Prompts>,
    messages: Option<Vec<Message>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct StreamOptions {
    include_usage: Option<bool>,
    continuous_usage_stats: Option<bool>,
}

#[derive(Debug, Deserialize)]
struct Message {
    role: String,
    content: Option<Content>,
}

fn parse_completions(body: &[u8]) -> Result<(Wire, Generate), Refusal> {
    let mut wire = parse_wire(body)?;
    let Some(Prompts(prompts)) = wire.prompt.take() else {
        return Err(Refusal::of(400, "prompt", "Field required: prompt"));
    };
    let generate = common(&wire, Api::Completions, prompts)?;
    Ok((wire, generate))
}

fn parse_chat(body: &[u8]) -> Result<(Wire, Generate), Refusal> {
    let mut wire = parse_wire(body)?;
    let messages = match wire.messages.take() {
        Some(messages) if !messages.is_empty() => messages,
        _ => return Err(Refusal::of(400, "messages", "Field required: messages")),
    };
    let mut text = String::new();
    for message in messages {
        text.push_str(&message.role);
        text.push('\n');
        text.push_str(&message.content.unwrap_or_default().0);
        text.push('\n');
    }
    let generate = common(&wire, Api::Chat, vec![Prompt::Text(text)])?;
    Ok((wire, generate))
}

fn parse_wire(body: &[u8]) -> Result<Wire, Refusal> {
    serde_json::from_slice(body).map_err(|why| {
        let what = match why.classify() {
            serde_json::error::Category::Data => "1 validation error",
            _ => "JSON decode error",
        };
        Refusal::of(400, "body", format!("{what}: {why}"))
    })
}

fn common(wire: &Wire, api: Api, prompts: Vec<Prompt>) -> Result<Generate, Refusal> {
    let options = wire.stream_options.as_ref();
    let asked = |pick: fn(&StreamOptions) -> Option<bool>| options.and_then(pick) == Some(true);
    let stream = wire.stream == Some(true);
    if options.is_some() && !stream {
        let message = "Stream options can only be defined when `stream=True`.";
        return Err(Refusal::of(400, "stream_options", message));
    }
    let max_tokens = at_least("max_tokens", wire.max_tokens, 1)?;
    let max_completion = at_least("max_completion_tokens", wire.max_completion_tokens, 1)?;
    let max_tokens = match api {
        Api::Completions => Some(max_tokens.unwrap_or(16)),
        Api::Chat => max_completion.or(max_tokens),
    };
    let min_tokens = at_least("min_tokens", wire.min_tokens, 0)?.unwrap_or(0);
    if max_tokens.is_some_and(|max| min_tokens > max) {
        let message = "min_tokens must be less than or equal to max_tokens";
        return Err(Refusal::of(400, "min_tokens", message));
    }
    Ok(Generate {
        api,
        prompts,
        max_tokens,
        min_tokens,
        ignore_eos: wire.ignore_eos == Some(true),
        stream,
        include_usage: asked(|options| options.include_usage),
        continuous_usage: asked(|options| options.include_usage)
            && asked(|options| options.continuous_usage_stats),
        return_token_ids: wire.return_token_ids == Some(true),
    })
}

fn at_least(param: &'static str, value: Option<i64>, least: i64) -> Result<Option<u32>, Refusal> {
    let Some(value) = value else {
        return Ok(None);
    };
    if value < least {
        let message = format!("{param} must be at least {least}, got {value}.");
        return Err(Refusal::of(400, param, message));
    }
    Ok(Some(u32::try_from(value).unwrap_or(u32::MAX)))
}

fn check_wire(wire: &Wire, config: &EngineConfig) -> Result<(), Refusal> {
    if let Some(model) = &wire.model
        && *model != config.model
    {
        let shown: String = model.chars().take(128).collect();
        let message = format!("The model `{shown}` does not exist.");
        return Err(Refusal::of(404, "model", message));
    }
    let unsupported = [
        ("n", wire.n.is_some_and(|n| n != 1)),
        ("best_of", wire.best_of.is_some_and(|n| n != 1)),
        ("echo", wire.echo == Some(true)),
        ("logprobs", asks_logprobs(wire.logprobs.as_ref())),
    ];
    match unsupported.iter().find(|(_, asked)| *asked) {
        Some((param, _)) => {
            let message = format!("The simulated engine does not serve `{param}`.");
            Err(Refusal::of(422, param, message))
        }
        None => Ok(()),
    }
}

fn asks_logprobs(value: Option<&serde_json::Value>) -> bool {
    value.is_some_and(|value| !matches!(value, serde_json::Value::Bool(false)))
}

fn check_prompts(prompts: &[Prompt], config: &EngineConfig) -> Result<(), Refusal> {
    if prompts.is_empty() || prompts.len() > MAX_PROMPTS {
        let message = format!("prompt must hold 1 to {MAX_PROMPTS} prompts");
        return Err(Refusal::of(400, "prompt", message));
    }
    for prompt in prompts {
        let Prompt::Ids(ids) = prompt else {
            continue;
        };
        if ids.is_empty() {
            let message = "The decoder prompt cannot be empty";
            return Err(Refusal::of(400, "prompt", message));
        }
        if let Some(id) = ids.iter().find(|id| **id >= config.vocabulary) {
            let message = format!("Token id {id} is out of vocabulary");
            return Err(Refusal::of(400, "prompt", message));
        }
    }
    Ok(())
}

/// A text, a list of texts, a list of ids, or a list of lists of ids.
#[derive(Debug)]
struct Prompts(Vec<Prompt>);

impl<'de> Deserialize<'de> for Prompts {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(PromptsVisitor)
    }
}

struct PromptsVisitor;

impl<'de> Visitor<'de> for PromptsVisitor {
    type Value = Prompts;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a text, texts, token ids, or lists of token ids")
    }

    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Prompts, E> {
        Ok(Prompts(vec![Prompt::Text(text.to_owned())]))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Prompts, A::Error> {
        let mixed = || serde::de::Error::custom("prompt mixes texts, ids and lists");
        match seq.next_element::<Element>()? {
            None => Ok(Prompts(Vec::new())),
            Some(Element::Id(first)) => {
                let mut ids = vec![first];
                while let Some(id) = seq.next_element::<u32>()? {
                    ids.push(id);
                }
                Ok(Prompts(vec![Prompt::Ids(ids)]))
            }
            Some(Element::Prompt(first)) => {
                let batch_of_texts = matches!(first, Prompt::Text(_));
                let mut prompts = vec![first];
                while let Some(element) = seq.next_element::<Element>()? {
                    let Element::Prompt(prompt) = element else {
                        return Err(mixed());
                    };
                    if matches!(prompt, Prompt::Text(_)) != batch_of_texts {
                        return Err(mixed());
                    }
                    prompts.push(prompt);
                }
                Ok(Prompts(prompts))
            }
        }
    }
}

/// One element of a `prompt` list.
enum Element {
    Id(u32),
    Prompt(Prompt),
}

impl<'de> Deserialize<'de> for Element {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ElementVisitor)
    }
}

struct ElementVisitor;

impl<'de> Visitor<'de> for ElementVisitor {
    type Value = Element;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a text, a token id, or a list of token ids")
    }

    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Element, E> {
        Ok(Element::Prompt(Prompt::Text(text.to_owned())))
    }

    fn visit_u64<E: serde::de::Error>(self, id: u64) -> Result<Element, E> {
        u32::try_from(id)
            .map(Element::Id)
            .map_err(|_| E::custom(format!("token id {id} is too great")))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Element, A::Error> {
        let mut ids = Vec::new();
        while let Some(id) = seq.next_element::<u32>()? {
            ids.push(id);
        }
        Ok(Element::Prompt(Prompt::Ids(ids)))
    }
}

/// A message's content: a text, or parts of which those with a `text` count.
#[derive(Debug, Default)]
struct Content(String);

impl<'de> Deserialize<'de> for Content {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum Form {
            Text(String),
            Parts(Vec<Part>),
        }
        #[derive(Deserialize)]
        struct Part {
            text: Option<String>,
        }
        Ok(Content(match Form::deserialize(deserializer)? {
            Form::Text(text) => text,
            Form::Parts(parts) => parts.into_iter().filter_map(|part| part.text).collect(),
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn prompts(json: &str) -> Result<Vec<Prompt>, Refusal> {
        let body = format!(r#"{{"prompt":{json}}}"#);
        parse_completions(body.as_bytes()).map(|(_, generate)| generate.prompts)
    }

    #[test]
    fn a_prompt_has_four_forms() {
        let text = |text: &str| Prompt::Text(text.to_owned());
        assert_eq!(prompts(r#""a""#).unwrap(), [text("a")]);
        assert_eq!(prompts(r#"["a","b"]"#).unwrap(), [text("a"), text("b")]);
        assert_eq!(prompts("[1,2]").unwrap(), [Prompt::Ids(vec![1, 2])]);
        assert_eq!(
            prompts("[[1],[2,3]]").unwrap(),
            [Prompt::Ids(vec![1]), Prompt::Ids(vec![2, 3])]
        );
        for mixed in [
            r#"["a",1]"#,
            r#"[1,"a"]"#,
            r#"[[1],"a"]"#,
            "[-1]",
            "{}",
            "7",
        ] {
            assert_eq!(prompts(mixed).unwrap_err().status, 400, "{mixed}");
        }
    }

    #[test]
    fn each_wrong_parameter_is_named() {
        let config = EngineConfig::default();
        let refused = |body: &str| match generate(parse_completions(body.as_bytes()), &config) {
            Route::Refused(refusal) => (refusal.status, refusal.param.unwrap_or("")),
            other => panic!("{other:?}"),
        };
        assert_eq!(refused("{"), (400, "body"));
        assert_eq!(refused(r#"{"prompt":"a","max_tokens":"x"}"#), (400, "body"));
        assert_eq!(refused("{}"), (400, "prompt"));
        assert_eq!(refused(r#"{"prompt":[]}"#), (400, "prompt"));
        assert_eq!(refused(r#"{"prompt":[32000]}"#), (400, "prompt"));
        assert_eq!(
            refused(r#"{"prompt":"a","max_tokens":0}"#),
            (400, "max_tokens")
        );
        assert_eq!(
            refused(r#"{"prompt":"a","max_tokens":2,"min_tokens":3}"#),
            (400, "min_tokens")
        );
        assert_eq!(
            refused(r#"{"prompt":"a","stream_options":{}}"#),
            (400, "stream_options")
        );
        assert_eq!(refused(r#"{"prompt":"a","model":"gpt"}"#), (404, "model"));
        assert_eq!(refused(r#"{"prompt":"a","n":2}"#), (422, "n"));
        assert_eq!(refused(r#"{"prompt":"a","logprobs":1}"#), (422, "logprobs"));
    }

    #[test]
    fn a_chat_s_parts_are_joined() {
        let body = r#"{"messages":[{"role":"user","content":[{"type":"text","text":"a"},
            {"type":"image_url"},{"type":"text","text":"b"}]},{"role":"assistant"}]}"#;
        let (_, generate) = parse_chat(body.as_bytes()).unwrap();
        let expected = Prompt::Text("user\nab\nassistant\n\n".to_owned());
        assert_eq!(generate.prompts, [expected]);
        assert_eq!(generate.max_tokens, None);
    }
}
