//! How a connection is left: `close_notify`, the alert of a failure, and what was sent until then.

use std::sync::Arc;

use assize_core::{
    ConnId, ConnectionPolicy, Exchange, Outgoing, Output, Phase, Session, SocketOp, Terminal,
    TlsTarget,
};
use assize_units::{DurNs, MonoNs};
use rustls::ServerConnection;

use super::peer::{
    Authority, Goodbye, Lines, STREAM, Then, WALL_CLOCK_S, Wire, cell, run, run_over,
};

const EPIPE: i32 = 32;

#[test]
fn a_connection_that_is_closed_says_so() {
    for version in rustls::ALL_VERSIONS {
        let authority = Authority::new();
        let config = authority.server(true, &[version]);
        for (policy, closes) in [
            (ConnectionPolicy::Fresh, 2),
            (
                ConnectionPolicy::Reuse {
                    idle: DurNs::from_s(5),
                },
                1,
            ),
            (ConnectionPolicy::Preopened { n: 3 }, 3),
        ] {
            let spec = cell(2, authority.target(), policy);
            let ran = run(spec, &config, Then::Answer(STREAM), 1 << 20);
            assert_eq!(
                ran.goodbyes,
                vec![Goodbye::CloseNotify; closes],
                "{policy:?}"
            );
            let closed = ran.lines.facts().into_iter();
            let closed: Vec<_> = closed.filter(|facts| facts["event"] == "close").collect();
            assert_eq!(closed.len(), closes);
            for facts in closed {
                assert_eq!(facts["close_notify_offered"], true);
                assert_eq!(facts["close_notify"], false);
            }
        }
    }
}

/// The server closed first: its client answers, and a client that gave up says so too.
#[test]
fn close_notify_answers_close_notify_and_ends_a_wait() {
    let authority = Authority::new();
    let config = authority.server(true, rustls::ALL_VERSIONS);
    for (then, terminal) in [
        (Then::AnswerAndNotify(STREAM), Terminal::Complete),
        (Then::Answer(&STREAM[..90]), Terminal::RequestTimeout),
    ] {
        let spec = cell(1, authority.target(), ConnectionPolicy::Fresh);
        let ran = run(spec, &config, then, 1 << 20);
        assert_eq!(ran.exchanges[0].terminal, Some(terminal));
        assert_eq!(ran.goodbyes, [Goodbye::CloseNotify]);
    }
}

#[test]
fn a_server_hears_why_its_client_leaves() {
    let authority = Authority::new();
    let stranger = Authority::named("a stranger");
    let valid = authority.server(true, rustls::ALL_VERSIONS);
    let expired = authority.server(false, rustls::ALL_VERSIONS);
    for (target, config, wire, alert) in [
        (stranger.target(), &valid, Wire::Whole, "UnknownCA"),
        (
            authority.target(),
            &expired,
            Wire::Whole,
            "CertificateExpired",
        ),
    ] {
        let spec = cell(1, target, ConnectionPolicy::Fresh);
        let ran = run_over(spec, config, Then::Answer(STREAM), 1 << 20, wire);
        assert_eq!(ran.exchanges[0].terminal, Some(Terminal::Tls));
        let [Goodbye::Alert(words)] = ran.goodbyes.as_slice() else {
            panic!("{:?}", ran.goodbyes);
        };
        assert!(words.contains(alert), "{words}");
        let closed = ran.lines.facts().pop().unwrap();
        assert_eq!(closed["close_notify_offered"], false);
    }
    let spec = cell(1, authority.target(), ConnectionPolicy::Fresh);
    let corrupt = run(spec, &valid, Then::Corrupt(STREAM), 1 << 20);
    assert_eq!(
        corrupt.goodbyes,
        [Goodbye::Alert(
            "received fatal alert: BadRecordMac".to_owned()
        )]
    );
}

/// A session whose one connection stands, with its server's state, before the request is sent.
struct Standing {
    session: Session,
    lines: Lines,
    conn: ConnId,
    now: MonoNs,
    server: Option<ServerConnection>,
}

