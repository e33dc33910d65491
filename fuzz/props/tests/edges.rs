//! Which crate may use which: the table of ARCHITECTURE.md, held against the manifests.

use std::collections::{BTreeMap, BTreeSet};

use cargo_metadata::{DependencyKind, MetadataCommand};

/// Crates of this workspace that each may use, in normal and build dependencies.
const ALLOWED: &[(&str, &[&str])] = &[
    ("units", &[]),
    ("codes", &[]),
    ("study", &["units", "codes"]),
    ("plan", &["units", "codes"]),
    ("evidence", &["units", "codes", "plan"]),
    ("stats", &["units", "codes"]),
    ("modules", &[]),
    ("compiler", &["units", "codes", "study", "plan", "stats"]),
    ("core", &["units", "codes"]),
    ("drivers", &["units", "codes", "core"]),
    ("sim", &["units", "codes", "core"]),
    ("host", &["units", "codes", "core", "plan", "evidence"]),
    ("reader", &["units", "codes", "plan", "evidence", "stats"]),
];

/// Crates that compose the others: they may use all, and none of the others may use them.
const COMPOSERS: &[&str] = &["verbs", "app", "props"];

#[test]
fn no_crate_uses_what_it_must_not_know() {
    let metadata = MetadataCommand::new()
        .manifest_path(concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml"))
        .no_deps()
        .other_options(["--offline".to_owned()])
        .exec()
        .expect("cargo metadata runs");
    let allowed: BTreeMap<&str, BTreeSet<&str>> = ALLOWED
        .iter()
        .map(|(name, uses)| (*name, uses.iter().copied().collect()))
        .collect();
    let mut seen = BTreeSet::new();
    for package in &metadata.packages {
        let name = package
            .name
            .strip_prefix("assize-")
            .expect("every package is assize-…")
            .to_owned();
        for dependency in &package.dependencies {
            let Some(used) = dependency.name.strip_prefix("assize-") else {
                continue;
            };
            if dependency.kind == DependencyKind::Development || COMPOSERS.contains(&name.as_str())
            {
                continue;
            }
            let may = allowed
                .get(name.as_str())
                .is_some_and(|uses| uses.contains(used));
            assert!(may, "{name} uses {used}: see the table in ARCHITECTURE.md");
        }
        seen.insert(name);
    }
    let known = ALLOWED
        .iter()
        .map(|(name, _)| *name)
        .chain(COMPOSERS.iter().copied());
    assert_eq!(
        seen,
        known.map(str::to_owned).collect(),
        "every crate has its line in this test"
    );
}

#[test]
fn the_reader_is_independent_in_its_tests_too() {
    let manifest = include_str!("../../../reader/Cargo.toml");
    for runtime in [
        "assize-core",
        "assize-drivers",
        "assize-host",
        "assize-sim",
        "assize-study",
        "assize-compiler",
    ] {
        assert!(
            !manifest.contains(runtime),
            "the reader's manifest names {runtime}"
        );
    }
}

#[test]
fn the_core_has_no_clock_thread_or_socket() {
    let core = concat!(env!("CARGO_MANIFEST_DIR"), "/../../runtime/core/src");
    let mut checked = 0;
    each_source(std::path::Path::new(core), &mut |path, text| {
        checked += 1;
        let mentions = |word: &str| {
            text.lines()
                .any(|line| !line.trim_start().starts_with("//") && line.contains(word))
        };
        for word in [
            "Instant::now",
            "SystemTime",
            "std::thread",
            "async fn",
            "TcpStream",
            "UdpSocket",
            "std::fs",
        ] {
            assert!(!mentions(word), "{} mentions {word}", path.display());
        }
    });
    assert!(checked > 5, "the core's sources were found");
}

#[allow(clippy::disallowed_methods, reason = "a test reads the sources")]
fn each_source(folder: &std::path::Path, check: &mut dyn FnMut(&std::path::Path, &str)) {
    for entry in std::fs::read_dir(folder).expect("a folder of sources") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            each_source(&path, check);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            check(
                &path,
                &std::fs::read_to_string(&path).expect("a readable source"),
            );
        }
    }
}
