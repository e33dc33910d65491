//! Families of hypotheses, compiled and checked against what the blocks can show.

mod feasible;
mod terms;

pub(crate) use feasible::level;

use assize_codes as codes;
use assize_plan::{
    CompareOp, Condition, Correction, Expect, Family, Hypothesis, Interval, Judgement, Measure,
    Node, Quantity,
};
use assize_study::ast::{Arm, Decision, Expectation, Named};
use assize_study::diagnostic::Diagnostic;
use assize_study::expr::{CellRef, Claim, Expr, Sentence};
use assize_study::source::Span;
use assize_units::Ratio;

use crate::cells::{Cells, Member, MemberLoad};
use crate::eval::{Evaluator, Figure, FigureKind, Kind, Number, Value};
use crate::merge::Entries;
use crate::sets::Set;
use feasible::{covered, feasible};
use terms::{correction, five_percent, interval, ninety_five_percent, test};

/// What rules refer to.
pub(crate) struct Judged<'s> {
    pub arms: &'s Entries<Arm>,
    pub cells: &'s Cells,
    pub sets: &'s [Set],
}

/// A family with what its feasibility stands on.
pub(crate) struct Decided {
    pub family: Family,
    /// For each hypothesis, the matched blocks.
    pub blocks: Vec<u32>,
}

/// Compiles one family; `None` where an error was reported.
pub(crate) fn family(
    eval: &Evaluator<'_>,
    judged: &Judged<'_>,
    entry: &Named<Decision>,
) -> Option<Decided> {
    let (name, item) = (&entry.name, &entry.item);
    let test = match &item.test {
        Some(call) => test(eval, call),
        None => {
            eval.context.report(
                Diagnostic::new(codes::E0602, name.span, format!("`{name}` has no `test`")).help(
                    "write `test: sign(ties = nonwins)`, or complete `paired-sign` by `like`",
                ),
            );
            None
        }
    };
    let correct = match &item.correct {
        Some(call) => correction(eval, call),
        None if item.hypotheses.len() <= 1 => Some(Correction::None {
            alpha: five_percent(),
        }),
        None => {
            eval.context.report(
                Diagnostic::new(
                    codes::E0602,
                    name.span,
                    format!("`{name}` has {} hypotheses and no `correct`", item.hypotheses.len()),
                )
                .help("write `correct: holm(5%)`, or `correct: none(5%)` where each stands for itself"),
            );
            None
        }
    };
    let interval = match &item.interval {
        Some(call) => interval(eval, call),
        None => Some(Interval::MedianOrderStatistic {
            at_least: ninety_five_percent(),
        }),
    };
    let valid: Vec<Option<Condition>> = item
        .valid
        .iter()
        .map(|expr| condition(eval, judged, expr))
        .collect();
    let hypotheses: Vec<Option<(Hypothesis, u32)>> = item
        .hypotheses
        .iter()
        .map(|sentence| hypothesis(eval, judged, sentence))
        .collect();
    let valid: Option<Vec<Condition>> = valid.into_iter().collect();
    let hypotheses: Option<Vec<(Hypothesis, u32)>> = hypotheses.into_iter().collect();
    let (test, correct, interval, valid, hypotheses) =
        (test?, correct?, interval?, valid?, hypotheses?);
    if hypotheses.is_empty() {
        eval.context.report(
            Diagnostic::new(
                codes::E0602,
                name.span,
                format!("`{name}` has no hypotheses"),
            )
            .help("write a sentence: `a beats b on throughput in busy`"),
        );
        return None;
    }
    let (hypotheses, blocks): (Vec<Hypothesis>, Vec<u32>) = hypotheses.into_iter().unzip();
    let spans: Vec<Span> = item
        .hypotheses
        .iter()
        .map(|sentence| sentence.span)
        .collect();
    feasible(eval, correct, &blocks, &spans)?;
    covered(
        eval,
        interval,
        &blocks,
        item.interval.as_ref().map_or(name.span, |call| call.span),
    );
    Some(Decided {
        family: Family {
            name: name.text.clone(),
            test,
            correct,
            interval,
            valid,
            hypotheses,
            expect: item.expect.as_ref().map(|expect| match expect.value {
                Expectation::AllSupported => Expect::AllSupported,
                Expectation::NoneSupported => Expect::NoneSupported,
            }),
            discloses: item
                .discloses
                .as_ref()
                .or(item.scope.as_ref())
                .map(|text| text.value.clone()),
        },
        blocks,
    })
}

fn condition(eval: &Evaluator<'_>, judged: &Judged<'_>, expr: &Expr) -> Option<Condition> {
    let figure = condition_figure(eval, expr)?;
    let cell = match &figure.cell {
        None => None,
        Some(reference) => Some(run_cell(eval, judged, reference, &[])?.0.name.clone()),
    };
    Some(Condition {
        text: eval.context.text(expr.span),
        cell,
        node: figure.node,
    })
}

