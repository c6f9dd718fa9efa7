//! Edits of a configuration: they cost the cells that changed, and no others.

use std::collections::BTreeMap;

use anabranch_dataset::output::{ExportFormat, Folder, export};
use anabranch_dataset::{BuildOptions, JournalPlace};
use anabranch_value::Value;

use crate::resume::{Case, CountingModel, echo, reused};

/// The columns of the eight prompts: a chain of three, a column that reads its middle, and four of their own.
const EIGHT: [(&str, &str); 8] = [
    ("a", "A {{ n }}"),
    ("b", "B {{ a }}"),
    ("c", "C {{ b }}"),
    ("d", "D {{ b }} {{ n }}"),
    ("e", "E {{ n }}"),
    ("f", "F {{ e }}"),
    ("g", "G {{ kind }}"),
    ("h", "H {{ g }} {{ c }}"),
];

fn config(prompts: &[(&str, &str)]) -> String {
    let mut text = "columns:\n  - {name: n, column_type: sampler, sampler_type: uuid}\n  \
         - {name: kind, column_type: sampler, sampler_type: category, params: {values: [x, y, z]}}\n"
        .to_owned();
    for (name, prompt) in prompts {
        text +=
            &format!("  - {{name: {name}, column_type: llm-text, model_alias: m, prompt: \"{prompt}\"}}\n");
    }
    text
}

