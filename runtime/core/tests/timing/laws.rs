//! The laws of `docs/timing.md`, each by its name there, over a run that has ended.

use std::collections::{BTreeMap, HashMap, HashSet};

use assize_core::protocol::http1::{Event, ResponseParser};
use assize_core::protocol::sse::Scanner;
use assize_core::{ConnId, ConnectionPolicy, Exchange, LoadSpec, Terminal, TimerKind};
use assize_units::{DurNs, MonoNs, OffsetNs};

use super::setting::Setting;
use super::world::{Call, Put, Run, What, replay, run};

/// Checks every law that a run of its kind must keep.
pub fn check(run: &Run) {
    times_are_ordered(run);
    entries_carry_the_drivers_instants(run);
    one_terminal_a_request(run);
    entries_and_exchanges_agree(run);
    intended_instants_are_the_plans(run);
    requests_go_first_in_first_out(run);
    never_more_in_flight_than_declared(run);
    events_carry_the_time_of_their_receive(run);
    nothing_is_lost(run);
    no_deadline_fires_early_or_is_passed_over(run);
    connections_are_bounded(run);
    a_replay_is_identical(run);
    if is_punctual(run) {
        dispatch_is_on_time(run);
        a_freed_slot_is_refilled_at_once(run);
        deadlines_fire_at_their_instants(run);
        no_wake_is_for_nothing(run);
    }
}

/// Whether the driver wakes on time and stamps with the clock it polls with.
pub fn is_punctual(run: &Run) -> bool {
    run.driver.lateness.is_empty() && run.driver.behind == 0 && run.driver.abort_after.is_none()
}

fn times_are_ordered(run: &Run) {
    for (place, exchange) in run.exchanges.iter().enumerate() {
        let asked = [
            (
                "intended",
                exchange.intended.filter(|_| exchange.dispatched.is_some()),
            ),
            ("dispatched", exchange.dispatched),
            ("admitted", exchange.admitted),
            ("connect", exchange.connect),
            ("connected", exchange.connected),
            ("tls", exchange.tls),
            ("send_start", exchange.send_start),
            ("sent", exchange.sent),
            ("end", exchange.end),
        ];
        let answered = [
            ("admitted", exchange.admitted),
            ("send_start", exchange.send_start),
            ("head", exchange.head),
            ("first_event", exchange.first_event),
            ("done", exchange.done),
            ("last_event", exchange.last_event),
            ("end", exchange.end),
        ];
        for line in [&asked[..], &answered[..]] {
            let came: Vec<_> = line
                .iter()
                .filter_map(|(name, time)| Some((*name, (*time)?)))
                .collect();
            for pair in came.windows(2) {
                assert!(pair[0].1 <= pair[1].1, "request {place}: {pair:?}");
            }
        }
    }
}

/// No stamp is invented: each is the instant of its call or, where that is behind what already
/// happened on the connection or to the request, the later one.
fn entries_carry_the_drivers_instants(run: &Run) {
    let mut latest: HashMap<ConnId, MonoNs> = HashMap::new();
    for put in &run.puts {
        if run.driver.behind == 0 {
            assert_eq!(put.at.mono, put.clock, "{put:?}");
        }
        assert!(put.at.mono >= put.clock, "{put:?}");
        if let Some(conn) = put.conn {
            let last = latest.entry(conn).or_insert(put.at.mono);
            assert!(*last <= put.at.mono, "{put:?} goes back from {last:?}");
            *last = put.at.mono;
        }
    }
}

fn one_terminal_a_request(run: &Run) {
    let mut ended = HashSet::new();
    for put in &run.puts {
        let Some(req) = put.req else { continue };
        assert!(
            !ended.contains(&req),
            "{put:?} after the request's terminal"
        );
        if matches!(put.what, What::Terminal(..)) {
            ended.insert(req);
        }
    }
    assert_eq!(ended.len(), run.exchanges.len());
    let count = |what: fn(&What) -> bool| run.puts.iter().filter(|put| what(&put.what)).count();
    assert_eq!(count(|what| matches!(what, What::CellEnd)), 1);
    assert_eq!(run.puts.last().map(|put| &put.what), Some(&What::CellEnd));
    assert!(count(|what| matches!(what, What::CellStart(_))) <= 1);
    assert_eq!(
        count(|what| matches!(what, What::Connect)),
        count(|what| matches!(what, What::Close)),
        "every connection is closed once"
    );
}

