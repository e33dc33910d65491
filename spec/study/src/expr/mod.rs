//! The expression language: sentences, expressions, loads, metrics and exact quantities.
//!
//! The types carry a span on every node. Equality of the nodes ignores spans, so two studies that
//! differ in layout alone have equal trees. The grammar is in `docs/language.md`.

mod load;
mod name;
mod parse;
mod quantity;
mod sentence;
#[cfg(test)]
mod tests;
mod token;

pub use name::parse_name;
pub use parse::{
    Parsed, parse_call, parse_cell, parse_expr, parse_key, parse_load, parse_sentence, parse_value,
};
pub use quantity::{Dimension, Per, Quantity, Unit};

pub use token::{Input, RESERVED};

use crate::source::{Span, Spanned};

/// A name as written: lower case, a dash between letters is part of it.
#[derive(Clone, Debug)]
pub struct Name {
    /// The name.
    pub text: String,
    /// Where it stands.
    pub span: Span,
}

impl Name {
    /// A name at a place.
    pub fn new(text: impl Into<String>, span: Span) -> Name {
        Name {
            text: text.into(),
            span,
        }
    }
}

impl PartialEq for Name {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

impl Eq for Name {}

impl std::fmt::Display for Name {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.text)
    }
}

/// An expression: a number with its unit, a name, a call, a metric, or an operation on them.
#[derive(Clone, Debug)]
pub struct Expr {
    /// What it is.
    pub kind: ExprKind,
    /// Where it stands, parentheses included.
    pub span: Span,
}

impl PartialEq for Expr {
    fn eq(&self, other: &Self) -> bool {
        self.kind == other.kind
    }
}

/// The forms of an expression.
#[derive(Clone, Debug, PartialEq)]
pub enum ExprKind {
    /// A literal: `5`, `90%`, `14.9/s`, `200 tokens`.
    Quantity(Quantity),
    /// A name, a call or a metric: `near`, `max(a, b)`, `p95(e2e from intended) of chat in near`.
    Phrase(Box<Phrase>),
    /// `highest rate in sweep where held`.
    Highest(Box<Highest>),
    /// `-x`.
    Negate(Box<Expr>),
    /// `left op right`.
    Binary {
        /// The operator and its place.
        op: Spanned<BinaryOp>,
        /// What stands before it.
        left: Box<Expr>,
        /// What stands after it.
        right: Box<Expr>,
    },
}

/// A binary operator, from the loosest to the tightest binding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BinaryOp {
    /// `or`
    Or,
    /// `and`
    And,
    /// `<=`
    LessOrEqual,
    /// `>=`
    GreaterOrEqual,
    /// `==`
    Equal,
    /// `!=`
    NotEqual,
    /// `<`
    Less,
    /// `>`
    Greater,
    /// ` + `
    Add,
    /// ` - `
    Subtract,
    /// `*`
    Multiply,
    /// `/`
    Divide,
}

impl BinaryOp {
    /// The operator as it is written.
    pub fn symbol(self) -> &'static str {
        match self {
            BinaryOp::Or => "or",
            BinaryOp::And => "and",
            BinaryOp::LessOrEqual => "<=",
            BinaryOp::GreaterOrEqual => ">=",
            BinaryOp::Equal => "==",
            BinaryOp::NotEqual => "!=",
            BinaryOp::Less => "<",
            BinaryOp::Greater => ">",
            BinaryOp::Add => "+",
            BinaryOp::Subtract => "-",
            BinaryOp::Multiply => "*",
            BinaryOp::Divide => "/",
        }
    }

    /// Whether it compares two values.
    pub fn is_comparison(self) -> bool {
        matches!(
            self,
            BinaryOp::LessOrEqual
                | BinaryOp::GreaterOrEqual
                | BinaryOp::Equal
                | BinaryOp::NotEqual
                | BinaryOp::Less
                | BinaryOp::Greater
        )
    }
}

