//! Errors of ops at load.

use anabranch_rows::{Batch, Column, Rows};
use expect_test::{Expect, expect};
use serde_json::{Value, json};

use super::kit::{COUNTRY, Case, FINAL, case};

fn check(case: &Case, expected: Expect) {
    expected.assert_eq(&case.problems());
}

fn rows() -> Rows {
    Rows::new(Batch::new(vec![1]).with_column(COUNTRY, Column::texts([Some("US")])))
}

fn with_rows(op: &str, params: Value) -> Case {
    case(op, params).input(&rows())
}

#[test]
fn fan_outs_are_bounded() {
    let params = json!({"endpoint": "", "fanout": 1001});
    check(
        &with_rows("core::follow", params.clone()),
        expect![
            "node `n` (core::follow), fanout: 1001 exceeds the limit of 1000 (max_fanout of validation.toml)"
        ],
    );
    check(
        &with_rows("core::media", params),
        expect![
            "node `n` (core::media), fanout: 1001 exceeds the limit of 1000 (max_fanout of validation.toml)"
        ],
    );
    check(
        &with_rows("core::fanout", json!({"endpoint": "", "key": "a:{id}", "limit": 1001})),
        expect![
            "node `n` (core::fanout), limit: 1001 exceeds the limit of 1000 (max_fanout of validation.toml)"
        ],
    );
}

#[test]
fn sort_needs_a_column_that_may_be_read() {
    for (key, expected) in [
        (
            1001,
            expect![
                "node `n` (core::sort), by: the rows have no column `score` here (a node before this one has to make it)"
            ],
        ),
        (4001, expect!["node `n` (core::sort), by: key `features` is a feature bundle, not a column"]),
        (6001, expect!["node `n` (core::sort), by: key `secret` is not readable"]),
        (6003, expect!["node `n` (core::sort), by: key `gone` is blocked; use `score`"]),
        (3001, expect![[""]]),
        (1, expect![[""]]),
    ] {
        check(&with_rows("core::sort", json!({"by": key})), expected);
    }
}

#[test]
fn vm_needs_a_key_that_takes_its_values() {
    let number = json!({"op": "const_number", "value": 0.5});
    let null = json!({"op": "const_null"});
    for (key, expr, expected) in [
        (1, &number, expect!["node `n` (core::vm), out_key: ids cannot be written"]),
        (
            5001,
            &number,
            expect!["node `n` (core::vm), out_key: the expression is of kind float, but key `age` is int"],
        ),
        (
            3001,
            &number,
            expect![
                "node `n` (core::vm), out_key: the expression is of kind float, but key `country` is string"
            ],
        ),
        (
            4001,
            &number,
            expect!["node `n` (core::vm), out_key: key `features` is a feature bundle, not a column"],
        ),
        (6002, &number, expect!["node `n` (core::vm), out_key: key `fixed` is not writable"]),
        (6003, &number, expect!["node `n` (core::vm), out_key: key `gone` is not writable"]),
        (
            2001,
            &null,
            expect!["warning: node `n` (core::vm), expr_id: always null, but key `final` is not nullable"],
        ),
        (2001, &number, expect![[""]]),
    ] {
        check(&with_rows("core::vm", json!({"out_key": key, "expr_id": "e"})).expr(expr), expected);
    }
}

