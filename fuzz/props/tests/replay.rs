//! Runs every target over its committed corpus and over what fuzzing found before.
#![allow(
    clippy::disallowed_methods,
    reason = "tests read the committed corpora"
)]

use std::path::{Path, PathBuf};

use assize_props::{TARGETS, canary};

fn inputs(kind: &str, target: &str) -> Vec<(PathBuf, Vec<u8>)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("..")
        .join(kind)
        .join(target);
    let Ok(entries) = std::fs::read_dir(&folder) else {
        return Vec::new();
    };
    entries
        .map(|entry| {
            let path = entry.expect("an entry").path();
            let bytes = std::fs::read(&path).expect("an input");
            (path, bytes)
        })
        .collect()
}

#[test]
fn corpora_hold() {
    for (name, check) in TARGETS {
        let inputs = inputs("corpus", name);
        assert!(inputs.len() > 20, "{name} has no corpus");
        for (_, bytes) in inputs {
            check(&bytes);
        }
    }
}

#[test]
fn what_was_found_before_stays_mended() {
    for (name, check) in TARGETS {
        for (path, bytes) in inputs("regressions", name) {
            println!("{}", path.display());
            check(&bytes);
        }
    }
}

#[test]
#[should_panic(expected = "the canary sings")]
fn canary_fails_on_what_the_fuzzer_must_find() {
    canary::check(b"data\n\ndata\n\n");
}
