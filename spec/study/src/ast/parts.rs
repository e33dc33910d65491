//! Prompts, requests, arms, cells and the names of `let`.

use super::setting::{Api, Output, PanelSource};
use super::{CellSettings, ClassShares, Facts, HttpCall, Text};
use crate::expr::{Expr, LetKey, Load, Name, Value};
use crate::source::Spanned;

/// A panel of prompts.
#[derive(Clone, Debug, PartialEq)]
pub struct Prompts {
    /// `file`, `trace` or `synthetic`, with the place of the key's value.
    pub source: Spanned<PanelSource>,
    /// `format`: the form of a trace.
    pub format: Option<Name>,
    /// `count`: how many prompts there are.
    pub count: Option<Expr>,
    /// `tokens`: how long each one is.
    pub tokens: Option<Expr>,
    /// `vocabulary`: ids are drawn below it.
    pub vocabulary: Option<Expr>,
    /// `tokenizer`: a file that proves token counts.
    pub tokenizer: Option<Text>,
    /// `take`: the part of a trace, in its own time.
    pub take: Option<Expr>,
    /// `turns: user`: the rows are conversations.
    pub turns: Option<Name>,
}

/// A request class.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Request {
    /// `api`: the interface that it speaks.
    pub api: Option<Spanned<Api>>,
    /// `prompt`: its panel.
    pub prompt: Option<Name>,
    /// `output`: how many tokens it asks for.
    pub output: Option<Spanned<Output>>,
    /// `body`: further keys of the body.
    pub body: Option<Body>,
    /// `timeout`: its own longest time.
    pub timeout: Option<Expr>,
    /// `headers`: further header fields, name and value.
    pub headers: Vec<(Text, Text)>,
    /// `turns: scripted`: the class is a session.
    pub turns: Option<Spanned<Turns>>,
    /// `think`: the pause between turns.
    pub think: Option<Think>,
    /// `like`: the entry that this one completes.
    pub like: Option<Name>,
    /// `abstract`: only there to be completed.
    pub is_abstract: bool,
}

/// `turns` of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Turns {
    /// `scripted`: turn k sends the file's own history.
    Scripted,
}

/// `think`: a duration or a distribution of durations.
#[derive(Clone, Debug, PartialEq)]
pub enum Think {
    /// A fixed duration.
    Fixed(Expr),
    /// `exponential(8s)`, by its mean.
    Exponential(Expr),
}

/// A JSON object of a request body, as written.
#[derive(Clone, Debug)]
pub struct Body {
    /// The keys and their values, in the order of the file; keys are unique.
    pub entries: Vec<(Text, BodyValue)>,
}

impl PartialEq for Body {
    fn eq(&self, other: &Self) -> bool {
        let sorted = |body: &Body| {
            let mut entries = body.entries.clone();
            entries.sort_by(|a, b| a.0.value.cmp(&b.0.value));
            entries
        };
        self.entries.len() == other.entries.len()
            && sorted(self).iter().zip(&sorted(other)).all(|(a, b)| a == b)
    }
}

/// One value of a request body.
#[derive(Clone, Debug, PartialEq)]
pub enum BodyValue {
    /// A JSON literal that is no string (`true`, `null`, `0`, `1.5`, `1e3`), as written.
    Literal(Text),
    /// A string.
    Text(Text),
    /// An array.
    List(Spanned<Vec<BodyValue>>),
    /// An object.
    Object(Spanned<Body>),
}

/// An arm: one server or endpoint as it is configured.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Arm {
    /// `engine`: what speaks there.
    pub engine: Option<Name>,
    /// `server`: the file that says how it is started.
    pub server: Option<Text>,
    /// `args`: further arguments of its command.
    pub args: Vec<Text>,
    /// `env`: further variables of its environment, name and value.
    pub env: Vec<(Text, Text)>,
    /// `endpoint`: where it listens, for a server that runs already.
    pub endpoint: Option<Text>,
    /// `ca`: the file of certificates by which the endpoint is verified, for the system's.
    pub ca: Option<Text>,
    /// `insecure`: the endpoint is not verified.
    pub insecure: Option<Spanned<bool>>,
    /// `model`: the model's name in requests.
    pub model: Option<Text>,
    /// `key`: the environment variable that holds its key.
    pub key: Option<Text>,
    /// `headers`: further header fields, name and value.
    pub headers: Vec<(Text, Text)>,
    /// `quota`: what the endpoint allows.
    pub quota: Option<Quota>,
    /// `label`: its name in reports.
    pub label: Option<Text>,
    /// `provenance`: what is stated of it.
    pub provenance: Option<Facts>,
    /// `discloses`: the author's words, printed as they are.
    pub discloses: Option<Text>,
    /// `like`: the entry that this one completes.
    pub like: Option<Name>,
    /// `same_as`: the arm that this one equals in everything but its label.
    pub same_as: Option<Name>,
    /// `abstract`: only there to be completed.
    pub is_abstract: bool,
}

