//! From what the core observed to what the evidence claims: total matches, no interpretation.

use assize_core::{Exchange, PeerEnd, Phase, SocketOp, Terminal, TimerKind};
use assize_evidence as evidence;
use assize_evidence::wire;

/// The terminal as the evidence spells it.
pub(crate) fn terminal(terminal: Terminal) -> evidence::Terminal {
    match terminal {
        Terminal::Complete => evidence::Terminal::Complete,
        Terminal::Refused => evidence::Terminal::Refused,
        Terminal::ConnectTimeout => evidence::Terminal::ConnectTimeout,
        Terminal::Tls => evidence::Terminal::Tls,
        Terminal::Reset => evidence::Terminal::Reset,
        Terminal::Disconnected => evidence::Terminal::Disconnected,
        Terminal::RequestTimeout => evidence::Terminal::RequestTimeout,
        Terminal::IdleTimeout => evidence::Terminal::IdleTimeout,
        Terminal::DrainTimeout => evidence::Terminal::DrainTimeout,
        Terminal::Redirect => evidence::Terminal::Redirect,
        Terminal::MalformedHead => evidence::Terminal::MalformedHead,
        Terminal::MalformedFraming => evidence::Terminal::MalformedFraming,
        Terminal::Truncated => evidence::Terminal::Truncated,
        Terminal::TooLarge => evidence::Terminal::TooLarge,
        Terminal::Encoded => evidence::Terminal::Encoded,
        Terminal::NotDispatched => evidence::Terminal::NotDispatched,
        Terminal::ClientFault => evidence::Terminal::ClientFault,
    }
}

/// The phase as the evidence spells it.
pub(crate) fn phase(phase: Phase) -> evidence::Phase {
    match phase {
        Phase::Queued => evidence::Phase::Queued,
        Phase::Connect => evidence::Phase::Connect,
        Phase::Send => evidence::Phase::Send,
        Phase::BeforeHead => evidence::Phase::BeforeHead,
        Phase::Head => evidence::Phase::Head,
        Phase::Stream => evidence::Phase::Stream,
        Phase::AfterFinish => evidence::Phase::AfterFinish,
        Phase::Ended => evidence::Phase::Ended,
    }
}

/// The operation as the wire log spells it.
pub(crate) fn operation(op: SocketOp) -> wire::SocketOp {
    match op {
        SocketOp::Connect => wire::SocketOp::Connect,
        SocketOp::Send => wire::SocketOp::Send,
        SocketOp::Receive => wire::SocketOp::Receive,
    }
}

/// The deadline as the wire log spells it.
pub(crate) fn timer(kind: TimerKind) -> wire::Timer {
    match kind {
        TimerKind::Request => wire::Timer::Request,
        TimerKind::Connect => wire::Timer::Connect,
        TimerKind::Idle => wire::Timer::Idle,
        TimerKind::Drain => wire::Timer::Drain,
    }
}

/// One row of `exchanges.jsonl`. A request that has no terminal state was never dispatched.
pub(crate) fn row(
    req: u32,
    id: String,
    class: u32,
    prompt: u32,
    exchange: &Exchange,
) -> evidence::ExchangeRow {
    evidence::ExchangeRow {
        req,
        id,
        class,
        prompt,
        intended_ns: exchange.intended,
        dispatched_ns: exchange.dispatched,
        admitted_ns: exchange.admitted,
        connect_ns: exchange.connect,
        connected_ns: exchange.connected,
        tls_ns: exchange.tls,
        send_start_ns: exchange.send_start,
        sent_ns: exchange.sent,
        head_ns: exchange.head,
        first_event_ns: exchange.first_event,
        last_event_ns: exchange.last_event,
        done_ns: exchange.done,
        end_ns: exchange.end,
        status: exchange.status,
        events: exchange.events,
        done_events: exchange.done_events,
        reads: exchange.reads,
        received_bytes: exchange.received_bytes,
        body_bytes: exchange.body_bytes,
        surplus_bytes: exchange.surplus_bytes,
        sent_bytes: exchange.sent_bytes,
        terminal: terminal(exchange.terminal.unwrap_or(Terminal::NotDispatched)),
        phase: phase(exchange.phase.unwrap_or(Phase::Queued)),
        errno: exchange.errno,
        conn: exchange.reuse.map(|reuse| evidence::ConnFacts {
            n: reuse.conn,
            nth: reuse.nth,
            idle_ns: reuse.idle.map(|idle| idle.0),
        }),
        peer_end: exchange.peer_end.map(|end| match end {
            PeerEnd::Eof => evidence::PeerClose::Eof,
            PeerEnd::Reset => evidence::PeerClose::Reset,
        }),
    }
}
