//! Errors: the place, the problem and the way out.

use anabranch_template::{Bounds, ErrorKind, Template};
use anabranch_value::Value;
use expect_test::{Expect, expect};

use crate::kit::of_json;

fn check(templates: &[&str], json: &str, expected: &Expect) {
    let lines: Vec<String> =
        templates.iter().map(|template| format!("{template}\n    {}\n", of_json(template, json))).collect();
    expected.assert_eq(&lines.concat());
}

/// Templates that are refused.
const WRONG_NAMES: [&str; 10] = [
    "{{ x|uper }}",
    "{{ x|frobnicate_everything }}",
    "{{ x is defned }}",
    "{{ lenght(x) }}",
    "{{ x.startwith('a') }}",
    "{{ x|replace('a') }}",
    "{{ x|join('a', 'b', 'c') }}",
    "{{ x|sort(revers=true) }}",
    "{{ x|map('uper') }}",
    "{{ x|selectattr('a', 'equals', 1) }}",
];

const WRONG_STATEMENTS: [&str; 23] = [
    "{% macro m() %}{% endmacro %}",
    "{% include 'a' %}",
    "{% extends 'a' %}",
    "{% block a %}{% endblock %}",
    "{% import 'a' as a %}",
    "{% call m() %}{% endcall %}",
    "{% do x.append(1) %}",
    "{% autoescape true %}{% endautoescape %}",
    "{% iff x %}{% endif %}",
    "{% for a in x recursive %}{% endfor %}",
    "{{ loop.index }}",
    "{% for a in x %}{{ loop.foo }}{% endfor %}",
    "{% for a in x %}{{ loop }}{% endfor %}",
    "{% set x.a = 1 %}",
    "{% set n = namespace(a=1) %}{{ n }}",
    "{{ namespace(a=1) }}",
    "{{ x + }}",
    "{% if x %}",
    "{{ x",
    "{{ 99999999999999999999 }}",
    "{% break %}",
    "{{ x(1) }}",
    "{{ len(x) }}",
];

