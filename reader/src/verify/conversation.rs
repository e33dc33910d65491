//! One request as its wire-log records tell it, and what follows from them.

use assize_evidence::wire::{SocketOp, Timer};
use assize_evidence::{ConnFacts, ExchangeRow, PeerClose, Phase, Terminal};
use assize_units::{Bytes, DurNs, MonoNs};

use super::terminal;
use crate::metrics::Timeline;
use crate::records::{ConnectionUse, EventCounts, Outcome, Record};
use crate::replay::answer::{Answer, read_answer};
use crate::replay::http::{Ending, Framing, Limits};
use crate::replay::openai::{Asked, Completion, EventKind};

/// What arrived and happened, up to the terminal record.
#[derive(Default)]
pub(super) struct Conversation {
    pub(super) dispatched: Option<MonoNs>,
    pub(super) admitted: Option<MonoNs>,
    pub(super) connect: Option<MonoNs>,
    pub(super) connected: Option<MonoNs>,
    /// The TLS handshake was done.
    pub(super) tls: Option<MonoNs>,
    /// The TLS layer failed.
    pub(super) tls_failed: Option<MonoNs>,
    pub(super) send_start: Option<MonoNs>,
    pub(super) sent: Option<MonoNs>,
    pub(super) sent_bytes: u64,
    /// Bytes of the head that was submitted.
    pub(super) head_bytes: u64,
    pub(super) conn: Option<ConnFacts>,
    pub(super) bytes: Vec<u8>,
    pub(super) reads: Vec<ReadMark>,
    pub(super) eof: Option<Instants>,
    /// The end was the transport's alone, below TLS: anyone between could have made it.
    pub(super) is_bare_end: bool,
    pub(super) peer_end: Option<PeerClose>,
    /// A failed send that left the connection's end to the receive.
    pub(super) broken_send: i32,
    pub(super) error: Option<(MonoNs, SocketOp, i32)>,
    pub(super) timer: Option<(MonoNs, Timer)>,
}

/// One receive.
#[derive(Clone, Copy)]
pub(super) struct ReadMark {
    /// Bytes of the request received up to here.
    pub(super) end: usize,
    pub(super) at: Instants,
}

/// When a receive was reaped, and the instant that figures take.
#[derive(Clone, Copy)]
pub(super) struct Instants {
    /// The reading of the clock.
    pub(super) reaped: MonoNs,
    /// The kernel's stamp on the same clock, where the cell takes it; else the reading.
    pub(super) received: MonoNs,
}

/// What the plan says of a request.
#[derive(Clone, Copy)]
pub(super) struct Planned<'a> {
    pub(super) req: u32,
    pub(super) id: &'a str,
    pub(super) class: u32,
    pub(super) prompt: u32,
    pub(super) intended: Option<MonoNs>,
    pub(super) asked: &'a Asked,
    pub(super) max_body_bytes: u64,
}

/// The claim that the replay supports, and the reader's own record.
pub(super) struct Replayed {
    pub(super) row: ExchangeRow,
    pub(super) record: Record,
}

impl Conversation {
    /// Ends the conversation at its terminal record.
    pub(super) fn end(self, planned: &Planned<'_>, terminal_at: MonoNs) -> Replayed {
        let limits = Limits::default();
        let answer = read_answer(&self.bytes, self.eof.is_some(), planned.asked, &limits);
        let (terminal, end) = self.conclude(&answer, planned, terminal_at);
        let row = self.row(&answer, planned, terminal, end);
        let record = self.record(&answer, planned, &row);
        Replayed { row, record }
    }

