//! `https` from end to end: a TLS server in this process, the real driver, the evidence, the reader.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::sync::Arc;

use assize_core::RunControl;
use assize_evidence::wire::{Payload, WireReader};
use assize_evidence::{ExchangeRow, FolderStore, HOST_FILE, HostFacts, Phase, Store, Terminal};
use assize_host::Programs;
use assize_plan::{Hash, Tls};
use assize_units::DurNs;
use assize_verbs::Problem;
use assize_verbs::bench::{Arrivals, BenchOptions, Benched, bench};
use assize_verbs::run::CareRequest;
use assize_verbs::verify;
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair};
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::{ServerConfig, ServerConnection, StreamOwned};

const REQUESTS: u32 = 3;
const KEY: &str = "a-key-that-reaches-no-file";

/// A stream of two tokens; the server repeats the credential that it was sent.
fn events() -> String {
    format!(
        ": you said {KEY}\n\n\
         data: {{\"choices\":[{{\"index\":0,\"text\":\"hi\",\"finish_reason\":null}}]}}\n\n\
         data: {{\"choices\":[{{\"index\":0,\"text\":\" you\",\"finish_reason\":\"stop\"}}]}}\n\n\
         data: {{\"choices\":[],\"usage\":{{\"prompt_tokens\":1,\"completion_tokens\":2,\"total_tokens\":3}}}}\n\n\
         data: [DONE]\n\n"
    )
}

/// How the server's answer ends.
#[derive(Clone, Copy)]
enum Ends {
    /// By its last chunk; the connection stays.
    Chunked,
    /// By `close_notify`.
    Notified,
    /// By the end of the transport alone.
    Cut,
}

struct Authority {
    issuer: CertifiedIssuer<'static, KeyPair>,
}

impl Authority {
    fn named(name: &str) -> Authority {
        let mut params = CertificateParams::default();
        params.distinguished_name.push(DnType::CommonName, name);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().unwrap();
        Authority {
            issuer: CertifiedIssuer::self_signed(params, key).unwrap(),
        }
    }

    fn pem(&self) -> Vec<u8> {
        self.issuer.pem().into_bytes()
    }

    /// Serves `localhost` with a certificate of this authority until the test's process ends.
    fn serve(&self, ends: Ends) -> SocketAddr {
        let params = CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
        let key = KeyPair::generate().unwrap();
        let certificate = params.signed_by(&key, &self.issuer).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(
                vec![certificate.der().clone()],
                PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der())),
            )
            .unwrap();
        let config = Arc::new(config);
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        std::thread::spawn(move || {
            for socket in listener.incoming() {
                let (socket, config) = (socket.unwrap(), config.clone());
                // A client that takes no such certificate ends the connection: no fault of ours.
                std::thread::spawn(move || {
                    let _ = answer_all(socket, config, ends);
                });
            }
        });
        address
    }
}

fn answer_all(socket: TcpStream, config: Arc<ServerConfig>, ends: Ends) -> std::io::Result<()> {
    let connection = ServerConnection::new(config).map_err(std::io::Error::other)?;
    let mut stream = StreamOwned::new(connection, socket);
    let events = events();
    while read_request(&mut stream)? {
        let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n";
        match ends {
            Ends::Chunked => {
                write!(stream, "{head}transfer-encoding: chunked\r\n\r\n")?;
                for piece in events.split_inclusive("\n\n") {
                    write!(stream, "{:x}\r\n{piece}\r\n", piece.len())?;
                    stream.flush()?;
                }
                write!(stream, "0\r\n\r\n")?;
                stream.flush()?;
            }
            Ends::Notified | Ends::Cut => {
                write!(stream, "{head}connection: close\r\n\r\n{events}")?;
                if matches!(ends, Ends::Notified) {
                    stream.conn.send_close_notify();
                }
                stream.flush()?;
                return Ok(());
            }
        }
    }
    Ok(())
}

