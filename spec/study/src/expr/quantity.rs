//! Literals with units, exact.

use assize_units::{Ratio, RatioError};

/// A literal: its number as written and its unit, with the exact value in base units.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Quantity {
    /// The number before the unit.
    pub number: Ratio,
    /// The unit; none for a plain number or a rate such as `4/s`.
    pub unit: Option<Unit>,
    /// The interval after the slash, where there is one.
    pub per: Option<Per>,
    /// The exact value in base units: one, seconds, bytes, tokens, or one of them a second.
    pub base: Ratio,
}

impl Quantity {
    /// A literal; fails where the exact value does not fit.
    pub fn new(
        number: Ratio,
        unit: Option<Unit>,
        per: Option<Per>,
    ) -> Result<Quantity, RatioError> {
        let mut base = number;
        if let Some(unit) = unit {
            base = base.mul(unit.in_base()?)?;
        }
        if let Some(per) = per {
            base = base.div(Ratio::whole(per.seconds()))?;
        }
        Ok(Quantity {
            number,
            unit,
            per,
            base,
        })
    }

    /// What the value measures.
    pub fn dimension(self) -> Dimension {
        let mut dimension = self.unit.map_or(Dimension::NONE, Unit::dimension);
        if self.per.is_some() {
            dimension.seconds -= 1;
        }
        dimension
    }

    /// Whether the literal is a percent.
    pub fn is_percent(self) -> bool {
        self.unit == Some(Unit::Percent)
    }
}

/// The unit of a literal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Unit {
    /// `%`
    Percent,
    /// `ns`
    Nanoseconds,
    /// `us`
    Microseconds,
    /// `ms`
    Milliseconds,
    /// `s`
    Seconds,
    /// `min`
    Minutes,
    /// `h`
    Hours,
    /// `B`
    Bytes,
    /// `KiB`
    Kibibytes,
    /// `MiB`
    Mebibytes,
    /// `GiB`
    Gibibytes,
    /// ` tokens`
    Tokens,
}

impl Unit {
    /// Every unit that is written directly after its number, with its spelling.
    pub const SPELLINGS: &'static [(&'static str, Unit)] = &[
        ("ns", Unit::Nanoseconds),
        ("us", Unit::Microseconds),
        ("ms", Unit::Milliseconds),
        ("s", Unit::Seconds),
        ("min", Unit::Minutes),
        ("h", Unit::Hours),
        ("B", Unit::Bytes),
        ("KiB", Unit::Kibibytes),
        ("MiB", Unit::Mebibytes),
        ("GiB", Unit::Gibibytes),
    ];

    /// What the unit measures.
    pub fn dimension(self) -> Dimension {
        match self {
            Unit::Percent => Dimension::NONE,
            Unit::Nanoseconds
            | Unit::Microseconds
            | Unit::Milliseconds
            | Unit::Seconds
            | Unit::Minutes
            | Unit::Hours => Dimension::DURATION,
            Unit::Bytes | Unit::Kibibytes | Unit::Mebibytes | Unit::Gibibytes => Dimension::SIZE,
            Unit::Tokens => Dimension::TOKENS,
        }
    }

    /// One of the unit in base units.
    fn in_base(self) -> Result<Ratio, RatioError> {
        match self {
            Unit::Percent => Ratio::new(1, 100),
            Unit::Nanoseconds => Ratio::new(1, 1_000_000_000),
            Unit::Microseconds => Ratio::new(1, 1_000_000),
            Unit::Milliseconds => Ratio::new(1, 1_000),
            Unit::Seconds | Unit::Bytes | Unit::Tokens => Ok(Ratio::ONE),
            Unit::Minutes => Ok(Ratio::whole(60)),
            Unit::Hours => Ok(Ratio::whole(3_600)),
            Unit::Kibibytes => Ok(Ratio::whole(1 << 10)),
            Unit::Mebibytes => Ok(Ratio::whole(1 << 20)),
            Unit::Gibibytes => Ok(Ratio::whole(1 << 30)),
        }
    }
}

/// The interval of a rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Per {
    /// `/s`
    Second,
    /// `/min`
    Minute,
    /// `/h`
    Hour,
}

impl Per {
    /// Every interval with its spelling.
    pub const SPELLINGS: &'static [(&'static str, Per)] =
        &[("s", Per::Second), ("min", Per::Minute), ("h", Per::Hour)];

    /// Its length in seconds.
    pub fn seconds(self) -> i128 {
        match self {
            Per::Second => 1,
            Per::Minute => 60,
            Per::Hour => 3_600,
        }
    }
}

/// What a value measures, as powers of seconds, bytes and tokens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Dimension {
    /// The power of seconds: 1 for a duration, −1 for a rate.
    pub seconds: i8,
    /// The power of bytes.
    pub bytes: i8,
    /// The power of tokens.
    pub tokens: i8,
}

impl Dimension {
    /// A number without a unit.
    pub const NONE: Dimension = Dimension {
        seconds: 0,
        bytes: 0,
        tokens: 0,
    };
    /// Seconds.
    pub const DURATION: Dimension = Dimension {
        seconds: 1,
        ..Dimension::NONE
    };
    /// So many a second.
    pub const RATE: Dimension = Dimension {
        seconds: -1,
        ..Dimension::NONE
    };
    /// Bytes.
    pub const SIZE: Dimension = Dimension {
        bytes: 1,
        ..Dimension::NONE
    };
    /// Tokens.
    pub const TOKENS: Dimension = Dimension {
        tokens: 1,
        ..Dimension::NONE
    };

    /// The dimension of a product; `None` where a power leaves its bounds.
    pub fn times(self, other: Dimension) -> Option<Dimension> {
        Some(Dimension {
            seconds: self.seconds.checked_add(other.seconds)?,
            bytes: self.bytes.checked_add(other.bytes)?,
            tokens: self.tokens.checked_add(other.tokens)?,
        })
    }

    /// The dimension of a quotient; `None` where a power leaves its bounds.
    pub fn over(self, other: Dimension) -> Option<Dimension> {
        Some(Dimension {
            seconds: self.seconds.checked_sub(other.seconds)?,
            bytes: self.bytes.checked_sub(other.bytes)?,
            tokens: self.tokens.checked_sub(other.tokens)?,
        })
    }
}
