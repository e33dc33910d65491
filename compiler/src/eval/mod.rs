//! Expressions: names, units, exact arithmetic.
//!
//! Evaluation is by value: what a formula stands for is known now (an exact number, a load), or it
//! is a figure that only a run gives. Every type error is found by evaluating.

mod arithmetic;
mod measure;
mod scope;
mod value;

pub(crate) use measure::is_metric_name;
pub(crate) use scope::Scope;
pub(crate) use value::{Figure, FigureKind, Kind, Number, Value, show};

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;

use assize_codes as codes;
use assize_plan::Stat;
use assize_study::ast::Let;
use assize_study::diagnostic::Diagnostic;
use assize_study::expr::{Args, Expr, ExprKind, Name, Param, ParamType, Phrase, Value as Written};
use assize_study::source::Span;
use assize_study::suggest::nearest;
use assize_units::{DurNs, Ratio};

use crate::context::Context;

/// Names that are bound in one place: a cell's parameters, a function's arguments.
pub(crate) type Locals = [(String, Value)];

/// Steps that the formulas of one study may take.
const MAX_STEPS: u32 = 200_000;
/// Names that stand on one another.
const MAX_NAMES: usize = 32;
/// Formulas within formulas, through names too.
const MAX_DEPTH: u32 = 96;
/// The greatest duration that a plan can hold, 2^53 − 1 ns.
const MAX_NS: i128 = (1 << 53) - 1;

/// Functions of the language over numbers.
pub(crate) const FUNCTIONS: &[&str] = &["min", "max", "floor", "ceil", "floor_to", "ceil_to"];
/// Functions of the language that this build cannot execute.
const LATER: &[(&str, &str)] = &[
    (
        "pilot",
        "run the pilot as a study of its own, and write its figure under `let:`",
    ),
    (
        "spread",
        "remove it: the report shows the least and the greatest figure of the blocks",
    ),
    ("worse", "remove it"),
    ("ln", "write the number: it would leave the exact numbers"),
    ("exp", "write the number: it would leave the exact numbers"),
    ("sqrt", "write the number: it would leave the exact numbers"),
];

/// Evaluates the formulas of one study.
pub(crate) struct Evaluator<'a> {
    pub context: &'a Context<'a>,
    pub scope: &'a Scope<'a>,
    known: RefCell<BTreeMap<&'a str, Option<Value>>>,
    under_way: RefCell<Vec<String>>,
    steps: Cell<u32>,
    depth: Cell<u32>,
    /// Whether a limit on depth or steps was reported: one is enough, whatever else stands on it.
    is_deep: Cell<bool>,
}

