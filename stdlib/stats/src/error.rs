//! What these functions refuse.

/// Why a statistic does not exist for its arguments.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum StatsError {
    /// A count is over its limit, so that no input costs unbounded work.
    #[error("{given} {what}: the limit is {limit}")]
    TooMany {
        /// What is counted, in the plural.
        what: &'static str,
        /// The count that was given.
        given: u64,
        /// The greatest count that is taken.
        limit: u64,
    },
    /// Fewer values than the statistic needs.
    #[error("{given} {what}: at least {least} are needed")]
    TooFew {
        /// What is counted, in the plural.
        what: &'static str,
        /// The count that was given.
        given: u64,
        /// The least count that is taken.
        least: u64,
    },
    /// A part is greater than its whole.
    #[error("{part} of {whole}: the part is greater than the whole")]
    PartOverWhole {
        /// The part.
        part: u64,
        /// The whole.
        whole: u64,
    },
    /// A value that must lie strictly between zero and one does not.
    #[error("{what} must be above 0 and below 1")]
    NotBetweenZeroAndOne {
        /// The argument's name.
        what: &'static str,
    },
    /// A value that must lie from zero to one does not.
    #[error("{what} must be from 0 to 1")]
    NotAProbability {
        /// The argument's name.
        what: &'static str,
    },
    /// A value that must be finite and above zero is not.
    #[error("{what} must be finite and above 0")]
    NotPositive {
        /// The argument's name.
        what: &'static str,
    },
    /// A value that must be finite is not.
    #[error("{what} must be finite")]
    NotFinite {
        /// The argument's name.
        what: &'static str,
    },
    /// An index points past the values.
    #[error("index {index} points past {len} values")]
    IndexOutOfRange {
        /// The index, from zero.
        index: usize,
        /// The number of values.
        len: usize,
    },
    /// The exact result does not fit 128-bit integers.
    #[error("the exact result does not fit 128-bit integers")]
    Overflow,
}

impl From<assize_units::RatioError> for StatsError {
    fn from(_: assize_units::RatioError) -> Self {
        StatsError::Overflow
    }
}

/// `Ok` where `given` is at most `limit`.
pub(crate) fn bounded(what: &'static str, given: u64, limit: u64) -> Result<(), StatsError> {
    if given > limit {
        return Err(StatsError::TooMany { what, given, limit });
    }
    Ok(())
}

/// `Ok` where `given` is at least `least`.
pub(crate) fn at_least(what: &'static str, given: u64, least: u64) -> Result<(), StatsError> {
    if given < least {
        return Err(StatsError::TooFew { what, given, least });
    }
    Ok(())
}

/// `Ok` where `part` is at most `whole`.
pub(crate) fn part_of(part: u64, whole: u64) -> Result<(), StatsError> {
    if part > whole {
        return Err(StatsError::PartOverWhole { part, whole });
    }
    Ok(())
}
