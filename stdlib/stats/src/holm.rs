//! Holm's step-down correction over a family of tests.

use assize_units::Ratio;

use crate::Probability;

/// One test of a family, corrected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Corrected {
    /// The adjusted p: at least the raw one, at most 1.
    pub adjusted: Probability,
    /// Whether the adjusted p is at most the family's level, exactly.
    pub rejected: bool,
}

/// Corrects a family at the level `alpha`, in the order given.
///
/// With p sorted ascending (k = 0 … m−1), adjusted = max(adjusted of the one before,
/// min(1, (m − k)·p)). Equal p get equal adjusted values, which is right and no fault.
pub fn holm(p: &[Probability], alpha: Ratio) -> Vec<Corrected> {
    let mut by_rank: Vec<usize> = (0..p.len()).collect();
    by_rank.sort_by(|&a, &b| p[a].cmp(&p[b]));
    let mut adjusted = vec![Probability::zero(); p.len()];
    let mut running = Probability::zero();
    for (rank, &index) in by_rank.iter().enumerate() {
        running = running.max(p[index].times_capped((p.len() - rank) as u64));
        adjusted[index] = running.clone();
    }
    adjusted
        .into_iter()
        .map(|adjusted| Corrected {
            rejected: adjusted.at_most(alpha),
            adjusted,
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn family(p: &[u32]) -> Vec<Probability> {
        p.iter()
            .map(|&num| Probability::new(num, 1000).unwrap())
            .collect()
    }

    proptest! {
        #[test]
        fn monotone_capped_and_never_below_the_raw(p in prop::collection::vec(0u32..=1000, 0..8)) {
            let raw = family(&p);
            let corrected = holm(&raw, Ratio::new(1, 20).unwrap());
            prop_assert_eq!(corrected.len(), raw.len());
            for (a, one) in raw.iter().zip(&corrected) {
                prop_assert!(one.adjusted >= *a && one.adjusted <= Probability::one());
                for (b, other) in raw.iter().zip(&corrected) {
                    prop_assert!(a > b || one.adjusted <= other.adjusted);
                }
            }
        }

        #[test]
        fn the_order_of_the_family_does_not_matter(p in prop::collection::vec(0u32..=1000, 1..8), by in 0usize..8) {
            let alpha = Ratio::new(1, 20).unwrap();
            let mut turned = p.clone();
            turned.rotate_left(by % p.len());
            let mut expected = holm(&family(&p), alpha);
            expected.rotate_left(by % p.len());
            prop_assert_eq!(holm(&family(&turned), alpha), expected);
        }

        #[test]
        fn it_rejects_what_bonferroni_rejects(p in prop::collection::vec(0u32..=1000, 1..8)) {
            let raw = family(&p);
            let bonferroni = Ratio::new(1, 20 * p.len() as i128).unwrap();
            for (one, corrected) in raw.iter().zip(holm(&raw, Ratio::new(1, 20).unwrap())) {
                prop_assert!(!one.at_most(bonferroni) || corrected.rejected);
            }
        }
    }
}
