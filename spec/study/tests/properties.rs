//! What holds for every text: no panic, and no meaning in layout or in the order of keys.

use assize_study::ast::{Document, Study};
use assize_study::diagnostic::{Diagnostics, render_github, render_human, render_json};
use assize_study::lower::{parse_document, parse_server_file};
use assize_study::source::{Source, Sources};
use proptest::prelude::*;

fn read(text: &str) -> (Option<Document>, Diagnostics, Sources) {
    let mut sources = Sources::new();
    let id = sources.add(Source::new("case", text));
    let mut diagnostics = Diagnostics::new();
    let source = sources.get(id).expect("just added");
    let document = parse_document(source, id, &mut diagnostics);
    parse_server_file(source, id, &mut diagnostics);
    (document, diagnostics, sources)
}

fn render_all(diagnostics: &Diagnostics, sources: &Sources) {
    let _ = render_human(diagnostics, sources, false);
    let _ = render_json(diagnostics, sources);
    let _ = render_github(diagnostics, sources);
}

fn study(text: &str) -> Study {
    let (document, _, _) = read(text);
    let mut diagnostics = Diagnostics::new();
    let source = Source::new("case", text);
    parse_document(&source, assize_study::source::SourceId(0), &mut diagnostics);
    assert!(!diagnostics.has_errors(), "{text}\n{diagnostics:?}");
    match document {
        Some(Document::Study(study)) => *study,
        other => panic!("no study: {other:?}"),
    }
}

/// Sections of a study, each with its entries, each with its fields.
const SECTIONS: &[(&str, &[(&str, &[&str])])] = &[
    (
        "prompts",
        &[
            ("docs", &["file: a.jsonl", "count: 8"]),
            ("more", &["synthetic: tokens", "count: 4", "tokens: 8"]),
        ],
    ),
    (
        "requests",
        &[(
            "ask",
            &[
                "api: openai/chat",
                "prompt: docs",
                "output: exactly(8)",
                "body: { temperature: 0, x: [a, b] }",
            ],
        )],
    ),
    (
        "arms",
        &[
            (
                "one",
                &[
                    "endpoint: http://127.0.0.1:1/v1",
                    "model: m",
                    "headers: { A: \"1\", B: \"2\" }",
                ],
            ),
            ("two", &["like: one", "label: Two"]),
        ],
    ),
    ("let", &[]),
    (
        "cells",
        &[
            ("busy", &["load: closed(4)", "requests: 64", "settle: 1s"]),
            (
                "near",
                &[
                    "load: poisson(rate)",
                    "requests: 8",
                    "for: { rate: [1/s, 2/s] }",
                ],
            ),
        ],
    ),
];

fn write(order: &[usize], inner: bool, flow: bool, blanks: bool) -> String {
    let mut parts = vec![
        "assize: 1".to_owned(),
        "study: s".to_owned(),
        "seed: 1".to_owned(),
    ];
    for (section, entries) in SECTIONS {
        let mut text = format!("{section}:");
        if entries.is_empty() {
            text += " { low: 1/s, high: 2/s }";
        }
        let mut entries: Vec<_> = entries.iter().collect();
        if inner {
            entries.reverse();
        }
        for (name, fields) in entries {
            let mut fields = fields.to_vec();
            if inner {
                fields.reverse();
            }
            if flow {
                text += &format!("\n  {name}: {{ {} }}", fields.join(", "));
            } else {
                text += &format!("\n  {name}:");
                for field in fields {
                    text += &format!("\n      {field}");
                }
            }
        }
        parts.push(text);
    }
    let gap = if blanks { "\n\n# a remark\n" } else { "\n" };
    let ordered: Vec<&str> = order.iter().map(|at| parts[*at].as_str()).collect();
    ordered.join(gap) + "\n"
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn no_bytes_make_it_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        let (_, diagnostics, sources) = read(&String::from_utf8_lossy(&bytes));
        render_all(&diagnostics, &sources);
    }

    #[test]
    fn no_text_of_yaml_marks_makes_it_panic(
        words in proptest::collection::vec(proptest::sample::select(vec![
            "a", "é", "cells", "load", ": ", ":", "\n", "\n  ", "- ", "{", "}", "[", "]", ",", "|", ">",
            "\"", "'", "#", " ", "&x", "*x", "!t", "? ", "%", "---", "...", "closed(4", ")", "5m", "\t", "\r\n",
        ]), 0..40)
    ) {
        let (_, diagnostics, sources) = read(&words.concat());
        render_all(&diagnostics, &sources);
    }

    #[test]
    fn a_damaged_study_does_not_make_it_panic(at in 0usize..600, with in ".{0,4}") {
        let whole = write(&[0, 1, 2, 3, 4, 5, 6, 7], false, true, false);
        let at = at.min(whole.len());
        let at = (0..=at).rev().find(|at| whole.is_char_boundary(*at)).unwrap_or(0);
        let (_, diagnostics, sources) = read(&format!("{}{with}{}", &whole[..at], &whole[at..]));
        render_all(&diagnostics, &sources);
    }

    #[test]
    fn order_and_layout_mean_nothing(
        order in Just(vec![0usize, 1, 2, 3, 4, 5, 6, 7]).prop_shuffle(),
        inner: bool, flow: bool, blanks: bool,
    ) {
        let first = study(&write(&[0, 1, 2, 3, 4, 5, 6, 7], false, false, false));
        let second = study(&write(&order, inner, flow, blanks));
        prop_assert_eq!(first, second);
    }
}
