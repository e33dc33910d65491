//! Evidence written by hand, verified, judged, and tampered with.

mod builder;
mod calibrated;
mod judgements;
mod rendered;

use assize_evidence::{ExchangeRow, MemoryStore, Store, write_seal};
use assize_plan::Hash;
use assize_reader::report::{Report, matrix_csv};
use assize_reader::study::{Analysis, analyze};
use assize_reader::verdict::{UnitState, Verdict};
use assize_reader::verify::{Demands, Refusal, SealState, Verified, verify};
use builder::{Act, REQUESTS, Study};

fn usual(arm: &str, block: u32, _: &str, req: u32) -> Act {
    let slower = if arm == "slow" { 2_000_000 } else { 0 };
    Act::Stream {
        first_ns: 5_000_000 + slower + u64::from(block) * 10_000,
        gap_ns: 1_000_000 + u64::from(req) * 1_000,
    }
}

const USUAL: Study = Study {
    blocks: 6,
    act: usual,
    killed_in_unit: None,
};

fn check(store: &dyn Store) -> Result<Verified, Refusal> {
    verify(store, &Demands::default(), |_, _| ())
}

fn judged(study: &Study) -> Analysis {
    analyze(&study.evidence(), &Demands::default()).expect("evidence that holds")
}

#[test]
fn faithful_evidence_holds() {
    let store = USUAL.evidence();
    let verified = check(&store).expect("faithful evidence");
    assert!(verified.is_complete());
    assert_eq!(verified.compared, u64::from(6 * 2 * 2 * REQUESTS));
    let SealState::Consistent { seal } = verified.seal else {
        panic!("it is sealed");
    };
    let demands = Demands { seal: Some(seal) };
    let verified = verify(&store, &demands, |_, _| ()).unwrap();
    assert_eq!(verified.seal, SealState::Confirmed { seal });
    let demands = Demands {
        seal: Some(Hash::of(b"another")),
    };
    let refused = verify(&store, &demands, |_, _| ()).unwrap_err();
    assert_eq!(refused.code().id, "E0801");
}

