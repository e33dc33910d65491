//! Tails of the binomial distribution in floating point, relative error about 1e-12.
//!
//! The mass of one count is Loader's saddle-point form (C. Loader, "Fast and Accurate Computation
//! of Binomial Probabilities", 2000), which keeps its digits where differences of logarithms of
//! the gamma function lose theirs; the tail is summed from that count outwards.

use std::f64::consts::PI;

use statrs::function::gamma::ln_gamma;

/// A chance and its complement, both given so that neither loses digits.
#[derive(Clone, Copy)]
pub(crate) struct Chance {
    pub(crate) hit: f64,
    pub(crate) miss: f64,
}

impl Chance {
    pub(crate) fn of(hit: f64) -> Chance {
        Chance {
            hit,
            miss: 1.0 - hit,
        }
    }

    fn opposite(self) -> Chance {
        Chance {
            hit: self.miss,
            miss: self.hit,
        }
    }
}

/// P(X ≤ `at_most`) for X ~ Bin(`trials`, `chance`); `at_most` ≤ `trials`.
pub(crate) fn lower_tail(trials: u64, at_most: u64, chance: Chance) -> f64 {
    if at_most == trials || chance.hit <= 0.0 {
        return 1.0;
    }
    if chance.miss <= 0.0 {
        return 0.0;
    }
    if at_most as f64 <= trials as f64 * chance.hit {
        return descending(trials, at_most, chance);
    }
    1.0 - descending(trials, trials - at_most - 1, chance.opposite())
}

/// P(X ≥ `at_least`) for X ~ Bin(`trials`, `chance`); `at_least` ≤ `trials`.
pub(crate) fn upper_tail(trials: u64, at_least: u64, chance: Chance) -> f64 {
    lower_tail(trials, trials - at_least, chance.opposite())
}

/// The sum of the masses from `from` down to 0, which is at or below the mean or next to it.
fn descending(trials: u64, from: u64, chance: Chance) -> f64 {
    let odds = chance.miss / chance.hit;
    let mut term = 1.0;
    let mut sum = 1.0;
    for count in (1..=from).rev() {
        term *= count as f64 / (trials - count + 1) as f64 * odds;
        sum += term;
        if term < sum * 1e-18 {
            break;
        }
    }
    ln_mass(trials, from, chance).exp() * sum
}

/// ln P(X = `count`).
fn ln_mass(trials: u64, count: u64, chance: Chance) -> f64 {
    let (n, k) = (trials as f64, count as f64);
    if count == 0 {
        return n * ln_near_one(chance.miss, chance.hit);
    }
    if count == trials {
        return n * ln_near_one(chance.hit, chance.miss);
    }
    let rest = n - k;
    stirling_error(n)
        - stirling_error(k)
        - stirling_error(rest)
        - deviance(k, n * chance.hit)
        - deviance(rest, n * chance.miss)
        + 0.5 * (n / (2.0 * PI * k * rest)).ln()
}

/// ln `value`, by way of its complement where that is the smaller one.
fn ln_near_one(value: f64, complement: f64) -> f64 {
    if complement < 0.5 {
        (-complement).ln_1p()
    } else {
        value.ln()
    }
}

/// ln n! − [ln(√(2πn)) + n ln n − n].
fn stirling_error(n: f64) -> f64 {
    if n <= 15.0 {
        return ln_gamma(n + 1.0) - (n + 0.5) * n.ln() + n - 0.5 * (2.0 * PI).ln();
    }
    let square = n * n;
    let series = 1.0 / 1260.0 - (1.0 / 1680.0 - 1.0 / 1188.0 / square) / square;
    (1.0 / 12.0 - (1.0 / 360.0 - series / square) / square) / n
}

/// x ln(x/m) + m − x, by a series where x and m are close.
fn deviance(x: f64, m: f64) -> f64 {
    let difference = x - m;
    if difference.abs() >= 0.1 * (x + m) {
        return x * (x / m).ln() + m - x;
    }
    let v = difference / (x + m);
    let mut sum = difference * v;
    let mut term = 2.0 * x * v;
    for step in 1..1000 {
        term *= v * v;
        let next = sum + term / f64::from(2 * step + 1);
        if next.to_bits() == sum.to_bits() {
            break;
        }
        sum = next;
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::binomial::{lower_tail_of, upper_tail_of};
    use assize_units::Ratio;
    use proptest::prelude::*;

    fn close(got: f64, want: f64) -> bool {
        (got - want).abs() <= want.abs() * 1e-12 + f64::MIN_POSITIVE
    }

    proptest! {
        // The chance is a multiple of 2^-10, so that its floating-point value is exact.
        #[test]
        fn the_tails_are_the_exact_ones(n in 1u32..600, k in 0u32..600, a in 0i128..=1024) {
            prop_assume!(k <= n);
            let exact = Ratio::new(a, 1024).unwrap();
            let chance = Chance::of(exact.as_f64());
            let low = lower_tail_of(n, k, exact).unwrap().as_f64();
            let high = upper_tail_of(n, k, exact).unwrap().as_f64();
            prop_assert!(close(lower_tail(n.into(), k.into(), chance), low));
            prop_assert!(close(upper_tail(n.into(), k.into(), chance), high));
        }
    }
}
