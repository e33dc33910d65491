//! Request bodies: exact bytes from a request, a prompt and a model's name.
//!
//! Keys are in RFC 8785 order without blanks; numbers of `body:` stand as they were written.

use assize_codes as codes;
use assize_study::ast::{Api, Body, BodyValue, Engine, Output, Request};
use assize_study::diagnostic::Diagnostic;
use assize_study::expr::Name;
use assize_study::source::Span;

use crate::eval::Evaluator;
use crate::panel::{Panel, Prompt};

/// Keys that the template writes itself.
const OWN_KEYS: &[&str] = &["model", "prompt", "messages", "stream", "stream_options"];
/// Output tokens of one request at most.
const MAX_OUTPUT: u32 = 1 << 24;

/// A JSON value whose numbers are texts.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Json {
    Literal(String),
    Text(String),
    List(Vec<Json>),
    Object(Vec<(String, Json)>),
}

/// What is common to the bodies of a request for one arm.
pub(crate) struct Template {
    api: Api,
    keys: Vec<(String, Json)>,
    /// The forced length, where there is one.
    pub output_tokens: Option<u32>,
    /// Tokens asked for at most.
    pub asked_tokens: Option<u32>,
}

impl Template {
    /// The template of a request for an arm with this engine, model and streaming.
    pub fn new(
        eval: &Evaluator<'_>,
        name: &Name,
        request: &Request,
        engine: Option<(&str, &Engine)>,
        model: Option<&str>,
        stream: bool,
    ) -> Option<Template> {
        let Some(api) = &request.api else {
            eval.context.report(
                Diagnostic::new(codes::E0506, name.span, format!("`{name}` says no `api`"))
                    .help("write `api: openai/completions` or `api: openai/chat`"),
            );
            return None;
        };
        let mut keys: Vec<(String, Json)> = Vec::new();
        if let Some(model) = model {
            keys.push(("model".to_owned(), Json::Text(model.to_owned())));
        }
        if stream {
            keys.push(("stream".to_owned(), Json::Literal("true".to_owned())));
            let usage = ("include_usage".to_owned(), Json::Literal("true".to_owned()));
            keys.push(("stream_options".to_owned(), Json::Object(vec![usage])));
        }
        let mut template = Template {
            api: api.value,
            keys,
            output_tokens: None,
            asked_tokens: None,
        };
        if let Some(output) = &request.output {
            template.output(eval, &output.value, output.span, engine)?;
        }
        for (key, value) in request.body.iter().flat_map(|body| &body.entries) {
            let taken = OWN_KEYS.contains(&key.value.as_str())
                || template.keys.iter().any(|(own, _)| *own == key.value);
            if taken {
                eval.context.report(
                    Diagnostic::new(
                        codes::E0506,
                        key.span,
                        format!("`{}` is written by the template", key.value),
                    )
                    .help("remove it: `model`, `output` and `stream` are keys of the study"),
                );
                return None;
            }
            template.keys.push((key.value.clone(), json(value)));
        }
        Some(template)
    }

    fn output(
        &mut self,
        eval: &Evaluator<'_>,
        output: &Output,
        span: Span,
        engine: Option<(&str, &Engine)>,
    ) -> Option<()> {
        let (expr, exactly) = match output {
            Output::Exactly(expr) => (expr, true),
            Output::AtMost(expr) => (expr, false),
        };
        let tokens = eval.tokens(expr, &[], "`output`", MAX_OUTPUT)?;
        self.asked_tokens = Some(tokens);
        self.output_tokens = exactly.then_some(tokens);
        let own = engine.and_then(|(_, engine)| {
            let output = &engine.output;
            if exactly {
                output.exactly.as_ref()
            } else {
                output.at_most.as_ref()
            }
        });
        match (own, engine) {
            (Some(body), _) => {
                let keys = body
                    .entries
                    .iter()
                    .map(|(key, value)| (key.value.clone(), with_length(json(value), tokens)));
                self.keys.extend(keys);
            }
            (None, Some((name, _))) if exactly => {
                eval.context.report(
                    Diagnostic::new(
                        codes::E0508,
                        span,
                        format!("`{name}` cannot force the length of an output"),
                    )
                    .help(format!(
                        "write `output: at_most({tokens})`, or leave out the arm's `engine`"
                    )),
                );
                return None;
            }
            (None, _) => {
                let number = |n: u32| Json::Literal(n.to_string());
                self.keys.push(("max_tokens".to_owned(), number(tokens)));
                if exactly {
                    self.keys.push(("min_tokens".to_owned(), number(tokens)));
                    self.keys
                        .push(("ignore_eos".to_owned(), Json::Literal("true".to_owned())));
                }
            }
        }
        Some(())
    }