/// `quota` of an arm.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Quota {
    /// `requests`: a rate.
    pub requests: Option<Expr>,
    /// `tokens`: tokens in an interval.
    pub tokens: Option<Expr>,
    /// `in_flight`: open requests at once.
    pub in_flight: Option<Expr>,
}

/// `let`: a name or a function.
#[derive(Clone, Debug, PartialEq)]
pub struct Let {
    /// The key: the name and, for a function, its parameters.
    pub key: LetKey,
    /// What it stands for.
    pub value: Value,
}

/// A cell, or a family of them. A warmup has the same keys.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Cell {
    /// `for`: the parameters of a family.
    pub family: Option<Family>,
    /// `load`: when requests are sent.
    pub load: Option<ClassLoad>,
    /// `requests`: how many.
    pub requests: Option<ClassAmount>,
    /// `sessions`: how many.
    pub sessions: Option<Expr>,
    /// `send`: which classes.
    pub send: Option<ClassShares>,
    /// `stream`: whether answers are streamed; they are unless said otherwise.
    pub stream: Option<Spanned<bool>>,
    /// Its own settings.
    pub settings: CellSettings,
    /// `like`: the entry that this one completes.
    pub like: Option<Name>,
    /// `abstract`: only there to be completed.
    pub is_abstract: bool,
}

/// `for`: one or two parameters with their values. The order of the keys is that of a member's
/// arguments: `grid(4, 128)`.
#[derive(Clone, Debug, PartialEq)]
pub struct Family {
    /// The parameters and their values, in the order of the file.
    pub params: Vec<(Name, Vec<Expr>)>,
}

/// `load` of a cell.
#[derive(Clone, Debug, PartialEq)]
pub enum ClassLoad {
    /// One stream.
    One(Load),
    /// A stream for each class.
    ByClass(Vec<(Name, Load)>),
}

/// `requests` of a cell.
#[derive(Clone, Debug, PartialEq)]
pub enum ClassAmount {
    /// A number in all.
    One(Expr),
    /// A number for each class.
    ByClass(Vec<(Name, Expr)>),
}

/// A class and its share of one stream.
#[derive(Clone, Debug, PartialEq)]
pub struct Share {
    /// The class.
    pub class: Name,
    /// Its share.
    pub share: Expr,
}

/// A run that is excluded from every figure, and whose own figures `let` may use.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Pilot {
    /// `arms`: where it runs.
    pub arms: Vec<Name>,
    /// `cell`: which cell it runs.
    pub cell: Option<Name>,
    /// `load`: or which load.
    pub load: Option<Load>,
    /// `requests`: and how many.
    pub requests: Option<Expr>,
    /// `declared`: figures that are stated in place of a run: metric, arm, value.
    pub declared: Vec<(Name, Vec<(Name, Expr)>)>,
}

/// A sampler beside the run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Watch {
    /// `from`: a built-in source, such as `prometheus`.
    pub from: Option<Name>,
    /// `command`: its arguments.
    pub command: Vec<Text>,
    /// `file`: a file of receipts.
    pub file: Option<Text>,
    /// `every`: how often.
    pub every: Option<Expr>,
    /// `keep`: which of the figures.
    pub keep: Vec<Text>,
    /// `join`: the header that names the request.
    pub join: Option<Text>,
}

/// A diagnostic that runs after the figures of the verdict, outside them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Profile {
    /// `when`: the condition.
    pub when: Option<Expr>,
    /// `prelude`: the cell before it.
    pub prelude: Option<Name>,
    /// `cell`: the cell that is profiled.
    pub cell: Option<Name>,
    /// `requests`: how many of its requests.
    pub requests: Option<Expr>,
    /// `start`: the call that starts the profiler.
    pub start: Option<Spanned<HttpCall>>,
    /// `stop`: the call that stops it.
    pub stop: Option<Spanned<HttpCall>>,
}
