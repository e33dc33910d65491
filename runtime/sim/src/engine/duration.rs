//! Durations and shares as text: `8ms`, `1.5s`, `5%`.
//!
//! The words are those of the study language, so that a server file, a command line and a sealed
//! plan say the same thing the same way.

use std::fmt;

use assize_units::{DurNs, Ratio};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Units from the greatest to the smallest, in nanoseconds.
const UNITS: [(&str, u64); 6] = [
    ("h", 3_600_000_000_000),
    ("min", 60_000_000_000),
    ("s", 1_000_000_000),
    ("ms", 1_000_000),
    ("us", 1_000),
    ("ns", 1),
];

/// Reads `8ms`, `1.5s`, `250us`; `None` where the text is no whole number of nanoseconds.
pub fn parse_duration(text: &str) -> Option<DurNs> {
    let split = text.find(|symbol: char| symbol.is_ascii_alphabetic())?;
    let (number, unit) = text.split_at(split);
    let (_, ns) = UNITS.iter().find(|(name, _)| *name == unit)?;
    let value = Ratio::parse_decimal(number)?
        .mul(Ratio::whole(i128::from(*ns)))
        .ok()?;
    if !value.is_whole() {
        return None;
    }
    u64::try_from(value.num()).ok().map(DurNs)
}

/// The shortest exact text: the greatest unit that divides the duration.
pub fn write_duration(value: DurNs) -> String {
    if value == DurNs::ZERO {
        return "0s".to_owned();
    }
    let exact = UNITS.iter().find(|(_, ns)| value.0.is_multiple_of(*ns));
    let (unit, ns) = exact.unwrap_or(&("ns", 1));
    format!("{}{unit}", value.0 / ns)
}

/// A share between 0% and 100%, exact to a millionth.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Percent {
    millionths: u32,
}

impl Percent {
    /// The share of `millionths` in a million; at most one million.
    pub fn from_millionths(millionths: u32) -> Option<Percent> {
        (millionths <= 1_000_000).then_some(Percent { millionths })
    }

    /// The share in millionths, 0 to 1,000,000.
    pub fn millionths(self) -> u32 {
        self.millionths
    }

    /// Reads `5%` or `0.25%`.
    pub fn parse(text: &str) -> Option<Percent> {
        let value = Ratio::parse_decimal(text.strip_suffix('%')?)?
            .mul(Ratio::whole(10_000))
            .ok()?;
        if !value.is_whole() {
            return None;
        }
        Percent::from_millionths(u32::try_from(value.num()).ok()?)
    }
}

impl fmt::Display for Percent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let whole = self.millionths / 10_000;
        let rest = self.millionths % 10_000;
        if rest == 0 {
            return write!(f, "{whole}%");
        }
        let places = format!("{rest:04}");
        write!(f, "{whole}.{}%", places.trim_end_matches('0'))
    }
}

impl Serialize for Percent {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Percent {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Percent::parse(&text).ok_or_else(|| {
            serde::de::Error::custom(format!(
                "`{text}` is no share: write one between 0% and 100%, such as 5%"
            ))
        })
    }
}

/// Writes a duration as text.
pub(super) fn serialize<S: Serializer>(value: &DurNs, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&write_duration(*value))
}

/// Reads a duration from text.
pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<DurNs, D::Error> {
    let text = String::deserialize(deserializer)?;
    parse_duration(&text).ok_or_else(|| {
        serde::de::Error::custom(format!(
            "`{text}` is no duration: write a number and ns, us, ms, s, min or h, such as 8ms"
        ))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_read_exactly() {
        assert_eq!(parse_duration("8ms"), Some(DurNs::from_ms(8)));
        assert_eq!(parse_duration("1.5us"), Some(DurNs(1_500)));
        assert_eq!(parse_duration("0s"), Some(DurNs::ZERO));
        for text in [
            "",
            "8",
            "ms",
            "8 ms",
            "-1s",
            "0.5ns",
            "8m",
            "99999999999999h",
        ] {
            assert_eq!(parse_duration(text), None, "{text:?}");
        }
    }

    #[test]
    fn shares_are_read_exactly() {
        assert_eq!(Percent::parse("2.5%").unwrap().millionths(), 25_000);
        assert_eq!(Percent::parse("2.5%").unwrap().to_string(), "2.5%");
        assert_eq!(Percent::parse("100%").unwrap().to_string(), "100%");
        for text in ["5", "101%", "0.00001%", "-1%"] {
            assert_eq!(Percent::parse(text), None, "{text:?}");
        }
    }

    proptest::proptest! {
        #[test]
        fn a_written_duration_reads_back(ns in 0u64..u64::MAX / 2) {
            proptest::prop_assert_eq!(parse_duration(&write_duration(DurNs(ns))), Some(DurNs(ns)));
        }
    }
}
