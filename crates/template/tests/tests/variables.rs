//! The names that a template reads.

use anabranch_template::Template;

const ROWS: &[(&str, &str)] = &[
    ("text", ""),
    ("{{ b }}{{ a }}{{ b }}", "b a"),
    ("{{ a.b.c[d] }}", "a d"),
    ("{% for i in list %}{{ i }}{{ loop.index }}{{ other }}{% endfor %}", "list other"),
    ("{% for i in list %}{% endfor %}{{ i }}", "list i"),
    ("{% for k, v in m.items() if v > low %}{{ k }}{{ v }}{% else %}{{ k }}{% endfor %}", "m low k"),
    ("{% set a = b %}{{ a }}", "b"),
    ("{{ a }}{% set a = 1 %}{{ a }}", "a"),
    ("{% set a = a %}", "a"),
    ("{% if c %}{% set a = 1 %}{% else %}{% set a = 2 %}{% endif %}{{ a }}", "c"),
    ("{% if c %}{% set a = 1 %}{% endif %}{{ a }}", "c a"),
    (
        "{% if c %}{% set a = 1 %}{% elif d %}{% set a = 2 %}{% else %}{% set a = 3 %}{% endif %}{{ a }}",
        "c d",
    ),
    ("{% for i in x %}{% set a = i %}{% endfor %}{{ a }}", "x a"),
    (
        "{% set ns = namespace(n=start) %}{% for i in x %}{% set ns.n = ns.n + i %}{% endfor %}{{ ns.n }}",
        "start x",
    ),
    ("{{ range(n)|list }}{{ dict(a=b) }}", "n b"),
    ("{{ x|map('replace', y, z)|selectattr('a', 'eq', w)|list }}", "x y z w"),
    ("{{ x if y is defined else z|default(w) }}", "x y z w"),
    ("{% raw %}{{ a }}{% endraw %}{# {{ b }} #}", ""),
    ("{% with a = b %}{{ a }}{% endwith %}{{ a }}", "b a"),
    ("{% set a %}{{ b }}{% endset %}{{ a }}", "b"),
    ("{% filter replace(a, b) %}{{ c }}{% endfilter %}", "c a b"),
    ("{{ 'x' ~ true ~ none }}", ""),
    ("{{ x.split(sep)[i:j:k] }}", "sep x i j k"),
    ("{{ a < b < c }}", "a b c"),
];

#[test]
fn names_in_the_order_of_first_use() {
    let wrong = |(source, expected): &(&str, &str)| {
        let got = Template::compile(source).unwrap().variables().join(" ");
        (got != *expected).then(|| format!("{source}\n  expected {expected}\n  got      {got}"))
    };
    let wrong: Vec<String> = ROWS.iter().filter_map(wrong).collect();
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}

#[test]
fn templates_are_shared_between_threads() {
    fn is_shared<T: Send + Sync>() {}
    is_shared::<Template>();
}
