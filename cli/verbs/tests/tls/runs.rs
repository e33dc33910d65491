//! Runs of plans over TLS, with connections that no bench asks for.

use assize_core::RunControl;
use assize_evidence::wire::{Payload, WireReader};
use assize_evidence::{ExchangeRow, FolderStore, Store, Terminal};
use assize_host::Programs;
use assize_plan::{Bundle, Connections, Hash};
use assize_verbs::run::{CareRequest, RunOptions, run};
use assize_verbs::study::{StudyText, compile_text};
use assize_verbs::verify;

use super::server::{Authority, Ends, KEY};

const REQUESTS: u32 = 5;

/// A study of one closed cell on one endpoint, its connections opened in advance.
fn plan(port: u16, pem: Vec<u8>, driver: &str, n: u32) -> Bundle {
    let text = format!(
        "assize: 1\nstudy: advance\ndriver: {driver}\n\
         prompts:\n  panel: {{ file: prompts.jsonl }}\n\
         requests:\n  ask: {{ api: openai/completions, prompt: panel, output: at_most(4), timeout: 30s }}\n\
         arms:\n  theirs: {{ endpoint: \"https://localhost:{port}/v1\", model: m, key: SOME_KEY, ca: ca.pem }}\n\
         drain: 30s\n\
         cells:\n  load: {{ load: closed(2), requests: {REQUESTS} }}\n"
    );
    let compiled = compile_text(&StudyText {
        name: "advance",
        text: &text,
        files: vec![
            (
                "prompts.jsonl".to_owned(),
                b"{\"prompt\":\"one\"}\n".to_vec(),
            ),
            ("ca.pem".to_owned(), pem),
        ],
    });
    let mut bundle = compiled.bundle.expect("a plan");
    // The language has no word for it: the plan does.
    for cell in bundle.plan.units.iter_mut().flat_map(|it| &mut it.cells) {
        cell.connections = Connections::Preopened { n };
    }
    bundle.hash = Hash::of(&bundle.plan.to_canonical().unwrap());
    bundle.freeze.plan = bundle.hash;
    bundle
}

#[test]
fn handshakes_in_advance_are_done_before_the_origin_and_verified() {
    for driver in ["epoll", "any"] {
        let authority = Authority::named("ours");
        let served = authority.serve(Ends::Chunked);
        let bundle = plan(served.address.port(), authority.pem(), driver, 2);
        let folder = tempfile::tempdir().unwrap();
        let out = folder.path().join("it.evidence");
        let options = RunOptions {
            out: &out,
            approve: None,
            ask: None,
            calibration: None,
            programs: Programs {
                keeper: "unused".into(),
                keeper_arguments: vec![],
                sim: "unused".into(),
            },
            environment: &|name| (name == "SOME_KEY").then(|| KEY.to_owned()),
            care: CareRequest::default(),
            control: &RunControl::default(),
        };
        let ran = run(&bundle, options, &mut |_| {}).expect("a run");
        assert!(ran.outcome.is_complete());
        assert!(verify::verify(&out, None).unwrap().verified.is_complete());

        let store = FolderStore::open_root(&out).unwrap();
        let names = store.list().unwrap();
        let file = |end: &str| {
            let name = names.iter().find(|name| name.ends_with(end)).unwrap();
            store.read(name, 1 << 20).unwrap()
        };
        let (handshakes, origin) = handshakes(&file("wire.log"));
        assert_eq!(handshakes.len(), 2, "{driver}");
        assert!(handshakes.iter().all(|at| *at < origin));
        let rows = ExchangeRow::parse_all(&file("exchanges.jsonl")).unwrap();
        assert_eq!(rows.len(), REQUESTS as usize);
        for (place, row) in rows.iter().enumerate() {
            assert_eq!(row.terminal, Terminal::Complete);
            assert_eq!((row.connect_ns, row.tls_ns), (None, None));
            let conn = row.conn.unwrap();
            let idle = conn.idle_ns.expect("it stood before");
            if place < 2 {
                // Idle since its handshake.
                let since = row.admitted_ns.unwrap().0 - idle;
                assert!(
                    handshakes.contains(&since),
                    "{driver}: {since} {handshakes:?}"
                );
                assert_eq!(conn.nth, 0);
            }
        }
    }
}

/// When the handshakes for no request were done, and the cell's origin.
fn handshakes(log: &[u8]) -> (Vec<u64>, u64) {
    let mut reader = WireReader::new(log).unwrap();
    let (mut done, mut origin) = (Vec::new(), 0);
    while reader
        .next_segment(|record| match record.payload {
            Payload::Tls { facts } if facts.contains("\"handshake\"") => {
                assert_eq!(record.head.req, None);
                done.push(record.head.t.0);
            }
            Payload::CellStart { origin_ns } => origin = origin_ns,
            _ => {}
        })
        .unwrap()
    {}
    (done, origin)
}
