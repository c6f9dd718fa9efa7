//! The Python worker, where there is Python.

use std::process::Command;

use anabranch_dataset::config::CustomColumn;
use anabranch_dataset::generator::Generator;
use anabranch_value::Value;
use expect_test::expect;
use futures_util::future::join_all;

use crate::custom::{Echo, cell, custom, one, options};
use crate::support::{Folder, done, rows, shown};

const MODULE: &str = r#"
import threading
from dataclasses import dataclass
import data_designer.config as dd
from anabranch_worker import custom_column_generator

@dd.custom_column_generator(required_columns=["a"], side_effect_columns=["n"], model_aliases=["writer"])
def greet(row, generator_params, models):
    print("this goes to stderr")
    text, messages = models["writer"].generate(prompt=generator_params.greeting + row["a"])
    row["c"] = text
    row["n"] = len(messages)
    return row

@custom_column_generator(required_columns=["a"])
async def shout(row):
    if row["a"] == "bad":
        raise ValueError("not this one")
    row["c"] = row["a"].upper()
    return row

together = threading.Barrier(2, timeout=60)

@custom_column_generator(required_columns=["a"])
def meet(row):
    together.wait()
    row["c"] = float("nan") if row["a"] == "x" else (1, {2})
    return row

@dataclass
class Times:
    count: int

@custom_column_generator(required_columns=["a"])
def repeat(df, generator_params: Times):
    column = [value * generator_params.count for value in (df["a"] if hasattr(df, "columns") else [row["a"] for row in df])]
    if hasattr(df, "columns"):
        df["c"] = column
        return df
    return [{**row, "c": value} for row, value in zip(df, column)]

@custom_column_generator(required_columns=["a"])
def leave(row):
    raise SystemExit(3)
"#;

struct Python {
    folder: Folder,
}

impl Python {
    /// Python, if there is one.
    #[allow(clippy::print_stderr, reason = "a skipped test says so")]
    fn new() -> Option<Python> {
        if Command::new("python3").arg("--version").output().is_err() {
            eprintln!("SKIPPED: there is no python3 on the path, so the Python worker is not tested");
            return None;
        }
        let folder = Folder::new();
        folder.write("columns.py", MODULE);
        Some(Python { folder })
    }

    fn column(&self, function: &str, file: &str) -> CustomColumn {
        let worker = concat!(env!("CARGO_MANIFEST_DIR"), "/../../python/anabranch_worker.py");
        let module = self.folder.path().join(file);
        let column = custom(&["python3", "-B", worker, module.to_str().unwrap()]);
        CustomColumn { function: function.into(), column_types: Vec::new(), ..column }
    }
}

async fn cells(generator: &dyn Generator, values: &[&str]) -> String {
    let values: Vec<Value> = values.iter().map(|value| Value::from(*value)).collect();
    let calls = values
        .iter()
        .enumerate()
        .map(|(row, value)| cell(generator, row as u64, std::slice::from_ref(value)));
    join_all(calls).await.join("\n")
}

#[tokio::test]
async fn decorated_functions_serve_columns() {
    let Some(python) = Python::new() else { return };
    let greet = CustomColumn {
        params: Value::map([("greeting", Value::from("hi "))]),
        side_effect_columns: vec!["n".into()],
        model_aliases: vec!["writer".into()],
        ..python.column("greet", "columns.py")
    };
    expect![[r#""writer/c/Some(0)/1: hi Ada" 2"#]]
        .assert_eq(&cells(&*one(&greet, &options(Echo)), &["Ada"]).await);
    let shout = python.column("shout", "columns.py");
    expect![[r#"
        "X"
        Permanent x1 valueerror: ValueError: not this one (columns.py, line 18)
        "Y""#]]
    .assert_eq(&cells(&*one(&shout, &options(Echo)), &["x", "bad", "y"]).await);
}

#[tokio::test]
async fn calls_run_at_once() {
    let Some(python) = Python::new() else { return };
    let meet = python.column("meet", "columns.py");
    expect![[r#"
        null
        [1,[2]]"#]]
    .assert_eq(&cells(&*one(&meet, &options(Echo)), &["x", "y"]).await);
}

#[tokio::test]
async fn row_groups_and_typed_parameters() {
    let Some(python) = Python::new() else { return };
    let repeat = CustomColumn {
        params: Value::map([("count", Value::Int(2))]),
        full_column: true,
        ..python.column("repeat", "columns.py")
    };
    let generator = one(&repeat, &options(Echo));
    let rows = rows(vec![vec!["a".into(), "b".into()]]);
    expect![[r#"
        "aa"
        "bb""#]]
    .assert_eq(&shown(done(generator.batch(rows)).await.unwrap()));
}

#[tokio::test]
async fn failures_are_told() {
    let Some(python) = Python::new() else { return };
    let leave = python.column("leave", "columns.py");
    expect!["Permanent x1 systemexit: SystemExit: 3 (columns.py, line 44)"]
        .assert_eq(&cells(&*one(&leave, &options(Echo)), &["x"]).await);
    let missing = cells(&*one(&python.column("nope", "columns.py"), &options(Echo)), &["x"]).await;
    assert!(missing.contains("the worker has no function `nope`") && missing.contains("greet"), "{missing}");
    python.folder.write("broken.py", "import nothing_of_this_name\n");
    let broken = cells(&*one(&python.column("f", "broken.py"), &options(Echo)), &["x"]).await;
    assert!(broken.contains("ModuleNotFoundError: No module named 'nothing_of_this_name'"), "{broken}");
}
