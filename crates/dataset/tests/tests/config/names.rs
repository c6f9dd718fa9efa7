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
        &expect![[r#"
            data.yaml:7:52: `prompt` reads `topik`, which is not a column (did you mean `topic`?)
            data.yaml:7:64: `prompt` reads `completely_else`, which is not a column (columns are a, b, c, day, size, topic)
            data.yaml:7:104: `system_prompt` reads `tpic`, which is not a column (did you mean `topic`?)
            data.yaml:8:50: `expr` reads `a__trace`, which is not a column (set `with_trace: all_messages` on column `a`)
            data.yaml:8:65: `expr` reads `a__reasoning_content`, which is not a column (set `extract_reasoning_content: true` on column `a`)
            data.yaml:8:92: `expr` reads `size__trace`, which is not a column (column `size` is not filled by a model call)
            data.yaml:9:122: `skip.when` reads `sizee`, which is not a column (did you mean `size`?)"#]],
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
        &expect![[r#"
            data.yaml:7:12: column `topic` is there already (the first one is at data.yaml:3:12; rename one of them)
            data.yaml:8:12: `` is not a name (1 to 255 bytes without control characters)
            data.yaml:10:12: `more` is filled by column `x` as well (that one is at data.yaml:9:12; rename one of them)"#]],
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
        &expect![[r#"
            data.yaml:3:12: columns wait for each other: `a` reads `b` reads `c` reads `a` (take one of these references away; `b` is at data.yaml:4:12, `c` is at data.yaml:5:12)
            data.yaml:6:50: `expr` reads `d`, the column itself (it has no value before the column is filled; read another one)
            data.yaml:7:50: `prompt` reads `e__trace`, which column `e` fills itself (it has no value before the column is filled; read another one)"#]],
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
