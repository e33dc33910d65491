//! What goes wrong on purpose, and for which requests.

use assize_units::DurNs;
use serde::{Deserialize, Serialize};

use super::draw::{Purpose, draw};
use super::duration::{self, Percent};

/// A fault and the generation requests that it strikes, counted from 0 in the order in which
/// their last byte arrived.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FaultRule {
    /// What happens.
    pub fault: Fault,
    /// These requests.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub requests: Vec<u64>,
    /// Every k-th request (k−1, 2k−1, …); 0 means none by this key.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub every: u64,
    /// This share of the requests, drawn by the engine's seed and the request's number.
    #[serde(default, skip_serializing_if = "is_none")]
    pub probability: Percent,
}

/// One fault of a generation answer.
///
/// `after_events` counts the answer's own events (a chat's role event included) that are sent
/// before the fault. An answer that is not streamed has no events: `close_mid_stream` and
/// `reset_mid_stream` strike it after half its body, other faults of a stream leave it as it is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
#[non_exhaustive]
pub enum Fault {
    /// The connection is reset (RST) once the request is complete.
    ResetBeforeHead,
    /// The connection is closed (FIN) once the request is complete.
    CloseBeforeHead,
    /// The connection is closed (FIN) in mid-body.
    CloseMidStream {
        /// Events sent before it.
        after_events: u32,
    },
    /// The connection is reset (RST) in mid-body.
    ResetMidStream {
        /// Events sent before it.
        after_events: u32,
    },
    /// The answer is this status with an error object; `location` is sent with a redirect.
    Status {
        /// 300 to 599.
        code: u16,
    },
    /// Nothing is ever answered; the connection stays open.
    Hang,
    /// After some events nothing more is sent for a time; then everything withheld, at once.
    Stall {
        /// Events sent before it.
        after_events: u32,
        /// How long.
        #[serde(with = "duration")]
        time: DurNs,
    },
    /// After some events nothing is ever sent again; the connection stays open.
    HangMidStream {
        /// Events sent before it.
        after_events: u32,
    },
    /// The head, and what follows it, is withheld for a time after the request.
    SlowHead {
        /// How long.
        #[serde(with = "duration")]
        time: DurNs,
    },
    /// A chunk has a size that is no hexadecimal number; then the connection is closed.
    MalformedChunk {
        /// Events sent before it.
        after_events: u32,
    },
    /// An event's JSON is cut short; the stream goes on.
    MalformedEvent {
        /// Events sent before it.
        after_events: u32,
    },
    /// An error object stands in the stream, then `[DONE]`, as vLLM does when its engine dies.
    ErrorEvent {
        /// Events sent before it.
        after_events: u32,
    },
    /// `data: [DONE]` is left out.
    MissingDone,
    /// An event follows `data: [DONE]`.
    ExtraAfterDone,
    /// The last token's event has no finish reason.
    MissingFinish,
    /// The stream has no event but `[DONE]`.
    EmptyStream,
    /// One token fewer than asked for.
    OneTokenShort,
    /// `content-type: text/plain` on a right body.
    WrongContentType,
    /// `content-encoding: gzip` on a body that is not encoded.
    GzipClaim,
    /// Each byte of the answer is a write of its own.
    ByteByByte,
    /// The whole answer is withheld and sent in one write, as by a buffering proxy.
    Coalesced,
    /// A comment line stands in a chunk of its own before each event.
    Comments,
}

impl FaultRule {
    /// Whether the rule can strike no request.
    pub(super) fn is_idle(&self) -> bool {
        self.requests.is_empty() && self.every == 0 && is_none(&self.probability)
    }

    fn strikes(&self, rule: u64, seed: u64, request: u64) -> bool {
        if self.requests.contains(&request) {
            return true;
        }
        if self.every > 0 && (request + 1).is_multiple_of(self.every) {
            return true;
        }
        let drawn = draw(seed, Purpose::Fault(rule), request) % 1_000_000;
        drawn < u64::from(self.probability.millionths())
    }
}

/// The fault of a generation request by its number, if any.
pub(super) fn fault_of(rules: &[FaultRule], seed: u64, request: u64) -> Option<&Fault> {
    let struck = |(index, rule): &(usize, &FaultRule)| rule.strikes(*index as u64, seed, request);
    rules
        .iter()
        .enumerate()
        .find(struck)
        .map(|(_, rule)| &rule.fault)
}

fn is_zero(value: &u64) -> bool {
    *value == 0
}

fn is_none(value: &Percent) -> bool {
    value.millionths() == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rule(fault: Fault) -> FaultRule {
        FaultRule {
            fault,
            requests: Vec::new(),
            every: 0,
            probability: Percent::default(),
        }
    }

    #[test]
    fn the_first_rule_that_strikes_counts() {
        let first = FaultRule {
            requests: vec![2],
            ..rule(Fault::Hang)
        };
        let second = FaultRule {
            every: 3,
            ..rule(Fault::MissingDone)
        };
        let rules = [first, second];
        assert_eq!(fault_of(&rules, 0, 0), None);
        assert_eq!(fault_of(&rules, 0, 2), Some(&Fault::Hang));
        assert_eq!(fault_of(&rules, 0, 5), Some(&Fault::MissingDone));
    }

    #[test]
    fn a_share_is_met_and_repeats_by_its_seed() {
        let rules = [FaultRule {
            probability: Percent::parse("10%").unwrap(),
            ..rule(Fault::Hang)
        }];
        let struck = |seed| -> Vec<u64> {
            (0..10_000)
                .filter(|n| fault_of(&rules, seed, *n).is_some())
                .collect()
        };
        assert_eq!(struck(7), struck(7));
        assert_ne!(struck(7), struck(8));
        assert!((900..1100).contains(&struck(7).len()));
    }
}
