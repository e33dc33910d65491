//! A whole plan in virtual time: from a bundle built here to a sealed evidence in memory.

mod planned;

use assize_core::RunControl;
use assize_evidence::wire::{Payload, WireEnd, WireReader};
use assize_evidence::{
    ExchangeRow, HostFacts, JournalEvent, JournalReader, MemoryStore, SealError, Store, Terminal,
    check_seal,
};
use assize_host::{
    Backpressure, Execution, RunIdentity, RunOutcome, Secrets, VirtualWall, execute,
};
use assize_plan::{Bundle, Cell, Hash, Load};
use assize_sim::{VirtualDriver, VirtualLink, VirtualNet};
use planned::{InProcess, Objects, bundle_of, cell};

fn bundle() -> Bundle {
    let mut objects = Objects::default();
    let closed = Load::Closed {
        trace: objects.trace(None, 6),
        clients: 2,
    };
    let open = Load::Open {
        trace: objects.trace(Some(&[0, 5_000_000, 5_000_000]), 3),
        cap: None,
    };
    let warmup = Load::Closed {
        trace: objects.trace(None, 1),
        clients: 1,
    };
    let warmup = Cell {
        id_prefix: "warmup.w-7".into(),
        ..cell("warmup", warmup, 1)
    };
    let cells = vec![cell("closed", closed, 6), cell("open", open, 3)];
    bundle_of(objects, 4, Some(warmup), cells)
}

fn run(store: &MemoryStore) -> RunOutcome {
    run_with(store, None)
}

fn run_with(store: &MemoryStore, calibration: Option<&[u8]>) -> RunOutcome {
    let net = VirtualNet::new(VirtualLink::default());
    let mut driver = VirtualDriver::on(net.clone());
    let execution = Execution {
        bundle: &bundle(),
        driver: &mut driver,
        servers: &mut InProcess::on(net),
        store,
        wall: &VirtualWall,
        secrets: &Secrets::none(),
        control: &RunControl::default(),
        backpressure: Backpressure::Wait,
        facts: HostFacts::default(),
        calibration,
        identity: RunIdentity {
            run_id: "test".into(),
            tool: "test".into(),
            boot_id: "virtual".into(),
            consent: "in process".into(),
        },
    };
    execute(execution, &mut |_| {})
}

#[test]
fn a_calibration_goes_into_the_evidence_byte_for_byte() {
    let started = |store: &MemoryStore| {
        let journal = store.read("journal.jsonl", 1 << 20).unwrap();
        let line = JournalReader::parse(&journal).unwrap().lines.remove(0);
        serde_json::to_value(line.event).unwrap()
    };
    // Whatever its bytes are: what they mean is no matter of the runtime.
    let bytes = b" {\xff \n";
    let store = MemoryStore::new();
    let outcome = run_with(&store, Some(bytes));
    assert_eq!(store.read("calibration.json", 100).unwrap(), bytes);
    let hash = serde_json::to_value(Hash::of(bytes)).unwrap();
    assert_eq!(started(&store)["calibration"], hash);
    assert_eq!(check_seal(&store).unwrap(), outcome.seal);
    store.replace("calibration.json", b"other".to_vec());
    assert!(check_seal(&store).is_err());

    let without = MemoryStore::new();
    run(&without);
    assert!(started(&without).get("calibration").is_none());
    assert!(
        !without
            .list()
            .unwrap()
            .contains(&"calibration.json".to_owned())
    );
}

#[test]
fn a_plan_runs_in_virtual_time_to_a_sealed_evidence() {
    let store = MemoryStore::new();
    let outcome = run(&store);
    assert!(outcome.is_complete(), "{outcome:?}");
    assert_eq!(check_seal(&store).unwrap(), outcome.seal);

    let journal = JournalReader::parse(&store.read("journal.jsonl", 1 << 20).unwrap()).unwrap();
    let kind = |event: &JournalEvent| {
        serde_json::to_value(event).unwrap()["kind"]
            .as_str()
            .unwrap()
            .to_owned()
    };
    let kinds: Vec<String> = journal.lines.iter().map(|line| kind(&line.event)).collect();
    let due = "run_started unit_started server_starting server_ready warmup_started warmup_ended settled \
        cell_started cell_ended settled cell_started cell_ended unit_ended server_stopped sealed";
    assert_eq!(kinds.join(" "), due);
    assert!(
        matches!(&journal.lines[0].event, JournalEvent::RunStarted { driver, .. } if driver == "virtual")
    );

    for (cell, requests) in [("warmup", 1), ("closed", 6), ("open", 3)] {
        let folder = format!("confirmation/00/only/{cell}");
        let text = store
            .read(&format!("{folder}/exchanges.jsonl"), 1 << 20)
            .unwrap();
        let rows = ExchangeRow::parse_all(&text).unwrap();
        assert_eq!(rows.len(), requests);
        for row in &rows {
            assert_eq!(
                (row.terminal, row.status, row.done_events),
                (Terminal::Complete, 200, 1),
                "{row:?}"
            );
            assert!(
                row.admitted_ns <= row.sent_ns
                    && row.sent_ns <= row.first_event_ns
                    && row.done_ns <= row.end_ns
            );
        }
        let mut reader =
            WireReader::new(store.open(&format!("{folder}/wire.log")).unwrap()).unwrap();
        let (mut received, mut ended) = (0, 0);
        let mut take = |payload: Payload<'_>| match payload {
            Payload::Recv(bytes) => received += bytes.len() as u64,
            Payload::Terminal { .. } => ended += 1,
            _ => {}
        };
        while reader.next_segment(|record| take(record.payload)).unwrap() {}
        assert_eq!(reader.end(), Some(WireEnd::Clean));
        assert_eq!(
            (received, ended),
            (rows.iter().map(|row| row.received_bytes).sum(), requests)
        );
    }
}

#[test]
fn the_same_plan_gives_the_same_evidence() {
    let (first, second) = (MemoryStore::new(), MemoryStore::new());
    assert_eq!(
        run(&first).seal.unwrap().hash,
        run(&second).seal.unwrap().hash
    );
}

#[test]
fn a_flipped_byte_is_found_wherever_it_is() {
    let store = MemoryStore::new();
    run(&store);
    for name in store.list().unwrap() {
        let bytes = store.read(&name, 1 << 24).unwrap();
        for place in [0, bytes.len() / 2, bytes.len().saturating_sub(1)] {
            let tampered = store.copy();
            let mut changed = bytes.clone();
            let Some(byte) = changed.get_mut(place) else {
                continue;
            };
            *byte ^= 1;
            tampered.replace(&name, changed);
            match check_seal(&tampered) {
                Err(SealError::Differs { file, .. }) if name != "SHA256SUMS" => {
                    assert_eq!(file, name);
                }
                Err(_) if name == "SHA256SUMS" => {}
                other => panic!("{name}, byte {place}: {other:?}"),
            }
        }
    }
}
