//! Errors of expressions, all reported at once, and how valid expressions are shown.

use anabranch_plan::Problems;
use anabranch_plan::expr::{Expr, Filter, Pred, Program};
use expect_test::{Expect, expect};
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::expr_world::{registries, with_scope};

fn told(problems: &Problems) -> String {
    let errors = problems.errors.iter().map(|problem| format!("{problem}\n"));
    let warnings = problems.warnings.iter().map(|problem| format!("warning: {problem}\n"));
    errors.chain(warnings).collect()
}

/// The errors of each of these expressions.
#[track_caller]
fn expr(all: &[Value], expect: &Expect) {
    let told = all.iter().map(|json| {
        let mut problems = Problems::default();
        if let Some(expr) = Expr::parse(json, "e1", &mut problems) {
            with_scope(|scope| Program::compile(&expr, scope, "e1", &mut problems));
        }
        told(&problems)
    });
    expect.assert_eq(&told.collect::<String>());
}

/// The errors of each of these predicates.
#[track_caller]
fn pred(all: &[Value], expect: &Expect) {
    let told = all.iter().map(|json| {
        let mut problems = Problems::default();
        if let Some(pred) = Pred::parse(json, "p1", &mut problems) {
            with_scope(|scope| Filter::compile(&pred, scope, "p1", &mut problems));
        }
        told(&problems)
    });
    expect.assert_eq(&told.collect::<String>());
}

fn key(id: u32) -> Value {
    json!({"op": "key_ref", "key_id": id})
}

fn number(value: f64) -> Value {
    json!({"op": "const_number", "value": value})
}