/// Reads one request whole; false where none comes.
fn read_request(stream: &mut impl Read) -> std::io::Result<bool> {
    let mut request = Vec::new();
    let mut buffer = [0; 4096];
    loop {
        let read = stream.read(&mut buffer)?;
        if read == 0 {
            return Ok(false);
        }
        request.extend_from_slice(&buffer[..read]);
        let text = String::from_utf8_lossy(&request);
        let Some((head, body)) = text.split_once("\r\n\r\n") else {
            continue;
        };
        assert!(
            head.contains(&format!("authorization: Bearer {KEY}")),
            "{head}"
        );
        let length = head
            .lines()
            .find_map(|line| line.strip_prefix("content-length: "))
            .and_then(|length| length.parse::<usize>().ok())
            .unwrap();
        if body.len() >= length {
            return Ok(true);
        }
    }
}

fn measure(
    scheme: &str,
    address: SocketAddr,
    ca: Option<Vec<u8>>,
    insecure: bool,
    out: &Path,
) -> Result<Benched, Problem> {
    let control = RunControl::default();
    let options = BenchOptions {
        url: &format!("{scheme}://localhost:{}", address.port()),
        prompts: b"{\"prompt\":\"one\"}\n".to_vec(),
        model: Some("some"),
        api: None,
        concurrency: Some(1),
        rate: None,
        arrivals: Arrivals::Periodic,
        requests: REQUESTS,
        warmup: 0,
        max_tokens: 4,
        temperature: "0",
        timeout: DurNs::from_s(30),
        seed: 0,
        key_env: Some("SOME_KEY"),
        ca,
        insecure,
        care: CareRequest::default(),
        environment: &|name| (name == "SOME_KEY").then(|| KEY.to_owned()),
        out: Some(out.to_owned()),
        programs: Programs {
            keeper: "unused".into(),
            keeper_arguments: vec![],
            sim: "unused".into(),
        },
        control: &control,
    };
    bench(options, &mut |_| {})
}

/// The evidence of one bench.
struct Evidence {
    benched: Benched,
    store: FolderStore,
    _folder: tempfile::TempDir,
}

impl Evidence {
    fn of(address: SocketAddr, ca: Option<Vec<u8>>, insecure: bool) -> Evidence {
        let folder = tempfile::tempdir().unwrap();
        let out = folder.path().join("it.evidence");
        let benched = measure("https", address, ca, insecure, &out).expect("a bench");
        let analysis = verify::verify(&out, None).expect("the evidence holds");
        assert!(analysis.verified.is_complete());
        Evidence {
            benched,
            store: FolderStore::open_root(&out).unwrap(),
            _folder: folder,
        }
    }

    fn file(&self, end: &str) -> Vec<u8> {
        let names = self.store.list().unwrap();
        let name = names.iter().find(|name| name.ends_with(end)).unwrap();
        self.store.read(name, 1 << 20).unwrap()
    }

    fn rows(&self) -> Vec<ExchangeRow> {
        ExchangeRow::parse_all(&self.file("exchanges.jsonl")).unwrap()
    }

    fn valid(&self) -> usize {
        let summaries = self.benched.analysis.cells.iter();
        summaries
            .filter_map(|cell| cell.summary.as_ref())
            .map(|summary| summary.valid)
            .sum()
    }

    /// What the log says of TLS, and what was received.
    fn wire(&self) -> (Vec<String>, String) {
        let bytes = self.file("wire.log");
        let mut reader = WireReader::new(bytes.as_slice()).unwrap();
        let (mut facts, mut received) = (Vec::new(), Vec::new());
        while reader
            .next_segment(|record| match record.payload {
                Payload::Tls { facts: text } => facts.push(text.to_owned()),
                Payload::Recv(bytes) => received.extend_from_slice(bytes),
                _ => {}
            })
            .unwrap()
        {}
        (facts, String::from_utf8(received).unwrap())
    }

    fn host_fact(&self) -> String {
        let facts: HostFacts = serde_json::from_slice(&self.file(HOST_FILE)).unwrap();
        facts.get("tls", "endpoint").unwrap().to_owned()
    }

    fn holds_no_key(&self) {
        for name in self.store.list().unwrap() {
            let bytes = self.store.read(&name, 1 << 20).unwrap();
            let found = bytes
                .windows(KEY.len())
                .any(|window| window == KEY.as_bytes());
            assert!(!found, "{name} holds the key");
        }
    }
}

