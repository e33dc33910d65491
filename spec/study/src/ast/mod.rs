//! The typed study: every scalar typed by its place.
//!
//! What a file says and no more: `like`, `same_as` and defaults are not applied, names are not
//! resolved; [`crate::inherit`] merges an entry with the one that it is `like`. Equality ignores
//! spans and the order of a section's entries.

mod decide;
mod parts;
mod server;
mod setting;

pub use decide::{BlockSet, Compare, Control, Decision, Expectation, Gate, OnDrift};
pub use parts::{
    Arm, Body, BodyValue, Cell, ClassAmount, ClassLoad, Family, Let, Pilot, Profile, Prompts,
    Quota, Request, Share, Think, Turns, Watch,
};
pub use server::{
    Ready, ServerFile, ServerKind, ServerProcess, Signal, SimKey, SimSetting, SimSettings, SimUnit,
    Stop,
};
pub use setting::{
    Api, ArmOrder, Cache, CellOrder, Connections, Driver, Interrupted, Output, PanelSource,
    Receive, Record,
};

use crate::expr::{Expr, Name};
use crate::source::{Span, Spanned};

/// A text: a label, a path, a revision, an argument of a command.
pub type Text = Spanned<String>;

/// A whole file of the study language.
#[derive(Clone, Debug, PartialEq)]
pub enum Document {
    /// A file with `study:`.
    Study(Box<Study>),
    /// A file with `module:`.
    Module(Box<Module>),
}

impl Document {
    /// What the file declares, of either kind.
    pub fn declarations(&self) -> &Declarations {
        match self {
            Document::Study(study) => &study.declarations,
            Document::Module(module) => &module.declarations,
        }
    }

    /// The study, where the file is one.
    pub fn as_study(&self) -> Option<&Study> {
        match self {
            Document::Study(study) => Some(study),
            Document::Module(_) => None,
        }
    }

    /// The module, where the file is one.
    pub fn as_module(&self) -> Option<&Module> {
        match self {
            Document::Module(module) => Some(module),
            Document::Study(_) => None,
        }
    }
}

/// A file with `study:`.
#[derive(Clone, Debug, PartialEq)]
pub struct Study {
    /// `assize`: the version of the language.
    pub version: Spanned<u32>,
    /// `study`: its name.
    pub name: Name,
    /// `question`: prose for the report.
    pub question: Option<Text>,
    /// `use`: modules, `std/…` or a relative path.
    pub uses: Vec<Text>,
    /// `seed`: the base of every draw.
    pub seed: Option<Spanned<u64>>,
    /// `limits`: what a plan may not exceed.
    pub limits: Limits,
    /// `requires`: evidence and the verdict that it must have.
    pub requires: Section<Requirement>,
    /// `provenance`: the stated operating point.
    pub provenance: Option<Facts>,
    /// `prompts`: panels.
    pub prompts: Section<Prompts>,
    /// What modules may hold too.
    pub declarations: Declarations,
    /// `pilots`: excluded runs whose figures `let` may use.
    pub pilots: Section<Pilot>,
    /// `warmup`: a cell that enters no figure.
    pub warmup: Option<Cell>,
    /// Defaults for cells, written at top level.
    pub settings: CellSettings,
    /// `send`: the request that cells send unless they say otherwise.
    pub send: Option<ClassShares>,
    /// `compare`: sets of arms that may differ only in what is listed.
    pub compare: Section<Compare>,
    /// `watch`: samplers beside the run.
    pub watch: Section<Watch>,
    /// `profile`: a diagnostic after the figures of the verdict.
    pub profile: Option<Profile>,
    /// `driver`: which driver must run.
    pub driver: Option<Spanned<Driver>>,
    /// `spin`: how long before a deadline the driver stops sleeping.
    pub spin: Option<Expr>,
    /// `host`: facts that the host must have.
    pub host: Option<Facts>,
    /// `interrupted`: what happens to a unit that was cut short.
    pub interrupted: Option<Spanned<Interrupted>>,
    /// `max_response`: bytes of one response.
    pub max_response: Option<Expr>,
    /// `scope`: the author's own limits, printed as they are.
    pub scope: Option<Text>,
    /// `control`: independent figures taken in every block.
    pub control: Section<Control>,
    /// `external`: files that are named and hashed, not carried.
    pub external: Vec<Text>,
    /// `replicates`: the plan that this one repeats.
    pub replicates: Option<Text>,
}

/// A file with `module:`.
#[derive(Clone, Debug, PartialEq)]
pub struct Module {
    /// `assize`: the version of the language.
    pub version: Spanned<u32>,
    /// `module`: its name.
    pub name: Name,
    /// `doc`: one paragraph.
    pub doc: Text,
    /// `use`: further modules.
    pub uses: Vec<Text>,
    /// What it declares; every entry but those of `let` is abstract.
    pub declarations: Declarations,
    /// `engines`: how an engine differs from the common form.
    pub engines: Section<Engine>,
    /// `profiles`: the provenance keys that a profile wants stated.
    pub profiles: Section<Vec<Text>>,
}

