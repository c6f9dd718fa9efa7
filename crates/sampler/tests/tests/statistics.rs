//! Means, variances and frequencies of many draws, against the formulas.

use std::collections::BTreeMap;
use std::f64::consts::PI;

use anabranch_sampler::{Category, Gaussian, Sampler, Uniform};

use crate::support::{draws, numbers, scipy};

const COUNT: u64 = 4_000;
const NONE: f64 = f64::NAN;

/// Each distribution with its mean and variance; NaN where it has none, or none that is used here.
pub(crate) const DISTRIBUTIONS: &[(&str, f64, f64)] = &[
    ("anglit", 0.0, PI * PI / 16.0 - 0.5),
    ("arcsine", 0.5, 0.125),
    ("bernoulli p=0.3", 0.3, 0.21),
    ("beta a=2 b=3", 0.4, 0.04),
    ("betabinom n=10 a=2 b=3", 4.0, 6.0),
    ("betaprime a=2 b=6", 0.4, 0.14),
    ("binom n=40 p=0.4", 16.0, 9.6),
    ("boltzmann lambda_=0.5 N=10", 1.4735, 2.7515),
    ("bradford c=1", 0.442_695, 0.081_2),
    ("burr c=4 d=2", 1.388_4, 0.428_5),
    ("burr12 c=4 d=2", 0.833_041, 0.091_4),
    ("cauchy", NONE, NONE),
    ("chi df=3", 1.595_77, 0.453_5),
    ("chi2 df=4", 4.0, 8.0),
    ("dgamma a=2", 0.0, 6.0),
    ("dlaplace a=0.8", 0.0, 2.0 * 0.449_329 / 0.303_239),
    ("dweibull c=2", 0.0, 1.0),
    ("erlang a=3 scale=2", 6.0, 12.0),
    ("expon loc=1 scale=2", 3.0, 4.0),
    ("exponnorm K=1.5", 1.5, 3.25),
    ("exponweib a=1 c=2", 0.886_227, 0.214_602),
    ("f dfn=5 dfd=20", 20.0 / 18.0, 0.709_877),
    ("fatiguelife c=0.5", 1.125, 0.328_125),
    ("fisk c=5", 1.068_96, 0.178_9),
    ("foldcauchy c=1", NONE, NONE),
    ("foldnorm c=1", 1.166_63, 0.638_97),
    ("gamma a=2 scale=3", 6.0, 18.0),
    ("genextreme c=0.2", 0.409_16, 1.105_8),
    ("gengamma a=2 c=2", 1.329_34, 0.232_85),
    ("genlogistic c=1", 0.0, PI * PI / 3.0),
    ("genpareto c=0.1", 1.111_11, 1.543_2),
    ("geom p=0.25", 4.0, 12.0),
    ("gibrat", 1.648_72, NONE),
    ("gompertz c=1", 0.596_347, 0.177),
    ("gumbel_l", -0.577_216, 1.644_93),
    ("gumbel_r", 0.577_216, 1.644_93),
    ("halfcauchy", NONE, NONE),
    ("halflogistic", 1.386_29, 1.368),
    ("halfnorm", 0.797_885, 0.363_38),
    ("hypergeom M=50 n=20 N=10", 4.0, 1.959_18),
    ("hypsecant", 0.0, PI * PI / 4.0),
    ("invgamma a=6", 0.2, 0.01),
    ("invgauss mu=0.5", 0.5, 0.125),
    ("invweibull c=6", 1.128_79, 0.0803),
    ("johnsonsb a=0 b=2", 0.5, NONE),
    ("johnsonsu a=0 b=2", 0.0, 0.324_361),
    ("laplace", 0.0, 2.0),
    ("laplace_asymmetric kappa=2", -1.5, 4.25),
    ("levy", NONE, NONE),
    ("levy_l", NONE, NONE),
    ("loggamma c=1", -0.577_216, 1.644_93),
    ("logistic", 0.0, PI * PI / 3.0),
    ("loglaplace c=8", 64.0 / 63.0, 0.034_58),
    ("lognorm s=0.5 scale=2", 2.266_3, 1.458_7),
    ("logser p=0.6", 1.637, 1.413),
    ("loguniform a=1 b=100", 21.497_6, 623.4),
    ("lomax c=12", 1.0 / 11.0, 0.009_917),
    ("maxwell", 1.595_77, 0.453_5),
    ("moyal", 1.270_36, PI * PI / 2.0),
    ("nakagami nu=2", 0.939_986, 0.116_427),
    ("nbinom n=5 p=0.4", 7.5, 18.75),
    ("nct df=10 nc=1", 1.083_7, 1.325_5),
    ("ncx2 df=3 nc=2", 5.0, 14.0),
    ("norm loc=5 scale=2", 5.0, 4.0),
    ("pareto b=12", 12.0 / 11.0, 0.009_917),
    ("pearson3 skew=1", 0.0, 1.0),
    ("planck lambda_=0.5", 1.541_49, 3.917_7),
    ("poisson mu=4", 4.0, 4.0),
    ("powerlaw a=2", 2.0 / 3.0, 1.0 / 18.0),
    ("randint low=1 high=7 loc=10", 13.5, 35.0 / 12.0),
    ("rayleigh", 1.253_31, 0.429_2),
    ("rdist c=2", 0.0, 1.0 / 3.0),
    ("reciprocal a=1 b=100", 21.497_6, 623.4),
    ("rice b=1", 1.548_57, 0.601_9),
    ("semicircular", 0.0, 0.25),
    ("skellam mu1=5 mu2=3", 2.0, 8.0),
    ("skewnorm a=4", 0.774_1, 0.400_8),
    ("t df=8", 0.0, 8.0 / 6.0),
    ("trapezoid c=0.25 d=0.75", 0.5, 0.052_08),
    ("triang c=0.3", 1.3 / 3.0, 0.79 / 18.0),
    ("truncexpon b=2", 0.686_965, 0.275_9),
    ("truncnorm a=-1 b=2", 0.229_6, 0.518_1),
    ("truncpareto b=2 c=3", 1.5, 0.221_9),
    ("tukeylambda lam=1", 0.0, 1.0 / 3.0),
    ("uniform loc=2 scale=4", 4.0, 4.0 / 3.0),
    ("vonmises kappa=4", 0.0, NONE),
    ("wald", 1.0, 1.0),
    ("weibull_max c=2", -0.886_227, 0.214_602),
    ("weibull_min c=2", 0.886_227, 0.214_602),
    ("wrapcauchy c=0.5", NONE, NONE),
    ("yulesimon alpha=8", 8.0 / 7.0, 0.217_7),
    ("zipf a=6", 1.019_26, 0.030_5),
];

