//! TLS between a driver's bytes and HTTP/1.1, against a rustls server in this process.

use std::io::{Read, Write};
use std::net::SocketAddr;
use std::sync::Arc;

use assize_core::protocol::http1::Limits;
use assize_core::{
    CellSpec, ConnId, ConnectionPolicy, Entry, Exchange, LoadSpec, Output, Phase, ReceiveMode,
    RequestSpec, Session, Sink, SocketOp, Stamp, Target, Terminal, TlsSetupError, TlsTarget,
    certificates_from_pem,
};
use assize_units::{DurNs, MonoNs, OffsetNs};
use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair, date_time_ymd,
};
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::{ServerConfig, ServerConnection};

/// 2026-01-01.
const WALL_CLOCK_S: u64 = 1_767_225_600;

const STREAM: &[u8] = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\
    content-length: 29\r\n\r\ndata: {\"x\":1}\n\ndata: [DONE]\n\n";

/// One authority and one server's certificate of it.
struct Authority {
    issuer: CertifiedIssuer<'static, KeyPair>,
}

impl Authority {
    fn new() -> Authority {
        Authority::named("an authority")
    }

    fn named(name: &str) -> Authority {
        let mut params = CertificateParams::default();
        params.distinguished_name.push(DnType::CommonName, name);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().unwrap();
        Authority {
            issuer: CertifiedIssuer::self_signed(params, key).unwrap(),
        }
    }

    fn root(&self) -> Vec<u8> {
        self.issuer.der().to_vec()
    }

    /// A server for `localhost`, whose certificate ends a month after the wall clock, or a day before.
    fn server(
        &self,
        in_time: bool,
        versions: &[&'static rustls::SupportedProtocolVersion],
    ) -> Arc<ServerConfig> {
        let mut params = CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
        params.not_before = date_time_ymd(2025, 12, 1);
        params.not_after = if in_time {
            date_time_ymd(2026, 2, 1)
        } else {
            date_time_ymd(2025, 12, 31)
        };
        let key = KeyPair::generate().unwrap();
        let certificate = params.signed_by(&key, &self.issuer).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ServerConfig::builder_with_provider(provider)
            .with_protocol_versions(versions)
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(
                vec![certificate.der().clone()],
                PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der())),
            )
            .unwrap();
        Arc::new(config)
    }

    fn target(&self) -> TlsTarget {
        TlsTarget::verified("localhost", [self.root()], WALL_CLOCK_S).unwrap()
    }
}

