//! Values as JSON, there and back.

use anabranch_value::Value;
use expect_test::{Expect, expect};
use proptest::prelude::{Just, Strategy, any, prop, prop_oneof, proptest};

/// Any value that JSON can hold.
pub(crate) fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_filter("finite", |float| float.is_finite()).prop_map(Value::from),
        ".{0,12}".prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 40, 6, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
            prop::collection::vec((".{0,6}", inner), 0..6).prop_map(Value::map),
        ]
    })
}

proptest! {
    #[test]
    fn there_and_back(value in value()) {
        let json = value.to_json();
        let back = Value::from_json(&json).unwrap();
        assert_eq!(back, value);
        assert_eq!(back.to_json(), json);
    }

    #[test]
    fn no_text_panics(text in ".{0,40}") {
        let _ = Value::from_json(&text);
    }
}

fn check(json: &str, expected: &Expect) {
    let found = Value::from_json(json).map_or_else(|fault| fault.to_string(), |value| format!("{value:?}"));
    expected.assert_eq(&found);
}

#[test]
fn kinds_of_numbers() {
    check("1", &expect!["Int(1)"]);
    check("1.0", &expect!["Float(1.0)"]);
    check("-9223372036854775808", &expect!["Int(-9223372036854775808)"]);
    check("9223372036854775808", &expect!["Float(9.223372036854776e18)"]);
    check("1e400", &expect!["not JSON: number out of range at line 1 column 5"]);
    assert_eq!(Value::Float(f64::NAN).to_json(), "null");
    assert_eq!(Value::Float(f64::INFINITY).to_json(), "null");
    assert_eq!(Value::Float(1.0).to_json(), "1.0");
}

#[test]
fn faults() {
    check("", &expect!["not JSON: EOF while parsing a value at line 1 column 0"]);
    check("{\"a\": 1} x", &expect!["not JSON: trailing characters at line 1 column 10"]);
    check("[1,", &expect!["not JSON: EOF while parsing a value at line 1 column 3"]);
    // Depth is bounded, so that no text overflows the stack.
    check(&"[".repeat(100_000), &expect!["not JSON: recursion limit exceeded at line 1 column 128"]);
}

#[test]
fn texts_are_escaped() {
    let value = Value::from("a\"b\\c\n\u{1}é\u{1f600}");
    assert_eq!(value.to_json(), r#""a\"b\\c\n\u0001é😀""#);
    assert_eq!(Value::from_json(&value.to_json()).unwrap(), value);
}
