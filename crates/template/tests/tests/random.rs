//! Templates of any words: none panics, and each stays inside its bounds.

use anabranch_template::{Bounds, Template};
use anabranch_value::Value;
use proptest::prelude::*;

const WORDS: &[&str] = &[
    "{{",
    "}}",
    "{%",
    "%}",
    "{%-",
    "-%}",
    "for",
    "a",
    "in",
    "x",
    "if",
    "else",
    "elif",
    "endif",
    "endfor",
    "set",
    "=",
    "endset",
    "with",
    "endwith",
    "filter",
    "endfilter",
    "~",
    "+",
    "*",
    "**",
    "//",
    "%",
    "/",
    "|",
    "(",
    ")",
    "[",
    "]",
    "{",
    "}",
    ",",
    ":",
    "'q'",
    "'%s {} $.a'",
    "1",
    "-1",
    "0",
    "2.5",
    "9223372036854775807",
    "-",
    "not",
    "range",
    "loop",
    ".",
    "index",
    "is",
    "defined",
    "and",
    "or",
    "==",
    "<",
    "namespace",
    "ns",
    "none",
    "true",
    "break",
    "continue",
    "text",
    "%}{%",
    "}}{{",
    "x.k",
    "x[0]",
];

const CALLS: &[&str] = &[
    "|sort",
    "|join",
    "|replace('a','b')",
    "|split",
    "|tojson",
    "|default",
    "|batch(2)",
    "|slice(3)",
    "|groupby(0)",
    "|dictsort",
    "|first",
    "|last",
    "|truncate(3)",
    "|indent",
    "|wordwrap(2)",
    "|center(9)",
    "|round(2)",
    "|round(-3)",
    "|int",
    "|float",
    "|abs",
    "|list",
    "|map('string')",
    "|select('odd')",
    "|unique",
    "|max",
    "|random",
    "|sum",
    "|urlencode",
    "|striptags",
    "|title",
    "|format(1)",
    "|jsonpath('$..k')",
    "|pprint",
    "|reverse",
    "|length",
    ".items()",
    ".split('a')",
    ".zfill(4)",
    ".strip()",
    ".format(1, 'é')",
    ".get('k')",
    "[::-1]",
    "[1:]",
    "[-3:2:2]",
    " * 3",
    " ~ x",
    " + x",
    " % 7",
    " ** 2",
    " // 0",
    " in x",
    " is odd",
    " is divisibleby 0",
    " < 1 < 2",
];

const JSON: &[&str] = &[
    r#"["a", "b", [1, 2.5], {"k": null}]"#,
    r#"{"k": [1, 2, 3], "é": "text", "0": false}"#,
    "\"h\u{e9}llo w\u{f6}rld <b>\"",
    "-9223372036854775808",
    "1e308",
    "[[1, 2], [3, 4]]",
    "[]",
];

fn stays_inside(template: &str, json: &str) {
    let bounds = Bounds { fuel: 20_000, output_bytes: 10_000 };
    let Ok(template) = Template::compile(template) else { return };
    let x = Value::from_json(json).expect("JSON");
    let values: Vec<Value> = template.variables().iter().map(|_| x.clone()).collect();
    let _ = template.evaluate(&values, bounds);
    if let Ok(text) = template.render(&values, bounds) {
        assert!(text.len() <= bounds.output_bytes);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 3000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn words(words in prop::collection::vec(prop::sample::select(WORDS), 1..30), json in prop::sample::select(JSON)) {
        let middle = words.join(" ");
        stays_inside(&middle, json);
        stays_inside(&format!("{{{{ {} }}}}", middle.replace(['%', '{', '}'], "")), json);
    }

    #[test]
    fn calls(calls in prop::collection::vec(prop::sample::select(CALLS), 1..6), json in prop::sample::select(JSON)) {
        let calls = calls.concat();
        stays_inside(&format!("{{{{ x{calls} }}}}"), json);
        stays_inside(&format!("{{% set n = namespace(a=x) %}}{{% for a in x %}}{{% set n.a = n.a{calls} %}}{{{{ a{calls} }}}}{{% endfor %}}"), json);
    }
}
