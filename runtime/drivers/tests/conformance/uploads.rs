//! Requests that no socket takes at once.

use assize_core::{PeerEnd, Phase, Terminal};
use assize_sim::Act;
use assize_units::DurNs;

use crate::cell::{
    Hearing, KEPT, answering, at_ms, cell, on_all, on_all_with, once, only, request, short,
};
use crate::observed::run;
use crate::subjects;

/// More than both ends of a loopback connection hold.
const LARGE: usize = 16 << 20;

const ECONNRESET: i32 = 104;

#[test]
fn a_peer_that_starts_to_read_late() {
    let script = once([Act::Hold, at_ms(30), Act::Request, Act::Send(short())]);
    let shown = on_all(&cell(2, request(6 << 20)), &[script]);
    assert!(shown.all_complete());
    for observed in &shown.requests {
        assert!(observed.sent_bytes > 6 << 20);
    }
}

#[test]
fn a_peer_that_reads_in_two_goes() {
    let script = once([
        Act::Head,
        Act::Hold,
        at_ms(30),
        Act::Request,
        Act::Send(short()),
    ]);
    assert!(on_all(&cell(1, request(LARGE)), &[script]).all_complete());
}

#[test]
fn a_peer_that_never_reads_runs_into_the_time_limit() {
    let mut spec = cell(1, request(LARGE));
    spec.requests[0].timeout = DurNs::from_ms(500);
    let shown = on_all_with(&spec, &[&[once([Act::Hold])]], Hearing::Timed);
    assert_eq!(only(&shown).terminal, Some(Terminal::RequestTimeout));
    assert_eq!(only(&shown).phase, Some(Phase::Send));
    assert_eq!(only(&shown).sent_bytes, 0);
}

#[test]
fn what_of_a_broken_upload_was_accepted_is_told() {
    for mut subject in subjects() {
        let script = once([Act::Head, Act::Hold, at_ms(30), Act::Reset]);
        let peer = subject.serve(1, vec![script]);
        let mut spec = cell(1, request(LARGE));
        spec.targets = vec![peer.addr().into()];
        let whole = spec.requests[0].wire_len();
        let shown = run(subject.driver.as_mut(), spec);
        peer.stop();
        let exchange = &shown.exchanges[0];
        let name = subject.name();
        assert_eq!(exchange.sent, None, "{name}");
        // Some hundred bytes at least fit into the buffers of any socket; not so the whole. How
        // many is the system's affair, so they are not compared.
        let accepted = 512..whole;
        assert!(
            accepted.contains(&exchange.sent_bytes),
            "{name}: {}",
            exchange.sent_bytes
        );
    }
}

#[test]
fn an_early_answer_to_an_upload_that_is_not_read() {
    let early = b"HTTP/1.1 413 Content Too Large\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";
    let script = once([
        Act::Head,
        Act::Hold,
        Act::Send(early.to_vec()),
        at_ms(100),
        Act::Close,
    ]);
    let shown = on_all_with(&cell(1, request(LARGE)), &[&[script]], Hearing::Timed);
    assert!(shown.all_complete());
    assert_eq!((only(&shown).status, only(&shown).sent_bytes), (413, 0));
}

#[test]
fn an_early_answer_leaves_no_connection_to_use_again() {
    let mut spec = cell(2, request(LARGE));
    spec.connections = KEPT;
    let early = once([Act::Head, Act::Hold, Act::Send(short())]);
    let scripts = [early, answering(short())];
    let shown = on_all_with(&spec, &[&scripts], Hearing::Timed);
    assert!(shown.all_complete());
    // Half a request is on the first one.
    assert_eq!(shown.requests[0].sent_bytes, 0);
    assert_eq!(shown.requests[1].nth, Some(0));
}

#[test]
fn a_reset_of_an_upload_under_way() {
    let script = once([Act::Head, Act::Hold, at_ms(30), Act::Reset]);
    let shown = on_all_with(&cell(1, request(LARGE)), &[&[script]], Hearing::Timed);
    assert_eq!(only(&shown).terminal, Some(Terminal::Reset));
    assert_eq!(only(&shown).phase, Some(Phase::Send));
    assert_eq!(
        (only(&shown).errno, only(&shown).peer_end),
        (ECONNRESET, Some(PeerEnd::Reset))
    );
}
