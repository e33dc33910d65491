//! `https` from end to end: a TLS server in this process, the real driver, the evidence, the reader.
#![allow(
    clippy::disallowed_methods,
    reason = "the system's roots are read by a child whose environment and files the test makes"
)]

mod runs;
mod server;

use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use assize_core::protocol::http1::Limits;
use assize_core::{
    CellSpec, ConnectionPolicy, Driver, LoadSpec, NullSink, ReceiveMode, RequestSpec, RunControl,
    Session, Target,
};
use assize_drivers::{EpollDriver, UringDriver};
use assize_evidence::wire::{Payload, WireReader};
use assize_evidence::{ExchangeRow, FolderStore, HOST_FILE, HostFacts, Phase, Store, Terminal};
use assize_host::{Base, Programs, tls_of_endpoint};
use assize_plan::{Hash, Tls};
use assize_reader::page::render_html;
use assize_reader::report::Report;
use assize_reader::text::render_text;
use assize_units::DurNs;
use assize_verbs::Problem;
use assize_verbs::bench::{Arrivals, BenchOptions, Benched, bench};
use assize_verbs::run::CareRequest;
use assize_verbs::verify;

use server::{Authority, Ends, KEY};

const REQUESTS: u32 = 3;

/// By what the peer is to prove who it is.
#[derive(Clone)]
enum By {
    Ca(Vec<u8>),
    System,
    Nothing,
}

