//! A calibration is read strictly, and what is written is read.

use assize_evidence::HostFacts;
use assize_evidence::calibration::{
    Absent, Amounts, Beside, CALIBRATION_FORMAT, Calibration, CalibrationError, Distribution,
    Limit, Outcome, ReceiveWay, Row, Rung,
};
use assize_units::DurNs;
use proptest::prelude::*;
use serde_json::{Value, json};

fn usual() -> Calibration {
    let us = DurNs::from_us;
    let row = |receive| Row {
        driver: "io_uring".into(),
        receive,
        recording: true,
        receive_error: Some(Distribution {
            p50_ns: us(6),
            p95_ns: us(57),
            p99_ns: us(72),
            max_ns: us(345),
            samples: 32,
        }),
        early: 2,
        kernel_stamped: 0,
        receives: 32,
        dispatch_lag: None,
        cpu_per_event_ns: Some(us(14)),
        cpu_per_request_ns: None,
        held: Some(5_000),
        limit: Limit::NotHeld,
        rungs: vec![
            Rung {
                rate: 5_000,
                p99_ns: Some(us(400)),
                outcome: Outcome::Held,
            },
            Rung {
                rate: 10_000,
                p99_ns: None,
                outcome: Outcome::NotHeld,
            },
        ],
        failed: 0,
    };
    let gather = us(500);
    Calibration {
        format: CALIBRATION_FORMAT.into(),
        tool: "assize 0.1.0".into(),
        amounts: Amounts {
            streams: 4,
            events: 8,
            gap_ns: us(10_000),
            requests: 5,
            request_gap_ns: us(2_000),
            rates: vec![5_000, 10_000],
            rung_ns: us(400_000),
            budget_ns: DurNs::from_s(45),
        },
        rows: vec![row(ReceiveWay::Reap), row(ReceiveWay::Kernel { gather })],
        absent: vec![Absent {
            driver: "epoll".into(),
            why: "it is not built".into(),
        }],
        host: Beside {
            load_before: Some("0.10 0.20 0.30".into()),
            load_after: None,
            online: Some("0-1".into()),
            cpu: Some("A processor".into()),
            kernel: Some("6.1.0".into()),
            boot_id: Some("b-1".into()),
            affinity: Some("0".into()),
            memory: None,
            steal_permille: None,
            took_ns: DurNs::from_s(41),
        },
    }
}

fn refused(change: impl FnOnce(&mut Value)) -> String {
    let mut value: Value = serde_json::from_str(&usual().to_json()).unwrap();
    change(&mut value);
    Calibration::parse(value.to_string().as_bytes())
        .unwrap_err()
        .to_string()
}

#[test]
fn what_is_written_is_read() {
    let written = usual().to_json();
    assert!(written.ends_with("}\n"));
    assert!(written.contains("\"receive\": \"kernel(gather = 500us)\""));
    assert_eq!(Calibration::parse(written.as_bytes()).unwrap(), usual());
}

#[test]
fn one_from_before_the_host_was_told_is_read() {
    let mut value: Value = serde_json::from_str(&usual().to_json()).unwrap();
    for name in ["cpu", "kernel", "boot_id", "affinity", "memory"] {
        value["host"].as_object_mut().unwrap().remove(name);
    }
    let read = Calibration::parse(value.to_string().as_bytes()).unwrap();
    assert_eq!(read.host.boot_id, None);
}

#[test]
fn what_is_no_calibration_is_refused() {
    for text in ["", "{}", "[]", "null", "{\"format\": 1}", "\u{feff}{}"] {
        let refused = Calibration::parse(text.as_bytes()).unwrap_err();
        assert!(matches!(refused, CalibrationError::Shape(_)), "{text}");
    }
    assert_eq!(
        refused(|it| it["format"] = json!("assize-report/1")),
        "its format is `assize-report/1`, not `assize-calibration/1`"
    );
    let long = vec![b' '; (1 << 20) + 1];
    let refused = Calibration::parse(&long).unwrap_err();
    assert!(matches!(refused, CalibrationError::TooLong { bytes } if bytes == (1 << 20) + 1));
}

