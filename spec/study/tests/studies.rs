//! The twelve whole studies of the language's design: each lowers, and only what this build cannot
//! execute is reported.
#![allow(clippy::disallowed_methods, reason = "tests read their fixtures")]

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use assize_study::ast::{ClassLoad, Document, Study};
use assize_study::diagnostic::{Diagnostics, render_human};
use assize_study::lower::parse_document;
use assize_study::source::{Source, Sources};

fn fixtures() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/studies");
    let mut files: Vec<PathBuf> = std::fs::read_dir(folder)
        .expect("the folder of studies")
        .map(|entry| entry.expect("an entry").path())
        .collect();
    files.sort();
    files
}

fn read(path: &Path) -> (Option<Document>, Diagnostics, Sources) {
    let text = std::fs::read_to_string(path).expect("a readable study");
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let mut sources = Sources::new();
    let id = sources.add(Source::new(name, text));
    let mut diagnostics = Diagnostics::new();
    let source = sources.get(id).expect("just added");
    let document = parse_document(source, id, &mut diagnostics);
    (document, diagnostics, sources)
}

fn study(name: &str) -> Study {
    let path = fixtures()
        .into_iter()
        .find(|path| path.to_string_lossy().contains(name))
        .expect("a fixture");
    match read(&path).0 {
        Some(Document::Study(study)) => *study,
        other => panic!("{name} is no study: {other:?}"),
    }
}

#[test]
fn every_study_lowers_and_only_missing_parts_are_reported() {
    let mut report = String::new();
    for path in fixtures() {
        let (document, diagnostics, sources) = read(&path);
        assert!(document.is_some(), "{}", path.display());
        let others: Vec<&str> = diagnostics
            .iter()
            .map(|diagnostic| diagnostic.code.id)
            .filter(|id| *id != "E0106")
            .collect();
        let shown = render_human(&diagnostics, &sources, false);
        assert!(others.is_empty(), "{}:\n{shown}", path.display());
        let _ = writeln!(
            report,
            "{}",
            path.file_name().unwrap_or_default().to_string_lossy()
        );
        for diagnostic in diagnostics.sorted() {
            let source = sources
                .get(diagnostic.primary.span.source)
                .expect("a source");
            let at = source.position(diagnostic.primary.span.start as usize);
            let _ = writeln!(report, "  {}:{} {}", at.line, at.column, diagnostic.message);
        }
    }
    insta::assert_snapshot!(report);
}

#[test]
fn the_flagship_says_what_it_means() {
    let study = study("00-flagship");
    assert_eq!(study.seed.map(|seed| seed.value), Some(2_026_101_800));
    assert_eq!(study.uses.len(), 4);
    let arms: Vec<&str> = study.declarations.arms.names().collect();
    assert_eq!(arms, ["k16v8", "flashinfer", "fa3"]);
    let primary = &study
        .declarations
        .decide
        .get("primary")
        .expect("a family")
        .item;
    assert_eq!(primary.hypotheses.len(), 4);
    assert_eq!(primary.valid.len(), 2);
    assert_eq!(
        primary.test.as_ref().map(|test| test.name.text.as_str()),
        Some("sign")
    );
    let near = &study
        .declarations
        .cells
        .get("open-near")
        .expect("a cell")
        .item;
    let Some(ClassLoad::One(load)) = &near.load else {
        panic!("one load");
    };
    assert_eq!(load.stages[0].process.name.text, "poisson");
}

#[test]
fn arguments_are_texts_and_families_keep_their_order() {
    let flags = study("08-flag");
    let base = &flags.declarations.arms.get("base").expect("an arm").item;
    let args: Vec<&str> = base.args.iter().map(|arg| arg.value.as_str()).collect();
    assert_eq!(args, ["--max-num-seqs", "96"]);
    assert!(base.is_abstract);

    let engines = study("02-three");
    let cell = &engines.declarations.cells.get("c").expect("a family").item;
    let family = cell.family.as_ref().expect("parameters");
    assert_eq!(family.params[0].0.text, "clients");
    assert_eq!(family.params[0].1.len(), 4);
}

#[test]
fn the_smallest_study_has_no_diagnostic_at_all() {
    let path = fixtures()
        .into_iter()
        .find(|path| path.to_string_lossy().contains("03-smallest"))
        .expect("a fixture");
    assert!(read(&path).1.is_empty());
}
