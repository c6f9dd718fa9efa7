//! Continuous distributions.

use std::f64::consts::{FRAC_PI_2, FRAC_PI_4, PI};

use super::Domain::{Extended, NotNegative, NotZero, OpenShare, Positive, Probability, Real};
use super::{Entry, Rule, Shapes, row, row_with_rule};
use crate::draw::{
    beta, chi_square, exponential as exp1, gamma, log_gamma_draw, normal, poisson, sign, truncated_normal,
    von_mises,
};
use crate::stream::Stream;

const ORDERED: Rule = ("a below b", |p| p[0] < p[1]);
const POSITIVE_A: Shapes = &[("a", Positive)];
const POSITIVE_AB: Shapes = &[("a", Positive), ("b", Positive)];
const POSITIVE_C: Shapes = &[("c", Positive)];
const POSITIVE_CD: Shapes = &[("c", Positive), ("d", Positive)];
const POSITIVE_DF: Shapes = &[("df", Positive)];

/// The distributions in common use.
pub(super) const ENTRIES: &[Entry] = &[
    row("arcsine", &[], |_, s| square(libm::sin(FRAC_PI_2 * s.open_unit()))),
    row("beta", POSITIVE_AB, |p, s| beta(p[0], p[1], s)),
    row("cauchy", &[], |_, s| cauchy(s)),
    row("chi", POSITIVE_DF, |p, s| chi_square(p[0], s).sqrt()),
    row("chi2", POSITIVE_DF, |p, s| chi_square(p[0], s)),
    row("erlang", POSITIVE_A, |p, s| gamma(p[0], s)),
    row("expon", &[], |_, s| exp1(s)),
    row("f", &[("dfn", Positive), ("dfd", Positive)], |p, s| {
        let (top, bottom) = (log_gamma_draw(p[0] / 2.0, s), log_gamma_draw(p[1] / 2.0, s));
        libm::exp(top - bottom) * (p[1] / p[0])
    }),
    row("gamma", POSITIVE_A, |p, s| gamma(p[0], s)),
    row("gumbel_l", &[], |_, s| libm::log(exp1(s))),
    row("gumbel_r", &[], |_, s| -libm::log(exp1(s))),
    row("halfnorm", &[], |_, s| normal(s).abs()),
    row("invgamma", POSITIVE_A, |p, s| libm::exp(-log_gamma_draw(p[0], s))),
    row("invgauss", &[("mu", Positive)], |p, s| inverse_gauss(p[0], s)),
    row("laplace", &[], |_, s| sign(s) * exp1(s)),
    row("logistic", &[], |_, s| logistic(s)),
    row("lognorm", &[("s", Positive)], |p, s| libm::exp(p[0] * normal(s))),
    row_with_rule("loguniform", POSITIVE_AB, ORDERED, |p, s| log_uniform(p[0], p[1], s)),
    row("norm", &[], |_, s| normal(s)),
    row("pareto", &[("b", Positive)], |p, s| libm::exp(exp1(s) / p[0])),
    row("powerlaw", POSITIVE_A, |p, s| libm::exp(-exp1(s) / p[0])),
    row("rayleigh", &[], |_, s| (2.0 * exp1(s)).sqrt()),
    row_with_rule("reciprocal", POSITIVE_AB, ORDERED, |p, s| log_uniform(p[0], p[1], s)),
    row("skewnorm", &[("a", Real)], |p, s| skew_normal(p[0], s)),
    row("t", POSITIVE_DF, |p, s| normal(s) / root_mean_square(p[0], s)),
    row("triang", &[("c", Probability)], |p, s| triangle(p[0], s)),
    row_with_rule("truncnorm", &[("a", Extended), ("b", Extended)], ORDERED, |p, s| {
        truncated_normal(p[0], p[1], s)
    }),
    row("uniform", &[], |_, s| s.unit()),
    row("weibull_max", POSITIVE_C, |p, s| -libm::pow(exp1(s), 1.0 / p[0])),
    row("weibull_min", POSITIVE_C, |p, s| libm::pow(exp1(s), 1.0 / p[0])),
];

