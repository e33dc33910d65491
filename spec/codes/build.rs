//! Turns every page in `pages/` into a constant, so that no code is without its page.

#![expect(
    clippy::disallowed_methods,
    reason = "a build script reads its folder and the variables that cargo sets"
)]

use std::fmt::Write as _;
use std::path::Path;
use std::{env, fs};

fn main() {
    let root = env::var("CARGO_MANIFEST_DIR").expect("cargo sets CARGO_MANIFEST_DIR");
    let pages = Path::new(&root).join("pages");
    println!("cargo:rerun-if-changed={}", pages.display());

    let mut names: Vec<String> = fs::read_dir(&pages)
        .expect("the folder of pages")
        .map(|entry| {
            entry
                .expect("a folder entry")
                .file_name()
                .into_string()
                .expect("a UTF-8 name")
        })
        .filter_map(|name| name.strip_suffix(".md").map(str::to_owned))
        .collect();
    names.sort();

    let mut out = String::new();
    for name in &names {
        let path = pages.join(format!("{name}.md"));
        println!("cargo:rerun-if-changed={}", path.display());
        let text = fs::read_to_string(&path).expect("a readable page");
        let (title, kind) = head(name, &text);
        writeln!(out, "/// {title}").unwrap();
        writeln!(
            out,
            "pub const {name}: Code = Code {{ id: {name:?}, title: {title:?}, kind: Kind::{kind}, page: include_str!({:?}) }};",
            path.display().to_string()
        )
        .unwrap();
    }
    writeln!(
        out,
        "/// Every code, in order.\npub const ALL: &[Code] = &[{}];",
        names.join(", ")
    )
    .unwrap();
    let target = Path::new(&env::var("OUT_DIR").expect("cargo sets OUT_DIR")).join("codes.rs");
    fs::write(target, out).expect("a writable OUT_DIR");
}

/// The title and kind of a page: its first two lines, `# E0101: title` and `Kind: diagnostic`.
fn head(name: &str, text: &str) -> (String, &'static str) {
    let mut lines = text.lines();
    let title = lines
        .next()
        .and_then(|line| line.strip_prefix(&format!("# {name}: ")))
        .unwrap_or_else(|| panic!("{name}.md must begin with `# {name}: title`"));
    let kind = match lines
        .find(|line| !line.trim().is_empty())
        .and_then(|line| line.strip_prefix("Kind: "))
    {
        Some("diagnostic") => "Diagnostic",
        Some("refusal") => "Refusal",
        Some("failure") => "Failure",
        other => panic!(
            "{name}.md: the second line must be `Kind: diagnostic|refusal|failure`, found {other:?}"
        ),
    };
    (title.to_owned(), kind)
}
