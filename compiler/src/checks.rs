//! Checks of the whole: arms that differ, orders that are uneven, limits.

use std::collections::BTreeMap;

use assize_codes as codes;
use assize_plan::{Comparison, Limits};
use assize_study::ast::{Arm, Compare, Limits as WrittenLimits, Named, Section, Text};
use assize_study::diagnostic::Diagnostic;
use assize_study::expr::Expr;
use assize_study::source::Span;
use assize_units::{DurNs, Ratio, format_duration};

use crate::context::Context;
use crate::eval::{Evaluator, Kind};
use crate::merge::Entries;
use crate::plan::Assembly;
use crate::rules::Decided;
use crate::sets::Set;

/// The comparisons; arms that differ in more than is listed are reported.
pub(crate) fn comparisons(
    context: &Context<'_>,
    section: &Section<Compare>,
    arms: &Entries<Arm>,
) -> Vec<Comparison> {
    section
        .sorted()
        .into_iter()
        .filter_map(|entry| comparison(context, entry, arms))
        .collect()
}

fn comparison(
    context: &Context<'_>,
    entry: &Named<Compare>,
    arms: &Entries<Arm>,
) -> Option<Comparison> {
    let item = &entry.item;
    let found: Vec<Option<&Named<Arm>>> = item
        .arms
        .value
        .iter()
        .map(|name| arms.find(context, name))
        .collect();
    let found: Vec<&Named<Arm>> = found.into_iter().collect::<Option<_>>()?;
    let allowed: Vec<&str> = item
        .differ
        .value
        .iter()
        .map(|text| text.value.as_str())
        .collect();
    for text in &item.differ.value {
        let head = text.value.split('.').next().unwrap_or_default();
        if !KEYS.contains(&head) {
            context.report(
                Diagnostic::new(
                    codes::E0405,
                    text.span,
                    format!("`{}` is no key in which arms may differ", text.value),
                )
                .help(format!("there are: {}", KEYS.join(", "))),
            );
            return None;
        }
    }
    let permits = |key: &str| {
        allowed.iter().any(|allowed| {
            key == *allowed
                || key
                    .strip_prefix(allowed)
                    .is_some_and(|rest| rest.starts_with('.'))
        })
    };
    if let Some((first, rest)) = found.split_first() {
        let base = facts(&first.item);
        for other in rest {
            let facts = facts(&other.item);
            let keys: std::collections::BTreeSet<&String> =
                base.keys().chain(facts.keys()).collect();
            let surplus: Vec<&str> = keys
                .into_iter()
                .filter(|key| base.get(*key) != facts.get(*key) && !permits(key))
                .map(String::as_str)
                .collect();
            if !surplus.is_empty() {
                let listed = |keys: &[&str]| {
                    keys.iter()
                        .map(|key| format!("`{key}`"))
                        .collect::<Vec<_>>()
                        .join(", ")
                };
                let lets = if allowed.is_empty() {
                    "nothing".to_owned()
                } else {
                    listed(&allowed)
                };
                context.report(
                    Diagnostic::new(
                        codes::E0405,
                        item.differ.span,
                        format!(
                            "`{}` lets the arms differ in {lets}; they also differ in {}",
                            entry.name,
                            listed(&surplus)
                        ),
                    )
                    .also(first.name.span, "one arm")
                    .also(other.name.span, "the other")
                    .help("make the arms alike, or list the key under `differ`"),
                );
            }
        }
    }
    let mut differ: Vec<String> = allowed.into_iter().map(str::to_owned).collect();
    differ.sort();
    Some(Comparison {
        name: entry.name.text.clone(),
        arms: found.iter().map(|arm| arm.name.text.clone()).collect(),
        differ,
    })
}

/// Keys of an arm that decide what it does.
const KEYS: &[&str] = &[
    "engine", "server", "args", "env", "endpoint", "ca", "insecure", "model", "key", "headers",
];

/// What an arm says, by key; its label decides nothing.
fn facts(arm: &Arm) -> BTreeMap<String, String> {
    let mut facts = BTreeMap::new();
    let mut text = |key: &str, value: &Option<Text>| {
        if let Some(value) = value {
            facts.insert(key.to_owned(), value.value.clone());
        }
    };
    text("server", &arm.server);
    text("endpoint", &arm.endpoint);
    text("ca", &arm.ca);
    text("model", &arm.model);
    text("key", &arm.key);
    if let Some(engine) = &arm.engine {
        facts.insert("engine".to_owned(), engine.text.clone());
    }
    if arm.insecure.as_ref().is_some_and(|flag| flag.value) {
        facts.insert("insecure".to_owned(), "true".to_owned());
    }
    if !arm.args.is_empty() {
        let args: Vec<&str> = arm.args.iter().map(|arg| arg.value.as_str()).collect();
        facts.insert("args".to_owned(), args.join("\0"));
    }
    for (key, list) in [("env", &arm.env), ("headers", &arm.headers)] {
        for (name, value) in list {
            facts.insert(format!("{key}.{}", name.value), value.value.clone());
        }
    }
    facts
}

