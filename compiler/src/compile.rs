//! Study to plan: the steps in their order.

use std::collections::{BTreeMap, BTreeSet};

use assize_codes as codes;
use assize_plan::{
    DRAW, DriverChoice, Family, Hash, Interrupted, MAX_SAFE_INTEGER, NamedValue, PLAN_FORMAT,
    Panel as PlanPanel, Plan,
};
use assize_study::ast::{Driver, Engine, Interrupted as WrittenInterrupted, Section, Study};
use assize_study::diagnostic::{Diagnostic, Diagnostics};
use assize_study::lower::LANGUAGE;
use assize_study::source::Sources;
use assize_units::{Bytes, DurNs, Ratio};

use crate::cells::{Cells, Defaults, group, warmup};
use crate::checks::{comparisons, limits, orders, top_duration};
use crate::context::Context;
use crate::eval::{Evaluator, Kind, Scope, Value};
use crate::merge::{Entries, Entry, resolve};
use crate::panel::{Panel, panel};
use crate::plan::{Assembly, Parts, arms, assemble};
use crate::preview::{Preview, preview};
use crate::program::{Program, load};
use crate::rules::{Decided, Judged, family};
use crate::seed::Seed;
use crate::sets::sets;
use crate::world::World;

const DEFAULT_SPIN: DurNs = DurNs(60_000);
const DEFAULT_MAX_RESPONSE: Bytes = Bytes(64 << 20);

/// The outcome of a compilation. The compiler never fails: it returns what it found.
#[derive(Debug)]
pub struct Compiled {
    /// The plan with its parts; none where there are errors.
    pub output: Option<Output>,
    /// Everything that was found, errors and warnings.
    pub diagnostics: Diagnostics,
    /// The texts that diagnostics point into.
    pub sources: Sources,
}

/// A plan with everything that a bundle needs.
#[derive(Clone, Debug)]
pub struct Output {
    /// The plan.
    pub plan: Plan,
    /// The objects that it names.
    pub objects: BTreeMap<Hash, Vec<u8>>,
    /// The study's text.
    pub study_text: String,
    /// The modules that it uses: name and text.
    pub modules: Vec<(String, String)>,
    /// The plan in numbers.
    pub preview: Preview,
}

/// Compiles the study that `world` has at `path`.
pub fn compile(path: &str, world: &dyn World) -> Compiled {
    let context = Context::new(world);
    let parts = context
        .text_file(path, assize_study::source::Span::default())
        .and_then(|text| load(&context, path, text))
        .and_then(|program| {
            let made = build(&context, &program)?;
            let modules = program
                .modules
                .into_iter()
                .map(|loaded| (loaded.name, loaded.text));
            Some((made, program.text, modules.collect::<Vec<_>>()))
        });
    let fine = !context.has_errors();
    let (sources, diagnostics, mut objects) = context.into_parts();
    let output = parts
        .filter(|_| fine)
        .map(|((plan, preview), study_text, modules)| {
            let named: BTreeSet<Hash> = plan.object_hashes().into_iter().collect();
            objects.retain(|hash, _| named.contains(hash));
            Output {
                plan,
                objects,
                study_text,
                modules,
                preview,
            }
        });
    Compiled {
        output,
        diagnostics,
        sources,
    }
}

