//! Metrics: figures that a run gives.

use assize_codes as codes;
use assize_plan::{Measure, Node, Origin, Quantity, Stat, Threshold};
use assize_study::diagnostic::Diagnostic;
use assize_study::expr::{
    Args, BinaryOp, Dimension, Expr, ExprKind, Origin as WrittenOrigin, Phrase, Subset,
    Value as Written,
};
use assize_study::suggest::nearest;

use super::{Evaluator, Figure, FigureKind, Kind, Locals, Value};

/// Metrics of a cell.
const OF_A_CELL: &[(&str, Quantity)] = &[
    ("throughput", Quantity::Throughput),
    ("output_throughput", Quantity::OutputThroughput),
    ("goodput", Quantity::Goodput),
    ("attainment", Quantity::Attainment),
    ("offered", Quantity::Offered),
    ("valid", Quantity::Valid),
    ("failed", Quantity::Failed),
    ("missing", Quantity::Missing),
    ("tokens_per_event", Quantity::TokensPerEvent),
];

/// Quantities of a request or an event.
const OF_A_REQUEST: &[(&str, Quantity)] = &[
    ("ttft", Quantity::Ttft),
    ("first_output", Quantity::FirstOutput),
    ("e2e", Quantity::E2e),
    ("tpot", Quantity::Tpot),
    ("dispatch_lag", Quantity::DispatchLag),
    ("admission_wait", Quantity::AdmissionWait),
    ("gap", Quantity::Gap),
];

const STATS: &[(&str, Stat)] = &[
    ("p50", Stat::P50),
    ("p95", Stat::P95),
    ("p99", Stat::P99),
    ("mean", Stat::Mean),
];

/// Every name of a metric or a statistic.
pub(crate) const NAMES: &[&str] = &[
    "throughput",
    "output_throughput",
    "goodput",
    "attainment",
    "offered",
    "valid",
    "failed",
    "missing",
    "tokens_per_event",
    "ttft",
    "first_output",
    "e2e",
    "tpot",
    "dispatch_lag",
    "admission_wait",
    "gap",
    "p50",
    "p95",
    "p99",
    "mean",
];

/// Whether a name is a metric's or a statistic's. (`max` is both a function and a statistic, told
/// apart by what stands in its parentheses.)
pub(crate) fn is_metric_name(name: &str) -> bool {
    NAMES.contains(&name)
}

/// The quantity of a request that a name stands for.
fn quantity_of(name: &str) -> Option<Quantity> {
    OF_A_REQUEST
        .iter()
        .find(|(word, _)| *word == name)
        .map(|(_, quantity)| *quantity)
}

