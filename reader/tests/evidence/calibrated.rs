//! Evidence of a run that was given a calibration.

use assize_evidence::calibration::{
    Amounts, Beside, CALIBRATION_FORMAT, Calibration, Distribution, Limit, ReceiveWay, Row,
};
use assize_evidence::{Journal, JournalEvent, JournalReader, MemoryStore, Store};
use assize_plan::Hash;
use assize_reader::verify::Refusal;
use assize_units::DurNs;

use crate::{USUAL, check, reseal};

const NAME: &str = "calibration.json";

/// Errors of 10 µs at p50 and 40 µs at p99, lags of 2 and 5 µs.
pub fn calibration() -> Calibration {
    let us = DurNs::from_us;
    let distribution = |p50, p99| Distribution {
        p50_ns: us(p50),
        p95_ns: us(p99),
        p99_ns: us(p99),
        max_ns: us(p99),
        samples: 100,
    };
    Calibration {
        format: CALIBRATION_FORMAT.into(),
        tool: "by hand".into(),
        amounts: Amounts {
            streams: 1,
            events: 99,
            gap_ns: us(10),
            requests: 100,
            request_gap_ns: us(10),
            rates: vec![],
            rung_ns: us(10),
            budget_ns: us(10),
        },
        rows: vec![Row {
            driver: "io_uring".into(),
            receive: ReceiveWay::Reap,
            recording: true,
            receive_error: Some(distribution(10, 40)),
            early: 0,
            kernel_stamped: 0,
            receives: 100,
            dispatch_lag: Some(distribution(2, 5)),
            cpu_per_event_ns: None,
            cpu_per_request_ns: None,
            held: None,
            limit: Limit::Time,
            rungs: vec![],
            failed: 0,
        }],
        absent: vec![],
        host: Beside {
            load_before: None,
            load_after: None,
            online: Some("0-1".into()),
            cpu: None,
            kernel: None,
            boot_id: Some("b".into()),
            steal_permille: None,
            took_ns: us(10),
        },
    }
}

/// The evidence as if its run had had this driver and been given this calibration.
pub fn given(store: &MemoryStore, driver: &str, bytes: &[u8]) -> MemoryStore {
    let store = store.copy();
    let read = JournalReader::parse(&store.read("journal.jsonl", 1 << 20).unwrap()).unwrap();
    let mut journal = Journal::new(Vec::new());
    for mut line in read.lines {
        if let JournalEvent::RunStarted {
            driver: name,
            calibration,
            ..
        } = &mut line.event
        {
            driver.clone_into(name);
            *calibration = Some(Hash::of(bytes));
        }
        journal.append(line.t_ns, line.wall, line.event).unwrap();
    }
    store.replace("journal.jsonl", std::mem::take(journal.get_mut()));
    store.replace(NAME, bytes.to_vec());
    reseal(&store);
    store
}

fn usual() -> MemoryStore {
    given(
        &USUAL.evidence(),
        "io_uring",
        calibration().to_json().as_bytes(),
    )
}

fn refused(store: &MemoryStore) -> (&'static str, String) {
    let refused: Refusal = check(store).expect_err("altered evidence");
    (refused.code().id, refused.to_string())
}

#[test]
fn a_calibration_is_read_with_the_evidence() {
    let verified = check(&usual()).unwrap();
    assert!(verified.is_complete());
    let attached = verified.calibration.unwrap();
    assert_eq!(attached.calibration, calibration());
    assert_eq!(verified.run.calibration, Some(attached.hash));
    assert_eq!(attached.differences, []);
    assert_eq!(check(&USUAL.evidence()).unwrap().calibration, None);
}

#[test]
fn another_host_is_told() {
    let store = usual();
    let host = r#"{"groups": {"cpu": {"online": "0-7"}, "kernel": {"boot_id": "ignored"}}}"#;
    store.replace("host.json", host.into());
    reseal(&store);
    let attached = check(&store).unwrap().calibration.unwrap();
    let [online] = attached.differences.as_slice() else {
        panic!("the journal tells the boot: {:?}", attached.differences);
    };
    assert_eq!(
        (online.what, online.found.as_str()),
        ("the processors online", "0-7")
    );
}

#[test]
fn any_other_calibration_than_the_one_given_is_found() {
    let tampered = usual();
    let bytes = tampered.read(NAME, 1 << 20).unwrap();
    let other = String::from_utf8(bytes).unwrap().replace("40000", "41000");
    assert!(Calibration::parse(other.as_bytes()).is_ok());
    tampered.replace(NAME, other.into_bytes());
    assert_eq!(refused(&tampered).0, "E0701");
    // Where nothing is sealed, or all is sealed anew, the journal names it.
    tampered.remove("SHA256SUMS");
    let (code, why) = refused(&tampered);
    assert_eq!(code, "E0809");
    assert!(why.contains("its bytes have the hash "), "{why}");
    reseal(&tampered);
    assert_eq!(refused(&tampered).0, "E0809");

    let missing = usual();
    missing.remove(NAME);
    reseal(&missing);
    let (code, why) = refused(&missing);
    assert_eq!(code, "E0809");
    assert!(why.starts_with("calibration.json: it is not there"));

    let added = USUAL.evidence();
    added.replace(NAME, calibration().to_json().into_bytes());
    reseal(&added);
    let (code, why) = refused(&added);
    assert_eq!(
        (code, why.as_str()),
        ("E0809", "calibration.json: the journal names none")
    );
}

#[test]
fn a_malformed_calibration_is_found() {
    for text in ["", "{}", "{\"format\": \"assize-calibration/2\"}"] {
        let store = given(&USUAL.evidence(), "io_uring", text.as_bytes());
        assert_eq!(refused(&store).0, "E0809", "{text}");
    }
}
