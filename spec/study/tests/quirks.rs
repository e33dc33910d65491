//! Oddities of YAML, collected outside the project: what the tree makes of each, and what each value
//! is at a place that takes a text, a place that takes an expression, and in a request's body.
#![allow(clippy::disallowed_methods, reason = "tests read their fixtures")]

use std::fmt::Write as _;
use std::path::Path;

use assize_study::ast::{BodyValue, Document};
use assize_study::diagnostic::Diagnostics;
use assize_study::lower::parse_document;
use assize_study::source::{Source, SourceId};
use assize_study::tree::{self, Node, NodeKind};

struct Case {
    id: String,
    input: String,
}

fn cases() -> Vec<Case> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/yaml_quirks.jsonl");
    let text = std::fs::read_to_string(path).expect("the cases");
    text.lines()
        .map(|line| {
            let case: serde_json::Value = serde_json::from_str(line).expect("a case");
            let field = |key: &str| case[key].as_str().expect("a string").to_owned();
            Case {
                id: field("id"),
                input: field("input"),
            }
        })
        .collect()
}

/// The codes of a run with their lines and columns.
fn codes(diagnostics: &Diagnostics, source: &Source) -> String {
    let shown: Vec<String> = diagnostics
        .sorted()
        .iter()
        .map(|found| {
            let at = source.position(found.primary.span.start as usize);
            format!("{}@{}:{}", found.code, at.line, at.column)
        })
        .collect();
    shown.join(" ")
}

fn tree_of(input: &str) -> Result<Node, String> {
    let source = Source::new("case", input);
    let mut diagnostics = Diagnostics::new();
    tree::parse(&source, SourceId(0), &mut diagnostics).ok_or_else(|| codes(&diagnostics, &source))
}

/// What the value of a mapping's key is, written into a study at three places.
fn at_places(written: &str) -> String {
    let study = |top: &str, body: &str| {
        format!(
            "assize: 1\nstudy: x\n{top}prompts: {{ p: {{ file: p }} }}\nrequests:\n  r:\n    api: openai/chat\n    \
             prompt: p\n    output: at_most(1)\n{body}arms: {{ a: {{ endpoint: e, model: m }} }}\n\
             cells: {{ c: {{ load: closed(1) }} }}\n"
        )
    };
    let read = |text: &str| {
        let source = Source::new("case", text);
        let mut diagnostics = Diagnostics::new();
        let document = parse_document(&source, SourceId(0), &mut diagnostics);
        let ids: Vec<&str> = diagnostics.iter().map(|found| found.code.id).collect();
        let study = document.and_then(|document| match document {
            Document::Study(study) => Some(study),
            Document::Module(_) => None,
        });
        (study, ids.join(" "))
    };
    let (question, ids) = read(&study(&format!("question: {written}\n"), ""));
    let text = match question.and_then(|study| study.question) {
        Some(text) if ids.is_empty() => format!("{:?}", text.value),
        _ => ids,
    };
    let (study_, ids) = read(&study(&format!("settle: {written}\n"), ""));
    let expr = match study_.and_then(|study| study.settings.settle) {
        Some(_) if ids.is_empty() => "ok".to_owned(),
        _ => ids,
    };
    let (study_, ids) = read(&study("", &format!("    body: {{ k: {written} }}\n")));
    let body = study_
        .filter(|_| ids.is_empty())
        .and_then(|study| {
            let request = &study.declarations.requests.get("r")?.item;
            match &request.body.as_ref()?.entries.first()?.1 {
                BodyValue::Literal(text) => Some(format!("JSON {}", text.value)),
                BodyValue::Text(text) => Some(format!("{:?}", text.value)),
                BodyValue::List(_) | BodyValue::Object(_) => Some("a collection".to_owned()),
            }
        })
        .unwrap_or(ids);
    format!("text {text} · expression {expr} · body {body}")
}

#[test]
fn every_quirk_is_refused_with_a_place_or_kept_as_written() {
    let mut report = String::new();
    for case in cases() {
        let _ = writeln!(report, "{} {:?}", case.id, case.input);
        let node = match tree_of(&case.input) {
            Ok(node) => node,
            Err(codes) => {
                assert!(codes.contains('@'), "{} has no place", case.id);
                let _ = writeln!(report, "  refused: {codes}");
                continue;
            }
        };
        let source = Source::new("case", case.input.as_str());
        let NodeKind::Map(entries) = &node.kind else {
            let mut diagnostics = Diagnostics::new();
            parse_document(&source, SourceId(0), &mut diagnostics);
            let _ = writeln!(report, "  refused: {}", codes(&diagnostics, &source));
            continue;
        };
        let mut values: Vec<&Node> = Vec::new();
        for (_, value) in entries {
            match &value.kind {
                NodeKind::List(items) => values.extend(items),
                NodeKind::Map(_) => {}
                _ => values.push(value),
            }
        }
        for value in values {
            let written = source.slice(value.span);
            if !written.contains('\n') {
                let _ = writeln!(report, "  {written}: {}", at_places(written));
            } else if let NodeKind::Scalar(scalar) = &value.kind {
                let _ = writeln!(report, "  {:?}", scalar.text);
            }
        }
        let mut diagnostics = Diagnostics::new();
        parse_document(&source, SourceId(0), &mut diagnostics);
        assert!(diagnostics.has_errors(), "{} is no study", case.id);
    }
    insta::assert_snapshot!(report);
}

/// The codes that the engine's metrics give, which are texts under free names.
fn metrics(first: &str, second: &str) -> String {
    let text = format!(
        "assize: 1\nmodule: m\ndoc: d\nengines:\n  e:\n    metrics:\n      {first}: a\n      {second}: b\n"
    );
    let source = Source::new("case", text);
    let mut diagnostics = Diagnostics::new();
    parse_document(&source, SourceId(0), &mut diagnostics);
    codes(&diagnostics, &source)
}

#[test]
fn a_repeated_key_is_an_error_however_it_is_quoted() {
    assert_eq!(metrics("rate", "rate"), "E0108@8:7");
    assert_eq!(metrics("rate", "'rate'"), "E0108@8:7");
    assert_eq!(metrics("1", "'1'"), "E0201@7:7 E0108@8:7");
}
