//! A wire and a peer that break TLS in every way: each request ends once, with a fitting cause.

use assize_core::{ConnectionPolicy, Exchange, Phase, Terminal};
use assize_units::MonoNs;

use super::peer::{Authority, Lines, Ran, STREAM, Then, Wire, cell, one, run, run_over};

/// The answer's head, its first event, and no end but that of the connection.
const UNTIL_CLOSE: &[u8] =
    b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\ndata: [DONE]\n\n";

/// The first and only exchange, which ended once and without a byte that nobody vouches for.
fn ended(ran: &Ran) -> &Exchange {
    let terminals = ran.lines.0.iter();
    let terminals = terminals.filter(|(_, _, text)| text.starts_with("Terminal"));
    assert_eq!(terminals.count(), 1);
    &ran.exchanges[0]
}

#[test]
fn a_handshake_that_is_cut_anywhere_fails_as_tls() {
    for version in rustls::ALL_VERSIONS {
        let authority = Authority::new();
        let config = authority.server(true, &[version]);
        // Everything that the server says before it hears the request.
        let stranger = Authority::named("a stranger");
        let unheard = cell(1, stranger.target(), ConnectionPolicy::Fresh);
        let first_flight = run(unheard, &config, Then::Answer(STREAM), 1 << 20).served_bytes;
        assert!(first_flight > 300, "{first_flight}");
        for cut in 0..first_flight - 8 {
            let spec = cell(1, authority.target(), ConnectionPolicy::Fresh);
            let ran = run_over(
                spec,
                &config,
                Then::Answer(STREAM),
                1 << 20,
                Wire::CutAt(cut),
            );
            let exchange = ended(&ran);
            assert_eq!(
                (exchange.terminal, exchange.phase),
                (Some(Terminal::Tls), Some(Phase::Connect)),
                "cut at {cut} of {first_flight}"
            );
            assert_eq!((exchange.tls, exchange.sent_bytes), (None, 0));
            let facts = ran.lines.facts();
            assert_eq!(facts[0]["error"], "the peer closed during the handshake");
        }
    }
}

/// No bit of what a server sends can be turned without the client's knowing it: the answer never
/// comes through, but for bits that TLS itself declares void.
#[test]
fn a_bit_that_is_turned_anywhere_ends_the_request_once() {
    for version in rustls::ALL_VERSIONS {
        let authority = Authority::new();
        let config = authority.server(true, &[version]);
        let spec = || cell(1, authority.target(), ConnectionPolicy::Fresh);
        let whole = run(spec(), &config, Then::Answer(STREAM), 1 << 20);
        let (mut failed, mut complete) = (0, 0);
        for place in (0..whole.served_bytes - 8).step_by(3) {
            let wire = Wire::Flips(place);
            let ran = run_over(spec(), &config, Then::Answer(STREAM), 1 << 20, wire);
            let exchange = ended(&ran);
            match exchange.terminal {
                // The version in a record's head decides nothing in TLS 1.3.
                Some(Terminal::Complete) => {
                    assert_eq!(exchange.received_bytes, STREAM.len() as u64);
                    complete += 1;
                }
                // A length that grew, and then the end: a record that never came whole.
                Some(Terminal::Tls | Terminal::Disconnected | Terminal::Truncated) => {
                    assert_eq!(exchange.received_bytes, 0, "byte {place}");
                    failed += 1;
                }
                other => panic!("byte {place}: {other:?}"),
            }
        }
        assert!(
            failed > 20 * complete,
            "{failed} failed, {complete} did not"
        );
    }
}

/// Whether an exchange ended as the text says: what the reader's `verify` holds it against.
fn is_cut_short(exchange: &Exchange, lines: &Lines) -> bool {
    let bare_end = lines.events().contains(&"eof".to_owned());
    exchange.terminal == Some(Terminal::Truncated) && bare_end
}

