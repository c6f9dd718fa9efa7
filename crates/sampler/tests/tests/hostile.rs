//! Parameters that must be refused, and extreme ones that must neither hang nor panic.

use std::fmt::Write as _;

use anabranch_sampler::{
    Category, ColumnKey, Datetime, Distribution, Gaussian, Sampler, Subcategory, TimeUnit, Timedelta, Uniform,
};
use anabranch_value::Value;
use expect_test::expect;

use crate::support::{compile, distribution, numbers, scipy};

const INFINITE: f64 = f64::INFINITY;
const NAN: f64 = f64::NAN;

fn category(values: &[f64], weights: &[f64]) -> Sampler {
    let values = values.iter().map(|value| Value::Float(*value)).collect();
    Sampler::Category(Category { values, weights: Some(weights.to_vec()) })
}

fn uniform(low: f64, high: f64) -> Sampler {
    Sampler::Uniform(Uniform { low, high, decimal_places: None })
}

fn datetime(start: &str, end: &str) -> Sampler {
    Sampler::Datetime(Datetime { start: start.to_owned(), end: end.to_owned(), unit: TimeUnit::Day })
}

fn timedelta(dt_min: u64, dt_max: u64, unit: TimeUnit) -> Sampler {
    Sampler::Timedelta(Timedelta { dt_min, dt_max, reference_column_name: "start".to_owned(), unit })
}

fn faults(samplers: &[Sampler]) -> String {
    let mut out = String::new();
    for sampler in samplers {
        let _ = writeln!(out, "{}", sampler.check().unwrap_err());
    }
    out
}

#[test]
fn refused_parameters() {
    let subcategory = |values: Vec<(String, Vec<Value>)>| {
        Sampler::Subcategory(Subcategory { category: "parent".to_owned(), values })
    };
    let found = faults(&[
        Sampler::Category(Category { values: Vec::new(), weights: None }),
        Sampler::Category(Category { values: vec![Value::Null], weights: None }),
        category(&[NAN], &[1.0]),
        category(&[1.0, 2.0], &[1.0]),
        category(&[1.0, 2.0], &[0.0, 0.0]),
        category(&[1.0, 2.0], &[1.0, -1.0]),
        category(&[1.0, 2.0], &[1.0, INFINITE]),
        subcategory(Vec::new()),
        subcategory(vec![("a".to_owned(), Vec::new())]),
        uniform(1.0, 0.0),
        uniform(NAN, 0.0),
        uniform(-1e308, 1e308),
        Sampler::Gaussian(Gaussian { mean: 0.0, stddev: -1.0, decimal_places: None }),
        Sampler::Bernoulli { p: 1.5 },
        Sampler::Bernoulli { p: NAN },
        Sampler::Binomial { n: u64::MAX, p: 0.5 },
        Sampler::Poisson { mean: 1e300 },
        Sampler::Poisson { mean: -1.0 },
        datetime("yesterday", "2024-01-01"),
        datetime("2024-01-01", "2024-01-01"),
        datetime("2024-02-30", "2024-03-01"),
        timedelta(5, 5, TimeUnit::Day),
        timedelta(0, 5, TimeUnit::Month),
        timedelta(0, u64::MAX, TimeUnit::Second),
    ]);
    expect![""].assert_eq(&found);
}

#[test]
fn refused_distributions() {
    let mut out = String::new();
    for text in [
        "normal",
        "gama a=1",
        "weibull",
        "gamma",
        "gamma a=1 b=2",
        "gamma a=1 a=2",
        "gamma a=NaN",
        "gamma a=0",
        "norm scale=0",
        "norm loc=inf",
        "poisson mu=1 scale=2",
        "poisson mu=1 loc=0.5",
        "loguniform a=2 b=1",
        "truncnorm a=1 b=NaN",
        "hypergeom M=10 n=11 N=1",
        "hypergeom M=1e12 n=11 N=1",
        "zipf a=1",
        "randint low=5 high=5",
        "binom n=1.5 p=0.5",
    ] {
        let _ = writeln!(out, "{}", distribution(text).unwrap_err());
    }
    expect![""].assert_eq(&out);
}

/// Whatever the parameters, a draw ends and is a finite number or an error.
#[test]
fn extreme_parameters() {
    let extremes = [1e-300, 1e-12, 1e-3, 0.5, 1.0 - 1e-12, 1.0, 1.000_000_1, 3.0, 1e3, 1e9, 1e15, 1e300];
    let key = ColumnKey::new(1, "extreme");
    for name in Distribution::names() {
        let entry = crate::statistics::DISTRIBUTIONS
            .iter()
            .find(|(text, _, _)| text.starts_with(&format!("{name} ")));
        let names: Vec<&str> = entry.map_or(Vec::new(), |(text, _, _)| {
            text.split(' ').skip(1).map(|word| word.split_once('=').unwrap().0).collect()
        });
        for (index, one) in extremes.iter().enumerate() {
            for other in [extremes[extremes.len() - 1 - index], *one] {
                let params = names.iter().enumerate();
                let params =
                    params.map(|(at, name)| ((*name).to_owned(), if at % 2 == 0 { *one } else { other }));
                let Ok(distribution) = Distribution::new(name, params.collect()) else { continue };
                let compiled = compile(&Sampler::Scipy { distribution, decimal_places: Some(3) });
                for row in 0..3 {
                    if let Ok(value) = compiled.sample(&mut key.stream(row, 0), None) {
                        assert!(value.as_number().unwrap().is_finite(), "{name}");
                    }
                }
            }
        }
    }
}

#[test]
fn edges_that_are_fine() {
    assert_eq!(numbers(&uniform(3.0, 3.0), 2), [3.0, 3.0]);
    assert_eq!(numbers(&Sampler::Bernoulli { p: 0.0 }, 3), [0.0; 3]);
    assert_eq!(numbers(&Sampler::Bernoulli { p: 1.0 }, 3), [1.0; 3]);
    assert_eq!(numbers(&Sampler::Binomial { n: 0, p: 0.5 }, 2), [0.0; 2]);
    assert_eq!(numbers(&Sampler::Binomial { n: 9, p: 1.0 }, 2), [9.0; 2]);
    assert_eq!(numbers(&Sampler::Poisson { mean: 0.0 }, 2), [0.0; 2]);
    assert_eq!(numbers(&category(&[1.0, 2.0], &[1e308, 0.0]), 3), [1.0; 3]);
    assert_eq!(numbers(&scipy("geom p=1"), 2), [1.0; 2]);
    assert_eq!(numbers(&scipy("hypergeom M=10 n=10 N=4"), 2), [4.0; 2]);
}

#[test]
fn inputs_that_do_not_fit() {
    let subcategory = Sampler::Subcategory(Subcategory {
        category: "parent".to_owned(),
        values: vec![("a".to_owned(), vec!["x".into()])],
    });
    let key = ColumnKey::new(1, "column");
    let mut out = String::new();
    for (sampler, input) in [
        (&subcategory, None),
        (&subcategory, Some(Value::from("b"))),
        (&subcategory, Some(Value::Null)),
        (&timedelta(0, 5, TimeUnit::Day), None),
        (&timedelta(0, 5, TimeUnit::Day), Some(Value::Int(3))),
        (&timedelta(0, 5, TimeUnit::Day), Some(Value::from("soon"))),
        (&timedelta(4, 5, TimeUnit::Day), Some(Value::from("9999-12-31"))),
    ] {
        let fault = compile(sampler).sample(&mut key.stream(0, 0), input.as_ref()).unwrap_err();
        let _ = writeln!(out, "{fault}");
    }
    expect![""].assert_eq(&out);
}
