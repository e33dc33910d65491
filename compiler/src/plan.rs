//! The plan's arms, request classes and units, and the traces that units share.

use std::collections::{BTreeMap, BTreeSet};

use assize_codes as codes;
use assize_plan::{
    Arm as PlanArm, ArrivalProcess, ArrivalStage, Arrivals, Cell as PlanCell, Engine as PlanEngine,
    Expectation, External, HeaderText, Load, RequestClass, TRACE_FORMAT, TraceObject, Unit,
};
use assize_study::ast::{Arm, Engine, Named, Request};
use assize_study::diagnostic::Diagnostic;
use assize_study::expr::Name;
use assize_units::{DurNs, OffsetNs, Ratio};

use crate::body::Template;
use crate::cells::{DEFAULT_TIMEOUT, Member, MemberLoad};
use crate::deal::{deal, shared_out};
use crate::draw::{Process, Span as Extent, Stage, arrivals};
use crate::eval::Evaluator;
use crate::merge::Entries;
use crate::panel::Panel;
use crate::seed::Seed;
use crate::sets::Set;
use crate::target::{Target, headers, key_env, target};

/// Digits of a block in a folder's name.
const BLOCK_DIGITS: usize = 2;

/// An arm with its place.
pub(crate) struct ResolvedArm<'s> {
    pub name: &'s str,
    pub plan: PlanArm,
    pub target: Target,
    engine: Option<(&'s str, &'s Engine)>,
}

/// Resolves every arm; those with errors are left out.
pub(crate) fn arms<'s>(
    eval: &Evaluator<'_>,
    entries: &'s Entries<Arm>,
    engines: &BTreeMap<&'s str, &'s Engine>,
) -> Vec<ResolvedArm<'s>> {
    entries
        .list
        .iter()
        .filter_map(|entry| arm(eval, entry, engines))
        .collect()
}

fn arm<'s>(
    eval: &Evaluator<'_>,
    entry: &'s Named<Arm>,
    engines: &BTreeMap<&'s str, &'s Engine>,
) -> Option<ResolvedArm<'s>> {
    let (name, item) = (&entry.name, &entry.item);
    let engine = match &item.engine {
        None => Some(None),
        Some(wanted) => match engines.get_key_value(wanted.text.as_str()) {
            Some((name, engine)) => Some(Some((*name, *engine))),
            None => {
                eval.context.unknown(
                    "engine of the modules in `use`",
                    wanted,
                    engines.keys().copied(),
                );
                None
            }
        },
    };
    let target = target(eval, entry);
    let headers = headers(eval, &item.headers);
    let key = match &item.key {
        Some(key) => Some(Some(key_env(eval, key, name)?)),
        None => Some(None),
    };
    let (engine, target, headers, key_env) = (engine?, target?, headers?, key?);
    let plan = PlanArm {
        name: name.text.clone(),
        label: item
            .label
            .as_ref()
            .map_or_else(|| name.text.clone(), |label| label.value.clone()),
        engine: PlanEngine {
            name: engine.map_or("none", |(name, _)| name).to_owned(),
            done: engine
                .is_none_or(|(_, engine)| engine.done.as_ref().is_none_or(|done| done.value)),
        },
        model: item.model.as_ref().map(|model| model.value.clone()),
        target: target.target.clone(),
        tls: target.tls,
        key_env,
        headers,
        discloses: item.discloses.as_ref().map(|text| text.value.clone()),
    };
    Some(ResolvedArm {
        name: &name.text,
        plan,
        target,
        engine,
    })
}

/// What decides the bytes of a request besides the arm.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct ClassKey {
    request: String,
    choices: u32,
    stream: bool,
    timeout_ns: u64,
}

#[derive(Clone, PartialEq)]
struct Rendered {
    path: String,
    headers: Vec<(String, HeaderText)>,
    bodies: Vec<assize_plan::Hash>,
    expect: Expectation,
}

/// The parts of the study that units are made of.
pub(crate) struct Parts<'s> {
    pub arms: &'s [ResolvedArm<'s>],
    pub requests: &'s Entries<Request>,
    pub panels: &'s BTreeMap<String, Panel>,
    pub warmup: Option<&'s Member>,
    pub sets: &'s [Set],
    pub seed: Seed<'s>,
}

