//! Short ways to write samplers down and to draw from them.

use anabranch_sampler::{ColumnKey, CompiledSampler, Date, Distribution, Error, Person, Sampler};
use anabranch_value::Value;

pub(crate) const SEED: u64 = 17;

pub(crate) fn as_of() -> Date {
    Date::new(2026, 11, 16).unwrap()
}

pub(crate) fn compile(sampler: &Sampler) -> CompiledSampler {
    sampler.compile(as_of()).unwrap()
}

pub(crate) fn draws_with(sampler: &Sampler, count: u64, input: Option<&Value>) -> Vec<Value> {
    let compiled = compile(sampler);
    let key = ColumnKey::new(SEED, "column");
    (0..count).map(|row| compiled.sample(&mut key.stream(row, 0), input).unwrap()).collect()
}

pub(crate) fn draws(sampler: &Sampler, count: u64) -> Vec<Value> {
    draws_with(sampler, count, None)
}

pub(crate) fn numbers(sampler: &Sampler, count: u64) -> Vec<f64> {
    draws(sampler, count).iter().map(|value| value.as_number().unwrap()).collect()
}

/// `norm` or `gamma a=2 scale=3`.
pub(crate) fn distribution(text: &str) -> Result<Distribution, Error> {
    let mut words = text.split(' ');
    let name = words.next().unwrap();
    let params = words.map(|word| {
        let (name, number) = word.split_once('=').unwrap();
        (name.to_owned(), number.parse().unwrap())
    });
    Distribution::new(name, params.collect())
}

pub(crate) fn scipy(text: &str) -> Sampler {
    Sampler::Scipy { distribution: distribution(text).unwrap(), decimal_places: None }
}

pub(crate) fn person(locale: &str) -> Person {
    Person {
        locale: locale.to_owned(),
        sex: None,
        cities: Vec::new(),
        age_range: [18, 114],
        select_field_values: Vec::new(),
        with_synthetic_personas: false,
        from_faker: false,
    }
}

/// The values as lines of JSON.
pub(crate) fn lines(values: &[Value]) -> String {
    values.iter().map(|value| value.to_json() + "\n").collect()
}