    /// The terminal state, and when it was reached.
    fn conclude(
        &self,
        answer: &Answer,
        planned: &Planned<'_>,
        terminal_at: MonoNs,
    ) -> (Terminal, MonoNs) {
        if let Some(terminal) = terminal::of_answer(answer, planned.max_body_bytes) {
            let is_cut = self.is_bare_end && is_ended_by_close(answer);
            let terminal = if is_cut {
                Terminal::Truncated
            } else {
                terminal
            };
            return (terminal, self.answer_end(answer).unwrap_or(terminal_at));
        }
        if let Some(at) = self.tls_failed {
            return (Terminal::Tls, at);
        }
        if let Some((at, timer)) = self.timer {
            return (terminal::of_timer(timer), at);
        }
        if let Some((at, op, errno)) = self.error {
            return (terminal::of_error(op, errno), at);
        }
        // Nothing outside ended it: the client did.
        let terminal = if self.admitted.is_some() {
            Terminal::ClientFault
        } else {
            Terminal::NotDispatched
        };
        (terminal, terminal_at)
    }

    fn answer_end(&self, answer: &Answer) -> Option<MonoNs> {
        let eof = self.eof.map(|at| at.reaped);
        match answer.response.ending {
            Ending::Complete { end } => match answer.response.head.as_ref()?.framing {
                Framing::Close => eof,
                _ => Some(self.read_of(end.checked_sub(1)?)?.reaped),
            },
            _ => eof.or(Some(self.reads.last()?.at.reaped)),
        }
    }

    /// The receive that brought the byte at `place`.
    fn read_of(&self, place: usize) -> Option<Instants> {
        let index = self.reads.partition_point(|read| read.end <= place);
        self.reads.get(index).map(|read| read.at)
    }

    fn phase(&self, answer: &Answer, terminal: Terminal) -> Phase {
        match terminal {
            Terminal::Complete | Terminal::Redirect | Terminal::Encoded => Phase::Ended,
            _ if self.admitted.is_none() => Phase::Queued,
            _ if !answer.done_events.is_empty() => Phase::AfterFinish,
            _ if answer.response.head.is_some() => Phase::Stream,
            _ if !self.bytes.is_empty() => Phase::Head,
            _ if self.sent.is_some() => Phase::BeforeHead,
            _ if self.conn.is_some() => Phase::Send,
            _ => Phase::Connect,
        }
    }

    fn errno(&self, terminal: Terminal) -> i32 {
        let is_answered = matches!(
            terminal,
            Terminal::Complete | Terminal::Redirect | Terminal::Encoded
        );
        if is_answered {
            return 0;
        }
        let fatal = self.error.map_or(0, |(_, _, errno)| errno);
        if fatal == 0 { self.broken_send } else { fatal }
    }

    fn row(
        &self,
        answer: &Answer,
        planned: &Planned<'_>,
        terminal: Terminal,
        end: MonoNs,
    ) -> ExchangeRow {
        let response = &answer.response;
        let event_at = |place: Option<&usize>| Some(self.read_of(*place?)?.reaped);
        let first_done = answer.done_events.first();
        let done_place = first_done.and_then(|number| answer.event_places.get(*number));
        let head = response.head.as_ref();
        ExchangeRow {
            req: planned.req,
            id: planned.id.to_owned(),
            class: planned.class,
            prompt: planned.prompt,
            intended_ns: planned.intended,
            dispatched_ns: self.dispatched,
            admitted_ns: self.admitted,
            connect_ns: self.connect,
            connected_ns: self.connected,
            tls_ns: self.tls,
            send_start_ns: self.send_start,
            sent_ns: self.sent,
            head_ns: head.and_then(|head| Some(self.read_of(head.end - 1)?.reaped)),
            first_event_ns: event_at(answer.event_places.first()),
            last_event_ns: event_at(answer.event_places.last()),
            done_ns: event_at(done_place),
            end_ns: Some(end),
            status: response.status().unwrap_or(0),
            events: answer.event_places.len() as u32,
            done_events: answer.done_events.len() as u32,
            reads: self.reads.len() as u32,
            received_bytes: self.bytes.len() as u64,
            body_bytes: response.body.len() as u64,
            surplus_bytes: response.leftover.len() as u64,
            sent_bytes: self.sent_bytes,
            terminal,
            phase: self.phase(answer, terminal),
            errno: self.errno(terminal),
            conn: self.conn,
            peer_end: self.peer_end,
        }
    }

