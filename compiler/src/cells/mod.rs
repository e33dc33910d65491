//! Cells: families expanded, settings looked up, loads evaluated.

mod lookup;
mod settings;

pub(crate) use lookup::Cells;

use assize_codes as codes;
use assize_plan::{Connections, Receive, RecordLevel};
use assize_study::ast::{
    Cell, CellSettings, ClassAmount, ClassLoad, ClassShares, Family, Named, Request, Share, Study,
};
use assize_study::diagnostic::Diagnostic;
use assize_study::expr::{Expr, ExprKind, Name};
use assize_study::source::Span;
use assize_units::{DurNs, Ratio};

use crate::draw::{MAX_REQUESTS, Span as Extent, Stage};
use crate::eval::{Evaluator, Kind, Number, Value, show};
use crate::load::{Load, OpenStage};
use crate::merge::Entries;
use settings::settings;

/// Members of one family at most.
const MAX_MEMBERS: usize = 1_000;
/// The time of one request, where nothing says another.
pub(crate) const DEFAULT_TIMEOUT: DurNs = DurNs(300_000_000_000);

/// A cell of the study: one member, or those of a family.
pub(crate) struct Group {
    pub name: Name,
    pub is_family: bool,
    pub members: Vec<Member>,
}

/// One load on one arm.
#[derive(Clone, Debug)]
pub(crate) struct Member {
    /// As the study writes it: `sweep(4/s)`.
    pub name: String,
    /// As a folder: `sweep.4-per-s`.
    pub path: String,
    /// Its values, where it is of a family.
    pub values: Vec<Number>,
    pub load: MemberLoad,
    /// The request classes with their shares, by name; the shares make a whole.
    pub classes: Vec<(Name, Ratio)>,
    pub stream: bool,
    pub settle: DurNs,
    pub drain: DurNs,
    /// What the cell says of a request's time.
    pub timeout: Option<DurNs>,
    pub connections: Connections,
    pub record: RecordLevel,
    pub receive: Receive,
    /// Where its load is written.
    pub load_span: Span,
}

/// A load with its amount.
#[derive(Clone, Debug)]
pub(crate) enum MemberLoad {
    Open {
        stages: Vec<Stage>,
        cap: Option<u32>,
    },
    Closed {
        clients: u32,
        requests: u32,
    },
    Batch {
        prompts: u32,
    },
}

impl MemberLoad {
    pub fn is_drawn(&self) -> bool {
        match self {
            MemberLoad::Open { stages, .. } => stages.iter().any(|stage| stage.process.is_drawn()),
            MemberLoad::Closed { .. } | MemberLoad::Batch { .. } => false,
        }
    }
}

/// What cells fall back on.
pub(crate) struct Defaults<'s> {
    pub settings: &'s CellSettings,
    pub send: Option<&'s ClassShares>,
    pub requests: &'s Entries<Request>,
}

impl<'s> Defaults<'s> {
    pub fn new(study: &'s Study, requests: &'s Entries<Request>) -> Defaults<'s> {
        Defaults {
            settings: &study.settings,
            send: study.send.as_ref(),
            requests,
        }
    }
}

/// A cell with its members; `None` where an error was reported.
pub(crate) fn group(
    eval: &Evaluator<'_>,
    defaults: &Defaults<'_>,
    entry: &Named<Cell>,
) -> Option<Group> {
    let name = &entry.name;
    let Some(family) = &entry.item.family else {
        let member = member(eval, defaults, &entry.item, name, Vec::new(), &[])?;
        return Some(Group {
            name: name.clone(),
            is_family: false,
            members: vec![member],
        });
    };
    let mut members: Vec<Member> = Vec::new();
    let mut fine = true;
    for point in points(eval, family)? {
        let locals: Vec<(String, Value)> = family
            .params
            .iter()
            .zip(&point)
            .map(|((param, _), (number, _))| (param.text.clone(), Value::Number(*number)))
            .collect();
        match member(eval, defaults, &entry.item, name, point, &locals) {
            Some(one) => members.push(one),
            None => fine = false,
        }
    }
    fine.then(|| Group {
        name: name.clone(),
        is_family: true,
        members,
    })
}

/// The warmup as a cell of that name.
pub(crate) fn warmup(
    eval: &Evaluator<'_>,
    defaults: &Defaults<'_>,
    cell: &Cell,
    place: Span,
) -> Option<Member> {
    let name = Name::new("warmup", place);
    member(eval, defaults, cell, &name, Vec::new(), &[])
}

type Point = Vec<(Number, String)>;