    /// The path behind the endpoint's own.
    pub fn path(&self) -> &'static str {
        match self.api {
            Api::OpenAiCompletions => "/completions",
            Api::OpenAiChat => "/chat/completions",
        }
    }

    /// One body for each prompt of the panel.
    pub fn bodies(&self, eval: &Evaluator<'_>, name: &Name, panel: &Panel) -> Option<Vec<Vec<u8>>> {
        let rendered: Option<Vec<Vec<u8>>> = panel
            .prompts
            .iter()
            .map(|prompt| {
                self.prompt(prompt)
                    .map(|(key, value)| self.render(key, value))
            })
            .collect();
        if rendered.is_none() {
            self.unfit(eval, name, panel);
        }
        rendered
    }

    /// One body with the first `count` prompts, from the beginning again where the panel is shorter.
    pub fn batch(
        &self,
        eval: &Evaluator<'_>,
        name: &Name,
        panel: &Panel,
        count: u32,
    ) -> Option<Vec<u8>> {
        let mut items = Vec::new();
        for prompt in panel.prompts.iter().cycle().take(count as usize) {
            match (self.api, self.prompt(prompt)) {
                (Api::OpenAiCompletions, Some((_, value))) => items.push(value),
                _ => {
                    self.unfit(eval, name, panel);
                    return None;
                }
            }
        }
        let alike = items
            .windows(2)
            .all(|pair| std::mem::discriminant(&pair[0]) == std::mem::discriminant(&pair[1]));
        if !alike {
            self.unfit(eval, name, panel);
            return None;
        }
        Some(self.render("prompt", Json::List(items)))
    }

    fn prompt(&self, prompt: &Prompt) -> Option<(&'static str, Json)> {
        let message = |role: &str, content: &str| {
            Json::Object(vec![
                ("role".to_owned(), Json::Text(role.to_owned())),
                ("content".to_owned(), Json::Text(content.to_owned())),
            ])
        };
        match (self.api, prompt) {
            (Api::OpenAiCompletions, Prompt::Text(text)) => {
                Some(("prompt", Json::Text(text.clone())))
            }
            (Api::OpenAiCompletions, Prompt::Ids(ids)) => {
                let ids = ids.iter().map(|id| Json::Literal(id.to_string())).collect();
                Some(("prompt", Json::List(ids)))
            }
            (Api::OpenAiChat, Prompt::Text(text)) => {
                Some(("messages", Json::List(vec![message("user", text)])))
            }
            (Api::OpenAiChat, Prompt::Messages(messages)) => {
                let list = messages
                    .iter()
                    .map(|m| message(&m.role, &m.content))
                    .collect();
                Some(("messages", Json::List(list)))
            }
            (Api::OpenAiCompletions, Prompt::Messages(_)) | (Api::OpenAiChat, Prompt::Ids(_)) => {
                None
            }
        }
    }

    fn unfit(&self, eval: &Evaluator<'_>, name: &Name, panel: &Panel) {
        let wants = match self.api {
            Api::OpenAiCompletions => "a text or token ids (a batch: all of one kind)",
            Api::OpenAiChat => "a text or messages, one prompt a request",
        };
        eval.context.report(
            Diagnostic::new(
                codes::E0506,
                name.span,
                format!("`{name}` speaks {}, which takes {wants}", self.api.word()),
            )
            .also(panel.span, "its panel has other prompts"),
        );
    }

    fn render(&self, key: &str, value: Json) -> Vec<u8> {
        let mut keys = self.keys.clone();
        keys.push((key.to_owned(), value));
        let mut out = String::new();
        write(&Json::Object(keys), &mut out);
        out.into_bytes()
    }
}

fn json(value: &BodyValue) -> Json {
    match value {
        BodyValue::Literal(text) => Json::Literal(text.value.clone()),
        BodyValue::Text(text) => Json::Text(text.value.clone()),
        BodyValue::List(items) => Json::List(items.value.iter().map(json).collect()),
        BodyValue::Object(body) => object(&body.value),
    }
}

fn object(body: &Body) -> Json {
    let entries = body.entries.iter();
    Json::Object(
        entries
            .map(|(key, value)| (key.value.clone(), json(value)))
            .collect(),
    )
}

/// The text `n` of an engine's definition as the number of tokens.
fn with_length(value: Json, tokens: u32) -> Json {
    match value {
        Json::Text(text) if text == "n" => Json::Literal(tokens.to_string()),
        Json::List(items) => Json::List(
            items
                .into_iter()
                .map(|item| with_length(item, tokens))
                .collect(),
        ),
        Json::Object(entries) => {
            let entries = entries.into_iter();
            Json::Object(
                entries
                    .map(|(key, value)| (key, with_length(value, tokens)))
                    .collect(),
            )
        }
        other => other,
    }
}

fn write(value: &Json, out: &mut String) {
    match value {
        Json::Literal(text) => out.push_str(text),
        Json::Text(text) => write_text(text, out),
        Json::List(items) => {
            out.push('[');
            for (place, item) in items.iter().enumerate() {
                if place > 0 {
                    out.push(',');
                }
                write(item, out);
            }
            out.push(']');
        }
        Json::Object(entries) => {
            let mut sorted: Vec<(Vec<u16>, &(String, Json))> = entries
                .iter()
                .map(|entry| (entry.0.encode_utf16().collect(), entry))
                .collect();
            sorted.sort_by(|a, b| a.0.cmp(&b.0));
            out.push('{');
            for (place, (_, (key, value))) in sorted.into_iter().enumerate() {
                if place > 0 {
                    out.push(',');
                }
                write_text(key, out);
                out.push(':');
                write(value, out);
            }
            out.push('}');
        }
    }
}

/// serde_json's escapes are those of RFC 8785.
fn write_text(text: &str, out: &mut String) {
    out.push_str(&serde_json::to_string(text).expect("a string has a JSON form"));
}