    fn record(&self, answer: &Answer, planned: &Planned<'_>, row: &ExchangeRow) -> Record {
        let completion = &answer.completion;
        let outcome = match (row.terminal, completion.flaw) {
            (Terminal::Complete, None) => Outcome::Valid,
            (Terminal::Complete, Some(flaw)) => Outcome::Invalid(flaw.kind),
            (terminal, _) => Outcome::Terminal(terminal),
        };
        let why = match outcome {
            Outcome::Valid => None,
            Outcome::Invalid(_) => completion.flaw.map(|flaw| flaw.why),
            Outcome::Terminal(_) => answer.response.fault().map(|fault| fault.kind.name()),
        };
        Record {
            index: planned.req,
            class: planned.class,
            outcome,
            phase: row.phase,
            why,
            status: response_status(row),
            times: self.timeline(answer, planned, row),
            events: self.event_counts(answer),
            usage_tokens: completion.usage_tokens,
            id_tokens: completion.id_tokens,
            finishes: completion
                .outputs
                .iter()
                .filter_map(|output| output.finish.clone())
                .collect(),
            connection: self.conn.map(|conn| ConnectionUse {
                conn: conn.n,
                nth: conn.nth,
                idle: conn.idle_ns.map(DurNs),
                sent: Bytes(row.sent_bytes),
                received: Bytes(row.received_bytes),
                errno: Some(row.errno).filter(|errno| *errno != 0),
            }),
        }
    }

    fn timeline(&self, answer: &Answer, planned: &Planned<'_>, row: &ExchangeRow) -> Timeline {
        let completion = &answer.completion;
        let received = |number: usize| {
            let place = answer.event_places.get(number)?;
            Some(self.read_of(*place)?.received)
        };
        let events = || completion.events.iter().enumerate();
        let end = match (row.terminal, answer.response.ending) {
            (Terminal::Complete, Ending::Complete { end }) => self
                .eof
                .filter(|_| is_close_delimited(answer))
                .or_else(|| self.read_of(end.checked_sub(1)?))
                .map(|at| at.received),
            _ => None,
        };
        let is_marked = planned.asked.stream && planned.asked.done_due;
        Timeline {
            intended: planned.intended.unwrap_or_default(),
            dispatched: self.dispatched,
            admitted: self.admitted,
            sent: self.sent,
            head: answer
                .response
                .head
                .as_ref()
                .and_then(|head| Some(self.read_of(head.end - 1)?.received)),
            tokens: events()
                .filter(|(_, event)| event.token_bearing)
                .filter_map(|(number, _)| received(number))
                .collect(),
            first_output: events()
                .find(|(_, event)| event.has_output)
                .and_then(|(number, _)| received(number)),
            done: if is_marked {
                completion.done_event.and_then(received)
            } else {
                end
            },
            end: end.or(row.end_ns),
            output_tokens: completion.output_tokens(),
        }
    }

    fn event_counts(&self, answer: &Answer) -> EventCounts {
        let reads: Vec<usize> = answer
            .event_places
            .iter()
            .map(|place| self.reads.partition_point(|read| read.end <= *place))
            .collect();
        EventCounts {
            events: answer.event_places.len() as u64,
            multi_token: multi_token_events(&answer.completion),
            coalesced: reads.windows(2).filter(|pair| pair[0] == pair[1]).count() as u64,
            comments: answer.comments,
        }
    }
}

fn is_close_delimited(answer: &Answer) -> bool {
    let head = answer.response.head.as_ref();
    head.is_some_and(|head| head.framing == Framing::Close)
}

/// Whether the end of the connection was the end of the answer.
fn is_ended_by_close(answer: &Answer) -> bool {
    is_close_delimited(answer) && matches!(answer.response.ending, Ending::Complete { .. })
}

fn response_status(row: &ExchangeRow) -> Option<u16> {
    Some(row.status).filter(|status| *status != 0)
}

fn multi_token_events(completion: &Completion) -> u64 {
    completion
        .events
        .iter()
        .filter(|event| event.kind == EventKind::Choice)
        .filter(|event| event.token_ids.is_some_and(|ids| ids > 1))
        .count() as u64
}
