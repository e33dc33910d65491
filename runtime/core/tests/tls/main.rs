//! TLS between a driver's bytes and HTTP/1.1, against a rustls server in this process.

mod faults;
mod partings;
mod peer;

use std::sync::Arc;

use assize_core::{
    ConnId, ConnectionPolicy, Exchange, Output, Phase, Session, SocketOp, Terminal, TlsSetupError,
    TlsTarget, certificates_from_pem,
};
use assize_units::{DurNs, MonoNs};

use peer::{Authority, Goodbye, Lines, STREAM, Then, WALL_CLOCK_S, cell, one, run};

#[test]
fn a_stream_comes_through_whatever_the_cut_of_its_records() {
    for version in rustls::ALL_VERSIONS {
        for cut in [1, 2, 5, 100, 1 << 20] {
            let authority = Authority::new();
            let config = authority.server(true, &[version]);
            let spec = cell(1, authority.target(), ConnectionPolicy::Fresh);
            let ran = run(spec, &config, Then::Answer(STREAM), cut);
            let exchange = &ran.exchanges[0];
            assert_eq!(exchange.terminal, Some(Terminal::Complete), "cut {cut}");
            assert_eq!((exchange.events, exchange.done_events), (2, 1));
            assert_eq!(exchange.received_bytes, STREAM.len() as u64);
            // One record, so one receive brought it all, whatever the cut.
            assert_eq!(exchange.reads, 1);
            assert_eq!(exchange.first_event, exchange.end);
            assert_eq!(exchange.sent_bytes, 40_019);
            assert!(exchange.connected < exchange.tls && exchange.tls <= exchange.send_start);
            let facts = ran.lines.facts();
            assert_eq!(ran.lines.events(), ["handshake", "close"]);
            assert_eq!(facts[0]["version"], format!("{:?}", version.version));
            assert_eq!(facts[0]["verified"], true);
            assert_eq!(facts[0]["alpn"], serde_json::Value::Null);
            assert!(facts[1]["ciphertext_sent_bytes"].as_u64().unwrap() > 40_019);
            assert!(facts[1]["ciphertext_received_bytes"].as_u64().unwrap() > STREAM.len() as u64);
        }
    }
}

#[test]
fn an_event_has_the_time_of_the_receive_that_completed_its_record() {
    let (exchange, lines) = one(Then::Answer(STREAM), 1);
    let received = lines
        .0
        .iter()
        .filter(|(_, _, text)| text.starts_with("Received"));
    let stamps: Vec<u64> = received.map(|(at, _, _)| *at).collect();
    assert_eq!(stamps, [exchange.end.unwrap().0]);
    // With a byte a nanosecond, the last byte of the record comes after all before it.
    let since_sent = exchange.end.unwrap().since(exchange.sent.unwrap());
    assert!(since_sent.0 > STREAM.len() as u64);
}

#[test]
fn every_connection_makes_a_whole_handshake_and_a_kept_one_none() {
    let authority = Authority::new();
    let config = authority.server(true, rustls::ALL_VERSIONS);
    let idle = DurNs::from_s(5);
    for (policy, handshakes) in [
        (ConnectionPolicy::Fresh, 3),
        (ConnectionPolicy::Reuse { idle }, 1),
        (ConnectionPolicy::Preopened { n: 1 }, 1),
    ] {
        let ran = run(
            cell(3, authority.target(), policy),
            &config,
            Then::Answer(STREAM),
            7,
        );
        assert_eq!(ran.handshakes, handshakes, "{policy:?}");
        let complete = |exchange: &Exchange| exchange.terminal == Some(Terminal::Complete);
        assert!(ran.exchanges.iter().all(complete), "{policy:?}");
        let made = ran
            .exchanges
            .iter()
            .filter(|exchange| exchange.tls.is_some())
            .count();
        let own = if matches!(policy, ConnectionPolicy::Preopened { .. }) {
            0
        } else {
            handshakes
        };
        assert_eq!(made, own);
    }
}

#[test]
fn keys_that_change_in_the_stream_change_nothing_else() {
    let authority = Authority::new();
    let config = authority.server(true, &[&rustls::version::TLS13]);
    let idle = DurNs::from_s(5);
    for cut in [1, 30, 1 << 20] {
        let spec = cell(3, authority.target(), ConnectionPolicy::Reuse { idle });
        let ran = run(spec, &config, Then::Rekey(STREAM), cut);
        assert_eq!(ran.handshakes, 1, "cut {cut}");
        for exchange in &ran.exchanges {
            assert_eq!(exchange.terminal, Some(Terminal::Complete), "cut {cut}");
            assert_eq!((exchange.events, exchange.done_events), (2, 1));
            assert_eq!(
                exchange.sent_bytes, 40_019,
                "the answer to the change is no request"
            );
        }
        assert_eq!(ran.goodbyes, [Goodbye::CloseNotify]);
    }
}

#[test]
fn what_is_not_trusted_fails_as_tls_while_connecting() {
    let authority = Authority::new();
    let stranger = Authority::named("a stranger");
    let valid = authority.server(true, rustls::ALL_VERSIONS);
    let expired = authority.server(false, rustls::ALL_VERSIONS);
    let named = TlsTarget::verified("example.org", [authority.root()], WALL_CLOCK_S).unwrap();
    for (target, config, why) in [
        (stranger.target(), &valid, "UnknownIssuer"),
        (authority.target(), &expired, "expired"),
        (named, &valid, "not valid for name"),
    ] {
        let ran = run(
            cell(1, target, ConnectionPolicy::Fresh),
            config,
            Then::Answer(STREAM),
            64,
        );
        let exchange = &ran.exchanges[0];
        assert_eq!(exchange.terminal, Some(Terminal::Tls), "{why}");
        assert_eq!(exchange.phase, Some(Phase::Connect));
        assert_eq!(
            (exchange.tls, exchange.send_start, exchange.sent_bytes),
            (None, None, 0)
        );
        assert_eq!(ran.lines.events(), ["failed", "close"]);
        let error = ran.lines.facts()[0]["error"].as_str().unwrap().to_owned();
        assert!(error.contains(why), "{error}");
    }
}

