//! Functions that have Deriva's ids and follow Deriva's answers: the last batch functions, and the streaming names.

use anabranch_recipe::{Functions, Params};

use crate::kit::{given, golden, one, texts};

#[test]
fn entropy_is_eight_bytes() {
    golden(&[
        ("entropy/1.0.0", &[b""], &[], "0x0000000000000000"),
        // One value: minus zero.
        ("entropy/1.0.0", &[b"aaaa"], &[], "0x8000000000000000"),
        ("entropy/1.0.0", &[b"abab"], &[], "0x3ff0000000000000"),
        ("entropy/1.0.0", &[b"abcd"], &[], "0x4000000000000000"),
        ("entropy/2.0.0", &[b"aaaa"], &[], "0.000000"),
    ]);
}

#[test]
fn diff_and_patch_look_at_lines_without_their_ends() {
    let changed = r"--- a\n+++ b\n@@ -1,2 +1,2 @@\n a\n-b\n+c\n";
    golden(&[
        ("diff/1.0.0", &[b"a\nb", b"a\r\nb\n"], &[], r"--- a\n+++ b\n"),
        ("diff/1.0.0", &[b"a\nb\n", b"a\nc"], &[], changed),
        ("diff/1.0.0", &[b"", b"a\nb\n"], &[], r"--- a\n+++ b\n@@ -1,0 +1,2 @@\n+a\n+b\n"),
        ("diff/1.0.0", &[b"a\n", b"\xff"], &[], "! input 2: not UTF-8 at byte 0"),
        ("patch/1.0.0", &[b"a\r\nb\n", b""], &[], r"a\r\nb\n"),
        ("patch/1.0.0", &[b"a\r\nb\n\n", b"no change"], &[], r"a\nb\n"),
        ("patch/1.0.0", &[b"a\nb\n", b"@@ -1,2 +1,2 @@\n a\n-b\n+c\n"], &[], r"a\nc"),
        // What GNU tools write for a new file; Deriva panics.
        ("patch/1.0.0", &[b"", b"@@ -0,0 +1 @@\n+a\n"], &[], "a"),
        ("patch/1.0.0", &[b"a", b"@@ -1 +1 @@\n-x\n"], &[], "! input 2: line 2: \"x\" is not line 1: \"a\""),
        (
            "patch/1.0.0",
            &[b"a", b"@@ -9,0 +9,1 @@\n+x\n"],
            &[],
            "! input 2: line 1: the header places the hunk after line 8; expected a line from 0 to 1",
        ),
        (
            "patch/1.0.0",
            &[b"a", b"@@ one @@\n"],
            &[],
            "! input 2: line 1: \"@@ one @@\" is not `@@ -line,count +line,count @@`",
        ),
    ]);
}

/// A diff of 1.0.0 makes the lines of the second text out of the first.
#[test]
fn patch_undoes_diff_up_to_line_ends() {
    let functions = Functions::builtin();
    let texts =
        ["", "a", "a\nb\nc\n", "b\nc\nd\ne\nf\ng\nh\n", "x\ny\n", "c\nb\na", "a\nb\nc\nd\ne\nf\ng\nz"];
    for old in texts {
        for new in texts {
            let inputs = [one(old.as_bytes()), one(new.as_bytes())].concat();
            let diff = given(&functions, "diff/1.0.0", &inputs, &Params::new()).unwrap();
            let inputs = [one(old.as_bytes()), one(&diff)].concat();
            let patched = given(&functions, "patch/1.0.0", &inputs, &Params::new()).unwrap();
            assert_eq!(String::from_utf8(patched).unwrap(), new.trim_end(), "{old:?} {new:?}");
        }
    }
}

