//! Ops that write columns: a column of few active rows is as small as they are.

use anabranch_rows::{Batch, Column, Rows};
use serde_json::{Value, json};

use super::kit::{Case, FINAL, SCORE, case, store};

const BATCH: i64 = 1000;

fn batch() -> Batch {
    let score = |row: i64| (row % 7 != 0).then_some(row as f64 / 4.0);
    let half = |row: i64| Some(row as f64 / 2.0);
    Batch::new((0..BATCH).collect::<Vec<_>>())
        .with_column(SCORE, Column::floats((0..BATCH).map(score)))
        .with_column(FINAL, Column::floats((0..BATCH).map(half)))
}

fn double() -> Value {
    let score = json!({"op": "key_ref", "key_id": 1001});
    json!({"op": "mul", "a": score, "b": {"op": "const_number", "value": 2}})
}

fn positive() -> Value {
    let score = json!({"op": "key_ref", "key_id": 1001});
    json!({"op": "cmp", "cmp": ">", "a": score, "b": {"op": "const_number", "value": 0}})
}

/// One case per op that writes a column.
fn writers() -> Vec<(&'static str, Case)> {
    let users =
        store(&[("user:700", json!({"country": "CH", "age": 9})), ("user:3", json!({"country": "DE"}))]);
    let linear = json!({"intercept": 1.0, "weights": {"final": 2.0}});
    vec![
        ("core::vm", case("core::vm", json!({"out_key": 1001, "expr_id": "e"})).expr(&double())),
        (
            "core::boost",
            case("core::boost", json!({"out_key": 1001, "pred_id": "p", "factor": 2.0})).pred(&positive()),
        ),
        ("core::fill", case("core::fill", json!({"keys": ["score"], "value": 5}))),
        (
            "core::lookup",
            case("core::lookup", json!({"endpoint": "ep", "key": "user:{id}", "fields": ["country", "age"]}))
                .store(users),
        ),
        ("core::model", case("core::model", json!({"out_key": 1001, "kind": "linear", "model": linear}))),
    ]
}

#[test]
fn a_column_of_few_active_rows_does_not_span_the_batch() {
    for (name, case) in writers() {
        let few = Rows::new(batch()).with_active(vec![700, 3, 14]);
        let written = case.input(&few).rows().unwrap();
        assert_eq!(written.ids().collect::<Vec<_>>(), [700, 3, 14], "{name}");
        assert_eq!(written.batch().len(), 3, "{name} wrote values of rows that nobody has");
    }
}

#[test]
fn many_active_rows_keep_their_batch() {
    for (name, case) in writers() {
        let most = Rows::new(batch()).with_active((0..900).rev().collect::<Vec<u32>>());
        let written = case.input(&most).rows().unwrap();
        assert_eq!((written.len(), written.batch().len()), (900, 1000), "{name}");
    }
}

#[test]
fn few_rows_and_the_same_rows_alone_come_out_equal() {
    let few = Rows::new(batch()).with_active(vec![700, 3, 14, 21]);
    for ((name, sparse), (_, alone)) in writers().into_iter().zip(writers()) {
        assert_eq!(sparse.input(&few).text(), alone.input(&few.compact()).text(), "{name}");
    }
}
