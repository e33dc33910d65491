//! The examples of every page of the compiler's codes: the wrong one has the code, the mended one
//! compiles without it.

mod support;

use assize_codes::ALL;

/// Whether the compiler, and not the reading of the file, reports the code.
fn is_ours(id: &str) -> bool {
    let digits = &id[1..];
    match &digits[..2] {
        "02" | "03" => &digits[2..] >= "10",
        "04" | "05" | "06" => true,
        _ => false,
    }
}

#[test]
fn every_example_of_a_page_does_what_the_page_says() {
    let ours: Vec<_> = ALL.iter().filter(|code| is_ours(code.id)).collect();
    assert!(ours.len() > 30, "{} pages", ours.len());
    let mut faults = Vec::new();
    for code in ours {
        let has = |compiled: &assize_compiler::Compiled| {
            let mut all = compiled.diagnostics.iter();
            all.any(|diagnostic| diagnostic.code == *code)
        };
        let wrong = support::compiled(code.example("Wrong").expect("a wrong example"));
        if !has(&wrong) || wrong.output.is_none() != wrong.diagnostics.has_errors() {
            faults.push(format!("{code}, wrong:\n{}", support::shown(&wrong)));
        }
        let mended = support::compiled(code.example("Mended").expect("a mended example"));
        if has(&mended) || mended.output.is_none() {
            faults.push(format!("{code}, mended:\n{}", support::shown(&mended)));
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}
