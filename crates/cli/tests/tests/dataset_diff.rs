//! `dataset diff`.

use std::path::Path;

use expect_test::expect;
use serde_json::Value;

use crate::binary::in_folder;
use crate::dataset::{POEMS, check, with_config};

fn build(folder: &Path, config: &str, rows: &str, out: &str, options: &[&str]) {
    std::fs::write(folder.join("poems.yaml"), config).unwrap();
    let args = ["dataset", "build", "poems.yaml", "--rows", rows, "--out", out, "--demo"];
    let said = in_folder(folder, &[&args[..], options].concat(), "");
    assert_eq!(said.code, 0, "{}", said.stderr);
}

#[test]
fn the_same_rows_in_other_files_are_equal() {
    let folder = with_config("dataset_diff_equal", POEMS);
    build(&folder, POEMS, "30", "a", &["--buffer-size", "7"]);
    build(&folder, POEMS, "30", "b", &["--buffer-size", "1000"]);
    check(&folder, &["diff", "a", "b"], &expect![[r#""#]]);
}

#[test]
fn rows_columns_and_cells_are_compared() {
    let folder = with_config("dataset_diff", POEMS);
    build(&folder, POEMS, "12", "a", &[]);
    let other = POEMS
        .replace("{{ facts.lines }} lines'\n", "{{ facts.lines }} verses'\n")
        .replace("name: poem\n", "name: verse\n")
        .replace("about {{ poem }}", "about {{ verse }}");
    build(&folder, &other, "10", "b", &[]);
    check(&folder, &["diff", "a", "b"], &expect![[r#""#]]);
}

#[test]
fn the_difference_is_json() {
    let folder = with_config("dataset_diff_json", POEMS);
    build(&folder, POEMS, "6", "a", &[]);
    build(&folder, POEMS, "6", "b", &["--seed", "8"]);
    let said = in_folder(&folder, &["dataset", "diff", "a", "b", "--json"], "");
    let found: Value = serde_json::from_str(&said.stdout).unwrap();
    assert_eq!((said.code, &found["equal"]), (1, &Value::Bool(false)));
    let section = &found["sections"][0];
    assert_eq!((&section["rows_in_both"], &section["rows_before"]), (&6.into(), &6.into()));
    let columns = section["columns"].as_array().unwrap();
    for column in columns {
        let cells = column["equal"].as_u64().unwrap() + column["changed"].as_u64().unwrap();
        assert_eq!(cells, 6, "{column}");
        let shown = column["examples"].as_array().unwrap().len() as u64;
        assert_eq!(shown, column["changed"].as_u64().unwrap().min(5), "{column}");
    }
    let seed =
        section["settings"].as_array().unwrap().iter().find(|setting| setting["name"] == "seed").unwrap();
    assert_eq!((&seed["before"], &seed["after"]), (&"0".into(), &"8".into()));
}

#[test]
fn a_missing_dataset_is_named() {
    let folder = with_config("dataset_diff_missing", POEMS);
    build(&folder, POEMS, "2", "a", &[]);
    check(
        &folder,
        &["diff", "a", "nowhere"],
        &expect![[r#"
        stderr: error: nowhere does not exist; name the folder that `dataset build --out` wrote
        exit 1
    "#]],
    );
}
