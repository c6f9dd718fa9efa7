//! Draws from the distributions that others are made of, each by an exact algorithm.
//!
//! Every loop is bounded; a loop that runs out gives NaN, which [`crate::CompiledSampler`] reports.

mod normal;
mod gamma;
mod log_mass;
mod counts;

pub(crate) use counts::{binomial, geometric_from_zero, hypergeometric, log_series, poisson, zipf};
pub(crate) use gamma::{beta, chi_square, gamma, log_gamma_draw};
pub(crate) use normal::{normal, truncated_normal, von_mises};

use crate::stream::Stream;

/// The number of rejections after which a draw gives up; each draw accepts at least one in three.
pub(crate) const MAX_TRIES: u32 = 1_000;

/// An exponential draw of mean 1.
pub(crate) fn exponential(stream: &mut Stream) -> f64 {
    -libm::log(stream.open_unit())
}

/// -1 or 1.
pub(crate) fn sign(stream: &mut Stream) -> f64 {
    if stream.bits() >> 63 == 0 { -1.0 } else { 1.0 }
}
