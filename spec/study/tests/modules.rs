//! The library's modules and server files are read by the same front end.

use assize_study::ast::{Document, ServerKind, SimKey};
use assize_study::diagnostic::{Diagnostics, render_github, render_human, render_json};
use assize_study::lower::{parse_document, parse_server_file};
use assize_study::source::{Source, Sources};

fn one(name: &str, text: &str) -> (Sources, assize_study::source::SourceId) {
    let mut sources = Sources::new();
    let id = sources.add(Source::new(name, text));
    (sources, id)
}

#[test]
fn every_library_module_reads_without_a_diagnostic() {
    for (name, text) in assize_modules::ALL {
        let (sources, id) = one(name, text);
        let mut diagnostics = Diagnostics::new();
        let source = sources.get(id).expect("just added");
        let document = parse_document(source, id, &mut diagnostics);
        let shown = render_human(&diagnostics, &sources, false);
        assert!(diagnostics.is_empty(), "{name}:\n{shown}");
        assert!(matches!(document, Some(Document::Module(_))), "{name}");
    }
}

#[test]
fn the_rule_of_the_published_study_is_in_the_library() {
    let text = assize_modules::get("std/rules/paired-sign").expect("a module");
    let (sources, id) = one("std/rules/paired-sign", text);
    let source = sources.get(id).expect("just added");
    let document = parse_document(source, id, &mut Diagnostics::new()).expect("a module");
    let rule = &document
        .declarations()
        .decide
        .get("paired-sign")
        .expect("a rule")
        .item;
    assert!(rule.is_abstract);
    assert_eq!(
        rule.correct.as_ref().map(|call| call.name.text.as_str()),
        Some("holm")
    );
}

fn server(text: &str) -> (Option<assize_study::ast::ServerFile>, Diagnostics, Sources) {
    let (sources, id) = one("servers/x.yaml", text);
    let mut diagnostics = Diagnostics::new();
    let source = sources.get(id).expect("just added");
    let file = parse_server_file(source, id, &mut diagnostics);
    (file, diagnostics, sources)
}

#[test]
fn a_server_file_describes_a_process() {
    let (file, diagnostics, _) = server(
        "assize: 1\ncommand: [vllm, serve, m, --port, \"8000\"]\nbase: http://127.0.0.1:8000/v1\n\
         ready: { get: /health, within: 600s }\nenv: { A: \"1\" }\npass: [HF_HOME]\n\
         stop: { signal: TERM, within: 30s }\nexternal: [models/m]\n",
    );
    assert!(diagnostics.is_empty());
    let Some(ServerKind::Process(process)) = file.map(|file| file.kind) else {
        panic!("a process");
    };
    assert_eq!(process.command.value.len(), 5);
    assert_eq!(process.ready.get.value, "/health");
    assert_eq!(process.env[0].1.value, "1");
}

#[test]
fn a_server_file_describes_the_simulated_engine() {
    let (file, diagnostics, _) =
        server("assize: 1\nsim: { step: 8ms, max_seqs: 64, jitter: 5%, port: 8100 }\n");
    assert!(diagnostics.is_empty());
    let Some(ServerKind::Sim(sim)) = file.map(|file| file.kind) else {
        panic!("the simulated engine");
    };
    assert!(sim.get(SimKey::Step).is_some());
    assert!(sim.get(SimKey::Seed).is_none());
}

#[test]
fn every_fault_of_a_server_file_is_reported_at_once() {
    let (_, diagnostics, sources) = server(
        "assize: 1\nsim:\n  stepp: 8ms\n  max_seqs: 5ms\n  jitter: 0.1\n  port: eighty\nbase: x\n",
    );
    insta::assert_snapshot!("server_human", render_human(&diagnostics, &sources, false));
}

#[test]
fn the_three_renderings_of_one_run() {
    let text = "assize: 1\nstudy: é-x\nseed: 1\nseed: 2\nsettle: 5m\n";
    let (sources, id) = one("a,b.yaml", text);
    let mut diagnostics = Diagnostics::new();
    let source = sources.get(id).expect("just added");
    parse_document(source, id, &mut diagnostics);
    insta::assert_snapshot!("json", render_json(&diagnostics, &sources));
    insta::assert_snapshot!("github", render_github(&diagnostics, &sources));
    let colour = render_human(&diagnostics, &sources, true);
    assert!(colour.contains("\u{1b}["));
    let plain = render_human(&diagnostics, &sources, false);
    assert!(!plain.contains('\u{1b}'));
}
