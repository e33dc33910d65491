//! Many streams at once, and a burst that is stamped one by one.

use assize_core::ConnectionPolicy;
use assize_sim::Act;
use assize_units::MonoNs;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::cell::{answering, cell, on_all, once, open, request, short, stream};
use crate::observed::{Shown, run};
use crate::peer::Heard;
use crate::subjects;

const STREAMS: usize = 1_024;

/// Descriptors of a cell and its peer, and of what other tests do meanwhile.
const DESCRIPTORS: u64 = 4 * STREAMS as u64;

#[test]
fn streams_by_the_thousand_are_in_flight_at_once() {
    if let Err(limit) = raise_descriptors() {
        eprintln!("skipped: {DESCRIPTORS} descriptors are needed, the limit is {limit}");
        return;
    }
    let mut spec = cell(STREAMS, request(200));
    spec.load = open(&[0; STREAMS]);
    let answer = stream(20);
    let (begun, rest) = answer.split_at(answer.len() / 4);
    let (more, last) = rest.split_at(rest.len() / 2);
    // No stream goes on before all have begun.
    let script = once([
        Act::Request,
        Act::Send(begun.to_vec()),
        Act::Meet(STREAMS),
        Act::Send(more.to_vec()),
        Act::Send(last.to_vec()),
    ]);
    let shown = on_all(&spec, &[script]);
    assert!(shown.all_complete());
    assert_eq!(shown.most_in_flight, STREAMS);
    assert_eq!(shown.connections.len(), STREAMS);
    for (observed, bytes) in shown.requests.iter().zip(&shown.bytes) {
        assert_eq!((observed.events, observed.done_events), (20, 1));
        assert!(*bytes == answer);
    }
}

const BURST: usize = 256;

#[test]
fn each_of_a_burst_is_stamped_as_it_is_sent() {
    for connections in [
        ConnectionPolicy::Fresh,
        ConnectionPolicy::Preopened { n: BURST as u32 },
    ] {
        let mut spec = cell(BURST, request(NAME_BYTES));
        for (req, request) in spec.requests.iter_mut().enumerate() {
            request.body = name(req).into();
        }
        spec.load = open(&[0; BURST]);
        spec.connections = connections;
        for mut subject in subjects() {
            let mut spec = spec.clone();
            let mut peer = subject.serve(1, vec![answering(short())]);
            spec.targets = vec![peer.addr().into()];
            let shown = run(subject.driver.as_mut(), spec);
            let heard = peer.heard(BURST);
            assert!(shown.all_complete());
            check_heard_after_start(&shown, &heard);
            if subject.is_virtual() {
                // Sending takes no time there: the stamps of a burst fall together.
                continue;
            }
            let mut stamps = sends(&shown);
            stamps.sort_unstable();
            let stamps = stamps.concat();
            // One is sent when the one before it was: no two stamps are the same.
            assert!(stamps.is_sorted_by(|a, b| a < b), "{}", subject.name());
        }
    }
}

const NAME_BYTES: usize = 200;

/// A body that only one request has.
fn name(req: usize) -> Vec<u8> {
    format!("{req:>NAME_BYTES$}").into_bytes()
}

/// Start and end of each send.
fn sends(shown: &Shown) -> Vec<[MonoNs; 2]> {
    let stamps = shown.exchanges.iter().map(|exchange| {
        let stamps = [exchange.send_start, exchange.sent];
        stamps.map(|stamp| stamp.expect("sent"))
    });
    stamps.collect()
}

/// No byte reaches the peer before its stamp.
fn check_heard_after_start(shown: &Shown, heard: &[Heard]) {
    assert_eq!(heard.len(), BURST);
    for (req, [started, _]) in sends(shown).into_iter().enumerate() {
        let arrived = heard.iter().find(|heard| heard.bytes.ends_with(&name(req)));
        let arrived = arrived.and_then(|heard| heard.first);
        assert!(
            arrived.expect("every request arrives") > started,
            "request {req}"
        );
    }
}

/// Raises the limit of open descriptors as far as it takes; otherwise says how far it goes.
fn raise_descriptors() -> Result<(), u64> {
    let limit = getrlimit(Resource::Nofile);
    let hard = limit.maximum.unwrap_or(u64::MAX);
    if hard < DESCRIPTORS {
        return Err(hard);
    }
    if limit.current.is_some_and(|current| current < DESCRIPTORS) {
        let raised = Rlimit {
            current: Some(DESCRIPTORS),
            ..limit
        };
        setrlimit(Resource::Nofile, raised).map_err(|_| limit.current.unwrap_or(hard))?;
    }
    Ok(())
}
