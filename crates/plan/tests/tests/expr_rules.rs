//! The meaning of expressions and predicates, rule by rule.

use anabranch_engine::Check;
use anabranch_plan::expr::Error;
use anabranch_plan::{Scalar, Values};
use anabranch_rows::{Column, Key, Kind};
use expect_test::{Expect, expect};
use serde_json::{Value, json};

use crate::expr_world::{cell, filter, no_params, param, program, rows, text};

fn key(id: u32) -> Value {
    json!({"op": "key_ref", "key_id": id})
}

fn number(value: impl Into<Value>) -> Value {
    json!({"op": "const_number", "value": value.into()})
}

fn string(value: &str) -> Value {
    json!({"op": "const_string", "value": value})
}

fn nothing() -> Value {
    json!({"op": "const_null"})
}

fn binary(op: &str, a: impl Into<Value>, b: impl Into<Value>) -> Value {
    json!({"op": op, "a": a.into(), "b": b.into()})
}

fn compare(a: impl Into<Value>, cmp: &str, b: impl Into<Value>) -> Value {
    json!({"op": "cmp", "cmp": cmp, "a": a.into(), "b": b.into()})
}

fn not(pred: impl Into<Value>) -> Value {
    json!({"op": "not", "x": pred.into()})
}

fn regex(pattern: &Value, flags: &str) -> Value {
    json!({"op": "regex", "key_id": 13, "pattern": pattern, "flags": flags})
}

fn literal(pattern: &str) -> Value {
    json!({"kind": "literal", "value": pattern})
}

fn column_with(expr: &Value, params: &Values) -> Result<Column, Error> {
    let program = program(expr).unwrap_or_else(|problems| panic!("{problems}"));
    let kind = program.kind().unwrap_or(Kind::Float);
    program.column(&rows(), params, kind, &Check::never())
}

/// The values in the four rows: plain, null, large, odd.
#[track_caller]
fn values(expr: &Value, expect: &Expect) {
    values_with(expr, &no_params(), expect);
}

#[track_caller]
fn values_with(expr: &Value, params: &Values, expect: &Expect) {
    let text = match column_with(expr, params) {
        Ok(column) => (0..4).map(|row| shown(cell(&column, row))).collect::<Vec<_>>().join(" | "),
        Err(error) => error.to_string(),
    };
    expect.assert_eq(&text);
}

fn shown(value: Option<Scalar>) -> String {
    match value {
        None => "null".to_owned(),
        Some(Scalar::Int(int)) => int.to_string(),
        Some(Scalar::Float(float)) => format!("{float:?}"),
        Some(Scalar::Bool(value)) => value.to_string(),
        Some(Scalar::Text(text)) => format!("{text:?}"),
    }
}

/// Which of the four rows pass.
#[track_caller]
fn passing(pred: &Value, expected: &[u32]) {
    passing_with(pred, &no_params(), expected);
}

#[track_caller]
fn passing_with(pred: &Value, params: &Values, expected: &[u32]) {
    let filter = filter(pred).unwrap_or_else(|problems| panic!("{problems}"));
    let found = filter.select(&rows(), params, &Check::never()).unwrap();
    assert_eq!(&found[..], expected);
}

#[track_caller]
fn failing_with(pred: &Value, params: &Values, expect: &Expect) {
    let filter = filter(pred).unwrap_or_else(|problems| panic!("{problems}"));
    let error = filter.select(&rows(), params, &Check::never()).unwrap_err();
    expect.assert_eq(&error.to_string());
}