/// What the sink was told of a request, put together again, is its exchange.
fn entries_and_exchanges_agree(run: &Run) {
    for (req, exchange) in (0..).zip(&run.exchanges) {
        let mut told = Exchange {
            intended: exchange.intended,
            reuse: exchange.reuse,
            peer_end: exchange.peer_end,
            ..Exchange::default()
        };
        for put in run.puts.iter().filter(|put| put.req == Some(req)) {
            let at = Some(put.at.mono);
            let field = match &put.what {
                What::Dispatch(intended) => {
                    assert_eq!(Some(*intended), exchange.intended);
                    &mut told.dispatched
                }
                What::Admit => &mut told.admitted,
                What::Connect => &mut told.connect,
                What::Connected => &mut told.connected,
                What::SendStart => &mut told.send_start,
                What::Sent(bytes) => {
                    told.sent_bytes = *bytes;
                    let whole = run.spec.requests[req as usize].wire_len();
                    assert!(*bytes > 0 && *bytes <= whole, "{put:?} of {whole}");
                    if *bytes < whole {
                        continue;
                    }
                    &mut told.sent
                }
                What::Terminal(terminal, phase, status, errno) => {
                    told.terminal = Some(*terminal);
                    told.phase = Some(*phase);
                    told.status = *status;
                    told.errno = *errno;
                    &mut told.end
                }
                What::Received(bytes) => {
                    told.reads += 1;
                    told.received_bytes += bytes.len() as u64;
                    continue;
                }
                _ => continue,
            };
            assert_eq!(*field, None, "{put:?} twice");
            *field = at;
        }
        let claimed = Exchange {
            head: None,
            first_event: None,
            last_event: None,
            done: None,
            events: 0,
            done_events: 0,
            body_bytes: 0,
            surplus_bytes: 0,
            ..exchange.clone()
        };
        assert_eq!(told, claimed, "request {req}");
    }
}

fn intended_instants_are_the_plans(run: &Run) {
    let Some(origin) = run.origin else { return };
    for (place, exchange) in run.exchanges.iter().enumerate() {
        let due = match &run.spec.load {
            LoadSpec::Open { offsets, .. } => origin.at(offsets[place]),
            LoadSpec::Closed { .. } => origin,
        };
        assert_eq!(exchange.intended, Some(due), "request {place}");
        assert!(exchange.dispatched.is_none_or(|at| at >= due));
    }
}

fn requests_go_first_in_first_out(run: &Run) {
    for what in [
        (|what: &What| matches!(what, What::Dispatch(_))) as fn(&What) -> bool,
        |what| matches!(what, What::Admit),
    ] {
        let order = run.puts.iter().filter(|put| what(&put.what));
        let order: Vec<u32> = order.filter_map(|put| put.req).collect();
        assert!(order.iter().copied().eq(0..order.len() as u32), "{order:?}");
    }
}

fn limit_of(run: &Run) -> Option<usize> {
    match run.spec.load {
        LoadSpec::Open { cap, .. } => cap.map(|cap| cap as usize),
        LoadSpec::Closed { clients } => Some(clients as usize),
    }
}

fn never_more_in_flight_than_declared(run: &Run) {
    let mut admitted = HashSet::new();
    for put in &run.puts {
        match put.what {
            What::Admit => drop(admitted.insert(put.req)),
            What::Terminal(..) => drop(admitted.remove(&put.req)),
            _ => {}
        }
        assert!(limit_of(run).is_none_or(|limit| admitted.len() <= limit));
    }
}

/// A second reading of the same bytes, one by one: whatever was completed by a byte has the stamp of
/// the receive that brought it.
fn events_carry_the_time_of_their_receive(run: &Run) {
    for (req, exchange) in (0..).zip(&run.exchanges) {
        let mut again = Exchange::default();
        let mut parser = ResponseParser::new(run.spec.limits);
        let mut scanner = Scanner::new();
        let mut streams = false;
        let mut over = false;
        for put in run.puts.iter().filter(|put| put.req == Some(req)) {
            let What::Received(bytes) = &put.what else {
                continue;
            };
            let at = put.at.mono;
            for byte in bytes.chunks(1) {
                if over {
                    again.surplus_bytes += 1;
                    continue;
                }
                let mut input = byte;
                while let Ok(Some(event)) = parser.poll(&mut input) {
                    match event {
                        Event::Interim { .. } => {}
                        Event::Head(head) => {
                            streams = head.event_stream;
                            again.head = Some(at);
                            again.status = head.status;
                        }
                        Event::Body(mut body) => {
                            again.body_bytes += body.len() as u64;
                            while let Some(event) = scanner.poll(&mut body).filter(|_| streams) {
                                again.events += 1;
                                again.first_event.get_or_insert(at);
                                again.last_event = Some(at);
                                if event.done {
                                    again.done_events += 1;
                                    again.done.get_or_insert(at);
                                }
                            }
                        }
                        Event::End(_) => over = true,
                    }
                }
            }
        }
        let seen = |exchange: &Exchange| {
            (
                (exchange.head, exchange.status),
                (exchange.first_event, exchange.last_event, exchange.done),
                (exchange.events, exchange.done_events),
                (exchange.body_bytes, exchange.surplus_bytes),
            )
        };
        assert_eq!(seen(exchange), seen(&again), "request {req}");
    }
}

