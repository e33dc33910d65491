//! The exact one-sided sign test over blocks.

use crate::binomial::{MAX_TRIALS, upper_tail};
use crate::effect::Tally;
use crate::error::bounded;
use crate::{Probability, StatsError};

/// What becomes of a tie.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Ties {
    /// A tie is a trial that was not won. Never more favourable than dropping.
    Nonwins,
    /// A tie is no trial (the textbook's rule).
    Dropped,
}

/// A sign test and its exact one-sided p: P(X ≥ wins), X ~ Bin(trials, ½).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SignTest {
    /// Blocks won, tied, lost and missing.
    pub tally: Tally,
    /// Blocks that are trials of this test.
    pub trials: u32,
    /// The exact p; 1 where there are no trials.
    pub p: Probability,
}

impl SignTest {
    /// Tests `tally`. A missing block stays a trial that was not won, whatever becomes of ties.
    pub fn new(tally: Tally, ties: Ties) -> Result<SignTest, StatsError> {
        bounded("blocks", tally.blocks(), MAX_TRIALS.into())?;
        let trials = tally.wins
            + tally.losses
            + tally.missing
            + match ties {
                Ties::Nonwins => tally.ties,
                Ties::Dropped => 0,
            };
        let p = upper_tail(trials, tally.wins)?;
        Ok(SignTest { tally, trials, p })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn p(wins: u32, tied: u32, losses: u32, missing: u32, ties: Ties) -> Probability {
        let tally = Tally {
            wins,
            ties: tied,
            losses,
            missing,
        };
        SignTest::new(tally, ties).unwrap().p
    }

    #[test]
    fn a_missing_block_is_a_nonwin_even_where_ties_are_dropped() {
        assert_eq!(p(9, 0, 0, 1, Ties::Dropped).fraction(), "11/1024");
        assert_eq!(p(9, 1, 0, 0, Ties::Dropped).fraction(), "1/512");
        assert_eq!(p(9, 1, 0, 0, Ties::Nonwins).fraction(), "11/1024");
    }

    #[test]
    fn a_count_past_the_limit_is_refused() {
        let tally = Tally {
            wins: u32::MAX,
            losses: u32::MAX,
            ..Tally::default()
        };
        assert!(matches!(
            SignTest::new(tally, Ties::Nonwins),
            Err(StatsError::TooMany { .. })
        ));
    }

    proptest! {
        #[test]
        fn dropping_ties_never_makes_p_greater(w in 0u32..40, t in 0u32..40, l in 0u32..40) {
            prop_assert!(p(w, t, l, 0, Ties::Dropped) <= p(w, t, l, 0, Ties::Nonwins));
        }

        #[test]
        fn a_win_for_a_loss_makes_p_smaller(w in 0u32..40, l in 1u32..40) {
            prop_assert!(p(w + 1, 0, l - 1, 0, Ties::Nonwins) < p(w, 0, l, 0, Ties::Nonwins));
        }

        #[test]
        fn its_size_is_at_most_its_level(n in 1u32..30, level in 1u32..100) {
            // Exact: P(p <= level) under equality, summed over every number of wins.
            let limit = assize_units::Ratio::new(level.into(), 100).unwrap();
            let fewest = (0..=n).find(|&w| p(w, 0, n - w, 0, Ties::Nonwins).at_most(limit));
            if let Some(wins) = fewest {
                prop_assert!(upper_tail(n, wins).unwrap().at_most(limit));
            }
        }
    }
}
