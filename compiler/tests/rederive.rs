//! The Python script of the documentation derives every draw of a plan again.

#![allow(
    clippy::disallowed_methods,
    reason = "the script reads a folder, so one is written"
)]

mod support;

use std::path::{Path, PathBuf};
use std::process::Command;

use assize_plan::write_folder;
use support::studies::{CLOSED, HELLO, MIXED, OPEN, PAIR, frozen};

/// Three arms, an odd number: rows and their reverses; rotating cells; shuffled sets.
const THREE: &str = "\
assize: 1
study: three
seed: 42
prompts:
  mine: { file: prompts.jsonl }
requests:
  ask: { api: openai/chat, prompt: mine, output: at_most(16) }
arms:
  a: { endpoint: http://127.0.0.1:8000/v1, model: small }
  b: { endpoint: http://127.0.0.1:8001/v1, model: small }
  c: { endpoint: http://127.0.0.1:8002/v1, model: small }
cells:
  sweep:
    for: { rate: [4/s, 7.5/s], cv: [0.5, 0.25] }
    load: gamma(rate, cv)
    requests: 12
blocks:
  balanced: { repeat: 7, arm_order: counterbalanced, cell_order: rotating }
  drawn: { repeat: 5, arm_order: shuffled, cell_order: shuffled }
  turned: { repeat: 4, arm_order: rotating, cell_order: alternating }
";

fn folder(name: &str) -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("rederive-{name}.plan"))
}

fn python() -> Option<Command> {
    let found = Command::new("python3").arg("--version").output();
    if found.is_ok_and(|output| output.status.success()) {
        return Some(Command::new("python3"));
    }
    println!("skipped: there is no python3 here");
    None
}

#[test]
fn every_draw_is_derived_again_by_the_standard_library() {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/rederive_plan.py");
    for (name, text) in [
        ("hello", HELLO),
        ("closed", CLOSED),
        ("open", OPEN),
        ("pair", PAIR),
        ("three", THREE),
        ("mixed", MIXED),
    ] {
        let bundle = frozen(text);
        let folder = folder(name);
        if folder.exists() {
            std::fs::remove_dir_all(&folder).unwrap();
        }
        write_folder(&folder, &bundle.to_files()).unwrap();
        let Some(mut python) = python() else {
            return;
        };
        let output = python.arg("-B").arg(&script).arg(&folder).output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(
            output.status.success(),
            "{name}: {text}{}",
            String::from_utf8_lossy(&output.stderr)
        );
        assert_eq!(
            text.lines().last(),
            Some(bundle.hash.hex().as_str()),
            "{name}"
        );
    }
}

/// A plan whose draws are not the definition's is found out, though its seal is whole.
#[test]
fn a_changed_offset_is_found() {
    let Some(mut python) = python() else {
        return;
    };
    let mut bundle = frozen(OPEN);
    for stages in bundle
        .plan
        .arrivals
        .iter_mut()
        .map(|arrivals| &mut arrivals.stages)
    {
        if let assize_plan::ArrivalProcess::Poisson { rate } = &mut stages[0].process {
            *rate = rate.add(assize_units::Ratio::ONE).unwrap();
        }
    }
    let folder = folder("changed");
    if folder.exists() {
        std::fs::remove_dir_all(&folder).unwrap();
    }
    write_folder(&folder, &bundle.to_files()).unwrap();
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/rederive_plan.py");
    let output = python.arg("-B").arg(&script).arg(&folder).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(
        !output.status.success() && text.contains("DIFFERS: offsets of near"),
        "{text}"
    );
}