fn build(context: &Context<'_>, program: &Program) -> Option<(Plan, Preview)> {
    context.files_are_read();
    let study = &program.study;
    let requests = entries(context, program, |d| &d.requests);
    let classes: BTreeSet<String> = requests.names().map(str::to_owned).collect();
    let scope = Scope::new(context, program, classes);
    let eval = Evaluator::new(context, &scope);
    let seed = Seed(&study.seed);

    let values = values(&eval, study);
    let panels = panels(&eval, study, &requests, &seed);
    let arm_entries = entries(context, program, |d| &d.arms);
    let engines = engines(program);
    let resolved_arms = arms(&eval, &arm_entries, &engines);

    let defaults = Defaults::new(study, &requests);
    let cells = cells(&eval, &defaults, program);
    let warmup_member = study
        .warmup
        .as_ref()
        .map(|cell| warmup(&eval, &defaults, cell, study.name.span));
    let block_entries = entries(context, program, |d| &d.blocks);
    let declared = !study.declarations.blocks.is_empty();
    let sets = sets(
        &eval,
        &block_entries,
        declared,
        &arm_entries,
        &cells,
        &seed,
        &study.name,
    );
    need_seed(
        context,
        &seed,
        sets.iter()
            .flat_map(|set| &set.cells)
            .chain(warmup_member.iter().flatten()),
    );

    let judged = Judged {
        arms: &arm_entries,
        cells: &cells,
        sets: &sets,
    };
    let decide = entries(context, program, |d| &d.decide);
    let decided: Vec<Decided> = decide
        .list
        .iter()
        .filter_map(|entry| family(&eval, &judged, entry))
        .collect();
    let compare = comparisons(context, &study.compare, &arm_entries);
    orders(context, &sets, &decided);

    // Bodies and traces are made only of parts that are all there.
    let whole = !context.has_errors();
    let assembly: Option<Assembly> = if whole {
        let parts = Parts {
            arms: &resolved_arms,
            requests: &requests,
            panels: &panels,
            warmup: warmup_member.as_ref().and_then(Option::as_ref),
            sets: &sets,
            seed,
        };
        assemble(&eval, &parts)
    } else {
        None
    };
    let limits = limits(&eval, &study.limits, assembly.as_ref());
    let spin_ns = top_duration(&eval, study.spin.as_ref(), "`spin`", DEFAULT_SPIN);
    let max_response_bytes = max_response(&eval, study);
    let mut assembly = assembly?;
    let families: Vec<Family> = decided
        .iter()
        .map(|decided| decided.family.clone())
        .collect();
    let plan = Plan {
        format: PLAN_FORMAT.to_owned(),
        language: LANGUAGE,
        study: study.name.text.clone(),
        question: study.question.as_ref().map(|text| text.value.clone()),
        scope: study.scope.as_ref().map(|text| text.value.clone()),
        replicates: None,
        draw: DRAW.to_owned(),
        driver: match study.driver.as_ref().map(|driver| driver.value) {
            None | Some(Driver::Any) => DriverChoice::Any,
            Some(Driver::IoUring) => DriverChoice::IoUring,
            Some(Driver::Epoll) => DriverChoice::Epoll,
        },
        spin_ns: spin_ns?,
        interrupted: match study.interrupted.as_ref().map(|word| word.value) {
            None | Some(WrittenInterrupted::Final) => Interrupted::Final,
            Some(WrittenInterrupted::Rerun) => Interrupted::Rerun,
        },
        max_response_bytes: max_response_bytes?,
        values,
        arms: resolved_arms.iter().map(|arm| arm.plan.clone()).collect(),
        panels: plan_panels(&panels, &assembly.panels),
        requests: std::mem::take(&mut assembly.classes),
        arrivals: std::mem::take(&mut assembly.arrivals),
        orders: sets.iter().map(|set| set.table.clone()).collect(),
        units: std::mem::take(&mut assembly.units),
        rules: families,
        compare,
        external: std::mem::take(&mut assembly.external),
        limits: limits?,
    };
    if let Err(error) = plan.to_canonical() {
        context.report(Diagnostic::new(
            codes::E0316,
            study.name.span,
            format!("a number of the plan cannot be written: {error}"),
        ));
        return None;
    }
    let preview = preview(&plan, &sets, &assembly, &decided);
    Some((plan, preview))
}

fn entries<T: Entry>(
    context: &Context<'_>,
    program: &Program,
    section: impl Fn(&assize_study::ast::Declarations) -> &Section<T>,
) -> Entries<T> {
    let mut sections = vec![section(&program.study.declarations)];
    sections.extend(
        program
            .modules
            .iter()
            .map(|loaded| section(&loaded.module.declarations)),
    );
    resolve(context, &sections)
}

fn engines(program: &Program) -> BTreeMap<&str, &Engine> {
    let modules = program
        .modules
        .iter()
        .flat_map(|loaded| &loaded.module.engines);
    modules
        .map(|entry| (entry.name.text.as_str(), &entry.item))
        .collect()
}