impl Evaluator<'_> {
    pub(super) fn metric(&self, phrase: &Phrase, locals: &Locals) -> Option<Figure> {
        let name = phrase.name.text.as_str();
        let stat = STATS.iter().find(|(word, _)| *word == name);
        if let Some((_, stat)) = stat {
            return self.statistic(*stat, phrase);
        }
        if quantity_of(name).is_some() {
            self.context.report(
                Diagnostic::new(
                    codes::E0317,
                    phrase.name.span,
                    format!("each request has its own `{name}`: a statistic over them is due"),
                )
                .help(format!(
                    "write `p95({})`",
                    self.context.text(phrase.name.span)
                )),
            );
            return None;
        }
        let (_, quantity) = OF_A_CELL.iter().find(|(word, _)| *word == name)?;
        if let Some(origin) = phrase.origin {
            self.context.report(Diagnostic::new(
                codes::E0313,
                origin.span,
                format!("`{name}` counts from no instant"),
            ));
            return None;
        }
        let within = match quantity {
            Quantity::Goodput | Quantity::Attainment => self.thresholds(phrase, locals)?,
            _ => {
                if let Some(args) = &phrase.args {
                    self.context.report(Diagnostic::new(
                        codes::E0315,
                        args.span,
                        format!("`{name}` takes no arguments"),
                    ));
                    return None;
                }
                Vec::new()
            }
        };
        let kind = match quantity {
            Quantity::Throughput | Quantity::Goodput => Kind::RATE,
            Quantity::OutputThroughput => Kind::of(Dimension {
                seconds: -1,
                bytes: 0,
                tokens: 1,
            }),
            Quantity::Attainment => Kind::SHARE,
            _ => Kind::NUMBER,
        };
        let measure = Measure {
            quantity: *quantity,
            stat: None,
            from: None,
            class: None,
            within,
        };
        self.with_place(measure, kind, phrase)
    }

    /// `max(e2e from intended)`: the function's name with one quantity of a request.
    pub(super) fn is_greatest_of_requests(args: Option<&Args>) -> bool {
        match args.map(|args| args.items.as_slice()) {
            Some([only]) => match &only.value {
                Written::Expr(Expr {
                    kind: ExprKind::Phrase(phrase),
                    ..
                }) => quantity_of(&phrase.name.text).is_some(),
                _ => false,
            },
            _ => false,
        }
    }

    pub(super) fn statistic(&self, stat: Stat, phrase: &Phrase) -> Option<Figure> {
        let name = &phrase.name;
        let items = phrase.args.as_ref().map_or(&[][..], |args| &args.items);
        let inner = match items {
            [only] => match &only.value {
                Written::Expr(Expr {
                    kind: ExprKind::Phrase(inner),
                    ..
                }) => Some(inner),
                _ => None,
            },
            _ => None,
        };
        let Some(inner) = inner else {
            self.context.report(
                Diagnostic::new(
                    codes::E0315,
                    name.span,
                    format!("`{name}` takes one quantity of a request"),
                )
                .help(format!("write `{name}(ttft from intended)`")),
            );
            return None;
        };
        if let Some(origin) = phrase.origin {
            let text = self.context.text(inner.name.span);
            self.context.report(
                Diagnostic::new(
                    codes::E0313,
                    origin.span,
                    "the origin belongs to the quantity",
                )
                .help(format!("write `{name}({text} from …)`")),
            );
            return None;
        }
        let (quantity, from) = self.quantity(inner)?;
        let measure = Measure {
            quantity,
            stat: Some(stat),
            from,
            class: None,
            within: Vec::new(),
        };
        let figure = self.with_place(measure, Kind::DURATION, inner)?;
        match self.narrowed(Value::Figure(figure), phrase)? {
            Value::Figure(figure) => Some(figure),
            _ => None,
        }
    }

    /// A quantity of a request with its origin.
    fn quantity(&self, phrase: &Phrase) -> Option<(Quantity, Option<Origin>)> {
        let name = &phrase.name;
        let Some(quantity) = quantity_of(&name.text) else {
            let mut diagnostic = Diagnostic::new(
                codes::E0210,
                name.span,
                format!("no quantity of a request is called `{name}`"),
            );
            let words = OF_A_REQUEST.iter().map(|(word, _)| *word);
            diagnostic = match nearest(&name.text, words.clone()) {
                Some(near) => {
                    diagnostic.help_edit(format!("did you mean `{near}`?"), name.span, near)
                }
                None => diagnostic.help(format!(
                    "there are: {}",
                    words.collect::<Vec<_>>().join(", ")
                )),
            };
            self.context.report(diagnostic);
            return None;
        };
        if quantity.needs_origin() && phrase.origin.is_none() {
            self.context.report(
                Diagnostic::new(
                    codes::E0313,
                    name.span,
                    format!("`{name}` does not say from when"),
                )
                .help("`from intended` includes the wait for a free client; `from sent` does not"),
            );
            return None;
        }
        if let (false, Some(origin)) = (quantity.needs_origin(), phrase.origin) {
            self.context.report(Diagnostic::new(
                codes::E0313,
                origin.span,
                format!("`{name}` lies between two instants of its own and takes no origin"),
            ));
            return None;
        }
        let origin = phrase.origin.map(|origin| match origin.value {
            WrittenOrigin::Intended => Origin::Intended,
            WrittenOrigin::Started => Origin::Started,
            WrittenOrigin::Sent => Origin::Sent,
        });
        Some((quantity, origin))
    }

    /// The conditions of `goodput` and `attainment`: `ttft from intended <= 1s`.
    fn thresholds(&self, phrase: &Phrase, locals: &Locals) -> Option<Vec<Threshold>> {
        let items = phrase.args.as_ref().map_or(&[][..], |args| &args.items);
        if items.is_empty() {
            self.context.report(
                Diagnostic::new(
                    codes::E0315,
                    phrase.name.span,
                    format!(
                        "`{}` needs at least one condition on a request",
                        phrase.name
                    ),
                )
                .help(format!("write `{}(ttft from intended <= 1s)`", phrase.name)),
            );
            return None;
        }
        let found: Vec<Option<Threshold>> = items
            .iter()
            .map(|arg| self.threshold(&arg.value, locals))
            .collect();
        let mut thresholds: Vec<Threshold> = found.into_iter().collect::<Option<_>>()?;
        thresholds.sort_by_key(|threshold| (threshold.quantity, threshold.from));
        Some(thresholds)
    }

    fn threshold(&self, written: &Written, locals: &Locals) -> Option<Threshold> {
        let form = match written {
            Written::Expr(Expr {
                kind: ExprKind::Binary { op, left, right },
                ..
            }) => match &left.kind {
                ExprKind::Phrase(phrase) if op.value.is_comparison() => Some((op, phrase, right)),
                _ => None,
            },
            _ => None,
        };
        let Some((op, phrase, right)) = form else {
            self.context.report(
                Diagnostic::new(
                    codes::E0318,
                    written.span(),
                    "a limit on a request has the form `ttft from intended <= 1s`",
                )
                .help("name the quantity on the left, the limit on the right"),
            );
            return None;
        };
        if op.value != BinaryOp::LessOrEqual {
            self.context.report(
                Diagnostic::new(
                    codes::E0318,
                    op.span,
                    format!(
                        "a limit on a request is inclusive, found `{}`",
                        op.value.symbol()
                    ),
                )
                .help_edit("write `<=`", op.span, "<="),
            );
            return None;
        }
        let (quantity, from) = self.quantity(phrase)?;
        if !matches!(
            quantity,
            Quantity::Ttft | Quantity::FirstOutput | Quantity::E2e | Quantity::Tpot
        ) {
            self.context.report(Diagnostic::new(
                codes::E0318,
                phrase.name.span,
                format!(
                    "`{}` is no limit of a request: `ttft`, `first_output`, `e2e` and `tpot` are",
                    phrase.name
                ),
            ));
            return None;
        }
        let bound = self.number(right, locals, Kind::DURATION, "a limit")?;
        if !bound.value.is_positive() {
            self.context.report(Diagnostic::new(
                codes::E0316,
                right.span,
                "a limit is above zero",
            ));
            return None;
        }
        Some(Threshold {
            quantity,
            from,
            at_most_s: bound.value,
        })
    }

    fn with_place(&self, measure: Measure, kind: Kind, phrase: &Phrase) -> Option<Figure> {
        let figure = Figure {
            node: Node::Measure(measure),
            kind: FigureKind::Number(kind),
            cell: None,
        };
        match self.narrowed(Value::Figure(figure), phrase)? {
            Value::Figure(figure) => Some(figure),
            _ => None,
        }
    }

    /// `of chat` and `in near` behind a value.
    pub(super) fn narrowed(&self, value: Value, phrase: &Phrase) -> Option<Value> {
        if phrase.of.is_none() && phrase.cell.is_none() {
            return Some(value);
        }
        let Value::Figure(mut figure) = value else {
            self.context.report(Diagnostic::new(
                codes::E0317,
                phrase.name.span,
                format!(
                    "`of` and `in` narrow a metric, and `{}` is {}",
                    phrase.name,
                    value.describe()
                ),
            ));
            return None;
        };
        match &phrase.of {
            Some(Subset::Turns(turns)) => {
                self.later(turns.span, "turns", "measure all requests, or a class");
                return None;
            }
            Some(Subset::Class(class)) => {
                if !self.scope.classes.contains(&class.text) {
                    self.context.unknown(
                        "request",
                        class,
                        self.scope.classes.iter().map(String::as_str),
                    );
                    return None;
                }
                let Node::Measure(measure) = &mut figure.node else {
                    self.context.report(Diagnostic::new(
                        codes::E0317,
                        class.span,
                        "`of` narrows one metric, not an expression of several",
                    ));
                    return None;
                };
                measure.class = Some(class.text.clone());
            }
            None => {}
        }
        if let Some(cell) = &phrase.cell {
            if let Some(first) = &figure.cell
                && first != cell
            {
                self.context.report(
                    Diagnostic::new(codes::E0317, cell.span, "the metric has a cell already")
                        .also(first.span, "here"),
                );
                return None;
            }
            figure.cell = Some(cell.clone());
        }
        Some(Value::Figure(figure))
    }
}