#[test]
fn unknown_names_are_refused() {
    check(
        &WRONG_NAMES,
        "1",
        &expect![[r#"
            {{ x|uper }}
                ! "uper" no filter `uper`; did you mean `upper`?
            {{ x|frobnicate_everything }}
                ! "frobnicate_everything" no filter `frobnicate_everything`; there are abs, attr, batch, capitalize, center, count, d, default, dictsort, e, escape, first, float, forceescape, format, groupby, indent, int, items, join, jsonpath, keys, last, length, lines, list, lower, map, max, min, pprint, random, reject, rejectattr, replace, reverse, round, safe, select, selectattr, slice, sort, split, string, striptags, sum, title, tojson, trim, truncate, unique, upper, urlencode, values, wordcount, wordwrap
            {{ x is defned }}
                ! "defned" no test `defned`; did you mean `defined`?
            {{ lenght(x) }}
                ! "lenght(x)" no function `lenght`; did you mean the filter `length`, as in `value|length`?
            {{ x.startwith('a') }}
                ! "x.startwith('a')" no method `startwith`; did you mean `startswith`?
            {{ x|replace('a') }}
                ! "replace('a')" `replace` needs the argument `new`
            {{ x|join('a', 'b', 'c') }}
                ! "join('a', 'b', 'c')" `join` takes 0 to 2 arguments, not 3
            {{ x|sort(revers=true) }}
                ! "true" `sort` has no argument `revers`; it takes reverse, case_sensitive, attribute
            {{ x|map('uper') }}
                ! "map('uper')" no filter `uper`; did you mean `upper`?
            {{ x|selectattr('a', 'equals', 1) }}
                ! "selectattr('a', 'equals', 1)" no test `equals`; did you mean `equalto`?
        "#]],
    );
}

#[test]
fn statements_that_do_not_fit_are_refused() {
    check(
        &WRONG_STATEMENTS,
        "1",
        &expect![[r#"
            {% macro m() %}{% endmacro %}
                ! "macro" `macro` is refused: write the text where it is used, or use a loop
            {% include 'a' %}
                ! "include" `include` is refused: there are no other templates
            {% extends 'a' %}
                ! "extends" `extends` is refused: there are no other templates
            {% block a %}{% endblock %}
                ! "block" `block` is refused: there are no other templates
            {% import 'a' as a %}
                ! "import" `import` is refused: there are no other templates
            {% call m() %}{% endcall %}
                ! "call" `call` is refused: write the text where it is used, or use a loop
            {% do x.append(1) %}
                ! "do" `do` is refused: values do not change; `set` names a new one
            {% autoescape true %}{% endautoescape %}
                ! "autoescape" `autoescape` is refused: filters stand behind the values they change, as in `{{ value|escape }}`
            {% iff x %}{% endif %}
                ! "iff" `iff` is refused: did you mean `if`?
            {% for a in x recursive %}{% endfor %}
                ! "for a in x recursive %}{% endfor" `recursive` is refused: write a loop for each level
            {{ loop.index }}
                ! "loop.index" there is no loop around it
            {% for a in x %}{{ loop.foo }}{% endfor %}
                ! "loop.foo" of `loop` there are index, index0, revindex, revindex0, first, last, length, previtem, nextitem, depth, depth0 and cycle
            {% for a in x %}{{ loop }}{% endfor %}
                ! "loop" of `loop` there are index, index0, revindex, revindex0, first, last, length, previtem, nextitem, depth, depth0 and cycle
            {% set x.a = 1 %}
                ! "a" only fields of a namespace can be set, as in `{% set ns = namespace(n=0) %}{% set ns.n = 1 %}`
            {% set n = namespace(a=1) %}{{ n }}
                ! "n" `n` is a namespace: only its fields have values
            {{ namespace(a=1) }}
                ! "namespace(a=1)" a namespace gets a name first, as in `{% set ns = namespace(n=0) %}`
            {{ x + }}
                ! "}}" unexpected end of variable block
            {% if x %}
                ! "%}" unexpected end of input, expected end of block
            {{ x
                ! "x" unexpected end of input, expected end of variable block
            {{ 99999999999999999999 }}
                ! "99999999999999999999" the integer is beyond 64 bits
            {% break %}
                ! "break" 'break' must be placed inside a loop
            {{ x(1) }}
                ! "x(1)" no function `x`; there are range, namespace, dict
            {{ len(x) }}
                ! "len(x)" no function `len`; did you mean the filter `length`, as in `value|length`?
        "#]],
    );
}

#[test]
fn run_errors() {
    let templates = [
        "{{ x.judge.Acuracy.score }}",
        "a\n{{ x.judge.missing }}",
        "{{ x.list[5] }}",
        "{{ x.text.field }}",
        "{{ x.number.field }}",
        "{{ x.text + 1 }}",
        "{{ 1 / 0 }}",
        "{{ x.text < 1 }}",
        "{{ []|first }}",
        "{{ []|max }}",
        "{% for a, b in x.list %}{% endfor %}",
        "{% for a in x.number %}{% endfor %}",
        "{{ x.list|map(attribute='n')|list }}",
        "{{ 9223372036854775807 + 1 }}",
        "{{ '%d'|format('a') }}",
        "{{ 'a'.zfill(-1) }}",
        "{{ x.number.upper() }}",
        "{{ x.list|sort(attribute=0) }}",
        "{{ [1, 'a']|sort }}",
    ];
    let json = r#"{"judge":{"Accuracy":{"score":1}},"list":[1],"text":"t","number":1}"#;
    check(
        &templates,
        json,
        &expect![[r#"
        {{ x.judge.Acuracy.score }}
            ! line 1: undefined field `Acuracy`; did you mean `Accuracy`?, in "x.judge.Acuracy"
        a
        {{ x.judge.missing }}
            ! line 2: undefined field `missing`, in "x.judge.missing"
        {{ x.list[5] }}
            ! line 1: undefined: the list has 1 elements, and none at 5, in "x.list[5]"
        {{ x.text.field }}
            ! line 1: undefined field `field`: a text has no fields, even if it looks like JSON, in "x.text.field"
        {{ x.number.field }}
            ! line 1: undefined field `field`: a number has no fields, in "x.number.field"
        {{ x.text + 1 }}
            ! line 1: `+` takes two numbers, texts or lists, not a text and a number; `~` joins values as text, in "x.text + 1"
        {{ 1 / 0 }}
            ! line 1: a number is divided by 0, in "1 / 0"
        {{ x.text < 1 }}
            ! line 1: there is no order for a text and a number, in "x.text < 1"
        {{ []|first }}
            ! line 1: `first` has no result: the list is empty, in "first"
        {{ []|max }}
            ! line 1: `max` has no result: the list is empty, in "max"
        {% for a, b in x.list %}{% endfor %}
            ! line 1: an element is a number, and not a list of 2, in "x.list"
        {% for a in x.number %}{% endfor %}
            ! line 1: takes a list, not a number, in "x.number"
        {{ x.list|map(attribute='n')|list }}
            ! line 1: an element has no `n`, in "map(attribute='n')"
        {{ 9223372036854775807 + 1 }}
            ! line 1: the result is beyond 64 bits; with a float, as in `2.0`, it is rounded, in "9223372036854775807 + 1"
        {{ '%d'|format('a') }}
            ! line 1: takes a number, not a text, in "format('a')"
        {{ 'a'.zfill(-1) }}
            ! line 1: takes an integer from 0 up, not -1, in "'a'.zfill(-1)"
        {{ x.number.upper() }}
            ! line 1: a number has no such method: it is for a text, in "x.number.upper()"
        {{ x.list|sort(attribute=0) }}
            ! line 1: an element has no `0`, in "sort(attribute=0)"
        {{ [1, 'a']|sort }}
            ! line 1: has no order for a number and a text, in "sort"
    "#]],
    );
}

#[test]
fn places_are_in_the_source() {
    let place = |error: anabranch_template::Error, source: &str| source[error.place].to_owned();
    let source = "é {{ x }}\n{{ x|uper }}";
    assert_eq!(place(Template::compile(source).err().unwrap(), source), "uper");
    let source = "a.b.c + 1";
    let error =
        Template::expression(source).unwrap().evaluate(&[Value::map([("b", 1.into())])], Bounds::default());
    let error = error.unwrap_err();
    assert_eq!(error.kind, ErrorKind::Template);
    assert_eq!(place(error, source), "a.b.c");
    let source = "x|uper";
    assert_eq!(place(Template::expression(source).err().unwrap(), source), "uper");
    assert!(Template::expression("x }}{{ y").is_err());
    assert!(Template::expression("").is_err());
    assert!(Template::expression("x +").is_err());
}