/// Every name of the study that is a number; each of the others is evaluated for its errors.
fn values(eval: &Evaluator<'_>, study: &Study) -> Vec<NamedValue> {
    let mut values = Vec::new();
    for name in &eval.scope.own {
        let Some(entry) = eval.scope.lets.get(name) else {
            continue;
        };
        if !entry.key.params.is_empty() {
            continue;
        }
        let Some(Value::Number(number)) = eval.named(name) else {
            continue;
        };
        if !is_writable(number.value) {
            eval.context.report(
                Diagnostic::new(
                    codes::E0316,
                    entry.value.span(),
                    format!(
                        "`{name}` is {}, and a plan holds fractions of numbers up to 2^53 - 1",
                        number.show()
                    ),
                )
                .help("round it: `floor_to(…, 0.001)`"),
            );
            continue;
        }
        if let Some(unit) = number.kind.plan_unit() {
            values.push(NamedValue {
                name: (*name).to_owned(),
                formula: eval.context.text(entry.value.span()),
                value: number.value,
                unit,
                from: Vec::new(),
            });
        }
    }
    debug_assert!(values.len() <= study.declarations.lets.len());
    values
}

/// Whether both parts of a fraction are safe integers.
fn is_writable(value: Ratio) -> bool {
    let safe = u128::from(MAX_SAFE_INTEGER);
    value.num().unsigned_abs() <= safe && value.den().unsigned_abs() <= safe
}

/// The panels that requests send.
fn panels(
    eval: &Evaluator<'_>,
    study: &Study,
    requests: &Entries<assize_study::ast::Request>,
    seed: &Seed<'_>,
) -> BTreeMap<String, Panel> {
    for entry in &requests.list {
        if let Some(prompt) = &entry.item.prompt
            && study.prompts.get(&prompt.text).is_none()
        {
            eval.context
                .unknown("panel of prompts", prompt, study.prompts.names());
        }
    }
    study
        .prompts
        .iter()
        .filter_map(|entry| Some((entry.name.text.clone(), panel(eval, entry, seed)?)))
        .collect()
}

fn plan_panels(panels: &BTreeMap<String, Panel>, sent: &BTreeSet<String>) -> Vec<PlanPanel> {
    panels
        .values()
        .filter(|panel| sent.contains(&panel.name))
        .map(|panel| PlanPanel {
            name: panel.name.clone(),
            prompts: u32::try_from(panel.prompts.len()).unwrap_or(u32::MAX),
            synthetic: panel.synthetic,
            tokens: panel.tokens,
        })
        .collect()
}

fn cells(eval: &Evaluator<'_>, defaults: &Defaults<'_>, program: &Program) -> Cells {
    let entries = entries(eval.context, program, |d| &d.cells);
    let mut cells = Cells {
        groups: Vec::new(),
        faulty: Vec::new(),
    };
    for entry in &entries.list {
        match group(eval, defaults, entry) {
            Some(group) => cells.groups.push(group),
            None => cells.faulty.push(entry.name.text.clone()),
        }
    }
    cells
}

fn need_seed<'m>(
    context: &Context<'_>,
    seed: &Seed<'_>,
    members: impl Iterator<Item = &'m crate::cells::Member>,
) {
    for member in members {
        if member.load.is_drawn() {
            let what = format!("`{}`", context.text(member.load_span));
            seed.need(context, member.load_span, &what);
        }
        if let [(first, _), _, ..] = member.classes.as_slice() {
            seed.need(context, first.span, "the order of several classes");
        }
    }
}

fn max_response(eval: &Evaluator<'_>, study: &Study) -> Option<Bytes> {
    let Some(expr) = &study.max_response else {
        return Some(DEFAULT_MAX_RESPONSE);
    };
    let number = eval.number(expr, &[], Kind::SIZE, "`max_response`")?;
    eval.whole(
        number.value,
        expr.span,
        "`max_response` in bytes",
        1,
        u32::MAX,
    )
    .map(|bytes| Bytes(bytes.into()))
}