impl Standing {
    fn new(target: Option<(TlsTarget, ServerConnection)>) -> Standing {
        let (target, server) = target.unzip();
        let policy = ConnectionPolicy::Fresh;
        let mut spec = match target {
            Some(target) => cell(1, target, policy),
            None => cell(
                1,
                TlsTarget::insecure("localhost", WALL_CLOCK_S).unwrap(),
                policy,
            ),
        };
        if server.is_none() {
            spec.targets[0].tls = None;
        }
        let mut session = Session::new(Arc::new(spec));
        let mut lines = Lines::default();
        session.start(MonoNs(0), &mut lines);
        let now = session.origin().unwrap();
        let Some(Output::Connect { conn, .. }) = session.poll_output(now, &mut lines) else {
            panic!("the request is due")
        };
        session.handle_connected(now, conn, &mut lines);
        Standing {
            session,
            lines,
            conn,
            now,
            server,
        }
    }

    /// The send of the request: all that comes before it is accepted and answered.
    fn request(&mut self) -> usize {
        loop {
            let output = self.session.poll_output(self.now, &mut self.lines);
            let Some(Output::Send { data, .. }) = output else {
                panic!("a send is due")
            };
            let (session, lines) = (&mut self.session, &mut self.lines);
            session.handle_send_started(self.now, self.conn, lines);
            let (front, rest) = data.parts(session.spec());
            let len = front.len() + rest.len();
            let handshakes = matches!(data, Outgoing::Records(_)) && len < 40_000;
            if !handshakes {
                return len;
            }
            let server = self.server.as_mut().unwrap();
            server.read_tls(&mut &front[..]).unwrap();
            server.process_new_packets().unwrap();
            session.handle_sent(self.now, self.conn, lines);
            let mut answer = Vec::new();
            while server.wants_write() {
                server.write_tls(&mut answer).unwrap();
            }
            session.handle_received(self.now.into(), self.conn, &answer, lines);
        }
    }

    /// The kernel takes so many bytes of the send, then the peer is gone.
    fn breaks_after(mut self, accepted: u64) -> (Exchange, Lines) {
        let (session, lines) = (&mut self.session, &mut self.lines);
        session.handle_partly_sent(self.now, self.conn, accepted / 2, lines);
        session.handle_partly_sent(self.now, self.conn, accepted, lines);
        session.handle_failed(self.now, self.conn, SocketOp::Send, EPIPE, lines);
        session.handle_failed(self.now, self.conn, SocketOp::Receive, 104, lines);
        while let Some(output) = session.poll_output(self.now, lines) {
            let Output::Close { conn, farewell } = output else {
                panic!("{output:?}")
            };
            assert_eq!(farewell, None, "nothing comes between the parts of a send");
            session.handle_closed(self.now, conn, lines);
        }
        assert!(session.is_done());
        (session.exchanges()[0].clone(), self.lines)
    }
}

#[test]
fn a_broken_send_tells_what_of_the_request_was_accepted() {
    for accepted in [0, 1, 19, 20, 12_345, 40_018] {
        let mut standing = Standing::new(None);
        assert_eq!(standing.request(), 40_019);
        let (exchange, lines) = standing.breaks_after(accepted);
        assert_eq!(
            (exchange.terminal, exchange.phase, exchange.errno),
            (Some(Terminal::Reset), Some(Phase::Send), 104)
        );
        assert_eq!((exchange.sent, exchange.sent_bytes), (None, accepted));
        let told = format!("Sent {{ bytes: {accepted} }}");
        let told = lines.0.iter().filter(|(_, _, text)| *text == told).count();
        assert_eq!(told, usize::from(accepted > 0));
    }
}

/// Of a TLS record that was accepted in part the peer can read nothing, so none of it counts.
#[test]
fn with_tls_a_broken_send_counts_whole_records() {
    const FRAGMENT: u64 = 16_384;
    for version in rustls::ALL_VERSIONS {
        let authority = Authority::new();
        let config = authority.server(true, &[version]);
        let standing = || {
            let server = ServerConnection::new(config.clone()).unwrap();
            Standing::new(Some((authority.target(), server)))
        };
        let mut seen = Vec::new();
        for accepted in [0, 1_000, 16_000, 17_000, 32_000, 34_000, 40_000, 1 << 40] {
            let mut standing = standing();
            let whole = standing.request() as u64;
            assert!(whole > 40_019 + 3 * 22, "three records");
            let (exchange, _) = standing.breaks_after(accepted.min(whole - 1));
            assert_eq!(exchange.phase, Some(Phase::Send));
            seen.push(exchange.sent_bytes);
        }
        let (one, two) = (FRAGMENT, 2 * FRAGMENT);
        assert_eq!(seen, [0, 0, 0, one, one, two, two, two], "{version:?}");
    }
}