/// The others, most of them one line away from those above.
pub(super) const DERIVED: &[Entry] = &[
    row("anglit", &[], |_, s| libm::asin(s.unit().sqrt()) - FRAC_PI_4),
    row("betaprime", POSITIVE_AB, |p, s| {
        let (top, bottom) = (log_gamma_draw(p[0], s), log_gamma_draw(p[1], s));
        libm::exp(top - bottom)
    }),
    row("bradford", POSITIVE_C, |p, s| libm::expm1(s.unit() * libm::log1p(p[0])) / p[0]),
    row("burr", POSITIVE_CD, |p, s| libm::pow(libm::expm1(exp1(s) / p[1]), -1.0 / p[0])),
    row("burr12", POSITIVE_CD, |p, s| libm::pow(libm::expm1(exp1(s) / p[1]), 1.0 / p[0])),
    row("dgamma", POSITIVE_A, |p, s| sign(s) * gamma(p[0], s)),
    row("dweibull", POSITIVE_C, |p, s| sign(s) * libm::pow(exp1(s), 1.0 / p[0])),
    row("exponnorm", &[("K", Positive)], |p, s| normal(s) + p[0] * exp1(s)),
    row("exponweib", &[("a", Positive), ("c", Positive)], |p, s| {
        let part = libm::exp(-exp1(s) / p[0]);
        libm::pow(-libm::log1p(-part), 1.0 / p[1])
    }),
    row("fatiguelife", POSITIVE_C, |p, s| {
        let half = p[0] * normal(s) / 2.0;
        square(half + (1.0 + half * half).sqrt())
    }),
    row("fisk", POSITIVE_C, |p, s| libm::exp(logistic(s) / p[0])),
    row("foldcauchy", &[("c", NotNegative)], |p, s| (cauchy(s) + p[0]).abs()),
    row("foldnorm", &[("c", NotNegative)], |p, s| (normal(s) + p[0]).abs()),
    row("genextreme", &[("c", Real)], |p, s| -box_cox(libm::log(exp1(s)), p[0])),
    row("gengamma", &[("a", Positive), ("c", NotZero)], |p, s| libm::exp(log_gamma_draw(p[0], s) / p[1])),
    row("genlogistic", POSITIVE_C, |p, s| -libm::log(libm::expm1(exp1(s) / p[0]))),
    row("genpareto", &[("c", Real)], |p, s| box_cox(exp1(s), p[0])),
    row("gibrat", &[], |_, s| libm::exp(normal(s))),
    row("gompertz", POSITIVE_C, |p, s| libm::log1p(exp1(s) / p[0])),
    row("halfcauchy", &[], |_, s| cauchy(s).abs()),
    row("halflogistic", &[], |_, s| logistic(s).abs()),
    row("hypsecant", &[], |_, s| libm::log(libm::tan(FRAC_PI_2 * s.open_unit()))),
    row("invweibull", POSITIVE_C, |p, s| libm::pow(exp1(s), -1.0 / p[0])),
    row("johnsonsb", &[("a", Real), ("b", Positive)], |p, s| {
        1.0 / (1.0 + libm::exp((p[0] - normal(s)) / p[1]))
    }),
    row("johnsonsu", &[("a", Real), ("b", Positive)], |p, s| libm::sinh((normal(s) - p[0]) / p[1])),
    row("laplace_asymmetric", &[("kappa", Positive)], |p, s| exp1(s) / p[0] - exp1(s) * p[0]),
    row("levy", &[], |_, s| 1.0 / square(normal(s))),
    row("levy_l", &[], |_, s| -1.0 / square(normal(s))),
    row("loggamma", POSITIVE_C, |p, s| log_gamma_draw(p[0], s)),
    row("loglaplace", POSITIVE_C, |p, s| libm::exp(sign(s) * exp1(s) / p[0])),
    row("lomax", POSITIVE_C, |p, s| libm::expm1(exp1(s) / p[0])),
    row("maxwell", &[], |_, s| chi_square(3.0, s).sqrt()),
    row("moyal", &[], |_, s| -libm::log(chi_square(1.0, s))),
    row("nakagami", &[("nu", Positive)], |p, s| (gamma(p[0], s) / p[0]).sqrt()),
    row("nct", &[("df", Positive), ("nc", Real)], |p, s| (normal(s) + p[1]) / root_mean_square(p[0], s)),
    row("ncx2", &[("df", Positive), ("nc", NotNegative)], |p, s| {
        let more = poisson(p[1] / 2.0, s);
        chi_square(p[0] + 2.0 * more, s)
    }),
    row("pearson3", &[("skew", Real)], |p, s| pearson3(p[0], s)),
    row("rdist", POSITIVE_C, |p, s| 2.0 * beta(p[0] / 2.0, p[0] / 2.0, s) - 1.0),
    row("rice", &[("b", NotNegative)], |p, s| libm::hypot(normal(s) + p[0], normal(s))),
    row("semicircular", &[], |_, s| 2.0 * beta(1.5, 1.5, s) - 1.0),
    row_with_rule(
        "trapezoid",
        &[("c", Probability), ("d", Probability)],
        ("c at most d", |p| p[0] <= p[1]),
        |p, s| trapezoid(p[0], p[1], s),
    ),
    row("truncexpon", &[("b", Positive)], |p, s| -libm::log1p(s.unit() * libm::expm1(-p[0]))),
    row_with_rule(
        "truncpareto",
        &[("b", Positive), ("c", Positive)],
        ("c above 1", |p| p[1] > 1.0),
        |p, s| {
            let kept = -libm::expm1(-p[0] * libm::log(p[1]));
            libm::exp(-libm::log1p(-s.unit() * kept) / p[0])
        },
    ),
    row("vonmises", &[("kappa", NotNegative)], |p, s| von_mises(p[0], s)),
    row("wald", &[], |_, s| inverse_gauss(1.0, s)),
    row("wrapcauchy", &[("c", OpenShare)], |p, s| {
        let angle = 2.0 * libm::atan((1.0 - p[0]) / (1.0 + p[0]) * libm::tan(PI * (s.open_unit() - 0.5)));
        if angle < 0.0 { angle + 2.0 * PI } else { angle }
    }),
    row("tukeylambda", &[("lam", Real)], |p, s| {
        let u = s.open_unit();
        box_cox(libm::log(u), p[0]) - box_cox(libm::log1p(-u), p[0])
    }),
];