#[test]
fn arithmetic_is_null_if_an_operand_is() {
    values(&binary("add", key(11), number(1)), &expect!["1.5 | null | 9007199254740992.0 | -1.0"]);
    values(&binary("mul", key(1), number(0.5)), &expect!["0.5 | 1.0 | 4503599627370496.0 | -2.0"]);
    values(&binary("sub", number(1), key(10)), &expect!["-2.0 | null | -9007199254740991.0 | 1.0"]);
    values(&binary("add", key(16), nothing()), &expect!["null | null | null | null"]);
    values(&binary("coalesce", key(10), key(1)), &expect!["3 | 2 | 9007199254740993 | 0"]);
    values(&binary("coalesce", key(10), key(16)), &expect!["3.0 | 2.0 | 9007199254740992.0 | 0.0"]);
    values(&json!({"op": "neg", "x": key(16)}), &expect!["-1.0 | -2.0 | -3.0 | -4.0"]);
}

#[test]
fn what_is_undefined_is_null() {
    values(&binary("div", number(6), key(10)), &expect!["2.0 | null | 6.661338147750939e-16 | null"]);
    values(&binary("div", key(16), number(0)), &expect!["null | null | null | null"]);
    values(
        &json!({"op": "log", "x": key(10)}),
        &expect!["1.0986122886681098 | null | 36.7368005696771 | null"],
    );
    values(
        &binary("pow", key(11), number(0.5)),
        &expect!["0.7071067811865476 | null | 94906265.62425156 | null"],
    );
    values(&binary("min", key(11), key(16)), &expect!["0.5 | null | 3.0 | -2.0"]);
    values(&binary("max", key(11), key(16)), &expect!["1.0 | null | 9007199254740992.0 | 4.0"]);
    let clamp = json!({"op": "clamp", "x": key(11), "lo": number(-1), "hi": key(16)});
    values(&clamp, &expect!["0.5 | null | 3.0 | -1.0"]);
}

#[test]
fn results_are_finite() {
    values(
        &json!({"op": "exp", "x": key(11)}),
        &expect!["the expression is not a finite number at row 2 (id 9007199254740993)"],
    );
    let huge = binary("mul", number(1e300), number(1e300));
    values(&huge, &expect!["the expression is not a finite number at row 0 (id 1)"]);
    // What is not finite on the way may be harmless in the end.
    values(&binary("min", huge, key(16)), &expect!["1.0 | 2.0 | 3.0 | 4.0"]);
    // Only active rows are looked at.
    let program = program(&json!({"op": "exp", "x": key(11)})).unwrap();
    let some = rows().with_active(vec![3, 0]);
    let column = program.column(&some, &no_params(), Kind::Float, &Check::never()).unwrap();
    assert_eq!((0..4).map(|row| column.is_null(row)).collect::<Vec<_>>(), [false, true, true, false]);
}

#[test]
fn comparisons_with_null_are_false() {
    passing(&compare(key(11), ">", number(0)), &[0, 2]);
    passing(&not(compare(key(11), ">", number(0))), &[1, 3]);
    passing(&compare(key(11), "!=", number(0.5)), &[2, 3]);
    passing(&compare(key(11), "==", key(11)), &[0, 2, 3]);
    passing(&compare(key(11), "==", nothing()), &[1]);
    passing(&compare(nothing(), "!=", key(11)), &[0, 2, 3]);
    passing(&compare(key(11), "<=", nothing()), &[]);
    passing(&compare(nothing(), "==", nothing()), &[0, 1, 2, 3]);
    passing(&compare(nothing(), "!=", nothing()), &[]);
    // A null that is not written as such asks nothing.
    passing(&compare(key(11), "==", binary("coalesce", nothing(), nothing())), &[]);
    passing(&compare(key(11), "==", json!({"op": "param_ref", "param_id": 1})), &[]);
}

#[test]
fn every_kind_may_be_null() {
    for id in [10, 11, 12, 13, 14] {
        passing(&json!({"op": "is_null", "x": key(id)}), &[1]);
        passing(&json!({"op": "not_null", "x": key(id)}), &[0, 2, 3]);
        passing(&compare(key(id), "==", nothing()), &[1]);
    }
    passing(&json!({"op": "is_null", "x": key(1)}), &[]);
    passing(&json!({"op": "is_null", "x": key(15)}), &[0, 1, 2, 3]);
}