#[test]
fn yaml_of_1_0_0_leaves_words_of_yaml_1_1_alone() {
    let json = br#"{"b": ["yes", "true", "a: b"], "a": {"on": 1}}"#;
    golden(&[
        ("json_to_yaml/1.0.0", &[json], &[], r#"a:\n  on: 1\nb:\n- yes\n- \"true\"\n- \"a: b\"\n"#),
        ("json_to_yaml/2.0.0", &[json], &[], r#"a:\n  \"on\": 1\nb:\n- \"yes\"\n- \"true\"\n- \"a: b\"\n"#),
    ]);
}

fn cuts(input: &[u8], window: &str) -> Vec<usize> {
    let functions = Functions::builtin();
    let params = texts(&[("window_size", window)]);
    let json = given(&functions, "dedup_analyze/1.0.0", &one(input), &params).unwrap();
    serde_json::from_slice(&json).unwrap()
}

#[test]
fn content_decides_where_blocks_end() {
    let noise = |len: usize, seed: u64| -> Vec<u8> {
        let mut rng = anabranch_testkit::Rng::new(seed);
        (0..len).map(|_| rng.within(0..256) as u8).collect()
    };
    assert_eq!(cuts(b"", "48"), [0]);
    assert_eq!(cuts(b"short", "48"), [0, 5]);
    // A window of no bytes cuts as soon as it may; one value never cuts before it must.
    assert_eq!(cuts(&[7; 5000], "0"), [0, 2048, 4096, 5000]);
    assert_eq!(cuts(&[7; 65_540], "48"), [0, 65_536, 65_540]);
    let (input, mut longer) = (noise(200_000, 1), noise(1000, 77));
    let before = cuts(&input, "48");
    assert!(before.len() > 10, "{before:?}");
    assert!(before.windows(2).all(|pair| (1..=65_536).contains(&(pair[1] - pair[0]))), "{before:?}");
    // What is put before the input moves the cuts along with it, from some point on.
    longer.extend_from_slice(&input);
    let after = cuts(&longer, "48");
    let shared = before.iter().filter(|cut| after.contains(&(**cut + 1000))).count();
    let forced = before.windows(2).chain(after.windows(2)).any(|pair| pair[1] - pair[0] == 65_536);
    assert!(forced || shared > before.len() / 2, "{shared} of {}", before.len());
}

#[test]
fn streaming_names_are_the_same_functions() {
    golden(&[
        ("streaming_identity/1.0", &[b"ab"], &[], "ab"),
        ("streaming_reverse/1.0", &[b"ab"], &[], "ba"),
        ("streaming_xor/1.0", &[b"\x0f"], &[], "0xf0"),
        ("streaming_xor/1.0", &[b"\x0f"], &[("key", "15")], "0x00"),
        ("streaming_checksum/1.0", &[b"123456789"], &[], "0xcbf43926"),
        ("streaming_interleave/1.0", &[b"ab", b"cd"], &[], "abcd"),
        ("streaming_interleave/1.0", &[b"ab", b"cd"], &[("block_size", "1")], "acbd"),
        ("streaming_line_ending/1.0", &[b"a\r\n"], &[], r"a\n"),
        ("streaming_delay/1.0", &[b"a"], &[("delay_ms", "100")], "a"),
        ("streaming_merge/1.0", &[b"a", b"b"], &[], "ab"),
        ("streaming_bitwise_and/1.0", &[b"a"], &[], "a"),
        ("streaming_byte_swap/1.0", &[b"abcd"], &[], "badc"),
        ("streaming_truncate_lines/1.0", &[b"abc"], &[], "abc"),
        ("streaming_charset_convert/1.0", &[b"\xe9"], &[("from", "latin1")], r"\xc3\xa9"),
        ("streaming_grep/1.0", &[b"a\nb\n"], &[("pattern", "a")], "a"),
        (
            "streaming_grep/1.0",
            &[b"a"],
            &[("pattern", "a"), ("invert", "true")],
            "! parameter `invert`: unknown; it takes pattern",
        ),
        (
            "streaming_redact/1.0",
            &[b"a"],
            &[("patterns", "default")],
            "! parameter `patterns`: \"default\" is not taken: Deriva's own patterns are not known here; write them out",
        ),
        (
            "streaming_caddr_verify/1.0",
            &[b"a"],
            &[],
            "! parameter `expected_caddr`: missing: 32 bytes, or 64 hex digits (the expected digest)",
        ),
        (
            "streaming_caddr_verify/1.0",
            &[b"a"],
            &[("expected_caddr", "ca978112ca1bbdcafac231b39a23dc4da786eff8147c4e72b9807785afee48bb")],
            "a",
        ),
    ]);
}

const SCHEMA: &str = r##"{
    "$defs": {"name": {"type": "string", "minLength": 1, "pattern": "^[a-z]+$"}},
    "type": "object", "required": ["name"], "additionalProperties": false,
    "properties": {"name": {"$ref": "#/$defs/name"}, "age": {"type": "integer", "minimum": 0},
        "tags": {"type": "array", "items": {"$ref": "#/$defs/name"}, "uniqueItems": true, "maxItems": 3},
        "kind": {"enum": ["a", 1]}, "either": {"oneOf": [{"type": "number"}, {"const": "x"}]}}
}"##;

#[test]
fn a_schema_allows_or_says_why_not() {
    let rows: &[(&[u8], &str)] = &[
        (br#"{"name": "a", "age": 1.0, "tags": ["b"], "kind": 1.0, "either": 2}"#, ""),
        (b"[]", r#"at "": [] is not of type "object""#),
        (b"{}", r#"at "": "name" is missing"#),
        (br#"{"name": "A"}"#, r#"at "/name": "A" does not match "^[a-z]+$""#),
        (br#"{"name": "a", "age": -1}"#, r#"at "/age": -1 is less than 0"#),
        (br#"{"name": "a", "age": 1.5}"#, r#"at "/age": 1.5 is not of type "integer""#),
        (br#"{"name": "a", "x/y": 1}"#, r#"at "/x~1y": nothing is allowed here"#),
        (br#"{"name": "a", "tags": ["b", "b"]}"#, r#"at "/tags": "b" is there twice"#),
        (br#"{"name": "a", "kind": "c"}"#, r#"at "/kind": "c" is not one of ["a", 1]"#),
        (br#"{"name": "a", "either": "y"}"#, r#"at "/either": no schema of `oneOf` allows it"#),
        (
            br#"{"name": "", "tags": [1]}"#,
            r#"at "/name": has 0 characters; it must have 1; at "/name": "" does not match "^[a-z]+$"; at "/tags/0": 1 is not of type "string""#,
        ),
    ];
    let functions = Functions::builtin();
    for (input, problem) in rows {
        let got = given(&functions, "schema_validate/1.0.0", &one(input), &texts(&[("schema", SCHEMA)]));
        let got = got.map(|bytes| assert_eq!(bytes, *input)).map_err(|fault| fault.to_string());
        let expected = format!("input 1: is not as the schema says: {problem}");
        match problem.is_empty() {
            true => assert_eq!(got, Ok(())),
            false => assert_eq!(got, Err(expected)),
        }
    }
}

#[test]
fn schemas_combine() {
    let rows: &[(&str, &str, bool)] = &[
        ("true", "1", true),
        ("false", "1", false),
        (r#"{"if": {"type": "string"}, "then": {"maxLength": 1}, "else": {"maximum": 5}}"#, "6", false),
        (r#"{"if": {"type": "string"}, "then": {"maxLength": 1}, "else": {"maximum": 5}}"#, "\"a\"", true),
        (r#"{"not": {"type": "null"}}"#, "null", false),
        (r#"{"anyOf": [{"type": "null"}, {"multipleOf": 3}]}"#, "9", true),
        (r#"{"oneOf": [{"multipleOf": 2}, {"multipleOf": 3}]}"#, "6", false),
        (r#"{"prefixItems": [{"type": "null"}], "items": {"type": "number"}}"#, "[null, 1]", true),
        (r#"{"prefixItems": [{"type": "null"}], "items": false}"#, "[null, 1]", false),
        (r#"{"items": [{"type": "null"}], "additionalItems": false}"#, "[null, 1]", false),
        (r#"{"contains": {"const": 1}, "maxContains": 1}"#, "[1, 1.0]", false),
        (r#"{"contains": {"const": 1}}"#, "[]", false),
        (
            r#"{"patternProperties": {"^x": {"type": "number"}}, "additionalProperties": false}"#,
            r#"{"x1": 1}"#,
            true,
        ),
        (r#"{"propertyNames": {"maxLength": 1}}"#, r#"{"ab": 1}"#, false),
        (r#"{"dependentRequired": {"a": ["b"]}}"#, r#"{"a": 1}"#, false),
        (r#"{"dependentSchemas": {"a": {"required": ["b"]}}}"#, r#"{"a": 1, "b": 1}"#, true),
        (r#"{"dependencies": {"a": ["b"]}}"#, r#"{"a": 1}"#, false),
        (r##"{"properties": {"a": {"$ref": "#"}}, "maxProperties": 1}"##, r#"{"a": {"a": {"a": {}}}}"#, true),
        (
            r##"{"properties": {"a": {"$ref": "#"}}, "maxProperties": 1}"##,
            r#"{"a": {"a": 1, "b": 2}}"#,
            false,
        ),
    ];
    let functions = Functions::builtin();
    for (schema, input, allowed) in rows {
        let params = texts(&[("schema", schema)]);
        let got = given(&functions, "schema_validate/1.0.0", &one(input.as_bytes()), &params);
        assert_eq!(got.is_ok(), *allowed, "{schema} {input}: {got:?}");
    }
}

/// Nothing outside of the schema is ever looked at, and a schema cannot go in circles.
#[test]
fn a_schema_is_closed_and_bounded() {
    let rows: &[(&str, &str)] = &[
        ("{", "parameter `schema`: not JSON: EOF while parsing an object at line 1 column 1"),
        ("1", "parameter `schema`: at \"\": \"1\" is not a schema: an object, true or false"),
        (
            r#"{"$ref": "file:///etc/passwd"}"#,
            "parameter `schema`: at \"\": `$ref` \"file:///etc/passwd\" is not a place in this schema, as `#/$defs/name`",
        ),
        (
            r#"{"items": {"$ref": "http://example.com/schema"}}"#,
            "parameter `schema`: at \"/items\": `$ref` \"http://example.com/schema\" is not a place in this schema, as \
             `#/$defs/name`",
        ),
        (
            r#"{"unevaluatedItems": false}"#,
            "parameter `schema`: at \"\": `unevaluatedItems` is not supported",
        ),
        (
            r#"{"type": "text"}"#,
            "parameter `schema`: at \"\": `type` is not the name of a type, or a list of such",
        ),
        (r#"{"maxLength": -1}"#, "parameter `schema`: at \"\": `maxLength` is not a whole number, 0 or more"),
        (
            r##"{"$ref": "#"}"##,
            "parameter `schema`: more than 512 schemas are inside of each other; a `$ref` may go in circles",
        ),
    ];
    let functions = Functions::builtin();
    for (schema, problem) in rows {
        let params = texts(&[("schema", schema)]);
        let got = given(&functions, "schema_validate/1.0.0", &one(b"[1]"), &params);
        assert_eq!(got.map_err(|fault| fault.to_string()), Err((*problem).to_owned()), "{schema}");
    }
}