impl<'a> Evaluator<'a> {
    pub fn new(context: &'a Context<'a>, scope: &'a Scope<'a>) -> Evaluator<'a> {
        Evaluator {
            context,
            scope,
            known: RefCell::default(),
            under_way: RefCell::default(),
            steps: Cell::new(0),
            depth: Cell::new(0),
            is_deep: Cell::new(false),
        }
    }

    /// The value of an expression.
    pub fn expr(&self, expr: &Expr, locals: &Locals) -> Option<Value> {
        if !self.step(expr.span) {
            return None;
        }
        if self.depth.get() == MAX_DEPTH {
            self.deep(
                expr.span,
                format!("the formulas nest deeper than {MAX_DEPTH} levels"),
            );
            return None;
        }
        self.depth.set(self.depth.get() + 1);
        let value = self.kind(expr, locals);
        self.depth.set(self.depth.get() - 1);
        value
    }

    fn kind(&self, expr: &Expr, locals: &Locals) -> Option<Value> {
        match &expr.kind {
            ExprKind::Quantity(quantity) => Some(Value::Number(Number {
                value: quantity.base,
                kind: Kind {
                    dimension: quantity.dimension(),
                    share: quantity.is_percent(),
                },
                origin: expr.span,
            })),
            ExprKind::Phrase(phrase) => self.phrase(phrase, expr.span, locals),
            ExprKind::Highest(highest) => {
                self.later(
                    highest.param.span,
                    "highest",
                    "write the hypothesis for one member of the family",
                );
                None
            }
            ExprKind::Negate(inner) => {
                let value = self.expr(inner, locals)?;
                self.negate(value, expr.span)
            }
            ExprKind::Binary { op, left, right } => {
                let left_value = self.expr(left, locals);
                let right_value = self.expr(right, locals);
                self.binary(
                    op.value,
                    (left, left_value?),
                    (right, right_value?),
                    expr.span,
                )
            }
        }
    }

    /// The value of what stands under a name of `let`, or of an argument.
    pub fn written(&self, written: &Written, locals: &Locals) -> Option<Value> {
        match written {
            Written::Expr(expr) => self.expr(expr, locals),
            Written::Load(load) => self.load(load, locals).map(Value::Load),
        }
    }

    /// A number of a kind. `what` needs it: `a load`, `` `settle` ``.
    pub fn number(&self, expr: &Expr, locals: &Locals, want: Kind, what: &str) -> Option<Number> {
        let value = self.expr(expr, locals)?;
        self.as_number(value, want, what, expr.span)
    }

    /// A written argument as a number of a kind.
    pub fn argument(
        &self,
        written: &Written,
        locals: &Locals,
        want: Kind,
        what: &str,
    ) -> Option<Number> {
        let value = self.written(written, locals)?;
        self.as_number(value, want, what, written.span())
    }

    fn as_number(&self, value: Value, want: Kind, what: &str, span: Span) -> Option<Number> {
        match value {
            Value::Number(number) if number.kind == want => Some(number),
            Value::Number(number) => {
                let mut diagnostic = Diagnostic::new(
                    codes::E0312,
                    span,
                    format!(
                        "{what} needs {}, found {} {}",
                        want.describe(),
                        number.kind.describe().replacen("a ", "the ", 1),
                        number.show()
                    ),
                );
                if number.kind == Kind::NUMBER && number.origin == span {
                    let mended = show(number.value, want);
                    diagnostic = diagnostic.help_edit(format!("write `{mended}`"), span, mended);
                } else if number.origin != span {
                    diagnostic = diagnostic.also(number.origin, "it gets its measure here");
                }
                self.context.report(diagnostic);
                None
            }
            other => {
                self.context.report(Diagnostic::new(
                    codes::E0312,
                    span,
                    format!(
                        "{what} needs {}, found {}",
                        want.describe(),
                        other.describe()
                    ),
                ));
                None
            }
        }
    }

    /// A whole number from `least` to `most`.
    pub fn count(
        &self,
        expr: &Expr,
        locals: &Locals,
        what: &str,
        least: u32,
        most: u32,
    ) -> Option<u32> {
        let number = self.number(expr, locals, Kind::NUMBER, what)?;
        self.whole(number.value, expr.span, what, least, most)
    }

    /// A whole number of tokens; a bare number is one too.
    pub fn tokens(&self, expr: &Expr, locals: &Locals, what: &str, most: u32) -> Option<u32> {
        let value = self.expr(expr, locals)?;
        let number = match value {
            Value::Number(number) if number.kind == Kind::NUMBER => number,
            other => self.as_number(other, Kind::TOKENS, what, expr.span)?,
        };
        self.whole(number.value, expr.span, what, 1, most)
    }

    pub fn whole(
        &self,
        value: Ratio,
        span: Span,
        what: &str,
        least: u32,
        most: u32,
    ) -> Option<u32> {
        if !value.is_whole() {
            let text = self.context.text(span);
            let mut diagnostic = Diagnostic::new(
                codes::E0314,
                span,
                format!("{what} must be whole: {text} is {value}"),
            );
            let mended = format!("ceil({text})");
            diagnostic = diagnostic.help_edit(format!("round it: `{mended}`"), span, mended);
            self.context.report(diagnostic);
            return None;
        }
        let found = u32::try_from(value.num())
            .ok()
            .filter(|n| (least..=most).contains(n));
        if found.is_none() {
            self.context.report(Diagnostic::new(
                codes::E0316,
                span,
                format!("{what} is from {least} to {most}, found {value}"),
            ));
        }
        found
    }

    /// A duration in whole nanoseconds, rounded down.
    pub fn duration(&self, expr: &Expr, locals: &Locals, what: &str) -> Option<DurNs> {
        let number = self.number(expr, locals, Kind::DURATION, what)?;
        let ns = number.value.mul(Ratio::whole(1_000_000_000)).ok();
        if let Some(ns) = ns
            && !ns.is_whole()
        {
            let written = self.context.text(expr.span);
            self.context.report(
                Diagnostic::new(
                    codes::E0314,
                    expr.span,
                    format!(
                        "{what} must be whole nanoseconds: {written} is {}",
                        number.show()
                    ),
                )
                .help(format!("round it: `floor_to({written}, 1ns)`")),
            );
            return None;
        }
        let found = ns
            .map(Ratio::floor)
            .filter(|ns| (0..=MAX_NS).contains(ns))
            .and_then(|ns| u64::try_from(ns).ok());
        if found.is_none() {
            self.context.report(Diagnostic::new(
                codes::E0316,
                expr.span,
                format!("{what} is from 0s to 104 days, found {}", number.show()),
            ));
        }
        found.map(DurNs)
    }

    /// The value of a name of `let` that is no function.
    pub fn named(&self, name: &str) -> Option<Value> {
        let (key, entry) = self.scope.lets.get_key_value(name)?;
        self.value_of(key, entry)
    }

    fn value_of(&self, key: &'a str, entry: &Let) -> Option<Value> {
        if let Some(known) = self.known.borrow().get(key) {
            return known.clone();
        }
        let value = self.within(&entry.key.name, || self.written(&entry.value, &[]));
        self.known.borrow_mut().insert(key, value.clone());
        value
    }

    /// Evaluates the body of a name, unless it stands on itself.
    fn within(&self, name: &Name, body: impl FnOnce() -> Option<Value>) -> Option<Value> {
        {
            let mut under_way = self.under_way.borrow_mut();
            if under_way.len() == MAX_NAMES {
                self.deep(
                    name.span,
                    format!("more than {MAX_NAMES} names stand on one another down to `{name}`"),
                );
                return None;
            }
            if under_way.contains(&name.text) {
                let path = format!("{} → {name}", under_way.join(" → "));
                self.context.report(
                    Diagnostic::new(
                        codes::E0217,
                        name.span,
                        format!("`{name}` stands on itself: {path}"),
                    )
                    .help("a formula may use names that are defined without it"),
                );
                return None;
            }
            under_way.push(name.text.clone());
        }
        let value = body();
        self.under_way.borrow_mut().pop();
        value
    }

    fn phrase(&self, phrase: &Phrase, span: Span, locals: &Locals) -> Option<Value> {
        let name = phrase.name.text.as_str();
        if is_metric_name(name) {
            return self.metric(phrase, locals).map(Value::Figure);
        }
        if crate::load::PROCESSES.contains(&name) {
            let load = Written::Expr(Expr {
                kind: ExprKind::Phrase(Box::new(phrase.clone())),
                span,
            })
            .as_load()?;
            return self.load(&load, locals).map(Value::Load);
        }
        if let Some((_, advice)) = LATER.iter().find(|(later, _)| *later == name) {
            self.later(phrase.name.span, name, advice);
            return None;
        }
        if name == "max" && Self::is_greatest_of_requests(phrase.args.as_ref()) {
            return self.statistic(Stat::Max, phrase).map(Value::Figure);
        }
        let value = if FUNCTIONS.contains(&name) {
            self.function(&phrase.name, phrase.args.as_ref(), span, locals)
        } else {
            self.name_or_call(phrase, span, locals)
        }?;
        self.narrowed(value, phrase)
    }

    fn name_or_call(&self, phrase: &Phrase, span: Span, locals: &Locals) -> Option<Value> {
        let name = &phrase.name;
        if let Some((_, value)) = locals.iter().find(|(local, _)| *local == name.text) {
            return Some(value.clone());
        }
        let Some((key, entry)) = self.scope.lets.get_key_value(name.text.as_str()) else {
            self.unknown(name, locals);
            return None;
        };
        if !entry.key.params.is_empty() {
            return self.call(entry, name, phrase.args.as_ref(), span, locals);
        }
        if let Some(args) = &phrase.args {
            self.context.report(
                Diagnostic::new(
                    codes::E0315,
                    args.span,
                    format!("`{name}` is a value and takes no arguments"),
                )
                .also(entry.key.span, "it is defined here"),
            );
            return None;
        }
        self.value_of(key, entry)
    }

    fn call(
        &self,
        entry: &Let,
        name: &Name,
        args: Option<&Args>,
        span: Span,
        locals: &Locals,
    ) -> Option<Value> {
        let params: Vec<&str> = entry
            .key
            .params
            .iter()
            .map(|param| param.name.text.as_str())
            .collect();
        let bound = self.bind(name, args, span, &params, params.len())?;
        let values: Vec<Option<(String, Value)>> = entry
            .key
            .params
            .iter()
            .zip(bound)
            .map(|(param, written)| {
                let value = self.parameter(param, name, written?, locals)?;
                Some((param.name.text.clone(), value))
            })
            .collect();
        let inner: Vec<(String, Value)> = values.into_iter().collect::<Option<_>>()?;
        self.within(&entry.key.name, || self.written(&entry.value, &inner))
    }

    /// An argument as the type of its parameter.
    fn parameter(
        &self,
        param: &Param,
        function: &Name,
        written: &Written,
        locals: &Locals,
    ) -> Option<Value> {
        let what = format!("`{}` of `{function}`", param.name);
        match param.ty.value {
            ParamType::Load => self.load_argument(written, locals, &what).map(Value::Load),
            ParamType::Metric => match self.written(written, locals)? {
                Value::Figure(figure) => Some(Value::Figure(figure)),
                other => {
                    self.context.report(Diagnostic::new(
                        codes::E0312,
                        written.span(),
                        format!("{what} needs a metric, found {}", other.describe()),
                    ));
                    None
                }
            },
            number => {
                let found = self.argument(written, locals, Kind::of_param(number)?, &what)?;
                if number == ParamType::Count {
                    self.whole(found.value, written.span(), &what, 0, u32::MAX)?;
                }
                Some(Value::Number(found))
            }
        }
    }

    /// The arguments of a call by the places of `params`; the first `required` must be there.
    pub fn bind<'e>(
        &self,
        name: &Name,
        args: Option<&'e Args>,
        span: Span,
        params: &[&str],
        required: usize,
    ) -> Option<Vec<Option<&'e Written>>> {
        let mut bound: Vec<Option<&'e Written>> = vec![None; params.len()];
        let wrong = |span: Span, text: String| {
            self.context.report(
                Diagnostic::new(codes::E0315, span, text)
                    .help(format!("`{name}` takes ({})", params.join(", "))),
            );
        };
        for (place, arg) in args.map_or(&[][..], |args| &args.items).iter().enumerate() {
            let place = match &arg.name {
                None => place,
                Some(wanted) => match params.iter().position(|param| *param == wanted.text) {
                    Some(place) => place,
                    None => {
                        wrong(wanted.span, format!("`{name}` has no argument `{wanted}`"));
                        return None;
                    }
                },
            };
            match bound.get_mut(place) {
                Some(slot @ None) => *slot = Some(&arg.value),
                Some(Some(_)) => {
                    wrong(
                        arg.value.span(),
                        format!("`{}` of `{name}` is given twice", params[place]),
                    );
                    return None;
                }
                None => {
                    wrong(
                        arg.value.span(),
                        format!("`{name}` has an argument too many"),
                    );
                    return None;
                }
            }
        }
        if let Some(missing) = bound.iter().take(required).position(Option::is_none) {
            wrong(span, format!("`{name}` needs `{}`", params[missing]));
            return None;
        }
        Some(bound)
    }

    /// Reports a part of the language that this build cannot execute.
    pub fn later(&self, span: Span, word: &str, advice: &str) {
        self.context.report(
            Diagnostic::new(
                codes::E0106,
                span,
                format!("`{word}` is not in this version of the language"),
            )
            .help(advice),
        );
    }

    fn unknown(&self, name: &Name, locals: &Locals) {
        let known = || {
            let local = locals.iter().map(|(name, _)| name.as_str());
            local.chain(self.scope.lets.keys().copied())
        };
        if let Some((left, right)) = dash_for_minus(&name.text, |part| {
            known().any(|known| known == part) || part.bytes().all(|byte| byte.is_ascii_digit())
        }) {
            let mended = format!("{left} - {right}");
            self.context.report(
                Diagnostic::new(
                    codes::E0215,
                    name.span,
                    format!("`{name}` is one name, and nothing is called that; `{left}` exists"),
                )
                .help_edit(
                    format!("subtract with spaces: `{mended}`"),
                    name.span,
                    mended,
                ),
            );
            return;
        }
        let mut diagnostic = Diagnostic::new(
            codes::E0210,
            name.span,
            format!("nothing is called `{name}` here"),
        );
        let builtin = FUNCTIONS
            .iter()
            .chain(crate::load::PROCESSES)
            .chain(measure::NAMES)
            .copied();
        if let Some(near) = nearest(&name.text, known().chain(builtin)) {
            diagnostic = diagnostic.help_edit(format!("did you mean `{near}`?"), name.span, near);
        } else {
            diagnostic = diagnostic
                .help("an expression sees the names of `let`, the cell's `for`, and the library");
        }
        self.context.report(diagnostic);
    }

    fn deep(&self, span: Span, message: String) {
        if !self.is_deep.replace(true) {
            self.context.report(
                Diagnostic::new(codes::E0113, span, message)
                    .help("write the formulas with fewer names between them"),
            );
        }
    }

    fn step(&self, span: Span) -> bool {
        let steps = self.steps.get() + 1;
        self.steps.set(steps.min(MAX_STEPS + 1));
        if steps == MAX_STEPS + 1 && !self.is_deep.replace(true) {
            self.context.report(Diagnostic::new(
                codes::E0316,
                span,
                format!("the formulas of a study take at most {MAX_STEPS} steps"),
            ));
        }
        steps <= MAX_STEPS
    }
}

/// `count-1` as `count` and `1`, where the left side is known and the right side is too.
fn dash_for_minus(name: &str, known: impl Fn(&str) -> bool) -> Option<(&str, &str)> {
    name.match_indices('-')
        .map(|(at, _)| (&name[..at], &name[at + 1..]))
        .find(|(left, right)| known(left) && known(right))
}
