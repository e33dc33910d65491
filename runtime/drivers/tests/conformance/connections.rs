//! Which connection carries which request.

use std::net::{Ipv6Addr, TcpListener};

use assize_core::{ConnectionPolicy, LoadSpec, PeerEnd, Terminal};
use assize_sim::Act;
use assize_units::{DurNs, OffsetNs};

use crate::cell::{
    Hearing, KEPT, agree, answering, cell, on_all, on_all_with, once, open, request, short, stream,
};
use crate::observed::run;
use crate::subjects;

#[test]
fn a_connection_is_used_again() {
    let mut spec = cell(5, request(10));
    spec.connections = KEPT;
    let shown = on_all(&spec, &[answering(short())]);
    let nth: Vec<_> = shown.requests.iter().map(|request| request.nth).collect();
    assert_eq!(nth, [0, 1, 2, 3, 4].map(Some));
    assert_eq!(shown.connections.len(), 1);
}

#[test]
fn a_connection_that_was_idle_too_long_is_not_used_again() {
    let mut spec = cell(2, request(10));
    spec.load = open(&[0, 300]);
    spec.connections = ConnectionPolicy::Reuse {
        idle: DurNs::from_ms(1),
    };
    let shown = on_all(&spec, &[answering(short())]);
    assert!(shown.all_complete());
    assert_eq!(shown.requests[1].nth, Some(0));
    assert_eq!(shown.connections[0].last().unwrap(), "- Close");
}

#[test]
fn an_end_while_idle_is_seen_before_the_next_use() {
    let mut spec = cell(2, request(10));
    spec.load = open(&[0, 300]);
    spec.connections = KEPT;
    let ends = once([Act::Request, Act::Send(short()), Act::Close]);
    let shown = on_all(&spec, &[ends, answering(short())]);
    assert!(shown.all_complete());
    assert_eq!(shown.requests[1].nth, Some(0));
    assert_eq!(shown.connections[0][6..], ["- Eof", "- Close"]);
}

/// The next request is sent before anybody could know of the end: it is lost, and its evidence says
/// that it was the second on its connection.
#[test]
fn an_end_at_the_heels_of_an_answer_loses_the_next_request() {
    let mut spec = cell(3, request(10));
    spec.connections = KEPT;
    let ends = once([Act::Request, Act::Send(short()), Act::Close]);
    let shown = on_all(&spec, &[ends, answering(short())]);
    let lost = &shown.requests[1];
    assert_eq!(lost.terminal, Some(Terminal::Disconnected));
    assert_eq!((lost.nth, lost.peer_end), (Some(1), Some(PeerEnd::Eof)));
    assert_eq!(shown.requests[2].terminal, Some(Terminal::Complete));
}

#[test]
fn connections_that_were_opened_before() {
    let mut spec = cell(4, request(10));
    spec.connections = ConnectionPolicy::Preopened { n: 2 };
    spec.load = LoadSpec::Closed { clients: 2 };
    for mut subject in subjects() {
        let mut spec = spec.clone();
        let peer = subject.serve(1, vec![answering(short())]);
        spec.targets = vec![peer.addr().into()];
        let shown = run(subject.driver.as_mut(), spec);
        // Which of the two serves the later ones depends on time.
        assert!(shown.all_complete());
        assert_eq!(shown.connected(), 2);
        for entries in &shown.connections {
            assert_eq!(entries[..2], ["- Connect", "- Connected"]);
        }
    }
}

#[test]
fn a_peer_of_ipv6() {
    if let Err(error) = TcpListener::bind((Ipv6Addr::LOCALHOST, 0)) {
        eprintln!("skipped: no IPv6 loopback interface: {error}");
        return;
    }
    let shown = agree(|subject| {
        let scripts = vec![answering(stream(3))];
        let mut peer = subject.serve_at(Ipv6Addr::LOCALHOST.into(), 1, scripts);
        let mut spec = cell(2, request(10));
        spec.targets = vec![peer.addr().into()];
        let shown = run(subject.driver.as_mut(), spec);
        let heard = peer.heard(2).into_iter().map(|heard| heard.bytes);
        (shown, heard.collect())
    });
    assert!(shown.all_complete());
}

#[test]
fn two_targets_keep_their_connections_apart() {
    let mut spec = cell(6, request(10));
    spec.connections = KEPT;
    for (place, request) in (0..).zip(&mut spec.requests) {
        request.target = place % 2;
    }
    let peers = [&[answering(short())][..], &[answering(stream(3))]];
    let shown = on_all_with(&spec, &peers, Hearing::Timed);
    assert!(shown.all_complete());
    let events: Vec<u32> = shown
        .requests
        .iter()
        .map(|observed| observed.events)
        .collect();
    assert_eq!(events, [0, 3, 0, 3, 0, 3]);
    assert_eq!(shown.connections.len(), 2);
}

#[test]
fn a_cap_of_one_lets_an_open_load_wait() {
    let mut spec = cell(10, request(10));
    spec.load = LoadSpec::Open {
        offsets: vec![OffsetNs(0); 10],
        cap: Some(1),
    };
    spec.connections = KEPT;
    let shown = on_all(&spec, &[answering(stream(2))]);
    assert!(shown.all_complete());
    assert_eq!((shown.most_in_flight, shown.connections.len()), (1, 1));
}