/// A name with what may follow it. A plain name has none of the optional parts.
#[derive(Clone, Debug, PartialEq)]
pub struct Phrase {
    /// What is named: a value, a function, a metric, an argument's word.
    pub name: Name,
    /// The arguments, where parentheses were written.
    pub args: Option<Args>,
    /// `from intended`, `from started`, `from sent`.
    pub origin: Option<Spanned<Origin>>,
    /// `of chat`, `of first turns`, `of later turns`.
    pub of: Option<Subset>,
    /// `in near`, `in sweep(4/s)`.
    pub cell: Option<CellRef>,
}

impl Phrase {
    /// The name, where nothing else was written.
    pub fn as_plain_name(&self) -> Option<&Name> {
        let plain = self.args.is_none()
            && self.origin.is_none()
            && self.of.is_none()
            && self.cell.is_none();
        plain.then_some(&self.name)
    }
}

/// The instant from which a latency counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Origin {
    /// When the schedule wanted the request.
    Intended,
    /// When the request was started (a closed loop has no schedule).
    Started,
    /// When its bytes were sent.
    Sent,
}

/// The part of the requests that a metric keeps.
#[derive(Clone, Debug, PartialEq)]
pub enum Subset {
    /// `of chat`: one request class.
    Class(Name),
    /// `of first turns`, `of later turns`.
    Turns(Spanned<Turns>),
}

/// Which turns of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Turns {
    /// The first turn of each session.
    First,
    /// Every other turn.
    Later,
}

/// One cell: `near`, or a member of a family such as `sweep(4/s)`.
#[derive(Clone, Debug)]
pub struct CellRef {
    /// The cell or family.
    pub name: Name,
    /// The member's values, where parentheses were written.
    pub args: Option<Args>,
    /// The whole reference.
    pub span: Span,
}

impl PartialEq for CellRef {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name && self.args == other.args
    }
}

/// Arguments in parentheses.
#[derive(Clone, Debug)]
pub struct Args {
    /// The arguments in their order.
    pub items: Vec<Arg>,
    /// The parentheses and what they hold.
    pub span: Span,
}

impl PartialEq for Args {
    fn eq(&self, other: &Self) -> bool {
        self.items == other.items
    }
}

/// One argument: `5%` or `ties = nonwins`.
#[derive(Clone, Debug, PartialEq)]
pub struct Arg {
    /// Its name, where it is named.
    pub name: Option<Name>,
    /// Its value.
    pub value: Value,
}

/// An expression or a load. A lone `name` or `name(…)` is always an expression: only a type can
/// tell whether `poisson(3/s)` is a load, so a function that wants one takes both forms
/// ([`Value::as_load`]).
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// An expression.
    Expr(Expr),
    /// A load with `then`, `with` or `for`.
    Load(Load),
}

impl Value {
    /// The place of the whole value.
    pub fn span(&self) -> Span {
        match self {
            Value::Expr(expr) => expr.span,
            Value::Load(load) => load.span,
        }
    }

    /// The value as a load: a lone `name` or `name(…)` is one of a single stage.
    pub fn as_load(&self) -> Option<Load> {
        match self {
            Value::Load(load) => Some(load.clone()),
            Value::Expr(Expr {
                kind: ExprKind::Phrase(phrase),
                span,
            }) if phrase.origin.is_none() && phrase.of.is_none() && phrase.cell.is_none() => {
                let process = Call {
                    name: phrase.name.clone(),
                    args: phrase.args.clone(),
                    span: *span,
                };
                Some(Load {
                    stages: vec![Stage {
                        process,
                        with: None,
                        lasts: None,
                        span: *span,
                    }],
                    span: *span,
                })
            }
            Value::Expr(_) => None,
        }
    }
}

/// Stages joined by `then`; at least one.
#[derive(Clone, Debug)]
pub struct Load {
    /// The stages in their order.
    pub stages: Vec<Stage>,
    /// The whole load.
    pub span: Span,
}

impl PartialEq for Load {
    fn eq(&self, other: &Self) -> bool {
        self.stages == other.stages
    }
}

