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

#[test]
fn compile_errors() {
    let templates = [
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
    ];
    check(&templates, "1", &expect![[""]]);
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
    check(&templates, json, &expect![[""]]);
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
