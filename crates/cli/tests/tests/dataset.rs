//! `dataset check`, `preview`, `export` and `new`, and the help of all verbs.

use std::path::{Path, PathBuf};

use expect_test::{Expect, expect};

use crate::binary::{Said, anabranch, in_folder, scratch};
use crate::recipe::timeless;

/// An empty folder.
pub(crate) fn empty(test: &str) -> PathBuf {
    std::fs::remove_dir_all(scratch(test)).unwrap();
    scratch(test)
}

/// A folder with one configuration, `poems.yaml`.
pub(crate) fn with_config(test: &str, config: &str) -> PathBuf {
    let folder = empty(test);
    std::fs::write(folder.join("poems.yaml"), config).unwrap();
    folder
}

/// All that a command says, without times.
pub(crate) fn shown(said: &Said, folder: &Path) -> String {
    timeless(&said.shown_from(folder))
}

pub(crate) fn check(folder: &Path, args: &[&str], expected: &Expect) {
    let args = [&["dataset"], args].concat();
    expected.assert_eq(&shown(&in_folder(folder, &args, ""), folder));
}

/// A sampler, a text, a structured value, and an expression that is skipped at times.
pub(crate) const POEMS: &str = "\
columns:
  - {name: topic, column_type: sampler, sampler_type: category, params: {values: [tea, coffee]}}
  - name: poem
    column_type: llm-text
    model_alias: writer
    prompt: 'A poem about {{ topic }}.'
  - name: facts
    column_type: llm-structured
    model_alias: writer
    prompt: 'Facts about {{ poem }}.'
    output_format: {type: object, properties: {lines: {type: integer, minimum: 1, maximum: 9}}, required: [lines]}
  - name: title
    column_type: expression
    expr: '{{ topic | upper }}, {{ facts.lines }} lines'
    skip: {when: '{{ topic == \"tea\" }}'}
";

