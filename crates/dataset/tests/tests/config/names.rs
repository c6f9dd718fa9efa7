//! Names that columns have and read.

use expect_test::expect;

use super::{fine, refused, with};

#[test]
fn unknown_names_are_told_with_what_was_meant() {
    refused(
        &with(
            "
  - {name: a, column_type: llm-text, prompt: 'x {{ topik }} {{ completely_else }}', system_prompt: '{{ tpic }}', model_alias: m}
  - {name: b, column_type: expression, expr: '{{ a__trace }} {{ a__reasoning_content }} {{ size__trace }}'}
  - {name: c, column_type: expression, expr: '{% for x in topic %}{{ x }}{{ loop.index }}{% endfor %}', skip: {when: '{{ sizee > 1 }}'}}
",
        ),
        &expect![""],
    );
}

#[test]
fn names_are_there_once() {
    refused(
        &with(
            "
  - {name: topic, column_type: sampler, sampler_type: uuid}
  - {name: '', column_type: sampler, sampler_type: uuid}
  - {name: x, column_type: custom, generator_function: f, worker: {url: 'http://x'}, side_effect_columns: [more]}
  - {name: y, column_type: custom, generator_function: f, worker: {url: 'http://x'}, side_effect_columns: [more]}
",
        ),
        &expect![""],
    );
}

#[test]
fn a_column_wins_over_a_side_effect() {
    let config = fine(&with(
        "
  - {name: a, column_type: llm-text, prompt: '{{ topic }}', model_alias: m, with_trace: all_messages}
  - {name: a__trace, column_type: expression, expr: '{{ size }}'}
  - {name: b, column_type: expression, expr: '{{ a__trace }}'}
",
    ));
    assert_eq!(config.dependencies().columns[5].columns, [4]);
}

#[test]
fn a_cycle_names_its_columns() {
    refused(
        "
columns:
  - {name: a, column_type: expression, expr: '{{ b }}'}
  - {name: b, column_type: expression, expr: x, skip: {when: '{{ c }}'}}
  - {name: c, column_type: llm-text, prompt: '{{ a }}', model_alias: m}
  - {name: d, column_type: expression, expr: '{{ d }}'}
  - {name: e, column_type: llm-text, prompt: '{{ e__trace }}', model_alias: m, with_trace: all_messages}
",
        &expect![""],
    );
}

#[test]
fn the_order_of_the_file_does_not_matter_but_breaks_ties() {
    let config = fine(
        "
columns:
  - {name: last, column_type: expression, expr: '{{ b }}{{ a }}{{ b }}'}
  - {name: b, column_type: sampler, sampler_type: uuid}
  - {name: a, column_type: sampler, sampler_type: uuid}
",
    );
    let dependencies = config.dependencies();
    assert_eq!(dependencies.order, [1, 2, 0]);
    assert_eq!(dependencies.columns[0].columns, [1, 2]);
}