fn condition_figure(eval: &Evaluator<'_>, expr: &Expr) -> Option<Figure> {
    match eval.expr(expr, &[])? {
        Value::Figure(figure) if figure.kind == FigureKind::Condition => Some(figure),
        other => {
            eval.context.report(
                Diagnostic::new(
                    codes::E0607,
                    expr.span,
                    format!("a condition is due here, found {}", other.describe()),
                )
                .help("compare it with something: `failed == 0`"),
            );
            None
        }
    }
}

fn hypothesis(
    eval: &Evaluator<'_>,
    judged: &Judged<'_>,
    sentence: &Sentence,
) -> Option<(Hypothesis, u32)> {
    let candidate = judged.arms.find(eval.context, &sentence.candidate);
    let (control, figure, judgement) = match &sentence.claim {
        Claim::Beats {
            control,
            metric,
            gain,
        } => {
            let gain = gain.as_ref().map(|gain| margin(eval, gain));
            let figure = directed(eval, metric);
            let median_gain = match gain {
                None => None,
                Some(gain) => Some(gain?),
            };
            (Some(control), figure?, Judgement::Beats { median_gain })
        }
        Claim::BeatsBy {
            control,
            margin: by,
            metric,
        } => {
            let by = margin(eval, by);
            let figure = directed(eval, metric);
            (Some(control), figure?, Judgement::BeatsBy { margin: by? })
        }
        Claim::KeepsWithin {
            margin: by,
            control,
            metric,
        } => {
            let by = margin(eval, by);
            let figure = directed(eval, metric);
            (Some(control), figure?, Judgement::Keeps { within: by? })
        }
        Claim::Holds { condition } => {
            let (figure, judgement) = held(eval, condition)?;
            (None, figure, judgement)
        }
    };
    let control_entry = match control {
        Some(control) => Some(judged.arms.find(eval.context, control)?),
        None => None,
    };
    let candidate = candidate?;
    if let Some(control) = control_entry
        && control.name.text == candidate.name.text
    {
        eval.context.report(
            Diagnostic::new(
                codes::E0603,
                sentence.span,
                format!("`{}` is compared with itself", candidate.name),
            )
            .help("for an A/A study give the arm a second name: `same_as:`"),
        );
        return None;
    }
    let measure = figure.as_measure()?.clone();
    let Some(reference) = &figure.cell else {
        eval.context.report(
            Diagnostic::new(
                codes::E0603,
                sentence.span,
                "the hypothesis does not say in which cell",
            )
            .help("add `in` and a cell behind the metric"),
        );
        return None;
    };
    let mut arms = vec![candidate.name.text.as_str()];
    arms.extend(control_entry.map(|control| control.name.text.as_str()));
    let (member, blocks) = run_cell(eval, judged, reference, &arms)?;
    class_is_sent(eval, &measure, member, sentence)?;
    warn_throughput(eval, &measure, member, sentence);
    let hypothesis = Hypothesis {
        text: eval.context.text(sentence.span),
        candidate: candidate.name.text.clone(),
        control: control_entry.map(|control| control.name.text.clone()),
        measure,
        cell: member.name.clone(),
        judgement,
    };
    Some((hypothesis, blocks))
}

fn margin(eval: &Evaluator<'_>, expr: &Expr) -> Option<Ratio> {
    let number: Number = eval.number(expr, &[], Kind::SHARE, "a margin")?;
    if number.value.is_negative() {
        eval.context.report(Diagnostic::new(
            codes::E0316,
            expr.span,
            "a margin is not below 0%",
        ));
        return None;
    }
    Some(number.value)
}

/// A metric with a direction.
fn directed(eval: &Evaluator<'_>, expr: &Expr) -> Option<Figure> {
    let figure = match eval.expr(expr, &[])? {
        Value::Figure(figure) if figure.as_measure().is_some() => figure,
        other => {
            eval.context.report(
                Diagnostic::new(
                    codes::E0603,
                    expr.span,
                    format!(
                        "a hypothesis speaks of one metric, found {}",
                        other.describe()
                    ),
                )
                .help("write `throughput in busy` or `p95(e2e from intended) in near`"),
            );
            return None;
        }
    };
    let direction = figure.as_measure()?.quantity.higher_is_better();
    if direction.is_none() {
        eval.context.report(
            Diagnostic::new(
                codes::E0603,
                expr.span,
                format!("`{}` has no better or worse", eval.context.text(expr.span)),
            )
            .help("make it a condition: `valid: [failed == 0]`, or `… holds failed in near == 0`"),
        );
        return None;
    }
    Some(figure)
}

