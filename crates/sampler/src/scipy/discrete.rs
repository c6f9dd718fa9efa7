//! Discrete distributions.

use super::Domain::{AboveOne, Count, NotNegative, OpenShare, Positive, Probability, Share, Whole};
use super::{Entry, row, row_with_rule};
use crate::draw::{
    beta, binomial, exponential, gamma, geometric_from_zero, hypergeometric, log_series, poisson, zipf,
};

/// The largest population; its draw searches a number of steps that grows with the square root.
const MAX_POPULATION: f64 = 1e9;

pub(super) const ENTRIES: &[Entry] = &[
    row("bernoulli", &[("p", Probability)], |p, s| f64::from(u8::from(s.unit() < p[0]))),
    row("betabinom", &[("n", Count), ("a", Positive), ("b", Positive)], |p, s| {
        let chance = beta(p[1], p[2], s);
        binomial(p[0], chance, s)
    }),
    row("binom", &[("n", Count), ("p", Probability)], |p, s| binomial(p[0], p[1], s)),
    row_with_rule(
        "boltzmann",
        &[("lambda_", Positive), ("N", Count)],
        ("N above 0", |p| p[1] >= 1.0),
        |p, s| {
            let kept = -libm::expm1(-p[0] * p[1]);
            libm::floor(-libm::log1p(-s.unit() * kept) / p[0]).clamp(0.0, p[1] - 1.0)
        },
    ),
    row("dlaplace", &[("a", Positive)], |p, s| geometric_from_zero(p[0], s) - geometric_from_zero(p[0], s)),
    row("geom", &[("p", Share)], |p, s| 1.0 + geometric_from_zero(-libm::log1p(-p[0]), s)),
    row_with_rule(
        "hypergeom",
        &[("M", Count), ("n", Count), ("N", Count)],
        ("M from 1 to 1e9, and n and N at most M", |p| {
            (1.0..=MAX_POPULATION).contains(&p[0]) && p[1] <= p[0] && p[2] <= p[0]
        }),
        |p, s| hypergeometric(p[0], p[1], p[2], s),
    ),
    row("logser", &[("p", OpenShare)], |p, s| log_series(p[0], s)),
    row("nbinom", &[("n", Positive), ("p", Share)], |p, s| {
        let mean = gamma(p[0], s) * ((1.0 - p[1]) / p[1]);
        poisson(mean, s)
    }),
    row("planck", &[("lambda_", Positive)], |p, s| geometric_from_zero(p[0], s)),
    row("poisson", &[("mu", NotNegative)], |p, s| poisson(p[0], s)),
    row_with_rule(
        "randint",
        &[("low", Whole), ("high", Whole)],
        ("low below high (which is exclusive)", |p| p[0] < p[1]),
        |p, s| p[0] + s.below((p[1] - p[0]) as u64) as f64,
    ),
    row("skellam", &[("mu1", NotNegative), ("mu2", NotNegative)], |p, s| poisson(p[0], s) - poisson(p[1], s)),
    row("yulesimon", &[("alpha", Positive)], |p, s| {
        let (first, second) = (exponential(s), exponential(s));
        libm::ceil(-first / libm::log1p(-libm::exp(-second / p[0]))).max(1.0)
    }),
    row("zipf", &[("a", AboveOne)], |p, s| zipf(p[0], s)),
];
