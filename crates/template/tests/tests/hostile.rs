//! Templates that would take all memory, all time or all of the stack.

use anabranch_template::{Bounds, Template};
use anabranch_value::Value;

use crate::kit::render;

const MEMORY: &str = "makes more than 33554432 bytes";
const STEPS: &str = "takes more than 10";

/// A template over a text `x` of 1 MiB, and the reason why it stops.
const HOSTILE: &[(&str, &str)] = &[
    ("{% set a = x %}{% for i in range(99999) %}{% set a = a ~ a %}{{ a|length }}{% endfor %}", STEPS),
    ("{% set n = namespace(a=x) %}{% for i in range(99) %}{% set n.a = n.a ~ n.a %}{% endfor %}", MEMORY),
    ("{% set n = namespace(a=[1]) %}{% for i in range(99) %}{% set n.a = n.a + n.a %}{% endfor %}", MEMORY),
    (
        "{% set n = namespace(a=1) %}{% for i in range(9999) %}{% set n.a = [n.a, n.a] %}{% endfor %}{{ n.a }}",
        MEMORY,
    ),
    (
        "{% set n = namespace(a=1) %}{% for i in range(9999) %}{% set n.a = [n.a] %}{% endfor %}",
        "nested more than 256 deep",
    ),
    (
        "{% set n = namespace(a=1) %}{% for i in range(9999) %}{% set n.a = {'k': n.a} %}{% endfor %}",
        "nested more than 256 deep",
    ),
    ("{% set a = x ~ x ~ x ~ x ~ x ~ x ~ x ~ x %}{% set b = a %}{% set a = a ~ a ~ a ~ a %}", MEMORY),
    ("{% set a %}{% for i in range(99999) %}{{ x }}{% endfor %}{% endset %}", MEMORY),
    ("{% for i in range(9) %}{% set a %}{{ x }}{{ x }}{{ x }}{{ x }}{% endset %}{% endfor %}", MEMORY),
    ("{{ x * 1000000000 }}", MEMORY),
    ("{{ [0] * 9223372036854775807 }}", MEMORY),
    ("{{ 10 ** 10 ** 10 }}", "beyond 64 bits"),
    ("{{ 9223372036854775807 * 2 }}", "beyond 64 bits"),
    ("{{ (0 - 9223372036854775807 - 1) // -1 }}", "beyond 64 bits"),
    ("{{ (0 - 9223372036854775807 - 1)|abs }}", "too large"),
    ("{{ range(99999999999) }}", "at most 100000 numbers"),
    ("{{ range(-9223372036854775807, 9223372036854775807) }}", "at most 100000 numbers"),
    ("{{ x|replace('a', x)|length }}", MEMORY),
    ("{{ x|center(9999999999) }}", MEMORY),
    ("{{ x|indent(9999999999) }}", MEMORY),
    ("{{ 'a'.zfill(9999999999) }}", MEMORY),
    ("{{ '%9999999d'|format(1) }}", "at most 1000"),
    ("{{ '{:9999999}'.format(1) }}", "at most 1000"),
    ("{{ [1]|batch(9999999999, 0) }}", MEMORY),
    ("{{ [1]|slice(9999999999) }}", MEMORY),
    ("{{ [1]|tojson(indent=99999999) }}", "at most 16 spaces"),
    ("{{ x|list|length }}", MEMORY),
    ("{{ x|map('replace', 'a', x)|list }}", MEMORY),
    ("{{ x|tojson|tojson|tojson|tojson|tojson|tojson|tojson|tojson }}", MEMORY),
    ("{{ x|urlencode|urlencode|urlencode|urlencode|urlencode|urlencode }}", MEMORY),
    ("{{ x.split('') }}", "nothing cannot be a separator"),
    ("{{ x.replace('', 'a') }}", "nothing cannot be replaced"),
    ("{% for a in range(99999) %}{{ x }}{% endfor %}", "gives more than 4194304 bytes"),
];

