//! What the first errors say, word for word, and how many of them one run finds.

mod support;

use support::{codes, compiled, shown};

const BASE: &str = "\
assize: 1
study: pair
seed: 7
prompts:
  mine: { file: prompts.jsonl, count: 8 }
requests:
  ask: { api: openai/chat, prompt: mine, output: at_most(128) }
arms:
  old: { endpoint: http://127.0.0.1:8000/v1, model: small }
  new: { endpoint: http://127.0.0.1:8001/v1, model: small }
let:
  count: 64
  near: 3/s
  faster: 16.9/s
cells:
  closed-32: { load: closed(32), requests: count }
  open-near: { load: poisson(near), requests: count }
  c:
    for: { clients: [1, 4, 8, 16] }
    load: closed(clients)
    requests: count
blocks:
  confirmation:
    repeat: 10
    arm_order: counterbalanced
    cells: [closed-32, open-near, c]
decide:
  primary:
    test: sign(ties = nonwins)
    correct: holm(5%)
    valid: [failed == 0]
    hypotheses:
      - new beats old on throughput in closed-32, median gain at least 1%
";

fn edited(edits: &[(&str, &str)]) -> String {
    edits.iter().fold(BASE.to_owned(), |text, (from, to)| {
        assert!(text.contains(from), "{from}");
        text.replacen(from, to, 1)
    })
}

/// The only error of an edited study: its headline and the first way out.
fn only(edits: &[(&str, &str)]) -> (String, String) {
    let found = compiled(&edited(edits));
    let errors: Vec<_> = found
        .diagnostics
        .iter()
        .filter(|d| !d.code.is_warning())
        .collect();
    assert_eq!(errors.len(), 1, "{}", shown(&found));
    let help = errors[0]
        .help
        .first()
        .map_or(String::new(), |help| help.text.clone());
    (errors[0].message.clone(), help)
}

fn says(edits: &[(&str, &str)], message: &str, help: &str) {
    assert_eq!(only(edits), (message.to_owned(), help.to_owned()));
}

#[test]
fn the_base_has_no_errors() {
    assert!(
        compiled(BASE).output.is_some(),
        "{}",
        shown(&compiled(BASE))
    );
    assert!(compiled(BASE).diagnostics.is_empty());
}

#[test]
fn names() {
    says(
        &[("throughput in closed-32", "throughput in closed32")],
        "no cell is called `closed32`",
        "did you mean `closed-32`?",
    );
    says(
        &[("requests: count }\n  open", "requests: count-1 }\n  open")],
        "`count-1` is one name, and nothing is called that; `count` exists",
        "subtract with spaces: `count - 1`",
    );
    says(
        &[("new beats old", "new beats odl")],
        "no arm is called `odl`",
        "did you mean `old`?",
    );
    says(
        &[("prompt: mine", "prompt: mime")],
        "no panel of prompts is called `mime`",
        "did you mean `mine`?",
    );
    says(
        &[("count: 64\n", "count: half * 2\n  half: count / 2\n")],
        "`count` stands on itself: count → half → count",
        "a formula may use names that are defined without it",
    );
    says(
        &[("count: 64\n", "count: 64\n  throughput: 3\n")],
        "`throughput` is a name of the language, and nothing shadows another name",
        "rename it",
    );
}

#[test]
fn units() {
    says(
        &[("count: 64\n", "count: near + 2s\n")],
        "cannot add a rate (`near`, 1/s) and a duration (`2s`)",
        "",
    );
    says(
        &[("poisson(near)", "poisson(near + 5%)")],
        "`near + 5%` does not say of what",
        "write `105% * near`",
    );
    says(
        &[("poisson(near)", "poisson(14.9)")],
        "a load needs a rate, found the number 14.9",
        "write `14.9/s`",
    );
    says(
        &[(
            "closed(32), requests: count",
            "closed(32), requests: 45s * faster",
        )],
        "`requests` must be whole: 45s * faster is 760.5",
        "round it: `ceil(45s * faster)`",
    );
    says(
        &[("count: 64", "count: 64 / 0")],
        "`64 / 0` has no value: division by zero",
        "",
    );
}

#[test]
fn a_number_that_the_plan_cannot_hold_is_an_error() {
    let text = edited(&[("near: 3/s", "near: 3/s\n  big: 9007199254740992")]);
    assert_eq!(codes(&text), ["E0316"]);
    let text = edited(&[("near: 3/s", "near: 3/s\n  big: 9007199254740991")]);
    assert!(codes(&text).is_empty());
    let limit = "[failed == 0, throughput >= 1 / 9007199254740993s]";
    assert_eq!(codes(&edited(&[("[failed == 0]", limit)])), ["E0316"]);
}

#[test]
fn metrics() {
    says(
        &[("throughput in closed-32", "p95(e2e) in closed-32")],
        "`e2e` does not say from when",
        "`from intended` includes the wait for a free client; `from sent` does not",
    );
    says(
        &[("throughput in closed-32", "throughput in c")],
        "`c` is 4 cells: c(1), c(4), c(8), c(16)",
        "name one: `c(16)`",
    );
    says(
        &[(
            "throughput in closed-32",
            "p95(tpot from sent) in closed-32",
        )],
        "`tpot` lies between two instants of its own and takes no origin",
        "",
    );
    says(
        &[("throughput in closed-32", "failed in closed-32")],
        "`failed in closed-32` has no better or worse",
        "make it a condition: `valid: [failed == 0]`, or `… holds failed in near == 0`",
    );
    says(
        &[("[failed == 0]", "[failed <= 1%]")],
        "`failed <= 1%` does not say of what",
        "a percent multiplies: `1% * offered`",
    );
}

#[test]
fn designs() {
    says(
        &[("cells: [closed-32, open-near, c]", "cells: [open-near, c]")],
        "no block runs `closed-32` on both `new` and `old`",
        "add the cell to a block set that runs these arms",
    );
    let four = "      - new beats old on throughput in closed-32, median gain at least 1%
      - old beats new on throughput in closed-32, median gain at least 1%
      - new beats old on throughput in c(4)
      - old beats new on throughput in c(4)
";
    says(
        &[
            ("repeat: 10", "repeat: 6"),
            (
                "      - new beats old on throughput in closed-32, median gain at least 1%\n",
                four,
            ),
        ],
        "no outcome of 6 blocks can reject 4 hypotheses at 5%: 6 wins of 6 give 0.0156, the first step is 0.0125",
        "7 blocks reach 0.0078",
    );
    says(
        &[
            ("seed: 7\n", ""),
            ("arm_order: counterbalanced\n", "arm_order: rotating\n"),
        ],
        "`poisson(near)` is drawn, and the study has no `seed`",
        "add a whole number at top level: `seed: 2026101900`",
    );
    let compare = "compare:\n  one-flag: { arms: [old, new], differ: [model] }\ndecide:\n";
    says(
        &[("decide:\n", compare)],
        "`one-flag` lets the arms differ in `model`; they also differ in `endpoint`",
        "make the arms alike, or list the key under `differ`",
    );
}

#[test]
fn loads_end_once() {
    says(
        &[(
            "poisson(near), requests: count",
            "poisson(near) for 60s, requests: count",
        )],
        "the amount is given twice",
        "remove one of the two",
    );
    says(
        &[("closed(32), requests: count", "closed(32) for 60s")],
        "`for` belongs to an open load: a closed loop ends with its requests",
        "give `requests:`",
    );
}

#[test]
fn independent_errors_come_in_one_run_by_place() {
    let text = edited(&[
        ("file: prompts.jsonl", "file: promts.jsonl"),
        ("count: 64", "count: 64 + 1s"),
        ("poisson(near)", "poisson(nera)"),
        ("clients: [1, 4, 8, 16]", "clients: [1, 4, 4]"),
        ("sign(ties = nonwins)", "sing(ties = nonwins)"),
        ("holm(5%)", "holm(5)"),
        ("[failed == 0]", "[failed]"),
        ("new beats old on throughput", "new beats old on p95(e2e)"),
    ]);
    assert_eq!(
        codes(&text),
        [
            "E0216", "E0310", "E0210", "E0406", "E0602", "E0312", "E0607", "E0313"
        ]
    );
}

#[test]
fn where_reading_has_failed_only_faults_of_types_are_added() {
    let text = edited(&[
        ("closed(32), requests: count", "closed(32), request: count"),
        ("poisson(near)", "poisson(14.9)"),
    ]);
    assert_eq!(codes(&text), ["E0107", "E0312"]);
}

#[test]
fn a_study_that_is_not_there_is_said_to_be_missing() {
    let found = assize_compiler::compile("nowhere.yaml", &support::world());
    assert!(found.output.is_none());
    assert!(shown(&found).contains("`nowhere.yaml`: there is no such file"));
}

#[test]
fn panel_rows_are_named_by_their_lines() {
    let rows = "{\"prompt\": \"a\"}\n\n{\"prompt\": \"b\", \"id\": 3}\n{\"prompt\": \"c\", \"messages\": []}\n";
    let world = support::world()
        .with_file("prompts.jsonl", rows)
        .with_file("study.yaml", BASE);
    let found = assize_compiler::compile("study.yaml", &world);
    let diagnostic = found
        .diagnostics
        .iter()
        .find(|d| d.code.id == "E0504")
        .expect("a broken panel");
    assert!(
        diagnostic.message.starts_with("`prompts.jsonl`, line 2: "),
        "{}",
        diagnostic.message
    );
    assert!(
        diagnostic.notes[0].contains("line 3: unknown field `id`"),
        "{:?}",
        diagnostic.notes
    );
    assert!(
        diagnostic.notes[1].contains("line 4: two of the three keys"),
        "{:?}",
        diagnostic.notes
    );
}

/// The rules of the published study's loads, and the places where floats round wrongly.
#[test]
fn planning_arithmetic_is_exact() {
    let value = |formula: &str| {
        let text = edited(&[(
            "  near: 3/s\n",
            &format!("  near: 3/s\n  wanted: {formula}\n"),
        )]);
        let output = support::output(&text);
        let found = output
            .plan
            .values
            .iter()
            .find(|value| value.name == "wanted")
            .unwrap();
        found.value.to_string()
    };
    assert_eq!(
        value("floor_to(90% * min(16.6504/s, 16.8997/s), 0.1/s)"),
        "14.9"
    );
    assert_eq!(
        value("floor_to(90% * min(3.2635/s, 3.3398/s), 0.1/s)"),
        "2.9"
    );
    assert_eq!(value("max(512, ceil_to(45s * 16.8997/s, 32))"), "768");
    assert_eq!(value("45s * 16.8997/s"), "760.4865");
    assert_eq!(value("floor_to(115 / 100, 0.01)"), "1.15");
    assert_eq!(value("floor(10 * 0.9 * 1.0 / 0.9)"), "10");
    assert_eq!(value("floor_to(29 / 100, 0.01)"), "0.29");
}

#[test]
fn functions_check_their_arguments() {
    let call = |call: &str| {
        let function =
            "  near: 3/s\n  share_of(share percent, pace rate): floor_to(share * pace, 0.1/s)\n";
        edited(&[("  near: 3/s\n", function), ("poisson(near)", call)])
    };
    assert!(
        compiled(&call("'poisson(share_of(25%, near))'"))
            .output
            .is_some()
    );
    assert!(
        compiled(&call("'poisson(share_of(pace = near, share = 25%))'"))
            .output
            .is_some()
    );
    assert_eq!(
        codes(&call("'poisson(share_of(near, 25%))'")),
        ["E0312", "E0312"]
    );
    assert_eq!(codes(&call("'poisson(share_of(25%))'")), ["E0315"]);
}

#[test]
fn a_key_is_named_and_never_written() {
    let text = edited(&[(
        "model: small }\n  new",
        "model: small, key: sk-abc }\n  new",
    )]);
    assert_eq!(codes(&text), ["E0512"]);
    let text = edited(&[(
        "model: small }\n  new",
        "model: small, key: HOSTED_KEY }\n  new",
    )]);
    let plan = support::output(&text).plan;
    assert_eq!(
        plan.arm("old").unwrap().key_env.as_deref(),
        Some("HOSTED_KEY")
    );
}

#[test]
fn a_file_of_certificates_holds_certificates_and_no_key() {
    let certificate = "-----BEGIN CERTIFICATE-----\nAA==\n-----END CERTIFICATE-----\n";
    let key = "-----BEGIN PRIVATE KEY-----\nAA==\n-----END PRIVATE KEY-----\n";
    let text = edited(&[(
        "old: { endpoint: http://127.0.0.1:8000/v1, model: small }",
        "old: { endpoint: https://127.0.0.1:8000/v1, model: small, ca: ca.pem }",
    )]);
    let codes = |file: &str| -> Vec<&str> {
        let world = support::world()
            .with_file("study.yaml", text.as_str())
            .with_file("ca.pem", file);
        let found = assize_compiler::compile("study.yaml", &world);
        let errors = found.diagnostics.iter().filter(|d| !d.code.is_warning());
        errors.map(|diagnostic| diagnostic.code.id).collect()
    };
    assert_eq!(codes(certificate), Vec::<&str>::new());
    assert_eq!(codes(&format!("{certificate}{key}")), ["E0515"]);
    assert_eq!(codes("nothing"), ["E0515"]);
}
