//! Logarithms of probabilities of counts, precise for large ones too (Loader's saddle-point form).

use std::f64::consts::PI;

/// ln of the probability of `k` successes in `n` tries.
pub(crate) fn log_binomial(k: f64, n: f64, p: f64) -> f64 {
    let q = 1.0 - p;
    if k == 0.0 {
        return n * libm::log1p(-p);
    }
    if k == n {
        return n * libm::log(p);
    }
    let rest = n - k;
    stirling_error(n) - stirling_error(k) - stirling_error(rest) - deviance(k, n * p) - deviance(rest, n * q)
        + 0.5 * libm::log(n / (2.0 * PI * k * rest))
}

/// ln of the probability of the count `k` at this mean.
pub(crate) fn log_poisson(k: f64, mean: f64) -> f64 {
    if k == 0.0 {
        return -mean;
    }
    -stirling_error(k) - deviance(k, mean) - 0.5 * libm::log(2.0 * PI * k)
}

/// x ln(x / m) + m - x, also where x is near m.
fn deviance(x: f64, m: f64) -> f64 {
    let difference = x - m;
    if difference.abs() >= 0.1 * (x + m) {
        return x * libm::log(x / m) + m - x;
    }
    let v = difference / (x + m);
    let mut sum = difference * v;
    let mut term = 2.0 * x * v;
    for j in 1..100 {
        term *= v * v;
        let next = sum + term / f64::from(2 * j + 1);
        if next == sum {
            break;
        }
        sum = next;
    }
    sum
}

/// ln n! less Stirling's formula for it.
fn stirling_error(n: f64) -> f64 {
    if n <= 15.0 {
        return libm::lgamma(n + 1.0) - (n + 0.5) * libm::log(n) + n - 0.5 * libm::log(2.0 * PI);
    }
    let square = n * n;
    (1.0 / 12.0
        - (1.0 / 360.0 - (1.0 / 1260.0 - (1.0 / 1680.0 - 1.0 / 1188.0 / square) / square) / square) / square)
        / n
}