#[test]
fn insecure_takes_any_certificate_and_says_so() {
    let authority = Authority::new();
    let expired = authority.server(false, rustls::ALL_VERSIONS);
    let target = TlsTarget::insecure("example.org", WALL_CLOCK_S).unwrap();
    assert!(!target.is_verified());
    let ran = run(
        cell(1, target, ConnectionPolicy::Fresh),
        &expired,
        Then::Answer(STREAM),
        64,
    );
    assert_eq!(ran.exchanges[0].terminal, Some(Terminal::Complete));
    assert_eq!(ran.lines.facts()[0]["verified"], false);
}

#[test]
fn only_close_notify_ends_a_body_that_a_close_ends() {
    const UNTIL_CLOSE: &[u8] =
        b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\ndata: [DONE]\n\n";
    let (said, lines) = one(Then::AnswerAndNotify(UNTIL_CLOSE), 1 << 20);
    assert_eq!(said.terminal, Some(Terminal::Complete));
    assert!(lines.0.iter().any(|(_, _, text)| text == "Eof"));
    assert_eq!(lines.facts().last().unwrap()["close_notify"], true);

    let (cut, lines) = one(Then::AnswerAndCut(UNTIL_CLOSE), 1 << 20);
    assert_eq!((cut.terminal, cut.events), (Some(Terminal::Truncated), 1));
    assert_eq!(cut.phase, Some(Phase::AfterFinish));
    assert!(lines.0.iter().all(|(_, _, text)| text != "Eof"));
    assert_eq!(lines.events(), ["handshake", "eof", "close"]);
}

#[test]
fn a_broken_record_or_an_alert_in_the_stream_fails_as_tls_there() {
    let (corrupt, lines) = one(Then::Corrupt(STREAM), 64);
    assert_eq!(
        (corrupt.terminal, corrupt.phase),
        (Some(Terminal::Tls), Some(Phase::BeforeHead))
    );
    assert_eq!(
        (corrupt.received_bytes, lines.events()[1].as_str()),
        (0, "failed")
    );

    let (alert, lines) = one(Then::Alert(&STREAM[..80]), 1 << 20);
    assert_eq!(
        (alert.terminal, alert.phase),
        (Some(Terminal::Tls), Some(Phase::Stream))
    );
    assert_eq!(
        alert.received_bytes, 80,
        "what came before the alert is kept"
    );
    assert_eq!(lines.events(), ["handshake", "failed", "close"]);
}

/// Cleartext or noise where a handshake is due, an end, a reset: never a panic, always one terminal.
#[test]
fn a_peer_that_speaks_no_tls_fails_the_handshake() {
    let connected = |feed: &dyn Fn(&mut Session, ConnId, &mut Lines, MonoNs)| {
        let target = TlsTarget::insecure("localhost", WALL_CLOCK_S).unwrap();
        let mut session = Session::new(Arc::new(cell(1, target, ConnectionPolicy::Fresh)));
        let mut lines = Lines::default();
        session.start(MonoNs(0), &mut lines);
        let now = session.origin().unwrap();
        let Some(Output::Connect { conn, .. }) = session.poll_output(now, &mut lines) else {
            panic!("the request is due")
        };
        session.handle_connected(now, conn, &mut lines);
        feed(&mut session, conn, &mut lines, now);
        let exchange = session.exchanges()[0].clone();
        (exchange.terminal, exchange.phase)
    };
    let failed = (Some(Terminal::Tls), Some(Phase::Connect));
    let plain = connected(&|session, conn, lines, now| {
        session.handle_received(now.into(), conn, b"HTTP/1.1 400 Bad\r\n\r\n", lines);
    });
    assert_eq!(plain, failed);
    let ended = connected(&|session, conn, lines, now| session.handle_eof(now.into(), conn, lines));
    assert_eq!(ended, failed);
    let reset = connected(&|session, conn, lines, now| {
        session.handle_failed(now, conn, SocketOp::Receive, 104, lines);
    });
    assert_eq!(reset, (Some(Terminal::Reset), Some(Phase::Connect)));
    let long = connected(&|session, conn, lines, now| {
        // The head of a handshake message that never ends.
        for _ in 0..9 {
            let mut record = vec![22, 3, 3, 0x40, 0];
            record.extend([2, 0, 0xff, 0xff].iter().chain(&[0; 0x4000 - 4]));
            session.handle_received(now.into(), conn, &record, lines);
        }
    });
    assert_eq!(long, failed);
}

#[test]
fn a_target_needs_a_name_and_a_root() {
    let authority = Authority::new();
    let bad_name = TlsTarget::verified("no name", [authority.root()], WALL_CLOCK_S);
    assert_eq!(
        bad_name.unwrap_err(),
        TlsSetupError::Name("no name".to_owned())
    );
    let no_root = TlsTarget::verified("localhost", [b"nonsense"], WALL_CLOCK_S);
    assert_eq!(no_root.unwrap_err(), TlsSetupError::NoRoots(1));
    let pem = authority.issuer.pem();
    assert_eq!(
        certificates_from_pem(pem.as_bytes()),
        Ok(vec![authority.root()])
    );
    assert!(matches!(
        certificates_from_pem(b""),
        Err(TlsSetupError::Pem(_))
    ));
}