#[test]
fn records_of_a_wrong_kind_or_length_after_an_answer_fail_as_tls() {
    for (more, why) in [
        (&[23, 3, 3, 0, 0][..], "an empty record"),
        (&[23, 3, 3, 0xff, 0xff, 0][..], "a length beyond TLS' own"),
        (
            &[
                23, 3, 3, 0, 17, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
            ],
            "a forged record",
        ),
        (
            &[99, 3, 3, 0, 1, 0][..],
            "a kind of record that there is not",
        ),
        (&[23, 9, 9, 0, 1, 0][..], "a version that there is not"),
        (
            &[21, 3, 3, 0, 2, 2, 40][..],
            "an alert that nobody encrypted",
        ),
        (
            &[22, 3, 3, 0, 4, 0, 0, 0, 0][..],
            "a handshake that nobody encrypted",
        ),
        (b"HTTP/1.1 200 OK\r\n\r\n", "cleartext"),
    ] {
        let (exchange, lines) = one(Then::AnswerAnd(UNTIL_CLOSE, more), 1 << 20);
        assert_eq!(
            (exchange.terminal, exchange.phase),
            (Some(Terminal::Tls), Some(Phase::AfterFinish)),
            "{why}: {:?}",
            lines.facts()
        );
        assert_eq!(exchange.received_bytes, UNTIL_CLOSE.len() as u64, "{why}");
        assert_eq!(lines.events(), ["handshake", "failed", "close"], "{why}");
    }
}

/// What is no record yet when the transport ends is nothing but a bare end.
#[test]
fn a_record_that_never_comes_whole_is_a_truncation() {
    for more in [
        &[23][..],
        &[23, 3, 3, 0],
        &[23, 3, 3, 0, 40],
        &[23, 3, 3, 0, 40, 1, 2, 3],
        &[21, 3, 3, 0, 19, 1],
    ] {
        let (exchange, lines) = one(Then::AnswerAnd(UNTIL_CLOSE, more), 1);
        assert!(is_cut_short(&exchange, &lines), "{more:?}: {exchange:?}");
        assert_eq!(exchange.events, 1);
    }
    // The closing alert is what makes a whole stream complete, to its last byte.
    let authority = Authority::new();
    let config = authority.server(true, rustls::ALL_VERSIONS);
    for dropped in 0..=24 {
        let spec = cell(1, authority.target(), ConnectionPolicy::Fresh);
        let said = Then::AnswerAndNotify(UNTIL_CLOSE);
        let ran = run_over(spec, &config, said, 1 << 20, Wire::DropsLast(dropped));
        let exchange = ended(&ran);
        assert_eq!(exchange.terminal == Some(Terminal::Complete), dropped == 0);
        assert_eq!(is_cut_short(exchange, &ran.lines), dropped > 0, "{dropped}");
    }
}

#[test]
fn connections_are_opened_in_advance_with_their_handshakes() {
    let authority = Authority::new();
    let config = authority.server(true, rustls::ALL_VERSIONS);
    let policy = ConnectionPolicy::Preopened { n: 3 };
    let ran = run(
        cell(4, authority.target(), policy),
        &config,
        Then::Answer(STREAM),
        50,
    );
    assert_eq!(ran.handshakes, 3);
    let place = |start: &str| {
        let lines = ran.lines.0.iter().enumerate();
        let places = lines.filter(|(_, (_, _, text))| text.starts_with(start));
        places
            .map(|(place, line)| (place, line.0, line.1))
            .collect::<Vec<_>>()
    };
    let handshakes = place("Tls {\"alpn\"");
    let start = place("CellStart")[0];
    assert_eq!(handshakes.len(), 3);
    for (place, at, req) in &handshakes {
        assert_eq!(*req, None, "for no request");
        assert!(*place < start.0 && *at <= start.1, "before the origin");
    }
    let last = MonoNs(handshakes.last().unwrap().1);
    for exchange in &ran.exchanges {
        assert_eq!(exchange.terminal, Some(Terminal::Complete));
        assert_eq!((exchange.connect, exchange.tls), (None, None));
        let reuse = exchange.reuse.unwrap();
        assert!(exchange.admitted.unwrap() > last);
        assert!(reuse.idle.is_some(), "it stood before");
    }
    let first = &ran.exchanges[0];
    let idle = first.reuse.unwrap().idle.unwrap();
    assert_eq!(
        idle,
        first.admitted.unwrap().since(last),
        "idle since its handshake was done"
    );
}

/// A peer that proves nothing opens no connection in advance: each request then tries its own.
#[test]
fn an_untrusted_peer_holds_no_cell_up() {
    let authority = Authority::new();
    let config = authority.server(true, rustls::ALL_VERSIONS);
    let stranger = Authority::named("a stranger").target();
    let policy = ConnectionPolicy::Preopened { n: 2 };
    let ran = run(cell(2, stranger, policy), &config, Then::Answer(STREAM), 64);
    assert_eq!(ran.handshakes, 4);
    for exchange in &ran.exchanges {
        assert_eq!(
            (exchange.terminal, exchange.phase),
            (Some(Terminal::Tls), Some(Phase::Connect))
        );
    }
}