/// Every byte that a driver hands over before the session closes the connection is in an entry.
fn nothing_is_lost(run: &Run) {
    let mut handed: BTreeMap<u32, Vec<u8>> = BTreeMap::new();
    for (_, call) in &run.calls {
        if let Call::Received(conn, bytes) = call {
            handed.entry(conn.serial).or_default().extend(bytes);
        }
    }
    let mut kept: BTreeMap<u32, Vec<u8>> = BTreeMap::new();
    for put in &run.puts {
        if let (What::Received(bytes), Some(conn)) = (&put.what, put.conn) {
            kept.entry(conn.serial).or_default().extend(bytes);
        }
    }
    for (serial, bytes) in &handed {
        let kept = kept.get(serial).map_or(&[][..], Vec::as_slice);
        assert!(bytes.starts_with(kept), "connection {serial}");
        let unheard = bytes.len() - kept.len();
        // The session may close a connection while a batch is being handed over.
        let closed = run
            .puts
            .iter()
            .any(|put| put.what == What::Close && put.conn.is_some_and(|c| c.serial == *serial));
        assert!(unheard == 0 || closed, "connection {serial}");
    }
    for exchange in &run.exchanges {
        assert!(exchange.body_bytes + exchange.surplus_bytes <= exchange.received_bytes);
    }
}

/// When a deadline of a request was due, by what is known of it at its end.
fn deadline(run: &Run, req: usize, kind: TimerKind) -> Option<MonoNs> {
    let (request, exchange) = (&run.spec.requests[req], &run.exchanges[req]);
    let admitted = exchange.admitted?;
    match kind {
        TimerKind::Request => Some(admitted.after(request.timeout)),
        TimerKind::Connect => Some(exchange.connect?.after(request.connect_timeout?)),
        TimerKind::Idle => {
            let quiet_since = exchange.last_event.max(exchange.sent);
            exchange.sent?;
            Some(quiet_since?.after(request.idle_timeout?))
        }
        TimerKind::Drain => {
            let all = run.exchanges.iter().all(|other| other.admitted.is_some());
            let last = run
                .exchanges
                .iter()
                .filter_map(|other| other.admitted)
                .max();
            last.filter(|_| all).map(|last| last.after(run.spec.drain))
        }
    }
}

fn timers(run: &Run) -> impl Iterator<Item = (&Put, usize, TimerKind)> {
    run.puts.iter().filter_map(|put| match put.what {
        What::Timer(kind) => Some((put, put.req? as usize, kind)),
        _ => None,
    })
}

fn no_deadline_fires_early_or_is_passed_over(run: &Run) {
    for (put, req, kind) in timers(run) {
        let due = deadline(run, req, kind).expect("a timer that fired was set");
        assert!(put.at.mono >= due, "{put:?} is due at {due:?}");
        // The clock of a driver that is behind may hide the wake that it would have fired at.
        let missed = run
            .wakes
            .iter()
            .find(|wake| **wake >= due && **wake < put.at.mono);
        assert!(
            missed.is_none() || run.driver.behind > 0,
            "{put:?} missed {missed:?}"
        );
    }
    for (req, exchange) in run.exchanges.iter().enumerate() {
        let end = exchange.end.expect("every request ends");
        if exchange.terminal != Some(Terminal::Complete) || run.driver.behind > 0 {
            continue;
        }
        for kind in [TimerKind::Request, TimerKind::Drain] {
            let due = deadline(run, req, kind);
            assert!(
                due.is_none_or(|due| end <= due),
                "request {req} after {kind:?}"
            );
        }
        if let Some(limit) = run.spec.requests[req].connect_timeout
            && let (Some(connect), Some(connected)) = (exchange.connect, exchange.connected)
        {
            assert!(connected <= connect.after(limit), "request {req}");
        }
    }
}

fn deadlines_fire_at_their_instants(run: &Run) {
    for (put, req, kind) in timers(run) {
        assert_eq!(Some(put.at.mono), deadline(run, req, kind), "{put:?}");
    }
    for (req, exchange) in run.exchanges.iter().enumerate() {
        for kind in [TimerKind::Request, TimerKind::Idle, TimerKind::Drain] {
            let due = deadline(run, req, kind);
            assert!(
                due.is_none_or(|due| exchange.end.is_some_and(|end| end <= due)),
                "request {req} outlives {kind:?}"
            );
        }
    }
}

fn dispatch_is_on_time(run: &Run) {
    for exchange in &run.exchanges {
        assert_eq!(exchange.dispatched, exchange.intended);
        if matches!(run.spec.load, LoadSpec::Open { cap: None, .. }) {
            assert_eq!(exchange.admitted, exchange.dispatched);
        }
    }
}