#[test]
fn each_value_that_cannot_have_been_measured_is_named() {
    let row = |it: &mut Value, name: &str, value: Value| it["rows"][0][name] = value;
    let cases = [
        (refused(|it| it["more"] = json!(1)), "unknown field `more`"),
        (
            refused(|it| row(it, "unheard", json!(1))),
            "unknown field `unheard`",
        ),
        (refused(|it| it["rows"] = json!([])), "rows: there is none"),
        (
            refused(|it| it["rows"][1] = it["rows"][0].clone()),
            "rows[1]: a row before it is of the same",
        ),
        (
            refused(|it| it["rows"][1]["receive"] = json!("kernel")),
            "`kernel` is neither",
        ),
        (
            refused(|it| it["rows"][0]["receive_error"]["p99_ns"] = json!(1)),
            "rows[0].receive_error: its percentiles are out of order",
        ),
        (
            refused(|it| it["rows"][0]["receive_error"]["samples"] = json!(0)),
            "rows[0].receive_error: it has no sample",
        ),
        (
            refused(|it| it["rows"][0]["receive_error"]["max_ns"] = json!(u64::MAX)),
            "rows[0].receive_error: longer than a day",
        ),
        (
            refused(|it| it["rows"][0]["receive_error"]["p50_ns"] = json!(-1)),
            "invalid value",
        ),
        (
            refused(|it| row(it, "early", json!(33))),
            "rows[0].early: more than there are samples",
        ),
        (
            refused(|it| row(it, "kernel_stamped", json!(33))),
            "rows[0].kernel_stamped: more than there are receives",
        ),
        (
            refused(|it| row(it, "held", json!(10_000))),
            "rows[0].held: not the highest rung that was held",
        ),
        (
            refused(|it| row(it, "driver", json!("d".repeat(1_001)))),
            "rows[0].driver: longer than 1000 characters",
        ),
        (
            refused(|it| it["amounts"]["rates"] = json!(vec![1; 257])),
            "amounts.rates: more than 256",
        ),
        (
            refused(|it| it["host"]["took_ns"] = json!(86_400_000_000_001u64)),
            "host.took_ns: longer than a day",
        ),
    ];
    for (said, due) in cases {
        assert!(said.contains(due), "{said} for {due}");
    }
}

#[test]
fn a_row_is_found_by_driver_receiving_and_recording() {
    let found = usual();
    let kernel = |us| ReceiveWay::Kernel {
        gather: DurNs::from_us(us),
    };
    let row = found.row("io_uring", kernel(20), true).unwrap();
    assert_eq!(row.receive, kernel(500));
    assert_eq!(
        found.row("io_uring", ReceiveWay::Reap, true),
        Some(&found.rows[0])
    );
    assert_eq!(found.row("io_uring", ReceiveWay::Reap, false), None);
    assert_eq!(found.row("epoll", ReceiveWay::Reap, true), None);
}

#[test]
fn another_host_or_boot_is_told() {
    let mut host = HostFacts::default();
    host.set("cpu", "model", "A processor");
    host.set("cpu", "online", "0-1");
    host.set("kernel", "release", "not available");
    host.set("kernel", "boot_id", "b-1");
    assert_eq!(usual().differences(&host), []);
    host.set("kernel", "boot_id", "b-2");
    host.set("cpu", "online", "0-3");
    let differences = usual().differences(&host);
    let told: Vec<_> = differences
        .iter()
        .map(|it| (it.what, it.calibrated.as_str(), it.found.as_str()))
        .collect();
    assert_eq!(
        told,
        [
            ("the set of processors", "0-1", "0-3"),
            ("the boot", "b-1", "b-2")
        ]
    );
    let words: Vec<String> = differences.iter().map(ToString::to_string).collect();
    assert_eq!(
        words,
        [
            "the set of processors was 0-1, and is 0-3",
            "the host has been started again since, or is another"
        ]
    );
    host.set("driver", "cpu affinity in cells", "1");
    host.set("driver", "memory", "not locked");
    assert_eq!(
        usual().differences(&host).last().unwrap().to_string(),
        "the set of processors of the client was 0, and is 1"
    );
    // What the calibration does not say makes no difference.
    let mut silent = usual();
    (silent.host.boot_id, silent.host.affinity) = (None, None);
    assert_eq!(silent.differences(&host).len(), 1);
}

proptest! {
    /// A flipped, cut or added byte is refused or read: nothing panics, and what is read is written
    /// and read again as the same.
    #[test]
    fn any_change_is_refused_or_read(place in 0usize..4_000, byte in any::<u8>(), cut in any::<bool>()) {
        let mut bytes = usual().to_json().into_bytes();
        let place = place % bytes.len();
        if cut {
            bytes.truncate(place);
        }
        bytes.insert(place, byte);
        if let Ok(read) = Calibration::parse(&bytes) {
            let again = Calibration::parse(read.to_json().as_bytes());
            prop_assert_eq!(again.unwrap(), read);
        }
    }
}
