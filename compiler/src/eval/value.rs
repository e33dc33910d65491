//! What an expression stands for.

use assize_plan::{Measure, Node, ValueUnit};
use assize_study::expr::{CellRef, Dimension, ParamType};
use assize_study::source::Span;
use assize_units::Ratio;

use crate::load::Load;

/// The type of a number: its dimension, and whether it is a share (a percent).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Kind {
    pub dimension: Dimension,
    pub share: bool,
}

impl Kind {
    pub const NUMBER: Kind = Kind::of(Dimension::NONE);
    pub const SHARE: Kind = Kind {
        dimension: Dimension::NONE,
        share: true,
    };
    pub const DURATION: Kind = Kind::of(Dimension::DURATION);
    pub const RATE: Kind = Kind::of(Dimension::RATE);
    pub const SIZE: Kind = Kind::of(Dimension::SIZE);
    pub const TOKENS: Kind = Kind::of(Dimension::TOKENS);

    pub const fn of(dimension: Dimension) -> Kind {
        Kind {
            dimension,
            share: false,
        }
    }

    /// With its article: `a rate`.
    pub fn describe(self) -> &'static str {
        match self {
            Kind::SHARE => "a percent",
            Kind::NUMBER => "a number",
            Kind::DURATION => "a duration",
            Kind::RATE => "a rate",
            Kind::SIZE => "a size",
            Kind::TOKENS => "tokens",
            _ => "a value of another measure",
        }
    }

    /// `1/s`, `s`, `tokens/s`; empty for a number.
    pub fn unit(self) -> String {
        let power = |name: &str, power: i8| match power {
            0 => None,
            1 => Some(name.to_owned()),
            power => Some(format!("{name}^{power}")),
        };
        let Dimension {
            seconds,
            bytes,
            tokens,
        } = self.dimension;
        if self.share {
            return "%".to_owned();
        }
        if seconds == -1 {
            let above = [power("B", bytes), power("tokens", tokens)];
            let above: Vec<String> = above.into_iter().flatten().collect();
            let above = if above.is_empty() {
                "1".to_owned()
            } else {
                above.join("·")
            };
            return format!("{above}/s");
        }
        [
            power("s", seconds),
            power("B", bytes),
            power("tokens", tokens),
        ]
        .into_iter()
        .flatten()
        .collect::<Vec<_>>()
        .join("·")
    }

    /// The unit of a named value in the plan; none where the plan has no word for it.
    pub fn plan_unit(self) -> Option<ValueUnit> {
        Some(match self {
            Kind::SHARE => ValueUnit::Share,
            Kind::NUMBER => ValueUnit::One,
            Kind::DURATION => ValueUnit::Second,
            Kind::RATE => ValueUnit::PerSecond,
            Kind::SIZE => ValueUnit::Byte,
            Kind::TOKENS => ValueUnit::Token,
            _ => return None,
        })
    }

    /// The kind of a parameter that is a number.
    pub fn of_param(ty: ParamType) -> Option<Kind> {
        Some(match ty {
            ParamType::Count | ParamType::Number => Kind::NUMBER,
            ParamType::Percent => Kind::SHARE,
            ParamType::Duration => Kind::DURATION,
            ParamType::Rate => Kind::RATE,
            ParamType::Size => Kind::SIZE,
            ParamType::Tokens => Kind::TOKENS,
            ParamType::Load | ParamType::Metric => return None,
        })
    }
}

/// An exact number and where its type comes from.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Number {
    /// In base units: one, seconds, bytes, tokens, or one of them a second.
    pub value: Ratio,
    pub kind: Kind,
    /// The literal or formula that gave it its type.
    pub origin: Span,
}

impl Number {
    /// As it would be written: `14.9/s`, `2s`, `5%`, `200 tokens`.
    pub fn show(&self) -> String {
        show(self.value, self.kind)
    }
}

/// A value as it would be written, in base units.
pub(crate) fn show(value: Ratio, kind: Kind) -> String {
    match kind {
        Kind::SHARE => {
            let hundredfold = value.mul(Ratio::whole(100));
            hundredfold.map_or_else(|_| value.to_string(), |percent| format!("{percent}%"))
        }
        Kind::NUMBER => value.to_string(),
        Kind::DURATION => format!("{value}s"),
        Kind::RATE => format!("{value}/s"),
        Kind::SIZE => format!("{value}B"),
        Kind::TOKENS => format!("{value} tokens"),
        other => format!("{value} {}", other.unit()),
    }
}

/// An expression over figures of a run.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Figure {
    pub node: Node,
    pub kind: FigureKind,
    /// The cell that `in` named.
    pub cell: Option<CellRef>,
}

/// What a figure yields.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FigureKind {
    /// A number.
    Number(Kind),
    /// True or false.
    Condition,
}

impl Figure {
    /// The measure, where the figure is one and nothing more.
    pub fn as_measure(&self) -> Option<&Measure> {
        match &self.node {
            Node::Measure(measure) => Some(measure),
            _ => None,
        }
    }
}

/// What an expression stands for.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Value {
    /// A number, known now.
    Number(Number),
    /// A figure of the run.
    Figure(Figure),
    /// A load.
    Load(Load),
}

impl Value {
    /// With an article, for diagnostics.
    pub fn describe(&self) -> String {
        match self {
            Value::Number(number) => format!("{} ({})", number.kind.describe(), number.show()),
            Value::Figure(Figure {
                kind: FigureKind::Condition,
                ..
            }) => "a condition".to_owned(),
            Value::Figure(_) => "a metric, which only a run gives".to_owned(),
            Value::Load(_) => "a load".to_owned(),
        }
    }
}
