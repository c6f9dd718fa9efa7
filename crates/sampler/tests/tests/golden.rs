//! The exact values of each sampler: a change of any of them breaks the datasets of others.

use anabranch_sampler::{
    Category, Datetime, Distribution, Gaussian, Sampler, Subcategory, TimeUnit, Timedelta, Uniform, Uuid,
};
use anabranch_value::Value;
use expect_test::{Expect, expect};

use crate::support::{draws, draws_with, lines, person, scipy};

fn check(sampler: &Sampler, expected: &Expect) {
    expected.assert_eq(&lines(&draws(sampler, 4)));
}

fn texts(items: &[&str]) -> Vec<Value> {
    items.iter().map(|item| Value::from(*item)).collect()
}

#[test]
fn identifiers() {
    check(&Sampler::Uuid(Uuid::default()), &expect![""]);
    let short = Uuid { prefix: Some("user-".to_owned()), short_form: true, uppercase: true };
    check(&Sampler::Uuid(short), &expect![""]);
}

#[test]
fn categories() {
    let values = texts(&["red", "green", "blue"]);
    check(&Sampler::Category(Category { values: values.clone(), weights: None }), &expect![""]);
    let weights = Some(vec![1.0, 0.0, 9.0]);
    check(&Sampler::Category(Category { values, weights }), &expect![""]);
    let numbers = vec![Value::Int(1), Value::Float(2.5)];
    check(&Sampler::Category(Category { values: numbers, weights: None }), &expect![""]);
}

#[test]
fn subcategories() {
    let sampler = Sampler::Subcategory(Subcategory {
        category: "animal".to_owned(),
        values: vec![("cat".to_owned(), texts(&["tabby", "siamese"])), ("5".to_owned(), texts(&["five"]))],
    });
    assert_eq!(sampler.depends_on(), Some("animal"));
    expect![""].assert_eq(&lines(&draws_with(&sampler, 4, Some(&"cat".into()))));
    expect![""].assert_eq(&lines(&draws_with(&sampler, 1, Some(&Value::Int(5)))));
}

#[test]
fn numbers() {
    check(&Sampler::Uniform(Uniform { low: -1.0, high: 1.0, decimal_places: None }), &expect![""]);
    check(&Sampler::Uniform(Uniform { low: 0.0, high: 100.0, decimal_places: Some(2) }), &expect![""]);
    check(&Sampler::Gaussian(Gaussian { mean: 10.0, stddev: 2.0, decimal_places: None }), &expect![""]);
    check(&Sampler::Gaussian(Gaussian { mean: 10.0, stddev: 2.0, decimal_places: Some(1) }), &expect![""]);
    check(&Sampler::Bernoulli { p: 0.5 }, &expect![""]);
    let distribution = Distribution::new("expon", vec![("scale".to_owned(), 10.0)]).unwrap();
    check(&Sampler::BernoulliMixture { p: 0.5, distribution }, &expect![""]);
    check(&Sampler::Binomial { n: 10, p: 0.3 }, &expect![""]);
    check(&Sampler::Binomial { n: 1_000_000, p: 0.3 }, &expect![""]);
    check(&Sampler::Poisson { mean: 3.5 }, &expect![""]);
    check(&Sampler::Poisson { mean: 1e6 }, &expect![""]);
}

#[test]
fn times() {
    let start = "2024-01-01".to_owned();
    for (unit, expected) in [
        (TimeUnit::Year, expect![""]),
        (TimeUnit::Month, expect![""]),
        (TimeUnit::Day, expect![""]),
        (TimeUnit::Hour, expect![""]),
        (TimeUnit::Second, expect![""]),
    ] {
        let params = Datetime { start: start.clone(), end: "2026-01-01".to_owned(), unit };
        check(&Sampler::Datetime(params), &expected);
    }
    let sampler = Sampler::Timedelta(Timedelta {
        dt_min: 1,
        dt_max: 5,
        reference_column_name: "ordered".to_owned(),
        unit: TimeUnit::Day,
    });
    assert_eq!(sampler.depends_on(), Some("ordered"));
    expect![""].assert_eq(&lines(&draws_with(&sampler, 4, Some(&"2024-02-27T12:00:00".into()))));
}

#[test]
fn distributions() {
    let mut out = String::new();
    for text in crate::statistics::DISTRIBUTIONS {
        let (text, _, _) = *text;
        let values: Vec<String> = draws(&scipy(text), 2).iter().map(Value::to_json).collect();
        out += &format!("{text}: {}\n", values.join(" "));
    }
    expect![""].assert_eq(&out);
    // Each of them is pinned.
    let pinned: Vec<&str> =
        crate::statistics::DISTRIBUTIONS.iter().map(|(text, _, _)| text.split(' ').next().unwrap()).collect();
    for name in Distribution::names() {
        assert!(pinned.contains(&name), "{name} has no pinned values");
    }
}

#[test]
fn persons() {
    for (locale, expected) in [("en_US", expect![""]), ("ja_JP", expect![""]), ("pt_BR", expect![""])] {
        expected.assert_eq(&lines(&draws(&Sampler::Person(person(locale)), 2)));
    }
    let mut with_persona = person("en_GB");
    with_persona.with_synthetic_personas = true;
    expect![""].assert_eq(&lines(&draws(&Sampler::Person(with_persona), 1)));
}
