//! `core::model`, against what the libraries that trained the models answer.
//!
//! The models of the fixtures were trained on made-up numbers by LightGBM 4.7 and XGBoost 3.2; `expected.json` has
//! inputs and what the two answer for them.

use std::path::{Path, PathBuf};

use anabranch_rows::{Batch, Column, Key, Rows};
use expect_test::{Expect, expect};
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::given::{BOOL, Case, FLOAT, INT, Plain, SCORE, rows, value};

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/models")
}

/// The inputs of the fixtures as rows: age, price, clicks, segment.
fn inputs(expected: &Value) -> Rows {
    let inputs = expected["inputs"].as_array().unwrap();
    let mut batch = Batch::new((0..inputs.len() as i64).collect::<Vec<_>>());
    for feature in 0..4 {
        let column = Column::floats(inputs.iter().map(|row| row[feature].as_f64()));
        batch = batch.with_column(Key(40 + feature as u32), column);
    }
    Rows::new(batch)
}

fn scores(rows: &Rows) -> Vec<f64> {
    let column = rows.batch().column(SCORE).unwrap().as_float().unwrap();
    rows.iter().map(|row| column.value(row)).collect()
}

#[test]
fn trees_score_as_the_libraries_do() {
    let expected: Value =
        serde_json::from_slice(&std::fs::read(folder().join("expected.json")).unwrap()).unwrap();
    let rows = inputs(&expected);
    for case in expected["cases"].as_array().unwrap() {
        let file = case["file"].as_str().unwrap();
        // Where the trainer refuses numbers that are no categories, they were left out.
        let whole = |row: &Value| {
            let segment = row[3].as_f64();
            case["cat"] != true
                || segment.is_none_or(|number| (0.0..1e6).contains(&number) && number.fract() == 0.0)
        };
        let fair: Vec<u32> =
            (0..rows.len() as u32).filter(|row| whole(&expected["inputs"][*row as usize])).collect();
        for output in ["raw", "transformed"] {
            let params = json!({"out_key": SCORE.0, "kind": case["kind"], "file": file, "output": output});
            let found = Case::new("core::model", &params, &[&rows.with_active(fair.clone())]);
            let found = scores(&found.run_in(&folder()).unwrap());
            for (row, found) in fair.iter().zip(found) {
                let expected = case[output][*row as usize].as_f64().unwrap();
                // A sum is exact; the last bit of an exponential is the machine's.
                let near = if output == "raw" { 0.0 } else { 2e-7 * expected.abs() };
                assert!(
                    (found - expected).abs() <= near,
                    "{file} {output} row {row}: {found}, not {expected}"
                );
            }
        }
    }
}

proptest! {
    #[test]
    fn linear_models_are_sums(
        rows in rows(), intercept in -2.0..2.0f64, weights in proptest::array::uniform3(-2.0..2.0f64), zero: bool,
    ) {
        let model = json!({
            "intercept": intercept, "weights": {"rank": weights[0], "number": weights[1], "fresh": weights[2]},
        });
        let missing = if zero { "zero" } else { "null" };
        let features = json!({"number": INT.0});
        let params = json!({
            "out_key": SCORE.0, "kind": "linear", "model": model, "features": features, "missing": missing,
        });
        let found = Case::new("core::model", &params, &[&rows]).only(&[SCORE]).run();
        prop_assert_eq!(found.iter().collect::<Vec<_>>(), rows.iter().collect::<Vec<_>>());
        for row in rows.iter() {
            let number = |key: Key| match value(&rows, key, row) {
                Some(Plain::Int(value)) => Some(value as f64),
                Some(Plain::Float(value)) => Some(value),
                Some(Plain::Bool(value)) => Some(f64::from(u8::from(value))),
                _ => zero.then_some(0.0),
            };
            let terms = || Some(intercept + number(FLOAT)? * weights[0] + number(INT)? * weights[1] + number(BOOL)? * weights[2]);
            match (value(&found, SCORE, row), terms()) {
                (None, None) => {}
                (Some(Plain::Float(found)), Some(expected)) => prop_assert!((found - expected).abs() < 1e-9),
                (found, expected) => prop_assert!(false, "{found:?}, not {expected:?}"),
            }
        }
    }

    /// Whatever is cut off or written over: an error, or scores; never a panic.
    #[test]
    fn broken_files_are_refused(
        which in any::<prop::sample::Index>(), at in any::<prop::sample::Index>(),
        with in prop::sample::select(vec!["", "9", "-", "=", " ", "\n", "1e999", "4294967296", "x"]), cut: bool,
    ) {
        let mut files: Vec<PathBuf> = std::fs::read_dir(folder()).unwrap().map(|file| file.unwrap().path()).collect();
        files.retain(|file| !file.ends_with("expected.json"));
        files.sort();
        let file = &files[which.index(files.len())];
        let text = std::fs::read_to_string(file).unwrap();
        let at = at.index(text.len());
        let rest = if cut { "" } else { &text[at + 1..] };
        let scratch = std::env::temp_dir().join(format!("anabranch-model-{}", std::process::id()));
        std::fs::create_dir_all(&scratch).unwrap();
        std::fs::write(scratch.join("broken"), format!("{}{with}{rest}", &text[..at])).unwrap();
        let kind = if file.extension().unwrap() == "txt" { "lightgbm" } else { "xgboost" };
        let expected: Value = json!({"inputs": [[0.5, 1.0, 2.0, 3.0], [null, null, null, null]]});
        let params = json!({"out_key": SCORE.0, "kind": kind, "file": "broken"});
        let run = Case::new("core::model", &params, &[&inputs(&expected)]).run_in(&scratch);
        if let Err(error) = run {
            let error = error.to_string();
            prop_assert!(!error.contains("panic"), "{}", error);
            prop_assert!(error.contains("node `it`"), "{}", error);
        }
    }
}

