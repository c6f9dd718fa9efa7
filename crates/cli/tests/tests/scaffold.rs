//! `plan new` and `plan types`: what they write, and what they leave alone.

use std::path::{Path, PathBuf};

use anabranch_testkit::tsc;
use expect_test::{Expect, expect};

use crate::binary::{examples, in_folder, scratch};

/// An empty folder.
fn empty(test: &str) -> PathBuf {
    std::fs::remove_dir_all(scratch(test)).unwrap();
    scratch(test)
}

/// A folder with a copy of the examples' project.
fn project(test: &str) -> PathBuf {
    let folder = empty(test);
    for part in ["registry", "plans"] {
        std::fs::create_dir(folder.join(part)).unwrap();
        for entry in std::fs::read_dir(examples().join(part)).unwrap() {
            let file = entry.unwrap();
            let name = file.file_name().into_string().unwrap();
            if name.ends_with(".toml") || name.ends_with(".plan.json") {
                std::fs::copy(file.path(), folder.join(part).join(name)).unwrap();
            }
        }
    }
    std::fs::write(folder.join("anabranch.toml"), "[plan]\nregistry = 'registry'\nplans = 'plans'\n")
        .unwrap();
    folder
}

fn check(folder: &Path, args: &[&str], expected: &Expect) {
    expected.assert_eq(&in_folder(folder, args, "").shown_from(folder));
}

fn read(file: &Path) -> String {
    std::fs::read_to_string(file).unwrap()
}

#[test]
fn a_plan_where_there_is_no_project() {
    let folder = empty("new_project");
    check(
        &folder,
        &["plan", "new", "feed"],
        &expect![[r#"
            stderr: wrote anabranch.toml
            stderr: wrote registry/keys.toml
            stderr: wrote registry/params.toml
            stderr: wrote registry/endpoints.dev.toml
            stderr: wrote data.json
            stderr: wrote plans/feed.plan.ts
            stderr: wrote plans/anabranch.d.ts
            stderr: wrote plans/tsconfig.json
            stderr: next:
            stderr:   anabranch plan run feed --request '{"user_id": 1}' --table
            stderr:   anabranch plan types   (after a change of the registry, for editors)
            exit 0
        "#]],
    );
    assert!(read(&folder.join("plans/feed.plan.ts")).contains("  name: \"feed\",\n"));
    assert_eq!(tsc(env!("CARGO_TARGET_TMPDIR"), &folder, &["--project", "plans"]), Vec::<String>::new());
    check(
        &folder,
        &["plan", "types", "--check"],
        &expect![[r#"
        stderr: FOLDER/plans/anabranch.d.ts is as it should be
        exit 0
    "#]],
    );
    let request = r#"{"user_id": 1, "request_id": "r"}"#;
    check(
        &folder,
        &["plan", "run", "feed", "--request", request, "--table"],
        &expect![[r#"
        id  title                             likes  age_hours   score
        --  --------------------------------  -----  ---------  ------
        11  Rivers that split and meet again    120          5  4.5458
        14  Sandbanks by the hour                41         20  2.7377
        12  A map of old channels                 8        1.5  2.1222
        15  Ferries of the delta                  3        0.5  1.3613
        stderr: feed: 4 rows for request r, 3 trips, 8 commands
        exit 0
    "#]],
    );
    check(
        &folder,
        &["plan", "new", "feed"],
        &expect![[r#"
        stderr: error: FOLDER/plans/feed.plan.ts exists already; existing files are not replaced
        exit 1
    "#]],
    );
}

#[test]
fn a_plan_in_a_project() {
    let folder = project("new_in_project");
    let settings = folder.join("plans/tsconfig.json");
    std::fs::write(&settings, "{\"compilerOptions\": {\"strict\": true, \"noEmit\": true}}\n").unwrap();
    check(
        &folder.join("plans"),
        &["plan", "new", "first"],
        &expect![[r#"
            stderr: wrote FOLDER/first.plan.ts
            stderr: wrote FOLDER/anabranch.d.ts
            stderr: next:
            stderr:   anabranch plan run first --request '{"user_id": 1, "candidates": [{"id": 4}, {"id": 7}, {"id": 8}]}' --table
            stderr:   anabranch plan types   (after a change of the registry, for editors)
            exit 0
        "#]],
    );
    assert!(read(&settings).starts_with("{\"compilerOptions\""));
    assert_eq!(tsc(env!("CARGO_TARGET_TMPDIR"), &folder, &["--project", "plans"]), Vec::<String>::new());
    check(
        &folder,
        &["plan", "new", "second"],
        &expect![[r#"
            stderr: wrote FOLDER/plans/second.plan.ts
            stderr: next:
            stderr:   anabranch plan run second --request '{"user_id": 1, "candidates": [{"id": 4}, {"id": 7}, {"id": 8}]}' --table
            stderr:   anabranch plan types   (after a change of the registry, for editors)
            exit 0
        "#]],
    );
    let request = r#"{"user_id": 1, "candidates": [{"id": 4}, {"id": 7}, {"id": 8}]}"#;
    assert_eq!(in_folder(&folder, &["plan", "run", "second"], request).ids(), [4, 7]);
}

#[test]
fn nothing_is_replaced() {
    let folder = empty("new_refused");
    check(
        &folder,
        &["plan", "new", "../feed"],
        &expect![[r#"
            stderr: error: `../feed` cannot be a plan's name; it must match ^[A-Za-z0-9_][A-Za-z0-9_-]*$
            exit 1
        "#]],
    );
    std::fs::write(folder.join("data.json"), "{}").unwrap();
    check(
        &folder,
        &["plan", "new", "feed"],
        &expect![[r#"
        stderr: error: data.json exists already; existing files are not replaced
        exit 1
    "#]],
    );
    assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 1, "nothing was written");
    let folder = project("new_taken");
    check(
        &folder,
        &["plan", "new", "home"],
        &expect![[r#"
        stderr: error: FOLDER/plans/home.plan.json exists already; existing files are not replaced
        exit 1
    "#]],
    );
}

#[test]
fn declarations_are_written_and_compared() {
    let folder = project("types");
    check(
        &folder,
        &["plan", "types", "--check"],
        &expect![[r#"
        stderr: error: there is no FOLDER/plans/anabranch.d.ts; `anabranch plan types` writes it
        exit 1
    "#]],
    );
    check(
        &folder,
        &["plan", "types"],
        &expect![[r#"
        stderr: wrote FOLDER/plans/anabranch.d.ts
        exit 0
    "#]],
    );
    let file = folder.join("plans/anabranch.d.ts");
    assert_eq!(in_folder(&folder, &["plan", "types", "--out", "-"], "").stdout, read(&file));
    check(
        &folder,
        &["plan", "types", "--out", "-", "--check"],
        &expect![[r#"
        stderr: error: --check compares with a file, and `-` is none
        exit 2
    "#]],
    );
    check(
        &folder,
        &["plan", "types"],
        &expect![[r#"
        stderr: FOLDER/plans/anabranch.d.ts is as it should be
        exit 0
    "#]],
    );
    std::fs::write(&file, "").unwrap();
    check(
        &folder,
        &["plan", "types", "--check"],
        &expect![[r#"
        stderr: error: FOLDER/plans/anabranch.d.ts is stale; `anabranch plan types` writes it anew
        exit 1
    "#]],
    );
    check(
        &folder,
        &["plan", "types", "--out", "other.d.ts"],
        &expect![[r#"
        stderr: wrote other.d.ts
        exit 0
    "#]],
    );
    assert!(read(&file).is_empty() && folder.join("other.d.ts").is_file());
}
