//! `dataset check`, `preview`, `export` and `new`.

use std::path::{Path, PathBuf};

use expect_test::{Expect, expect};

use crate::binary::{CommandOutput, in_folder, scratch};
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
pub(crate) fn shown(said: &CommandOutput, folder: &Path) -> String {
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
    check(
        &folder,
        &["check", "poems.yaml"],
        &expect![[r#"
        column  kind            reads         model   remarks
        ------  --------------  ------------  ------  --------------
        topic   sampler
        poem    llm-text        topic         writer
        facts   llm-structured  poem          writer
        title   expression      topic, facts          may be skipped

        model `writer`: no model
        stderr: note: no model is configured for the alias `writer`; give a file with `model_configs` and `providers` (--models FILE), or use the offline demo model (--demo)
        stderr: poems.yaml: fine
        exit 0
    "#]],
    );
    let models = "\
model_configs: [{alias: writer, model: small, provider: here}]
providers: [{name: here, endpoint: 'http://localhost:1/v1', api_key: NO_SUCH_KEY_IS_SET}]
";
    std::fs::write(folder.join("models.yaml"), models).unwrap();
    check(
        &folder,
        &["check", "poems.yaml", "--models", "models.yaml"],
        &expect![[r#"
        column  kind            reads         model   remarks
        ------  --------------  ------------  ------  --------------
        topic   sampler
        poem    llm-text        topic         writer
        facts   llm-structured  poem          writer
        title   expression      topic, facts          may be skipped

        model `writer`: small at here (http://localhost:1/v1), 4 calls in flight at most
        stderr: note: provider `here` has no key: the environment variable NO_SUCH_KEY_IS_SET is not set
        stderr: poems.yaml: fine
        exit 0
    "#]],
    );
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
    check(
        &folder,
        &["check", "poems.yaml"],
        &expect![[r#"
        column    kind        reads  model  remarks
        --------  ----------  -----  -----  -------
        greeting  expression  city

        seed: cities.csv, 2 rows: city, country
        stderr: poems.yaml: fine
        exit 0
    "#]],
    );
    // A seed that is too short starts over.
    check(
        &folder,
        &["preview", "poems.yaml", "--rows", "3", "--json"],
        &expect![[r#"
        {"city":"Utrecht","country":"NL","greeting":"Hello Utrecht"}
        {"city":"Lyon","country":"FR","greeting":"Hello Lyon"}
        {"city":"Utrecht","country":"NL","greeting":"Hello Utrecht"}
        exit 0
    "#]],
    );
    std::fs::remove_file(folder.join("cities.csv")).unwrap();
    check(
        &folder,
        &["check", "poems.yaml"],
        &expect![[r#"
        stderr: error: poems.yaml:1:48: the seed cannot be read: the seed path `cities.csv` does not exist
        stderr:   1 | seed_config: {source: {seed_type: local, path: cities.csv}}
        stderr:     |                                                ^^^^^^^^^^
        stderr:   help: paths are relative to the current folder
        exit 1
    "#]],
    );
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
    check(
        &folder,
        &["check", "poems.yaml"],
        &expect![[r#"
        stderr: error: poems.yaml:2:82: `values` has no value
        stderr:   2 | e: category, params: {values: []}}
        stderr:     |                               ^
        stderr: error: poems.yaml:3:31: there is no column type `llm-txt`
        stderr:   3 |   - {name: poem, column_type: llm-txt, model_alias: writer, prompt: 'About {{ topic }}.'}
        stderr:     |                               ^^^^^^^
        stderr:   help: did you mean `llm-text`?
        stderr: error: poems.yaml:4:54: `expr` reads `tpic`, which is not a column
        stderr:   4 |   - {name: title, column_type: expression, expr: '{{ tpic | upper }}', colour: red}
        stderr:     |                                                      ^^^^
        stderr:   help: did you mean `topic`?
        stderr: error: poems.yaml:4:72: column `title` has no `colour`
        stderr:   4 | , expr: '{{ tpic | upper }}', colour: red}
        stderr:     |                               ^^^^^^
        stderr:   help: it has name, column_type, drop, propagate_skip, on_error, allow_resize, skip, expr, dtype
        stderr: error: poems.yaml:5:12: columns wait for each other: `a` reads `b` reads `a`
        stderr:   5 |   - {name: a, column_type: expression, expr: '{{ b }}'}
        stderr:     |            ^
        stderr:   help: take one of these references away; `b` is at poems.yaml:6:12
        stderr: 5 errors
        exit 1
    "#]],
    );
    check(
        &folder,
        &["check", "none.yaml"],
        &expect![[r#"
        stderr: error: none.yaml: cannot be read: No such file or directory (os error 2) (name a file that is there)
        exit 1
    "#]],
    );
    check(
        &folder,
        &["check", "poems.toml"],
        &expect![[r#"
        stderr: error: poems.toml: not a dataset configuration by its name (call it .yaml, .yml or .json)
        exit 1
    "#]],
    );
}

#[test]
fn a_preview_shows_records() {
    let folder = with_config("dataset_preview", POEMS);
    check(
        &folder,
        &["preview", "poems.yaml", "--rows", "3", "--demo"],
        &expect![[r#"
            row 0
              topic: tea
              poem: Let us look at the topic. The numbers are modest, and the effect is not. This is demo
                text, written offline without a language model.
              facts:
                lines: 7
              title: null
            ------------------------------------------------------------
            row 1
              topic: tea
              poem: A few words about the topic. A good example says more than a long definition. All of this
                is demo text from an offline stand-in.
              facts:
                lines: 9
              title: null
            ------------------------------------------------------------
            row 2
              topic: coffee
              poem: Here is a short take on coffee. It took a few attempts to get this right. Please note
                that this is demo text and not a model's answer.
              facts:
                lines: 9
              title: COFFEE, 9 lines
            stderr: the demo model wrote the texts: they are made up
            exit 0
        "#]],
    );
    check(
        &folder,
        &["preview", "poems.yaml", "--rows", "2", "--demo", "--json", "--seed", "1"],
        &expect![[r#"
            {"topic":"tea","poem":"One way to see the topic. What matters in the end is whether it helps somebody. The numbers are modest, and the effect is not. All of this is demo text from an offline stand-in.","facts":{"lines":6},"title":null}
            {"topic":"coffee","poem":"In brief, about coffee. The numbers are modest, and the effect is not. It took a few attempts to get this right. This is demo text, written offline without a language model.","facts":{"lines":9},"title":"COFFEE, 9 lines"}
            stderr: the demo model wrote the texts: they are made up
            exit 0
        "#]],
    );
    assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 1, "a preview writes nothing");
}

#[test]
fn a_model_is_needed() {
    let folder = with_config("dataset_no_model", POEMS);
    let preview = in_folder(&folder, &["dataset", "preview", "poems.yaml"], "").shown_from(&folder);
    expect![[r#"
        stderr: error: no model is configured for the alias `writer`; give a file with `model_configs` and `providers` (--models FILE), or use the offline demo model (--demo)
        exit 1
    "#]].assert_eq(&preview);
    let build = ["dataset", "build", "poems.yaml", "--rows", "3", "--out", "out"];
    assert_eq!(in_folder(&folder, &build, "").shown_from(&folder), preview);
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
    check(
        &folder,
        &["preview", "poems.yaml", "--rows", "4", "--json"],
        &expect![[r#"
            {"n":"2","number":2}
            stderr: row 0, column `number`: cast: "one" is not a number (the row is dropped)
            stderr: row 2, column `number`: cast: "one" is not a number (the row is dropped)
            stderr: row 3, column `number`: cast: "one" is not a number (the row is dropped)
            stderr: 3 of 4 rows were dropped
            exit 0
        "#]],
    );
    std::fs::write(folder.join("poems.yaml"), config.replace("[one, '2']", "[one]")).unwrap();
    check(
        &folder,
        &["preview", "poems.yaml", "--rows", "1"],
        &expect![[r#"
        stderr: row 0, column `number`: cast: "one" is not a number (the row is dropped)
        stderr: error: no row was left: in each one a cell failed
        exit 1
    "#]],
    );
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
    check(
        &folder,
        &["export", "out", "--format", "csv", "-o", "poems.csv"],
        &expect![[r#"
        stderr: wrote 2 rows to poems.csv
        exit 0
    "#]],
    );
    expect![[r#"
        topic,poem,facts,title
        tea,"Let us look at the topic. The numbers are modest, and the effect is not. This is demo text, written offline without a language model.","{""lines"":7}",
        tea,A few words about the topic. A good example says more than a long definition. All of this is demo text from an offline stand-in.,"{""lines"":9}",
    "#]].assert_eq(&std::fs::read_to_string(folder.join("poems.csv")).unwrap());
    check(
        &folder,
        &["export", "poems.yaml", "--format", "csv"],
        &expect![[r#"
            stderr: error: poems.yaml holds no dataset; name the folder that `dataset build --out` wrote
            exit 1
        "#]],
    );
    check(
        &folder,
        &["export", "out", "--format", "xml"],
        &expect![[r#"
        stderr: error: invalid value 'xml' for '--format <FORMAT>'
        stderr:   [possible values: jsonl, csv]
        stderr:
        stderr: For more information, try '--help'.
        exit 2
    "#]],
    );
}

#[test]
fn a_new_dataset_runs_at_once() {
    let folder = empty("dataset_new");
    check(
        &folder,
        &["new", "reviews"],
        &expect![[r#"
        stderr: wrote reviews.yaml
        stderr: wrote models.yaml
        stderr: next:
        stderr:   anabranch dataset preview reviews.yaml --demo
        stderr:   anabranch dataset build reviews.yaml --rows 100 --out reviews --demo
        stderr:   anabranch dataset build reviews.yaml --rows 100 --out reviews --models models.yaml   (with a real model)
        exit 0
    "#]],
    );
    for options in [&["--models", "models.yaml"][..], &[]] {
        let said = in_folder(&folder, &[&["dataset", "check", "reviews.yaml"], options].concat(), "");
        assert!(said.code == 0 && !said.stderr.contains("warning"), "{}", said.stderr);
    }
    let said = in_folder(
        &folder,
        &["dataset", "build", "reviews.yaml", "--rows", "9", "--out", "out", "--demo"],
        "",
    );
    assert_eq!(said.code, 0, "{}", said.stderr);
}

#[test]
fn a_new_dataset_replaces_nothing() {
    let folder = empty("dataset_new_again");
    for file in ["reviews.yaml", "models.yaml"] {
        std::fs::write(folder.join(file), "mine").unwrap();
    }
    check(
        &folder,
        &["new", "reviews"],
        &expect![[r#"
        stderr: error: reviews.yaml exists already; existing files are not replaced
        exit 1
    "#]],
    );
    check(
        &folder,
        &["new"],
        &expect![[r#"
        stderr: wrote dataset.yaml
        stderr: models.yaml exists already and is not changed
        stderr: next:
        stderr:   anabranch dataset preview dataset.yaml --demo
        stderr:   anabranch dataset build dataset.yaml --rows 100 --out dataset --demo
        stderr:   anabranch dataset build dataset.yaml --rows 100 --out dataset --models models.yaml   (with a real model)
        exit 0
    "#]],
    );
    check(
        &folder,
        &["new", "../x"],
        &expect![[r#"
        stderr: error: `../x` cannot be a dataset's name: a name has 1 to 100 letters, digits, `_` and `-`
        exit 2
    "#]],
    );
}
