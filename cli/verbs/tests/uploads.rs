//! A peer that breaks off while it is sent to: what of the request was accepted is in the evidence.

use std::io::Read;
use std::net::TcpListener;

use assize_core::RunControl;
use assize_evidence::{ExchangeRow, FolderStore, Phase, Store, Terminal};
use assize_host::Programs;
use assize_units::DurNs;
use assize_verbs::bench::{Arrivals, BenchOptions, bench};
use assize_verbs::run::CareRequest;
use assize_verbs::verify;

/// More than both ends of a loopback connection hold.
const PROMPT_BYTES: usize = 16 << 20;

#[test]
fn a_reset_upload_is_verified_with_the_bytes_that_were_accepted() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for socket in listener.incoming() {
            let mut some = [0; 100];
            socket.unwrap().read_exact(&mut some).unwrap();
            // Closing with bytes unread resets.
        }
    });
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("it.evidence");
    let control = RunControl::default();
    let prompt = "x".repeat(PROMPT_BYTES);
    let options = BenchOptions {
        url: &format!("http://{address}"),
        prompts: format!("{{\"prompt\":\"{prompt}\"}}\n").into_bytes(),
        model: Some("some"),
        api: None,
        concurrency: Some(1),
        rate: None,
        arrivals: Arrivals::Periodic,
        requests: 2,
        warmup: 0,
        max_tokens: 4,
        temperature: "0",
        timeout: DurNs::from_s(30),
        seed: 0,
        key_env: None,
        ca: None,
        insecure: false,
        environment: &|_| None,
        out: Some(out.clone()),
        programs: Programs {
            keeper: "unused".into(),
            keeper_arguments: vec![],
            sim: "unused".into(),
        },
        care: CareRequest::default(),
        control: &control,
    };
    bench(options, &mut |_| {}).expect("a bench");
    verify::verify(&out, None).expect("the evidence holds");
    let store = FolderStore::open_root(&out).unwrap();
    let names = store.list().unwrap();
    let name = names.iter().find(|name| name.ends_with("exchanges.jsonl"));
    let rows = ExchangeRow::parse_all(&store.read(name.unwrap(), 1 << 20).unwrap()).unwrap();
    assert_eq!(rows.len(), 2);
    for row in rows {
        assert_eq!((row.terminal, row.phase), (Terminal::Reset, Phase::Send));
        assert_eq!(row.sent_ns, None);
        assert!(
            (100..PROMPT_BYTES as u64).contains(&row.sent_bytes),
            "{}",
            row.sent_bytes
        );
    }
}