#[test]
fn shapes() {
    expr(
        &[
            json!(3),
            json!({}),
            json!({"op": 7}),
            json!({"op": "multiply", "a": 1, "b": 2}),
            json!({"op": "ad"}),
            json!({"op": "const_number"}),
            json!({"op": "const_number", "value": "7"}),
            json!({"op": "const_string", "value": 7}),
            json!({"op": "key_ref"}),
            json!({"op": "key_ref", "key_id": -1}),
            json!({"op": "key_ref", "key_id": 1.5}),
            json!({"op": "key_ref", "key_id": 1, "key": "id"}),
            json!({"op": "param_ref", "param_id": "factor"}),
            json!({"op": "const_null", "value": 1}),
            json!({"op": "neg"}),
            json!({"op": "clamp", "x": key(11), "lo": 1}),
            json!({"op": "if", "cond": key(1), "then": key(1)}),
        ],
        &expect![[r#"
            e1: an expression is an object, not 3
            e1: missing `op`, a string
            e1.op: must be a string, not 7
            e1.op: unknown expression op `multiply` (there are neg, abs, log, exp, floor, ceil, round, length, lower, upper, add, sub, mul, div, mod, min, max, pow, coalesce, const_number, const_null, const_string, const_bool, key_ref, param_ref, clamp, if, now, hash)
            e1.op: unknown expression op `ad` (did you mean `add`?)
            e1: missing `value`, a number
            e1.value: must be a number, not "7"
            e1.value: must be a string, not 7
            e1: missing `key_id`, a number from 0 to 4294967295
            e1.key_id: must be a number from 0 to 4294967295, not -1
            e1.key_id: must be a number from 0 to 4294967295, not 1.5
            e1: both `key_id` and `key`: give one
            e1.param_id: must be a number from 0 to 4294967295, not "factor"
            e1.value: unknown field (the fields here are `op`)
            e1: missing `x`
            e1.lo: an expression is an object, not 1
            e1: missing `hi`
            e1.cond.op: unknown predicate op `key_ref` (there are const_bool, and, or, not, cmp, in, is_null, not_null, regex)
            e1: missing `else`
        "#]],
    );
}

#[test]
fn all_at_once() {
    let broken = json!({"op": "add", "a": {"op": "mul", "a": {"op": "nul"}, "c": 1}, "b": 5, "note": "x"});
    expr(
        &[broken],
        &expect![[r#"
        e1.note: unknown field (the fields here are `op`, `a`, `b`)
        e1.a.c: unknown field (the fields here are `op`, `a`, `b`)
        e1.a.a.op: unknown expression op `nul` (did you mean `mul`?)
        e1.a: missing `b`
        e1.b: an expression is an object, not 5
    "#]],
    );
    let wrong = json!({"op": "add",
        "a": {"op": "mul", "a": key(13), "b": key(999)},
        "b": {"op": "coalesce", "a": key(20), "b": key(15)}});
    expr(
        &[wrong],
        &expect![[r#"
        e1.a.a: `mul` takes numbers, not a string
        e1.a.b: there is no key 999 (keys are registered in keys.toml)
        warning: e1.b.a: key 20 (`old_score`) is deprecated (use key 11)
        warning: e1.b.b: key 15 (`absent`) is null in all rows here (no node before this one makes it)
    "#]],
    );
}

#[test]
fn predicate_shapes() {
    pred(
        &[
            json!([]),
            json!({"op": "xor", "a": 1}),
            json!({"op": "const_bool", "value": 1}),
            json!({"op": "and", "a": {"op": "not"}}),
            json!({"op": "cmp", "a": key(1), "b": key(1)}),
            json!({"op": "cmp", "cmp": "=", "a": key(1)}),
            json!({"op": "in", "list": [1]}),
            json!({"op": "in", "lhs": key(1)}),
            json!({"op": "in", "lhs": key(1), "list": [1, "a"]}),
            json!({"op": "in", "lhs": key(1), "list": ["a", 1]}),
            json!({"op": "in", "lhs": key(1), "list": [null]}),
            json!({"op": "is_null"}),
            json!({"op": "regex", "pattern": {"kind": "literal", "value": "a"}}),
            json!({"op": "regex", "key_id": 13}),
            json!({"op": "regex", "key_id": 13, "pattern": "a", "flags": "g"}),
            json!({"op": "regex", "key_id": 13, "pattern": {}, "flags": 1}),
            json!({"op": "regex", "key_id": 13, "pattern": {"kind": "glob"}}),
            json!({"op": "regex", "key_id": 13, "pattern": {"kind": "literal"}}),
            json!({"op": "regex", "key_id": 13, "pattern": {"kind": "param", "value": "a"}}),
            json!({"op": "regex", "key_id": 13, "x": key(14), "pattern": {"kind": "literal", "value": ""}}),
        ],
        &expect![[r#"
            p1: a predicate is an object, not a list
            p1.op: unknown predicate op `xor` (did you mean `or`?)
            p1.value: must be true or false, not 1
            p1.a: missing `x`
            p1: missing `b`
            p1: missing `cmp`, an operator
            p1.cmp: unknown operator `=` (one of == != < <= > >=)
            p1: missing `b`
            p1: missing `lhs`
            p1: missing `list`, a list or a `param_ref`
            p1.list[1]: must be a number, as the first item, not "a"
            p1.list[1]: must be a string, as the first item, not 1
            p1.list[0]: must be a number or a string, not null
            p1: missing `x`
            p1: missing `key_id`, a number from 0 to 4294967295
            p1: missing `pattern`
            p1.pattern: must be an object with `kind`, not "a"
            p1.flags: must be "" or "i", not "g"
            p1.pattern: missing `kind`, `literal` or `param`
            p1.flags: must be "" or "i", not 1
            p1.pattern.kind: must be `literal` or `param`, not `glob`
            p1.pattern: missing `value`, a string
            p1.pattern.value: unknown field (the fields here are `kind`, `param_id`, `param`)
            p1.pattern: missing `param_id`, a number from 0 to 4294967295
            p1: both a key and `x`: give one
        "#]],
    );
}

#[test]
fn names() {
    expr(
        &[
            key(3001),
            key(110),
            json!({"op": "key_ref", "key": "scor"}),
            json!({"op": "param_ref", "param_id": 77}),
            json!({"op": "param_ref", "param": "factors"}),
            key(20),
            key(21),
            key(22),
            key(23),
            key(15),
        ],
        &expect![[r#"
            e1: there is no key 3001 (keys are registered in keys.toml)
            e1: there is no key 110 (did you mean 10 (`count`)?)
            e1: there is no key `scor` (did you mean `score`?)
            e1: there is no parameter 77 (parameters are registered in params.toml)
            e1: there is no parameter `factors` (did you mean `factor`?)
            warning: e1: key 20 (`old_score`) is deprecated (use key 11)
            e1: key 21 (`secret`) may not be read (its registry entry says allow_read = false)
            e1: key 22 (`gone`) is blocked
            e1: key 23 (`features`) is a feature bundle, which cannot be computed with
            warning: e1: key 15 (`absent`) is null in all rows here (no node before this one makes it)
        "#]],
    );
}

#[test]
fn kinds() {
    let always = json!({"op": "const_bool", "value": true});
    expr(
        &[
            json!({"op": "mul", "a": key(13), "b": key(12)}),
            json!({"op": "lower", "x": key(1)}),
            json!({"op": "coalesce", "a": key(13), "b": number(1.0)}),
            json!({"op": "if", "cond": always, "then": key(12), "else": key(11)}),
            json!({"op": "clamp", "x": key(11), "lo": number(2.0), "hi": number(1.0)}),
        ],
        &expect![[r#"
            e1.a: `mul` takes numbers, not a string
            e1.b: `mul` takes numbers, not a bool
            e1.x: `lower` takes strings, not an int
            e1: `coalesce` of a string and a float: both must be of one kind
            e1: `if` of a bool and a float: both must be of one kind
            e1: `clamp` from 2 to 1 is empty
        "#]],
    );
    pred(
        &[
            json!({"op": "cmp", "cmp": "==", "a": key(13), "b": number(1.0)}),
            json!({"op": "cmp", "cmp": "<", "a": key(12), "b": key(12)}),
            json!({"op": "in", "lhs": key(11), "list": ["a"]}),
            json!({"op": "in", "lhs": key(13), "list": [1]}),
            json!({"op": "in", "lhs": key(12), "list": [1]}),
            json!({"op": "regex", "key_id": 11, "pattern": {"kind": "literal", "value": "a"}}),
            json!({"op": "regex", "key_id": 13, "pattern": {"kind": "literal", "value": "a("}}),
            json!({"op": "regex", "key_id": 13, "pattern": {"kind": "param", "param_id": 1}}),
        ],
        &expect![[r#"
            p1: a string is compared with a float
            p1: bools cannot be compared with < (use == or !=)
            p1: a float is looked up in a list of strings
            p1: a string is looked up in a list of numbers
            p1: a bool is looked up in a list of numbers
            p1: `regex` takes strings, not a float
            p1.pattern: not a regex: `(` is not closed (character 2 of the pattern)
            p1.pattern: parameter 1 (`factor`) is a float (a pattern is a string)
        "#]],
    );
}

#[test]
fn too_deep() {
    let mut deep = number(1.0);
    for _ in 1..256 {
        deep = json!({"op": "neg", "x": deep});
    }
    let mut problems = Problems::default();
    assert!(Expr::parse(&deep, "e", &mut problems).is_some());
    deep = json!({"op": "neg", "x": deep});
    assert_eq!(Expr::parse(&deep, "e", &mut problems), None);
    assert_eq!(
        problems.to_string(),
        "e: an expression may be nested 256 levels deep; this one is deeper \
         (compute a part of it in a column of its own first)"
    );
}

#[test]
fn shown_to_people() {
    let registries = registries();
    let expr = |json: &Value, expect: &Expect| {
        let expr = Expr::parse(json, "e", &mut Problems::default()).unwrap();
        expect.assert_eq(&format!("{expr}\n{}", expr.display(&registries.keys, &registries.params)));
    };
    let pred = |json: &Value, expect: &Expect| {
        let pred = Pred::parse(json, "p", &mut Problems::default()).unwrap();
        expect.assert_eq(&format!("{pred}\n{}", pred.display(&registries.keys, &registries.params)));
    };
    let weight = json!({"op": "coalesce", "a": {"op": "param_ref", "param_id": 1}, "b": number(0.2)});
    expr(
        &json!({"op": "mul", "a": key(1), "b": weight}),
        &expect![[r#"
        #1 * coalesce($1, 0.2)
        id * coalesce($factor, 0.2)"#]],
    );
    let difference = json!({"op": "sub", "a": key(11), "b": {"op": "sub", "a": key(16), "b": number(-1.0)}});
    expr(
        &json!({"op": "div", "a": difference, "b": {"op": "neg", "x": {"op": "neg", "x": key(999)}}}),
        &expect![[r#"
            (#11 - (#16 - (-1.0))) / -(-#999)
            (score - (weight - (-1.0))) / -(-#999)"#]],
    );
    let above = json!({"op": "cmp", "cmp": ">", "a": key(11), "b": number(0.5)});
    let word = json!({"op": "in", "lhs": {"op": "key_ref", "key": "country"}, "list": ["US", "FR"]});
    let pattern =
        json!({"op": "regex", "key_id": 14, "pattern": {"kind": "param", "param": "pattern"}, "flags": "i"});
    let any = json!({"op": "or", "a": {"op": "not", "x": above}, "b": word});
    pred(
        &json!({"op": "and", "a": any, "b": pattern}),
        &expect![[r#"
        (not (#11 > 0.5) or country in ["US", "FR"]) and regex(#14, $pattern, "i")
        (not (score > 0.5) or country in ["US", "FR"]) and regex(title, $pattern, "i")"#]],
    );
    let clamp = json!({"op": "clamp", "x": key(11), "lo": number(0.0), "hi": number(1.0)});
    expr(
        &json!({"op": "if", "cond": {"op": "is_null", "x": key(13)}, "then": clamp, "else": {"op": "const_null"}}),
        &expect![[r#"
            if(is_null(#13), clamp(#11, 0.0, 1.0), null)
            if(is_null(country), clamp(score, 0.0, 1.0), null)"#]],
    );
}

fn any_json() -> impl Strategy<Value = Value> {
    let word = prop::sample::select(vec![
        "op",
        "a",
        "b",
        "x",
        "add",
        "neg",
        "cmp",
        "==",
        "in",
        "lhs",
        "list",
        "regex",
        "pattern",
        "kind",
        "literal",
        "param",
        "value",
        "key_ref",
        "key_id",
        "key",
        "if",
        "cond",
        "then",
        "else",
        "clamp",
        "lo",
        "hi",
        "const_number",
        "flags",
        "not",
        "and",
        "is_null",
        "i",
        "param_id",
        "const_bool",
        "country",
        "(",
        "",
    ]);
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        (0u32..30).prop_map(Value::from),
        word.clone().prop_map(Value::from),
    ];
    leaf.prop_recursive(5, 40, 5, move |inner| {
        let op = word.clone().prop_map(Value::from);
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            (op, prop::collection::vec((word.clone(), inner), 0..5)).prop_map(|(op, fields)| {
                let fields = fields.into_iter().map(|(field, value)| (field.to_owned(), value));
                Value::Object(fields.chain([("op".to_owned(), op)]).collect())
            }),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(2000) })]

    #[test]
    fn any_json_is_read_or_refused(json in any_json()) {
        let mut problems = Problems::default();
        let found = Expr::parse(&json, "e", &mut problems);
        prop_assert_eq!(found.is_some(), problems.is_fine(), "{:?}", problems);
        if let Some(expr) = found {
            let program = with_scope(|scope| Program::compile(&expr, scope, "e", &mut problems));
            prop_assert_eq!(program.is_some(), problems.is_fine());
        }
        let mut problems = Problems::default();
        let found = Pred::parse(&json, "p", &mut problems);
        prop_assert_eq!(found.is_some(), problems.is_fine(), "{:?}", problems);
        if let Some(pred) = found {
            let filter = with_scope(|scope| Filter::compile(&pred, scope, "p", &mut problems));
            prop_assert_eq!(filter.is_some(), problems.is_fine());
        }
    }
}
