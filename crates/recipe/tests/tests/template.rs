//! Templates: what they give, and that no template takes more memory or time than it may.

use anabranch_recipe::{Functions, Params, Value};
use anabranch_testkit::Rng;
use bytes::Bytes;

use crate::kit::{given, shown};

fn text(text: &str) -> Value {
    Value::Text(text.to_owned())
}

fn list(texts: &[&str]) -> Value {
    Value::List(texts.iter().map(|entry| text(entry)).collect())
}

/// What a template gives.
fn render(template: &str, inputs: &[&str], params: &[(&str, Value)]) -> String {
    let inputs: Vec<Vec<Bytes>> =
        inputs.iter().map(|input| vec![Bytes::copy_from_slice(input.as_bytes())]).collect();
    let mut params: Params = params.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect();
    params.insert("template".to_owned(), text(template));
    shown(&given(&Functions::builtin(), "template/1", &inputs, &params))
}

/// Of one input that is JSON, called `x`.
fn of_json(template: &str, json: &str) -> String {
    render(template, &[json], &[("format", text("json")), ("names", list(&["x"]))])
}

/// A template, `x` as JSON, and what comes out.
type Row = (&'static str, &'static str, &'static str);

#[track_caller]
fn all_are(rows: &[Row]) {
    let wrong = |(template, json, expected): &Row| {
        let got = of_json(template, json);
        (got != *expected).then(|| format!("{template}\n  expected {expected}\n  got      {got}"))
    };
    let wrong: Vec<String> = rows.iter().filter_map(wrong).collect();
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}

#[test]
fn variables() {
    let names = |names: &[&str]| ("names", list(names));
    let values = ("values", Value::Map(Params::from([("n".to_owned(), Value::Int(3))])));
    assert_eq!(render("Hi {{ inputs[0] }}!\n", &["Ann"], &[]), r"Hi Ann!\n");
    assert_eq!(render("{{ x }}{{ y|upper }}", &["<a>", "b"], &[names(&["x", "y"])]), "<a>B");
    assert_eq!(render("{{ n * 2 }}", &[], std::slice::from_ref(&values)), "6");
    assert_eq!(
        render("a\n{{ m }}", &[], std::slice::from_ref(&values)),
        r#"! parameter `template`: line 2: undefined value, in "m""#
    );
    assert_eq!(
        render("", &["a"], &[names(&["n"]), values]),
        "! parameter `names`: \"n\" is in `values`, too"
    );
    assert_eq!(render("", &["a"], &[names(&[])]), "! parameter `names`: 0 names for 1 inputs");
    assert_eq!(
        render("", &["{"], &[("format", text("json"))]),
        "! input 1: not JSON: EOF while parsing an object at line 1 column 1"
    );
    assert_eq!(
        render("{% if %}", &[], &[]),
        "! parameter `template`: line 1: unexpected end of block, in \"%}\""
    );
}

const EXPRESSIONS: &[Row] = &[
    ("{{ x.a + 1 }} {{ x.a - 3 }} {{ x.a * x.a }} {{ 2 ** 10 }}", r#"{"a":2}"#, "3 -1 4 1024"),
    ("{{ 7 / 2 }} {{ -7 // 2 }} {{ -7 % 3 }} {{ 7.5 // 2 }} {{ 2 ** -1 }}", "0", "3.5 -4 2 3.0 0.5"),
    ("{{ x.a ~ 1 ~ x.b }} {{ 'p' + 'q' }} {{ [1] + [2] }}", r#"{"a":"t","b":[true]}"#, "t1[True] pq [1, 2]"),
    (
        "{{ x[0] }}{{ x[-1] }}{{ x[1:] }}{{ x[:-1] }}{{ 'h\u{e9}llo'[1:3] }}{{ 'abc'[2] }}",
        "[1,2,3]",
        r"13[2, 3][1, 2]\xc3\xa9lc",
    ),
    (
        "{{ 1 < 2 and 'b' > 'a' }} {{ x == [1, {'a': 2}] }} {{ not 1 in x }} {{ 'el' in 'hello' }}",
        r#"[1,{"a":2}]"#,
        "True True False True",
    ),
    ("{{ 'y' if x else 'n' }}{{ 'gone' if not x }}{{ x and 0 }}{{ 0 or x }}", "5", "y05"),
    (
        "{{ x.b|default('none') }} {{ x.b is defined }} {{ x.a is defined }} {{ x.a is none }}",
        r#"{"a":null}"#,
        "none False True True",
    ),
    (
        "{{ x is odd }} {{ x is divisibleby 3 }} {{ x is string }} {{ 'abc' is startingwith('a') }}",
        "9",
        "True True False True",
    ),
    (
        "{{ x.b.c|default('none') }}",
        r#"{"a":1}"#,
        r#"! parameter `template`: line 1: undefined value, in "x.b""#,
    ),
    ("{{ 1 / x }}", "0", r#"! parameter `template`: line 1: a number is divided by 0, in "1 / x""#),
    (
        "{{ 'a' + 1 }}",
        "0",
        r#"! parameter `template`: line 1: `+` takes two numbers, texts or lists, not a text and a number, in "'a' + 1""#,
    ),
    ("{{ x.y }}", "[1]", r#"! parameter `template`: line 1: an index is an integer, not a text, in "x.y""#),
    (
        "{{ 1 < 2 < 3 }}",
        "0",
        r#"! parameter `template`: line 1: comparisons have `and` between them, as in `a < b and b < c`, in "1 < 2 < 3""#,
    ),
];

#[test]
fn expressions() {
    all_are(EXPRESSIONS);
}

const PEOPLE: &str = r#"[{"n":"b","a":2},{"n":"a","a":1},{"n":"b","a":3}]"#;

const FILTERS: &[Row] = &[
    (
        "{{ x|upper }} {{ x|title }} {{ x|capitalize }} {{ x|trim|length }}",
        r#"" a bC dE""#,
        r" A BC DE  A Bc De  a bc de 7",
    ),
    (
        "{{ x|escape }} {{ x|tojson }} {{ x|replace('a', '\\n')|tojson }}",
        r#""<a b='c'>\"&""#,
        r#"&lt;a b=&#x27;c&#x27;&gt;&quot;&amp; \"<a b=\'c\'>\\\"&\" \"<\\n b=\'c\'>\\\"&\""#,
    ),
    (
        "{{ x|sort }} {{ x|unique }} {{ x|reverse }} {{ x|sum }} {{ x|min }} {{ x|max }} {{ x|first }} {{ x|last }}",
        "[3,1,3,2]",
        "[1, 2, 3, 3] [3, 1, 2] [2, 3, 1, 3] 9 1 3 3 2",
    ),
    (
        "{{ x|sort(attribute='a')|map(attribute='a')|join('-') }} {{ x|unique(attribute='n')|length }}",
        PEOPLE,
        "1-2-3 2",
    ),
    (
        "{{ x|items }} {{ x|keys }} {{ x|values }} {{ x|list }} {{ x|tojson }}",
        r#"{"b":1.5,"a":[null]}"#,
        r#"[[\'a\', [None]], [\'b\', 1.5]] [\'a\', \'b\'] [[None], 1.5] [\'a\', \'b\'] {\"a\":[null],\"b\":1.5}"#,
    ),
    (
        "{{ x|split(',') }} {{ 'a b'|split }} {{ 'p\\nq'|lines }}",
        r#""a,b,""#,
        r#"[\'a\', \'b\', \'\'] [\'a\', \'b\'] [\'p\', \'q\']"#,
    ),
    (
        "{{ x|round(1) }} {{ x|int }} {{ '12'|int }} {{ '1.5'|float }} {{ (0 - 3)|abs }} {{ 5|string|length }}",
        "2.25",
        "2.3 2 12 1.5 3 1",
    ),
    (
        "{{ x|sort }}",
        "[1,\"a\"]",
        r#"! parameter `template`: line 1: has no order for a number and a text, in "sort""#,
    ),
    (
        "{{ x|upper }}",
        "1",
        r#"! parameter `template`: line 1: takes a text, not a number; `string` makes one, in "upper""#,
    ),
    (
        "{{ x|indent(4) }}",
        "1",
        r#"! parameter `template`: line 1: no filter `indent`; there are abs, capitalize, count, d, default, e, escape, first, float, int, items, join, keys, last, length, lines, list, lower, map, max, min, replace, reverse, round, sort, split, string, sum, title, tojson, trim, unique, upper, values, in "indent(4)""#,
    ),
    (
        "{{ x|join }}{{ x|join('a', 'b') }}",
        "[]",
        r#"! parameter `template`: line 1: `join` takes 0 to 1 arguments, not 2, in "join('a', 'b')""#,
    ),
];

#[test]
fn filters() {
    all_are(FILTERS);
}

const LOOPS: &[Row] = &[
    (
        "{% for row in x %}{{ row.n + 1 }}{% if not loop.last %}, {% endif %}{% endfor %}",
        r#"[{"n":1},{"n":2}]"#,
        "2, 3",
    ),
    (
        "{% for k, v in x|items %}{{ loop.index }}{{ k }}={{ v }};{% endfor %}",
        r#"{"b":1,"a":2}"#,
        "1a=2;2b=1;",
    ),
    ("{% for k in x %}{{ k }}{% endfor %}", r#"{"b":1,"a":2}"#, "ab"),
    (
        "{% for n in x if n > 1 %}{{ n }}/{{ loop.length }}/{{ loop.revindex0 }} {% else %}none{% endfor %}",
        "[1,2,3]",
        "2/2/1 3/2/0 ",
    ),
    ("{% for n in x if n > 9 %}{{ n }}{% else %}none{% endfor %}", "[1,2,3]", "none"),
    (
        "{% for n in x %}{% if n == 2 %}{% continue %}{% elif n == 4 %}{% break %}{% else %}{{ n }}{% endif %}{% else %}never{% endfor %}.",
        "[1,2,3,4,5]",
        "13.",
    ),
    (
        "{% for a in [1, 2] %}{% for b in [] %}{% else %}{% continue %}{% endfor %}{{ a }}{% endfor %}.",
        "0",
        ".",
    ),
    (
        "{% for a in x %}{% for b in a %}{{ loop.index }}{{ b }}{% endfor %}{{ loop.index }};{% endfor %}",
        r#"[["p","q"],["r"]]"#,
        "1p2q1;1r2;",
    ),
    (
        "{% for n in range(3) %}{{ n }}{% endfor %}{% for n in range(5, 0, 0-2) %}{{ n }}{% endfor %}",
        "0",
        "012531",
    ),
    (
        "{% for a, b in x %}{% endfor %}",
        "[[1,2],[3]]",
        "! parameter `template`: line 1: an element is a list, and not a list of 2, in \"x\"",
    ),
    (
        "{% for c in x %}{% endfor %}",
        "\"abc\"",
        r#"! parameter `template`: line 1: takes a list, not a text; `split` and `lines` make one, in "x""#,
    ),
    (
        "{% for a in x %}{% else %}{% break %}{% endfor %}",
        "[1]",
        "! parameter `template`: line 1: there is no loop around it, in \"break\"",
    ),
    ("{% raw %}{{ x }}{% endraw %}{# gone #}{%- if x %} y {%- endif %}", "1", "{{ x }} y"),
];

#[test]
fn loops() {
    all_are(LOOPS);
}

/// Templates that would take all memory or all time, of the text `x`; and why they do not.
const HOSTILE: &[(&str, &str)] = &[
    ("{% set a = x ~ x %}{% set a = a ~ a %}", "`set` is refused: values have names only"),
    ("{% set a %}{{ x }}{% endset %}", "`set` is refused"),
    ("a\n{% with a = x %}{% endwith %}", "line 2: `with` is refused"),
    ("{% macro m(a) %}{{ m(a ~ a) }}{% endmacro %}{{ m(x) }}", "`macro` is refused"),
    ("{% call m() %}{% endcall %}", "`call` is refused"),
    ("{% include 'a' %}", "`include` is refused: there are no other templates"),
    ("{% import 'a' as a %}", "`import` is refused"),
    ("{% extends 'a' %}", "`extends` is refused"),
    ("{% block a %}{% endblock %}", "`block` is refused"),
    ("{% filter upper %}a{% endfilter %}", "`filter` is refused"),
    ("{% do range(3) %}", "`do` is refused"),
    ("{% for a in x recursive %}{{ loop(a) }}{% endfor %}", "`recursive` is refused"),
    ("{% for a in x|lines %}{{ loop(a) }}{% endfor %}", "nothing can be called"),
    ("{% for a in x|lines %}{{ loop }}{% endfor %}", "of `loop` there are"),
    ("{% for a in [x ~ x] %}{% endfor %}", "a loop goes over what is there"),
    (
        "{% for a in [[x, x]] %}{% for b in [[a, a]] %}{% endfor %}{% endfor %}",
        "a loop goes over what is there",
    ),
    ("{% for a in (x ~ x)|split('a') %}{% endfor %}", "a loop goes over what is there"),
    ("{% for a in x|default([x, x]) %}{% endfor %}", "a loop goes over what is there"),
    ("{% for a in x|replace('a', x)|lines %}{% endfor %}", "a loop goes over what is there"),
    ("{{ \"x\" * 1000000000 }}", "takes a number, not a text"),
    ("{{ [0] * 1000000000 }}", "takes a number, not a list"),
    ("{{ 10 ** 10 ** 10 }}", "beyond 64 bits"),
    ("{{ range(99999999999) }}", "at most 100000 numbers"),
    ("{{ range(0 - 9 ** 19, 9 ** 19) }}", "at most 100000 numbers"),
    ("{{ x.format(1) }}", "nothing can be called but `range`"),
    ("{{ debug() }}", "nothing can be called but `range`"),
    ("{{ (x ~ x ~ x ~ x ~ x ~ x ~ x ~ x ~ x ~ x)|length }}", "makes more than 33554432 bytes"),
    ("{{ x|replace('a', x)|length }}", "makes more than 33554432 bytes"),
    ("{{ x[:40]|split('a')|join(x)|length }}", "makes more than 33554432 bytes"),
    ("{{ [x, x, x, x, x, x, x, x, x, x]|join(x)|length }}", "makes more than 33554432 bytes"),
    ("{{ x|tojson|tojson|tojson|tojson|tojson|tojson|tojson|tojson }}", "makes more than 33554432 bytes"),
    ("{{ x|escape|escape|escape|escape|escape|escape|escape|escape }}", "makes more than 33554432 bytes"),
    ("{{ x|split('') }}", "nothing cannot be a separator"),
];

/// What is done again and again, for ever but for the fuel.
const TIRELESS: &[&str] = &[
    "",
    "{{ x }}",
    "{% if x == x ~ '' %}{% endif %}",
    "{% if x < x %}{% endif %}",
    "{% if 'q' in x %}{% endif %}",
    "{% if [x] == [x ~ ''] %}{% endif %}",
    "{% for line in x|split('a') %}{% break %}{% endfor %}",
    "{% for c in inputs if c == x %}{% break %}{% endfor %}",
    "{{ x[5] }}{{ x[5:7] }}",
    "{{ x|length }}",
    "{{ x|lines|sort|first|length }}",
];

/// Templates that would take all of the stack.
fn deep() -> Vec<(String, &'static str)> {
    let nested = |open: &str, close: &str, count: usize| open.repeat(count) + "x" + &close.repeat(count);
    let shown = |expression: String| format!("{{{{ {expression} }}}}");
    let (words, brackets, blocks) =
        ("at most 512 words and signs", "at most 32 brackets", "at most 64 blocks");
    vec![
        ("x".repeat(10 << 20), "a template has at most 1048576"),
        (shown(format!("[{}]", "1,".repeat(100_000))), words),
        (shown(vec!["x"; 100_000].join(" ~ ")), words),
        (shown("not ".repeat(100_000) + "x"), words),
        (shown("- ".repeat(100_000) + "x"), words),
        (shown("x".to_owned() + &"|upper".repeat(100_000)), words),
        (shown("x".to_owned() + &".x".repeat(100_000)), words),
        (shown("x if x else ".repeat(20_000) + "x"), words),
        (shown(nested("(", ")", 200)), brackets),
        (shown(nested("[", "]", 200)), brackets),
        (shown(nested("{'a': ", "}", 100)), brackets),
        (format!("{{% for {} in x %}}{{% endfor %}}", nested("(", ")", 200)), brackets),
        (nested("{% if x %}", "{% endif %}", 10_000), blocks),
        (nested("{% for a in x %}", "{% endfor %}", 10_000), blocks),
        (format!("{{% if x %}}{}{{% endif %}}", "{% elif x %}".repeat(10_000)), blocks),
    ]
}

#[test]
fn no_template_takes_all_there_is() {
    let input = "a\"&\\".repeat(1 << 20);
    let check = |template: &str, expected: &str| {
        let got = render(template, &[&input], &[("names", list(&["x"]))]);
        let begins = got.starts_with("! parameter `template`: line ");
        assert!(
            begins && got.contains(expected),
            "{template:.100}\n  expected {expected}\n  got      {got:.300}"
        );
    };
    HOSTILE.iter().for_each(|(template, expected)| check(template, expected));
    deep().iter().for_each(|(template, expected)| check(template, expected));
    for inside in TIRELESS {
        let rounds = "{% for a in range(99999) %}{% for b in range(99999) %}";
        check(&format!("{rounds}{inside}{{% endfor %}}{{% endfor %}}"), "more than 1000000 steps");
    }
}

#[test]
fn as_deep_as_it_may_go() {
    let json = "[".repeat(127) + &"]".repeat(127);
    let brackets = format!("{{{{ {}x{} ~ x == x }}}}", "[".repeat(31), "]".repeat(31));
    assert_eq!(of_json(&brackets, &json), "False");
    let chain = format!("{{{{ {} }}}}", vec!["1"; 250].join(" + "));
    assert_eq!(of_json(&chain, "0"), "250");
    let negated = format!("{{{{ {}x }}}}", "not ".repeat(500));
    assert_eq!(of_json(&negated, "1"), "True");
    let choices = format!("{{{{ {} 7 }}}}", "1 if x else ".repeat(120));
    assert_eq!(of_json(&choices, "0"), "7");
    let blocks = "{% if x %}".repeat(64) + "y" + &"{% endif %}".repeat(64);
    assert_eq!(of_json(&blocks, "1"), "y");
    let branches = format!("{{% if x == 0 %}}{}{{% else %}}z{{% endif %}}", "{% elif x == 2 %}a".repeat(63));
    assert_eq!(of_json(&branches, "1"), "z");
}

#[test]
fn bounds_of_what_goes_in_and_out() {
    let loops = "{% for a in range(1000) %}0123456789{% endfor %}";
    assert_eq!(render(loops, &[], &[("max_bytes", Value::Int(10_000))]).len(), 10_000);
    assert_eq!(
        render(loops, &[], &[("max_bytes", Value::Int(9999))]),
        "! the output would have more than 9999 bytes"
    );
    let shown = "{% for a in range(1000) %}{{ '0123456789' }}{% endfor %}";
    assert_eq!(
        render(shown, &[], &[("max_bytes", Value::Int(9999))]),
        "! the output would have more than 9999 bytes"
    );
    let large = "x".repeat((16 << 20) + 1);
    assert_eq!(render("", &[&large], &[]), "! the inputs of a template would have more than 16 MiB");
    let values = ("values", Value::Map(Params::from([("v".to_owned(), text(&large))])));
    assert_eq!(render("", &[], &[values]), "! `values` would have more than 16 MiB");
    assert_eq!(
        render("", &[], &[("fuel", Value::Int(100_000_001))]),
        "! parameter `fuel`: 100000001 is not a whole number, 1 to 100000000"
    );
}

/// Much is given bit by bit.
#[test]
fn output_streams() {
    let functions = Functions::builtin();
    let function = functions.get(&"template/1".parse().unwrap()).unwrap();
    let template = "{% for a in range(100000) %}0123456789012345678901234567890123456789{% endfor %}";
    let params = Params::from([("template".to_owned(), text(template))]);
    let chunks = anabranch_recipe::call(function, &[], &params).unwrap();
    assert_eq!(chunks.iter().map(Bytes::len).sum::<usize>(), 4_000_000);
    assert!(chunks.iter().all(|chunk| chunk.len() <= 512 << 10));
}

/// Templates of any words: each ends, and none breaks anything.
#[test]
fn templates_at_random() {
    let words = [
        "{{", "}}", "{%", "%}", "for", "a", "in", "x", "if", "else", "elif", "endif", "endfor", "~", "+",
        "*", "**", "|", "sort", "join", "replace", "split", "(", ")", "[", "]", "{", "}", ",", ":", "'q'",
        "1", "-", "not", "range", "loop", ".", "index", "is", "defined", "and", "or", "==", "<", "tojson",
        "default", "break", "continue", "text", "%}{%", "}}{{",
    ];
    let mut given = 0;
    for seed in 0..4000 {
        let mut rng = Rng::new(seed);
        let count = rng.within(1..30);
        let middle = (0..count).map(|_| *rng.choose(&words)).collect::<Vec<_>>().join(" ");
        let template = match rng.within(0..3) {
            0 => middle,
            1 => format!("{{{{ {} }}}}", middle.replace(['%', '{', '}'], "")),
            _ => {
                format!("{{% for a in x %}}{{{{ a {} }}}}{{% endfor %}}", middle.replace(['%', '{', '}'], ""))
            }
        };
        let got = of_json(&template, r#"["a", "b", [1, 2.5], {"k": null}]"#);
        given += usize::from(!got.starts_with("! "));
        assert!(
            !got.starts_with("! ") || got.starts_with("! parameter `template`: line "),
            "seed {seed}: {got}"
        );
    }
    assert!(given > 100, "{given}");
}
