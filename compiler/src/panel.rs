//! Panels of prompts: JSONL rows or drawn token ids.

use std::fmt;
use std::marker::PhantomData;

use assize_codes as codes;
use assize_plan::PanelTokens;
use assize_study::ast::{Named, PanelSource, Prompts};
use assize_study::diagnostic::Diagnostic;
use assize_study::source::Span;
use serde::Deserialize;
use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserializer, MapAccess, Visitor};

use crate::draw::{Purpose, Stream};
use crate::eval::Evaluator;
use crate::seed::Seed;

/// Prompts of one panel at most.
const MAX_PROMPTS: u32 = 100_000;
/// Drawn token ids of one panel at most.
const MAX_DRAWN: u64 = 32 << 20;
/// Faulty rows that one diagnostic lists.
const MAX_LISTED: usize = 5;

/// A panel.
pub(crate) struct Panel {
    pub name: String,
    pub prompts: Vec<Prompt>,
    pub synthetic: bool,
    pub tokens: Option<PanelTokens>,
    pub span: Span,
}

/// One prompt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Prompt {
    Text(String),
    Ids(Vec<u32>),
    Messages(Vec<Message>),
}

/// One message of a chat.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Message {
    pub role: String,
    pub content: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Row {
    #[serde(default, deserialize_with = "written")]
    prompt: Option<String>,
    #[serde(default, deserialize_with = "written")]
    prompt_token_ids: Option<Vec<u32>>,
    #[serde(default, deserialize_with = "written")]
    messages: Option<Vec<Object<Message>>>,
}

/// A value that must be written as an object: serde takes a list of the fields too.
struct Object<T>(T);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Object<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer
            .deserialize_map(Fields(PhantomData))
            .map(Object)
    }
}

struct Fields<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for Fields<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<T, A::Error> {
        T::deserialize(MapAccessDeserializer::new(map))
    }
}

/// A key that is there has a value: `null` is none.
fn written<'de, D: Deserializer<'de>, T: Deserialize<'de>>(
    deserializer: D,
) -> Result<Option<T>, D::Error> {
    T::deserialize(deserializer).map(Some)
}

/// Reads or draws a panel.
pub(crate) fn panel(
    eval: &Evaluator<'_>,
    entry: &Named<Prompts>,
    seed: &Seed<'_>,
) -> Option<Panel> {
    let item = &entry.item;
    let count = item
        .count
        .as_ref()
        .map(|expr| (eval.count(expr, &[], "`count`", 1, MAX_PROMPTS), expr.span));
    let tokens = item
        .tokens
        .as_ref()
        .map(|expr| (eval.tokens(expr, &[], "`tokens`", 1 << 24), expr.span));
    match &item.source.value {
        PanelSource::File(path) => {
            let text = eval.context.text_file(&path.value, path.span)?;
            let prompts = rows(eval, &text, &path.value, path.span)?;
            if let Some((Some(count), span)) = count
                && count as usize != prompts.len()
            {
                eval.context.report(
                    Diagnostic::new(
                        codes::E0505,
                        span,
                        format!(
                            "`{}` has {} prompts, declared are {count}",
                            path.value,
                            prompts.len()
                        ),
                    )
                    .help_edit(
                        format!("write `count: {}`", prompts.len()),
                        span,
                        prompts.len().to_string(),
                    ),
                );
            }
            let declared = match tokens {
                Some((None, _)) => return None,
                Some((Some(tokens), span)) => Some((tokens, span)),
                None => None,
            };
            let tokens = lengths(eval, &prompts, declared, &path.value);
            Some(Panel {
                name: entry.name.text.clone(),
                prompts,
                synthetic: false,
                tokens,
                span: entry.name.span,
            })
        }
        PanelSource::SyntheticTokens => {
            let vocabulary = item
                .vocabulary
                .as_ref()
                .map(|expr| eval.count(expr, &[], "`vocabulary`", 1, 1 << 24));
            let (Some((count, _)), Some((tokens, span)), Some(vocabulary)) =
                (count, tokens, vocabulary)
            else {
                eval.context.report(
                    Diagnostic::new(
                        codes::E0504,
                        entry.name.span,
                        format!("drawn prompts need `count`, `tokens` and `vocabulary`, and `{}` lacks one", entry.name),
                    )
                    .help("write `{ synthetic: tokens, count: 64, tokens: 1024, vocabulary: 32000 }`"),
                );
                return None;
            };
            let (count, tokens, vocabulary) = (count?, tokens?, vocabulary?);
            if u64::from(count) * u64::from(tokens) > MAX_DRAWN {
                eval.context.report(Diagnostic::new(
                    codes::E0504,
                    span,
                    format!("a panel has at most {MAX_DRAWN} drawn tokens"),
                ));
                return None;
            }
            seed.need(eval.context, item.source.span, "`synthetic: tokens`");
            let mut stream = Stream::new(Purpose::Synthetic, seed.block(0), &entry.name.text, 0);
            let mut prompt = || {
                (0..tokens)
                    .map(|_| stream.below(vocabulary.into()) as u32)
                    .collect()
            };
            Some(Panel {
                name: entry.name.text.clone(),
                prompts: (0..count).map(|_| Prompt::Ids(prompt())).collect(),
                synthetic: true,
                tokens: Some(PanelTokens {
                    fewest: tokens,
                    most: tokens,
                    proved: true,
                }),
                span: entry.name.span,
            })
        }
        // The lowering refuses a trace.
        PanelSource::Trace(_) => None,
    }
}