#[test]
fn a_chunked_stream_is_verified_by_a_given_authority() {
    let authority = Authority::named("ours");
    let evidence = Evidence::of(authority.serve(Ends::Chunked), Some(authority.pem()), false);
    assert_eq!(evidence.valid(), REQUESTS as usize);
    assert_eq!(
        evidence.benched.tls,
        Some(Tls::Ca(Hash::of(&authority.pem())))
    );
    let words = evidence.host_fact();
    assert!(
        words.contains(&Hash::of(&authority.pem()).to_string()),
        "{words}"
    );
    let rows = evidence.rows();
    for row in &rows {
        assert_eq!(
            (row.terminal, row.phase),
            (Terminal::Complete, Phase::Ended)
        );
        assert_eq!(row.tls_ns.is_some(), row.connect_ns.is_some());
        assert!(row.connected_ns <= row.tls_ns && row.tls_ns <= row.send_start_ns);
    }
    assert!(rows[0].tls_ns.is_some());
    let (facts, received) = evidence.wire();
    assert!(
        facts[0].contains("\"handshake\"") && facts[0].contains("\"verified\":true"),
        "{facts:?}"
    );
    assert!(received.starts_with("HTTP/1.1 200 OK\r\n"), "{received}");
    let masked = format!(": you said {}\n", "*".repeat(KEY.len()));
    assert_eq!(received.matches(&masked).count(), REQUESTS as usize);
    evidence.holds_no_key();
}

#[test]
fn a_stream_that_ends_by_close_notify_is_complete() {
    let authority = Authority::named("ours");
    let evidence = Evidence::of(
        authority.serve(Ends::Notified),
        Some(authority.pem()),
        false,
    );
    assert_eq!(evidence.valid(), REQUESTS as usize);
    assert!(evidence.rows().iter().all(|row| row.tls_ns.is_some()));
}

#[test]
fn a_stream_that_the_transport_cuts_is_truncated() {
    let authority = Authority::named("ours");
    let evidence = Evidence::of(authority.serve(Ends::Cut), Some(authority.pem()), false);
    assert_eq!(evidence.valid(), 0);
    for row in evidence.rows() {
        assert_eq!(
            (row.terminal, row.phase, row.status),
            (Terminal::Truncated, Phase::AfterFinish, 200)
        );
    }
}

#[test]
fn without_verification_the_evidence_says_so() {
    let authority = Authority::named("ours");
    let evidence = Evidence::of(authority.serve(Ends::Notified), None, true);
    assert_eq!(evidence.valid(), REQUESTS as usize);
    assert_eq!(evidence.benched.tls, Some(Tls::Insecure));
    assert!(evidence.host_fact().starts_with("NOT VERIFIED"));
    let (facts, _) = evidence.wire();
    assert!(facts[0].contains("\"verified\":false"), "{facts:?}");
}

#[test]
fn another_authority_ends_every_request_before_anything_is_sent() {
    let address = Authority::named("ours").serve(Ends::Chunked);
    let evidence = Evidence::of(address, Some(Authority::named("another").pem()), false);
    assert_eq!(evidence.valid(), 0);
    for row in evidence.rows() {
        assert_eq!((row.terminal, row.phase), (Terminal::Tls, Phase::Connect));
        assert_eq!((row.sent_bytes, row.received_bytes), (0, 0));
        assert!(row.connected_ns.is_some() && row.tls_ns.is_none() && row.conn.is_none());
    }
    let (facts, received) = evidence.wire();
    assert!(facts[0].contains("\"failed\""), "{facts:?}");
    assert_eq!(received, "");
}

#[test]
fn what_cannot_verify_is_told_before_anything_is_sent() {
    let folder = tempfile::tempdir().unwrap();
    let address = Authority::named("ours").serve(Ends::Chunked);
    let run = |scheme: &str, ca: &[u8], name: &str| {
        let out = folder.path().join(name);
        measure(scheme, address, Some(ca.to_vec()), false, &out)
            .unwrap_err()
            .code
            .id
    };
    let empty = b"-----BEGIN CERTIFICATE-----\nbm90aGluZw==\n-----END CERTIFICATE-----\n";
    assert_eq!(run("https", b"no certificate", "a"), "E0515");
    assert_eq!(run("https", empty, "b"), "E0912");
    assert_eq!(run("http", &Authority::named("ours").pem(), "c"), "E0515");
}
