//! The dataset dialect where it goes its own way: JSON paths, random choice, typed values, and shorter forms.

use anabranch_template::{Bounds, Template, is_true};
use anabranch_value::Value;

use crate::kit::{Row, all_render, of_json};

const PATHS: &[Row] = &[
    ("{{ x|jsonpath('$.a.b[1]') }} {{ x|jsonpath('a.b[-1]') }}", r#"{"a":{"b":[1,2]}}"#, "2 2"),
    (
        "{{ x|jsonpath('$.a[*].n') }} {{ x|jsonpath('$..n') }}",
        r#"{"a":[{"n":1},{"n":2,"m":{"n":3}}]}"#,
        "[1, 2] [1, 2, 3]",
    ),
    (
        r#"{{ x|jsonpath("$['a.b']['c]']") }} {{ x|jsonpath('$.*') }}"#,
        r#"{"a.b":{"c]":5}}"#,
        r#"5 [{"c]": 5}]"#,
    ),
    ("{{ x|jsonpath('$.z')|default('none') }}", r#"{"a":1}"#, "none"),
    ("{{ x|jsonpath('$') }} {{ x|jsonpath('$[0]') }}", "[7]", "[7] 7"),
];

#[test]
fn json_paths() {
    all_render(PATHS);
    assert!(of_json("{{ x|jsonpath('$.a[') }}", "{}").contains("has a `[` without a `]`"));
    assert!(of_json("{{ x|jsonpath('$.a[?(@.b)]') }}", "{}").contains("is not an index"));
    assert!(of_json("{{ x|jsonpath('$.a') }}", "\"{}\"").contains("takes a map or a list, not a text"));
}

const OWN: &[Row] = &[
    ("a{{ 'gone' if not x }}b", "1", "ab"),
    (
        "{{ x|keys }}{{ x|values }}{{ 'a,b'|split(',') }}{{ 'p\\nq'|lines }}",
        r#"{"k":1}"#,
        r#"["k"][1]["a", "b"]["p", "q"]"#,
    ),
    ("{{ x.items }} {{ x.values }}", r#"{"items":[1],"values":2}"#, "[1] 2"),
    ("{{ x.name|default('anon') }}", r#"{"first":1}"#, "anon"),
    ("{{ ['é', {'k': x}] ~ '' }}", "null", r#"["é", {"k": null}]"#),
    ("{{ {1: 'a'}[1] }}", "0", "a"),
];

#[test]
fn own_forms() {
    all_render(OWN);
}

/// The same inputs give the same choice; other inputs, or a second call, may give another one.
#[test]
fn random_is_decided_by_the_inputs() {
    let template = "{{ x }}:{{ ['a', 'b', 'c', 'd']|random }}";
    assert_eq!(of_json(template, "1"), of_json(template, "1"));
    let picks: std::collections::BTreeSet<String> =
        (0..50).map(|x| of_json(template, &x.to_string()).split(':').nth(1).unwrap().to_owned()).collect();
    assert_eq!(picks.len(), 4);
    assert!(of_json("{{ []|random }}", "0").starts_with("! line 1: `random` has no result"));
}

fn value(template: &str, x: &Value) -> Value {
    let template = Template::compile(template).expect("a template");
    let values: Vec<Value> = template.variables().iter().map(|_| x.clone()).collect();
    template.evaluate(&values, Bounds::default()).expect("a value")
}

#[test]
fn a_single_expression_has_a_type() {
    let map = Value::from_json(r#"{"a": [1, 2.5]}"#).unwrap();
    assert_eq!(value("{{ x.a }}", &map), Value::from_json("[1, 2.5]").unwrap());
    assert_eq!(value(" \n{{ x.a[0] + 1 }} \n", &map), Value::Int(2));
    assert_eq!(value("{{ x }}", &Value::Null), Value::Null);
    assert_eq!(value("{{ x }}", &Value::from("1e3")), Value::from("1e3"));
    assert_eq!(value("{{ x }}{{ x }}", &Value::Int(1)), Value::from("11"));
    assert_eq!(value("v{{ x }}", &Value::Bool(true)), Value::from("vTrue"));
    assert_eq!(value("plain", &Value::Null), Value::from("plain"));
    assert_eq!(value("{% if x %}{{ x }}{% endif %}", &Value::Int(1)), Value::from("1"));
    let expression = Template::expression("x.a|length > 1").unwrap();
    assert_eq!(expression.variables(), ["x"]);
    assert!(is_true(&expression.evaluate(&[map], Bounds::default()).unwrap()));
}
