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
        &expect![[r#"
            data.yaml:7:6: column `a` needs `model_alias`
            data.yaml:7:46: `prompt` is text, this is a number (put it in quotes)
            data.yaml:7:61: `with_trace` is `none`, `last_message` or `all_messages`, this is `some`
            data.yaml:8:74: `model_alias` is empty
            data.yaml:8:89: there is no language `pyton` (did you mean `python`?)
            data.yaml:9:98: `output_format` is a JSON schema, this is text (write `type: object` and `properties:` below it)
            data.yaml:10:105: JSON schemas have no type `objekt` (did you mean `object`?)
            data.yaml:10:113: `properties` of a JSON schema is not a list
            data.yaml:11:86: a judge needs a score (give `name`, `description` and `options`)
            data.yaml:12:122: a score needs an option (write `option: description` below it)
            data.yaml:12:128: score `x` needs `description`
            data.yaml:12:150: `a` is text, this is a number (put it in quotes)
            data.yaml:13:28: there is no column type `llm-txt` (did you mean `llm-text`?)
            data.yaml:14:46: the prompt is empty
            data.yaml:14:93: `extract_reasoning_content` is `true` or `false`, this is text
            data.yaml:15:6: column `i` needs `column_type`
            data.yaml:16:6: a column needs `name`
            data.yaml:17:5: a column is a table of fields, this is text"#]],
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
        &expect![[r#"
            data.yaml:7:46: the prompt of column `a` reads no column: every row asks the same (name columns in it as `{{ column }}`)
            data.yaml:12:24: `{topic}` is sent to the model as it is (write `{{ topic }}` for the value of the column)
            data.yaml:12:33: `{day}` is sent to the model as it is (write `{{ day }}` for the value of the column)
            data.yaml:13:12: `{a}` is sent to the model as it is (write `{{ a }}` for the value of the column)
            data.yaml:13:15: `{size}` is sent to the model as it is (write `{{ size }}` for the value of the column)
            data.yaml:14:12: templates cannot read column `two words` by its name (letters, digits and `_` can be read, with no digit in front)
            data.yaml:15:46: the expression is the same text in every row (expressions stand in double braces: `{{ price * 2 }}`)"#]],
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
        &expect![[r#"
            data.yaml:7:107: the value "many" does not fit `dtype: int`
            data.yaml:8:108: `value` is text, a number, or true or false, this is a list
            data.yaml:9:67: `dtype` is `int`, `float`, `str` or `bool`, this is `text`
            data.yaml:10:46: the expression is empty
            data.yaml:11:73: the condition reads no column (write it as `{{ column == "value" }}`)
            data.yaml:12:67: `skip` needs `when`
            data.yaml:12:77: `skip` has no `wen` (did you mean `when`?)
            data.yaml:13:77: `skip.when` reads `g`, the column itself (it has no value before the column is filled; read another one)
            data.yaml:14:64: samplers cannot be skipped (use `conditional_params`, or skip the columns that read it)
            data.yaml:15:70: `on_error` is `drop_row`, `keep_null` or `fail_run`, this is `ignore`"#]],
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
        &expect![[r#"
            data.yaml:8:57: column `sql` has code in `sql:ansi`, the validator is for `python` (use the same `code_lang` in both)
            data.yaml:9:56: a validation needs a target column
            data.yaml:9:112: there is no validator for `rust` (`python` and the dialects of SQL (`sql:ansi`) can be validated; use `remote` for others)
            data.yaml:10:57: `target_columns` reads `sqll`, which is not a column (did you mean `sql`?)
            data.yaml:10:80: there is no validator `cod` (did you mean `code`?)
            data.yaml:11:120: `localhost` is not an address of HTTP (it begins with `http://` or `https://` and a host)
            data.yaml:11:146: `retry_backoff` is between 1 and 1000, this is 0.5
            data.yaml:11:151: a validator of type `remote` has no `retries` (it has validator_type, endpoint_url, output_schema, timeout, retry_backoff, max_retries, max_parallel_requests)
            data.yaml:12:6: column `e` needs `validator_params`
            data.yaml:13:54: `target_column` reads `topc`, which is not a column (did you mean `topic`?)"#]],
    );
    warned(
        &with(
            "  - {name: a, column_type: validation, target_columns: [topic], validator_type: code, validator_params: {code_lang: python}}\n",
        ),
        &expect![
            "data.yaml:6:57: column `topic` is validated as code and is not of type `llm-code` (use `column_type: llm-code` for it)"
        ],
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
        &expect![[r#"
            data.yaml:7:56: column `a` needs `worker` (a file holds no Python function; say what runs `make`: `worker:` and below it `command: [python3, make.py]`, or `url: http://localhost:8000`)
            data.yaml:8:70: a worker has either `command` or `url` (keep one of them)
            data.yaml:9:80: `command` is a program and its arguments: [python3, worker.py]
            data.yaml:9:84: a worker has no `shell` (it has command, url)
            data.yaml:9:116: `generation_strategy` is `cell_by_cell` or `full_column`, this is `rows`
            data.yaml:10:6: column `d` needs `generator_function`
            data.yaml:10:50: `ftp://x` is not an address of HTTP (it begins with `http://` or `https://` and a host)
            data.yaml:10:81: `required_columns` reads `tpoic`, which is not a column (did you mean `topic`?)"#]],
    );
}