/// Everything that execution needs.
#[derive(Default)]
pub(crate) struct Assembly {
    pub classes: Vec<RequestClass>,
    pub units: Vec<Unit>,
    pub external: Vec<External>,
    /// How the offsets of open cells were made, by cell.
    pub arrivals: Vec<Arrivals>,
    /// Names of the panels that are sent.
    pub panels: BTreeSet<String>,
    /// Requests in all, warmups included.
    pub requests: u64,
    /// Output tokens asked for at most; `None` where a request sets no limit.
    pub output_tokens: Option<u64>,
    /// The time that schedules and settling take.
    pub scheduled: DurNs,
    /// Cells whose length hangs on the server.
    pub closed_cells: u32,
}

/// Renders the classes, draws the traces, lays out the units.
pub(crate) fn assemble(eval: &Evaluator<'_>, parts: &Parts<'_>) -> Option<Assembly> {
    let mut builder = Builder {
        eval,
        parts,
        rendered: BTreeMap::new(),
        traces: BTreeMap::new(),
        asked: BTreeMap::new(),
        fine: true,
    };
    builder.render_all();
    let mut assembly = Assembly {
        output_tokens: Some(0),
        ..Assembly::default()
    };
    let (classes, numbers) = builder.classes();
    assembly.classes = classes;
    let mut taken = BTreeSet::new();
    for set in parts.sets {
        builder.units(set, &numbers, &mut taken, &mut assembly);
    }
    for arm in parts.arms {
        for external in &arm.target.external {
            if !assembly.external.contains(external) {
                assembly.external.push(external.clone());
            }
        }
    }
    assembly.external.sort_by(|a, b| a.path.cmp(&b.path));
    assembly.arrivals = open_cells(parts);
    for class in &assembly.classes {
        if let Some(request) = parts.requests.get(&class.name)
            && let Some(panel) = &request.item.prompt
        {
            assembly.panels.insert(panel.text.clone());
        }
    }
    builder.fine.then_some(assembly)
}

/// The arrivals of every open cell that is run, by name.
fn open_cells(parts: &Parts<'_>) -> Vec<Arrivals> {
    let members = parts.sets.iter().flat_map(|set| &set.cells);
    let mut open: BTreeMap<&str, Arrivals> = BTreeMap::new();
    for member in parts.warmup.into_iter().chain(members) {
        if let MemberLoad::Open { stages, .. } = &member.load {
            open.entry(&member.name).or_insert_with(|| Arrivals {
                cell: member.name.clone(),
                stages: stages.iter().map(stage).collect(),
            });
        }
    }
    open.into_values().collect()
}

fn stage(stage: &Stage) -> ArrivalStage {
    let (requests, lasts_s) = match stage.span {
        Extent::Requests(count) => (Some(count), None),
        Extent::Seconds(seconds) => (None, Some(seconds)),
    };
    ArrivalStage {
        process: match stage.process {
            Process::Poisson { rate } => ArrivalProcess::Poisson { rate },
            Process::Gamma { rate, shape } => ArrivalProcess::Gamma { rate, shape },
            Process::Every { gap } => ArrivalProcess::Every { gap_s: gap },
            Process::Burst { size, gap } => ArrivalProcess::Burst { size, gap_s: gap },
        },
        requests,
        lasts_s,
    }
}

type Numbers = BTreeMap<(ClassKey, String), u32>;

/// A trace with what is counted of it.
#[derive(Clone)]
struct Drawn {
    trace: assize_plan::Hash,
    /// Requests of each class.
    counts: Vec<u32>,
    last_ns: u64,
}

struct Builder<'b, 'e> {
    eval: &'b Evaluator<'e>,
    parts: &'b Parts<'b>,
    rendered: BTreeMap<(ClassKey, String), Option<Rendered>>,
    traces: BTreeMap<(String, u128), Option<Drawn>>,
    asked: BTreeMap<String, Option<u32>>,
    fine: bool,
}

