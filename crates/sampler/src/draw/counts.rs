//! Counts: binomial, Poisson, hypergeometric and others.

use super::log_mass::{log_binomial, log_poisson};
use super::{MAX_TRIES, exponential};
use crate::stream::Stream;

/// Up to this expected count a search from 0 is quickest.
const SEARCH_BELOW: f64 = 10.0;
/// A search from 0 for a mean below [`SEARCH_BELOW`] passes this with a probability that no double has.
const SEARCH_END: u32 = 1_000;
/// Larger counts are not whole in a double.
const MAX_COUNT: f64 = 9_007_199_254_740_992.0;

/// The number of successes in `n` tries.
pub(crate) fn binomial(n: f64, p: f64, stream: &mut Stream) -> f64 {
    if p > 0.5 {
        return n - binomial(n, 1.0 - p, stream);
    }
    if n == 0.0 || p == 0.0 {
        return 0.0;
    }
    if n * p >= SEARCH_BELOW {
        return binomial_by_rejection(n, p, stream);
    }
    let odds = p / (1.0 - p);
    let mut mass = libm::exp(n * libm::log1p(-p));
    let mut left = stream.unit();
    for k in 0..SEARCH_END {
        let k = f64::from(k);
        if left < mass || k >= n {
            return k;
        }
        left -= mass;
        mass *= (n - k) / (k + 1.0) * odds;
    }
    n.min(f64::from(SEARCH_END))
}

/// Hörmann's BTRS.
fn binomial_by_rejection(n: f64, p: f64, stream: &mut Stream) -> f64 {
    let deviation = (n * p * (1.0 - p)).sqrt();
    let b = 1.15 + 2.53 * deviation;
    let a = -0.0873 + 0.0248 * b + 0.01 * p;
    let centre = n * p + 0.5;
    let quick = 0.92 - 4.2 / b;
    let alpha = (2.83 + 5.1 / b) * deviation;
    let mode = log_binomial(libm::floor((n + 1.0) * p), n, p);
    for _ in 0..MAX_TRIES {
        let u = stream.unit() - 0.5;
        let v = stream.open_unit();
        let edge = 0.5 - u.abs();
        let k = libm::floor((2.0 * a / edge + b) * u + centre);
        if !(0.0..=n).contains(&k) {
            continue;
        }
        if edge >= 0.07 && v <= quick {
            return k;
        }
        if libm::log(v * alpha / (a / (edge * edge) + b)) <= log_binomial(k, n, p) - mode {
            return k;
        }
    }
    f64::NAN
}

/// The number of events at this mean.
pub(crate) fn poisson(mean: f64, stream: &mut Stream) -> f64 {
    if mean.is_nan() || mean > MAX_COUNT {
        return f64::NAN;
    }
    if mean >= SEARCH_BELOW {
        return poisson_by_rejection(mean, stream);
    }
    let mut mass = libm::exp(-mean);
    let mut left = stream.unit();
    for k in 0..SEARCH_END {
        if left < mass {
            return f64::from(k);
        }
        left -= mass;
        mass *= mean / f64::from(k + 1);
        // The rest of the masses is lost in rounding.
        if mass == 0.0 {
            return f64::from(k);
        }
    }
    f64::NAN
}

/// Hörmann's PTRS.
fn poisson_by_rejection(mean: f64, stream: &mut Stream) -> f64 {
    let b = 0.931 + 2.53 * mean.sqrt();
    let a = -0.059 + 0.02483 * b;
    let quick = 0.9277 - 3.6224 / (b - 2.0);
    let inverse_alpha = 1.1239 + 1.1328 / (b - 3.4);
    for _ in 0..MAX_TRIES {
        let u = stream.unit() - 0.5;
        let v = stream.open_unit();
        let edge = 0.5 - u.abs();
        let k = libm::floor((2.0 * a / edge + b) * u + mean + 0.43);
        if edge >= 0.07 && v <= quick {
            return k;
        }
        if k < 0.0 || !k.is_finite() || (edge < 0.013 && v > edge) {
            continue;
        }
        if libm::log(v * inverse_alpha / (a / (edge * edge) + b)) <= log_poisson(k, mean) {
            return k;
        }
    }
    f64::NAN
}

/// The number of marked items among `drawn` of `total`, of which `marked` are marked: a search outwards from the mode.
pub(crate) fn hypergeometric(total: f64, marked: f64, drawn: f64, stream: &mut Stream) -> f64 {
    let (least, most) = ((drawn + marked - total).max(0.0), drawn.min(marked));
    if least == most {
        return least;
    }
    let plain = total - marked;
    let mode = libm::floor((drawn + 1.0) * (marked + 1.0) / (total + 2.0)).clamp(least, most);
    let p = drawn / total;
    let peak = libm::exp(
        log_binomial(mode, marked, p) + log_binomial(drawn - mode, plain, p) - log_binomial(drawn, total, p),
    );
    let mut left = stream.unit() - peak;
    let (mut up, mut down) = ((mode, peak), (mode, peak));
    while left >= 0.0 && (up.1 > 0.0 || down.1 > 0.0) {
        let (k, mass) = up;
        up = (k + 1.0, mass * (marked - k) * (drawn - k) / ((k + 1.0) * (plain - drawn + k + 1.0)));
        if up.1 > 0.0 {
            left -= up.1;
            if left < 0.0 {
                return up.0;
            }
        }
        let (k, mass) = down;
        down = (k - 1.0, mass * k * (plain - drawn + k) / ((marked - k + 1.0) * (drawn - k + 1.0)));
        if down.1 > 0.0 {
            left -= down.1;
            if left < 0.0 {
                return down.0;
            }
        }
    }
    mode
}

/// A count from 0 up, each less frequent than the one before by the factor exp(-rate).
pub(crate) fn geometric_from_zero(rate: f64, stream: &mut Stream) -> f64 {
    libm::floor(exponential(stream) / rate)
}

/// A logarithmic-series draw (Kemp).
pub(crate) fn log_series(p: f64, stream: &mut Stream) -> f64 {
    let v = stream.open_unit();
    if v >= p {
        return 1.0;
    }
    let q = -libm::expm1(libm::log1p(-p) * stream.open_unit());
    if v <= q * q {
        return libm::floor(1.0 + libm::log(v) / libm::log(q));
    }
    if v >= q { 1.0 } else { 2.0 }
}

/// A Zipf draw (Devroye), at most 2^53.
pub(crate) fn zipf(a: f64, stream: &mut Stream) -> f64 {
    let less = a - 1.0;
    let smallest = libm::exp(-less * libm::log(MAX_COUNT));
    let b = libm::exp2(less);
    for _ in 0..MAX_TRIES {
        let u = smallest + (1.0 - smallest) * stream.open_unit();
        let v = stream.unit();
        let x = libm::floor(libm::exp(-libm::log(u) / less));
        if !(1.0..=MAX_COUNT).contains(&x) {
            continue;
        }
        let step = libm::log1p(1.0 / x) * less;
        // b and exp(step) may be infinite together; their ratio is not.
        let scale = libm::exp(step - less * std::f64::consts::LN_2);
        let excess = if less < 1.0 {
            libm::expm1(step) / libm::expm1(less * std::f64::consts::LN_2)
        } else {
            (libm::exp(step) - 1.0) / (b - 1.0)
        };
        let excess = if excess.is_nan() { scale } else { excess };
        if v * x * excess <= scale {
            return x;
        }
    }
    f64::NAN
}
