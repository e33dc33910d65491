//! One request's times and what follows from them.

use assize_units::{DurNs, MonoNs, Ratio};

/// What a latency is counted from.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize, serde::Deserialize,
)]
#[serde(rename_all = "snake_case")]
pub enum Origin {
    /// The planned arrival: its offset in the plan added to the cell's origin.
    Intended,
    /// Admission, before any connection is made.
    Started,
    /// The kernel accepted the request's last byte.
    Sent,
}

impl Origin {
    /// The name used in reports.
    pub fn name(self) -> &'static str {
        match self {
            Origin::Intended => "intended",
            Origin::Started => "started",
            Origin::Sent => "sent",
        }
    }
}

/// One request's times on the one monotonic clock. What did not happen is absent, never zero.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Timeline {
    /// The planned arrival.
    pub intended: MonoNs,
    /// The load machine handed it over.
    pub dispatched: Option<MonoNs>,
    /// It was let go; before any connection is made.
    pub admitted: Option<MonoNs>,
    /// The kernel accepted its last byte.
    pub sent: Option<MonoNs>,
    /// The receive that completed the head.
    pub head: Option<MonoNs>,
    /// The receive that completed each token-bearing event.
    pub tokens: Vec<MonoNs>,
    /// The receive that completed the first event with visible output.
    pub first_output: Option<MonoNs>,
    /// The receive that completed the `[DONE]` event, or the body where none is due.
    pub done: Option<MonoNs>,
    /// The message is complete, or the attempt is over.
    pub end: Option<MonoNs>,
    /// Output tokens: from usage or token ids, never from text.
    pub output_tokens: Option<u64>,
}

impl Timeline {
    /// The instant of an origin, where it happened.
    pub fn origin(&self, origin: Origin) -> Option<MonoNs> {
        match origin {
            Origin::Intended => Some(self.intended),
            Origin::Started => self.admitted,
            Origin::Sent => self.sent,
        }
    }

    /// TTFT: from the origin to the first token-bearing event.
    pub fn ttft(&self, origin: Origin) -> Option<DurNs> {
        self.since(origin, self.tokens.first().copied())
    }

    /// From the origin to the first event with visible output.
    pub fn first_output(&self, origin: Origin) -> Option<DurNs> {
        self.since(origin, self.first_output)
    }

    /// E2E: from the origin to the end of the stream, which is not the last token.
    pub fn e2e(&self, origin: Origin) -> Option<DurNs> {
        self.since(origin, self.done)
    }

    /// TPOT in nanoseconds: (last token − first token) / (output tokens − 1); undefined for fewer
    /// than two tokens.
    pub fn tpot_ns(&self) -> Option<Ratio> {
        let first = self.tokens.first()?;
        let span = self.tokens.last()?.checked_since(*first)?;
        let intervals = self.output_tokens?.checked_sub(1)?;
        Ratio::new(i128::from(span.0), i128::from(intervals)).ok()
    }

    /// Differences of consecutive token-bearing event times; a multi-token event hides its inner
    /// times, so these are gaps of events, not of tokens.
    pub fn gaps(&self) -> impl Iterator<Item = DurNs> + '_ {
        self.tokens.windows(2).map(|pair| pair[1].since(pair[0]))
    }

    /// dispatched − intended.
    pub fn dispatch_lag(&self) -> Option<DurNs> {
        Some(self.dispatched?.since(self.intended))
    }

    /// admitted − dispatched.
    pub fn admission_wait(&self) -> Option<DurNs> {
        Some(self.admitted?.since(self.dispatched?))
    }

    /// end − done: what a connection was held for after the stream had said its last.
    pub fn close_delay(&self) -> Option<DurNs> {
        self.end?.checked_since(self.done?)
    }

    fn since(&self, origin: Origin, until: Option<MonoNs>) -> Option<DurNs> {
        until?.checked_since(self.origin(origin)?)
    }
}
