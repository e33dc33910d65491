//! The exponential by its inverse distribution, in fixed point.

/// A number with 64 binary places.
pub type Q64 = u128;

/// ln 2 with 64 binary places, rounded down.
const LN2_Q64: u128 = 12_786_308_645_202_655_659;
/// Binary places of the logarithm that are computed.
const LOG2_STEPS: u32 = 60;
/// Nanoseconds in a second.
const NS: u128 = 1_000_000_000;

/// −ln((word + 1) / 2^64) with 64 binary places: a unit exponential from a uniform word.
///
/// The base-2 logarithm is taken bit by bit (normalise to 1.63 binary places, square, halve at 2),
/// 60 bits of it; the error is below 2^−58.
pub fn neg_ln_q64(word: u64) -> Q64 {
    let k = u128::from(word) + 1;
    let exponent = k.ilog2();
    let mut mantissa = if exponent > 63 {
        k >> (exponent - 63)
    } else {
        k << (63 - exponent)
    };
    let mut fraction = 0u128;
    for _ in 0..LOG2_STEPS {
        mantissa = (mantissa * mantissa) >> 63;
        fraction <<= 1;
        if mantissa >> 64 != 0 {
            fraction |= 1;
            mantissa >>= 1;
        }
    }
    let log2 = (u128::from(exponent) << 64) | (fraction << (64 - LOG2_STEPS));
    let below_64 = (64u128 << 64) - log2;
    (below_64 >> 64) * LN2_Q64 + (((below_64 & u128::from(u64::MAX)) * LN2_Q64) >> 64)
}

/// floor(sum · 10^9 · den / (num · 2^64)): the offset of an arrival whose unit exponentials add up
/// to `sum`, at the rate `num / den` a second. `None` where it does not fit.
pub fn offset_ns(sum: Q64, num: u128, den: u128) -> Option<u64> {
    let scale = NS.checked_mul(den)?;
    let high = (sum >> 64).checked_mul(scale)?;
    let low = (sum & u128::from(u64::MAX)).checked_mul(scale)? >> 64;
    u64::try_from(high.checked_add(low)?.checked_div(num)?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_ends_and_the_powers_of_two_are_exact() {
        assert_eq!(neg_ln_q64(u64::MAX), 0);
        assert_eq!(neg_ln_q64(0), 64 * LN2_Q64);
        assert_eq!(neg_ln_q64((1 << 63) - 1), LN2_Q64);
    }

    #[test]
    fn one_second_at_a_rate_of_one() {
        assert_eq!(offset_ns(1 << 64, 1, 1), Some(1_000_000_000));
        assert_eq!(offset_ns(1 << 64, 149, 10), Some(67_114_093));
        assert_eq!(offset_ns(u128::MAX, 1, 1 << 24), None);
    }

    proptest! {
        #[test]
        fn it_is_the_logarithm(word in any::<u64>()) {
            let exact = -((word as f64 + 1.0) / 2f64.powi(64)).ln();
            let fixed = neg_ln_q64(word) as f64 / 2f64.powi(64);
            prop_assert!((exact - fixed).abs() < 1e-12, "{exact} {fixed}");
        }

        #[test]
        fn it_falls(a in any::<u64>(), b in any::<u64>()) {
            let (low, high) = (a.min(b), a.max(b));
            prop_assert!(neg_ln_q64(low) >= neg_ln_q64(high));
        }
    }
}
