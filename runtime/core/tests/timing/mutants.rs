//! The faults of `mutants.txt`: that each still applies, and, on demand, that each is found.
#![allow(
    clippy::disallowed_methods,
    reason = "the sources are copied and changed outside the tree"
)]

use std::path::{Path, PathBuf};
use std::process::Command;

const LIST: &str = include_str!("mutants.txt");

struct Mutant {
    name: &'static str,
    file: &'static str,
    from: String,
    to: String,
}

fn mutants() -> Vec<Mutant> {
    LIST.split("\n# ")
        .skip(1)
        .map(|text| {
            let lines = |mark: char| -> String {
                let marked = text.lines().filter_map(|line| line.strip_prefix(mark));
                marked.flat_map(|line| [line, "\n"]).collect()
            };
            let named = |key: &str| text.lines().find_map(|line| line.strip_prefix(key));
            Mutant {
                name: text.lines().next().expect("a name"),
                file: named("file: ").expect("a file"),
                from: lines('-'),
                to: lines('+'),
            }
        })
        .collect()
}

fn crate_folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).to_owned()
}

#[test]
fn each_mutant_applies_at_one_place() {
    assert!(mutants().len() > 20);
    for mutant in mutants() {
        let source = std::fs::read_to_string(crate_folder().join(mutant.file)).unwrap();
        let places = source.matches(&mutant.from).count();
        assert_eq!(places, 1, "{}: {}", mutant.name, mutant.from);
    }
}

/// Takes minutes: it compiles the crate once for each mutant.
#[test]
#[ignore = "compiles the crate once for each mutant"]
fn each_mutant_is_found() {
    let root = crate_folder().join("../..").canonicalize().unwrap();
    let copy = std::env::temp_dir().join(format!("assize-mutants-{}", std::process::id()));
    let listed = Command::new("git")
        .args(["ls-files", "-z"])
        .current_dir(&root)
        .output()
        .unwrap();
    for file in String::from_utf8(listed.stdout)
        .unwrap()
        .split_terminator('\0')
    {
        let to = copy.join(file);
        std::fs::create_dir_all(to.parent().unwrap()).unwrap();
        std::fs::copy(root.join(file), to).unwrap();
    }
    // The folder that this test was built in, so that dependencies are not built again.
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).parent().unwrap();
    let tests_pass = || {
        let output = Command::new(env!("CARGO"))
            .args(["test", "--offline", "-p", "assize-core", "--test", "timing"])
            .args(["--", "--skip", "mutants", "--skip", "stated"])
            .current_dir(&copy)
            .env("CARGO_TARGET_DIR", target)
            .env("RUST_BACKTRACE", "0")
            .env("PROPTEST_MAX_SHRINK_ITERS", "0")
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        let compiled = said.contains("test result:") || said.contains("running ");
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(compiled, "does not compile: {errors}");
        output.status.success()
    };
    assert!(tests_pass(), "the tests fail without a mutant");
    println!("the tests pass without a mutant");
    let mut found_by_none = Vec::new();
    for mutant in mutants() {
        let file = copy.join("runtime/core").join(mutant.file);
        let source = std::fs::read_to_string(&file).unwrap();
        std::fs::write(&file, source.replace(&mutant.from, &mutant.to)).unwrap();
        let found = !tests_pass();
        println!(
            "{}: {}",
            mutant.name,
            if found { "found" } else { "not found" }
        );
        if !found {
            found_by_none.push(mutant.name);
        }
        std::fs::write(&file, source).unwrap();
    }
    std::fs::remove_dir_all(&copy).unwrap();
    assert!(found_by_none.is_empty(), "{found_by_none:#?}");
}