#[test]
fn numbers_compare_exactly() {
    let large = (1i64 << 53) + 1;
    passing(&compare(key(1), "==", number(large)), &[2]);
    passing(&compare(key(1), "==", number(large - 1)), &[]);
    passing(&compare(key(1), ">", number(9_007_199_254_740_992.0)), &[2]);
    passing(&compare(key(10), "==", key(1)), &[2]);
    passing(&compare(key(1), ">", key(11)), &[0, 2]);
    passing(&compare(key(11), "<", key(1)), &[0, 2]);
    passing(&json!({"op": "in", "lhs": key(1), "list": [large]}), &[2]);
    passing(&json!({"op": "in", "lhs": key(1), "list": [large - 1, 1.0, 0.5]}), &[0]);
    passing(&json!({"op": "in", "lhs": key(11), "list": [large, 0.5, 1, 2, 3, 4, 5, 6, 7, 8, -2]}), &[0, 3]);
    passing(&compare(key(1), "<", number(u64::MAX)), &[0, 1, 2, 3]);
}

#[test]
fn lists() {
    passing(&json!({"op": "in", "lhs": key(11), "list": [0.5]}), &[0]);
    passing(&not(json!({"op": "in", "lhs": key(11), "list": [0.5]})), &[1, 2, 3]);
    passing(&json!({"op": "in", "lhs": key(11), "list": []}), &[]);
    passing(&json!({"op": "in", "lhs": key(13), "list": []}), &[]);
    passing(&json!({"op": "in", "lhs": key(13), "list": ["US", "FR", "US"]}), &[0, 3]);
    let lower = json!({"op": "lower", "x": key(13)});
    passing(&json!({"op": "in", "lhs": lower, "list": ["us"]}), &[0, 2]);
}

