//! Exact probabilities.

use std::cmp::Ordering;
use std::fmt;

use assize_units::Ratio;
use num_bigint::BigInt;
use num_rational::BigRational;
use num_traits::{One, Signed, ToPrimitive, Zero};

/// The most decimal places that are shown exactly; a tail of n blocks needs at most n.
const MAX_PLACES: u32 = 24;

/// An exact probability: a rational from 0 to 1 of unbounded integers, in lowest terms.
///
/// Shown as an exact decimal where it has one of at most 24 places (`0.0107421875`), else as `~`
/// and ten significant digits.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Probability(BigRational);

impl Probability {
    /// `num / den`; `None` where the denominator is zero or the value is not from 0 to 1.
    pub fn new(num: impl Into<BigInt>, den: impl Into<BigInt>) -> Option<Probability> {
        let den = den.into();
        if den.is_zero() {
            return None;
        }
        Probability::from_rational(BigRational::new(num.into(), den))
    }

    /// The same value as a probability; `None` where it is not from 0 to 1.
    pub fn from_ratio(value: Ratio) -> Option<Probability> {
        Probability::from_rational(to_rational(value))
    }

    /// Certainly not.
    pub fn zero() -> Probability {
        Probability(BigRational::zero())
    }

    /// Certainly.
    pub fn one() -> Probability {
        Probability(BigRational::one())
    }

    /// `1 - self`.
    pub fn complement(&self) -> Probability {
        Probability(BigRational::one() - &self.0)
    }

    /// `factor * self`, at most 1.
    pub fn times_capped(&self, factor: u64) -> Probability {
        let product = &self.0 * BigRational::from_integer(BigInt::from(factor));
        Probability(product.min(BigRational::one()))
    }

    /// The exact order of `self` and `other`.
    pub fn cmp_ratio(&self, other: Ratio) -> Ordering {
        self.0.cmp(&to_rational(other))
    }

    /// Whether `self <= limit`, exactly.
    pub fn at_most(&self, limit: Ratio) -> bool {
        self.cmp_ratio(limit) != Ordering::Greater
    }

    /// Whether `self >= floor`, exactly.
    pub fn at_least(&self, floor: Ratio) -> bool {
        self.cmp_ratio(floor) != Ordering::Less
    }

    /// The nearest floating-point number: for display and for comparison with other tools.
    pub fn as_f64(&self) -> f64 {
        self.0.to_f64().unwrap_or(f64::NAN)
    }

    /// `11/1024`, in lowest terms.
    pub fn fraction(&self) -> String {
        format!("{}/{}", self.0.numer(), self.0.denom())
    }

    fn from_rational(value: BigRational) -> Option<Probability> {
        let inside = !value.is_negative() && value <= BigRational::one();
        inside.then_some(Probability(value))
    }

    fn exact_decimal(&self) -> Option<String> {
        let places = decimal_places(self.0.denom())?;
        let scaled = &self.0 * BigRational::from_integer(BigInt::from(10).pow(places));
        let width = places as usize + 1;
        let digits = format!("{:0>width$}", scaled.numer().to_string());
        let (whole, fraction) = digits.split_at(digits.len() - places as usize);
        Some(if places == 0 {
            whole.to_owned()
        } else {
            format!("{whole}.{fraction}")
        })
    }
}

/// The places of the exact decimal of a fraction with this denominator, where there is one.
fn decimal_places(den: &BigInt) -> Option<u32> {
    let mut power = BigInt::one();
    for places in 0..=MAX_PLACES {
        if (&power % den).is_zero() {
            return Some(places);
        }
        power *= 10;
    }
    None
}

pub(crate) fn to_rational(value: Ratio) -> BigRational {
    BigRational::new_raw(BigInt::from(value.num()), BigInt::from(value.den()))
}

impl fmt::Display for Probability {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.exact_decimal() {
            Some(decimal) => f.write_str(&decimal),
            None => write!(f, "~{:.9e}", self.as_f64()),
        }
    }
}

impl fmt::Debug for Probability {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.fraction())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shown_exactly_where_a_decimal_is_exact() {
        let shown = |num: u32, den: u32| Probability::new(num, den).unwrap().to_string();
        assert_eq!(shown(11, 1024), "0.0107421875");
        assert_eq!(shown(1, 1), "1");
        assert_eq!(shown(0, 7), "0");
        assert_eq!(shown(1, 3), "~3.333333333e-1");
    }

    #[test]
    fn compared_exactly_where_floats_are_equal() {
        let tenth = Ratio::new(1, 10).unwrap();
        let den = BigInt::from(10).pow(40);
        let above = Probability::new(den.clone() / 10 + 1, den).unwrap();
        assert_eq!(above.as_f64().to_bits(), 0.1f64.to_bits());
        assert!(!above.at_most(tenth));
        assert!(Probability::new(1, 10).unwrap().at_most(tenth));
    }

    #[test]
    fn what_is_no_probability_is_refused() {
        assert_eq!(Probability::new(1, 0), None);
        assert_eq!(Probability::new(-1, 2), None);
        assert_eq!(Probability::new(3, 2), None);
        assert_eq!(Probability::from_ratio(Ratio::whole(2)), None);
    }
}