/// With a limit of n, the request at place i is admitted when it is due or, if that is later, when
/// the (i − n + 1)th of those before it ended.
fn a_freed_slot_is_refilled_at_once(run: &Run) {
    let Some(limit) = limit_of(run) else { return };
    let mut ends: Vec<MonoNs> = Vec::new();
    for (place, exchange) in run.exchanges.iter().enumerate() {
        ends.sort_unstable();
        let freed = place.checked_sub(limit).map(|earlier| ends[earlier]);
        assert_eq!(
            exchange.admitted,
            exchange.dispatched.max(freed),
            "request {place}"
        );
        ends.push(exchange.end.expect("every request ends"));
    }
}

/// A punctual driver wakes only for an instant at which something is due: a completion, a dispatch,
/// a deadline, or the look whether a stream was silent that a later event put off.
fn no_wake_is_for_nothing(run: &Run) {
    let handed = run
        .calls
        .iter()
        .filter(|(_, call)| !matches!(call, Call::Poll | Call::Timeout));
    let put_off: usize = run
        .exchanges
        .iter()
        .map(|exchange| exchange.events as usize)
        .sum();
    let reasons = handed.count() + run.puts.len() + put_off + run.exchanges.len() + 1;
    assert!(run.wakes.len() <= reasons, "{} wakes", run.wakes.len());
}

/// Slots are dense: no more of them than connections were open at once. While closes take no time
/// there is at most one connection for each request in flight, kept ones apart.
fn connections_are_bounded(run: &Run) {
    let slots = run.puts.iter().filter_map(|put| put.conn);
    let slots = slots.map(|conn| conn.slot as usize + 1).max().unwrap_or(0);
    assert!(
        slots <= run.most_open,
        "{slots} slots for {}",
        run.most_open
    );
    let mut carried = HashSet::new();
    let mut most = 0;
    for put in &run.puts {
        match put.what {
            What::Admit => drop(carried.insert(put.req)),
            What::Terminal(..) => drop(carried.remove(&put.req)),
            _ => {}
        }
        most = most.max(carried.len());
    }
    let preopened = match run.spec.connections {
        ConnectionPolicy::Preopened { n } => n as usize * run.spec.targets.len(),
        _ => 0,
    };
    if run.driver.close_after == 0 && run.spec.connections == ConnectionPolicy::Fresh {
        // One that is closing may stand beside the one that takes its request's place.
        assert!(run.most_open <= 2 * most, "{} for {most}", run.most_open);
    }
    assert!(run.most_open <= run.exchanges.len() + preopened);
}

fn a_replay_is_identical(run: &Run) {
    assert_eq!(replay(run).puts, run.puts);
}

/// The same open load with another peer dispatches at the same instants. Connections that are opened in
/// advance move the origin, so offsets from it are compared.
pub fn a_peer_moves_no_dispatch(mut setting: Setting, other: &Setting) {
    if let LoadSpec::Closed { clients } = setting.spec.load {
        let offsets = (0..setting.spec.requests.len() as u64).map(|n| OffsetNs(n * 2_500));
        setting.spec.load = LoadSpec::Open {
            offsets: offsets.collect(),
            cap: Some(clients),
        };
    }
    let offsets = |run: &Run| -> Vec<Option<DurNs>> {
        let origin = run.origin.expect("a cell that nobody stops has an origin");
        let dispatched = run.exchanges.iter().map(|exchange| exchange.dispatched);
        dispatched.map(|at| Some(at?.since(origin))).collect()
    };
    let dispatched = offsets(&run(&setting));
    assert_eq!(dispatched, offsets(&run(&setting.with_peer_of(other))));
}

/// The same bytes at the same instants, one a read, give the same exchanges.
pub fn a_cut_changes_nothing(mut setting: Setting) {
    // A driver that polls between reads may take a connection in one run that is not idle yet in the
    // other; one that polls after its batch may not.
    setting.driver.polls_between = false;
    let whole = run(&setting);
    let fine = run(&setting.cut_fine());
    for (mut whole, mut fine) in whole.exchanges.into_iter().zip(fine.exchanges) {
        // Bytes after the end, or after the fault, are heard only in the receive that brought it.
        for exchange in [&mut whole, &mut fine] {
            let heard = match exchange.terminal {
                Some(Terminal::MalformedHead | Terminal::MalformedFraming | Terminal::TooLarge) => {
                    0
                }
                _ => exchange.received_bytes - exchange.surplus_bytes,
            };
            exchange.reads = 0;
            exchange.received_bytes = heard;
            exchange.surplus_bytes = 0;
        }
        assert_eq!(whole, fine);
    }
}
