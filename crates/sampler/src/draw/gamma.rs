//! The gamma distribution (Marsaglia and Tsang) and its relatives.

use super::{MAX_TRIES, normal};
use crate::stream::Stream;

/// A gamma draw of this shape and scale 1.
pub(crate) fn gamma(shape: f64, stream: &mut Stream) -> f64 {
    if shape < 1.0 { libm::exp(log_gamma_draw(shape, stream)) } else { from_one_up(shape, stream) }
}

/// The logarithm of a gamma draw: small shapes give draws that a double cannot hold.
pub(crate) fn log_gamma_draw(shape: f64, stream: &mut Stream) -> f64 {
    if shape < 1.0 {
        return libm::log(from_one_up(shape + 1.0, stream)) + libm::log(stream.open_unit()) / shape;
    }
    libm::log(from_one_up(shape, stream))
}

fn from_one_up(shape: f64, stream: &mut Stream) -> f64 {
    let d = shape - 1.0 / 3.0;
    let c = 1.0 / (9.0 * d).sqrt();
    for _ in 0..MAX_TRIES {
        let x = normal(stream);
        let v = (1.0 + c * x) * (1.0 + c * x) * (1.0 + c * x);
        if v <= 0.0 {
            continue;
        }
        let log = libm::log(stream.open_unit());
        if log < 0.5 * x * x + d * (1.0 - v + libm::log(v)) {
            return d * v;
        }
    }
    f64::NAN
}

/// A beta draw, in (0, 1).
pub(crate) fn beta(a: f64, b: f64, stream: &mut Stream) -> f64 {
    let (x, y) = (log_gamma_draw(a, stream), log_gamma_draw(b, stream));
    1.0 / (1.0 + libm::exp(y - x))
}

/// A chi-square draw.
pub(crate) fn chi_square(freedom: f64, stream: &mut Stream) -> f64 {
    2.0 * gamma(freedom / 2.0, stream)
}
