//! Ops that compute: their rows.

use anabranch_rows::{Batch, Column, Rows};
use expect_test::{Expect, expect};
use serde_json::{Value, json};

use super::kit::{AGE, COUNTRY, Case, FINAL, NEW, SCORE, case};
use crate::value::Scalar;

fn check(case: Case, expected: Expect) {
    expected.assert_eq(&case.text());
}

fn scored(scores: &[Option<f64>]) -> Rows {
    let ids: Vec<i64> = (0..scores.len() as i64).collect();
    Rows::new(Batch::new(ids).with_column(SCORE, Column::floats(scores.iter().copied())))
}

fn key(id: u32) -> Value {
    json!({"op": "key_ref", "key_id": id})
}

fn above(key_id: u32, value: f64) -> Value {
    json!({"op": "cmp", "cmp": ">", "a": key(key_id), "b": {"op": "const_number", "value": value}})
}

fn weight_above(value: f64) -> Value {
    let weight = json!({"op": "param_ref", "param_id": 1});
    json!({"op": "cmp", "cmp": ">", "a": weight, "b": {"op": "const_number", "value": value}})
}

#[test]
fn sort_is_stable_with_nulls_last() {
    let rows = scored(&[Some(0.4), Some(0.9), Some(-1.0), None, Some(0.4)]);
    let sort = |params: Value| case("core::sort", params).input(&rows);
    check(
        sort(json!({"by": 1001})),
        expect![[r#"
        2 score=-1
        0 score=0.4
        4 score=0.4
        1 score=0.9
        3"#]],
    );
    check(
        sort(json!({"by": 1001, "order": "desc"})),
        expect![[r#"
        1 score=0.9
        0 score=0.4
        4 score=0.4
        2 score=-1
        3"#]],
    );
    check(
        sort(json!({"by": 1001, "order": "desc"})).first(2),
        expect![[r#"
        1 score=0.9
        0 score=0.4"#]],
    );
    check(sort(json!({"by": 1, "order": "desc"})).first(1), expect![[r#"4 score=0.4"#]]);
}

#[test]
fn sort_orders_active_rows_of_any_kind() {
    let batch = Batch::new(vec![0, 1, 2, 3, 4])
        .with_column(COUNTRY, Column::texts([Some("b"), None, Some("a"), Some("c"), None]))
        .with_column(AGE, Column::ints([Some(3), Some(1), None, Some(2), Some(9)]))
        .with_column(NEW, Column::bools([Some(true), Some(false), None, Some(false), Some(true)]));
    let rows = Rows::new(batch).with_active(vec![4, 2, 1, 0]);
    let sort = |by: u32, order: &str| {
        let sorted = case("core::sort", json!({"by": by, "order": order})).input(&rows).rows().unwrap();
        sorted.ids().collect::<Vec<_>>()
    };
    assert_eq!(sort(3001, "desc"), [0, 2, 4, 1]);
    assert_eq!(sort(5001, "asc"), [1, 0, 4, 2]);
    assert_eq!(sort(5002, "asc"), [1, 4, 0, 2]);
}

#[test]
fn take_keeps_the_batch() {
    let rows = scored(&[None; 5]).with_active(vec![3, 1, 4]);
    let taken = case("core::take", json!({"count": 2})).input(&rows).rows().unwrap();
    assert_eq!(taken.ids().collect::<Vec<_>>(), [3, 1]);
    assert!(std::sync::Arc::ptr_eq(taken.batch(), rows.batch()));
    assert_eq!(case("core::take", json!({"count": 9})).input(&rows).rows().unwrap().len(), 3);
}

#[test]
fn concat_merges_dictionaries() {
    let side = |ids: [i64; 4], countries: [&str; 4]| {
        Rows::new(Batch::new(ids.to_vec()).with_column(COUNTRY, Column::texts(countries.map(Some))))
    };
    let (left, right) =
        (side([1, 2, 3, 4], ["US", "CA", "US", "CA"]), side([5, 6, 7, 8], ["CA", "FR", "CA", "FR"]));
    let rows = case("core::concat", json!({"rhs": "r"})).input(&left).input(&right).rows().unwrap();
    let text = rows.batch().column(COUNTRY).and_then(Column::as_text).unwrap();
    assert_eq!(text.dictionary().iter().collect::<Vec<_>>(), ["US", "CA", "FR"]);
    assert_eq!(text.codes().values()[..], [0, 1, 0, 1, 1, 2, 1, 2]);
}

#[test]
fn concat_has_the_wanted_columns_of_both() {
    let left = scored(&[Some(0.5), None, Some(0.25)]).with_active(vec![2, 0]);
    let ages = Column::ints([Some(40)]);
    let right =
        Rows::new(Batch::new(vec![9]).with_column(AGE, ages).with_column(FINAL, Column::floats([Some(1.0)])));
    let concat = || case("core::concat", json!({"rhs": "r"})).input(&left).input(&right);
    check(
        concat(),
        expect![[r#"
        2 score=0.25
        0 score=0.5
        9 final=1 age=40"#]],
    );
    check(
        concat().wanted(&[AGE]),
        expect![[r#"
        2
        0
        9 age=40"#]],
    );
    check(
        case("core::concat", json!({"rhs": "r"})).input(&left).input(&left),
        expect![[r#"
        2 score=0.25
        0 score=0.5
        2 score=0.25
        0 score=0.5"#]],
    );
}

#[test]
fn vm_writes_active_rows() {
    let double = json!({"op": "mul", "a": key(1), "b": {"op": "const_number", "value": 2.0}});
    let rows = scored(&[Some(0.5), None, Some(2.0)]).with_active(vec![2, 0]);
    let vm = |out: u32, expr: &Value| {
        case("core::vm", json!({"out_key": out, "expr_id": "e"})).expr(expr).input(&rows)
    };
    check(
        vm(2001, &double),
        expect![[r#"
        2 score=2 final=4
        0 score=0.5 final=0"#]],
    );
    assert!(vm(2001, &double).rows().unwrap().batch().column(FINAL).unwrap().is_null(1));
    check(
        vm(2001, &key(1001)),
        expect![[r#"
        2 score=2 final=2
        0 score=0.5 final=0.5"#]],
    );
    check(
        vm(2001, &double).wanted(&[SCORE]),
        expect![[r#"
        2 score=2
        0 score=0.5"#]],
    );
}

#[test]
fn vm_refuses_null_and_infinity_of_active_rows() {
    let rows = scored(&[Some(0.5), None, Some(1e308)]);
    let vm = |out: u32, rows: &Rows| {
        let expr = json!({"op": "mul", "a": key(1001), "b": {"op": "const_number", "value": 10.0}});
        case("core::vm", json!({"out_key": out, "expr_id": "e"})).expr(&expr).input(rows)
    };
    check(
        vm(2001, &rows.first(2)),
        expect![[
            r#"error: null for key `final`, which is not nullable, at row 1 (id 1); a `coalesce` would give it a value"#
        ]],
    );
    check(
        vm(1001, &rows.first(2)),
        expect![[r#"
        0 score=5
        1"#]],
    );
    check(vm(1001, &rows), expect![[r#"error: the expression is not a finite number at row 2 (id 2)"#]]);
}

#[test]
fn filter_keeps_the_order() {
    let rows = scored(&[Some(0.5), Some(0.9), None, Some(0.7)]).with_active(vec![3, 2, 1, 0]);
    let filter = case("core::filter", json!({"pred_id": "p"})).pred(&above(1001, 0.6)).input(&rows);
    check(
        filter,
        expect![[r#"
        3 score=0.7
        1 score=0.9"#]],
    );
    let not = json!({"op": "not", "x": above(1001, 0.6)});
    check(
        case("core::filter", json!({"pred_id": "p"})).pred(&not).input(&rows),
        expect![[r#"
        2
        0 score=0.5"#]],
    );
}

#[test]
fn boost_changes_rows_where_the_predicate_holds() {
    let rows = scored(&[Some(0.5), Some(2.0), None, Some(4.0)]).with_active(vec![3, 2, 0]);
    let boost = |params: Value| case("core::boost", params).pred(&above(1, 0.0)).input(&rows);
    check(
        boost(json!({"out_key": 1001, "pred_id": "p", "factor": 2.0, "add": 1.0})),
        expect![[r#"
        3 score=9
        2
        0 score=0.5"#]],
    );
    check(
        boost(json!({"out_key": 1001, "pred_id": "p", "factor": 1e308})),
        expect![[r#"error: the expression is not a finite number at row 3 (id 3)"#]],
    );
}

#[test]
fn fill_puts_values_where_there_are_none() {
    let rows = scored(&[Some(0.5), None, None]).with_active(vec![2, 0]);
    check(
        case("core::fill", json!({"keys": ["score", 2001], "value": 3})).input(&rows),
        expect![[r#"
        2 score=3 final=3
        0 score=0.5 final=3"#]],
    );
    check(
        case("core::fill", json!({"keys": ["final", "language"]})).input(&rows),
        expect![[r#"
        2 final=0.25 language=en
        0 score=0.5 final=0.25 language=en"#]],
    );
    check(
        case("core::fill", json!({"keys": ["final", "language"]})).input(&rows).wanted(&[FINAL]),
        expect![[r#"
        2 final=0.25
        0 score=0.5 final=0.25"#]],
    );
}

#[test]
fn if_takes_the_side_that_ran() {
    let ages = Rows::new(Batch::new(vec![9]).with_column(AGE, Column::ints([Some(40)])));
    let choose = |weight: f64| {
        let params = json!({"pred_id": "p", "then": "t"});
        let choose = case("core::if", params).pred(&weight_above(0.5)).value(0, Scalar::Float(weight));
        choose.input(&scored(&[Some(0.5)])).input(&ages)
    };
    check(choose(0.9), expect![[r#"9 age=40"#]]);
    check(choose(0.1), expect![[r#"0 score=0.5"#]]);
    let params = json!({"pred_id": "p", "then": "t", "else": "e"});
    let both = case("core::if", params).pred(&weight_above(0.5)).input(&ages).input(&ages);
    check(both.input(&scored(&[Some(0.25)])), expect![[r#"0 score=0.25"#]]);
}

#[test]
fn tests_have_ops_of_their_own() {
    let rows = scored(&[Some(0.5), None]).with_active(vec![1]);
    check(case("test::sleep", json!({"duration_ms": 50})).input(&rows), expect!["1"]);
    check(case("test::sleep", json!({"duration_ms": 0})).input(&rows), expect!["1"]);
    check(
        case("test::sleep", json!({"duration_ms": 9, "fail_after_sleep": true})).input(&rows),
        expect![[r#"error: intentional failure (fail_after_sleep=true)"#]],
    );
    check(case("test::busy_cpu", json!({"busy_wait_ms": 3})).input(&rows), expect!["1"]);
    check(case("test::fixed_source", json!({})), expect!["1"]);
    check(
        case("test::fixed_source", json!({"row_count": 100})).first(2),
        expect![[r#"
        1
        2"#]],
    );
}
