//! By how much a sleep is ended early, because this host wakes a thread late.

use assize_units::{DurNs, MonoNs};

/// A sleep ends no earlier than by so much for it: a host that wakes later than this is not to be
/// helped by spinning.
const MOST: DurNs = DurNs::from_us(250);

/// The two steps of the estimate. Their ratio makes it the 90th percentile of the lateness.
const UP: DurNs = DurNs::from_us(9);
const DOWN: DurNs = DurNs::from_us(1);

/// Learns how late this thread is woken after the time for which it asked.
///
/// An idle processor of a virtual machine takes up to 100 µs to come back, which no fixed spin of
/// 60 µs covers; where the wake is prompt, the estimate stays near zero and costs nothing. What is
/// slept less is mostly what the wake would have been late by.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Lead {
    late: DurNs,
}

impl Lead {
    /// Until when to sleep, so that the last `spin` before `until` can be spun. Without a spin a
    /// sleep takes its whole time: who does not spin wants no processor time spent on waiting.
    pub fn asleep_until(self, until: MonoNs, spin: DurNs) -> MonoNs {
        if spin == DurNs::ZERO {
            return until;
        }
        until.before(spin).before(self.late)
    }

    /// A sleep that nothing but time ended was over at `now`.
    pub fn woke(&mut self, asked: MonoNs, now: MonoNs) {
        self.late = if now.since(asked) > self.late {
            DurNs(self.late.0 + UP.0).min(MOST)
        } else {
            DurNs(self.late.0.saturating_sub(DOWN.0))
        };
    }

    /// In words, for the evidence.
    pub fn words(self) -> String {
        format!(
            "sleeps before a deadline ended {} us earlier than the spin asks, as wakes were late",
            self.late.0 / 1000
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(lateness_us: impl Iterator<Item = u64>) -> Lead {
        let mut lead = Lead::default();
        let asked = MonoNs(1_000_000);
        for us in lateness_us {
            lead.woke(asked, asked.after(DurNs::from_us(us)));
        }
        lead
    }

    #[test]
    fn prompt_wakes_cost_nothing() {
        let lead = after([0; 1000].into_iter());
        let until = MonoNs(1_000_000);
        let spin = DurNs::from_us(60);
        assert_eq!(lead.asleep_until(until, spin), until.before(spin));
    }

    #[test]
    fn nine_of_ten_late_wakes_are_covered() {
        // Lateness of 1 to 100 µs, each as often.
        let lead = after((0..10_000).map(|place| place * 37 % 100 + 1));
        assert!((85..=97).contains(&(lead.late.0 / 1000)), "{lead:?}");
    }

    #[test]
    fn it_is_bounded_forgets_and_never_spins_unasked() {
        let slow = after([5_000; 1000].into_iter());
        assert_eq!(slow.late, MOST);
        let until = MonoNs(1_000_000);
        assert_eq!(slow.asleep_until(until, DurNs::ZERO), until);
        let calm = after([5_000; 100].into_iter().chain([0; 1000]));
        assert!(calm.late <= UP, "{calm:?}");
    }
}
