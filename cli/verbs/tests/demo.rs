//! The demo's plan in virtual time: its verdict, and what tampering with its evidence comes to.

use assize_evidence::{MemoryStore, Store};
use assize_plan::Bundle;
use assize_reader::study::Analysis;
use assize_reader::verdict::Verdict;
use assize_sim::VirtualLink;
use assize_verbs::study::{StudyText, compile_text};
use assize_verbs::{run_in_virtual_time, verify};

fn run() -> MemoryStore {
    run_bundle(&assize_verbs::demo::compile().expect("the demo compiles"))
}

/// The demo with few requests, for a test that verifies it hundreds of times.
fn run_small() -> MemoryStore {
    let text = assize_verbs::demo::STUDY
        .replace("requests: 40 }", "requests: 2 }")
        .replace("requests: 20 }", "requests: 2 }")
        .replace("warmup: { load: closed(4), requests: 4 }\n", "");
    let files = assize_verbs::demo::files();
    let compiled = compile_text(&StudyText {
        name: "study.yaml",
        text: &text,
        files,
    });
    run_bundle(&compiled.bundle.expect("the small demo compiles"))
}

fn run_bundle(bundle: &Bundle) -> MemoryStore {
    let store = MemoryStore::new();
    let outcome = run_in_virtual_time(bundle, VirtualLink::default(), &store, &mut |_| {});
    assert!(outcome.is_complete(), "{outcome:?}");
    store
}

fn verdicts(analysis: &Analysis) -> Vec<(String, Verdict)> {
    let hypotheses = analysis
        .families
        .iter()
        .flat_map(|family| &family.hypotheses);
    hypotheses.map(|it| (it.text.clone(), it.verdict)).collect()
}

#[test]
fn one_hypothesis_is_supported_and_one_is_not() {
    let analysis = verify::read(&run(), None).expect("the evidence holds");
    assert!(analysis.verified.is_complete());
    let found: Vec<Verdict> = verdicts(&analysis)
        .into_iter()
        .map(|(_, verdict)| verdict)
        .collect();
    assert_eq!(found, [Verdict::Supported, Verdict::NotSupported]);
    // True effects that noise cannot turn: a gain of 25 % or more, a loss of 10 % or more.
    let effects = |place: usize| -> Vec<f64> {
        let blocks = &analysis.families[0].hypotheses[place].blocks;
        blocks
            .iter()
            .map(|block| block.effect.expect("every block has an effect").0.as_f64())
            .collect()
    };
    assert!(
        effects(0).iter().all(|effect| *effect >= 0.25),
        "{:?}",
        effects(0)
    );
    assert!(
        effects(1).iter().all(|effect| *effect <= -0.10),
        "{:?}",
        effects(1)
    );
}

/// Bytes whose change is tried in each file that decides; the others get their ends and middle.
const STRIDE: usize = 211;

#[test]
fn no_changed_byte_gives_another_verdict() {
    let store = run_small();
    let honest = verdicts(&verify::read(&store, None).expect("the evidence holds"));
    // Unsealed, so that not the seal alone but chain, checksums and replay must find it.
    let unsealed = store.copy();
    unsealed.remove("SHA256SUMS");
    let (mut refused, mut passed) = (0, 0);
    for (place_of_file, name) in store.list().unwrap().iter().enumerate() {
        let bytes = store.read(name, 1 << 26).unwrap();
        let decides = ["plan.json", "journal.jsonl", "SHA256SUMS"].contains(&name.as_str());
        let places: Vec<usize> = if decides {
            (0..bytes.len()).step_by(STRIDE).collect()
        } else if place_of_file % 7 == 0 {
            vec![0, bytes.len() / 2, bytes.len().saturating_sub(1)]
        } else {
            vec![]
        };
        for place in places {
            for (base, sealed) in [(&store, true), (&unsealed, false)] {
                if bytes.is_empty() || base.size(name).is_err() {
                    continue;
                }
                let tampered = base.copy();
                let mut changed = bytes.clone();
                changed[place] ^= 0x10;
                tampered.replace(name, changed);
                match verify::read(&tampered, None) {
                    Err(_) => refused += 1,
                    Ok(analysis) => {
                        passed += 1;
                        assert!(!sealed, "{name}, byte {place} passed under the seal");
                        assert_eq!(verdicts(&analysis), honest, "{name}, byte {place}");
                    }
                }
            }
        }
    }
    assert!(
        refused > 50,
        "{refused} refused, {passed} without another verdict"
    );
}

#[test]
fn a_seal_that_an_outside_copy_names_is_demanded() {
    let store = run_small();
    let other = assize_plan::Hash::of(b"another seal");
    let problem = verify::read(&store, Some(other)).unwrap_err();
    assert_eq!(problem.code, assize_codes::E0801);
}
