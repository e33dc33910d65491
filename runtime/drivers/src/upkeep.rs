//! What every driver does beside the sockets: stop, progress, clock brackets.

use assize_core::{Entry, ReceiveMode, RunControl, Session, Sink};
use assize_units::{DurNs, MonoNs};

use crate::clock;
use crate::lead::Lead;
use crate::socket::Stamping;

/// No wait is longer, so that a request to stop is seen.
const LONGEST_WAIT: DurNs = DurNs::from_ms(50);

const PUBLISH_EVERY: DurNs = DurNs::from_ms(5);
const BRACKET_EVERY: DurNs = DurNs::from_s(1);

/// Until when to wait, and how much of that to spin: only what is due is worth it.
pub(crate) fn next_wake(now: MonoNs, due: Option<MonoNs>, spin: DurNs) -> (MonoNs, DurNs) {
    let longest = now.after(LONGEST_WAIT);
    match due {
        Some(due) if due <= longest => (due, spin),
        _ => (longest, DurNs::ZERO),
    }
}

/// What goes on beside the sockets, and when it is due again.
#[derive(Debug)]
pub(crate) struct Upkeep {
    _stamping: Option<Stamping>,
    publish: MonoNs,
    bracket: MonoNs,
    aborted: bool,
}

impl Upkeep {
    /// At the start of a cell.
    pub fn begin(receive: ReceiveMode, sink: &mut dyn Sink) -> Upkeep {
        let stamping = match receive {
            ReceiveMode::Kernel { .. } => begin_stamping(sink),
            ReceiveMode::Reap => None,
        };
        let at = put_bracket(sink);
        Upkeep {
            _stamping: stamping,
            publish: at,
            bracket: at.after(BRACKET_EVERY),
            aborted: false,
        }
    }

    /// Once each turn of the loop.
    pub fn turn(
        &mut self,
        now: MonoNs,
        session: &mut Session,
        sink: &mut dyn Sink,
        control: &RunControl,
    ) {
        if !self.aborted && (control.stopping() || sink.overflowed()) {
            self.aborted = true;
            session.abort(now, sink);
        }
        if now < self.publish {
            return;
        }
        self.publish = now.after(PUBLISH_EVERY);
        session.publish(&control.progress);
        if now >= self.bracket {
            self.bracket = put_bracket(sink).after(BRACKET_EVERY);
        }
    }

    /// At the end of a cell.
    pub fn end(self, lead: Lead, session: &Session, sink: &mut dyn Sink, control: &RunControl) {
        session.publish(&control.progress);
        let fact = lead.words();
        sink.put(clock::now().into(), None, None, Entry::Driver(&fact));
        put_bracket(sink);
    }
}

fn begin_stamping(sink: &mut dyn Sink) -> Option<Stamping> {
    let outcome = Stamping::begin();
    let fact = match outcome {
        Ok((_, true)) => "kernel receive stamps: on, for the whole system",
        Ok((_, false)) => "kernel receive stamps: asked for, none came within 50 ms",
        Err(_) => "kernel receive stamps: refused by the system",
    };
    sink.put(clock::now().into(), None, None, Entry::Driver(fact));
    outcome.ok().map(|(stamping, _)| stamping)
}

fn put_bracket(sink: &mut dyn Sink) -> MonoNs {
    let bracket = clock::bracket();
    let entry = Entry::Clock {
        offset_ns: bracket.offset_ns,
        bracket_ns: bracket.width.0,
    };
    sink.put(bracket.at.into(), None, None, entry);
    bracket.at
}