#[test]
fn strings_and_truth_values() {
    passing(&compare(key(13), "==", string("US")), &[0]);
    passing(&compare(string("US"), "<", key(13)), &[2]);
    passing(&compare(key(13), ">=", key(14)), &[0, 2].map(|row| row));
    passing(&compare(key(12), "==", json!({"op": "const_bool", "value": true})), &[0, 3]);
    passing(&compare(key(12), "!=", json!({"op": "const_bool", "value": true})), &[2]);
    values(&json!({"op": "upper", "x": key(14)}), &expect![[r#""STRASSE" | null | "" | "US""#]]);
    values(&binary("coalesce", key(13), string("none")), &expect![[r#""US" | "none" | "us" | "FR""#]]);
    let longer =
        json!({"op": "if", "cond": compare(key(1), ">", number(1)), "then": key(14), "else": key(13)});
    values(&longer, &expect![[r#""US" | null | "" | "FR""#]]);
    let flags =
        json!({"op": "if", "cond": compare(key(1), "<", number(2)), "then": key(12), "else": nothing()});
    values(&flags, &expect!["true | null | null | true"]);
}

#[test]
fn a_predicate_that_is_false_chooses_the_other_value() {
    let cond = compare(key(11), ">", number(0));
    let chosen = json!({"op": "if", "cond": cond, "then": key(16), "else": number(-1)});
    values(&chosen, &expect!["1.0 | -1.0 | 3.0 | -1.0"]);
}

#[test]
fn parameters() {
    let weighted = binary(
        "mul",
        key(16),
        binary("coalesce", json!({"op": "param_ref", "param": "factor"}), number(0.5)),
    );
    values(&weighted, &expect!["0.5 | 1.0 | 1.5 | 2.0"]);
    values_with(&weighted, &param(0, Scalar::Float(2.0)), &expect!["2.0 | 4.0 | 6.0 | 8.0"]);
    let limit = compare(key(1), "<=", json!({"op": "param_ref", "param_id": 2}));
    passing_with(&limit, &param(1, Scalar::Int(1)), &[0, 3]);
    let word = compare(json!({"op": "param_ref", "param_id": 3}), "==", key(13));
    passing_with(&word, &param(2, text("FR")), &[3]);
    let strict = filter(&compare(
        json!({"op": "param_ref", "param_id": 4}),
        "==",
        json!({"op": "const_bool", "value": true}),
    ));
    let strict = strict.unwrap();
    assert!(strict.keys().is_empty());
    assert!(!strict.holds(&no_params()).unwrap());
    assert!(strict.holds(&param(3, Scalar::Bool(true))).unwrap());
}

#[test]
fn regexes() {
    passing(&regex(&literal("S"), ""), &[0]);
    passing(&regex(&literal("^u"), "i"), &[0, 2]);
    passing(&not(regex(&literal("U"), "")), &[1, 2, 3]);
    let lower = json!({"op": "lower", "x": key(13)});
    passing(&json!({"op": "regex", "x": lower, "pattern": literal("us")}), &[0, 2]);
    let pattern = json!({"kind": "param", "param_id": 5});
    passing_with(&regex(&pattern, ""), &param(4, text("F|s")), &[2, 3]);
    failing_with(
        &regex(&pattern, ""),
        &no_params(),
        &expect!["the regex pattern, parameter `pattern`, is null or missing; set it in param_overrides"],
    );
    failing_with(
        &regex(&pattern, ""),
        &param(4, text("(")),
        &expect![
            "parameter `pattern` is not a regex that can be used: `(` is not closed (character 1 of the pattern)"
        ],
    );
    // Parameters may decide around a pattern that is not there.
    let unset = json!({"op": "is_null", "x": {"op": "param_ref", "param_id": 5}});
    passing(&binary("or", unset, regex(&pattern, "")), &[0, 1, 2, 3]);
    let filter = filter(&regex(&pattern, "")).unwrap();
    let nothing = filter.select(&rows().first(0), &no_params(), &Check::never());
    assert!(nothing.unwrap().is_empty(), "no row needs the pattern");
}

#[test]
fn only_what_is_needed_is_read() {
    let keys = |expr: &Value| program(expr).unwrap().keys().iter().map(|key| key.0).collect::<Vec<_>>();
    assert_eq!(keys(&binary("add", binary("mul", key(16), key(1)), key(11))), [1, 11, 16]);
    assert_eq!(keys(&binary("coalesce", key(1), key(11))), [1]);
    assert_eq!(keys(&binary("add", key(15), key(11))), [0u32; 0]);
    let never = json!({"op": "const_bool", "value": false});
    assert_eq!(keys(&json!({"op": "if", "cond": never, "then": key(11), "else": key(16)})), [16]);
    let cheap = program(&key(16)).unwrap().cost();
    let dear = program(&binary("pow", key(11), key(16))).unwrap().cost();
    assert!(cheap < 2.0 && dear > 10.0, "{cheap} {dear}");
}

#[test]
fn a_column_without_nulls_has_no_null_buffer() {
    let column = column_with(&binary("mul", key(16), number(2)), &no_params()).unwrap();
    assert!(column.nulls().is_none());
    let first = rows().first(2);
    let program = program(&key(16)).unwrap();
    let column = program.column(&first, &no_params(), Kind::Float, &Check::never()).unwrap();
    assert_eq!((0..4).map(|row| column.is_null(row)).collect::<Vec<_>>(), [false, false, true, true]);
    assert_eq!(program.keys(), [Key(16)]);
}

#[test]
fn lower_case_keeps_the_codes() {
    let source = rows().batch().column(Key(13)).cloned();
    let Some(Column::Text(source)) = source else { panic!() };
    let Ok(Column::Text(lower)) = column_with(&json!({"op": "lower", "x": key(13)}), &no_params()) else {
        panic!()
    };
    assert_eq!(lower.dictionary().len(), source.dictionary().len());
    assert!((0..4).all(|row| row == 1 || lower.codes().value(row) == source.codes().value(row)));
}