#[test]
fn a_column_nobody_asks_for_is_not_computed() {
    let expected: Value = json!({"inputs": [[0.5, 1.0, 2.0, 3.0]]});
    let model = json!({"weights": {"age": 1e308, "price": 1e308}});
    let params = json!({"out_key": SCORE.0, "kind": "linear", "model": model});
    let rows = Rows::new(inputs(&expected).batch().with_column(Key(41), Column::floats([Some(1e10)])));
    let case = Case::new("core::model", &params, &[&rows]);
    expect!["node `it` (core::model): the score is not a finite number at the row with id 0"]
        .assert_eq(&case.error());
    assert_eq!(case.only(&[Key(40)]).run().len(), 1);
}

fn check(params: &Value, expected: Expect) {
    let rows = inputs(&json!({"inputs": [[0.5, null, 2.0, 3.0]]}));
    let case = Case::new("core::model", params, &[&rows]);
    let error = case.run_in(&folder()).unwrap_err().to_string();
    expected.assert_eq(&error);
}

#[test]
fn what_is_wrong_with_a_file_is_named() {
    check(
        &json!({"out_key": 30, "kind": "lightgbm"}),
        expect!["node `it` (core::model), file: a lightgbm model needs one"],
    );
    check(
        &json!({"out_key": 30, "kind": "lightgbm", "file": "nowhere.txt"}),
        expect![
            "node `it` (core::model), file `nowhere.txt`: cannot be read: No such file or directory (os error 2)"
        ],
    );
    check(
        &json!({"out_key": 30, "kind": "lightgbm", "file": "."}),
        expect!["node `it` (core::model), file `.`: not a file"],
    );
    check(
        &json!({"out_key": 30, "kind": "lightgbm", "file": "xgboost_rank.json"}),
        expect![
            "node `it` (core::model), file `xgboost_rank.json`: line 1: a LightGBM model begins with the line `tree`"
        ],
    );
    check(
        &json!({"out_key": 30, "kind": "xgboost", "file": "lightgbm_binary.txt"}),
        expect![
            "node `it` (core::model), file `lightgbm_binary.txt`: not an XGBoost JSON model: expected ident at line 1 column 3"
        ],
    );
}

#[test]
fn what_is_wrong_with_a_linear_model_is_named() {
    check(
        &json!({"out_key": 10, "kind": "linear"}),
        expect![[r#"
        node `it` (core::model), model: neither `model` nor `file` is given
        node `it` (core::model), out_key: key `views` is int, not float"#]],
    );
    check(
        &json!({"out_key": 30, "kind": "xgboost", "model": {}}),
        expect![
            "node `it` (core::model), model: only linear models are written here; give the xgboost `file`"
        ],
    );
    check(
        &json!({"out_key": 30, "kind": "linear", "model": {"weights": {"agee": 1, "age": "x"}}}),
        expect!["node `it` (core::model), model: the weight of `age` is not a finite number"],
    );
    check(
        &json!({"out_key": 30, "kind": "linear", "model": {"weights": {"agee": 1}, "bias": 2}}),
        expect![
            "node `it` (core::model), model: unexpected field `bias`; there are `intercept` and `weights`"
        ],
    );
    check(
        &json!({"out_key": 30, "kind": "linear", "model": {"weights": {"agee": 1, "rank": 2}}, "features": {"agge": 40},
            "missing": "model", "output": "raw"}),
        expect![[r#"
            node `it` (core::model), output: a linear model has one output; leave it out
            node `it` (core::model), missing: a linear model does not know what to do with null (`null` or `zero`)
            node `it` (core::model), features: the model has no feature `agge` (did you mean `agee`?)
            node `it` (core::model), features, `agee`: the model uses it, and there is no key of this name (`features: {"agee": KEY}` says which key it is)
            node `it` (core::model), features, `rank`: the rows have no column `rank` here (a node before this one has to make it)"#]],
    );
    check(
        &json!({"out_key": 31, "kind": "linear", "model": {"weights": {"price": 1}}}),
        expect![[
            r#"node `it` (core::model): null for key `sure_score`, which is not nullable, at the row with id 0; `missing: "zero"` or a fill before it would give it a value"#
        ]],
    );
}
