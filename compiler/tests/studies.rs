//! Studies as people write them, with the parts that this build executes.

mod support;

use assize_plan::{CompareOp, Connections, Expect, Judgement, Node, Origin, Quantity, Stat};
use support::{codes, output};

/// An A/A study: one engine under two names.
const A_A: &str = "\
assize: 1
study: a-a
question: Does this host call one build faster than itself?
use: [std/engines/sim, std/rules/paired-sign]
seed: 7
prompts:
  docs: { synthetic: tokens, count: 16, tokens: 32, vocabulary: 32000 }
requests:
  generate: { api: openai/completions, prompt: docs, output: exactly(128), body: { temperature: 0 } }
arms:
  left: { engine: sim, server: servers/sim.yaml, model: small }
  right: { same_as: left, label: The same }
warmup: { load: closed(8), requests: 64 }
settle: 2s
cells:
  busy: { load: closed(32), requests: 512 }
  near: { load: poisson(9.5/s), requests: 512 }
blocks:
  confirmation: { repeat: 12, arm_order: counterbalanced, cells: [busy, near], cell_order: alternating }
decide:
  false-claims:
    like: paired-sign
    expect: none supported
    valid: [failed == 0, missing == 0]
    hypotheses:
      - left beats right on throughput in busy, median gain at least 1%
      - right beats left on throughput in busy, median gain at least 1%
      - left beats right on p95(e2e from intended) in near, median gain at least 5%
      - right beats left on p95(e2e from intended) in near, median gain at least 5%
";

/// A sweep of rates with an objective.
const SLO: &str = "\
assize: 1
study: slo
use: [std/rules/paired-sign, loads.yaml]
seed: 11
limits: { duration: 12h }
prompts:
  chat: { file: prompts.jsonl }
requests:
  ask: { api: openai/chat, prompt: chat, output: exactly(200), body: { temperature: 0 } }
