//! Each fault does what its documentation says, and only to its request.

mod support;

use assize_sim::{EngineConfig, Fault, FaultRule, Percent};
use assize_units::DurNs;
use support::{CONN, Received, World, answers, ask, post};

const MS: u64 = 1_000_000;

fn config(fault: Fault) -> EngineConfig {
    EngineConfig {
        prefill_base: DurNs::from_ms(3),
        prefill_per_token: DurNs::ZERO,
        step: DurNs::from_ms(8),
        faults: vec![FaultRule {
            fault,
            requests: vec![0],
            every: 0,
            probability: Percent::default(),
        }],
        ..EngineConfig::default()
    }
}

fn request(stream: bool) -> Vec<u8> {
    let options = r#","stream":true,"stream_options":{"include_usage":true}"#;
    let body = format!(
        r#"{{"prompt":"a","max_tokens":4,"ignore_eos":true{}}}"#,
        if stream { options } else { "" }
    );
    post("/v1/completions", &body)
}

fn strike(fault: Fault) -> Received {
    ask(config(fault), &request(true))
}

fn payloads(received: &Received) -> Vec<String> {
    answers(&received.bytes())[0].payloads()
}

fn instants(received: &Received) -> Vec<u64> {
    received.writes.iter().map(|write| write.0 / MS).collect()
}

#[test]
fn nothing_is_answered() {
    for (fault, closed) in [
        (Fault::ResetBeforeHead, Some((0, true))),
        (Fault::CloseBeforeHead, Some((0, false))),
        (Fault::Hang, None),
    ] {
        let received = strike(fault.clone());
        assert_eq!(
            (received.bytes(), received.closed),
            (vec![], closed),
            "{fault:?}"
        );
    }
}

#[test]
fn the_stream_breaks_off() {
    for (fault, abort) in [
        (Fault::CloseMidStream { after_events: 2 }, false),
        (Fault::ResetMidStream { after_events: 2 }, true),
    ] {
        let received = strike(fault);
        assert_eq!(payloads(&received).len(), 2);
        assert!(!answers(&received.bytes())[0].complete);
        assert_eq!(received.closed, Some((19 * MS, abort)));
    }
    let received = strike(Fault::HangMidStream { after_events: 2 });
    assert_eq!((payloads(&received).len(), received.closed), (2, None));
    let fault = Fault::CloseMidStream { after_events: 0 };
    let whole = ask(config(fault), &request(false));
    assert!(!answers(&whole.bytes())[0].complete);
}

#[test]
fn a_status_takes_the_answer_s_place_and_the_connection_lives() {
    let mut world = World::new(config(Fault::Status { code: 500 }));
    world.send(0, CONN, &request(true));
    world.send(0, CONN, &request(true));
    world.run_until(1000 * MS);
    let found = answers(&world.received[&CONN.0].bytes());
    assert_eq!([found[0].status, found[1].status], [500, 200]);
    assert_eq!(found[0].json()["error"]["type"], "InternalServerError");
    let moved = strike(Fault::Status { code: 307 });
    assert!(answers(&moved.bytes())[0].header("location").is_some());
}

#[test]
fn bytes_are_late() {
    let stall = |ms| Fault::Stall {
        after_events: 2,
        time: DurNs::from_ms(ms),
    };
    // Events at 3, 11, 19, 27 ms; the third is due at 19 and waits.
    assert_eq!(instants(&strike(stall(4))), [0, 3, 11, 23, 27]);
    assert_eq!(instants(&strike(stall(100))), [0, 3, 11, 119]);
    let slow = Fault::SlowHead {
        time: DurNs::from_ms(12),
    };
    assert_eq!(instants(&strike(slow)), [12, 19, 27]);
    assert_eq!(instants(&strike(Fault::Coalesced)), [27]);
    for fault in [stall(4), stall(100), Fault::Coalesced] {
        assert_eq!(answers(&strike(fault).bytes())[0].events().len(), 5);
    }
}

#[test]
fn bytes_come_one_by_one() {
    let received = strike(Fault::ByteByByte);
    assert!(received.writes.iter().all(|write| write.1.len() == 1));
    assert_eq!(answers(&received.bytes())[0].events().len(), 5);
}

#[test]
fn the_framing_or_the_events_are_wrong() {
    let received = strike(Fault::MalformedChunk { after_events: 1 });
    assert!(
        String::from_utf8(received.bytes())
            .unwrap()
            .contains("\r\nzz\r\n")
    );
    assert!(!answers(&received.bytes())[0].complete);

    let events = payloads(&strike(Fault::MalformedEvent { after_events: 1 }));
    let broken = |event: &String| serde_json::from_str::<serde_json::Value>(event).is_err();
    assert_eq!(
        events.iter().map(broken).collect::<Vec<_>>(),
        [false, true, false, false, false, true]
    );

    let events = payloads(&strike(Fault::ErrorEvent { after_events: 1 }));
    assert!(events[1].starts_with(r#"{"error":{"#));
    assert_eq!((events.len(), events[2].as_str()), (3, "[DONE]"));

    let received = strike(Fault::Comments);
    let text = String::from_utf8(received.bytes()).unwrap();
    assert_eq!(text.matches("\r\n8\r\n: ping\n\n\r\n").count(), 5);
}

#[test]
fn the_end_is_wrong() {
    let finished = |events: &[String]| {
        events
            .iter()
            .filter(|event| event.contains(r#""finish_reason":"length""#))
            .count()
    };
    let events = payloads(&strike(Fault::MissingDone));
    assert_eq!((events.len(), finished(&events)), (5, 1));
    let events = payloads(&strike(Fault::ExtraAfterDone));
    assert_eq!((events[5].as_str(), events.len()), ("[DONE]", 7));
    let events = payloads(&strike(Fault::MissingFinish));
    assert_eq!((events.len(), finished(&events)), (6, 0));
    assert_eq!(payloads(&strike(Fault::EmptyStream)), ["[DONE]"]);
    let events = payloads(&strike(Fault::OneTokenShort));
    assert!(events[3].contains(r#""completion_tokens":3"#), "{events:?}");
    for fault in [
        Fault::MissingDone,
        Fault::ExtraAfterDone,
        Fault::EmptyStream,
    ] {
        assert!(answers(&strike(fault).bytes())[0].complete);
    }
}

#[test]
fn the_head_is_wrong() {
    let header = |fault, name: &str| {
        let answer = answers(&strike(fault).bytes())[0].clone();
        answer.header(name).unwrap().to_owned()
    };
    assert_eq!(header(Fault::GzipClaim, "content-encoding"), "gzip");
    let content_type = header(Fault::WrongContentType, "content-type");
    assert_eq!(content_type, "text/plain; charset=utf-8");
}