#[test]
fn each_kind_of_end_is_replayed_as_it_was_claimed() {
    fn act(_: &str, _: u32, cell: &str, req: u32) -> Act {
        match (cell, req) {
            ("closed-2", 0) => Act::NoDone,
            ("closed-2", 1) => Act::Busy,
            ("closed-2", 2) => Act::Disconnect,
            ("closed-2", _) => Act::Reset,
            (_, 3) => Act::Silence,
            _ => usual("fast", 0, cell, req),
        }
    }
    let analysis = judged(&Study {
        blocks: 1,
        act,
        killed_in_unit: None,
    });
    let outcomes: Vec<Vec<String>> = analysis.cells[..2]
        .iter()
        .map(|cell| {
            let failed = cell.failed_requests.iter();
            failed
                .map(|it| format!("{} {} {}", it.id, it.outcome, it.phase))
                .collect()
        })
        .collect();
    insta::assert_debug_snapshot!(outcomes, @r#"
    [
        [
            "closed-2-0-00000 missing_done ended",
            "closed-2-0-00001 http_status ended",
            "closed-2-0-00002 disconnected before_head",
            "closed-2-0-00003 reset stream",
        ],
        [
            "open-near-0-00003 request_timeout before_head",
        ],
    ]
    "#);
}

#[test]
fn a_difference_in_every_block_is_supported() {
    let analysis = judged(&USUAL);
    let family = &analysis.families[0];
    assert!(family.breaches.is_empty());
    // 6 of 6 blocks won: 1/64 each, and Holm doubles the smaller.
    for hypothesis in &family.hypotheses {
        assert_eq!((hypothesis.wins, hypothesis.losses), (6, 0));
        assert_eq!(hypothesis.p.fraction(), "1/64");
        assert_eq!(hypothesis.adjusted_p.fraction(), "1/32");
        assert_eq!(hypothesis.verdict, Verdict::Supported);
    }
    // By hand: block 0, open-near; p95 of 4 is the largest, request 3. From intended to [DONE]:
    // connected 1 µs, sent 2 µs later, the first token after 5 ms, 2 gaps of 1.003 ms, 5 µs.
    let block = &family.hypotheses[1].blocks[0];
    let seconds = |ns: i128| assize_units::Ratio::new(ns, 1_000_000_000).unwrap();
    assert_eq!(block.candidate.unwrap().0, seconds(7_014_000));
    assert_eq!(block.control.unwrap().0, seconds(9_014_000));
    let effect = assize_units::Ratio::new(2_000, 9_014).unwrap();
    assert_eq!(block.effect.unwrap().0, effect);
}

#[test]
fn one_failure_blocks_every_hypothesis() {
    fn act(arm: &str, block: u32, cell: &str, req: u32) -> Act {
        if (arm, block, cell, req) == ("slow", 4, "open-near", 2) {
            Act::Disconnect
        } else {
            usual(arm, block, cell, req)
        }
    }
    let analysis = judged(&Study { act, ..USUAL });
    let family = &analysis.families[0];
    assert_eq!(family.breaches.len(), 1);
    assert_eq!(family.breaches[0].found, "failed is 1");
    assert!(
        family
            .hypotheses
            .iter()
            .all(|it| it.verdict == Verdict::Blocked)
    );
    // The figures are still there.
    assert!(
        family
            .hypotheses
            .iter()
            .all(|it| it.median.is_some() && it.wins == 6)
    );
}

#[test]
fn equal_arms_are_not_supported() {
    fn act(_: &str, block: u32, cell: &str, req: u32) -> Act {
        usual("fast", block, cell, req)
    }
    let analysis = judged(&Study { act, ..USUAL });
    for hypothesis in &analysis.families[0].hypotheses {
        assert_eq!(
            (hypothesis.ties, hypothesis.p.fraction()),
            (6, "1/1".to_owned())
        );
        assert_eq!(hypothesis.verdict, Verdict::NotSupported);
    }
}

#[test]
fn a_killed_run_is_read_as_far_as_it_goes() {
    let store = Study {
        killed_in_unit: Some(5),
        ..USUAL
    }
    .evidence();
    let analysis = analyze(&store, &Demands::default()).expect("an unsealed folder can be read");
    let verified = &analysis.verified;
    assert_eq!(verified.seal, SealState::Unsealed);
    assert!(!verified.is_complete());
    assert_eq!(verified.units[4], UnitState::Complete);
    assert_eq!(verified.units[5], UnitState::Interrupted);
    assert_eq!(verified.units[6], UnitState::NotRun);
    let gap = &verified.gaps[0];
    assert_eq!(gap.place, "confirmation/02/slow/open-near/wire.log");
    assert!(gap.from_segment.is_some() && gap.after_ns.is_some());
    for hypothesis in &analysis.families[0].hypotheses {
        assert_eq!(hypothesis.verdict, Verdict::NotEvaluated);
    }
}

#[test]
fn claims_that_a_full_disk_cut_are_compared_as_far_as_they_go() {
    let store = Study {
        killed_in_unit: Some(5),
        ..USUAL
    }
    .evidence();
    let names = store.list().unwrap();
    let file = names
        .iter()
        .rfind(|name| {
            name.starts_with("confirmation/02/slow/") && name.ends_with("exchanges.jsonl")
        })
        .expect("a cell of the broken unit has its claims");
    let text = store.read(file, 1 << 20).unwrap();
    for keep in [0, text.len() / 2, text.len() - 1] {
        store.replace(file, text[..keep].to_vec());
        let verified = check(&store).expect("what is there agrees");
        let told =
            |gap: &assize_reader::verify::Gap| gap.place == *file && gap.what.contains("rows for");
        assert!(
            verified.gaps.iter().any(told),
            "{keep}: {:?}",
            verified.gaps
        );
    }
}

#[test]
fn a_changed_claim_is_named_with_both_values() {
    let store = USUAL.evidence();
    let file = "confirmation/03/slow/open-near/exchanges.jsonl";
    let text = store.read(file, 1 << 20).unwrap();
    let mut rows = ExchangeRow::parse_all(&text).unwrap();
    rows[2].events += 1;
    let lines: String = rows.iter().map(ExchangeRow::to_line).collect();
    store.replace(file, lines.into_bytes());
    // The seal finds it first; whoever seals anew is found by the replay.
    assert_eq!(check(&store).unwrap_err().code().id, "E0701");
    reseal(&store);
    let refused = check(&store).unwrap_err();
    assert_eq!(refused.code().id, "E0806");
    insta::assert_snapshot!(refused, @"confirmation/03/slow/open-near, request 2 (open-near-3-00002): events is claimed as 6, the replay gives 5");
}

/// Of a broken send, no more than the request can have been accepted, and less than all.
#[test]
fn what_of_a_broken_send_was_accepted_is_held_against_the_request() {
    const fn broken<const BYTES: u64>(_: &str, _: u32, _: &str, _: u32) -> Act {
        Act::BrokenSend(BYTES)
    }
    let of = |act| {
        let study = Study {
            blocks: 1,
            act,
            ..USUAL
        };
        check(&study.evidence())
    };
    for act in [broken::<0>, broken::<1>, broken::<100>] {
        assert!(of(act).expect("a part of the request").is_complete());
    }
    let refused = of(broken::<100_000>).unwrap_err();
    assert!(
        refused.to_string().contains("100000 bytes were sent"),
        "{refused}"
    );
}

fn reseal(store: &MemoryStore) {
    store.remove("SHA256SUMS");
    write_seal(store).unwrap();
}

/// Any field of any row, altered and sealed anew, is found.
#[test]
fn every_field_of_a_row_is_checked() {
    let store = Study { blocks: 1, ..USUAL }.evidence();
    let file = "confirmation/00/fast/closed-2/exchanges.jsonl";
    let text = String::from_utf8(store.read(file, 1 << 20).unwrap()).unwrap();
    let first = text.lines().next().unwrap();
    let row: serde_json::Value = serde_json::from_str(first).unwrap();
    let mut checked = 0;
    for (field, value) in row.as_object().unwrap() {
        let other = match value {
            serde_json::Value::Number(number) => (number.as_u64().unwrap() + 1).into(),
            serde_json::Value::String(text) if field == "terminal" => {
                assert_eq!(text, "complete");
                "truncated".into()
            }
            serde_json::Value::String(text) if field == "phase" => {
                assert_eq!(text, "ended");
                "stream".into()
            }
            serde_json::Value::String(_) => "other".into(),
            serde_json::Value::Null => "eof".into(),
            _ => serde_json::Value::Null,
        };
        let mut altered = row.clone();
        altered[field] = other;
        let altered = text.replacen(first, &altered.to_string(), 1);
        let copy = store.copy();
        copy.replace(file, altered.into_bytes());
        reseal(&copy);
        let refused = check(&copy).expect_err(field);
        let code = refused.code().id;
        assert!(code == "E0806" || code == "E0807", "{field}: {refused}");
        checked += 1;
    }
    assert!(checked >= 28, "{checked} fields");
}

/// Any byte of any file, flipped, is refused or located by the seal.
#[test]
fn flipped_bytes_are_found_by_the_seal() {
    let store = Study { blocks: 1, ..USUAL }.evidence();
    for name in store.list().unwrap() {
        let bytes = store.read(&name, 1 << 20).unwrap();
        let step = 1 + bytes.len() / 9;
        for place in (0..bytes.len()).step_by(step) {
            let copy = store.copy();
            let mut flipped = bytes.clone();
            flipped[place] ^= 1;
            copy.replace(&name, flipped);
            assert!(check(&copy).is_err(), "{name}, byte {place}");
        }
    }
}

/// Whoever alters the bytes of a wire log, with fitting checksums or not, never gets by with the
/// rows and the journal as they were.
#[test]
fn flipped_bytes_of_an_unsealed_wire_log_are_found() {
    let store = Study { blocks: 1, ..USUAL }.evidence();
    store.remove("SHA256SUMS");
    assert!(check(&store).is_ok());
    let name = "confirmation/00/fast/closed-2/wire.log";
    let bytes = store.read(name, 1 << 20).unwrap();
    for place in (0..bytes.len()).step_by(37) {
        let copy = store.copy();
        let mut flipped = bytes.clone();
        flipped[place] ^= 1;
        copy.replace(name, flipped);
        assert!(check(&copy).is_err(), "byte {place}");
    }
}

#[test]
fn what_is_missing_or_unplanned_breaks_the_accounting() {
    let whole = Study { blocks: 1, ..USUAL }.evidence();
    let refused = |alter: &dyn Fn(&MemoryStore)| {
        let store = whole.copy();
        alter(&store);
        reseal(&store);
        check(&store).expect_err("altered evidence").code().id
    };
    let folder = "confirmation/00/slow/open-near";
    let rows = format!("{folder}/exchanges.jsonl");
    let wire = format!("{folder}/wire.log");
    assert_eq!(refused(&|store| drop(store.remove(&rows))), "E0807");
    assert_eq!(refused(&|store| drop(store.remove(&wire))), "E0807");
    let short = |store: &MemoryStore| {
        let text = String::from_utf8(store.read(&rows, 1 << 20).unwrap()).unwrap();
        let (_, fewer) = text.split_once('\n').unwrap();
        store.replace(&rows, fewer.as_bytes().to_vec());
    };
    assert_eq!(refused(&short), "E0807");
    let stranger = |store: &MemoryStore| {
        let bytes = store.read(&wire, 1 << 20).unwrap();
        store.replace("confirmation/00/slow/other/wire.log", bytes);
    };
    assert_eq!(refused(&stranger), "E0807");
    // A wire log of another cell in this one's place is known by its header.
    let moved = |store: &MemoryStore| {
        let other = "confirmation/00/slow/closed-2/wire.log";
        store.replace(&wire, store.read(other, 1 << 20).unwrap());
    };
    assert_eq!(refused(&moved), "E0806");
}

#[test]
fn the_words_of_a_report() {
    let report = Report::new(&judged(&USUAL));
    let words = [
        report.families[0].hypothesis_words.join("\n"),
        report.families[0].words.join("\n"),
        report.words.join("\n"),
    ];
    insta::assert_snapshot!(words.join("\n\n"));
    let all = report.to_json().to_lowercase();
    for never in [
        "no effect",
        "proves",
        "equivalent",
        "significantly",
        "no difference",
    ] {
        assert!(!all.contains(never), "{never}");
    }
}

#[test]
fn the_matrix_has_a_row_for_each_cell_of_each_unit() {
    let store = Study {
        killed_in_unit: Some(1),
        blocks: 2,
        ..USUAL
    }
    .evidence();
    let report = Report::new(&analyze(&store, &Demands::default()).unwrap());
    insta::assert_snapshot!(matrix_csv(&report));
}
