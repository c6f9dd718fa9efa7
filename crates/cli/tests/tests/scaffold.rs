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
    check(&folder, &["plan", "new", "feed"], &expect![[r#""#]]);
    assert!(read(&folder.join("plans/feed.plan.ts")).contains("  name: \"feed\",\n"));
    assert_eq!(tsc(env!("CARGO_TARGET_TMPDIR"), &folder, &["--project", "plans"]), Vec::<String>::new());
    check(&folder, &["plan", "types", "--check"], &expect![[r#""#]]);
    let request = r#"{"user_id": 1, "request_id": "r"}"#;
    check(&folder, &["plan", "run", "feed", "--request", request, "--table"], &expect![[r#""#]]);
    check(&folder, &["plan", "new", "feed"], &expect![[r#""#]]);
}

#[test]
fn a_plan_in_a_project() {
    let folder = project("new_in_project");
    let settings = folder.join("plans/tsconfig.json");
    std::fs::write(&settings, "{\"compilerOptions\": {\"strict\": true, \"noEmit\": true}}\n").unwrap();
    check(&folder.join("plans"), &["plan", "new", "first"], &expect![[r#""#]]);
    assert!(read(&settings).starts_with("{\"compilerOptions\""));
    assert_eq!(tsc(env!("CARGO_TARGET_TMPDIR"), &folder, &["--project", "plans"]), Vec::<String>::new());
    check(&folder, &["plan", "new", "second"], &expect![[r#""#]]);
    assert_eq!(in_folder(&folder, &["plan", "run", "second"], "{\"user_id\": 1}").ids(), [4, 5, 6, 7, 9]);
}

#[test]
fn nothing_is_replaced() {
    let folder = empty("new_refused");
    check(&folder, &["plan", "new", "../feed"], &expect![[r#""#]]);
    std::fs::write(folder.join("data.json"), "{}").unwrap();
    check(&folder, &["plan", "new", "feed"], &expect![[r#""#]]);
    assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 1, "nothing was written");
    let folder = project("new_taken");
    check(&folder, &["plan", "new", "home"], &expect![[r#""#]]);
}

#[test]
fn declarations_are_written_and_compared() {
    let folder = project("types");
    check(&folder, &["plan", "types", "--check"], &expect![[r#""#]]);
    check(&folder, &["plan", "types"], &expect![[r#""#]]);
    let file = folder.join("plans/anabranch.d.ts");
    assert_eq!(in_folder(&folder, &["plan", "types", "--out", "-"], "").stdout, read(&file));
    check(&folder, &["plan", "types", "--out", "-", "--check"], &expect![[r#""#]]);
    check(&folder, &["plan", "types"], &expect![[r#""#]]);
    std::fs::write(&file, "").unwrap();
    check(&folder, &["plan", "types", "--check"], &expect![[r#""#]]);
    check(&folder, &["plan", "types", "--out", "other.d.ts"], &expect![[r#""#]]);
    assert!(read(&file).is_empty() && folder.join("other.d.ts").is_file());
}
