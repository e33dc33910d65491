//! Which time a receive carries, as a study says it.

use std::fmt;
use std::str::FromStr;

use assize_units::DurNs;
use serde::{Deserialize, Serialize};

/// Which time a receive carries: `reap` or `kernel(gather = 500us)`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum ReceiveWay {
    /// The reading of the monotonic clock when the completion was reaped.
    Reap,
    /// The kernel's receive stamp; completions gather for so long.
    Kernel {
        /// The longest gathering time.
        gather: DurNs,
    },
}

/// A text names no way of receiving.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is neither `reap` nor `kernel(gather = 500us)` with its time")]
pub struct UnknownWay(String);

const UNITS: [(&str, u64); 4] = [
    ("s", 1_000_000_000),
    ("ms", 1_000_000),
    ("us", 1_000),
    ("ns", 1),
];

impl ReceiveWay {
    /// Whether the kernel's stamp is taken.
    pub fn is_kernel(self) -> bool {
        matches!(self, ReceiveWay::Kernel { .. })
    }

    /// The word before the parenthesis.
    pub fn word(self) -> &'static str {
        match self {
            ReceiveWay::Reap => "reap",
            ReceiveWay::Kernel { .. } => "kernel",
        }
    }
}

impl From<assize_plan::Receive> for ReceiveWay {
    fn from(receive: assize_plan::Receive) -> Self {
        match receive {
            assize_plan::Receive::Reap => ReceiveWay::Reap,
            assize_plan::Receive::Kernel { gather_ns } => ReceiveWay::Kernel { gather: gather_ns },
        }
    }
}

impl fmt::Display for ReceiveWay {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ReceiveWay::Kernel { gather } = self else {
            return f.write_str("reap");
        };
        let whole = |(_, size): &&(&str, u64)| gather.0.is_multiple_of(*size);
        let (unit, size) = UNITS.iter().find(whole).unwrap_or(&("ns", 1));
        write!(f, "kernel(gather = {}{unit})", gather.0 / size)
    }
}

impl FromStr for ReceiveWay {
    type Err = UnknownWay;

    fn from_str(text: &str) -> Result<ReceiveWay, UnknownWay> {
        if text == "reap" {
            return Ok(ReceiveWay::Reap);
        }
        let inner = text.strip_prefix("kernel(gather = ");
        let gather = inner.and_then(|rest| duration(rest.strip_suffix(')')?));
        match gather {
            Some(gather) => Ok(ReceiveWay::Kernel { gather }),
            None => Err(UnknownWay(text.chars().take(60).collect())),
        }
    }
}

/// Digits and a unit.
fn duration(text: &str) -> Option<DurNs> {
    let digits = text.find(|c: char| !c.is_ascii_digit())?;
    let (number, unit) = text.split_at(digits);
    let (_, size) = UNITS.iter().find(|(name, _)| *name == unit)?;
    number.parse::<u64>().ok()?.checked_mul(*size).map(DurNs)
}

impl TryFrom<String> for ReceiveWay {
    type Error = UnknownWay;

    fn try_from(text: String) -> Result<ReceiveWay, UnknownWay> {
        text.parse()
    }
}

impl From<ReceiveWay> for String {
    fn from(way: ReceiveWay) -> String {
        way.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn it_is_said_as_a_study_says_it() {
        let gather = DurNs::from_us(500);
        let way = ReceiveWay::Kernel { gather };
        assert_eq!(way.to_string(), "kernel(gather = 500us)");
        assert_eq!(ReceiveWay::Reap.to_string(), "reap");
        for wrong in [
            "",
            "Reap",
            "kernel",
            "kernel()",
            "kernel(gather = us)",
            "kernel(gather = 500)",
            "kernel(gather = 500 us)",
            "kernel(gather = -1us)",
            "kernel(gather = 99999999999999999999us)",
            "kernel(gather = 18446744073709551615s)",
            "kernel(gather = 1us",
        ] {
            assert!(wrong.parse::<ReceiveWay>().is_err(), "{wrong}");
        }
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(ns in any::<u64>()) {
            let way = ReceiveWay::Kernel { gather: DurNs(ns) };
            prop_assert_eq!(way.to_string().parse(), Ok(way));
        }
    }
}
