//! The cases. Each says what every request must come to, and all drivers must agree on the rest.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use assize_core::protocol::http1::Limits;
use assize_core::{
    CellSpec, ConnectionPolicy, LoadSpec, PeerEnd, Phase, ReceiveMode, RequestSpec, RunControl,
    Terminal,
};
use assize_drivers::UringDriver;
use assize_units::{DurNs, OffsetNs};

use crate::drivers;
use crate::observed::{Shown, run, run_with};
use crate::peer::{Act, Script, refusing, serve};

const ECONNRESET: i32 = 104;
const ECONNREFUSED: i32 = 111;

/// A whole streamed answer of `events` events, `[DONE]` among them.
fn stream(events: usize) -> Vec<u8> {
    let mut body = String::new();
    for event in 1..events {
        body.push_str(&format!(
            "data: {{\"choices\":[{{\"index\":0,\"text\":\" t{event}\"}}]}}\n\n"
        ));
    }
    body.push_str("data: [DONE]\n\n");
    let mut answer = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\
        transfer-encoding: chunked\r\n\r\n"
        .to_vec();
    for event in body.split_inclusive("\n\n") {
        answer.extend(format!("{:x}\r\n{event}\r\n", event.len()).into_bytes());
    }
    answer.extend(b"0\r\n\r\n");
    answer
}

/// A trivial answer that keeps the connection.
fn short() -> Vec<u8> {
    b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok".to_vec()
}

fn request(body: usize) -> RequestSpec {
    RequestSpec {
        target: 0,
        head: format!(
            "POST /v1/completions HTTP/1.1\r\nhost: peer\r\ncontent-length: {body}\r\n\r\n"
        )
        .into_bytes(),
        body: vec![b'x'; body].into(),
        timeout: DurNs::from_s(20),
        connect_timeout: None,
        idle_timeout: None,
    }
}

/// A cell of `requests` equal requests, one after the other.
fn cell(requests: usize, request: RequestSpec) -> CellSpec {
    CellSpec {
        requests: vec![request; requests],
        load: LoadSpec::Closed { clients: 1 },
        targets: Vec::new(),
        connections: ConnectionPolicy::Fresh,
        drain: DurNs::from_s(20),
        limits: Limits::default(),
        spin: DurNs::from_us(60),
        receive: ReceiveMode::Reap,
    }
}

/// Runs the cell on every driver, each with a peer of its own; all must show the same.
fn on_all(spec: &CellSpec, script: impl Fn(usize) -> Vec<Act> + Send + Sync + 'static) -> Shown {
    let script: Script = Arc::new(script);
    agree(
        |spec| spec.targets = vec![serve(script.clone()).into()],
        spec,
    )
}

fn agree(target: impl Fn(&mut CellSpec), spec: &CellSpec) -> Shown {
    let mut first: Option<(String, Shown)> = None;
    for mut driver in drivers() {
        let name = driver.facts().name;
        let mut spec = spec.clone();
        target(&mut spec);
        let shown = run(driver.as_mut(), spec);
        assert!(
            shown.clocks >= 2,
            "{name}: a bracket at the start and at the end"
        );
        let Some((before, like)) = &first else {
            first = Some((name, shown));
            continue;
        };
        assert_eq!(like.requests, shown.requests, "{before} and {name}");
        assert_eq!(like.others, shown.others, "{before} and {name}");
    }
    first.expect("at least one driver").1
}

fn only(shown: &Shown) -> (Option<Terminal>, Option<Phase>) {
    assert_eq!(shown.requests.len(), 1);
    (shown.requests[0].terminal, shown.requests[0].phase)
}

fn answer_with(bytes: Vec<u8>) -> impl Fn(usize) -> Vec<Act> {
    move |_| vec![Act::ReadRequest, Act::Write(bytes.clone()), Act::AwaitClose]
}

