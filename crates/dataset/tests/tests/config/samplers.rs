//! Samplers.

use anabranch_dataset::config::ColumnKind;
use anabranch_sampler::{Convert, Sampler};
use expect_test::expect;

use super::{fine, refused, with};

#[test]
fn every_sampler_is_read() {
    let config = fine(
        "
columns:
  - {name: a, column_type: sampler, sampler_type: uuid, params: {prefix: u-, short_form: true}}
  - {name: b, column_type: sampler, sampler_type: category, params: {values: [x, 1, 2.5], weights: [1, 1, 2]}}
  - {name: c, column_type: sampler, sampler_type: subcategory, params: {category: b, values: {x: [p, q], 1: [r], 2.5: [s]}}}
  - {name: d, column_type: sampler, sampler_type: uniform, params: {sampler_type: uniform, low: 0, high: 1.5, decimal_places: 2}, convert_to: int}
  - {name: e, column_type: sampler, sampler_type: gaussian, params: {mean: 0, stddev: 1}, convert_to: str}
  - {name: f, column_type: sampler, sampler_type: bernoulli, params: {p: 0.5}}
  - {name: g, column_type: sampler, sampler_type: bernoulli_mixture, params: {p: 0.5, dist_name: norm, dist_params: {loc: 1, scale: 2}}}
  - {name: h, column_type: sampler, sampler_type: binomial, params: {n: 10, p: 0.5}}
  - {name: i, column_type: sampler, sampler_type: poisson, params: {mean: 4}}
  - {name: j, column_type: sampler, sampler_type: scipy, params: {dist_name: gamma, dist_params: {a: 2.0}, decimal_places: 3}}
  - {name: k, column_type: sampler, sampler_type: datetime, params: {start: 2024-01-01, end: '2025-01-01', unit: h}, convert_to: '%Y-%m-%d'}
  - {name: l, column_type: sampler, sampler_type: timedelta, params: {dt_min: 0, dt_max: 5, reference_column_name: k}}
  - {name: m, column_type: sampler, sampler_type: person, params: {city: [Paris, Lyon], locale: fr_FR, sex: Female, age_range: [20, 30], with_synthetic_personas: true, select_field_values: {state: [CA]}}}
  - {name: n, column_type: sampler, sampler_type: person_from_faker, params: {city: Bonn}}
  - name: o
    column_type: sampler
    sampler_type: category
    params: {values: [small]}
    conditional_params:
      d > 1: {values: [big], sampler_type: category}
      b == 'x' and m.age > 20: {values: [old, young]}
",
    );
    let sampler = |number: usize| match &config.columns[number].kind {
        ColumnKind::Sampler(sampler) => sampler,
        other => panic!("{other:?}"),
    };
    assert!(matches!(&sampler(0).sampler, Sampler::Uuid(uuid) if uuid.short_form && !uuid.uppercase));
    assert_eq!(sampler(3).convert_to, Some(Convert::Int));
    assert_eq!(sampler(4).convert_to, Some(Convert::Text));
    assert_eq!(sampler(10).convert_to, Some(Convert::Strftime("%Y-%m-%d".to_owned())));
    assert!(
        matches!(&sampler(12).sampler, Sampler::Person(person) if person.cities.len() == 2 && !person.from_faker)
    );
    assert!(
        matches!(&sampler(13).sampler, Sampler::Person(person) if person.age_range == [18, 114] && person.from_faker)
    );
    assert_eq!(sampler(14).conditional.len(), 2);
    let inputs = config.dependencies().columns;
    assert_eq!((&inputs[2].columns[..], &inputs[11].columns[..]), (&[1][..], &[10][..]));
    assert_eq!(inputs[14].columns, [1, 3, 12]);
}

#[test]
fn parameters_are_checked() {
    refused(
        "
columns:
  - {name: a, column_type: sampler, sampler_type: categry, params: {}}
  - {name: b, column_type: sampler, sampler_type: category, params: {values: [], weights: [1]}}
  - {name: c, column_type: sampler, sampler_type: category, params: {values: [x, y], weights: [1]}}
  - {name: d, column_type: sampler, sampler_type: category, params: {values: [x, y], weights: [0, 0]}}
  - {name: e, column_type: sampler, sampler_type: category, params: {values: [x, true, null, [y]]}}
  - {name: f, column_type: sampler, sampler_type: uniform, params: {low: x, hihg: 2}}
  - {name: g, column_type: sampler, sampler_type: uniform, params: {sampler_type: gaussian, low: 1, high: 2}}
  - {name: h, column_type: sampler, sampler_type: gaussian}
  - {name: i, column_type: sampler, sampler_type: binomial, params: {n: -1, p: 0.5}}
  - {name: j, column_type: sampler, sampler_type: datetime, params: {start: 2024-01-01, end: 2025-01-01, unit: w}, convert_to: int}
  - {name: k, column_type: sampler, sampler_type: timedelta, params: {dt_min: 5, dt_max: 5, reference_column_name: j, unit: Y}}
  - {name: l, column_type: sampler, sampler_type: person, params: {age_range: [30, 20], sex: male}}
  - {name: m, column_type: sampler, sampler_type: uuid, convert_to: int}
  - {name: n, column_type: sampler, sampler_type: poisson, params: {mean: 1}, convert_to: integer}
  - {name: o, column_type: sampler, sampler_type: scipy, params: {dist_name: norm, dist_params: {loc: x}}}
  - {name: p, column_type: sampler}
  - {name: q, column_type: sampler, sampler_type: person_from_faker, params: {with_synthetic_personas: true}}
",
        &expect![""],
    );
}

#[test]
fn a_subcategory_has_a_list_for_each_value_of_its_category() {
    refused(
        &with(
            "
  - name: kind
    column_type: sampler
    sampler_type: category
    params: {values: [a, b]}
    conditional_params: {size > 5: {values: [c]}}
  - {name: one, column_type: sampler, sampler_type: subcategory, params: {category: kind, values: {a: [1], b: [2], d: [3]}}}
  - {name: two, column_type: sampler, sampler_type: subcategory, params: {category: size, values: {a: [1]}}}
  - {name: three, column_type: sampler, sampler_type: subcategory, params: {category: knid, values: {a: []}}}
  - {name: four, column_type: sampler, sampler_type: timedelta, params: {dt_min: 1, dt_max: 2, reference_column_name: size}}
",
        ),
        &expect![""],
    );
}

#[test]
fn conditions_read_samplers() {
    refused(
        &with(
            "
  - {name: text, column_type: llm-text, prompt: '{{ topic }}', model_alias: m}
  - name: kind
    column_type: sampler
    sampler_type: category
    params: {values: [a, b]}
    conditional_params:
      text == 'x': {values: [c]}
      kind == 'x': {values: [c]}
      sizes > 5: {values: [c]}
      size >: {values: [c]}
      size > 5: {low: 1, high: 2}
",
        ),
        &expect![""],
    );
}
