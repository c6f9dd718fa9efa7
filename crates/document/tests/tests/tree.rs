//! The three languages.

use anabranch_document::{Format, Limits};
use expect_test::{Expect, expect};

use crate::{parsed, shown};

fn check(format: Format, text: &str, expected: &Expect) {
    expected.assert_eq(&shown(format, text));
}

#[test]
fn yaml_has_places() {
    check(
        Format::Yaml,
        "a: 1\nb: [x, 2.5, true, null, '7']\nc:\n  d: \"q\\n\"\n5: |\n  lit\n",
        &expect![[r#"
            {a<a>: Int(1)<1>, b<b>: [Text("x")<x>, Float(2.5)<2.5>, Bool(true)<true>, Null<null>, Text("7")<'7'>], c<c>: {d<d>: Text("q\n")<"q\n">}, 5<5>: Text("lit\n")<lit
            >}"#]],
    );
}

#[test]
fn words_of_old_yaml_are_text() {
    check(
        Format::Yaml,
        "[yes, no, on, off, ~, 0o7, 1e3]",
        &expect![[
            r#"[Text("yes")<yes>, Text("no")<no>, Text("on")<on>, Text("off")<off>, Null<~>, Int(7)<0o7>, Float(1000.0)<1e3>]"#
        ]],
    );
}

#[test]
fn aliases_stand_where_they_are_used() {
    check(
        Format::Yaml,
        "a: &x {p: 1}\nb: *x\nc: {<<: *x, q: 2}\n",
        &expect![
            "{a<a>: {p<p>: Int(1)<1>}, b<b>: {p<*x>: Int(1)<*x>}, c<c>: {q<q>: Int(2)<2>, p<*x>: Int(1)<*x>}}"
        ],
    );
}

#[test]
fn toml_has_places() {
    check(
        Format::Toml,
        "b = 2\na = [1.5, \"x\"]\nc = 1979-05-27\n[t]\nbig = 99999999999999999999\n",
        &expect![[
            r#"{b<b>: Int(2)<2>, a<a>: [Float(1.5)<1.5>, Text("x")<"x">], c<c>: Other("a date")<1979-05-27>, t<t>: {big<big>: Big(1e20)<99999999999999999999>}}"#
        ]],
    );
}

#[test]
fn json_has_places() {
    check(
        Format::Json,
        "{\t\"a\": [1, -2.5e3, true, null, \"x\\u0041\\/\\ud83d\\ude00\\n\ty\"],\r\n\t\"b\": {}, \"c\": 18446744073709551616}",
        &expect![[
            r#"{a<"a">: [Int(1)<1>, Float(-2500.0)<-2.5e3>, Bool(true)<true>, Null<null>, Text("xA/😀\n\ty")<"x\u0041\/\ud83d\ude00\n	y">], b<"b">: {}, c<"c">: Big(1.8446744073709552e19)<18446744073709551616>}"#
        ]],
    );
    check(Format::Json, "\u{feff}[]\n", &expect!["[]"]);
    check(Format::Json, "  ", &expect!["Null<>"]);
}

#[test]
fn broken_json_says_where() {
    let wrong = [
        "{\"a\": 1,}",
        "{\"a\" 1}",
        "{a: 1}",
        "[1 2]",
        "[1,\n2",
        "\"abc",
        "\"\\x\"",
        "\"\\ud83d\"",
        "[01]",
        "[1e999, .5]",
        "nul",
        "[] []",
        "{\"a\": 1, \"b\": {\"c\": 1, \"c\": 2}}",
        "\"a\nb\"",
    ];
    let all: Vec<String> = wrong.iter().map(|text| shown(Format::Json, text)).collect();
    expect![[r#"
        file:1:9: expected a value behind `,`
        file:1:6: expected `:`
        file:1:2: expected a name in double quotes
        file:1:4: expected `,` or `]`
        file:2:2: the file ends early: expected `,` or `]`
        file:1:1: the text has no closing quote
        file:1:2: not an escape of JSON
        file:1:2: not an escape of JSON
        file:1:2: not a number as JSON writes it
        file:1:9: expected a value
        file:1:1: expected a value
        file:1:4: text behind the end of the value
        file:1:24: duplicate mapping key: c
        file:1:3: a control character in text; write it as an escape, `\n`"#]]
    .assert_eq(&all.join("\n"));
}

#[test]
fn broken_yaml_and_toml_say_where() {
    let yaml = [
        "a: 1\nb: 2\na: 3\n",
        "a: [1, 2\n",
        "a: *none\n",
        "\ta: 1\n",
        "a: 1\n---\nb: 2\n",
        "{a: {b: 1, b: 2}}",
    ];
    let all: Vec<String> = yaml.iter().map(|text| shown(Format::Yaml, text)).collect();
    expect![[r#"
        file:3:1: duplicate mapping key: a
        file:1:4: unclosed bracket '['
        file:1:4: alias references unknown anchor
        {a<a>: Int(1)<1>}
        file:3:1: the file has more than one document
        file:1:12: duplicate mapping key: b"#]]
    .assert_eq(&all.join("\n"));
    check(
        Format::Toml,
        "a = 1\na = 2\nb = \n",
        &expect![[r#"
        file:2:1: duplicate key
        file:3:5: string values must be quoted, expected literal string"#]],
    );
}

/// Entries of a file may share what they have in common.
#[test]
fn an_anchor_may_have_many_aliases() {
    let text = format!("a: &a {{b: 1}}\nlist: [{}*a]\n", "*a, ".repeat(999));
    let shown = shown(Format::Yaml, &text);
    assert_eq!(shown.matches("{b<*a>: Int(1)<*a>}").count(), 1000, "{shown:.200}");
}

#[test]
fn hostile_files_are_refused_soon() {
    let limits = Limits { bytes: 4 << 20, nodes: 100_000 };
    let refused = |format, text: &str| parsed(format, text, limits).unwrap_err().to_string();
    let mut laughs = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n".to_owned();
    for level in 1..12 {
        let refs = vec![format!("*a{}", level - 1); 10].join(", ");
        laughs += &format!("a{level}: &a{level} [{refs}]\n");
    }
    let all = [
        refused(Format::Yaml, &laughs),
        refused(Format::Yaml, &"[".repeat(100_000)),
        refused(Format::Json, &"[".repeat(100_000)),
        refused(Format::Json, &"{\"a\":".repeat(100_000)),
        refused(Format::Toml, &format!("a = {}", "[".repeat(100_000))),
        refused(Format::Json, &format!("[{}0]", "0,".repeat(200_000))),
        refused(Format::Yaml, &format!("[{}0]", "0,".repeat(200_000))),
        refused(Format::Json, &" ".repeat(5 << 20)),
    ];
    expect![[r#"
        file:5:45: aliases repeat too many values
        file:1:256: recursion limit exceeded
        file:1:65: lists and tables are more than 64 deep in each other
        file:1:321: lists and tables are more than 64 deep in each other
        file:1:85: cannot recurse further; max recursion depth met
        file:1:100005: unclosed array, expected `]`
        file:1:200000: the file has too many values
        file:1:200000: the file has too many values
        file:1:1: the file has 5 MiB, more than 4 MiB (split it, or keep large values elsewhere)"#]]
    .assert_eq(&all.join("\n"));
}
