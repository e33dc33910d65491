//! What a peer answers, and how it ends.

use assize_core::{PeerEnd, Phase, Terminal};
use assize_sim::Act;
use assize_units::DurNs;

use crate::cell::{
    KEPT, agree, answering, at_ms, cell, on_all, once, only, open, request, short, stream,
};
use crate::observed::run;

const ECONNRESET: i32 = 104;
const ECONNREFUSED: i32 = 111;

#[test]
fn a_stream_in_one_piece() {
    let shown = on_all(&cell(3, request(100)), &[answering(stream(5))]);
    for observed in &shown.requests {
        assert_eq!(observed.terminal, Some(Terminal::Complete));
        assert_eq!((observed.events, observed.done_events), (5, 1));
        assert_eq!(
            observed.order,
            [
                "Dispatch",
                "Admit",
                "Connect",
                "Connected",
                "SendStart",
                "Sent",
                "Received",
                "Terminal Complete"
            ]
        );
    }
    assert_eq!(shown.bytes, vec![stream(5); 3]);
    assert_eq!(shown.others, ["CellStart", "CellEnd"]);
    let first = [
        "0 Connect",
        "0 Connected",
        "0 SendStart",
        "0 Sent",
        "0 Received",
        "0 Terminal Complete",
        "- Close",
    ];
    assert_eq!(shown.connections[0], first);
}

#[test]
fn a_stream_byte_by_byte() {
    let mut acts = vec![Act::Request];
    for (place, byte) in (0..).zip(stream(3)) {
        acts.extend([Act::At(DurNs::from_us(50 * place)), Act::Send(vec![byte])]);
    }
    let shown = on_all(&cell(1, request(100)), &[once(acts)]);
    assert_eq!(only(&shown).terminal, Some(Terminal::Complete));
    assert_eq!(only(&shown).phase, Some(Phase::Ended));
    assert_eq!(only(&shown).events, 3);
    assert_eq!(shown.bytes[0], stream(3));
}

#[test]
fn many_events_in_one_segment() {
    let shown = on_all(&cell(1, request(100)), &[answering(stream(50))]);
    assert!(shown.all_complete());
    assert_eq!((only(&shown).events, only(&shown).done_events), (50, 1));
    // One receive completed them, and all of them have its time.
    assert_eq!(shown.exchanges[0].reads, 1);
    assert_eq!(shown.exchanges[0].first_event, shown.exchanges[0].done);
}

#[test]
fn a_stream_larger_than_any_buffer() {
    let shown = on_all(&cell(1, request(100)), &[answering(stream(60_000))]);
    assert!(shown.all_complete());
    assert_eq!(only(&shown).events, 60_000);
    assert!(shown.bytes[0] == stream(60_000));
}

#[test]
fn a_slow_head() {
    let (head, rest) = (stream(2)[..20].to_vec(), stream(2)[20..].to_vec());
    let script = once([
        Act::Request,
        at_ms(30),
        Act::Send(head),
        at_ms(60),
        Act::Send(rest),
    ]);
    assert!(on_all(&cell(1, request(0)), &[script]).all_complete());
}

#[test]
fn an_answer_and_more_behind_it() {
    let mut spec = cell(2, request(10));
    spec.connections = KEPT;
    let shown = on_all(&spec, &[answering([short(), short()].concat())]);
    for observed in &shown.requests {
        // What follows an answer is nobody's, and its connection is not used again.
        assert_eq!(observed.terminal, Some(Terminal::Complete));
        assert_eq!(observed.surplus_bytes, short().len() as u64);
        assert_eq!(observed.nth, Some(0));
    }
}

#[test]
fn an_end_before_the_head() {
    let shown = on_all(&cell(2, request(10)), &[once([Act::Request, Act::Close])]);
    for observed in &shown.requests {
        assert_eq!(observed.terminal, Some(Terminal::Disconnected));
        assert_eq!(observed.phase, Some(Phase::BeforeHead));
        assert_eq!(observed.peer_end, Some(PeerEnd::Eof));
    }
}

#[test]
fn an_end_before_the_request() {
    let shown = on_all(&cell(2, request(10)), &[once([Act::Close])]);
    for observed in &shown.requests {
        assert_eq!(observed.terminal, Some(Terminal::Disconnected));
        assert_eq!(observed.order[4..6], ["SendStart", "Sent"]);
        assert_eq!(observed.peer_end, Some(PeerEnd::Eof));
    }
}

