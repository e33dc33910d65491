//! Every code of blocks 01 to 03 that the front end reports: the wrong example of its page gives it,
//! the mended one gives nothing, and what a person sees is a snapshot.

use std::collections::BTreeSet;

use assize_codes::Code;
use assize_study::diagnostic::{Diagnostics, render_human};
use assize_study::lower::parse_document;
use assize_study::source::{Source, Sources};

/// The codes that this crate reports; the compiler's own share the blocks.
const OURS: &[&str] = &[
    "E0101", "E0102", "E0103", "E0104", "E0105", "E0106", "E0107", "E0108", "E0109", "E0110",
    "E0111", "E0112", "E0113", "E0114", "E0115", "E0116", "E0117", "E0118", "E0119", "E0120",
    "E0121", "E0122", "E0201", "E0202", "E0301", "E0302", "E0303",
];

fn read(text: &str) -> (Diagnostics, Sources) {
    let mut sources = Sources::new();
    let id = sources.add(Source::new("study.yaml", text));
    let mut diagnostics = Diagnostics::new();
    let source = sources.get(id).expect("just added");
    let document = parse_document(source, id, &mut diagnostics);
    assert!(document.is_some() || diagnostics.has_errors());
    (diagnostics, sources)
}

#[test]
fn each_page_shows_its_own_fault_and_how_to_mend_it() {
    for id in OURS {
        let code = Code::find(id).expect("a page");
        let wrong = code.example("Wrong").expect("a wrong example");
        let (diagnostics, sources) = read(wrong);
        let found: BTreeSet<&str> = diagnostics.iter().map(|found| found.code.id).collect();
        let shown = render_human(&diagnostics, &sources, false);
        assert_eq!(found, BTreeSet::from([*id]), "{wrong}\n{shown}");
        insta::assert_snapshot!(format!("human_{id}"), shown);

        let mended = code.example("Mended").expect("a mended example");
        let (diagnostics, sources) = read(mended);
        let shown = render_human(&diagnostics, &sources, false);
        assert!(diagnostics.is_empty(), "{id} mended:\n{mended}\n{shown}");
    }
}
