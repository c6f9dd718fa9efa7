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
    expect![[r#"
        `values`: the list is empty; give at least one value
        `values`: expected text and numbers, found null
        `values`: expected text and finite numbers, found NaN
        `weights`: expected one weight per value, found 1 weights for 2 values
        `weights`: all are 0; give at least one value a weight above 0
        `weights`: expected finite numbers from 0 up, found -1
        `weights`: expected finite numbers from 0 up, found inf
        `values`: no lists; give one list per value of the category
        `values.a`: the list is empty; give at least one value
        `low`: expected at most `high` (0), found 1; swap the two
        `low`: expected a finite number, found NaN
        `high`: too far from `low`; the difference must be a finite number
        `stddev`: expected a number from 0 up, found -1
        `p`: expected a probability from 0 to 1, found 1.5
        `p`: expected a probability from 0 to 1, found NaN
        `n`: expected at most 9007199254740992, found 18446744073709551615
        `mean`: expected at most 1e15, found 1e300
        `mean`: expected a number from 0 up, found -1
        `start`: `yesterday` is not a date; write it as 2024-05-31 or 2024-05-31T14:30:00
        `end`: expected a time after `start` (2024-01-01), found 2024-01-01
        `start`: `2024-02-30` is not a date; write it as 2024-05-31 or 2024-05-31T14:30:00
        `dt_max`: expected more than `dt_min` (5), found 5
        `unit`: a timedelta has no months or years; use D, h, m or s
        `dt_max`: expected at most 400000000000, found 18446744073709551615
    "#]]
    .assert_eq(&found);
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
    expect![[r#"
        `dist_name`: unknown distribution `normal`; did you mean `norm`?
        `dist_name`: unknown distribution `gama`; did you mean `gamma`?
        `dist_name`: unknown distribution `weibull`; did you mean `weibull_min`?
        `dist_params.a`: missing; `gamma` takes a, loc, scale
        `dist_params.b`: unknown; `gamma` takes a, loc, scale
        `dist_params.a`: given twice; remove one
        `dist_params.a`: expected a finite number, found NaN
        `dist_params.a`: expected a number above 0, found 0
        `dist_params.scale`: expected a number above 0, found 0
        `dist_params.loc`: expected a finite number, found inf
        `dist_params.scale`: unknown; `poisson` takes mu, loc
        `dist_params.loc`: expected a whole number, found 0.5
        `dist_params`: `loguniform` needs a below b
        `dist_params.b`: expected a number, found NaN
        `dist_params`: `hypergeom` needs M from 1 to 1e9, and n and N at most M
        `dist_params`: `hypergeom` needs M from 1 to 1e9, and n and N at most M
        `dist_params.a`: expected a number above 1, found 1
        `dist_params`: `randint` needs low below high (which is exclusive)
        `dist_params.n`: expected a whole number from 0 up, found 1.5
    "#]]
    .assert_eq(&out);
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
    expect![[r#"
        the value of column `parent` is missing
        the value of column `parent` is `b`, for which `values` of the subcategory has no list; add one
        the value of column `parent` is `None`, for which `values` of the subcategory has no list; add one
        the value of column `start` is missing
        the value of column `start` is a whole number, not a date; refer to a datetime column
        the value of column `start` is `soon`, which is not a date; refer to a datetime column
        the value of column `start` plus the sampled time is after the year 9999; use a smaller `dt_max`
    "#]]
    .assert_eq(&out);
}