/// `M in C >= V` with the metric on either side.
fn held(eval: &Evaluator<'_>, expr: &Expr) -> Option<(Figure, Judgement)> {
    let figure = condition_figure(eval, expr)?;
    let parts = match figure.node {
        Node::Compare(op, left, right) => match (*left, *right) {
            (Node::Measure(measure), Node::Value(value)) => Some((measure, op, value)),
            (Node::Value(value), Node::Measure(measure)) => Some((measure, mirrored(op), value)),
            _ => None,
        },
        _ => None,
    };
    let Some((measure, op, value)) = parts else {
        eval.context.report(
            Diagnostic::new(
                codes::E0607,
                expr.span,
                "`holds` compares one metric with one value",
            )
            .help("write `mine holds attainment(ttft from intended <= 2s) in steady >= 95%`"),
        );
        return None;
    };
    let figure = Figure {
        node: Node::Measure(measure),
        kind: FigureKind::Condition,
        cell: figure.cell,
    };
    Some((figure, Judgement::Holds { op, value }))
}

fn mirrored(op: CompareOp) -> CompareOp {
    match op {
        CompareOp::Lt => CompareOp::Gt,
        CompareOp::Le => CompareOp::Ge,
        CompareOp::Ge => CompareOp::Le,
        CompareOp::Gt => CompareOp::Lt,
        same @ (CompareOp::Eq | CompareOp::Ne) => same,
    }
}

/// The cell of a reference and the blocks that run it on all of `arms`.
fn run_cell<'j>(
    eval: &Evaluator<'_>,
    judged: &Judged<'j>,
    reference: &CellRef,
    arms: &[&str],
) -> Option<(&'j Member, u32)> {
    let member = judged.cells.one(eval, reference)?;
    let has_cell = |set: &&Set| set.cells.iter().any(|cell| cell.name == member.name);
    let blocks: u32 = judged
        .sets
        .iter()
        .filter(|set| !set.excluded && has_cell(set))
        .filter(|set| arms.iter().all(|arm| set.runs(&member.name, arm)))
        .map(|set| set.blocks)
        .sum();
    if blocks > 0 {
        return Some((member, blocks));
    }
    // A study whose sets have errors of their own says nothing about what they run.
    if judged.sets.is_empty() {
        return None;
    }
    let on = match arms {
        [] => String::new(),
        [only] => format!(" on `{only}`"),
        [first, second, ..] => format!(" on both `{first}` and `{second}`"),
    };
    let mut diagnostic = Diagnostic::new(
        codes::E0402,
        reference.span,
        format!("no block runs `{}`{on}", member.name),
    );
    for set in judged.sets.iter().filter(has_cell) {
        let excluded = if set.excluded { " and is excluded" } else { "" };
        diagnostic = diagnostic.also(
            set.span,
            format!(
                "`{}` runs it on {}{excluded}",
                set.name,
                set.arms.join(", ")
            ),
        );
    }
    eval.context
        .report(diagnostic.help("add the cell to a block set that runs these arms"));
    None
}

fn class_is_sent(
    eval: &Evaluator<'_>,
    measure: &Measure,
    member: &Member,
    sentence: &Sentence,
) -> Option<()> {
    let names: Vec<&str> = member
        .classes
        .iter()
        .map(|(class, _)| class.text.as_str())
        .collect();
    match &measure.class {
        Some(class) if !names.contains(&class.as_str()) => {
            eval.context.report(
                Diagnostic::new(
                    codes::E0603,
                    sentence.span,
                    format!("`{}` sends no `{class}`", member.name),
                )
                .help(format!("it sends `{}`", names.join("`, `"))),
            );
            return None;
        }
        None if names.len() > 1 && measure.quantity.needs_stat() => {
            eval.context.report(
                Diagnostic::new(
                    codes::W0606,
                    sentence.span,
                    format!(
                        "the statistic in `{}` pools {}",
                        member.name,
                        names.join(" and ")
                    ),
                )
                .help(format!("add `of {}` behind the metric", names[0])),
            );
        }
        _ => {}
    }
    Some(())
}

fn warn_throughput(eval: &Evaluator<'_>, measure: &Measure, member: &Member, sentence: &Sentence) {
    let is_rate = matches!(
        measure.quantity,
        Quantity::Throughput | Quantity::OutputThroughput
    );
    if is_rate && matches!(member.load, MemberLoad::Open { .. }) {
        eval.context.report(
            Diagnostic::new(
                codes::W0605,
                sentence.span,
                format!(
                    "`{}` has an open load: below saturation equal load gives equal throughput",
                    member.name
                ),
            )
            .also(
                member.load_span,
                "the load is offered here, whatever the server does",
            )
            .help("compare throughput in a closed loop, latency in an open one"),
        );
    }
}