/// Every combination of the parameters' values; the first parameter changes slowest.
fn points(eval: &Evaluator<'_>, family: &Family) -> Option<Vec<Point>> {
    let mut points: Vec<Point> = vec![Vec::new()];
    for (param, values) in &family.params {
        if crate::eval::Scope::is_taken(&param.text)
            || eval.scope.lets.contains_key(param.text.as_str())
        {
            eval.context.report(
                Diagnostic::new(
                    codes::E0213,
                    param.span,
                    format!("`{param}` is taken, and nothing shadows another name"),
                )
                .help("rename the parameter"),
            );
            return None;
        }
        let numbers: Vec<Option<(Number, String)>> =
            values.iter().map(|expr| point(eval, expr)).collect();
        let numbers: Vec<(Number, String)> = numbers.into_iter().collect::<Option<_>>()?;
        if let Some(place) = (1..numbers.len()).find(|place| {
            let (number, _) = &numbers[*place];
            numbers[..*place]
                .iter()
                .any(|(known, _)| known.value == number.value && known.kind == number.kind)
        }) {
            eval.context.report(
                Diagnostic::new(
                    codes::E0406,
                    values[place].span,
                    format!("`{param}` has the value {} twice", numbers[place].1),
                )
                .help("give each value of `for` once"),
            );
            return None;
        }
        if numbers.is_empty() || points.len() * numbers.len() > MAX_MEMBERS {
            eval.context.report(Diagnostic::new(
                codes::E0406,
                param.span,
                format!("a family has from 1 to {MAX_MEMBERS} members"),
            ));
            return None;
        }
        points = points
            .iter()
            .flat_map(|point| {
                numbers.iter().map(|number| {
                    let mut longer = point.clone();
                    longer.push(number.clone());
                    longer
                })
            })
            .collect();
    }
    Some(points)
}

fn point(eval: &Evaluator<'_>, expr: &Expr) -> Option<(Number, String)> {
    match eval.expr(expr, &[])? {
        // A literal keeps its unit: `500ms` is no `0.5s`.
        Value::Number(number) => match &expr.kind {
            ExprKind::Quantity(_) => Some((number, eval.context.text(expr.span))),
            _ => Some((number, show(number.value, number.kind))),
        },
        other => {
            eval.context.report(Diagnostic::new(
                codes::E0312,
                expr.span,
                format!("`for` needs numbers, found {}", other.describe()),
            ));
            None
        }
    }
}

fn member(
    eval: &Evaluator<'_>,
    defaults: &Defaults<'_>,
    cell: &Cell,
    name: &Name,
    point: Point,
    locals: &[(String, Value)],
) -> Option<Member> {
    let texts: Vec<String> = point.iter().map(|(_, text)| text.clone()).collect();
    let (full, path) = if texts.is_empty() {
        (name.text.clone(), name.text.clone())
    } else {
        let folder: Vec<String> = texts.iter().map(|text| folder(text)).collect();
        (
            format!("{name}({})", texts.join(", ")),
            format!("{name}.{}", folder.join(".")),
        )
    };
    let settings = settings(eval, defaults.settings, &cell.settings, locals);
    let classes = classes(eval, defaults, cell, name, locals);
    let load = load(eval, cell, name, locals);
    let (settings, classes, (load, load_span)) = (settings?, classes?, load?);
    if let (MemberLoad::Batch { .. }, [_, (second, _), ..]) = (&load, classes.as_slice()) {
        eval.context.report(
            Diagnostic::new(
                codes::E0506,
                second.span,
                "a batch is one call of one class",
            )
            .also(load_span, "the batch"),
        );
        return None;
    }
    Some(Member {
        name: full,
        path,
        values: point.into_iter().map(|(number, _)| number).collect(),
        load,
        classes,
        stream: cell.stream.as_ref().is_none_or(|stream| stream.value),
        settle: settings.settle,
        drain: settings.drain,
        timeout: settings.timeout,
        connections: settings.connections,
        record: settings.record,
        receive: settings.receive,
        load_span,
    })
}

/// A value as a part of a folder's name.
fn folder(text: &str) -> String {
    text.replace('/', "-per-")
        .replace('%', "-percent")
        .replace(' ', "-")
}

/// The classes that a cell sends, by name, with their shares.
fn classes(
    eval: &Evaluator<'_>,
    defaults: &Defaults<'_>,
    cell: &Cell,
    name: &Name,
    locals: &[(String, Value)],
) -> Option<Vec<(Name, Ratio)>> {
    match cell.send.as_ref().or(defaults.send) {
        Some(ClassShares::One(class)) => {
            defaults.requests.find(eval.context, class)?;
            Some(vec![(class.clone(), Ratio::ONE)])
        }
        Some(ClassShares::Shares(shares)) => {
            let found: Vec<Option<(Name, Ratio)>> = shares
                .iter()
                .map(|share| {
                    let known = defaults.requests.find(eval.context, &share.class);
                    let number = eval.number(&share.share, locals, Kind::SHARE, "a share");
                    known
                        .and(number)
                        .map(|number| (share.class.clone(), number.value))
                })
                .collect();
            let mut classes: Vec<(Name, Ratio)> = found.into_iter().collect::<Option<_>>()?;
            classes.sort_by(|a, b| a.0.text.cmp(&b.0.text));
            whole_shares(eval, name, shares, &classes)?;
            Some(classes)
        }
        None => match defaults.requests.list.as_slice() {
            [only] => Some(vec![(only.name.clone(), Ratio::ONE)]),
            several => {
                let names: Vec<&str> = several
                    .iter()
                    .map(|entry| entry.name.text.as_str())
                    .collect();
                eval.context.report(
                    Diagnostic::new(
                        codes::E0502,
                        name.span,
                        format!("`{name}` does not say which request it sends"),
                    )
                    .help(format!("add `send:`; there are: {}", names.join(", "))),
                );
                None
            }
        },
    }
}