fn measure(
    scheme: &str,
    address: SocketAddr,
    model: Option<&str>,
    by: By,
    out: &Path,
) -> Result<Benched, Problem> {
    let control = RunControl::default();
    let options = BenchOptions {
        url: &format!("{scheme}://localhost:{}", address.port()),
        prompts: b"{\"prompt\":\"one\"}\n".to_vec(),
        model,
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
        insecure: matches!(by, By::Nothing),
        ca: match by {
            By::Ca(pem) => Some(pem),
            By::System | By::Nothing => None,
        },
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
    fn of(address: SocketAddr, by: By) -> Evidence {
        Evidence::of_model(address, Some("some"), by)
    }

    fn of_model(address: SocketAddr, model: Option<&str>, by: By) -> Evidence {
        let folder = tempfile::tempdir().unwrap();
        let out = folder.path().join("it.evidence");
        let benched = measure("https", address, model, by, &out).expect("a bench");
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
    let evidence = Evidence::of(
        authority.serve(Ends::Chunked).address,
        By::Ca(authority.pem()),
    );
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
        authority.serve(Ends::Notified).address,
        By::Ca(authority.pem()),
    );
    assert_eq!(evidence.valid(), REQUESTS as usize);
    assert!(evidence.rows().iter().all(|row| row.tls_ns.is_some()));
}

#[test]
fn a_stream_that_the_transport_cuts_is_truncated() {
    let authority = Authority::named("ours");
    let evidence = Evidence::of(authority.serve(Ends::Cut).address, By::Ca(authority.pem()));
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
    let evidence = Evidence::of(authority.serve(Ends::Notified).address, By::Nothing);
    assert_eq!(evidence.valid(), REQUESTS as usize);
    assert_eq!(evidence.benched.tls, Some(Tls::Insecure));
    assert!(evidence.host_fact().starts_with("NOT VERIFIED"));
    let report = Report::new(&evidence.benched.analysis);
    for text in [render_text(&report, 80, false), render_html(&report)] {
        let flat = text.split_whitespace().collect::<Vec<_>>().join(" ");
        let words = "NOT VERIFIED: whoever answered for endpoint, any certificate was taken";
        assert!(flat.contains(words), "{flat}");
    }
    let (facts, _) = evidence.wire();
    assert!(facts[0].contains("\"verified\":false"), "{facts:?}");
}

#[test]
fn another_authority_ends_every_request_before_anything_is_sent() {
    let address = Authority::named("ours").serve(Ends::Chunked).address;
    let evidence = Evidence::of(address, By::Ca(Authority::named("another").pem()));
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
    let address = Authority::named("ours").serve(Ends::Chunked).address;
    let run = |scheme: &str, ca: &[u8], name: &str| {
        let out = folder.path().join(name);
        measure(scheme, address, Some("some"), By::Ca(ca.to_vec()), &out)
            .unwrap_err()
            .code
            .id
    };
    let empty = b"-----BEGIN CERTIFICATE-----\nbm90aGluZw==\n-----END CERTIFICATE-----\n";
    assert_eq!(run("https", b"no certificate", "a"), "E0515");
    assert_eq!(run("https", empty, "b"), "E0912");
    assert_eq!(run("http", &Authority::named("ours").pem(), "c"), "E0515");
}

#[test]
fn a_verified_endpoint_is_not_called_unverified() {
    let authority = Authority::named("ours");
    let address = authority.serve(Ends::Notified).address;
    let evidence = Evidence::of(address, By::Ca(authority.pem()));
    let report = Report::new(&evidence.benched.analysis);
    assert!(!render_html(&report).contains("NOT VERIFIED"));
}

#[test]
fn the_model_is_asked_by_tls_too() {
    let authority = Authority::named("ours");
    for by in [By::Ca(authority.pem()), By::Nothing] {
        let served = authority.serve(Ends::Chunked);
        let evidence = Evidence::of_model(served.address, None, by);
        assert_eq!(evidence.benched.model, "asked");
        assert_eq!(evidence.valid(), REQUESTS as usize);
        evidence.holds_no_key();
    }
}

/// A server hears the end of each connection of a run, and of the question before it.
#[test]
fn every_connection_is_left_with_close_notify() {
    let authority = Authority::named("ours");
    let served = authority.serve(Ends::Chunked);
    let evidence = Evidence::of_model(served.address, None, By::Ca(authority.pem()));
    assert_eq!(evidence.valid(), REQUESTS as usize);
    let rows = evidence.rows();
    let opened = rows.iter().filter(|row| row.connect_ns.is_some()).count();
    for _ in 0..=opened {
        let parting = served.partings.recv_timeout(Duration::from_mins(1));
        assert_eq!(parting, Ok(Ok(())));
    }
    let (facts, _) = evidence.wire();
    let closed = facts.iter().filter(|text| text.contains("\"close\""));
    assert!(closed.clone().count() == opened);
    for text in closed {
        assert!(text.contains("\"close_notify_offered\":true"), "{text}");
    }
}

/// Both drivers offer the last words; neither waits for anything.
#[test]
fn each_driver_leaves_with_close_notify() {
    let drivers: [(&str, Option<Box<dyn Driver>>); 2] = [
        (
            "epoll",
            EpollDriver::new("a test").ok().map(|it| Box::new(it) as _),
        ),
        (
            "io_uring",
            UringDriver::new("a test").ok().map(|it| Box::new(it) as _),
        ),
    ];
    for (name, driver) in drivers {
        let Some(mut driver) = driver else {
            assert_eq!(name, "io_uring", "epoll is always to be had");
            continue;
        };
        let served = Authority::named("ours").serve(Ends::Chunked);
        let base = Base::parse(&format!("https://localhost:{}", served.address.port())).unwrap();
        let target = tls_of_endpoint(&base, None, true, 0).unwrap().unwrap();
        let head = format!("GET /v1/models HTTP/1.1\r\nauthorization: Bearer {KEY}\r\n\r\n");
        let request = RequestSpec {
            target: 0,
            head: head.into_bytes(),
            body: Arc::from([]),
            timeout: DurNs::from_s(30),
            connect_timeout: None,
            idle_timeout: None,
        };
        let spec = CellSpec {
            requests: vec![request; 4],
            load: LoadSpec::Closed { clients: 2 },
            targets: vec![Target {
                addr: served.address,
                tls: Some(Arc::new(target)),
            }],
            connections: ConnectionPolicy::Preopened { n: 3 },
            drain: DurNs::from_s(30),
            limits: Limits::default(),
            spin: DurNs::ZERO,
            receive: ReceiveMode::Reap,
        };
        let mut session = Session::new(Arc::new(spec));
        let control = RunControl::default();
        driver
            .run_cell(&mut session, &mut NullSink, &control)
            .unwrap();
        for exchange in session.exchanges() {
            assert_eq!(exchange.terminal, Some(assize_core::Terminal::Complete));
            assert!(exchange.tls.is_none() && exchange.reuse.unwrap().idle.is_some());
        }
        for _ in 0..3 {
            let parting = served.partings.recv_timeout(Duration::from_mins(1));
            assert_eq!(parting, Ok(Ok(())), "{name}");
        }
    }
}

#[test]
fn a_forged_record_ends_the_request_as_tls_where_it_came() {
    let authority = Authority::named("ours");
    let address = authority.serve(Ends::Forged).address;
    let evidence = Evidence::of(address, By::Ca(authority.pem()));
    assert_eq!(evidence.valid(), 0);
    for row in evidence.rows() {
        assert_eq!(
            (row.terminal, row.phase, row.status),
            (Terminal::Tls, Phase::Stream, 200)
        );
        assert_eq!((row.events, row.done_events), (1, 0));
    }
    let (facts, received) = evidence.wire();
    assert!(facts.iter().any(|text| text.contains("\"failed\"")));
    assert!(!received.contains("[DONE]"));
}

#[test]
fn a_certificate_that_is_not_valid_is_told_in_words() {
    let authority = Authority::named("ours");
    let other = Authority::named("another");
    let valid = (2020, 2090);
    for (served, by, words) in [
        (
            authority.serve_as("localhost", (2020, 2021), Ends::Chunked),
            &authority,
            "certificate expired",
        ),
        (
            authority.serve_as("localhost", (2080, 2090), Ends::Chunked),
            &authority,
            "certificate not valid yet",
        ),
        (
            authority.serve_as("elsewhere.test", valid, Ends::Chunked),
            &authority,
            "certificate not valid for name \"localhost\"",
        ),
        (authority.serve(Ends::Chunked), &other, "UnknownIssuer"),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let out = folder.path().join("it.evidence");
        let by = By::Ca(by.pem());
        // Asked for its models: told at once.
        let problem = measure("https", served.address, None, by.clone(), &out).unwrap_err();
        assert_eq!(problem.code.id, "E0912");
        assert!(problem.message.contains(words), "{}", problem.message);
        // In a run: data.
        let evidence = Evidence::of(served.address, by);
        assert_eq!(evidence.valid(), 0);
        let (facts, _) = evidence.wire();
        let told = facts.iter().filter(|text| {
            let facts: serde_json::Value = serde_json::from_str(text).unwrap();
            facts["error"]
                .as_str()
                .is_some_and(|error| error.contains(words))
        });
        assert_eq!(told.count(), REQUESTS as usize, "{facts:?}");
    }
}

/// The system's roots are read in a process of its own, whose environment names them.
#[test]
fn the_roots_of_the_system_verify() {
    let authority = Authority::named("ours");
    let folder = tempfile::tempdir().unwrap();
    let roots = folder.path().join("roots.pem");
    std::fs::write(&roots, authority.pem()).unwrap();
    for (address, outcome) in [
        (authority.serve(Ends::Chunked).address, "asked 3"),
        (
            Authority::named("another").serve(Ends::Chunked).address,
            "E0912",
        ),
    ] {
        let child = Command::new(std::env::current_exe().unwrap())
            .args([
                "--exact",
                "with_the_roots_of_the_system",
                "--ignored",
                "--nocapture",
            ])
            .env("SSL_CERT_FILE", &roots)
            .env_remove("SSL_CERT_DIR")
            .env(ADDRESS, address.to_string())
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&child.stdout);
        assert!(child.status.success(), "{said}");
        assert!(said.contains(&format!("outcome: {outcome}\n")), "{said}");
    }
}

/// Where the child finds its server.
const ADDRESS: &str = "ASSIZE_TEST_TLS_ADDRESS";

#[test]
#[ignore = "started by another test, in an environment that names the roots"]
fn with_the_roots_of_the_system() {
    let address = std::env::var(ADDRESS).unwrap().parse().unwrap();
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("it.evidence");
    match measure("https", address, None, By::System, &out) {
        Err(problem) => println!("outcome: {}", problem.code.id),
        Ok(benched) => {
            let fact = benched.tls;
            assert!(matches!(fact, Some(Tls::Roots(_))), "{fact:?}");
            let summaries = benched.analysis.cells.iter();
            let valid = summaries.filter_map(|cell| cell.summary.as_ref());
            let valid: usize = valid.map(|summary| summary.valid).sum();
            println!("outcome: {} {valid}", benched.model);
        }
    }
}