impl Builder<'_, '_> {
    fn key(&self, member: &Member, class: &Name) -> Option<ClassKey> {
        let request = self.parts.requests.get(&class.text)?;
        let own = match &request.item.timeout {
            Some(expr) => Some(self.eval.duration(expr, &[], "`timeout`")?),
            None => None,
        };
        Some(ClassKey {
            request: class.text.clone(),
            choices: match member.load {
                MemberLoad::Batch { prompts } => prompts,
                _ => 1,
            },
            stream: member.stream,
            timeout_ns: own.or(member.timeout).unwrap_or(DEFAULT_TIMEOUT).0,
        })
    }

    fn render_all(&mut self) {
        for set in self.parts.sets {
            for member in self.parts.warmup.into_iter().chain(&set.cells) {
                for (class, _) in &member.classes {
                    let Some(key) = self.key(member, class) else {
                        self.fine = false;
                        continue;
                    };
                    self.render_for(&key, &set.arms);
                }
            }
        }
    }

    fn render_for(&mut self, key: &ClassKey, arms: &[String]) {
        for arm in arms {
            let place = (key.clone(), arm.clone());
            if self.rendered.contains_key(&place) {
                continue;
            }
            let rendered = self.render(key, arm);
            self.fine &= rendered.is_some();
            self.rendered.insert(place, rendered);
        }
    }

    fn render(&mut self, key: &ClassKey, arm: &str) -> Option<Rendered> {
        let eval = self.eval;
        let arm = self.parts.arms.iter().find(|known| known.name == arm)?;
        let request = self.parts.requests.get(&key.request)?;
        let (name, item) = (&request.name, &request.item);
        let Some(panel_name) = &item.prompt else {
            eval.context.report(
                Diagnostic::new(
                    codes::E0506,
                    name.span,
                    format!("`{name}` says no `prompt`"),
                )
                .help("name a panel of `prompts`"),
            );
            return None;
        };
        let panel = self.parts.panels.get(&panel_name.text)?;
        let template = Template::new(
            eval,
            name,
            item,
            arm.engine,
            arm.plan.model.as_deref(),
            key.stream,
        )?;
        self.asked
            .insert(key.request.clone(), template.asked_tokens);
        let bodies = if key.choices == 1 {
            template.bodies(eval, name, panel)?
        } else {
            vec![template.batch(eval, name, panel, key.choices)?]
        };
        let mut all = vec![(
            "content-type".to_owned(),
            HeaderText::Text("application/json".to_owned()),
        )];
        all.extend(headers(eval, &item.headers)?);
        Some(Rendered {
            path: format!("{}{}", arm.target.base_path, template.path()),
            headers: all,
            bodies: bodies
                .into_iter()
                .map(|body| eval.context.keep(body))
                .collect(),
            expect: Expectation {
                output_tokens: template.output_tokens.map(u64::from),
            },
        })
    }

    /// The classes in order of request, prompts in one call, streaming, time and first arm; and the
    /// number of each (key, arm).
    fn classes(&self) -> (Vec<RequestClass>, Numbers) {
        let mut groups: Vec<(&ClassKey, Vec<&str>, &Rendered)> = Vec::new();
        for ((key, arm), rendered) in &self.rendered {
            let Some(rendered) = rendered else {
                continue;
            };
            match groups
                .iter_mut()
                .find(|(known, _, same)| *known == key && *same == rendered)
            {
                Some((_, arms, _)) => arms.push(arm),
                None => groups.push((key, vec![arm], rendered)),
            }
        }
        let mut numbers = Numbers::new();
        let mut classes = Vec::new();
        for (n, (key, arms, rendered)) in (0u32..).zip(groups) {
            for arm in &arms {
                numbers.insert((key.clone(), (*arm).to_owned()), n);
            }
            classes.push(RequestClass {
                n,
                name: key.request.clone(),
                arms: arms.into_iter().map(str::to_owned).collect(),
                method: "POST".to_owned(),
                path: rendered.path.clone(),
                headers: rendered.headers.clone(),
                bodies: rendered.bodies.clone(),
                stream: key.stream,
                choices: key.choices,
                expect: rendered.expect,
                timeout_ns: DurNs(key.timeout_ns),
                connect_timeout_ns: None,
                idle_timeout_ns: None,
            });
        }
        (classes, numbers)
    }