/// The sections that a study and a module share.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Declarations {
    /// `let`: names for values, metrics, conditions and loads; functions.
    pub lets: Section<Let>,
    /// `requests`: request classes.
    pub requests: Section<Request>,
    /// `arms`: what is compared.
    pub arms: Section<Arm>,
    /// `cells`: one load on one arm, or a family.
    pub cells: Section<Cell>,
    /// `blocks`: block sets.
    pub blocks: Section<BlockSet>,
    /// `gates`: conditions before timing.
    pub gates: Section<Gate>,
    /// `decide`: families of hypotheses.
    pub decide: Section<Decision>,
}

/// A section's entries in the order of the file. Names are unique. Equality ignores the order.
#[derive(Clone, Debug)]
pub struct Section<T> {
    /// The section's key, where the section was written.
    pub span: Option<Span>,
    /// The entries.
    pub entries: Vec<Named<T>>,
}

/// An entry of a section with its name.
#[derive(Clone, Debug, PartialEq)]
pub struct Named<T> {
    /// Its name.
    pub name: Name,
    /// What it is.
    pub item: T,
}

impl<T> Default for Section<T> {
    fn default() -> Self {
        Section {
            span: None,
            entries: Vec::new(),
        }
    }
}

impl<T> Section<T> {
    /// The entry of a name.
    pub fn get(&self, name: &str) -> Option<&Named<T>> {
        self.entries.iter().find(|entry| entry.name.text == name)
    }

    /// The entries in the order of the file.
    pub fn iter(&self) -> std::slice::Iter<'_, Named<T>> {
        self.entries.iter()
    }

    /// The entries by name: an order that does not depend on the file's.
    pub fn sorted(&self) -> Vec<&Named<T>> {
        let mut sorted: Vec<_> = self.entries.iter().collect();
        sorted.sort_by(|a, b| a.name.text.cmp(&b.name.text));
        sorted
    }

    /// The names in the order of the file.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.entries.iter().map(|entry| entry.name.text.as_str())
    }

    /// Whether nothing was declared.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// How many entries there are.
    pub fn len(&self) -> usize {
        self.entries.len()
    }
}

impl<'a, T> IntoIterator for &'a Section<T> {
    type Item = &'a Named<T>;
    type IntoIter = std::slice::Iter<'a, Named<T>>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl<T: PartialEq> PartialEq for Section<T> {
    fn eq(&self, other: &Self) -> bool {
        self.len() == other.len() && self.sorted() == other.sorted()
    }
}

/// `limits`: `check` and `freeze` refuse a plan that exceeds one.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Limits {
    /// `duration`: the expected length of the run.
    pub duration: Option<Expr>,
    /// `requests`: how many requests are sent in all.
    pub requests: Option<Expr>,
    /// `output`: how many tokens may be generated in all.
    pub output: Option<Expr>,
}

/// Settings of a cell that may also stand at top level (`record` and `receive` may not).
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CellSettings {
    /// `settle`: quiet time before the cell.
    pub settle: Option<Expr>,
    /// `drain`: how long open requests may end after the last arrival.
    pub drain: Option<Expr>,
    /// `timeout`: the longest time of one request.
    pub timeout: Option<Expr>,
    /// `connections`: fresh ones or kept ones.
    pub connections: Option<Spanned<Connections>>,
    /// `cache`: the state of the engine's prefix cache.
    pub cache: Option<Spanned<Cache>>,
    /// `record`: what the log of the wire holds.
    pub record: Option<Spanned<Record>>,
    /// `receive`: how receives are taken.
    pub receive: Option<Spanned<Receive>>,
}

/// Which request classes a cell sends.
#[derive(Clone, Debug, PartialEq)]
pub enum ClassShares {
    /// `send: chat`.
    One(Name),
    /// `send: { chat: 70%, document: 30% }`.
    Shares(Vec<Share>),
}

/// An engine of a module: how it differs from the common form of its interface.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Engine {
    /// `done`: whether a stream ends in `data: [DONE]`; due unless said otherwise.
    pub done: Option<Spanned<bool>>,
    /// `eviction`: the call that empties the prefix cache, such as `POST /reset_prefix_cache`.
    pub eviction: Option<Spanned<HttpCall>>,
    /// `metrics`: our name and the engine's.
    pub metrics: Vec<(Name, Text)>,
    /// `output`: body keys for a wanted output length.
    pub output: EngineOutput,
}

/// The body keys by which an engine takes an output length. In their values the plain text `n`
/// stands for the number of tokens.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct EngineOutput {
    /// For `exactly(n)`.
    pub exactly: Option<Body>,
    /// For `at_most(n)`.
    pub at_most: Option<Body>,
}

/// A method and a path: `POST /start_profile`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HttpCall {
    /// The method: `GET` or `POST`.
    pub method: String,
    /// The path, from the server's root.
    pub path: String,
}

/// `requires`: evidence that must exist and say something.
#[derive(Clone, Debug, PartialEq)]
pub struct Requirement {
    /// `evidence`: the folder.
    pub evidence: Text,
    /// `verdict`: what it must say.
    pub verdict: Text,
}

/// Free facts: texts under names, nested as written.
#[derive(Clone, Debug, PartialEq)]
pub struct Facts {
    /// The facts in the order of the file.
    pub entries: Vec<(Name, Fact)>,
}

/// One fact.
#[derive(Clone, Debug, PartialEq)]
pub enum Fact {
    /// A text.
    Text(Text),
    /// Several texts.
    List(Vec<Text>),
    /// Facts below it.
    Facts(Facts),
}
