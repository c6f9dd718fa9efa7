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
  - {name: m, column_type: sampler, sampler_type: person, params: {city: [Paris, Lyon], locale: fr_FR, sex: Female, age_range: [20, 30], with_synthetic_personas: true, select_field_values: {sex: [Female]}}}
  - {name: n, column_type: sampler, sampler_type: person_from_faker, params: {city: Chicago}}
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
        &expect![[r#"
            data.yaml:3:51: there is no sampler `categry` (did you mean `category`?)
            data.yaml:4:78: `values` has no value
            data.yaml:5:95: 2 values with 1 weight
            data.yaml:6:95: the weights add up to 0
            data.yaml:7:82: a value is text or a number, this is true or false (put it in quotes)
            data.yaml:7:88: a value is text or a number, this is null (put it in quotes)
            data.yaml:7:94: a value is text or a number, this is a list (put it in quotes)
            data.yaml:8:69: a sampler of type `uniform` needs `high`
            data.yaml:8:74: `low` is a number, this is text
            data.yaml:8:77: a sampler of type `uniform` has no `hihg` (did you mean `high`?)
            data.yaml:9:83: the parameters are of a sampler `gaussian`, the column has `uniform` (`sampler_type` can be left out of the parameters)
            data.yaml:10:6: the sampler of column `h` needs `mean`
            data.yaml:10:6: the sampler of column `h` needs `stddev`
            data.yaml:11:73: `n` is 0 or more, this is -1
            data.yaml:12:112: `unit` is `Y`, `M`, `D`, `h`, `m` or `s`, this is `w`
            data.yaml:12:128: `int` is not a format of dates (write it as strftime has it: `%Y-%m-%d`)
            data.yaml:13:71: `dt_max` is more than `dt_min`, these are 5 and 5
            data.yaml:13:125: `unit` is `D`, `h`, `m` or `s`, this is `Y`
            data.yaml:14:79: `age_range` is two ages between 0 and 114, the smaller first: [18, 65]
            data.yaml:14:94: `sex` is `Male` or `Female`, this is `male` (did you mean `Male`?)
            data.yaml:15:69: values of the sampler `uuid` are not converted
            data.yaml:16:91: `convert_to` is `int`, `float` or `str` here, this is `integer`
            data.yaml:17:103: `loc` is a number, this is text
            data.yaml:18:6: column `p` needs `sampler_type`
            data.yaml:19:79: a sampler of type `person_from_faker` has no `with_synthetic_personas` (it has sampler_type, locale, sex, city, age_range)"#]],
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
        &expect![[r#"
            data.yaml:12:99: category `kind` has no such values: `d` (take these lists away, or add the values there)
            data.yaml:12:99: values of category `kind` have no list: `c` (add a list for each)
            data.yaml:13:99: `size` is not a sampler of type `category` (a subcategory follows a category)
            data.yaml:14:87: `category` reads `knid`, which is not a column (did you mean `kind`?)
            data.yaml:14:105: `a` has no value
            data.yaml:15:119: `size` is not a sampler of type `datetime` (a timedelta is added to a datetime)"#]],
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
      size > 5: {low: 1, high: 2}
",
        ),
        &expect![[r#"
            data.yaml:13:7: a condition of a sampler reads `text`, which is not a sampler (samplers come first; conditions read samplers and columns of the seed)
            data.yaml:14:7: a condition of `conditional_params` reads `kind`, the column itself (it has no value before the column is filled; read another one)
            data.yaml:15:7: a condition of `conditional_params` reads `sizes`, which is not a column (did you mean `size`?)
            data.yaml:16:18: a sampler of type `category` has no `low` (it has sampler_type, values, weights)
            data.yaml:16:18: a sampler of type `category` needs `values`
            data.yaml:16:26: a sampler of type `category` has no `high` (it has sampler_type, values, weights)"#]],
    );
}