/// Warns where a set that carries hypotheses is not interleaved or uneven.
pub(crate) fn orders(context: &Context<'_>, sets: &[Set], decided: &[Decided]) {
    let carries = |set: &Set| {
        decided
            .iter()
            .flat_map(|decided| &decided.family.hypotheses)
            .any(|hypothesis| {
                let control = hypothesis.control.as_ref();
                control.is_some_and(|control| {
                    set.runs(&hypothesis.cell, control)
                        && set.runs(&hypothesis.cell, &hypothesis.candidate)
                })
            })
    };
    for set in sets.iter().filter(|set| !set.excluded && carries(set)) {
        if set.blocks == 1 || set.table.arm_order == "fixed" {
            let why = if set.blocks == 1 {
                "one block, so the arm that comes later is always the later one".to_owned()
            } else {
                format!(
                    "every block runs the arms in the same order: {}",
                    set.arms.join(", ")
                )
            };
            context.report(
                Diagnostic::new(
                    codes::W0403,
                    set.span,
                    format!("`{}` does not interleave its arms: {why}", set.name),
                )
                .help("add `arm_order: counterbalanced`, and enough blocks by `repeat`"),
            );
        } else if set.table.position_spread > 1 {
            context.report(
                Diagnostic::new(
                    codes::W0404,
                    set.span,
                    format!(
                        "the orders of `{}` are uneven: one arm comes {} times more often at one place than another",
                        set.name, set.table.position_spread
                    ),
                )
                .help("`arm_order: counterbalanced` is as even as the number of blocks allows"),
            );
        }
    }
}

/// The study's limits; a plan that exceeds one is reported.
pub(crate) fn limits(
    eval: &Evaluator<'_>,
    written: &WrittenLimits,
    assembly: Option<&Assembly>,
) -> Option<Limits> {
    let duration_ns = match &written.duration {
        Some(expr) => Some(eval.duration(expr, &[], "`duration`")?),
        None => None,
    };
    let requests = match &written.requests {
        Some(expr) => Some(u64::from(eval.count(
            expr,
            &[],
            "`requests`",
            0,
            u32::MAX,
        )?)),
        None => None,
    };
    let output_tokens = match &written.output {
        Some(expr) => Some(output_limit(eval, expr)?),
        None => None,
    };
    if let Some(assembly) = assembly {
        let exceeded = |span: Span, text: String| {
            eval.context.report(
                Diagnostic::new(codes::E0509, span, text).help("raise the limit, or plan less"),
            );
        };
        if let (Some(limit), Some(expr)) = (duration_ns, &written.duration)
            && assembly.scheduled > limit
        {
            exceeded(
                expr.span,
                format!(
                    "the schedules alone take {}, the limit is {}",
                    format_duration(assembly.scheduled),
                    format_duration(limit)
                ),
            );
        }
        if let (Some(limit), Some(expr)) = (requests, &written.requests)
            && assembly.requests > limit
        {
            exceeded(
                expr.span,
                format!(
                    "the plan sends {} requests, the limit is {limit}",
                    assembly.requests
                ),
            );
        }
        if let (Some(limit), Some(expr)) = (output_tokens, &written.output) {
            match assembly.output_tokens {
                Some(tokens) if tokens <= limit => {}
                Some(tokens) => exceeded(
                    expr.span,
                    format!("the plan asks for up to {tokens} output tokens, the limit is {limit}"),
                ),
                None => exceeded(
                    expr.span,
                    "a request without `output` has no bound, and the output is limited".to_owned(),
                ),
            }
        }
    }
    Some(Limits {
        duration_ns,
        requests,
        output_tokens,
    })
}

fn output_limit(eval: &Evaluator<'_>, expr: &Expr) -> Option<u64> {
    let number = eval.number(expr, &[], Kind::TOKENS, "`output`")?;
    u64::try_from(number.value.floor())
        .ok()
        .filter(|_| number.value >= Ratio::ZERO)
}

/// A duration setting at top level, or its default.
pub(crate) fn top_duration(
    eval: &Evaluator<'_>,
    expr: Option<&Expr>,
    what: &str,
    default: DurNs,
) -> Option<DurNs> {
    match expr {
        Some(expr) => eval.duration(expr, &[], what),
        None => Some(default),
    }
}