#[test]
fn a_stream_in_one_piece() {
    let shown = on_all(&cell(3, request(100)), answer_with(stream(5)));
    for observed in &shown.requests {
        assert_eq!(observed.terminal, Some(Terminal::Complete));
        assert_eq!((observed.events, observed.done_events), (5, 1));
        assert_eq!(observed.bytes, stream(5));
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
}

#[test]
fn a_stream_byte_by_byte() {
    let shown = on_all(&cell(1, request(100)), |_| {
        vec![
            Act::ReadRequest,
            Act::WriteBytewise(stream(3)),
            Act::AwaitClose,
        ]
    });
    assert_eq!(only(&shown), (Some(Terminal::Complete), Some(Phase::Ended)));
    assert_eq!(shown.requests[0].events, 3);
    assert_eq!(shown.requests[0].bytes, stream(3));
}

#[test]
fn a_stream_larger_than_any_buffer() {
    let shown = on_all(&cell(1, request(100)), answer_with(stream(60_000)));
    assert_eq!(only(&shown), (Some(Terminal::Complete), Some(Phase::Ended)));
    assert_eq!(shown.requests[0].events, 60_000);
    assert_eq!(shown.requests[0].bytes.len(), stream(60_000).len());
}

#[test]
fn a_slow_head() {
    let shown = on_all(&cell(1, request(0)), |_| {
        let (head, rest) = (stream(2)[..20].to_vec(), stream(2)[20..].to_vec());
        let pause = Act::Pause(Duration::from_millis(30));
        vec![
            Act::ReadRequest,
            pause.clone(),
            Act::Write(head),
            pause,
            Act::Write(rest),
            Act::AwaitClose,
        ]
    });
    assert_eq!(only(&shown), (Some(Terminal::Complete), Some(Phase::Ended)));
}

#[test]
fn an_end_before_the_head() {
    let shown = on_all(&cell(2, request(10)), |_| vec![Act::ReadRequest, Act::End]);
    for observed in &shown.requests {
        assert_eq!(observed.terminal, Some(Terminal::Disconnected));
        assert_eq!(observed.phase, Some(Phase::BeforeHead));
        assert_eq!(observed.peer_end, Some(PeerEnd::Eof));
    }
}

#[test]
fn an_end_inside_the_body() {
    let cut = stream(9)[..stream(9).len() - 30].to_vec();
    let script = move |_| vec![Act::ReadRequest, Act::Write(cut.clone()), Act::End];
    let shown = on_all(&cell(1, request(10)), script);
    assert_eq!(only(&shown).0, Some(Terminal::Truncated));
    assert_eq!(shown.requests[0].status, 200);
}

#[test]
fn a_body_that_the_end_delimits() {
    let answer = b"HTTP/1.1 200 OK\r\n\r\nuntil the end".to_vec();
    let script = move |_| vec![Act::ReadRequest, Act::Write(answer.clone()), Act::End];
    let shown = on_all(&cell(2, request(10)), script);
    assert_eq!(shown.requests[1].terminal, Some(Terminal::Complete));
    assert_eq!(shown.requests[1].body_bytes, 13);
}

#[test]
fn a_reset_before_the_head() {
    let shown = on_all(&cell(2, request(10)), |_| {
        vec![Act::ReadRequest, Act::Reset]
    });
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
    let shown = on_all(&cell(1, request(10)), |_| {
        let cut = stream(9)[..150].to_vec();
        let pause = Act::Pause(Duration::from_millis(50));
        vec![Act::ReadRequest, Act::Write(cut), pause, Act::Reset]
    });
    assert_eq!(only(&shown), (Some(Terminal::Reset), Some(Phase::Stream)));
    assert_eq!(shown.requests[0].bytes.len(), 150);
}

#[test]
fn a_peer_that_hangs_runs_into_the_time_limit() {
    let hang = |_| vec![Act::ReadRequest, Act::AwaitClose];
    let mut spec = cell(2, request(10));
    spec.requests[0].timeout = DurNs::from_ms(40);
    spec.requests[1].idle_timeout = Some(DurNs::from_ms(40));
    let shown = on_all(&spec, hang);
    let terminals: Vec<_> = shown
        .requests
        .iter()
        .map(|request| request.terminal)
        .collect();
    assert_eq!(
        terminals,
        [Some(Terminal::RequestTimeout), Some(Terminal::IdleTimeout)]
    );
    assert_eq!(shown.requests[0].phase, Some(Phase::BeforeHead));

    let mut spec = cell(1, request(10));
    spec.drain = DurNs::from_ms(40);
    assert_eq!(only(&on_all(&spec, hang)).0, Some(Terminal::DrainTimeout));
}

#[test]
fn an_early_answer_to_an_upload_that_is_not_read() {
    let early = b"HTTP/1.1 413 Content Too Large\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";
    let script = |_| {
        vec![
            Act::ReadHead,
            Act::Write(early.to_vec()),
            Act::Pause(Duration::from_millis(100)),
        ]
    };
    let shown = on_all(&cell(1, request(16 << 20)), script);
    assert_eq!(only(&shown), (Some(Terminal::Complete), Some(Phase::Ended)));
    assert_eq!(
        (shown.requests[0].status, shown.requests[0].sent_bytes),
        (413, 0)
    );
}

#[test]
fn an_upload_of_a_megabyte_to_a_peer_that_starts_late() {
    let script = |_| {
        let pause = Act::Pause(Duration::from_millis(30));
        vec![
            pause,
            Act::ReadRequest,
            Act::Write(short()),
            Act::AwaitClose,
        ]
    };
    let shown = on_all(&cell(2, request(6 << 20)), script);
    for observed in &shown.requests {
        assert_eq!(observed.terminal, Some(Terminal::Complete));
        assert!(observed.sent_bytes > 6 << 20);
    }
}

#[test]
fn a_connection_is_used_again() {
    let mut spec = cell(5, request(10));
    spec.connections = ConnectionPolicy::Reuse {
        idle: DurNs::from_s(5),
    };
    let script = |_| {
        let once = [Act::ReadRequest, Act::Write(short())];
        let mut acts: Vec<Act> = once.iter().cycle().take(10).cloned().collect();
        acts.push(Act::AwaitClose);
        acts
    };
    let shown = on_all(&spec, script);
    let nth: Vec<_> = shown.requests.iter().map(|request| request.nth).collect();
    assert_eq!(nth, [0, 1, 2, 3, 4].map(Some));
}

#[test]
fn an_end_while_idle_is_seen_before_the_next_use() {
    let mut spec = cell(2, request(10));
    spec.load = LoadSpec::Open {
        offsets: vec![OffsetNs(0), OffsetNs(200_000_000)],
        cap: None,
    };
    spec.connections = ConnectionPolicy::Reuse {
        idle: DurNs::from_s(5),
    };
    let shown = on_all(&spec, |nth| {
        let last = if nth == 0 { Act::End } else { Act::AwaitClose };
        vec![Act::ReadRequest, Act::Write(short()), last]
    });
    assert!(
        shown.others.contains(&"Eof true".to_owned()),
        "{:?}",
        shown.others
    );
    for observed in &shown.requests {
        assert_eq!(observed.terminal, Some(Terminal::Complete));
        assert_eq!(observed.nth, Some(0));
    }
}

#[test]
fn connections_that_were_opened_before() {
    let mut spec = cell(4, request(10));
    spec.connections = ConnectionPolicy::Preopened { n: 2 };
    spec.load = LoadSpec::Closed { clients: 2 };
    let script = |_| {
        let once = [Act::ReadRequest, Act::Write(short())];
        let mut acts: Vec<Act> = once.iter().cycle().take(8).cloned().collect();
        acts.push(Act::AwaitClose);
        acts
    };
    let mut shown = Vec::new();
    for mut driver in drivers() {
        let mut spec = spec.clone();
        spec.targets = vec![serve(Arc::new(script)).into()];
        shown.push(run(driver.as_mut(), spec));
    }
    for shown in shown {
        // Which of the two serves the later ones depends on time.
        assert!(
            shown
                .requests
                .iter()
                .all(|request| request.terminal == Some(Terminal::Complete))
        );
        assert_eq!(
            shown
                .others
                .iter()
                .filter(|kind| *kind == "Connected true")
                .count(),
            2
        );
    }
}

#[test]
fn a_port_where_nobody_listens() {
    let spec = cell(2, request(10));
    let shown = agree(|spec| spec.targets = vec![refusing().into()], &spec);
    for observed in &shown.requests {
        assert_eq!(observed.terminal, Some(Terminal::Refused));
        assert_eq!(
            (observed.phase, observed.errno),
            (Some(Phase::Connect), ECONNREFUSED)
        );
    }
}

#[test]
fn a_burst_of_256_requests() {
    for connections in [
        ConnectionPolicy::Fresh,
        ConnectionPolicy::Reuse {
            idle: DurNs::from_s(1),
        },
    ] {
        let mut spec = cell(256, request(200));
        spec.load = LoadSpec::Open {
            offsets: vec![OffsetNs(0); 256],
            cap: None,
        };
        spec.connections = connections;
        let shown = on_all(&spec, answer_with(stream(4)));
        for observed in &shown.requests {
            assert_eq!(observed.terminal, Some(Terminal::Complete));
            assert_eq!((observed.events, observed.nth), (4, Some(0)));
        }
    }
}

#[test]
fn kernel_stamps_gathered_or_not() {
    for gather in [DurNs::ZERO, DurNs::from_us(500)] {
        let mut spec = cell(16, request(10));
        spec.load = LoadSpec::Open {
            offsets: (0..16).map(|place| OffsetNs(place * 1_000_000)).collect(),
            cap: None,
        };
        spec.receive = ReceiveMode::Kernel { gather };
        for mut driver in drivers() {
            // The kernel switches its stamps on in the background, and a loaded host may be late with it:
            // what must hold is that a cell after that has every receive stamped.
            let all_stamped = (0..5).any(|_| {
                let mut spec = spec.clone();
                spec.targets = vec![serve(Arc::new(answer_with(stream(6)))).into()];
                let shown = run(driver.as_mut(), spec);
                for observed in &shown.requests {
                    assert_eq!(observed.terminal, Some(Terminal::Complete));
                    assert_eq!(observed.bytes, stream(6));
                }
                shown.stamped_receives == shown.receives
            });
            assert!(all_stamped, "{}", driver.facts().name);
        }
    }
}

#[test]
fn a_control_that_stops_ends_the_cell() {
    let control = RunControl::default();
    control.stop.store(true, Ordering::Relaxed);
    for mut driver in drivers() {
        let mut spec = cell(3, request(10));
        spec.targets = vec![serve(Arc::new(|_| vec![Act::AwaitClose])).into()];
        let shown = run_with(driver.as_mut(), spec, &control);
        assert!(
            shown
                .requests
                .iter()
                .all(|request| request.terminal == Some(Terminal::NotDispatched))
        );
        assert_eq!(control.progress.ended.load(Ordering::Relaxed), 3);
    }
}

#[test]
fn a_driver_runs_one_cell_after_another() {
    for mut driver in drivers() {
        for _ in 0..3 {
            let mut spec = cell(8, request(10));
            spec.load = LoadSpec::Closed { clients: 4 };
            spec.targets = vec![serve(Arc::new(answer_with(stream(3)))).into()];
            let shown = run(driver.as_mut(), spec);
            assert!(
                shown
                    .requests
                    .iter()
                    .all(|request| request.terminal == Some(Terminal::Complete))
            );
        }
    }
}

#[test]
fn a_driver_that_only_spins_sees_every_completion() {
    let mut spec = cell(8, request(10));
    spec.load = LoadSpec::Closed { clients: 4 };
    spec.spin = DurNs::from_s(100);
    let shown = on_all(&spec, answer_with(stream(3)));
    assert!(
        shown
            .requests
            .iter()
            .all(|request| request.terminal == Some(Terminal::Complete))
    );
}

#[test]
fn buffers_that_run_out_lose_nothing() {
    let Ok(mut driver) = UringDriver::with_buffers("a test", 2) else {
        eprintln!("skipped: io_uring is not to be had here");
        return;
    };
    let mut spec = cell(8, request(10));
    spec.load = LoadSpec::Closed { clients: 8 };
    spec.targets = vec![serve(Arc::new(answer_with(stream(2_000)))).into()];
    let shown = run(&mut driver, spec);
    for observed in &shown.requests {
        assert_eq!(observed.terminal, Some(Terminal::Complete));
        assert_eq!(observed.bytes, stream(2_000));
    }
    assert!(shown.drivers.contains(&"receive: armed again".to_owned()));
}
