//! Values that are made to fit schemas.

use anabranch_model::Schema;
use anabranch_value::Value;
use expect_test::{Expect, expect};

fn value(json: &str) -> Value {
    Value::from_json(json).unwrap()
}

fn check(schema: &str, given: &str, expected: Expect) {
    let schema = Schema::new(&value(schema)).unwrap();
    let lines = |problems: Vec<anabranch_model::FitProblem>| {
        problems.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
    };
    expected.assert_eq(&schema.fit(value(given)).map_or_else(lines, |value| value.to_json()));
}

#[test]
fn extra_properties_are_removed() {
    let closed = r#"{"type":"object","properties":{"a":{"type":"integer"}}}"#;
    check(closed, r#"{"a":1,"b":2}"#, expect![[r#"{"a":1}"#]]);
    check(r#"{"type":"object","additionalProperties":false}"#, r#"{"b":2}"#, expect!["{}"]);
    check(r#"{"type":"object"}"#, r#"{"b":2}"#, expect![[r#"{"b":2}"#]]);
    check(
        r#"{"properties":{"a":{}},"additionalProperties":{"type":"integer"}}"#,
        r#"{"a":1,"b":"2"}"#,
        expect![[r#"{"a":1,"b":2}"#]],
    );
    check(
        r##"{"allOf":[{"properties":{"a":{}}},{"$ref":"#/$defs/B"}],"$defs":{"B":{"properties":{"b":{}}}}}"##,
        r#"{"a":1,"b":2,"c":3}"#,
        expect![[r#"{"a":1,"b":2}"#]],
    );
    check(
        r#"{"properties":{"k":{}},"anyOf":[{"properties":{"a":{}},"required":["a"]},{"properties":{"b":{}},"required":["b"]}]}"#,
        r#"{"k":0,"b":2,"c":3}"#,
        expect![[r#"{"k":0,"b":2}"#]],
    );
    check(
        r#"{"patternProperties":{"^x_":{"type":"integer"}},"properties":{"a":{}}}"#,
        r#"{"x_1":1,"a":2,"y":3}"#,
        expect![[r#"{"x_1":1,"a":2}"#]],
    );
}

#[test]
fn harmless_slips_are_put_right() {
    check(r#"{"type":"integer"}"#, "4.0", expect!["4"]);
    check(r#"{"type":"integer"}"#, "\"4\"", expect!["4"]);
    check(r#"{"type":"number"}"#, "\"4.5\"", expect!["4.5"]);
    check(r#"{"type":"integer"}"#, "\"4.5\"", expect![[r#"$: expected integer, found "4.5""#]]);
    check(r#"{"type":"integer"}"#, "\" 4\"", expect![[r#"$: expected integer, found " 4""#]]);
    check(r#"{"type":"number"}"#, "\"four\"", expect![[r#"$: expected number, found "four""#]]);
    check(r#"{"type":["string","integer"]}"#, "\"4\"", expect![[r#""4""#]]);
    check(r#"{"type":"integer"}"#, "true", expect!["$: expected integer, found true"]);
    check(r#"{"enum":[1,2]}"#, "2.0", expect!["2"]);
    check(r#"{"type":"string"}"#, "4", expect!["$: expected string, found 4"]);
}

#[test]
fn problems_name_their_places() {
    let schema = r##"{
        "type": "object",
        "required": ["people", "kind"],
        "properties": {
            "kind": {"enum": ["a", "b"]},
            "people": {"type": "array", "minItems": 1, "items": {"$ref": "#/$defs/Person"}}
        },
        "$defs": {"Person": {
            "type": "object",
            "properties": {
                "name": {"type": "string", "minLength": 2, "pattern": "^[A-Z]"},
                "age": {"type": "integer", "minimum": 0, "exclusiveMaximum": 150},
                "friends": {"type": "array", "items": {"$ref": "#/$defs/Person"}, "uniqueItems": true}
            },
            "required": ["name"]
        }}
    }"##;
    check(
        schema,
        r#"{"kind":"c","people":[{"name":"x","age":150,"friends":[{"age":-1},{"name":"Bo","odd key":1},{"name":"Bo"}]}]}"#,
        expect![[r#"
            $.kind: expected one of "a", "b", found "c"
            $.people[0].name: 1 characters, expected at least 2
            $.people[0].name: does not match the pattern `^[A-Z]`: "x"
            $.people[0].age: expected less than 150, found 150
            $.people[0].friends[0].age: expected at least 0, found -1
            $.people[0].friends[0]: the required property `name` is missing
            $.people[0].friends: item 2 is there twice"#]],
    );
    check(schema, r#"{"kind":"a"}"#, expect!["$: the required property `people` is missing"]);
}

#[test]
fn choices_take_the_variant_with_the_fewest_changes() {
    let shapes = r#"{"oneOf":[
        {"type":"object","properties":{"kind":{"const":"circle"},"r":{"type":"number"}},"required":["kind","r"]},
        {"type":"object","properties":{"kind":{"const":"square"},"side":{"type":"number"}},"required":["kind","side"]}
    ]}"#;
    check(shapes, r#"{"kind":"square","side":"2","note":"x"}"#, expect![[r#"{"kind":"square","side":2}"#]]);
    check(shapes, r#"{"kind":"square"}"#, expect!["$: the required property `side` is missing"]);
    check(r#"{"anyOf":[{"type":"integer"},{"type":"null"}]}"#, "null", expect!["null"]);
    check(
        r#"{"anyOf":[{"type":"number"},{"type":"string","pattern":"^\\d+$"}]}"#,
        "\"12\"",
        expect![[r#""12""#]],
    );
    check(
        r#"{"oneOf":[{"type":"integer"},{"type":"number"}]}"#,
        "4",
        expect!["$: the value fits more than one schema of `oneOf`"],
    );
    check(r#"{"not":{"type":"null"}}"#, "null", expect!["$: the value fits a schema that it must not fit"]);
    check(
        r#"{"if":{"properties":{"a":{"const":1}}},"then":{"required":["b"]},"else":{"required":["c"]}}"#,
        r#"{"a":1}"#,
        expect!["$: the required property `b` is missing"],
    );
    check(
        r#"{"prefixItems":[{"type":"string"}],"items":{"type":"integer"},"contains":{"const":3}}"#,
        r#"["a",1]"#,
        expect!["$: 0 items fit `contains`, expected at least 1"],
    );
}

#[test]
fn schemas_that_cannot_be_used_say_why() {
    let check = |schema: &str, expected: Expect| {
        expected.assert_eq(&Schema::new(&value(schema)).unwrap_err().to_string());
    };
    check("3", expect!["schema at `#`: a schema is a map, true or false, not a whole number"]);
    check(
        r#"{"properties":{"a":{"type":"int"}}}"#,
        expect![
            "schema at `#/properties/a/type`: should be one of null, boolean, integer, number, string, array, object"
        ],
    );
    check(
        r#"{"$ref":"https://example.com/x"}"#,
        expect![
            "schema at `#/$ref`: `https://example.com/x` is not found; only places in the same schema can be named, such as `#/$defs/Name`"
        ],
    );
    check(
        r#"{"unevaluatedProperties":false}"#,
        expect!["schema at `#/unevaluatedProperties`: this keyword is not supported"],
    );
    check(
        r#"{"pattern":"(?=x)"}"#,
        expect![
            "schema at `#/pattern`: the pattern cannot be used: error: look-around, including look-ahead and look-behind, is not supported"
        ],
    );
    check(r#"{"minLength":-1}"#, expect!["schema at `#/minLength`: should be a whole number from 0"]);
}

/// A schema may be a stranger's. Compiling it takes bounded time, memory and stack.
#[test]
fn schemas_are_bounded() {
    let check = |schema: &str, expected: &str| {
        let told = Schema::new(&value(schema)).unwrap_err().to_string();
        assert!(told.contains(expected), "{told}");
    };
    let long = r"\\pL".repeat(400);
    check(&format!(r#"{{"pattern":"{long}"}}"#), "the pattern has 1200 bytes, and may have 1024");
    check(&format!(r#"{{"patternProperties":{{"{long}":true}}}}"#), "the pattern has 1200 bytes");
    let many: Vec<String> = (0..101).map(|at| format!(r#"{{"pattern":"{at}"}}"#)).collect();
    check(&format!(r#"{{"anyOf":[{}]}}"#, many.join(",")), "a schema may have 100 patterns, and has more");
    Schema::new(&value(&format!(r#"{{"anyOf":[{}]}}"#, many[..100].join(",")))).unwrap();
    let chain: Vec<String> =
        (0..15_000).map(|at| format!(r##""d{at}":{{"$ref":"#/$defs/d{}"}}"##, at + 1)).collect();
    let chain = format!(r##"{{"$defs":{{{},"d15000":true}},"$ref":"#/$defs/d0"}}"##, chain.join(","));
    check(&chain, "the schema is too large or too deep");
}

#[test]
fn a_schema_of_itself_ends() {
    let schema = Schema::new(&value(r##"{"$ref":"#"}"##)).unwrap();
    assert!(schema.fit(Value::Null).is_err());
    check(
        r##"{"anyOf":[{"type":"null"},{"type":"array","items":{"$ref":"#"}}]}"##,
        "[[null],[]]",
        expect!["[[null],[]]"],
    );
}
