//! Every example is sound, is frozen to one hash, runs in virtual time, and its evidence verifies.

#![allow(clippy::disallowed_methods, reason = "a test writes and reads folders")]

use std::path::{Path, PathBuf};

use assize_evidence::MemoryStore;
use assize_sim::VirtualLink;
use assize_verbs::study::{DiagnosticForm, compile_file};
use assize_verbs::{plans, run_in_virtual_time, verify};

fn examples() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
    [
        "00-hello",
        "01-closed-loop",
        "02-open-loop",
        "03-two-arms-blocks",
        "demo",
    ]
    .map(|name| root.join(name))
    .to_vec()
}

#[test]
fn every_example_runs_and_verifies() {
    for folder in examples() {
        let compiled = compile_file(&folder).expect("the study is there");
        let said = compiled
            .diagnostics
            .render(DiagnosticForm::Human { colour: false });
        assert!(
            !compiled.diagnostics.has_errors(),
            "{}:\n{said}",
            folder.display()
        );
        let bundle = compiled.bundle.expect("a study without errors has a plan");
        let store = MemoryStore::new();
        let outcome = run_in_virtual_time(&bundle, VirtualLink::default(), &store, &mut |_| {});
        assert!(outcome.is_complete(), "{}: {outcome:?}", folder.display());
        let analysis = verify::read(&store, None)
            .unwrap_or_else(|problem| panic!("{}: {problem:?}", folder.display()));
        assert!(analysis.verified.is_complete());
        for cell in &analysis.cells {
            let summary = cell.summary.as_ref().expect("the cell ran");
            assert_eq!(
                (summary.valid, summary.failed),
                (summary.offered, 0),
                "{} {}",
                folder.display(),
                cell.cell
            );
        }
    }
}

#[test]
fn freezing_twice_in_two_folders_gives_one_hash() {
    let place = tempfile::tempdir().unwrap();
    for folder in examples() {
        let hashes: Vec<_> = ["one", "two"]
            .iter()
            .map(|name| {
                let bundle = compile_file(&folder).unwrap().bundle.unwrap();
                let out = place
                    .path()
                    .join(name)
                    .join(format!("{}.plan", bundle.plan.study));
                std::fs::create_dir_all(out.parent().unwrap()).unwrap();
                plans::write(&out, &bundle).unwrap();
                let opened = plans::open(&out).unwrap();
                let bytes = std::fs::read(out.join("plan.json")).unwrap();
                assert_eq!(
                    assize_plan::Hash::of(&bytes),
                    opened.hash,
                    "sha256sum plan.json is the plan's hash"
                );
                opened.hash
            })
            .collect();
        assert_eq!(hashes[0], hashes[1]);
    }
}

#[test]
fn a_tampered_plan_is_refused_and_the_file_named() {
    let place = tempfile::tempdir().unwrap();
    let bundle = compile_file(&examples()[0]).unwrap().bundle.unwrap();
    let out = place.path().join("hello.plan");
    plans::write(&out, &bundle).unwrap();
    for name in bundle.to_files().keys() {
        let path = out.join(name);
        let honest = std::fs::read(&path).unwrap();
        let mut changed = honest.clone();
        let middle = changed.len() / 2;
        changed[middle] ^= 1;
        std::fs::write(&path, changed).unwrap();
        let problem = plans::open(&out).unwrap_err();
        assert_eq!(problem.status, assize_verbs::Status::No);
        assert!(
            name == "SHA256SUMS" || problem.message.contains(name.as_str()),
            "{name}: {}",
            problem.message
        );
        std::fs::write(&path, honest).unwrap();
    }
    std::fs::write(out.join("extra"), "x").unwrap();
    assert!(plans::open(&out).unwrap_err().message.contains("extra"));
}