fn rows(eval: &Evaluator<'_>, text: &str, path: &str, span: Span) -> Option<Vec<Prompt>> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut prompts = Vec::new();
    let mut faults = Vec::new();
    for (number, line) in text.lines().enumerate() {
        if prompts.len() == MAX_PROMPTS as usize {
            faults.push(format!(
                "line {}: a panel has at most {MAX_PROMPTS} prompts",
                number + 1
            ));
            break;
        }
        match row(line) {
            Ok(prompt) => prompts.push(prompt),
            Err(why) => faults.push(format!("line {}: {why}", number + 1)),
        }
    }
    if prompts.is_empty() && faults.is_empty() {
        faults.push("it has no rows".to_owned());
    }
    let Some((first, rest)) = faults.split_first() else {
        return Some(prompts);
    };
    let mut diagnostic = Diagnostic::new(codes::E0504, span, format!("`{path}`, {first}"));
    for fault in rest.iter().take(MAX_LISTED) {
        diagnostic = diagnostic.note(fault);
    }
    if rest.len() > MAX_LISTED {
        diagnostic = diagnostic.note(format!("and {} more", rest.len() - MAX_LISTED));
    }
    eval.context.report(diagnostic.help(
        "a row is an object with exactly one of `prompt`, `prompt_token_ids` and `messages`",
    ));
    None
}

/// An error of JSON within one line, whose number is said beside it.
fn in_its_line(error: &serde_json::Error) -> String {
    let text = error.to_string();
    let (what, _) = text.rsplit_once(" at line ").unwrap_or((&text, ""));
    format!("{what} at byte {}", error.column())
}

fn row(line: &str) -> Result<Prompt, String> {
    if line.trim().is_empty() {
        return Err("the line is empty".to_owned());
    }
    let Object(row): Object<Row> =
        serde_json::from_str(line).map_err(|error| in_its_line(&error))?;
    match (row.prompt, row.prompt_token_ids, row.messages) {
        (Some(text), None, None) if !text.is_empty() => Ok(Prompt::Text(text)),
        (None, Some(ids), None) if !ids.is_empty() => Ok(Prompt::Ids(ids)),
        (None, None, Some(messages)) if !messages.is_empty() => {
            let messages = messages.into_iter().map(|Object(message)| message);
            Ok(Prompt::Messages(messages.collect()))
        }
        (None, None, None) => Err("none of the three keys is there".to_owned()),
        (Some(_), None, None) | (None, Some(_), None) | (None, None, Some(_)) => {
            Err("the prompt is empty".to_owned())
        }
        _ => Err("two of the three keys are there".to_owned()),
    }
}

/// What is known of the prompts' lengths; a declared length that ids disprove is reported.
fn lengths(
    eval: &Evaluator<'_>,
    prompts: &[Prompt],
    declared: Option<(u32, Span)>,
    path: &str,
) -> Option<PanelTokens> {
    let known: Option<Vec<u32>> = prompts
        .iter()
        .map(|prompt| match prompt {
            Prompt::Ids(ids) => u32::try_from(ids.len()).ok(),
            Prompt::Text(_) | Prompt::Messages(_) => None,
        })
        .collect();
    let Some(known) = known else {
        let (tokens, span) = declared?;
        eval.context.report(
            Diagnostic::new(
                codes::W0510,
                span,
                format!("the {tokens} tokens of `{path}` are declared, not proved"),
            )
            .help("rows with `prompt_token_ids` prove their length"),
        );
        return Some(PanelTokens {
            fewest: tokens,
            most: tokens,
            proved: false,
        });
    };
    if let Some((tokens, span)) = declared
        && let Some(line) = known.iter().position(|length| *length != tokens)
    {
        eval.context.report(Diagnostic::new(
            codes::E0505,
            span,
            format!(
                "`{path}`, line {}: {} token ids, declared are {tokens}",
                line + 1,
                known[line]
            ),
        ));
    }
    Some(PanelTokens {
        fewest: known.iter().copied().min()?,
        most: known.iter().copied().max()?,
        proved: true,
    })
}
