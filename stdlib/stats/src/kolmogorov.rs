//! The distribution of Kolmogorov's D for finite n.
//!
//! For n·D² < 4: Marsaglia, Tsang and Wang, "Evaluating Kolmogorov's Distribution" (2003). Above:
//! twice Smirnov's one-sided tail, whose relative error there is below e⁻²⁴ (both sides at once).

use statrs::function::gamma::ln_gamma;

/// The most values.
pub(crate) const MAX_VALUES: usize = 4_096;

/// P(D ≥ `distance`) for `n` values, 1 ≤ n ≤ `MAX_VALUES`.
pub(crate) fn upper_tail(n: usize, distance: f64) -> f64 {
    let count = n as f64;
    if distance >= 1.0 {
        return 0.0;
    }
    if distance * count <= 0.5 {
        return 1.0;
    }
    if count * distance * distance < 4.0 {
        return (1.0 - below(n, distance)).clamp(0.0, 1.0);
    }
    (2.0 * one_sided(n, distance)).min(1.0)
}

/// Smirnov: P(D⁺ ≥ d) = d Σⱼ C(n, j) (d + j/n)^(j−1) (1 − d − j/n)^(n−j), over j ≤ n(1 − d).
fn one_sided(n: usize, distance: f64) -> f64 {
    let count = n as f64;
    let most = (count * (1.0 - distance)).floor() as usize;
    let ln_factorial = ln_gamma(count + 1.0);
    (0..=most)
        .map(|step| {
            let j = step as f64;
            let rest = 1.0 - distance - j / count;
            if rest <= 0.0 {
                return 0.0;
            }
            let ln_choose = ln_factorial - ln_gamma(j + 1.0) - ln_gamma(count - j + 1.0);
            let ln_term =
                ln_choose + (j - 1.0) * (distance + j / count).ln() + (count - j) * rest.ln();
            distance * ln_term.exp()
        })
        .sum()
}

/// P(D < d): n!/nⁿ times the middle of the n-th power of a band matrix.
fn below(n: usize, distance: f64) -> f64 {
    let count = n as f64;
    let k = (count * distance) as usize + 1;
    let size = 2 * k - 1;
    let h = k as f64 - count * distance;
    let (power, mut exponent) = band(size, h).power(n);
    let mut value = power.cells[(k - 1) * size + k - 1];
    for step in 1..=n {
        value = value * step as f64 / count;
        if value < 1e-140 {
            value *= 1e140;
            exponent -= 140;
        }
    }
    value * 10f64.powi(exponent)
}

struct Matrix {
    size: usize,
    cells: Vec<f64>,
}

fn band(size: usize, h: f64) -> Matrix {
    let mut cells = vec![0.0; size * size];
    for row in 0..size {
        for column in 0..size.min(row + 2) {
            cells[row * size + column] = 1.0;
        }
    }
    for index in 0..size {
        cells[index * size] -= h.powi(index as i32 + 1);
        cells[(size - 1) * size + index] -= h.powi((size - index) as i32);
    }
    if 2.0 * h - 1.0 > 0.0 {
        cells[(size - 1) * size] += (2.0 * h - 1.0).powi(size as i32);
    }
    for row in 0..size {
        for column in 0..size.min(row + 1) {
            for factor in 1..=row - column + 1 {
                cells[row * size + column] /= factor as f64;
            }
        }
    }
    Matrix { size, cells }
}

impl Matrix {
    /// The `n`-th power as a matrix and a decimal exponent that keeps it from overflow.
    fn power(self, n: usize) -> (Matrix, i32) {
        if n == 1 {
            return (self, 0);
        }
        let size = self.size;
        let odd = (n % 2 == 1).then(|| Matrix {
            size,
            cells: self.cells.clone(),
        });
        let (half, half_exponent) = self.power(n / 2);
        let mut product = half.times(&half);
        let mut exponent = 2 * half_exponent;
        if let Some(odd) = odd {
            product = odd.times(&product);
        }
        if product.cells[(size / 2) * size + size / 2] > 1e140 {
            product.cells.iter_mut().for_each(|cell| *cell *= 1e-140);
            exponent += 140;
        }
        (product, exponent)
    }

    fn times(&self, other: &Matrix) -> Matrix {
        let size = self.size;
        let mut cells = vec![0.0; size * size];
        for (row, out) in cells.chunks_mut(size).enumerate() {
            for inner in 0..size {
                let factor = self.cells[row * size + inner];
                let line = &other.cells[inner * size..(inner + 1) * size];
                for (cell, value) in out.iter_mut().zip(line) {
                    *cell += factor * value;
                }
            }
        }
        Matrix { size, cells }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The example printed in the paper: P(D₁₀ < 0.274) = 0.6284796154565…
    #[test]
    fn the_papers_example() {
        assert!((below(10, 0.274) - 0.628_479_615_456_504_3).abs() < 1e-13);
    }

    /// From the same definition in 60-digit decimal arithmetic.
    #[test]
    fn against_arithmetic_of_sixty_digits() {
        for (n, distance, p) in [
            (10, 0.178_514_919_330_431_73, 0.853_988_741_118_141_8),
            (200, 0.030_237_745_405_390_815, 0.990_612_271_485_145_5),
            (768, 0.019_101_663_026_185_822, 0.936_880_685_825_539),
        ] {
            assert!((upper_tail(n, distance) - p).abs() < 1e-12, "{n}");
        }
    }

    /// For one value D is uniform on [½, 1].
    #[test]
    fn one_value_by_hand() {
        for step in 0u8..=20 {
            let d = f64::from(step) / 20.0;
            let expected = if d < 0.5 { 1.0 } else { 2.0 - 2.0 * d };
            assert!((upper_tail(1, d) - expected).abs() < 1e-12, "{d}");
        }
    }

    #[test]
    fn both_forms_meet_where_they_change_over() {
        for n in [20usize, 200, 1_000] {
            let d = 2.0 / (n as f64).sqrt();
            let two_sided = 1.0 - below(n, d * (1.0 - 1e-12));
            assert!(
                (2.0 * one_sided(n, d) / two_sided - 1.0).abs() < 1e-6,
                "{n}"
            );
        }
    }
}