#[test]
fn fields_are_names_of_keys() {
    let lookup = |fields: Value| {
        with_rows("core::lookup", json!({"endpoint": "", "key": "user:{id}", "fields": fields}))
    };
    check(&lookup(json!("age")), expect!["node `n` (core::lookup), fields: not a list of fields"]);
    check(
        &lookup(json!([
            "ages", 7, {"key": "age"}, {"name": "age", "kind": "int"}, {"name": "a", "key": 99}, "age", "age",
            {"name": "age", "key": true}, "id", "features", "country"
        ])),
        expect![[r#"
            node `n` (core::lookup), fields[0]: there is no key `ages` (did you mean `age`?)
            node `n` (core::lookup), fields[1]: neither the name of a field nor an object with `name` and `key`
            node `n` (core::lookup), fields[2]: no `name`, or one that is not a string
            node `n` (core::lookup), fields[3]: unknown member `kind`; there are `name` and `key`
            node `n` (core::lookup), fields[4]: there is no key `99`
            node `n` (core::lookup), fields[6]: key `age` is listed twice
            node `n` (core::lookup), fields[7]: neither the name nor the number of a key
            node `n` (core::lookup), fields[8]: ids cannot be written
            node `n` (core::lookup), fields[9]: key `features` is a feature bundle, not a column
            node `n` (core::lookup), fields: the rows have a column `country` already (`overwrite: true` replaces it)"#]],
    );
}

#[test]
fn keys_are_made_of_what_rows_have() {
    let lookup =
        |key: &str| with_rows("core::lookup", json!({"endpoint": "", "key": key, "fields": ["age"]}));
    for (key, expected) in [
        ("user:{id", expect!["node `n` (core::lookup), key: a `{` without its `}`"]),
        (
            "user:{score}",
            expect!["node `n` (core::lookup), key: `{score}`: the rows have no column `score` here"],
        ),
        ("user:{nobody}", expect!["node `n` (core::lookup), key: `{nobody}`: there is no key `nobody`"]),
        (
            "user:{$nothing}",
            expect!["node `n` (core::lookup), key: `{$nothing}`: there is no parameter `nothing`"],
        ),
        ("user:{country}:{$lane}:{user_id}", expect![[""]]),
    ] {
        check(&lookup(key), expected);
    }
}

#[test]
fn fanout_parameters_fit_together() {
    let fanout = |more: Value| {
        let mut params = json!({"endpoint": "", "key": "a:{id}", "limit": 1});
        params.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        with_rows("core::fanout", params)
    };
    check(
        &fanout(json!({"score_key": 1001})),
        expect![[
            r#"node `n` (core::fanout), score_key: lists have no scores (`kind: "scored"` reads sorted sets)"#
        ]],
    );
    check(
        &fanout(json!({"score_key": 5001, "kind": "scored", "parent_key": 1001})),
        expect![[r#"
        node `n` (core::fanout), score_key: key `age` is int, not float
        node `n` (core::fanout), parent_key: key `score` is float, not int"#]],
    );
    check(
        &fanout(json!({"fields": ["age"]})),
        expect![
            "node `n` (core::fanout), fields: without a `fields_key`, as in `user:{id}`, there is nowhere to read them"
        ],
    );
    check(
        &fanout(json!({"fields_key": "user:{id}"})),
        expect!["node `n` (core::fanout), fields_key: there are no `fields` to read"],
    );
    check(
        &fanout(json!({"fields": ["age"], "fields_key": "user:{country}"})),
        expect!["node `n` (core::fanout), fields_key: `{country}`: the rows have no column `country` here"],
    );
    check(
        &fanout(json!({"parent_key": 5001, "fields": ["age"], "fields_key": "u:{id}"})),
        expect!["node `n` (core::fanout), fields: key 5001 is also the `score_key` or the `parent_key`"],
    );
}

#[test]
fn both_sides_of_a_concat_agree() {
    let odd = Rows::new(Batch::new(vec![1]).with_column(COUNTRY, Column::ints([Some(1)])));
    check(
        &with_rows("core::concat", json!({"rhs": "r"})).input(&odd),
        expect!["node `n` (core::concat), rhs: column `country` is string on one side and int on the other"],
    );
}

#[test]
fn boost_and_fill_need_something_to_do() {
    let pred = json!({"op": "const_bool", "value": true});
    let boost = |params: Value| with_rows("core::boost", params).pred(&pred);
    check(
        &boost(json!({"out_key": 2001, "pred_id": "p"})),
        expect![[r#"
        node `n` (core::boost), factor: neither `factor` nor `add` is given, so nothing would change
        node `n` (core::boost), out_key: the rows have no column `final` here (a node before this one has to make it)"#]],
    );
    check(
        &boost(json!({"out_key": 3001, "pred_id": "p", "add": 1.0})),
        expect!["node `n` (core::boost), out_key: key `country` is string, not float"],
    );
    let fill = |params: Value| with_rows("core::fill", params);
    check(&fill(json!({"keys": []})), expect!["node `n` (core::fill), keys: there is nothing to fill"]);
    check(&fill(json!({"keys": "country"})), expect!["node `n` (core::fill), keys: not a list of keys"]);
    check(
        &fill(json!({"keys": ["country", "id", "final", "final", "finale"]})),
        expect![[r#"
        node `n` (core::fill), keys[0]: key `country` has no registered default (give a `value`, or register a default)
        node `n` (core::fill), keys[1]: ids cannot be written
        node `n` (core::fill), keys[3]: key `final` is listed twice
        node `n` (core::fill), keys[4]: there is no key `finale` (did you mean `final`?)"#]],
    );
    check(
        &fill(json!({"keys": ["country", "age"], "value": 1.5})),
        expect![[r#"
        node `n` (core::fill), value: 1.5 is no string, which key `country` takes
        node `n` (core::fill), value: 1.5 is no int, which key `age` takes"#]],
    );
}

#[test]
fn if_decides_before_there_are_rows() {
    let pred = json!({"op": "not_null", "x": {"op": "key_ref", "key_id": 1001}});
    let with_final = Rows::new(Batch::new(vec![1]).with_column(FINAL, Column::floats([Some(1.0)])));
    let choose = with_rows("core::if", json!({"pred_id": "p", "then": "t"})).pred(&pred).input(&with_final);
    check(
        &choose,
        expect![
            "node `n` (core::if), pred_id: it reads the column `score`, and the node does not say of which row (`on` names a node whose first row is read, such as the viewer; core::filter chooses among rows)"
        ],
    );
}