fn moments(numbers: &[f64]) -> (f64, f64) {
    let count = numbers.len() as f64;
    let mean = numbers.iter().sum::<f64>() / count;
    (mean, numbers.iter().map(|number| (number - mean).powi(2)).sum::<f64>() / (count - 1.0))
}

fn check(name: &str, numbers: &[f64], mean: f64, variance: f64) -> Result<(), String> {
    let (found_mean, found_variance) = moments(numbers);
    let error = 5.0 * (found_variance / numbers.len() as f64).sqrt() + 1e-4;
    if (found_mean - mean).abs() > error {
        return Err(format!("{name}: mean {found_mean}, not {mean} (within {error})"));
    }
    if (found_variance / variance - 1.0).abs() > 0.25 {
        return Err(format!("{name}: variance {found_variance}, not {variance}"));
    }
    Ok(())
}

#[test]
fn distributions_have_their_moments() {
    let faults: Vec<String> = DISTRIBUTIONS
        .iter()
        .filter_map(|(text, mean, variance)| {
            check(text, &numbers(&scipy(text), COUNT), *mean, *variance).err()
        })
        .collect();
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn samplers_have_their_moments() {
    let all = [
        (
            "uniform",
            Sampler::Uniform(Uniform { low: 2.0, high: 6.0, decimal_places: None }),
            4.0,
            16.0 / 12.0,
        ),
        (
            "gaussian",
            Sampler::Gaussian(Gaussian { mean: 1.0, stddev: 3.0, decimal_places: Some(3) }),
            1.0,
            9.0,
        ),
        ("bernoulli", Sampler::Bernoulli { p: 0.2 }, 0.2, 0.16),
        ("binomial", Sampler::Binomial { n: 20, p: 0.1 }, 2.0, 1.8),
        ("binomial, rejected", Sampler::Binomial { n: 100, p: 0.7 }, 70.0, 21.0),
        ("binomial, large", Sampler::Binomial { n: 1 << 50, p: 0.5 }, 0.5 * 2f64.powi(50), 2f64.powi(48)),
        ("binomial, rare", Sampler::Binomial { n: 1 << 50, p: 2f64.powi(-48) }, 4.0, 4.0),
        ("poisson", Sampler::Poisson { mean: 3.0 }, 3.0, 3.0),
        ("poisson, rejected", Sampler::Poisson { mean: 30.0 }, 30.0, 30.0),
        ("poisson, large", Sampler::Poisson { mean: 1e15 }, 1e15, 1e15),
    ];
    let faults: Vec<String> = all
        .iter()
        .filter_map(|(name, sampler, mean, variance)| {
            check(name, &numbers(sampler, COUNT), *mean, *variance).err()
        })
        .collect();
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

/// The chi-square of counts against masses; cells that are expected less than 8 times are left out.
fn chi_square(numbers: &[f64], mass: impl Fn(i64) -> f64) -> (f64, usize) {
    let mut counts: BTreeMap<i64, f64> = BTreeMap::new();
    for number in numbers {
        *counts.entry(*number as i64).or_default() += 1.0;
    }
    let (low, high) = (*counts.keys().next().unwrap(), *counts.keys().last().unwrap());
    let cells = (low..=high).filter_map(|k| {
        let expected = mass(k) * numbers.len() as f64;
        let found = counts.get(&k).copied().unwrap_or(0.0);
        (expected >= 8.0).then(|| (found - expected).powi(2) / expected)
    });
    let cells: Vec<f64> = cells.collect();
    (cells.iter().sum(), cells.len())
}

fn log_factorial(k: i64) -> f64 {
    log_gamma(k as f64 + 1.0)
}

/// ln of the gamma function by Stirling's series above 10.
fn log_gamma(x: f64) -> f64 {
    if x < 10.0 {
        return log_gamma(x + 1.0) - x.ln();
    }
    (x - 0.5) * x.ln() - x + 0.5 * (2.0 * PI).ln() + 1.0 / (12.0 * x) - 1.0 / (360.0 * x.powi(3))
}

type Mass = Box<dyn Fn(i64) -> f64>;

fn choose(n: i64, k: i64) -> f64 {
    if (0..=n).contains(&k) {
        (log_factorial(n) - log_factorial(k) - log_factorial(n - k)).exp()
    } else {
        0.0
    }
}

#[test]
fn counts_have_their_frequencies() {
    let binomial =
        |n: i64, p: f64| move |k: i64| choose(n, k) * p.powi(k as i32) * (1.0 - p).powi((n - k) as i32);
    let poisson = |mean: f64| move |k: i64| (k as f64 * mean.ln() - mean - log_factorial(k)).exp();
    let zeta = 1.082_323_233_711_138;
    let all: Vec<(&str, Sampler, Mass)> = vec![
        ("binomial 10", Sampler::Binomial { n: 10, p: 0.3 }, Box::new(binomial(10, 0.3))),
        ("binomial 60", Sampler::Binomial { n: 60, p: 0.4 }, Box::new(binomial(60, 0.4))),
        ("binomial 60 mirrored", Sampler::Binomial { n: 60, p: 0.8 }, Box::new(binomial(60, 0.8))),
        ("poisson 2", Sampler::Poisson { mean: 2.0 }, Box::new(poisson(2.0))),
        ("poisson 12", Sampler::Poisson { mean: 12.0 }, Box::new(poisson(12.0))),
        ("poisson 80", Sampler::Poisson { mean: 80.0 }, Box::new(poisson(80.0))),
        (
            "hypergeom",
            scipy("hypergeom M=60 n=25 N=30"),
            Box::new(|k| choose(25, k) * choose(35, 30 - k) / choose(60, 30)),
        ),
        ("zipf", scipy("zipf a=4"), Box::new(move |k| (k as f64).powi(-4) / zeta)),
        ("logser", scipy("logser p=0.7"), Box::new(|k| 0.7f64.powi(k as i32) / k as f64 / -(0.3f64).ln())),
        ("geom", scipy("geom p=0.3"), Box::new(|k| 0.3 * 0.7f64.powi(k as i32 - 1))),
        ("nbinom", scipy("nbinom n=3 p=0.5"), Box::new(|k| choose(k + 2, 2) * 0.5f64.powi(3 + k as i32))),
        (
            "boltzmann",
            scipy("boltzmann lambda_=0.3 N=8"),
            Box::new(|k| (-0.3 * k as f64).exp() * (1.0 - (-0.3f64).exp()) / (1.0 - (-2.4f64).exp())),
        ),
    ];
    for (name, sampler, mass) in all {
        let (found, cells) = chi_square(&numbers(&sampler, 10_000), mass);
        let bound = cells as f64 + 5.0 * (2.0 * cells as f64).sqrt();
        assert!(cells >= 4 && found < bound, "{name}: {found} over {cells} cells");
    }
}

#[test]
fn continuous_draws_fill_their_quantiles() {
    for (text, cumulative) in [
        ("expon", (|x| 1.0 - (-x).exp()) as fn(f64) -> f64),
        ("gamma a=2", |x| 1.0 - (1.0 + x) * (-x).exp()),
        ("gamma a=1", |x| 1.0 - (-x).exp()),
        ("beta a=0.5 b=0.5", |x| 2.0 / PI * x.sqrt().asin()),
        ("t df=1", |x| 0.5 + x.atan() / PI),
        ("f dfn=2 dfd=2", |x| x / (1.0 + x)),
        ("chi2 df=2", |x| 1.0 - (-x / 2.0).exp()),
        ("genextreme c=-0.5", |x| (-(1.0 + 0.5 * x).powi(-2)).exp()),
        ("burr c=2 d=3", |x| (1.0 + x.powi(-2)).powi(-3)),
    ] {
        let mut buckets = [0.0f64; 20];
        for number in numbers(&scipy(text), 10_000) {
            buckets[((cumulative(number) * 20.0) as usize).min(19)] += 1.0;
        }
        let found: f64 = buckets.iter().map(|count| (count - 500.0).powi(2) / 500.0).sum();
        assert!(found < 50.0, "{text}: {found} {buckets:?}");
    }
}

#[test]
fn normal_quantiles() {
    let all = numbers(&scipy("norm"), 20_000);
    for (bound, share) in
        [(-3.0, 0.001_35), (-2.0, 0.022_75), (-1.0, 0.158_655), (0.0, 0.5), (1.0, 0.841_345), (2.5, 0.993_79)]
    {
        let found = all.iter().filter(|number| **number < bound).count() as f64 / all.len() as f64;
        let error = 5.0 * (share * (1.0 - share) / all.len() as f64).sqrt();
        assert!((found - share).abs() < error, "{bound}: {found} not {share}");
    }
}

#[test]
fn truncated_normals_stay_inside() {
    for text in
        ["a=-1 b=1", "a=3 b=4", "a=-40 b=-39", "a=8 b=inf", "a=-inf b=-30", "a=0 b=0.001", "a=50 b=51"]
    {
        let bounds: Vec<f64> = text.split(['=', ' ']).filter_map(|word| word.parse().ok()).collect();
        for number in numbers(&scipy(&format!("truncnorm {text}")), 200) {
            assert!((bounds[0]..=bounds[1]).contains(&number), "{text}: {number}");
        }
    }
    let (mean, _) = moments(&numbers(&scipy("truncnorm a=10 b=inf"), COUNT));
    assert!((mean - 10.098).abs() < 0.01, "{mean}");
}

#[test]
fn weights_are_frequencies() {
    let values = ["a", "b", "c", "d"].map(Into::into).to_vec();
    let weights = vec![0.0, 1.0, 3.0, 6.0];
    let sampler = Sampler::Category(Category { values, weights: Some(weights) });
    let mut counts: BTreeMap<String, f64> = BTreeMap::new();
    for value in draws(&sampler, 10_000) {
        *counts.entry(value.as_text().unwrap().to_owned()).or_default() += 1.0;
    }
    assert_eq!(counts.get("a"), None);
    for (name, expected) in [("b", 1_000.0), ("c", 3_000.0), ("d", 6_000.0)] {
        assert!((counts[name] - expected).abs() < 250.0, "{counts:?}");
    }
}
