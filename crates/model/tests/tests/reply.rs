//! Code and JSON in replies.

use anabranch_model::reply::{code, json};
use expect_test::{Expect, expect};

fn check_code(language: &str, reply: &str, expected: Expect) {
    expected.assert_eq(&code(reply, language).unwrap_or_else(|problem| format!("problem: {problem}")));
}

#[test]
fn the_last_block_counts() {
    check_code("python", "```python\na = 1\n```\nbetter:\n```py\nb = 2\n```\nbye", expect!["b = 2"]);
    check_code("python", "~~~\nno tag\n~~~", expect!["no tag"]);
    check_code(
        "python",
        "  ```Python3\n  def f():\n      return 1\n  ```",
        expect![[r#"
        def f():
            return 1"#]],
    );
    check_code(
        "python",
        "````python\ns = \"\"\"\n```\n\"\"\"\n````",
        expect![[r#"
        s = """
        ```
        """"#]],
    );
    check_code("cpp", "```c++\nint x;\n```", expect!["int x;"]);
    check_code("csharp", "```C#\nint x;\n```", expect!["int x;"]);
    check_code("javascript", "```js title=\"a.js\"\nlet x;\n```", expect!["let x;"]);
    check_code("sql:postgres", "```sql\nSELECT 1;\n```", expect!["SELECT 1;"]);
    check_code("sql:tsql", "```tsql\nSELECT 1;\n```", expect!["SELECT 1;"]);
    check_code("bash", "```{.bash}\nls\n```", expect!["ls"]);
}

#[test]
fn replies_without_the_code_are_problems() {
    check_code(
        "python",
        "print(1)",
        expect!["problem: the reply has no fenced code block; it should end with a ```python block"],
    );
    check_code(
        "python",
        "use `x` or ```inline``` code",
        expect!["problem: the reply has no fenced code block; it should end with a ```python block"],
    );
    check_code(
        "python",
        "```python\na\n```\n```rust\nb\n```",
        expect!["problem: the last code block is tagged `rust`, and should be `python`"],
    );
    check_code(
        "sql:sqlite",
        "```postgres\nSELECT\n```",
        expect!["problem: the last code block is tagged `postgres`, and should be `sql`"],
    );
    check_code("python", "```python\nx = 1", expect!["problem: the last code block is not closed"]);
    check_code("python", "```python\n\n```", expect!["problem: the last code block is empty"]);
}

fn check_json(reply: &str, expected: Expect) {
    expected.assert_eq(
        &json(reply).map_or_else(|problem| format!("problem: {problem}"), |value| value.to_json()),
    );
}

#[test]
fn json_is_found() {
    check_json(r#" {"a": 1} "#, expect![[r#"{"a":1}"#]]);
    check_json("Sure:\n```json\n{\"a\": 1}\n```\n```json\n{\"a\": 2}\n```\nDone.", expect![[r#"{"a":2}"#]]);
    check_json("```json\n{\"a\": 1}\n```\n```python\nprint({})\n```", expect![[r#"{"a":1}"#]]);
    check_json("```\n[1, 2]\n```", expect!["[1,2]"]);
    check_json("The answer is {\"a\": {\"b\": \"}\"}} as you see.", expect![[r#"{"a":{"b":"}"}}"#]]);
    check_json("See [note] first. {\"a\": 1}", expect![[r#"{"a":1}"#]]);
    check_json("42", expect!["42"]);
}

#[test]
fn common_mistakes_are_repaired() {
    check_json("{\"a\": 1, \"b\": [1, 2,],}", expect![[r#"{"a":1,"b":[1,2]}"#]]);
    check_json("{'a': 'it\\'s', 'b': True, 'c': None}", expect![[r#"{"a":"it's","b":true,"c":null}"#]]);
    check_json("{'a': 'it's fine', 'b': 1}", expect![[r#"{"a":"it's fine","b":1}"#]]);
    check_json("{a: 1, b_c: \"x\"}", expect![[r#"{"a":1,"b_c":"x"}"#]]);
    check_json("{\"a\": \"line one\nline two\"}", expect![[r#"{"a":"line one\nline two"}"#]]);
    check_json(
        "{\"a\": \"he said \"yes\" twice\", \"b\": 2}",
        expect![[r#"{"a":"he said \"yes\" twice","b":2}"#]],
    );
    check_json("{\"a\": 1 // first\n, /* more */ \"b\": 2}", expect![[r#"{"a":1,"b":2}"#]]);
    check_json("```json\n{\"a\": [1, 2, {\"b\": \"cut of", expect![[r#"{"a":[1,2,{"b":"cut of"}]}"#]]);
    check_json("{\"a\": 1, \"b\"", expect![[r#"{"a":1}"#]]);
    check_json("{\"a\": 1 \"b\": 2}", expect![[r#"{"a":"1 \"b\": 2"}"#]]);
    check_json("{\"a\": \"x\"\n\"b\": 2}", expect![[r#"{"a":"x","b":2}"#]]);
    check_json("{\"a\": .5, \"b\": +3, \"c\": 1_000}", expect![[r#"{"a":0.5,"b":3,"c":1000}"#]]);
    check_json("{“a”: “x”}", expect![[r#"{"a":"x"}"#]]);
    check_json("{\"a\": \"caf\\u00e9 \\ud83d\\ude00\", }", expect![[r#"{"a":"café 😀"}"#]]);
}

#[test]
fn text_that_is_not_json_is_a_problem() {
    check_json("", expect!["problem: the reply is empty; it should be JSON"]);
    check_json(
        "I cannot do that.",
        expect![
            "problem: the reply is not JSON: expected value at line 1 column 1; it begins with `I cannot do that.`"
        ],
    );
    let deep = "[".repeat(100_000);
    assert!(json(&deep).is_err());
}

proptest::proptest! {
    #[test]
    fn no_reply_stops_the_reader(reply in "[\\[\\]{}\"'`~,:a\\\\\n u0]{0,60}") {
        let _ = (json(&reply), code(&reply, "python"));
    }
}
