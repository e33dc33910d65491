//! Descriptions of a metric over blocks or rounds. They enter no test.

use assize_units::Ratio;

use crate::percentile::median_of_sorted;

/// The least, the middle and the greatest of some values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Range {
    /// The least value.
    pub min: Ratio,
    /// The middle value, or the exact mean of the two middle ones.
    pub median: Ratio,
    /// The greatest value.
    pub max: Ratio,
}

impl Range {
    /// The range of values in any order; `None` for no values, or where the median does not fit
    /// 128-bit integers.
    pub fn of(values: &[Ratio]) -> Option<Range> {
        let mut sorted = values.to_vec();
        sorted.sort_unstable();
        Some(Range {
            min: *sorted.first()?,
            median: median_of_sorted(&sorted)?,
            max: *sorted.last()?,
        })
    }

    /// `spread(M)` = (max − min) / median, exact; `None` for a median of zero or past 128 bits.
    pub fn spread(&self) -> Option<Ratio> {
        self.max.sub(self.min).ok()?.div(self.median).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_spread_is_over_the_median() {
        let values: Vec<Ratio> = [10, 12, 8, 11].into_iter().map(Ratio::whole).collect();
        let range = Range::of(&values).unwrap();
        assert_eq!(range.median, Ratio::new(21, 2).unwrap());
        assert_eq!(range.spread(), Some(Ratio::new(8, 21).unwrap()));
        assert_eq!(Range::of(&[]), None);
        assert_eq!(Range::of(&[Ratio::ZERO]).unwrap().spread(), None);
    }
}