fn square(x: f64) -> f64 {
    x * x
}

fn cauchy(s: &mut Stream) -> f64 {
    libm::tan(PI * (s.open_unit() - 0.5))
}

fn logistic(s: &mut Stream) -> f64 {
    let u = s.open_unit();
    libm::log(u) - libm::log1p(-u)
}

/// (exp(c x) - 1) / c, and x where c is 0.
fn box_cox(x: f64, c: f64) -> f64 {
    if c == 0.0 { x } else { libm::expm1(c * x) / c }
}

fn log_uniform(a: f64, b: f64, s: &mut Stream) -> f64 {
    let (low, high) = (libm::log(a), libm::log(b));
    libm::exp(low + (high - low) * s.unit()).clamp(a, b)
}

fn root_mean_square(freedom: f64, s: &mut Stream) -> f64 {
    (chi_square(freedom, s) / freedom).sqrt()
}

fn skew_normal(a: f64, s: &mut Stream) -> f64 {
    let (slope, rest) = (a / libm::hypot(1.0, a), 1.0 / libm::hypot(1.0, a));
    slope * normal(s).abs() + rest * normal(s)
}

/// Michael, Schucany and Haas.
fn inverse_gauss(mu: f64, s: &mut Stream) -> f64 {
    let y = mu * square(normal(s));
    // The smaller root of the quadratic, without cancellation.
    let root = 2.0 * mu / (2.0 + y + (y * (4.0 + y)).sqrt());
    if s.unit() * (mu + root) <= mu { root } else { mu * mu / root }
}

fn triangle(c: f64, s: &mut Stream) -> f64 {
    let u = s.unit();
    if u < c { (u * c).sqrt() } else { 1.0 - ((1.0 - u) * (1.0 - c)).sqrt() }
}

fn trapezoid(c: f64, d: f64, s: &mut Stream) -> f64 {
    let height = 2.0 / (1.0 + d - c);
    let (rise, level) = (height * c / 2.0, height * (d - c));
    let u = s.unit();
    if u < rise {
        return (2.0 * c * u / height).sqrt();
    }
    if u < rise + level {
        return c + (u - rise) / height;
    }
    1.0 - (2.0 * (1.0 - d) * (1.0 - u) / height).max(0.0).sqrt()
}

fn pearson3(skew: f64, s: &mut Stream) -> f64 {
    // Below this the shape is so large that no double tells it from the normal distribution.
    if skew.abs() < 1e-7 {
        return normal(s);
    }
    let rate = 2.0 / skew;
    let shape = rate * rate;
    (gamma(shape, s) - shape) / rate
}
