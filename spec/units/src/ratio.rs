//! Exact rationals with checked arithmetic.

use std::cmp::Ordering;
use std::fmt;

use num_rational::Ratio as NumRatio;
use num_traits::{CheckedAdd, CheckedDiv, CheckedMul, CheckedSub, Signed, Zero};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// An exact rational in lowest terms with a positive denominator.
///
/// Arithmetic is checked: a result that does not fit 128-bit integers is an error, never a rounded
/// value. Serialized as `[numerator, denominator]`.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Ratio(NumRatio<i128>);

/// Why an exact result does not exist.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RatioError {
    /// The divisor is zero.
    #[error("division by zero")]
    DivisionByZero,
    /// The exact result does not fit 128-bit integers.
    #[error("the exact result does not fit 128-bit integers")]
    Overflow,
}

#[expect(
    clippy::should_implement_trait,
    reason = "these can fail, the operators of std cannot"
)]
impl Ratio {
    /// Zero.
    pub const ZERO: Ratio = Ratio(NumRatio::new_raw(0, 1));
    /// One.
    pub const ONE: Ratio = Ratio(NumRatio::new_raw(1, 1));

    /// `num / den` in lowest terms.
    pub fn new(num: i128, den: i128) -> Result<Ratio, RatioError> {
        if den == 0 {
            return Err(RatioError::DivisionByZero);
        }
        if num == i128::MIN || den == i128::MIN {
            return Err(RatioError::Overflow);
        }
        Ok(Ratio(NumRatio::new(num, den)))
    }

    /// A whole number.
    pub fn whole(value: i128) -> Ratio {
        Ratio(NumRatio::from_integer(value))
    }

    /// The numerator, in lowest terms; it carries the sign.
    pub fn num(self) -> i128 {
        *self.0.numer()
    }

    /// The denominator, in lowest terms; always positive.
    pub fn den(self) -> i128 {
        *self.0.denom()
    }

    /// Whether the denominator is one.
    pub fn is_whole(self) -> bool {
        self.den() == 1
    }

    /// Whether the value is zero.
    pub fn is_zero(self) -> bool {
        self.0.is_zero()
    }

    /// Whether the value is above zero.
    pub fn is_positive(self) -> bool {
        self.0.is_positive()
    }

    /// Whether the value is below zero.
    pub fn is_negative(self) -> bool {
        self.0.is_negative()
    }

    /// `self + other`, exact.
    pub fn add(self, other: Ratio) -> Result<Ratio, RatioError> {
        self.0
            .checked_add(&other.0)
            .map(Ratio)
            .ok_or(RatioError::Overflow)
    }

    /// `self - other`, exact.
    pub fn sub(self, other: Ratio) -> Result<Ratio, RatioError> {
        self.0
            .checked_sub(&other.0)
            .map(Ratio)
            .ok_or(RatioError::Overflow)
    }

    /// `self * other`, exact.
    pub fn mul(self, other: Ratio) -> Result<Ratio, RatioError> {
        self.0
            .checked_mul(&other.0)
            .map(Ratio)
            .ok_or(RatioError::Overflow)
    }

    /// `self / other`, exact.
    pub fn div(self, other: Ratio) -> Result<Ratio, RatioError> {
        if other.is_zero() {
            return Err(RatioError::DivisionByZero);
        }
        self.0
            .checked_div(&other.0)
            .map(Ratio)
            .ok_or(RatioError::Overflow)
    }

    /// The opposite value.
    pub fn neg(self) -> Ratio {
        Ratio(-self.0)
    }

    /// The greatest whole number that is not above `self`.
    pub fn floor(self) -> i128 {
        self.num().div_euclid(self.den())
    }

    /// The least whole number that is not below `self`.
    pub fn ceil(self) -> i128 {
        -((-self.num()).div_euclid(self.den()))
    }

    /// The greatest multiple of `step` that is not above `self`; `step` must be above zero.
    pub fn floor_to(self, step: Ratio) -> Result<Ratio, RatioError> {
        Ratio::whole(self.div(step)?.floor()).mul(step)
    }

    /// The least multiple of `step` that is not below `self`; `step` must be above zero.
    pub fn ceil_to(self, step: Ratio) -> Result<Ratio, RatioError> {
        Ratio::whole(self.div(step)?.ceil()).mul(step)
    }

    /// The nearest floating-point number: for display alone.
    pub fn as_f64(self) -> f64 {
        self.num() as f64 / self.den() as f64
    }