/// One stage: `poisson(near) with cap(64) for 60s`.
#[derive(Clone, Debug)]
pub struct Stage {
    /// The arrival process, the closed loop, or the name of a load.
    pub process: Call,
    /// What follows `with`.
    pub with: Option<Call>,
    /// What follows `for`: a duration.
    pub lasts: Option<Expr>,
    /// The whole stage.
    pub span: Span,
}

impl PartialEq for Stage {
    fn eq(&self, other: &Self) -> bool {
        self.process == other.process && self.with == other.with && self.lasts == other.lasts
    }
}

/// `name` or `name(arguments)`.
#[derive(Clone, Debug)]
pub struct Call {
    /// The name.
    pub name: Name,
    /// The arguments, where parentheses were written.
    pub args: Option<Args>,
    /// The whole call.
    pub span: Span,
}

impl PartialEq for Call {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name && self.args == other.args
    }
}

/// `highest rate in sweep where held`.
#[derive(Clone, Debug, PartialEq)]
pub struct Highest {
    /// The parameter of the family.
    pub param: Name,
    /// The family.
    pub family: Name,
    /// What must hold at the value and at every lower one.
    pub condition: Expr,
}

/// A hypothesis.
#[derive(Clone, Debug)]
pub struct Sentence {
    /// The arm on the left: the candidate.
    pub candidate: Name,
    /// What is claimed of it.
    pub claim: Claim,
    /// The whole sentence.
    pub span: Span,
}

impl PartialEq for Sentence {
    fn eq(&self, other: &Self) -> bool {
        self.candidate == other.candidate && self.claim == other.claim
    }
}

/// What a sentence claims.
#[derive(Clone, Debug, PartialEq)]
pub enum Claim {
    /// `beats CONTROL on METRIC [, median gain at least GAIN]`: a block is a win where the
    /// improvement is above zero; apart from the test the median must reach `gain`.
    Beats {
        /// The other arm.
        control: Name,
        /// What is compared, with its cell.
        metric: Expr,
        /// The least median improvement.
        gain: Option<Expr>,
    },
    /// `beats CONTROL by MARGIN on METRIC`: superiority by a margin in each block.
    BeatsBy {
        /// The other arm.
        control: Name,
        /// The margin that an improvement must exceed.
        margin: Expr,
        /// What is compared, with its cell.
        metric: Expr,
    },
    /// `keeps within MARGIN of CONTROL on METRIC`.
    KeepsWithin {
        /// The loss that an improvement may not reach.
        margin: Expr,
        /// The other arm.
        control: Name,
        /// What is compared, with its cell.
        metric: Expr,
    },
    /// `holds CONDITION`: the comparison is true in the block.
    Holds {
        /// The condition: a [`BinaryOp`] that compares, at its root.
        condition: Expr,
    },
}

/// A key of `let`: a name, or a function's name with its parameters.
#[derive(Clone, Debug)]
pub struct LetKey {
    /// The name.
    pub name: Name,
    /// The parameters; empty for a plain name.
    pub params: Vec<Param>,
    /// The whole key.
    pub span: Span,
}

impl PartialEq for LetKey {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name && self.params == other.params
    }
}

/// A parameter: `pace rate`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Param {
    /// Its name.
    pub name: Name,
    /// Its type.
    pub ty: Spanned<ParamType>,
}

/// The type of a parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ParamType {
    /// A whole number.
    Count,
    /// A number without a unit.
    Number,
    /// A percent.
    Percent,
    /// A duration.
    Duration,
    /// So many a second.
    Rate,
    /// Bytes.
    Size,
    /// Tokens.
    Tokens,
    /// A load.
    Load,
    /// A metric.
    Metric,
}

impl ParamType {
    /// Every type with its word.
    pub const WORDS: &'static [(&'static str, ParamType)] = &[
        ("count", ParamType::Count),
        ("number", ParamType::Number),
        ("percent", ParamType::Percent),
        ("duration", ParamType::Duration),
        ("rate", ParamType::Rate),
        ("size", ParamType::Size),
        ("tokens", ParamType::Tokens),
        ("load", ParamType::Load),
        ("metric", ParamType::Metric),
    ];
}
