//! The root of a file, its sections, and files beside it.

use anabranch_dataset::Config;
use anabranch_dataset::config::{
    Comparison, ConstraintRhs, OnRowError, ProcessorKind, SeedOrder, SeedSelection, SeedSource, Setting,
    TransformNode,
};
use expect_test::expect;

use super::{fine, lines, parse, refused, warned, with};

#[test]
fn both_roots_and_json_mean_the_same() {
    let inner = "columns: [{name: id, column_type: sampler, sampler_type: uuid}]";
    let full =
        format!("library_version: 0.9.6\ndata_designer: {{{inner}, tool_configs: [], profilers: null}}\n");
    let json =
        r#"{"columns": [{"name": "id", "column_type": "sampler", "sampler_type": "uuid", "params": {}}]}"#;
    let (json, _) = Config::parse("d.json", json, &mut Setting::default()).unwrap();
    for config in [fine(inner), fine(&full), json] {
        assert_eq!(config.columns.len(), 1);
        assert_eq!(config.columns[0].name, "id");
        assert!(config.columns[0].propagate_skip);
        assert_eq!(config.columns[0].on_error, OnRowError::DropRow);
    }
}

#[test]
fn a_problem_is_shown_with_its_line() {
    let text = "columns:\n  - name: a\n    column_type: expression\n    expr: '{{ b }}'\n";
    let problems = parse(text).unwrap_err();
    expect![[r#"
        error: data.yaml:4:15: `expr` reads `b`, which is not a column
          4 |     expr: '{{ b }}'
            |               ^
          help: columns are a"#]]
    .assert_eq(&problems.errors[0].report("error").to_string());
}

#[test]
fn keys_are_known() {
    refused(
        "
colums: []
columns: [{name: a, column_type: sampler, sampler_type: uuid, parms: {}}]
seed: {}
",
        &expect![[r#"
            data.yaml:2:1: a dataset configuration has no `colums` (did you mean `columns`?)
            data.yaml:3:63: column `a` has no `parms` (did you mean `params`?)
            data.yaml:4:1: a dataset configuration has no `seed` (it has library_version, stages, columns, rows, accept, steps, model_configs, providers, prices, run, seed_config, constraints, processors, tool_configs, profilers)"#]],
    );
    refused(
        "data_designer: {columns: []}\nlibrary: 1\n",
        &expect![[r#"
            data.yaml:1:26: there is no column (add one to `columns`, or a `seed_config`)
            data.yaml:2:1: a dataset configuration has no `library` (it has data_designer, library_version, providers, run, prices)"#]],
    );
    refused("- 1\n", &expect!["data.yaml:1:1: a dataset configuration is a table of fields, this is a list"]);
    refused("", &expect!["data.yaml:1:1: a dataset configuration is a table of fields, this is null"]);
    refused(
        "columns: []\n",
        &expect!["data.yaml:1:10: there is no column (add one to `columns`, or a `seed_config`)"],
    );
}

#[test]
fn parts_that_are_not_there_yet_are_refused_by_name() {
    refused(
        "
columns:
  - {name: a, column_type: image, prompt: x, model_alias: m}
  - {name: b, column_type: llm-text, prompt: x, model_alias: m, tool_alias: search}
  - {name: c, column_type: llm-text, prompt: x, model_alias: m, multi_modal_context: [{modality: image}]}
  - {name: d, column_type: sampler, sampler_type: uuid, allow_resize: true}
  - {name: e, column_type: validation, target_columns: [d], validator_type: local_callable, validator_params: {}}
tool_configs: [{tool_alias: search}]
model_configs:
  - {alias: i, model: x, provider: openai, inference_parameters: {generation_type: image}}
seed_config: {source: {seed_type: hf, path: datasets/x/y}}
",
        &expect![[r#"
            data.yaml:3:28: columns of type `image` are not taken yet: cells hold no images (generate text instead, and make the images from it in a step of its own)
            data.yaml:4:77: tools (MCP) are not taken yet: a model call has no tools (take `tool_alias` away, or run the tool before and bring its results in as a seed)
            data.yaml:5:86: images, audio and video in prompts are not taken yet: prompts are text (take `multi_modal_context` away, or describe the media in a text column)
            data.yaml:6:71: a column of type `sampler` has one value per row (take `allow_resize` away; `steps:` behind the columns change the number of rows: filter, dedupe, explode, sample, sort)
            data.yaml:7:77: validators of type `local_callable` are not taken: a file holds no Python function (serve the function over HTTP and use `validator_type: remote`, or make it a `custom` column)
            data.yaml:8:15: tools (MCP) are not taken yet: a model call has no tools (take `tool_configs` away, or run the tools before and bring their results in as a seed)
            data.yaml:10:84: models of type `image` are not taken yet: cells hold no images (take the model away)
            data.yaml:11:35: seeds of type `hf` are not taken: datasets of Hugging Face are not read over the network yet (download the files and use `seed_type: local`)"#]],
    );
    for word in ["df", "agent_rollout", "lokal"] {
        let text = format!("columns: []\nseed_config: {{source: {{seed_type: {word}, path: x}}}}\n");
        assert_eq!(parse(&text).unwrap_err().errors.len(), 1, "{word}");
    }
}

#[test]
fn empty_ones_of_these_are_fine() {
    fine(
        "
columns:
  - {name: d, column_type: sampler, sampler_type: uuid, allow_resize: false}
  - {name: b, column_type: llm-text, prompt: 'x {{ d }}', model_alias: m, tool_alias: null, multi_modal_context: []}
tool_configs: null
profilers: []
",
    );
    warned(
        "columns: [{name: d, column_type: sampler, sampler_type: uuid}]\nprofilers: [{model_alias: x}]\n",
        &expect![
            "data.yaml:2:1: `profilers` has no effect here (the report of a build shows all columns by itself)"
        ],
    );
}

#[test]
fn run_options_are_read_and_checked() {
    let text = with(
        "run: {buffer_size: 50, max_retries: 2, preserve_dropped_columns: false, shutdown_error_rate: 0.25}\n",
    );
    let run = fine(&text).run;
    assert_eq!((run.buffer_size, run.max_retries, run.preserve_dropped_columns), (50, 2, false));
    assert_eq!(run.shutdown_error_rate, 0.25);
    assert_eq!(run.max_in_flight_tasks, 1024, "the default");
    refused(
        &with("run: {buffer_size: 0, max_retrys: 1, shutdown_error_rate: 2, disable_early_shutdown: 1}\n"),
        &expect![[r#"
            data.yaml:6:20: `buffer_size` is between 1 and 1000000, this is 0
            data.yaml:6:23: `run` has no `max_retrys` (did you mean `max_retries`?)
            data.yaml:6:59: `shutdown_error_rate` is between 0 and 1, this is 2
            data.yaml:6:86: `disable_early_shutdown` is `true` or `false`, this is a number"#]],
    );
    warned(
        &with("run: {otel_metrics_port: 9464, display_tui: true, async_trace: null}\n"),
        &expect![[r#"
        data.yaml:6:7: `otel_metrics_port` has no effect here (a build opens no port)
        data.yaml:6:32: `display_tui` has no effect here (the terminal shows progress by itself)"#]],
    );
    warned(
        &with("run: {shutdown_error_window: 10}\n"),
        &expect![
            "data.yaml:6:30: `shutdown_error_window` of 10 counts as 50 (a share of fewer calls says too little)"
        ],
    );
    // A file of its own, under the configuration's.
    let text = with("run: {buffer_size: 50}\n");
    let mut setting =
        Setting { run: Some(("run.yaml", "buffer_size: 7\nmax_retries: 9\n")), ..Setting::default() };
    let (config, _) = Config::parse("d.yaml", &text, &mut setting).unwrap();
    assert_eq!((config.run.buffer_size, config.run.max_retries), (50, 9));
    let mut setting = Setting { run: Some(("run.yaml", "bufer_size: 7\n")), ..Setting::default() };
    let problems = Config::parse("d.yaml", &text, &mut setting).unwrap_err();
    expect!["run.yaml:1:1: a file of run options has no `bufer_size` (did you mean `buffer_size`?)"]
        .assert_eq(&problems.to_string());
}

#[test]
fn seeds_have_sources_orders_and_selections() {
    let config = fine(
        "
columns: []
seed_config:
  source: {seed_type: local, path: data/*.parquet}
  sampling_strategy: shuffle
  selection_strategy: {start: 5, end: 9}
",
    );
    let seed = config.seed.unwrap();
    assert!(matches!(&seed.source, SeedSource::Local { path } if path.ends_with("*.parquet")));
    assert_eq!(seed.order, SeedOrder::Shuffle);
    assert_eq!(seed.selection, Some(SeedSelection::IndexRange { start: 5, end: 9 }));
    assert_eq!(config.seed_columns, None, "nobody opened it");
    let config = fine(
        "
columns: [{name: a, column_type: expression, expr: '{{ content }} {{ file_name }}'}]
seed_config:
  source: {seed_type: file_contents, path: docs, file_pattern: '*.md', recursive: false}
  selection_strategy: {index: 0, num_partitions: 2}
",
    );
    assert_eq!(config.seed_columns.unwrap().len(), 5);
    refused(
        "
columns: []
seed_config:
  source: {seed_type: local}
  sampling_strategy: random
  selection_strategy: {index: 2, num_partitions: 2}
",
        &expect![[r#"
            data.yaml:4:12: a seed's source needs `path`
            data.yaml:5:22: `sampling_strategy` is `ordered` or `shuffle`, this is `random`
            data.yaml:6:24: there is no block 2 of 2 (`index` counts from 0)"#]],
    );
    refused(
        "columns: []\nseed_config: {source: {path: x}, selection_strategy: {start: 9, end: 5}}\n",
        &expect![[r#"
            data.yaml:2:24: a seed's source needs `seed_type`
            data.yaml:2:55: `start` 9 is behind `end` 5"#]],
    );
    warned(
        "columns: []\nseed_config: {source: {seed_type: local, path: x.csv, extra: 1}}\n",
        &expect!["data.yaml:2:55: a seed of type `local` has no `extra` (it is left out)"],
    );
}

#[test]
fn the_seed_is_opened_while_the_file_is_read() {
    let text = "
columns: [{name: a, column_type: expression, expr: '{{ question }} {{ answr }}'}]
seed_config: {source: {seed_type: local, path: qa.csv}}
";
    let check = |columns: Result<Vec<&str>, &str>| {
        let columns =
            columns.map(|names| names.into_iter().map(str::to_owned).collect()).map_err(str::to_owned);
        let mut open = |_: &_| columns.clone();
        let mut setting = Setting { seed_columns: Some(&mut open), ..Setting::default() };
        match Config::parse("data.yaml", text, &mut setting) {
            Ok((config, _)) => format!("{:?}", config.seed_columns),
            Err(problems) => problems.to_string(),
        }
    };
    expect![[r#"Some(["question", "answr"])"#]].assert_eq(&check(Ok(vec!["question", "answr"])));
    expect!["data.yaml:2:71: `expr` reads `answr`, which is not a column (did you mean `answer`?)"]
        .assert_eq(&check(Ok(vec!["question", "answer"])));
    expect!["data.yaml:2:18: the seed has a column `a` as well (rename this one)"]
        .assert_eq(&check(Ok(vec!["question", "answr", "a"])));
    expect![
        "data.yaml:3:48: the seed cannot be read: no such file (paths are relative to the current folder)"
    ]
    .assert_eq(&check(Err("no such file")));
}

#[test]
fn processors_are_read_and_checked() {
    let config = fine(&with(
        "
processors:
  - {name: less, processor_type: drop_columns, column_names: ['s*', day]}
  - name: chat
    processor_type: schema_transform
    template: {messages: [{role: user, content: 'About {{ topic }}'}], fixed: 1}
",
    ));
    assert!(
        matches!(&config.processors[0].kind, ProcessorKind::DropColumns { column_names } if column_names.len() == 2)
    );
    let ProcessorKind::SchemaTransform { template: TransformNode::Map(entries) } = &config.processors[1].kind
    else {
        panic!("a table");
    };
    assert_eq!(entries.len(), 2);
    refused(
        &with(
            "
processors:
  - {name: less, processor_type: drop_columns, column_names: [tpoic, 'x*']}
  - {name: less, processor_type: schema_transform, template: {a: '{{ tpic }}'}}
  - {name: c, processor_type: schema_transform, template: text}
  - {name: d, processor_type: filter}
  - {name: ../e, processor_type: drop_columns}
",
        ),
        &expect![[r#"
            data.yaml:8:63: `tpoic` matches no column (did you mean `topic`?)
            data.yaml:8:70: `x*` matches no column
            data.yaml:9:12: processor `less` is there already (give one of them another name)
            data.yaml:9:70: `template` reads `tpic`, which is not a column (did you mean `topic`?)
            data.yaml:10:59: `template` is a table of the new columns, this is text
            data.yaml:11:31: there is no processor `filter` (processors are drop_columns, schema_transform)
            data.yaml:12:6: processor `../e` needs `column_names`
            data.yaml:12:12: `../e` is not a name (it names a folder of the output)"#]],
    );
}

#[test]
fn something_must_be_left() {
    refused(
        "columns: [{name: a, column_type: sampler, sampler_type: uuid, drop: true}]\n",
        &expect!["data.yaml:1:18: every column is dropped, nothing is left (keep one: `drop: false`)"],
    );
    refused(
        &with("processors: [{name: all, processor_type: drop_columns, column_names: ['*']}]\n"),
        &expect!["data.yaml:3:12: every column is dropped, nothing is left (keep one: `drop: false`)"],
    );
}

#[test]
fn constraints_are_on_sampled_numbers() {
    let config = fine(&with(
        "  - {name: low, column_type: sampler, sampler_type: gaussian, params: {mean: 0, stddev: 1}}
constraints:
  - {target_column: size, operator: le, rhs: '7.5'}
  - {target_column: low, operator: lt, rhs: size, constraint_type: column_inequality}
",
    ));
    assert!(matches!(config.constraints[0].rhs, ConstraintRhs::Number(7.5)));
    assert_eq!(config.constraints[1].operator, Comparison::Lt);
    assert_eq!(config.dependencies().columns[3].columns, [1]);
    refused(
        &with(
            "constraints:
  - {target_column: topic, operator: lt, rhs: 5}
  - {target_column: sizes, operator: less, rhs: day}
  - {target_column: sizes, operator: lt, rhs: day}
  - {target_column: size, operator: lt, rhs: size}
  - {target_column: size, operator: lt, rhs: five, constraint_type: scalar_inequality}
",
        ),
        &expect![[r#"
            data.yaml:7:21: a constraint names `topic`, which is not a sampler of numbers (constraints compare sampled numbers)
            data.yaml:8:38: `operator` is `lt`, `le`, `gt` or `ge`, this is `less`
            data.yaml:9:21: a constraint names `sizes`, which is not a column (did you mean `size`?)
            data.yaml:9:47: a constraint names `day`, which is not a sampler of numbers (constraints compare sampled numbers)
            data.yaml:10:46: a constraint compares a column with itself (name another one)
            data.yaml:11:46: `rhs` of a scalar constraint is a number, this is `five`"#]],
    );
}

#[test]
fn files_are_read_by_their_names() {
    let problems =
        |path: &str| lines(&Config::load(path.as_ref(), &mut Setting::default()).unwrap_err().errors);
    expect!["data.txt: not a dataset configuration by its name (call it .yaml, .yml or .json)"]
        .assert_eq(&problems("data.txt"));
    assert!(problems("none.yaml").starts_with("none.yaml: cannot be read"));
}