    fn units(
        &mut self,
        set: &Set,
        numbers: &Numbers,
        taken: &mut BTreeSet<(String, String)>,
        assembly: &mut Assembly,
    ) {
        let parts = self.parts;
        for block in 0..set.blocks {
            let block_seed = parts.seed.block(block);
            let arm_order = &set.arm_orders[block as usize];
            let cell_order = &set.cell_orders[block as usize];
            let restarts = |name: &str| {
                let arm = parts.arms.iter().find(|arm| arm.name == name);
                set.restart && arm.is_some_and(|arm| arm.target.is_server)
            };
            // An id is the same for every arm: where one arm's server has seen a prefix before,
            // all arms take the longer one.
            let prefix = |kind: &str, path: &str| {
                let plain = format!("{kind}{path}-{block_seed}");
                let seen = set
                    .arms
                    .iter()
                    .any(|arm| !restarts(arm) && taken.contains(&(arm.clone(), plain.clone())));
                if seen {
                    format!("{kind}{}.{path}-{block_seed}", set.name)
                } else {
                    plain
                }
            };
            let warmup_prefix = prefix("warmup.", &set.name);
            let prefixes: Vec<String> = set
                .cells
                .iter()
                .map(|member| prefix("", &member.path))
                .collect();
            let mut used: Vec<(String, String)> = Vec::new();
            for arm in arm_order.iter().map(|place| &set.arms[*place]) {
                let restart = restarts(arm);
                if !restart {
                    used.extend(prefixes.iter().map(|prefix| (arm.clone(), prefix.clone())));
                    used.push((arm.clone(), warmup_prefix.clone()));
                }
                let warmup = parts.warmup.and_then(|member| {
                    self.cell(
                        member,
                        arm,
                        block_seed,
                        warmup_prefix.clone(),
                        numbers,
                        assembly,
                    )
                });
                let cells: Vec<PlanCell> = cell_order
                    .iter()
                    .filter_map(|place| {
                        let (member, prefix) = (&set.cells[*place], prefixes[*place].clone());
                        self.cell(member, arm, block_seed, prefix, numbers, assembly)
                    })
                    .collect();
                let n = u32::try_from(assembly.units.len()).unwrap_or(u32::MAX);
                assembly.units.push(Unit {
                    n,
                    set: set.name.clone(),
                    block,
                    block_seed: block_seed.to_string(),
                    arm: arm.clone(),
                    path: format!("{}/{block:0BLOCK_DIGITS$}/{arm}", set.name),
                    excluded: set.excluded,
                    restart,
                    warmup,
                    cells,
                });
            }
            taken.extend(used);
        }
    }

    fn cell(
        &mut self,
        member: &Member,
        arm: &str,
        block_seed: u128,
        id_prefix: String,
        numbers: &Numbers,
        assembly: &mut Assembly,
    ) -> Option<PlanCell> {
        let keys: Option<Vec<ClassKey>> = member
            .classes
            .iter()
            .map(|(class, _)| self.key(member, class))
            .collect();
        let keys = keys?;
        let classes: Option<Vec<u32>> = keys
            .iter()
            .map(|key| numbers.get(&(key.clone(), arm.to_owned())).copied())
            .collect();
        let classes = classes?;
        let Some(drawn) = self.trace(member, block_seed) else {
            self.fine = false;
            return None;
        };
        let (trace, requests) = (drawn.trace, drawn.counts.iter().sum());
        let load = match &member.load {
            MemberLoad::Open { cap, .. } => Load::Open { trace, cap: *cap },
            MemberLoad::Closed { clients, .. } => Load::Closed {
                trace,
                clients: *clients,
            },
            MemberLoad::Batch { .. } => Load::Closed { trace, clients: 1 },
        };
        let waits = member.settle.0 + if load.is_open() { drawn.last_ns } else { 0 };
        assembly.scheduled = DurNs(assembly.scheduled.0.saturating_add(waits));
        assembly.closed_cells += u32::from(!load.is_open());
        assembly.requests += u64::from(requests);
        for (key, count) in keys.iter().zip(&drawn.counts) {
            let asked = self.asked.get(&key.request).copied().flatten();
            let sum = assembly.output_tokens.zip(asked);
            assembly.output_tokens = sum.map(|(sum, asked)| {
                sum + u64::from(asked) * u64::from(*count) * u64::from(key.choices)
            });
        }
        Some(PlanCell {
            name: member.name.clone(),
            path: member.path.clone(),
            classes,
            load,
            requests,
            id_prefix,
            settle_ns: member.settle,
            drain_ns: member.drain,
            connections: member.connections,
            record: member.record,
            receive: member.receive,
        })
    }

