//! Dealing one stream of requests out to classes: exact counts, in a drawn order.

use assize_units::Ratio;

use crate::draw::{Purpose, Stream};

/// So many of `total` for each share, by the largest remainder; of equal ones the first is raised.
/// The shares make a whole.
pub(crate) fn shared_out(total: u32, shares: &[Ratio]) -> Option<Vec<u32>> {
    let quotas: Option<Vec<Ratio>> = shares
        .iter()
        .map(|share| share.mul(Ratio::whole(total.into())).ok())
        .collect();
    let quotas = quotas?;
    let mut counts: Vec<u32> = quotas
        .iter()
        .map(|quota| u32::try_from(quota.floor()).ok())
        .collect::<Option<_>>()?;
    let mut by_remainder: Vec<(Ratio, usize)> = Vec::new();
    for (place, quota) in quotas.iter().enumerate() {
        by_remainder.push((quota.sub(Ratio::whole(quota.floor())).ok()?, place));
    }
    by_remainder.sort_by(|a, b| b.0.cmp(&a.0).then(a.1.cmp(&b.1)));
    let missing = total.checked_sub(counts.iter().sum())?;
    for (_, place) in by_remainder.into_iter().take(missing as usize) {
        counts[place] += 1;
    }
    Some(counts)
}

/// The class of each request: all of the first class, then all of the next, shuffled by the stream
/// `classes` of the cell.
pub(crate) fn deal(counts: &[u32], block_seed: u128, cell: &str) -> Vec<u32> {
    let mut dealt: Vec<u32> = (0u32..)
        .zip(counts)
        .flat_map(|(class, count)| std::iter::repeat_n(class, *count as usize))
        .collect();
    if counts.len() > 1 {
        Stream::new(Purpose::Classes, block_seed, cell, 0).shuffle(&mut dealt);
    }
    dealt
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn ratio(num: i128, den: i128) -> Ratio {
        Ratio::new(num, den).unwrap()
    }

    #[test]
    fn the_largest_remainder_is_raised() {
        let thirds = [ratio(1, 3), ratio(1, 3), ratio(1, 3)];
        assert_eq!(shared_out(10, &thirds), Some(vec![4, 3, 3]));
        assert_eq!(
            shared_out(600, &[ratio(7, 10), ratio(3, 10)]),
            Some(vec![420, 180])
        );
        assert_eq!(
            shared_out(7, &[ratio(7, 10), ratio(3, 10)]),
            Some(vec![5, 2])
        );
    }

    proptest! {
        #[test]
        fn every_request_has_a_class_and_no_count_is_off_by_one(n in 0u32..5000, a in 1i128..100, b in 1i128..100) {
            let whole = a + b;
            let shares = [ratio(a, whole), ratio(b, whole)];
            let counts = shared_out(n, &shares).unwrap();
            prop_assert_eq!(counts.iter().sum::<u32>(), n);
            for (count, share) in counts.iter().zip(shares) {
                let quota = share.mul(Ratio::whole(n.into())).unwrap();
                let off = Ratio::whole((*count).into()).sub(quota).unwrap();
                prop_assert!(off < Ratio::ONE && off > Ratio::ONE.neg());
            }
            let dealt = deal(&counts, 7, "mixed");
            prop_assert_eq!(dealt.iter().filter(|class| **class == 1).count(), counts[1] as usize);
        }
    }
}