fn with(changes: &[(&str, &'static str)]) -> Vec<(&'static str, &'static str)> {
    let change = |name: &str| changes.iter().find(|(changed, _)| *changed == name).map(|(_, prompt)| *prompt);
    EIGHT.iter().map(|(name, prompt)| (*name, change(name).unwrap_or(prompt))).collect()
}

/// The rows as maps of cells.
fn cells(case: &Case) -> Vec<BTreeMap<String, Value>> {
    let mut rows = Vec::new();
    export(&Folder::open(&case.out).unwrap(), ExportFormat::Jsonl, &case.out, &mut rows).unwrap();
    let text = String::from_utf8(rows).unwrap();
    let row = |line: &str| {
        let value = Value::from_json(line).unwrap();
        let cells = value.as_map().unwrap().iter().map(|(name, value)| (name.to_string(), value.clone()));
        cells.collect()
    };
    text.lines().map(row).collect()
}

fn replaced(case: &Case, rows: u64) -> BuildOptions {
    BuildOptions { replace: true, ..case.options(rows) }
}

/// Builds with an edited configuration and returns its calls by the first word of the prompt.
fn edit(case: &Case, config: &str, rows: u64) -> BTreeMap<String, usize> {
    case.configure(config);
    assert_eq!(case.build(replaced(case, rows)).unwrap().rows, rows);
    case.model.calls_by_word()
}

fn counts<const N: usize>(counts: [(&str, usize); N]) -> BTreeMap<String, usize> {
    counts.map(|(word, count)| (word.to_owned(), count)).into()
}

/// Short replies: the first word, a digest of the prompt, the row. The column `b` of the rows that divide by four answers the
/// same to any prompt.
fn script() -> CountingModel {
    CountingModel::new(|request| {
        let prompt = &request.messages.last().unwrap().text;
        let word = prompt.split(' ').next().unwrap();
        let digest = match word {
            "B" | "Better" if request.sample % 4 == 0 => "same".to_owned(),
            _ => blake3::hash(prompt.as_bytes()).to_hex()[..8].to_owned(),
        };
        Ok(format!("{digest} {}", request.sample))
    })
}

#[test]
fn one_prompt_of_eight_costs_its_cells_and_the_dependants_that_changed() {
    const ROWS: u64 = 10_000;
    let mut case = Case::new("edit_one_of_eight", &config(&EIGHT), script());
    case.buffer_size = 1_000;
    case.build(case.options(ROWS)).unwrap();
    assert_eq!(case.model.calls(), 80_000);
    let before = cells(&case);
    // A quarter of the values of `b` come out equal: what reads them costs nothing.
    let changed = 7_500;
    let paid = edit(&case, &config(&with(&[("b", "Better {{ a }}")])), ROWS);
    assert_eq!(paid, counts([("Better", 10_000), ("C", changed), ("D", changed), ("H", changed)]));
    let after = cells(&case);
    for (row, (before, after)) in before.iter().zip(&after).enumerate() {
        for (name, value) in before {
            let is_changed = row % 4 != 0 && ["b", "c", "d", "h"].contains(&name.as_str());
            assert_eq!(value != &after[name], is_changed, "row {row}, column {name}: {value:?}");
        }
    }
}

#[test]
fn an_edit_that_is_taken_back_costs_nothing() {
    let case = Case::new("edit_back", &config(&EIGHT), echo());
    case.build(case.options(60)).unwrap();
    case.model.calls();
    let first = case.rows();
    let edits = [[("b", "Better {{ a }}")], [("e", "Else {{ n }}")]].map(|change| config(&with(&change)));
    assert_eq!(edit(&case, &edits[0], 60), counts([("Better", 60), ("C", 60), ("D", 60), ("H", 60)]));
    assert_eq!(edit(&case, &edits[1], 60), counts([("Else", 60), ("F", 60)]), "`b` is as it was");
    let second = case.rows();
    assert_eq!(edit(&case, &config(&EIGHT), 60), counts([]));
    assert_eq!(case.rows(), first);
    assert_eq!(edit(&case, &edits[1], 60), counts([]));
    assert_eq!(case.rows(), second);
}

#[test]
fn a_prompt_that_renders_the_same_text_costs_nothing() {
    let case = Case::new("edit_same_text", &config(&EIGHT), echo());
    case.build(case.options(50)).unwrap();
    case.model.calls();
    let rows = case.rows();
    let changes = [
        ("b", "B {{a}}"),
        ("d", "{{ 'D' }} {{ b }} {# both #}{{ n }}"),
        ("g", "{% if kind %}G {{ kind }}{% endif %}"),
    ];
    assert_eq!(edit(&case, &config(&with(&changes)), 50), counts([]));
    assert_eq!(case.rows(), rows);
}

#[test]
fn columns_that_are_added_removed_renamed_and_moved_cost_their_own_cells() {
    let case = Case::new("edit_columns", &config(&EIGHT), echo());
    case.build(case.options(40)).unwrap();
    case.model.calls();
    let before = cells(&case);
    // Added in front of all, with a sampler of its own.
    let added = config(&EIGHT).replace(
        "columns:\n",
        "columns:\n  - {name: colour, column_type: sampler, sampler_type: category, params: {values: [red, blue]}}\n  \
         - {name: new, column_type: llm-text, model_alias: m, prompt: 'New {{ colour }}'}\n",
    );
    assert_eq!(edit(&case, &added, 40), counts([("New", 40)]));
    for (before, after) in before.iter().zip(cells(&case)) {
        before.iter().for_each(|(name, value)| assert_eq!(value, &after[name]));
    }
    // Removed again, with two others.
    let removed: Vec<_> = EIGHT.into_iter().filter(|(name, _)| !["d", "h"].contains(name)).collect();
    assert_eq!(edit(&case, &config(&removed), 40), counts([]));
    // Renamed, with the references to it; samplers too.
    let renamed = config(&EIGHT)
        .replace("name: b,", "name: second,")
        .replace("{{ b }}", "{{ second }}")
        .replace("name: n,", "name: number,")
        .replace("{{ n }}", "{{ number }}")
        .replace("name: kind,", "name: sort,")
        .replace("{{ kind }}", "{{ sort }}");
    assert_eq!(edit(&case, &renamed, 40), counts([]));
    for (before, after) in before.iter().zip(cells(&case)) {
        assert_eq!((&before["b"], &before["kind"]), (&after["second"], &after["sort"]));
    }
    // In another order.
    let text = config(&EIGHT);
    let mut lines: Vec<&str> = text.lines().skip(1).collect();
    lines.reverse();
    assert_eq!(edit(&case, &format!("columns:\n{}\n", lines.join("\n")), 40), counts([]));
    assert_eq!(cells(&case), before);
}

#[test]
fn another_folder_and_another_machine_find_the_replies() {
    let case = Case::new("edit_elsewhere", &config(&EIGHT), echo());
    let journal = case.folder.join("replies");
    let options = BuildOptions { journal: JournalPlace::Folder(journal), ..case.options(30) };
    case.build(options.clone()).unwrap();
    assert_eq!(case.model.calls(), 240);
    let rows = case.rows();
    let other =
        Case { out: case.folder.join("elsewhere"), ..Case::new("edit_machine", &config(&EIGHT), echo()) };
    let report = other.build(BuildOptions { out: other.out.clone(), ..options }).unwrap();
    assert_eq!((reused(&report), other.model.calls()), (240, 0));
    assert_eq!(other.rows(), rows);
}

/// Structured values, a judge, temperatures that are drawn, and samplers that depend on each other.
const KINDS: &str = "
model_configs:
  - alias: m
    model: m
    provider: p
    inference_parameters:
      temperature: {distribution_type: uniform, params: {low: 0.1, high: 0.9}}
providers: [{name: p, endpoint: 'http://127.0.0.1:1/v1'}]
columns:
  - {name: pet, column_type: sampler, sampler_type: category, params: {values: [cat, dog], weights: [1, 1]}}
  - {name: kind, column_type: sampler, sampler_type: subcategory, params: {category: pet, values: {cat: [a, b], dog: [c, d]}}}
  - {name: day, column_type: sampler, sampler_type: datetime, params: {start: '2020-01-01', end: '2024-01-01'}}
  - {name: later, column_type: sampler, sampler_type: timedelta, params: {reference_column_name: day, dt_min: 1, dt_max: 9}}
  - {name: age, column_type: sampler, sampler_type: uniform, params: {low: 1, high: 90}, conditional_params: {\"pet == 'cat'\": {low: 1, high: 20}}}
  - name: facts
    column_type: llm-structured
    model_alias: m
    prompt: 'Facts {{ kind }} {{ later }} {{ age }}'
    output_format: {type: object, properties: {x: {type: integer}}, required: [x]}
  - name: score
    column_type: llm-judge
    model_alias: m
    prompt: 'Judge {{ facts.x }}'
    scores: [{name: good, description: Is it good?, options: {1: yes, 0: no}}]
";

fn answers_all() -> CountingModel {
    CountingModel::new(|request| {
        let is_judge = request.messages.last().unwrap().text.starts_with("Judge");
        let judged = r#"{"good": {"reasoning": "so", "score": "1"}}"#;
        Ok(if is_judge { judged.to_owned() } else { format!("{{\"x\": {}}}", request.sample) })
    })
}

#[test]
fn every_kind_of_column_keeps_its_replies_under_another_name() {
    let case = Case::new("edit_kinds", KINDS, answers_all());
    case.build(case.options(30)).unwrap();
    assert_eq!(case.model.calls(), 60);
    let mut renamed = KINDS.to_owned();
    for (old, new) in
        [("pet", "animal"), ("day", "born"), ("facts", "found"), ("score", "verdict"), ("age", "years")]
    {
        renamed = renamed.replace(&format!("name: {old}"), &format!("name: {new}"));
        renamed = renamed.replace(&format!("{{{{ {old}"), &format!("{{{{ {new}"));
    }
    let renamed = renamed
        .replace("category: pet", "category: animal")
        .replace("reference_column_name: day", "reference_column_name: born")
        .replace("pet == 'cat'", "animal == 'cat'");
    assert_eq!(edit(&case, &renamed, 30), counts([]));
    // Numbers that are written in another way, and a parameter that is null.
    let written = KINDS.replace("low: 1,", "low: 1.0,").replace("dt_min: 1,", "dt_min: 1, unit: null,");
    assert_eq!(edit(&case, &written, 30), counts([]));
}

#[test]
fn another_weight_keeps_most_values_and_another_condition_most_rows() {
    let case = Case::new("edit_weights", KINDS, answers_all());
    case.build(case.options(200)).unwrap();
    case.model.calls();
    let before = cells(&case);
    let same =
        |name: &str| before.iter().zip(cells(&case)).filter(|(old, new)| old[name] == new[name]).count();
    edit(&case, &KINDS.replace("weights: [1, 1]", "weights: [2, 3]"), 200);
    assert!((150..200).contains(&same("pet")), "{}", same("pet"));
    assert_eq!(same("day"), 200);
    edit(&case, &KINDS.replace("pet == 'cat'", "kind == 'a'"), 200);
    assert!((120..200).contains(&same("age")), "{}", same("age"));
    assert_eq!(same("pet"), 200);
}

#[test]
fn the_questions_of_custom_code_are_found_under_another_name() {
    // Its one answer has the column's own name.
    let worker = r#"read hello; echo '{"ready":true,"functions":{"f":{}}}'; read call; echo '{"id":1,"ask":1,"model":"m","messages":[{"role":"user","content":"Why"}]}'; read answer; name=$(printf '%s' "$call" | sed 's/.*"column":"\([a-z]*\)".*/\1/'); echo "{\"id\":1,\"rows\":[{\"$name\":1}]}"; cat"#;
    let config = |name: &str| {
        format!(
            "columns:\n  - {{name: n, column_type: sampler, sampler_type: uuid}}\n  \
             - {{name: text, column_type: llm-text, model_alias: m, prompt: 'A {{{{ n }}}}'}}\n  \
             - name: {name}\n    column_type: custom\n    generator_function: f\n    generation_strategy: full_column\n    \
             required_columns: [n]\n    model_aliases: [m]\n    worker:\n      command:\n        - /bin/sh\n        - -c\n        \
             - |-\n          {worker}\n"
        )
    };
    let case = Case::new("edit_custom", &config("asked"), echo());
    case.build(case.options(1)).unwrap();
    assert_eq!(case.model.calls_by_word(), counts([("A", 1), ("Why", 1)]));
    assert_eq!(edit(&case, &config("renamed"), 1), counts([]));
}

#[test]
fn equal_definitions_are_different_columns() {
    let config = "
columns:
  - {name: one, column_type: sampler, sampler_type: uuid}
  - {name: two, column_type: sampler, sampler_type: uuid}
  - {name: a, column_type: llm-text, model_alias: m, prompt: 'Say {{ one }}'}
  - {name: b, column_type: llm-text, model_alias: m, prompt: 'Say {{ one }}'}
  - {name: c, column_type: llm-text, model_alias: m, prompt: 'Say {{one}}'}
";
    let case = Case::new("edit_twins", config, echo());
    case.build(case.options(20)).unwrap();
    // The prompts of `a` and `c` are not written alike and come out equal: the second waits for the first.
    assert_eq!(case.model.calls(), 40);
    let rows = cells(&case);
    assert!(rows.iter().all(|row| row["one"] != row["two"] && row["a"] != row["b"] && row["a"] == row["c"]));
    assert_eq!(
        edit(
            &case,
            &config
                .replace("name: one", "name: first")
                .replace("{{ one", "{{ first")
                .replace("{{one", "{{first"),
            20
        ),
        counts([])
    );
}