    /// The trace of a member in a block.
    fn trace(&mut self, member: &Member, block_seed: u128) -> Option<Drawn> {
        let place = (member.name.clone(), block_seed);
        if let Some(known) = self.traces.get(&place) {
            return known.clone();
        }
        let made = self.draw(member, block_seed);
        self.traces.insert(place, made.clone());
        made
    }

    fn draw(&self, member: &Member, block_seed: u128) -> Option<Drawn> {
        let offsets = match &member.load {
            MemberLoad::Open { stages, .. } => Some(self.offsets(member, stages, block_seed)?),
            MemberLoad::Closed { .. } | MemberLoad::Batch { .. } => None,
        };
        let count = match (&member.load, &offsets) {
            (MemberLoad::Closed { requests, .. }, _) => *requests,
            (_, Some(offsets)) => u32::try_from(offsets.len()).ok()?,
            (_, None) => 1,
        };
        let shares: Vec<Ratio> = member.classes.iter().map(|(_, share)| *share).collect();
        let counts = shared_out(count, &shares)?;
        let dealt = deal(&counts, block_seed, &member.name);
        let panels: Option<Vec<u32>> = member
            .classes
            .iter()
            .map(|(class, _)| self.panel_length(class))
            .collect();
        let panels = panels?;
        // A batch is one body, whatever the panel.
        let is_batch = matches!(member.load, MemberLoad::Batch { .. });
        let mut sent = vec![0; counts.len()];
        let prompts = dealt
            .iter()
            .map(|class| {
                let class = *class as usize;
                let prompt: u32 = if is_batch {
                    0
                } else {
                    sent[class] % panels[class]
                };
                sent[class] += 1;
                prompt
            })
            .collect();
        let last = offsets.as_ref().and_then(|list| list.last());
        let last_ns = last.map_or(0, |offset| offset.0);
        let trace = TraceObject {
            format: TRACE_FORMAT.to_owned(),
            offsets_ns: offsets,
            prompts,
            classes: (counts.len() > 1).then_some(dealt),
        };
        let (_, bytes) = trace.to_object();
        Some(Drawn {
            trace: self.eval.context.keep(bytes),
            counts,
            last_ns,
        })
    }

    fn panel_length(&self, class: &Name) -> Option<u32> {
        let request = self.parts.requests.get(&class.text)?;
        let panel = self.parts.panels.get(&request.item.prompt.as_ref()?.text)?;
        u32::try_from(panel.prompts.len()).ok()
    }

    fn offsets(
        &self,
        member: &Member,
        stages: &[Stage],
        block_seed: u128,
    ) -> Option<Vec<OffsetNs>> {
        match arrivals(stages, block_seed, &member.name, 0) {
            Ok(offsets) if offsets.is_empty() => {
                self.eval.context.report(
                    Diagnostic::new(
                        codes::E0503,
                        member.load_span,
                        format!(
                            "`{}` sends nothing: no arrival falls into its time",
                            member.name
                        ),
                    )
                    .help("make it longer, or give `requests:`"),
                );
                None
            }
            Ok(offsets) => Some(offsets),
            Err(error) => {
                self.eval.context.report(Diagnostic::new(
                    codes::E0503,
                    member.load_span,
                    format!("`{}` has no schedule: {error}", member.name),
                ));
                None
            }
        }
    }
}
