//! A rustls server in this process, and a session that asks it on a virtual clock.

use std::io::{Read, Write};
use std::net::SocketAddr;
use std::sync::Arc;

use assize_core::protocol::http1::Limits;
use assize_core::{
    CellSpec, ConnId, ConnectionPolicy, Entry, Exchange, LoadSpec, Output, ReceiveMode,
    RequestSpec, Session, Sink, Stamp, Target, TlsTarget,
};
use assize_units::{DurNs, MonoNs, OffsetNs};
use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair, date_time_ymd,
};
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::{ServerConfig, ServerConnection};

/// 2026-01-01.
pub const WALL_CLOCK_S: u64 = 1_767_225_600;

pub const STREAM: &[u8] = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\
    content-length: 29\r\n\r\ndata: {\"x\":1}\n\ndata: [DONE]\n\n";

/// One authority and one server's certificate of it.
pub struct Authority {
    pub issuer: CertifiedIssuer<'static, KeyPair>,
}

impl Authority {
    pub fn new() -> Authority {
        Authority::named("an authority")
    }

    pub fn named(name: &str) -> Authority {
        let mut params = CertificateParams::default();
        params.distinguished_name.push(DnType::CommonName, name);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().unwrap();
        Authority {
            issuer: CertifiedIssuer::self_signed(params, key).unwrap(),
        }
    }

    pub fn root(&self) -> Vec<u8> {
        self.issuer.der().to_vec()
    }

    /// A server for `localhost`, whose certificate ends a month after the wall clock, or a day before.
    pub fn server(
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

    pub fn target(&self) -> TlsTarget {
        TlsTarget::verified("localhost", [self.root()], WALL_CLOCK_S).unwrap()
    }
}

/// What the server does once it has the request.
#[derive(Clone, Copy, Debug)]
pub enum Then {
    /// Answers and keeps the connection.
    Answer(&'static [u8]),
    /// Answers and says that no more comes, in the same bytes.
    AnswerAndNotify(&'static [u8]),
    /// Answers, and the transport ends.
    AnswerAndCut(&'static [u8]),
    /// Answers, writes more bytes that nobody encrypted, and the transport ends.
    AnswerAnd(&'static [u8], &'static [u8]),
    /// Answers with a record whose last byte is turned.
    Corrupt(&'static [u8]),
    /// Changes its keys in the middle of the answer, and asks for new ones.
    Rekey(&'static [u8]),
    /// Sends an alert in the middle of the answer.
    Alert(&'static [u8]),
}

#[derive(Default)]
pub struct Lines(pub Vec<(u64, Option<u32>, String)>);

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
    pub fn facts(&self) -> Vec<serde_json::Value> {
        let texts = self
            .0
            .iter()
            .filter_map(|(_, _, text)| text.strip_prefix("Tls "));
        texts
            .map(|text| serde_json::from_str(text).unwrap())
            .collect()
    }

    pub fn events(&self) -> Vec<String> {
        let facts = self.facts();
        facts
            .iter()
            .map(|facts| facts["event"].as_str().unwrap().to_owned())
            .collect()
    }
}

pub fn cell(requests: usize, target: TlsTarget, connections: ConnectionPolicy) -> CellSpec {
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

/// What the wire does to the bytes that the server sends on a connection.
#[derive(Clone, Copy, Debug)]
pub enum Wire {
    /// Brings them.
    Whole,
    /// Turns one bit of the byte at this place.
    Flips(usize),
    /// Brings so many and ends.
    CutAt(usize),
    /// Ends so many bytes before the end of the answer.
    DropsLast(usize),
}

pub struct Ran {
    pub exchanges: Vec<Exchange>,
    pub lines: Lines,
    pub handshakes: usize,
    /// What each server heard last, in the order of closing.
    pub goodbyes: Vec<Goodbye>,
    /// Bytes that the servers sent, those of the handshake first.
    pub served_bytes: usize,
}

/// What a server heard of its client's end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Goodbye {
    /// Nothing.
    Silence,
    /// `close_notify`.
    CloseNotify,
    /// Another alert, in rustls' words.
    Alert(String),
}

/// The server's side of one connection.
struct Peer {
    server: ServerConnection,
    conn: ConnId,
    heard: usize,
    cut: bool,
    wire: Wire,
    served: usize,
    goodbye: Goodbye,
    /// What waits to be brought to the client.
    ciphertext: Vec<u8>,
}

/// Runs a cell whose peer answers every request at once, `cut` bytes a read, one ns apart.
pub fn run(spec: CellSpec, config: &Arc<ServerConfig>, then: Then, cut: usize) -> Ran {
    run_over(spec, config, then, cut, Wire::Whole)
}

/// The same over a faulty wire.
pub fn run_over(
    spec: CellSpec,
    config: &Arc<ServerConfig>,
    then: Then,
    cut: usize,
    wire: Wire,
) -> Ran {
    let request_len = spec.requests[0].wire_len() as usize;
    let mut session = Session::new(Arc::new(spec));
    let mut ran = Ran {
        exchanges: Vec::new(),
        lines: Lines::default(),
        handshakes: 0,
        goodbyes: Vec::new(),
        served_bytes: 0,
    };
    let lines = &mut ran.lines;
    let mut peers: Vec<Peer> = Vec::new();
    let mut now = MonoNs(1_000);
    session.start(now, lines);
    for _ in 0..100_000 {
        while let Some(output) = session.poll_output(now, lines) {
            match output {
                Output::Connect { conn, .. } => {
                    ran.handshakes += 1;
                    peers.push(Peer::new(config, conn, wire));
                    session.handle_connected(now, conn, lines);
                }
                Output::Send { conn, data } => {
                    session.handle_send_started(now, conn, lines);
                    let sent = data.parts(session.spec()).0.to_vec();
                    session.handle_sent(now, conn, lines);
                    let peer = peers.iter_mut().find(|peer| peer.conn == conn).unwrap();
                    peer.take(&sent, request_len, then);
                }
                Output::Close { conn, farewell } => {
                    let place = peers.iter().position(|peer| peer.conn == conn).unwrap();
                    let mut peer = peers.remove(place);
                    if let Some(words) = farewell {
                        peer.take(&words, request_len, then);
                    }
                    ran.served_bytes += peer.served;
                    ran.goodbyes.push(peer.goodbye);
                    session.handle_closed(now, conn, lines);
                }
            }
        }
        if session.is_done() {
            ran.exchanges = session.exchanges().to_vec();
            return ran;
        }
        for peer in &mut peers {
            for piece in std::mem::take(&mut peer.ciphertext).chunks(cut) {
                now = now.after(DurNs(1));
                session.handle_received(now.into(), peer.conn, piece, lines);
            }
            if std::mem::take(&mut peer.cut) {
                now = now.after(DurNs(1));
                session.handle_eof(now.into(), peer.conn, lines);
            }
        }
        if !session.has_output() {
            now = now.max(session.poll_timeout().unwrap_or(now));
            session.handle_timeout(now, lines);
        }
    }
    panic!("the session does not end");
}

impl Peer {
    fn new(config: &Arc<ServerConfig>, conn: ConnId, wire: Wire) -> Peer {
        Peer {
            server: ServerConnection::new(Arc::clone(config)).unwrap(),
            conn,
            heard: 0,
            cut: false,
            wire,
            served: 0,
            goodbye: Goodbye::Silence,
            ciphertext: Vec::new(),
        }
    }

    fn take(&mut self, mut sent: &[u8], request_len: usize, then: Then) {
        while !sent.is_empty() {
            self.server.read_tls(&mut sent).unwrap();
            match self.server.process_new_packets() {
                Ok(state) => {
                    let mut plaintext = vec![0; state.plaintext_bytes_to_read()];
                    self.server.reader().read_exact(&mut plaintext).unwrap();
                    self.heard += plaintext.len();
                    if state.peer_has_closed() {
                        self.goodbye = Goodbye::CloseNotify;
                    }
                }
                Err(error) => {
                    self.goodbye = Goodbye::Alert(error.to_string());
                    break;
                }
            }
        }
        let mut out = Vec::new();
        let answers = self.heard == request_len;
        if answers {
            self.heard = 0;
            self.answer(then, &mut out);
        }
        self.write(&mut out);
        if let (Wire::DropsLast(count), true) = (self.wire, answers) {
            out.truncate(out.len() - count);
            self.cut = true;
        }
        self.pass(&mut out);
    }

    fn write(&mut self, out: &mut Vec<u8>) {
        while self.server.wants_write() {
            self.server.write_tls(out).unwrap();
        }
    }

    /// Brings what the server wrote to the client, as the wire does.
    fn pass(&mut self, out: &mut Vec<u8>) {
        match self.wire {
            Wire::Flips(place) => {
                if let Some(byte) = place
                    .checked_sub(self.served)
                    .and_then(|at| out.get_mut(at))
                {
                    *byte ^= 1;
                    self.cut = true;
                }
            }
            Wire::CutAt(place) if self.served + out.len() >= place => {
                out.truncate(place.saturating_sub(self.served));
                self.cut = true;
            }
            Wire::CutAt(_) | Wire::DropsLast(_) | Wire::Whole => {}
        }
        self.served += out.len();
        self.ciphertext.append(out);
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
            Then::AnswerAnd(bytes, more) => {
                self.server.writer().write_all(bytes).unwrap();
                self.write(out);
                out.extend_from_slice(more);
                self.cut = true;
            }
            Then::Rekey(bytes) => {
                let (front, rest) = bytes.split_at(bytes.len() / 2);
                self.server.writer().write_all(front).unwrap();
                self.server.refresh_traffic_keys().unwrap();
                self.server.writer().write_all(rest).unwrap();
            }
            Then::Corrupt(bytes) => {
                self.server.writer().write_all(bytes).unwrap();
                self.write(out);
                *out.last_mut().unwrap() ^= 1;
            }
            Then::Alert(bytes) => {
                self.server.writer().write_all(bytes).unwrap();
                self.write(out);
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

/// One request to a server of which everything is as it should be.
pub fn one(then: Then, cut: usize) -> (Exchange, Lines) {
    let authority = Authority::new();
    let config = authority.server(true, rustls::ALL_VERSIONS);
    let spec = cell(1, authority.target(), ConnectionPolicy::Fresh);
    let mut ran = run(spec, &config, then, cut);
    (ran.exchanges.remove(0), ran.lines)
}
