//! Columns that models, templates and programs fill.

use anabranch_dataset::config::{ColumnKind, Dtype, LlmOutput, OnRowError, Trace, Validator, WorkerConfig};
use anabranch_value::Value;
use expect_test::expect;

use super::{fine, parse, refused, warned, with};

#[test]
fn model_columns_are_read() {
    let config = fine(&with(
        "
  - name: text
    column_type: llm-text
    prompt: About {{ topic }}
    system_prompt: You sell {{ topic }}.
    model_alias: m
    with_trace: true
    extract_reasoning_content: true
    on_error: keep_null
  - {name: code, column_type: llm-code, prompt: '{{ text }}', model_alias: m, code_lang: 'sql:ansi', with_trace: last_message}
  - {name: data, column_type: llm-structured, prompt: '{{ text__trace }}', model_alias: m, output_format: {type: object, properties: {a: {type: string}}}}
  - name: judge
    column_type: llm-judge
    prompt: '{{ data.a }}'
    model_alias: m
    scores: [{name: Quality, description: how good, options: {0: bad, '1': good, fine: fine}}]
",
    ));
    let llm = |number: usize| match &config.columns[number].kind {
        ColumnKind::Llm(llm) => llm,
        other => panic!("{other:?}"),
    };
    assert_eq!(config.columns[3].side_effects(), ["text__trace", "text__reasoning_content"]);
    assert_eq!(config.columns[3].on_error, OnRowError::KeepNull);
    assert_eq!(llm(3).with_trace, Trace::AllMessages);
    assert_eq!(llm(4).with_trace, Trace::LastMessage);
    assert!(matches!(&llm(5).output, LlmOutput::Structured { schema } if schema.get("type").is_some()));
    let LlmOutput::Judge { scores } = &llm(6).output else { panic!("a judge") };
    let options: Vec<&Value> = scores[0].options.iter().map(|(option, _)| option).collect();
    assert_eq!(options, [&Value::Int(0), &Value::from("1"), &Value::from("fine")]);
    assert_eq!(config.dependencies().columns[5].columns, [3], "the trace's producer");
    assert_eq!(config.dependencies().columns[5].names, ["text__trace"]);
}

#[test]
fn problems_of_model_columns() {
    refused(
        &with(
            "
  - {name: a, column_type: llm-text, prompt: 5, with_trace: some}
  - {name: b, column_type: llm-code, prompt: '{{ topic }}', model_alias: '', code_lang: pyton}
  - {name: c, column_type: llm-structured, prompt: '{{ topic }}', model_alias: m, output_format: text}
  - {name: d, column_type: llm-structured, prompt: '{{ topic }}', model_alias: m, output_format: {type: objekt, properties: []}}
  - {name: e, column_type: llm-judge, prompt: '{{ topic }}', model_alias: m, scores: []}
  - {name: f, column_type: llm-judge, prompt: '{{ topic }}', model_alias: m, scores: [{name: x, description: y, options: {}}, {name: x, options: {a: 1}}]}
  - {name: g, column_type: llm-txt}
  - {name: h, column_type: llm-text, prompt: '', model_alias: m, extract_reasoning_content: yes}
  - {name: i}
  - {column_type: llm-text}
  - text
",
        ),
        &expect![""],
    );
}

#[test]
fn prompts_that_look_wrong_are_warned_about() {
    warned(
        &with(
            "
  - {name: a, column_type: llm-text, prompt: Say something., model_alias: m}
  - name: b
    column_type: llm-text
    model_alias: m
    prompt: |
      {{ topic }}: use {topic}, {day} and {other}, { size }, a lone { and } and {} and {{ '{' }}
      \\frac{a}{size}
  - {name: 'two words', column_type: sampler, sampler_type: uuid}
  - {name: c, column_type: expression, expr: plain}
",
        ),
        &expect![""],
    );
}

#[test]
fn template_problems_are_at_their_place() {
    let place = |text: &str| {
        let problems = parse(&with(text)).unwrap_err();
        assert_eq!(problems.errors.len(), 1, "{problems}");
        problems.errors[0].place.clone()
    };
    let plain = "  - {name: a, column_type: expression, expr: 'x {{ topic | }}'}\n";
    assert!(place(plain).starts_with("data.yaml:6:"), "{}", place(plain));
    let block = "  - name: a\n    column_type: expression\n    expr: |\n      one\n      two {% if %}\n";
    assert!(place(block).starts_with("data.yaml:10:"), "{}", place(block));
    let unknown =
        "  - name: a\n    column_type: expression\n    expr: >-\n      one\n      two {{ topik }}\n";
    assert_eq!(place(unknown), "data.yaml:10:14");
    let quoted = "  - {name: a, column_type: expression, expr: \"x\\n\\u0041 {{ topik }}\"}\n";
    assert_eq!(place(quoted), "data.yaml:6:60");
}