arms:
  old: { endpoint: http://127.0.0.1:8000/v1, model: small }
  new: { like: old, endpoint: http://127.0.0.1:8001/v1 }
let:
  held: attainment(e2e from intended <= 15s, ttft from intended <= 1s)
settle: 5s
drain: 60s
cells:
  sweep:
    for: { rate: [4/s, 5/s, 6.5/s] }
    load: poisson(rate)
    requests: ceil_to(12s * rate, 8)
  day: { load: morning(2/s) }
blocks:
  confirmation: { repeat: 10, arm_order: counterbalanced, cells: [sweep], cell_order: rotating }
  descriptive: { cells: [day] }
decide:
  primary:
    like: paired-sign
    valid: [missing == 0]
    hypotheses:
      - new beats old by 2% on held in sweep(6.5/s)
      - new keeps within 2% of old on p50(tpot) of ask in sweep(4/s)
      - new holds p99(dispatch_lag) in sweep(5/s) <= 1ms
      - new holds 95% <= held in sweep(5/s)
";

const LOADS: &str = "\
assize: 1
module: loads
doc: Loads that studies share.
let:
  morning(peak rate): poisson(peak / 2) for 10s then poisson(peak) with cap(64) for 20s
";

fn slo() -> assize_compiler::Output {
    let world = support::world()
        .with_file("loads.yaml", LOADS)
        .with_file("study.yaml", SLO);
    let compiled = assize_compiler::compile("study.yaml", &world);
    let shown = support::shown(&compiled);
    compiled.output.unwrap_or_else(|| panic!("{shown}"))
}

#[test]
fn an_a_a_study_expects_no_support() {
    let output = output(A_A);
    let family = &output.plan.rules[0];
    assert_eq!(family.expect, Some(Expect::NoneSupported));
    assert_eq!(family.hypotheses.len(), 4);
    let right = output.plan.arm("right").unwrap();
    let left = output.plan.arm("left").unwrap();
    assert_eq!(
        (right.target.clone(), right.label.as_str()),
        (left.target.clone(), "The same")
    );
    // Both arms send the same bytes, so they share one class; the warmup is of the same class.
    assert_eq!(output.plan.requests.len(), 1);
    assert_eq!(output.plan.requests[0].arms, ["left", "right"]);
    let table = &output.plan.orders[0];
    assert_eq!(
        (table.position_spread, table.position_in_cell_order_spread),
        (0, 0)
    );
    let shown = &output.preview.hypotheses[0];
    assert_eq!(
        (shown.blocks, shown.tests, shown.wins_needed.best_case),
        (12, 4, 10)
    );
    assert_eq!(output.plan.panels[0].tokens.unwrap().fewest, 32);
    assert!(codes(A_A).is_empty());
}

#[test]
fn a_family_is_a_cell_for_each_value() {
    let plan = slo().plan;
    let first = &plan.units[0];
    let names: Vec<(&str, &str, u32)> = first
        .cells
        .iter()
        .map(|cell| (cell.name.as_str(), cell.path.as_str(), cell.requests))
        .collect();
    assert_eq!(
        names,
        [
            ("sweep(4/s)", "sweep.4-per-s", 48),
            ("sweep(5/s)", "sweep.5-per-s", 64),
            ("sweep(6.5/s)", "sweep.6.5-per-s", 80)
        ]
    );
    assert_eq!(plan.orders[0].cells[1][0], "sweep(5/s)");
}

#[test]
fn hypotheses_are_compiled_as_they_are_meant() {
    let plan = slo().plan;
    let hypotheses = &plan.rules[0].hypotheses;
    let ratio = |num, den| assize_units::Ratio::new(num, den).unwrap();
    assert_eq!(
        hypotheses[0].judgement,
        Judgement::BeatsBy {
            margin: ratio(1, 50)
        }
    );
    assert_eq!(hypotheses[0].cell, "sweep(6.5/s)");
    let measure = &hypotheses[0].measure;
    assert_eq!(measure.quantity, Quantity::Attainment);
    let within: Vec<_> = measure
        .within
        .iter()
        .map(|t| (t.quantity, t.from, t.at_most_s))
        .collect();
    assert_eq!(
        within,
        [
            (Quantity::Ttft, Some(Origin::Intended), ratio(1, 1)),
            (Quantity::E2e, Some(Origin::Intended), ratio(15, 1))
        ]
    );
    assert_eq!(
        hypotheses[1].judgement,
        Judgement::Keeps {
            within: ratio(1, 50)
        }
    );
    assert_eq!(hypotheses[1].measure.stat, Some(Stat::P50));
    assert_eq!(hypotheses[1].measure.class.as_deref(), Some("ask"));
    assert_eq!(hypotheses[2].control, None);
    assert_eq!(
        hypotheses[2].judgement,
        Judgement::Holds {
            op: CompareOp::Le,
            value: ratio(1, 1000)
        }
    );
    // `95% <= held` is `held >= 95%`.
    assert_eq!(
        hypotheses[3].judgement,
        Judgement::Holds {
            op: CompareOp::Ge,
            value: ratio(19, 20)
        }
    );
    assert!(matches!(
        plan.rules[0].valid[0].node,
        Node::Compare(CompareOp::Eq, _, _)
    ));
}

#[test]
fn a_function_of_a_module_makes_a_load() {
    let output = slo();
    let arrivals = output
        .plan
        .arrivals
        .iter()
        .find(|a| a.cell == "day")
        .unwrap();
    assert_eq!(arrivals.stages.len(), 2);
    let day = output
        .plan
        .units
        .iter()
        .flat_map(|u| &u.cells)
        .find(|c| c.name == "day")
        .unwrap();
    assert!(matches!(
        day.load,
        assize_plan::Load::Open { cap: Some(64), .. }
    ));
    assert_eq!(
        output
            .modules
            .iter()
            .map(|m| m.0.as_str())
            .collect::<Vec<_>>(),
        ["loads.yaml", "std/rules/paired-sign"]
    );
}

/// A second set that runs the same cells on a server that is not started afresh has ids of its own.
#[test]
fn ids_are_unique_within_a_servers_life() {
    let text = A_A
        .replace("blocks:\n", "blocks:\n  second: { cells: [busy], restart: false }\n  again: { cells: [busy], restart: false }\n")
        .replace("  left: { engine: sim, server: servers/sim.yaml", "  left: { engine: sim, endpoint: http://127.0.0.1:9/v1");
    let plan = output(&text).plan;
    let mut seen = std::collections::BTreeSet::new();
    for unit in &plan.units {
        for cell in unit.warmup.iter().chain(&unit.cells) {
            assert!(
                seen.insert((unit.arm.clone(), cell.id_prefix.clone())),
                "{} {}",
                unit.arm,
                cell.id_prefix
            );
        }
    }
    let set = |name: &str| {
        plan.units
            .iter()
            .find(|unit| unit.set == name)
            .unwrap()
            .cells[0]
            .id_prefix
            .clone()
    };
    assert_eq!(
        (set("again"), set("second")),
        ("busy-7".to_owned(), "second.busy-7".to_owned())
    );
}

#[test]
fn settings_are_looked_up_in_the_cell_then_at_top_level() {
    let text = "\
assize: 1
study: settings
settle: 3s
timeout: 40s
connections: reuse(idle = 4s)
prompts:
  mine: { file: prompts.jsonl }
requests:
  ask: { api: openai/chat, prompt: mine, output: at_most(8) }
  own: { like: ask, timeout: 20s }
send: ask
arms:
  theirs: { endpoint: http://127.0.0.1:8000, model: small, headers: { X-Team: rig } }
cells:
  plain: { load: closed(1), requests: 1 }
  quick: { load: closed(1), requests: 1, settle: 0s, timeout: 10s, connections: fresh }
  other: { load: closed(1), requests: 1, send: own, timeout: 10s }
";
    let plan = output(text).plan;
    let cell = |name: &str| {
        plan.units[0]
            .cells
            .iter()
            .find(|cell| cell.name == name)
            .unwrap()
    };
    let timeout =
        |name: &str| plan.class(cell(name).classes[0]).unwrap().timeout_ns.0 / 1_000_000_000;
    assert_eq!(
        (timeout("plain"), timeout("quick"), timeout("other")),
        (40, 10, 20)
    );
    assert_eq!(cell("plain").settle_ns.0, 3_000_000_000);
    assert_eq!(cell("quick").settle_ns.0, 0);
    assert!(
        matches!(cell("plain").connections, Connections::Reuse { idle_ns } if idle_ns.0 == 4_000_000_000)
    );
    assert_eq!(cell("quick").connections, Connections::Fresh);
    assert_eq!(plan.requests[0].path, "/chat/completions");
    assert_eq!(plan.arms[0].headers[0].0, "x-team");
    assert_eq!(plan.units[0].path, "everything/00/theirs");
}

/// One stream dealt out to two classes, 70% and 30%.
#[test]
fn shares_are_dealt_exactly_and_each_class_walks_its_own_panel() {
    let plan = support::studies::frozen(support::studies::MIXED);
    let cell = &plan.plan.units[0].cells[0];
    let names: Vec<&str> = cell
        .classes
        .iter()
        .map(|n| plan.plan.class(*n).unwrap().name.as_str())
        .collect();
    assert_eq!(names, ["chat", "document"]);
    let trace = plan.trace(cell.load.trace()).unwrap();
    let classes = trace.classes.clone().unwrap();
    let documents: Vec<u32> = (0..trace.len())
        .filter(|index| classes[*index] == 1)
        .map(|index| trace.prompts[index])
        .collect();
    assert_eq!(documents, [0, 1, 0, 1, 0, 1], "30% of 20, over two prompts");
    assert!(!classes.is_sorted(), "the order is drawn");
}