/// Bodies of loops without end, but for the fuel.
const TIRELESS: &[&str] = &[
    "",
    "{% if x == x ~ '' %}{% endif %}",
    "{% if 'q' in x %}{% endif %}",
    "{% if x[5] %}{% endif %}{% if x[5:7:2] %}{% endif %}",
    "{% set a = x|length %}{% set b = a %}",
    "{% if x.count('a') %}{% endif %}",
    "{% if x.split('b')|length %}{% endif %}",
    "{% if x is upper %}{% endif %}",
    "{% set c %}{% endset %}",
    "{% if [1, 2]|random %}{% endif %}",
    "{% if range(1000)|map('string')|list %}{% endif %}",
    "{% for q in range(9999) %}{% break %}{% endfor %}",
];

fn check(template: &str, x: &Value, fuel: u64, expected: &str) {
    let got = render(template, x, Bounds { fuel, ..Bounds::default() });
    assert!(
        got.starts_with("! ") && got.contains(expected),
        "{template:.200}\n  expected {expected}\n  got      {got:.300}"
    );
}

#[test]
fn no_template_takes_all_there_is() {
    let x = Value::from("a\"&\\".repeat(1 << 18));
    HOSTILE.iter().for_each(|(template, expected)| check(template, &x, 10_000_000, expected));
    for inside in TIRELESS {
        let rounds = "{% for a in range(99999) %}{% for b in range(99999) %}";
        check(&format!("{rounds}{inside}{{% endfor %}}{{% endfor %}}"), &x, 1_000_000, STEPS);
    }
}

#[test]
fn no_template_takes_all_of_the_stack() {
    let nested = |open: &str, close: &str, count: usize| open.repeat(count) + "x" + &close.repeat(count);
    let shown = |expression: String| format!("{{{{ {expression} }}}}");
    let (words, brackets, blocks) =
        ("at most 512 words and signs", "at most 32 brackets", "at most 64 blocks");
    let templates = [
        ("x".repeat(10 << 20), "a template has at most 1048576"),
        (shown(vec!["x"; 100_000].join(" ~ ")), words),
        (shown("not ".repeat(100_000) + "x"), words),
        (shown("x".to_owned() + &".x".repeat(100_000)), words),
        (shown("x".to_owned() + &".strip()".repeat(100_000)), words),
        (shown(nested("(", ")", 5000)), brackets),
        (shown(nested("{'a': ", "}", 100)), brackets),
        (nested("{% if x %}", "{% endif %}", 10_000), blocks),
        (nested("{% for a in x %}", "{% endfor %}", 10_000), blocks),
        (nested("{% with a = x %}", "{% endwith %}", 10_000), blocks),
        (nested("{% filter upper %}", "{% endfilter %}", 10_000), blocks),
        (nested("{% set a %}", "{% endset %}", 10_000), "recursion"),
        (format!("{{% if x %}}{}{{% endif %}}", "{% elif x %}".repeat(10_000)), blocks),
        ((0..2000).map(|index| format!("{{% set a{index} = 1 %}}")).collect(), "sets at most 1000 names"),
        ("{% set x = [x] %}".repeat(10_000), "nested more than 256 deep"),
    ];
    templates.iter().for_each(|(template, expected)| check(template, &Value::from("v"), 1_000_000, expected));
}

#[test]
fn bounds_of_fuel_and_output() {
    let template = Template::compile("{% for i in range(100) %}0123456789{% endfor %}").unwrap();
    let run = |fuel, output_bytes| template.render(&[], Bounds { fuel, output_bytes });
    assert_eq!(run(10_000, 1000).unwrap().len(), 1000);
    assert_eq!(run(10_000, 999).unwrap_err().message, "line 1: gives more than 999 bytes, in \"0123456789\"");
    assert_eq!(
        run(100, 1000).unwrap_err().message.split(',').next(),
        Some("line 1: takes more than 100 steps")
    );
}
