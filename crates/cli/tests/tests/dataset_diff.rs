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
    check(
        &folder,
        &["diff", "a", "b"],
        &expect![[r#"
        equal
          rows  A has 30, B has 30: 30 in both, 0 of them changed; 0 only in A, 0 only in B

          column  type                  equal cells  changed  remarks
          ------  --------------------  -----------  -------  -------
          topic   string                         30        0
          poem    string                         30        0
          facts   struct<lines: int64>           30        0
          title   string                         30        0

        spend
                             A     B
          --------------  ----  ----
          calls             60    60
          reused replies     0     0
          tokens in       3763  3763
          tokens out      1714  1714
        exit 0
    "#]],
    );
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
    check(
        &folder,
        &["diff", "a", "b"],
        &expect![[r#"
        different
          rows  A has 12, B has 10: 10 in both, 2 of them changed; 2 only in A (row 10, 11), 0 only in B

          column  type                  equal cells  changed  remarks
          ------  --------------------  -----------  -------  ---------
          topic   string                         10        0
          poem    string                                      only in A
          facts   struct<lines: int64>           10        0
          title   string                          8        2
          verse   string                                      only in B

        changed cells of title
          row 2
            A: COFFEE, 9 lines
            B: COFFEE, 9 verses
          row 8
            A: COFFEE, 8 lines
            B: COFFEE, 8 verses

        settings that differ
                               A                 B
          -------------------  ----------------  ----------------
          input column facts   eca23cf192cee60a  a9356cd557b385a2
          input column poem    72a3a0b7666acc2f
          input column title   737d529fd4450b76  2b127777660f03c9
          input columns        e54264f4fac5fbbc  68c2d524233e0959
          input configuration  101febbb705f954b  618a155c71f47fd0
          rows asked for       12                10
          input column verse                     72a3a0b7666acc2f

        spend
                             A     B
          --------------  ----  ----
          calls             24    20
          reused replies     0     0
          tokens in       1405  1162
          tokens out       585   478
        exit 1
    "#]],
    );
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