#[test]
fn expressions_have_types_and_skips_fit_them() {
    let config = fine(&with(
        "
  - {name: a, column_type: expression, expr: '{{ size }}', dtype: int, skip: {when: '{{ topic == \"tea\" }}', value: '3.7'}}
  - {name: b, column_type: expression, expr: '{{ size }}', dtype: bool, skip: {when: size > 5, value: 'True'}, propagate_skip: false}
  - {name: c, column_type: expression, expr: '{{ size }}', skip: {when: '{{ size }}', value: 5}}
  - {name: d, column_type: expression, expr: '{{ size }}', dtype: float, skip: {when: '{{ size }}'}}
",
    ));
    let values: Vec<Value> =
        config.columns[3..].iter().map(|column| column.skip.as_ref().unwrap().value.clone()).collect();
    assert_eq!(values, [Value::Int(3), Value::Bool(true), Value::from("5"), Value::Null]);
    assert!(matches!(config.columns[3].kind, ColumnKind::Expression { dtype: Dtype::Int, .. }));
    assert_eq!(config.dependencies().columns[3].names, ["size", "topic"], "the condition's too");
    refused(
        &with(
            "
  - {name: a, column_type: expression, expr: '{{ size }}', dtype: int, skip: {when: '{{ topic }}', value: many}}
  - {name: b, column_type: expression, expr: '{{ size }}', dtype: bool, skip: {when: '{{ topic }}', value: [1]}}
  - {name: c, column_type: expression, expr: '{{ size }}', dtype: text}
  - {name: d, column_type: expression, expr: ' '}
  - {name: e, column_type: expression, expr: '{{ size }}', skip: {when: '{{ 1 }}'}}
  - {name: f, column_type: expression, expr: '{{ size }}', skip: {value: 1, wen: x}}
  - {name: g, column_type: expression, expr: '{{ size }}', skip: {when: '{{ g }}'}}
  - {name: h, column_type: sampler, sampler_type: uuid, skip: {when: '{{ topic }}'}}
  - {name: i, column_type: expression, expr: '{{ size }}', on_error: ignore}
",
        ),
        &expect![""],
    );
}

#[test]
fn validations_and_embeddings_are_checked() {
    let text = "
  - {name: sql, column_type: llm-code, prompt: '{{ topic }}', model_alias: m, code_lang: 'sql:ansi'}
  - {name: ok, column_type: validation, target_columns: [sql], validator_type: code, validator_params: {code_lang: 'sql:ansi', validator_type: code}, batch_size: 100}
  - {name: far, column_type: validation, target_columns: [sql, topic], validator_type: remote, validator_params: {endpoint_url: 'http://localhost/x', timeout: 5}}
  - {name: vector, column_type: embedding, target_column: topic, model_alias: e}
";
    let config = fine(&with(text));
    let ColumnKind::Validation(remote) = &config.columns[5].kind else { panic!("a validation") };
    assert!(
        matches!(&remote.validator, Validator::Remote(found) if found.max_retries == 3 && found.retry_backoff == 2.0)
    );
    assert_eq!(remote.batch_size, 10);
    assert_eq!(config.dependencies().columns[6].columns, [0]);
    refused(
        &with(
            "
  - {name: sql, column_type: llm-code, prompt: '{{ topic }}', model_alias: m, code_lang: 'sql:ansi'}
  - {name: a, column_type: validation, target_columns: [sql], validator_type: code, validator_params: {code_lang: python}}
  - {name: b, column_type: validation, target_columns: [], validator_type: code, validator_params: {code_lang: rust}}
  - {name: c, column_type: validation, target_columns: [sqll], validator_type: cod}
  - {name: d, column_type: validation, target_columns: [sql], validator_type: remote, validator_params: {endpoint_url: localhost, retry_backoff: 0.5, retries: 1}}
  - {name: e, column_type: validation, target_columns: [sql], validator_type: code}
  - {name: f, column_type: embedding, target_column: topc, model_alias: e}
",
        ),
        &expect![""],
    );
    warned(
        &with(
            "  - {name: a, column_type: validation, target_columns: [topic], validator_type: code, validator_params: {code_lang: python}}\n",
        ),
        &expect![""],
    );
}

#[test]
fn custom_columns_name_their_worker() {
    let config = fine(&with(
        "
  - name: mine
    column_type: custom
    generator_function: make
    generation_strategy: full_column
    generator_params: {n: 3}
    worker: {command: [python3, make.py]}
    required_columns: [topic]
    side_effect_columns: [more]
    model_aliases: [m]
    stateful: true
  - {name: web, column_type: custom, generator_function: f, worker: {url: 'http://localhost:9/x'}}
  - {name: after, column_type: expression, expr: '{{ more }}'}
",
    ));
    let ColumnKind::Custom(custom) = &config.columns[3].kind else { panic!("custom") };
    assert!(custom.full_column && custom.stateful);
    assert_eq!(custom.worker, WorkerConfig::Command { command: vec!["python3".into(), "make.py".into()] });
    assert_eq!(config.dependencies().columns[5].columns, [3]);
    assert_eq!(config.aliases_without_model(), ["m"]);
    refused(
        &with(
            "
  - {name: a, column_type: custom, generator_function: make}
  - {name: b, column_type: custom, generator_function: make, worker: {}}
  - {name: c, column_type: custom, generator_function: make, worker: {command: [], shell: x}, generation_strategy: rows}
  - {name: d, column_type: custom, worker: {url: 'ftp://x'}, required_columns: [tpoic]}
",
        ),
        &expect![""],
    );
}