/// What the server does once it has the request.
#[derive(Clone, Copy, Debug)]
enum Then {
    /// Answers and keeps the connection.
    Answer(&'static [u8]),
    /// Answers and says that no more comes, in the same bytes.
    AnswerAndNotify(&'static [u8]),
    /// Answers, and the transport ends.
    AnswerAndCut(&'static [u8]),
    /// Answers with a record whose last byte is turned.
    Corrupt(&'static [u8]),
    /// Sends an alert in the middle of the answer.
    Alert(&'static [u8]),
}

#[derive(Default)]
struct Lines(Vec<(u64, Option<u32>, String)>);

impl Sink for Lines {
    fn put(&mut self, at: Stamp, _: Option<ConnId>, req: Option<u32>, entry: Entry<'_>) {
        let text = match entry {
            Entry::Received(bytes) => format!("Received {}", bytes.len()),
            Entry::Tls { facts } => format!("Tls {facts}"),
            entry => format!("{entry:?}"),
        };
        self.0.push((at.mono.0, req, text));
    }

    fn overflowed(&self) -> bool {
        false
    }
}

impl Lines {
    fn facts(&self) -> Vec<serde_json::Value> {
        let texts = self
            .0
            .iter()
            .filter_map(|(_, _, text)| text.strip_prefix("Tls "));
        texts
            .map(|text| serde_json::from_str(text).unwrap())
            .collect()
    }

    fn events(&self) -> Vec<String> {
        let facts = self.facts();
        facts
            .iter()
            .map(|facts| facts["event"].as_str().unwrap().to_owned())
            .collect()
    }
}

fn cell(requests: usize, target: TlsTarget, connections: ConnectionPolicy) -> CellSpec {
    let request = RequestSpec {
        target: 0,
        head: b"POST / HTTP/1.1\r\n\r\n".to_vec(),
        body: Arc::from(vec![b'x'; 40_000]),
        timeout: DurNs::from_ms(900),
        connect_timeout: None,
        idle_timeout: None,
    };
    CellSpec {
        requests: vec![request; requests],
        load: LoadSpec::Open {
            offsets: (0..requests as u64)
                .map(|n| OffsetNs(n * 1_000_000_000))
                .collect(),
            cap: None,
        },
        targets: vec![Target {
            addr: SocketAddr::from(([127, 0, 0, 1], 1)),
            tls: Some(Arc::new(target)),
        }],
        connections,
        drain: DurNs::from_s(60),
        limits: Limits::default(),
        spin: DurNs::ZERO,
        receive: ReceiveMode::Reap,
    }
}

struct Ran {
    exchanges: Vec<Exchange>,
    lines: Lines,
    handshakes: usize,
}

/// The server's side of one connection.
struct Peer {
    server: ServerConnection,
    conn: ConnId,
    heard: usize,
    cut: bool,
}

/// Runs a cell whose peer answers every request at once, `cut` bytes a read, one ns apart.
fn run(spec: CellSpec, config: &Arc<ServerConfig>, then: Then, cut: usize) -> Ran {
    let request_len = spec.requests[0].wire_len() as usize;
    let mut session = Session::new(Arc::new(spec));
    let mut lines = Lines::default();
    let mut peer: Option<Peer> = None;
    let mut handshakes = 0;
    let mut now = MonoNs(1_000);
    session.start(now, &mut lines);
    for _ in 0..100_000 {
        let mut ciphertext = Vec::new();
        while let Some(output) = session.poll_output(now, &mut lines) {
            match output {
                Output::Connect { conn, .. } => {
                    handshakes += 1;
                    peer = Some(Peer {
                        server: ServerConnection::new(Arc::clone(config)).unwrap(),
                        conn,
                        heard: 0,
                        cut: false,
                    });
                    session.handle_connected(now, conn, &mut lines);
                }
                Output::Send { conn, data } => {
                    session.handle_send_started(now, conn, &mut lines);
                    let sent = data.parts(session.spec()).0.to_vec();
                    session.handle_sent(now, conn, &mut lines);
                    let peer = peer.as_mut().filter(|peer| peer.conn == conn).unwrap();
                    peer.take(&sent, request_len, then, &mut ciphertext);
                }
                Output::Close { conn } => session.handle_closed(now, conn, &mut lines),
            }
        }
        if session.is_done() {
            let exchanges = session.exchanges().to_vec();
            return Ran {
                exchanges,
                lines,
                handshakes,
            };
        }
        if let Some(peer) = &mut peer {
            for piece in ciphertext.chunks(cut) {
                now = now.after(DurNs(1));
                session.handle_received(now.into(), peer.conn, piece, &mut lines);
            }
            if std::mem::take(&mut peer.cut) {
                now = now.after(DurNs(1));
                session.handle_eof(now.into(), peer.conn, &mut lines);
            }
        }
        if !session.has_output() {
            now = now.max(session.poll_timeout().unwrap_or(now));
            session.handle_timeout(now, &mut lines);
        }
    }
    panic!("the session does not end");
}

impl Peer {
    fn take(&mut self, mut sent: &[u8], request_len: usize, then: Then, out: &mut Vec<u8>) {
        while !sent.is_empty() {
            self.server.read_tls(&mut sent).unwrap();
            match self.server.process_new_packets() {
                Ok(state) => {
                    let mut plaintext = vec![0; state.plaintext_bytes_to_read()];
                    self.server.reader().read_exact(&mut plaintext).unwrap();
                    self.heard += plaintext.len();
                }
                // A server that is refused hears an alert or nothing at all.
                Err(_) => break,
            }
        }
        if self.heard == request_len {
            self.heard = 0;
            self.answer(then, out);
        }
        self.server.write_tls(out).unwrap();
        while self.server.wants_write() {
            self.server.write_tls(out).unwrap();
        }
    }

    fn answer(&mut self, then: Then, out: &mut Vec<u8>) {
        match then {
            Then::Answer(bytes) => self.server.writer().write_all(bytes).unwrap(),
            Then::AnswerAndNotify(bytes) => {
                self.server.writer().write_all(bytes).unwrap();
                self.server.send_close_notify();
            }
            Then::AnswerAndCut(bytes) => {
                self.server.writer().write_all(bytes).unwrap();
                self.cut = true;
            }
            Then::Corrupt(bytes) => {
                self.server.writer().write_all(bytes).unwrap();
                while self.server.wants_write() {
                    self.server.write_tls(out).unwrap();
                }
                *out.last_mut().unwrap() ^= 1;
            }
            Then::Alert(bytes) => {
                self.server.writer().write_all(bytes).unwrap();
                while self.server.wants_write() {
                    self.server.write_tls(out).unwrap();
                }
                // A record of nonsense: the server answers it with a fatal alert.
                let mut nonsense: &[u8] = &[
                    23, 3, 3, 0, 20, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9,
                ];
                self.server.read_tls(&mut nonsense).unwrap();
                self.server.process_new_packets().unwrap_err();
            }
        }
    }
}

fn one(then: Then, cut: usize) -> (Exchange, Lines) {
    let authority = Authority::new();
    let config = authority.server(true, rustls::ALL_VERSIONS);
    let spec = cell(1, authority.target(), ConnectionPolicy::Fresh);
    let mut ran = run(spec, &config, then, cut);
    (ran.exchanges.remove(0), ran.lines)
}

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