#[test]
fn a_good_configuration_is_summed_up() {
    let folder = with_config("dataset_check", POEMS);
    check(&folder, &["check", "poems.yaml"], &expect![[r#""#]]);
    let models = "\
model_configs: [{alias: writer, model: small, provider: here}]
providers: [{name: here, endpoint: 'http://localhost:1/v1', api_key: NO_SUCH_KEY_IS_SET}]
";
    std::fs::write(folder.join("models.yaml"), models).unwrap();
    check(&folder, &["check", "poems.yaml", "--models", "models.yaml"], &expect![[r#""#]]);
}

#[test]
fn a_seed_is_opened() {
    let config = "\
seed_config: {source: {seed_type: local, path: cities.csv}}
columns:
  - {name: greeting, column_type: expression, expr: 'Hello {{ city }}'}
";
    let folder = with_config("dataset_seed", config);
    std::fs::write(folder.join("cities.csv"), "city,country\nUtrecht,NL\nLyon,FR\n").unwrap();
    check(&folder, &["check", "poems.yaml"], &expect![[r#""#]]);
    // A seed that is too short starts over.
    check(&folder, &["preview", "poems.yaml", "--rows", "3", "--json"], &expect![[r#""#]]);
    std::fs::remove_file(folder.join("cities.csv")).unwrap();
    check(&folder, &["check", "poems.yaml"], &expect![[r#""#]]);
}

#[test]
fn all_errors_are_reported_at_once() {
    let config = "\
columns:
  - {name: topic, column_type: sampler, sampler_type: category, params: {values: []}}
  - {name: poem, column_type: llm-txt, model_alias: writer, prompt: 'About {{ topic }}.'}
  - {name: title, column_type: expression, expr: '{{ tpic | upper }}', colour: red}
  - {name: a, column_type: expression, expr: '{{ b }}'}
  - {name: b, column_type: expression, expr: '{{ a }}'}
";
    let folder = with_config("dataset_wrong", config);
    check(&folder, &["check", "poems.yaml"], &expect![[r#""#]]);
    check(&folder, &["check", "none.yaml"], &expect![[r#""#]]);
    check(&folder, &["check", "poems.toml"], &expect![[r#""#]]);
}

#[test]
fn a_preview_shows_records() {
    let folder = with_config("dataset_preview", POEMS);
    check(&folder, &["preview", "poems.yaml", "--rows", "3", "--demo"], &expect![[r#""#]]);
    check(
        &folder,
        &["preview", "poems.yaml", "--rows", "2", "--demo", "--json", "--seed", "1"],
        &expect![[r#""#]],
    );
    assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 1, "a preview writes nothing");
}

#[test]
fn a_model_is_needed() {
    let folder = with_config("dataset_no_model", POEMS);
    let expected = expect![[r#""#]];
    check(&folder, &["preview", "poems.yaml"], &expected);
    check(&folder, &["build", "poems.yaml", "--rows", "3", "--out", "out"], &expected);
    assert!(!folder.join("out").exists());
}

#[test]
fn failed_cells_are_listed() {
    let config = "\
columns:
  - {name: n, column_type: sampler, sampler_type: category, params: {values: [one, '2']}}
  - {name: number, column_type: expression, dtype: int, expr: '{{ n }}'}
";
    let folder = with_config("dataset_failed", config);
    check(&folder, &["preview", "poems.yaml", "--rows", "4", "--json"], &expect![[r#""#]]);
    std::fs::write(folder.join("poems.yaml"), config.replace("[one, '2']", "[one]")).unwrap();
    check(&folder, &["preview", "poems.yaml", "--rows", "1"], &expect![[r#""#]]);
}

#[test]
fn rows_are_exported() {
    let folder = with_config("dataset_export", POEMS);
    let built =
        in_folder(&folder, &["dataset", "build", "poems.yaml", "--rows", "2", "--out", "out", "--demo"], "");
    assert_eq!(built.code, 0, "{}", built.stderr);
    let preview =
        in_folder(&folder, &["dataset", "preview", "poems.yaml", "--rows", "2", "--demo", "--json"], "");
    let jsonl = in_folder(&folder, &["dataset", "export", "out", "--format", "jsonl"], "");
    assert_eq!((jsonl.code, &jsonl.stdout), (0, &preview.stdout), "the same rows as in a preview");
    check(&folder, &["export", "out", "--format", "csv", "-o", "poems.csv"], &expect![[r#""#]]);
    expect![[r#""#]].assert_eq(&std::fs::read_to_string(folder.join("poems.csv")).unwrap());
    check(&folder, &["export", "poems.yaml", "--format", "csv"], &expect![[r#""#]]);
    check(&folder, &["export", "out", "--format", "xml"], &expect![[r#""#]]);
}

#[test]
fn a_new_dataset_runs_at_once() {
    let folder = empty("dataset_new");
    check(&folder, &["new", "reviews"], &expect![[r#""#]]);
    check(&folder, &["check", "reviews.yaml", "--models", "models.yaml"], &expect![[r#""#]]);
    let said = in_folder(
        &folder,
        &["dataset", "build", "reviews.yaml", "--rows", "9", "--out", "out", "--demo"],
        "",
    );
    assert_eq!(said.code, 0, "{}", said.stderr);
    check(&folder, &["new", "reviews"], &expect![[r#""#]]);
    check(&folder, &["new"], &expect![[r#""#]]);
    check(&folder, &["new", "../x"], &expect![[r#""#]]);
}

#[test]
fn help_explains_every_flag() {
    let check = |args: &[&str], expected: Expect| expected.assert_eq(&anabranch(args, "").shown());
    check(&["dataset", "--help"], expect![[r#""#]]);
    check(&["dataset", "build", "--help"], expect![[r#""#]]);
    check(&["dataset", "preview", "--help"], expect![[r#""#]]);
    for verb in ["check", "preview", "build", "export", "new"] {
        let said = anabranch(&["dataset", verb, "--help"], "");
        assert_eq!((said.code, said.stderr.as_str()), (0, ""), "{verb}");
        assert!(said.stdout.contains("Exit codes: 0"), "{verb} says its exit codes");
    }
    check(&["dataset", "build", "x.yaml", "--rows", "0", "--out", "o"], expect![[r#""#]]);
}
