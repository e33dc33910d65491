//! Operators and functions over numbers and figures.

use assize_codes as codes;
use assize_plan::{CompareOp, Node};
use assize_study::diagnostic::Diagnostic;
use assize_study::expr::{Args, BinaryOp, Expr, Name};
use assize_study::source::Span;
use assize_units::{Ratio, RatioError};

use super::{Evaluator, Figure, FigureKind, Kind, Locals, Number, Value};

type Operand<'e> = (&'e Expr, Value);

impl Evaluator<'_> {
    pub(super) fn binary(
        &self,
        op: BinaryOp,
        left: Operand<'_>,
        right: Operand<'_>,
        span: Span,
    ) -> Option<Value> {
        match op {
            BinaryOp::And | BinaryOp::Or => self.logic(op, left, right),
            BinaryOp::Add | BinaryOp::Subtract => self.sum(op, left, right, span),
            BinaryOp::Multiply | BinaryOp::Divide => self.product(op, left, right, span),
            _ => self.comparison(op, left, right, span),
        }
    }

    pub(super) fn negate(&self, value: Value, span: Span) -> Option<Value> {
        match value {
            Value::Number(number) => Some(Value::Number(Number {
                value: number.value.neg(),
                ..number
            })),
            other => {
                self.context.report(Diagnostic::new(
                    codes::E0317,
                    span,
                    format!("`-` stands before a number, found {}", other.describe()),
                ));
                None
            }
        }
    }

    fn logic(&self, op: BinaryOp, left: Operand<'_>, right: Operand<'_>) -> Option<Value> {
        let sides = [left, right].map(|(expr, value)| match value {
            Value::Figure(figure) if figure.kind == FigureKind::Condition => Some(figure),
            other => {
                self.context.report(
                    Diagnostic::new(
                        codes::E0317,
                        expr.span,
                        format!(
                            "`{}` joins conditions, found {}",
                            op.symbol(),
                            other.describe()
                        ),
                    )
                    .help("compare it with something: `failed == 0`"),
                );
                None
            }
        });
        let [Some(left), Some(right)] = sides else {
            return None;
        };
        let cell = self.one_cell(&left, &right)?;
        let (a, b) = (Box::new(left.node), Box::new(right.node));
        Some(Value::Figure(Figure {
            node: if op == BinaryOp::And {
                Node::And(a, b)
            } else {
                Node::Or(a, b)
            },
            kind: FigureKind::Condition,
            cell,
        }))
    }

    fn sum(
        &self,
        op: BinaryOp,
        left: Operand<'_>,
        right: Operand<'_>,
        span: Span,
    ) -> Option<Value> {
        let (a, b) = (self.kind_of(&left)?, self.kind_of(&right)?);
        if a.share != b.share {
            let (percent, other) = if a.share {
                (&left, &right)
            } else {
                (&right, &left)
            };
            return self.percent_of_what(op, percent, other, span);
        }
        if a != b {
            return self.disagree(
                if op == BinaryOp::Add {
                    "add"
                } else {
                    "subtract"
                },
                &left,
                &right,
                span,
            );
        }
        let exact = |x: Ratio, y: Ratio| {
            if op == BinaryOp::Add {
                x.add(y)
            } else {
                x.sub(y)
            }
        };
        let node = |x, y| {
            if op == BinaryOp::Add {
                Node::Add(x, y)
            } else {
                Node::Sub(x, y)
            }
        };
        self.combine(left.1, right.1, a, span, exact, node)
    }

    fn product(
        &self,
        op: BinaryOp,
        left: Operand<'_>,
        right: Operand<'_>,
        span: Span,
    ) -> Option<Value> {
        let (a, b) = (self.kind_of(&left)?, self.kind_of(&right)?);
        let divides = op == BinaryOp::Divide;
        let dimension = if divides {
            a.dimension.over(b.dimension)
        } else {
            a.dimension.times(b.dimension)
        };
        let Some(dimension) = dimension else {
            self.context.report(Diagnostic::new(
                codes::E0316,
                span,
                "the unit has too great a power",
            ));
            return None;
        };
        // A percent of a number is a number; a percent of a percent, or a part of one, is a percent.
        let share = a.share && if divides { b == Kind::NUMBER } else { b.share };
        let kind = Kind { dimension, share };
        let exact = |x: Ratio, y: Ratio| if divides { x.div(y) } else { x.mul(y) };
        let node = |x, y| {
            if divides {
                Node::Div(x, y)
            } else {
                Node::Mul(x, y)
            }
        };
        self.combine(left.1, right.1, kind, span, exact, node)
    }

    fn comparison(
        &self,
        op: BinaryOp,
        left: Operand<'_>,
        right: Operand<'_>,
        span: Span,
    ) -> Option<Value> {
        let (a, b) = (self.kind_of(&left)?, self.kind_of(&right)?);
        // A share may be compared with a plain number: `attainment(…) >= 0.95`.
        let plain =
            |kind: Kind, value: &Value| kind == Kind::NUMBER && matches!(value, Value::Number(_));
        let alike = a == b || (a.share && plain(b, &right.1)) || (b.share && plain(a, &left.1));
        if !alike && a.share != b.share && a.dimension == b.dimension {
            let (percent, other) = if a.share {
                (&left, &right)
            } else {
                (&right, &left)
            };
            return self.percent_of_what(op, percent, other, span);
        }
        if !alike {
            return self.disagree("compare", &left, &right, span);
        }
        let (Some(x), Some(y)) = (into_figure(left.1, a), into_figure(right.1, b)) else {
            return None;
        };
        if matches!((&x.node, &y.node), (Node::Value(_), Node::Value(_))) {
            self.context.report(
                Diagnostic::new(
                    codes::E0317,
                    span,
                    "both sides are known before the run: nothing is left to find out",
                )
                .help("compare a metric with a value: `failed == 0`"),
            );
            return None;
        }
        let cell = self.one_cell(&x, &y)?;
        Some(Value::Figure(Figure {
            node: Node::Compare(compare_op(op)?, Box::new(x.node), Box::new(y.node)),
            kind: FigureKind::Condition,
            cell,
        }))
    }

    /// min, max, floor, ceil, floor_to, ceil_to.
    pub(super) fn function(
        &self,
        name: &Name,
        args: Option<&Args>,
        span: Span,
        locals: &Locals,
    ) -> Option<Value> {
        match name.text.as_str() {
            "min" | "max" => self.extreme(name, args, span, locals),
            "floor" | "ceil" => {
                let bound = self.bind(name, args, span, &["value"], 1)?;
                let written = bound[0]?;
                let number = self.argument(written, locals, Kind::NUMBER, &format!("`{name}`"))?;
                let value = if name.text == "floor" {
                    number.value.floor()
                } else {
                    number.value.ceil()
                };
                Some(Value::Number(Number {
                    value: Ratio::whole(value),
                    kind: Kind::NUMBER,
                    origin: span,
                }))
            }
            _ => {
                let bound = self.bind(name, args, span, &["value", "step"], 2)?;
                let (value, step) = (bound[0]?, bound[1]?);
                let Value::Number(number) = self.written(value, locals)? else {
                    self.context.report(Diagnostic::new(
                        codes::E0312,
                        value.span(),
                        format!("`{name}` needs a number that is known before the run"),
                    ));
                    return None;
                };
                let step_number =
                    self.argument(step, locals, number.kind, &format!("the step of `{name}`"))?;
                if !step_number.value.is_positive() {
                    self.context.report(Diagnostic::new(
                        codes::E0316,
                        step.span(),
                        format!("the step of `{name}` is above zero"),
                    ));
                    return None;
                }
                let rounded = if name.text == "floor_to" {
                    number.value.floor_to(step_number.value)
                } else {
                    number.value.ceil_to(step_number.value)
                };
                let value = self.exact(rounded, span)?;
                Some(Value::Number(Number {
                    value,
                    kind: number.kind,
                    origin: span,
                }))
            }
        }
    }

    fn extreme(
        &self,
        name: &Name,
        args: Option<&Args>,
        span: Span,
        locals: &Locals,
    ) -> Option<Value> {
        let items = args.map_or(&[][..], |args| &args.items);
        let mut best: Option<(Span, Value)> = None;
        for arg in items {
            if let Some(named) = &arg.name {
                self.context.report(Diagnostic::new(
                    codes::E0315,
                    named.span,
                    format!("`{name}` has no argument `{named}`"),
                ));
                return None;
            }
            let value = self.written(&arg.value, locals)?;
            let here = arg.value.span();
            best = Some(match best {
                None => (here, value),
                Some((first, best)) => {
                    let as_expr = |span| Expr {
                        kind: assize_study::expr::ExprKind::Phrase(Box::new(plain(name))),
                        span,
                    };
                    let (x, y) = (as_expr(first), as_expr(here));
                    let (left, right) = ((&x, best), (&y, value));
                    let (a, b) = (self.kind_of(&left)?, self.kind_of(&right)?);
                    if a != b {
                        return self.disagree("compare", &left, &right, span);
                    }
                    let is_min = name.text == "min";
                    let exact = |x: Ratio, y: Ratio| Ok(if is_min { x.min(y) } else { x.max(y) });
                    let node = |x, y| {
                        if is_min {
                            Node::Min(x, y)
                        } else {
                            Node::Max(x, y)
                        }
                    };
                    (first, self.combine(left.1, right.1, a, span, exact, node)?)
                }
            });
        }
        if best.is_none() {
            self.context.report(Diagnostic::new(
                codes::E0315,
                span,
                format!("`{name}` needs at least one value"),
            ));
        }
        best.map(|(_, value)| value)
    }

    fn combine(
        &self,
        left: Value,
        right: Value,
        kind: Kind,
        span: Span,
        exact: impl Fn(Ratio, Ratio) -> Result<Ratio, RatioError>,
        node: impl Fn(Box<Node>, Box<Node>) -> Node,
    ) -> Option<Value> {
        if let (Value::Number(a), Value::Number(b)) = (&left, &right) {
            let value = self.exact(exact(a.value, b.value), span)?;
            return Some(Value::Number(Number {
                value,
                kind,
                origin: span,
            }));
        }
        let (Some(a), Some(b)) = (into_figure(left, kind), into_figure(right, kind)) else {
            return None;
        };
        let cell = self.one_cell(&a, &b)?;
        Some(Value::Figure(Figure {
            node: node(Box::new(a.node), Box::new(b.node)),
            kind: FigureKind::Number(kind),
            cell,
        }))
    }

    fn exact(&self, result: Result<Ratio, RatioError>, span: Span) -> Option<Ratio> {
        match result {
            Ok(value) => Some(value),
            Err(error) => {
                self.context.report(Diagnostic::new(
                    codes::E0316,
                    span,
                    format!("`{}` has no value: {error}", self.context.text(span)),
                ));
                None
            }
        }
    }

    /// The kind of a number or of a figure that is one.
    fn kind_of(&self, (expr, value): &Operand<'_>) -> Option<Kind> {
        match value {
            Value::Number(number) => Some(number.kind),
            Value::Figure(Figure {
                kind: FigureKind::Number(kind),
                ..
            }) => Some(*kind),
            other => {
                self.context.report(Diagnostic::new(
                    codes::E0317,
                    expr.span,
                    format!("a number is due here, found {}", other.describe()),
                ));
                None
            }
        }
    }

    /// The cell of two figures; `None` inside where neither names one.
    #[expect(clippy::option_option, reason = "the outer one is a reported error")]
    fn one_cell(
        &self,
        left: &Figure,
        right: &Figure,
    ) -> Option<Option<assize_study::expr::CellRef>> {
        match (&left.cell, &right.cell) {
            (Some(a), Some(b)) if a != b => {
                self.context.report(
                    Diagnostic::new(
                        codes::E0317,
                        b.span,
                        "figures of two cells do not meet in one expression",
                    )
                    .also(a.span, "the other cell"),
                );
                None
            }
            (Some(cell), _) | (None, Some(cell)) => Some(Some(cell.clone())),
            (None, None) => Some(None),
        }
    }

    fn percent_of_what(
        &self,
        op: BinaryOp,
        percent: &Operand<'_>,
        other: &Operand<'_>,
        span: Span,
    ) -> Option<Value> {
        let (what, base) = (
            self.context.text(percent.0.span),
            self.context.text(other.0.span),
        );
        let whole = self.context.text(span);
        let mut diagnostic = Diagnostic::new(
            codes::E0311,
            span,
            format!("`{whole}` does not say of what"),
        );
        let share = match &percent.1 {
            Value::Number(number) => Some(number.value),
            _ => None,
        };
        let mended = match (op, share) {
            (BinaryOp::Add, Some(share)) => Ratio::ONE.add(share).ok(),
            (BinaryOp::Subtract, Some(share)) => Ratio::ONE.sub(share).ok(),
            _ => None,
        };
        diagnostic = match mended {
            Some(share) if matches!(op, BinaryOp::Add | BinaryOp::Subtract) => {
                let mended = format!("{} * {base}", super::show(share, Kind::SHARE));
                diagnostic.help_edit(format!("write `{mended}`"), span, mended)
            }
            _ => diagnostic.help(format!("a percent multiplies: `{what} * offered`")),
        };
        self.context.report(diagnostic);
        None
    }

    fn disagree(
        &self,
        verb: &str,
        left: &Operand<'_>,
        right: &Operand<'_>,
        span: Span,
    ) -> Option<Value> {
        let side = |(expr, value): &Operand<'_>| {
            let kind = match value {
                Value::Number(number) => number.kind,
                Value::Figure(Figure {
                    kind: FigureKind::Number(kind),
                    ..
                }) => *kind,
                _ => Kind::NUMBER,
            };
            let text = self.context.text(expr.span);
            let unit = kind.unit();
            if unit.is_empty() || text.ends_with(unit.trim_start_matches('1')) {
                format!("{} (`{text}`)", kind.describe())
            } else {
                format!("{} (`{text}`, {unit})", kind.describe())
            }
        };
        let mut diagnostic = Diagnostic::new(
            codes::E0310,
            span,
            format!("cannot {verb} {} and {}", side(left), side(right)),
        );
        for (expr, value) in [left, right] {
            if let Value::Number(number) = value
                && number.origin != expr.span
            {
                diagnostic = diagnostic.also(
                    number.origin,
                    format!("`{}` gets its measure here", self.context.text(expr.span)),
                );
            }
        }
        self.context.report(diagnostic);
        None
    }
}

fn plain(name: &Name) -> assize_study::expr::Phrase {
    assize_study::expr::Phrase {
        name: name.clone(),
        args: None,
        origin: None,
        of: None,
        cell: None,
    }
}

fn into_figure(value: Value, kind: Kind) -> Option<Figure> {
    match value {
        Value::Number(number) => Some(Figure {
            node: Node::Value(number.value),
            kind: FigureKind::Number(kind),
            cell: None,
        }),
        Value::Figure(figure) => Some(figure),
        Value::Load(_) => None,
    }
}

fn compare_op(op: BinaryOp) -> Option<CompareOp> {
    Some(match op {
        BinaryOp::LessOrEqual => CompareOp::Le,
        BinaryOp::GreaterOrEqual => CompareOp::Ge,
        BinaryOp::Equal => CompareOp::Eq,
        BinaryOp::NotEqual => CompareOp::Ne,
        BinaryOp::Less => CompareOp::Lt,
        BinaryOp::Greater => CompareOp::Gt,
        _ => return None,
    })
}