    /// Reads a decimal such as `12`, `0.05` or `14.900`, exactly; no sign, exponent or underscore.
    pub fn parse_decimal(text: &str) -> Option<Ratio> {
        let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
        let digits = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
        let has_point = text.contains('.');
        if whole.is_empty()
            || (has_point && fraction.is_empty())
            || !digits(whole)
            || !digits(fraction)
        {
            return None;
        }
        if whole.len() + fraction.len() > 36 {
            return None;
        }
        let num: i128 = format!("{whole}{fraction}").parse().ok()?;
        let den = 10i128.checked_pow(u32::try_from(fraction.len()).ok()?)?;
        Ratio::new(num, den).ok()
    }

    /// The value as an exact decimal, where it has one of at most 18 places.
    pub fn to_decimal(self) -> Option<String> {
        let mut places = 0usize;
        let mut scaled = self;
        while !scaled.is_whole() {
            places += 1;
            if places > 18 {
                return None;
            }
            scaled = scaled.mul(Ratio::whole(10)).ok()?;
        }
        let sign = if self.is_negative() { "-" } else { "" };
        let digits = format!(
            "{:0>width$}",
            scaled.num().unsigned_abs(),
            width = places + 1
        );
        let (whole, fraction) = digits.split_at(digits.len() - places);
        if places == 0 {
            Some(format!("{sign}{whole}"))
        } else {
            Some(format!("{sign}{whole}.{fraction}"))
        }
    }
}

impl PartialOrd for Ratio {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Ratio {
    fn cmp(&self, other: &Self) -> Ordering {
        self.0.cmp(&other.0)
    }
}

impl fmt::Debug for Ratio {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Display for Ratio {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(decimal) = self.to_decimal() {
            f.write_str(&decimal)
        } else {
            write!(f, "{}/{}", self.num(), self.den())
        }
    }
}

impl Serialize for Ratio {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        (self.num(), self.den()).serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Ratio {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let (num, den) = <(i128, i128)>::deserialize(deserializer)?;
        Ratio::new(num, den).map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decimal(text: &str) -> Ratio {
        Ratio::parse_decimal(text).expect("a decimal")
    }

    #[test]
    fn the_near_load_of_the_published_study() {
        // floor(10 * 0.9 * min(16.6504, 16.8997)) / 10 = 14.9
        let near = decimal("0.9")
            .mul(decimal("16.6504"))
            .unwrap()
            .floor_to(decimal("0.1"))
            .unwrap();
        assert_eq!(near, decimal("14.9"));
    }

    #[test]
    fn decimals_survive_where_floats_do_not() {
        assert_eq!(decimal("1.15").mul(Ratio::whole(100)).unwrap().floor(), 115);
        assert_eq!(decimal("0.29").mul(Ratio::whole(100)).unwrap().floor(), 29);
    }

    #[test]
    fn what_is_no_decimal_is_refused() {
        for text in ["", ".5", "5.", "-1", "+1", "1e3", "1_000", "1.2.3", " 1"] {
            assert_eq!(Ratio::parse_decimal(text), None, "{text:?}");
        }
    }

    #[test]
    fn rounding_down_and_up_of_negative_values() {
        let value = Ratio::new(-7, 2).unwrap();
        assert_eq!((value.floor(), value.ceil()), (-4, -3));
    }

    #[test]
    fn an_overflow_is_an_error() {
        let big = Ratio::whole(i128::MAX);
        assert_eq!(big.add(Ratio::ONE), Err(RatioError::Overflow));
        assert_eq!(Ratio::ONE.div(Ratio::ZERO), Err(RatioError::DivisionByZero));
    }

    #[test]
    fn shown_as_a_decimal_where_one_is_exact() {
        assert_eq!(Ratio::new(149, 10).unwrap().to_string(), "14.9");
        assert_eq!(Ratio::new(-1, 20).unwrap().to_string(), "-0.05");
        assert_eq!(Ratio::new(1, 3).unwrap().to_string(), "1/3");
    }

    proptest::proptest! {
        #[test]
        fn order_agrees_with_subtraction(a in -10_000i128..10_000, b in 1i128..500, c in -10_000i128..10_000, d in 1i128..500) {
            let (x, y) = (Ratio::new(a, b).unwrap(), Ratio::new(c, d).unwrap());
            proptest::prop_assert_eq!(x < y, y.sub(x).unwrap().is_positive());
        }

        #[test]
        fn floor_to_and_ceil_to_bracket(a in 0i128..1_000_000, b in 1i128..1000, s in 1i128..100) {
            let (x, step) = (Ratio::new(a, b).unwrap(), Ratio::new(s, 10).unwrap());
            let (low, high) = (x.floor_to(step).unwrap(), x.ceil_to(step).unwrap());
            proptest::prop_assert!(low <= x && x <= high);
            proptest::prop_assert!(high.sub(low).unwrap() <= step);
        }
    }
}