#[test]
fn an_end_inside_the_body() {
    let cut = stream(9)[..stream(9).len() - 30].to_vec();
    let script = once([Act::Request, Act::Send(cut), Act::Close]);
    let shown = on_all(&cell(1, request(10)), &[script]);
    assert_eq!(only(&shown).terminal, Some(Terminal::Truncated));
    assert_eq!(only(&shown).status, 200);
}

#[test]
fn a_body_that_the_end_delimits() {
    let answer = b"HTTP/1.1 200 OK\r\n\r\nuntil the end".to_vec();
    let script = once([Act::Request, Act::Send(answer), Act::Close]);
    let shown = on_all(&cell(2, request(10)), &[script]);
    assert!(shown.all_complete());
    assert_eq!(shown.requests[1].body_bytes, 13);
}

#[test]
fn a_reset_before_the_head() {
    let shown = on_all(&cell(2, request(10)), &[once([Act::Request, Act::Reset])]);
    for observed in &shown.requests {
        assert_eq!(observed.terminal, Some(Terminal::Reset));
        assert_eq!(
            (observed.errno, observed.peer_end),
            (ECONNRESET, Some(PeerEnd::Reset))
        );
    }
}

#[test]
fn a_reset_inside_the_body() {
    for pause in [0, 50] {
        let cut = stream(9)[..150].to_vec();
        let script = once([Act::Request, Act::Send(cut), at_ms(pause), Act::Reset]);
        let shown = on_all(&cell(1, request(10)), &[script]);
        assert_eq!(only(&shown).terminal, Some(Terminal::Reset));
        assert_eq!(only(&shown).phase, Some(Phase::Stream));
        // Also where it comes at their heels, a reset takes no bytes back.
        assert_eq!(shown.bytes[0], stream(9)[..150]);
    }
}

#[test]
fn a_peer_that_hangs_runs_into_the_time_limit() {
    let hang = [once([Act::Request])];
    let mut spec = cell(2, request(10));
    spec.requests[0].timeout = DurNs::from_ms(300);
    spec.requests[1].idle_timeout = Some(DurNs::from_ms(300));
    let shown = on_all(&spec, &hang);
    assert_eq!(
        shown.terminals(),
        [Terminal::RequestTimeout, Terminal::IdleTimeout]
    );
    assert_eq!(shown.requests[0].phase, Some(Phase::BeforeHead));

    let mut spec = cell(1, request(10));
    spec.drain = DurNs::from_ms(300);
    let shown = on_all(&spec, &hang);
    assert_eq!(only(&shown).terminal, Some(Terminal::DrainTimeout));
}

#[test]
fn a_stream_that_falls_silent_runs_into_the_idle_limit() {
    let mut spec = cell(1, request(10));
    spec.requests[0].idle_timeout = Some(DurNs::from_ms(500));
    let whole = stream(9);
    let script = once([Act::Request, Act::Send(whole[..300].to_vec())]);
    let shown = on_all(&spec, &[script]);
    assert_eq!(only(&shown).terminal, Some(Terminal::IdleTimeout));
    assert_eq!(only(&shown).phase, Some(Phase::Stream));
    assert_eq!(shown.bytes[0], whole[..300]);
}

#[test]
fn a_port_where_nobody_listens() {
    let shown = agree(|subject| {
        let mut spec = cell(2, request(10));
        spec.targets = vec![subject.refusing().into()];
        (run(subject.driver.as_mut(), spec), Vec::new())
    });
    for observed in &shown.requests {
        assert_eq!(observed.terminal, Some(Terminal::Refused));
        assert_eq!(
            (observed.phase, observed.errno),
            (Some(Phase::Connect), ECONNREFUSED)
        );
    }
}

#[test]
fn bytes_that_nobody_asked_for_end_an_idle_connection() {
    let mut spec = cell(2, request(10));
    spec.load = open(&[0, 600]);
    spec.connections = KEPT;
    let shown = on_all(
        &spec,
        &[
            once([
                Act::Request,
                Act::Send(short()),
                at_ms(20),
                Act::Send(short()),
            ]),
            answering(short()),
        ],
    );
    assert!(shown.all_complete());
    assert_eq!(shown.requests[1].nth, Some(0));
    assert_eq!(shown.connections[0][6..], ["- Received", "- Close"]);
}
