//! The terminal state that the bytes and the system's answers lead to.

use assize_evidence::Terminal;
use assize_evidence::wire::{SocketOp, Timer};

use crate::replay::answer::Answer;
use crate::replay::http::{Ending, FaultKind, Framing};

/// How a response's framing ended a request; `None` where it did not.
pub(super) fn of_answer(answer: &Answer, max_body_bytes: u64) -> Option<Terminal> {
    if is_too_large(answer, max_body_bytes) {
        return Some(Terminal::TooLarge);
    }
    match answer.response.ending {
        Ending::Unfinished(_) => None,
        Ending::Complete { .. } => Some(of_complete(answer)),
        Ending::Failed(fault) => Some(match fault.kind {
            FaultKind::EofBeforeResponse | FaultKind::EofInHead => Terminal::Disconnected,
            FaultKind::BadStatusLine | FaultKind::BadHeader | FaultKind::UnexpectedUpgrade => {
                Terminal::MalformedHead
            }
            FaultKind::HeaderLimit | FaultKind::FramingLimit => Terminal::TooLarge,
            FaultKind::BadContentLength
            | FaultKind::BadTransferEncoding
            | FaultKind::AmbiguousFraming
            | FaultKind::BadChunkSize
            | FaultKind::BadChunk
            | FaultKind::BadTrailer => Terminal::MalformedFraming,
            FaultKind::IncompleteBody => Terminal::Truncated,
        }),
    }
}

fn of_complete(answer: &Answer) -> Terminal {
    let status = answer.response.status().unwrap_or(0);
    if (300..400).contains(&status) && status != 304 {
        Terminal::Redirect
    } else if answer.encoded {
        Terminal::Encoded
    } else {
        Terminal::Complete
    }
}

fn is_too_large(answer: &Answer, max_body_bytes: u64) -> bool {
    let declared = match answer.response.head.as_ref().map(|head| head.framing) {
        Some(Framing::Length(length)) => length,
        _ => 0,
    };
    declared.max(answer.response.body.len() as u64) > max_body_bytes
}

/// What a deadline makes of a request.
pub(super) fn of_timer(timer: Timer) -> Terminal {
    match timer {
        Timer::Request => Terminal::RequestTimeout,
        Timer::Connect => Terminal::ConnectTimeout,
        Timer::Idle => Terminal::IdleTimeout,
        Timer::Drain => Terminal::DrainTimeout,
    }
}

/// Whether a failed operation leaves the connection's end to the receive that follows.
pub(super) fn is_broken_send(op: SocketOp, errno: i32) -> bool {
    op == SocketOp::Send && is_reset(errno)
}

/// Whether the error number says that the peer reset the connection.
pub(super) fn is_reset(errno: i32) -> bool {
    matches!(errno, ECONNRESET | EPIPE)
}

/// What an error of the system makes of a request (docs/evidence-format, "Error numbers").
pub(super) fn of_error(op: SocketOp, errno: i32) -> Terminal {
    match errno {
        EPERM | ENOMEM | EACCES | ENFILE | EMFILE | EADDRINUSE | EADDRNOTAVAIL | ENOBUFS => {
            Terminal::ClientFault
        }
        ECONNRESET | EPIPE => Terminal::Reset,
        ETIMEDOUT if op == SocketOp::Connect => Terminal::ConnectTimeout,
        _ if op == SocketOp::Connect => Terminal::Refused,
        _ => Terminal::Reset,
    }
}

// Error numbers of Linux, which are part of the evidence: not those of the reviewer's machine.
const EPERM: i32 = 1;
const ENOMEM: i32 = 12;
const EACCES: i32 = 13;
const ENFILE: i32 = 23;
const EMFILE: i32 = 24;
const EPIPE: i32 = 32;
const EADDRINUSE: i32 = 98;
const EADDRNOTAVAIL: i32 = 99;
const ECONNRESET: i32 = 104;
const ENOBUFS: i32 = 105;
const ETIMEDOUT: i32 = 110;