/// Shares above 0% that make 100% exactly.
fn whole_shares(
    eval: &Evaluator<'_>,
    name: &Name,
    shares: &[Share],
    classes: &[(Name, Ratio)],
) -> Option<()> {
    let place = shares.first()?;
    let sum = classes
        .iter()
        .try_fold(Ratio::ZERO, |sum, (_, share)| sum.add(*share))
        .ok();
    let positive = classes.iter().all(|(_, share)| share.is_positive());
    if positive && sum == Some(Ratio::ONE) {
        return Some(());
    }
    let found = sum.map_or_else(|| "too much".to_owned(), |sum| show(sum, Kind::SHARE));
    eval.context.report(
        Diagnostic::new(
            codes::E0514,
            place.class.span.to(shares.last()?.share.span),
            format!("the shares of `{name}` make {found}, not 100%"),
        )
        .help("each share is above 0%, and together they are the whole stream"),
    );
    None
}

fn load(
    eval: &Evaluator<'_>,
    cell: &Cell,
    name: &Name,
    locals: &[(String, Value)],
) -> Option<(MemberLoad, Span)> {
    let written = match &cell.load {
        Some(ClassLoad::One(load)) => load,
        // The lowering refuses loads by class.
        Some(ClassLoad::ByClass(_)) => return None,
        None => {
            eval.context.report(
                Diagnostic::new(codes::E0502, name.span, format!("`{name}` has no `load`"))
                    .help("write `load: closed(4)` or `load: poisson(3/s)`"),
            );
            return None;
        }
    };
    let amount = match &cell.requests {
        Some(ClassAmount::One(expr)) => Some((
            eval.count(expr, locals, "`requests`", 1, MAX_REQUESTS),
            expr.span,
        )),
        Some(ClassAmount::ByClass(_)) => return None,
        None => None,
    };
    let load = eval.load(written, locals)?;
    let span = written.span;
    let amount = match amount {
        Some((None, _)) => return None,
        Some((Some(count), place)) => Some((count, place)),
        None => None,
    };
    let load = match load {
        Load::Closed { clients } => {
            let Some((requests, _)) = amount else {
                return no_amount(eval, name, span, "a closed loop ends with its requests");
            };
            MemberLoad::Closed { clients, requests }
        }
        Load::Batch { prompts } => {
            if let Some((_, place)) = amount {
                return amount_twice(eval, place, span, "`batch` says how many prompts it sends");
            }
            MemberLoad::Batch { prompts }
        }
        Load::Open { stages, cap } => {
            let stages = open(eval, name, &stages, amount, span)?;
            MemberLoad::Open { stages, cap }
        }
    };
    Some((load, span))
}

/// The stages of an open load, each with its extent: `for` on every stage, or `requests`.
fn open(
    eval: &Evaluator<'_>,
    name: &Name,
    stages: &[OpenStage],
    amount: Option<(u32, Span)>,
    span: Span,
) -> Option<Vec<Stage>> {
    let timed = stages.iter().find(|stage| stage.lasts.is_some());
    match (amount, timed) {
        (Some((_, place)), Some(stage)) => {
            amount_twice(eval, place, stage.span, "`for` gives the amount")
        }
        (Some((requests, _)), None) => match stages {
            [only] => Some(vec![Stage {
                process: only.process,
                span: Extent::Requests(requests),
            }]),
            _ => no_amount(
                eval,
                name,
                span,
                "each stage needs a `for`, and then no `requests`",
            ),
        },
        (None, _) => stages
            .iter()
            .map(|stage| match stage.lasts {
                Some(seconds) => Some(Stage {
                    process: stage.process,
                    span: Extent::Seconds(seconds),
                }),
                None => no_amount(
                    eval,
                    name,
                    stage.span,
                    "an open load ends with its `requests`, or each stage with its `for`",
                ),
            })
            .collect(),
    }
}

fn no_amount<T>(eval: &Evaluator<'_>, name: &Name, span: Span, why: &str) -> Option<T> {
    eval.context.report(
        Diagnostic::new(
            codes::E0502,
            span,
            format!("`{name}` does not say how many requests it sends"),
        )
        .note(why.to_owned())
        .help("add `requests:`, or `for` to every stage"),
    );
    None
}

fn amount_twice<T>(eval: &Evaluator<'_>, place: Span, other: Span, why: &str) -> Option<T> {
    eval.context.report(
        Diagnostic::new(codes::E0502, place, "the amount is given twice")
            .also(other, why)
            .help("remove one of the two"),
    );
    None
}
