//! Templates that render to the text that Python's Jinja2 renders, with lists and maps as JSON.

use crate::kit::{Row, all_render};

const PRINTING: &[Row] = &[
    ("{{ x }}", "true", "True"),
    ("{{ x }}", "null", "None"),
    ("{{ x }}", "1.0", "1.0"),
    ("{{ x }}", "1e16", "1e+16"),
    ("{{ x }}", "0.1", "0.1"),
    ("{{ x }}", "123456789012345.6", "123456789012345.6"),
    ("{{ x }}", "1e-5", "1e-05"),
    ("{{ x }}", "0.0001", "0.0001"),
    ("{{ x }}", "-2.5e-7", "-2.5e-07"),
    ("{{ x }}", r#""true""#, "true"),
    ("{{ x }}", r#""1e3""#, "1e3"),
    ("{{ x }}", r#""{\"a\": 1}""#, r#"{"a": 1}"#),
    (
        "{{ x }}",
        r#"[1, 2.0, "é\n", true, null, {"b": [], "a": {}}]"#,
        r#"[1, 2.0, "é\n", true, null, {"b": [], "a": {}}]"#,
    ),
    ("{{ x }}", r#"{"b": 1, "a": [1e20]}"#, r#"{"b": 1, "a": [1e+20]}"#),
    ("a\n{{ x }}\n", "1", "a\n1"),
    ("{{ 1e100 }} {{ 5e-324 }} {{ 100000000000000000000.0 }} {{ -0.0 }}", "1", "1e+100 5e-324 1e+20 -0.0"),
];

#[test]
fn printing() {
    all_render(PRINTING);
}

const EXPRESSIONS: &[Row] = &[
    ("{{ (x * 10) - 0.01 | round(2) }}", "5", "49.99"),
    ("{{ x.Accuracy.score }}", r#"{"Accuracy":{"score":4}}"#, "4"),
    ("{{ x['a b'][0]['c'] }}", r#"{"a b":[{"c":7}]}"#, "7"),
    (
        "{{ 7 / 2 }} {{ 6 / 2 }} {{ -7 // 2 }} {{ -7 % 3 }} {{ 7 % -3 }} {{ 7.5 // 2 }} {{ 2 ** -1 }} {{ 2 ** 10 }} {{ 2.0 ** 0.5 }}",
        "0",
        "3.5 3.0 -4 2 -2 3.0 0.5 1024 1.4142135623730951",
    ),
    (
        "{{ true + 1 }} {{ x == 1 }} {{ x == 1.0 }} {{ 1 == 1.0 }} {{ '1' == 1 }}",
        "true",
        "2 True True True False",
    ),
    (
        "{{ 'ab' * 3 }} {{ 2 * 'x' }} {{ [1] * 2 }} {{ 'a' + 'b' }} {{ [1] + [2] }} {{ 1 ~ 'a' ~ 2.0 ~ none ~ true }}",
        "0",
        "ababab xx [1, 1] ab [1, 2] 1a2.0NoneTrue",
    ),
    ("{{ 1 < 2 < 3 }} {{ 1 < x <= 2 }} {{ 1 < 3 > 2 == 2 }}", "2", "True True True"),
    (
        "{{ x[0] }}{{ x[-1] }}{{ x[1:] }}{{ x[:-1] }}{{ x[::2] }}{{ x[::-1] }}{{ x[3:0:-2] }}{{ x[5:] }}",
        "[1,2,3,4]",
        "14[2, 3, 4][1, 2, 3][1, 3][4, 3, 2, 1][4, 2][]",
    ),
    ("{{ x[1:3] }} {{ x[::-1] }} {{ x[-2] }} {{ x[1::2] }}", r#""héllo""#, "él olléh l él"),
    ("{{ 'y' if x else 'n' }} {{ x and 0 }} {{ 0 or x }} {{ not x }}", "5", "y 0 5 False"),
    (
        "{{ 1 in x }} {{ 9 not in x }} {{ not 1 in x }} {{ 'el' in 'hello' }} {{ 'a' in {'a': 1} }}",
        "[1]",
        "True True False True True",
    ),
    (
        "{{ x.b|default('none') }} {{ x.a|default('e', true) }} {{ x.a|d('e') }} {{ x.c is defined }} {{ x.a is defined }}",
        r#"{"a":""}"#,
        "none e  False True",
    ),
    (
        "{{ {'a': 1, 'b': [1, 'z']} }} {{ (1, 2) }} {{ [] }} {{ {} }}",
        "0",
        r#"{"a": 1, "b": [1, "z"]} [1, 2] [] {}"#,
    ),
    ("{{ -x }} {{ -x|abs }} {{ 1 - -1 }} {{ - 3 ** 2 }}", "3", "-3 3 2 9"),
    (
        "{{ 3.0|int }} {{ '3.7'|int }} {{ 'x'|int }} {{ 'x'|int(7) }} {{ '0x1f'|int(base=16) }} {{ '2.5'|float }} {{ 'q'|float(1.5) }} {{ none|int }} {{ true|int }}",
        "0",
        "3 3 0 7 31 2.5 1.5 0 1",
    ),
    (
        "{{ dict(a=1, b='c') }} {{ range(3)|list }} {{ range(5, 0, -2)|list }}",
        "0",
        r#"{"a": 1, "b": "c"} [0, 1, 2] [5, 3, 1]"#,
    ),
    (
        "{{ '%s is %d, %.2f%%'|format('a', 3, 2.5) }} {{ '%05d|%-4s|%4s' % (42, 'ab', 'cd') }} {{ '%s' % x }}",
        "1.0",
        "a is 3, 2.50% 00042|ab  |  cd 1.0",
    ),
    ("{{ '{0} {1} {0}'.format('a', 2) }}", "0", "a 2 a"),
    (
        "{{ '{:.2f} {:,} {}'.format(1.005, 1234567, 'z') }} {{ '{:.1%}'.format(0.256) }} {{ '{:>5}|{:<5}|{:05d}'.format('a', 'b', 42) }}",
        "0",
        "1.00 1,234,567 z 25.6%     a|b    |00042",
    ),
    ("{{ x.0 }} {{ x[1].a }}", r#"[5,{"a":6}]"#, "5 6"),
    (r#"{{ 'a' 'b' }} {{ 'it''s' }} {{ "q\"\n" }}"#, "0", "ab its q\"\n"),
];

#[test]
fn expressions() {
    all_render(EXPRESSIONS);
}

const TESTS: &[Row] = &[
    (
        "{{ x is defined }} {{ y is undefined }} {{ x.a is none }} {{ x is mapping }} {{ x is not string }} {{ x is sequence }} {{ x is iterable }}",
        r#"{"a":null}"#,
        "True True True True True True True",
    ),
    (
        "{{ x is number }} {{ x is integer }} {{ x is float }} {{ x is boolean }} {{ true is number }} {{ true is integer }} {{ 1.0 is float }} {{ true is boolean }}",
        "4",
        "True True False False True False True True",
    ),
    (
        "{{ x is odd }} {{ x is even }} {{ x is divisibleby 3 }} {{ x is divisibleby(4) }} {{ x is eq 9 }} {{ x is ne 9 }} {{ x is lt 10 }} {{ x is le 9 }} {{ x is gt 9 }} {{ x is ge(9) }}",
        "9",
        "True False True False True False True True False True",
    ),
    (
        "{{ x is in [1, 2] }} {{ x is not in [3] }} {{ 'A' is upper }} {{ 'a' is lower }} {{ true is true }} {{ 1 is true }} {{ false is false }} {{ x is sameas x }} {{ x is equalto 1 }} {{ x is greaterthan 0 }} {{ x is lessthan 0 }}",
        "1",
        "True True True True True False True True True True False",
    ),
];

#[test]
fn tests() {
    all_render(TESTS);
}

const FILTERS: &[Row] = &[
    (
        "{{ x|upper }}|{{ x|lower }}|{{ x|title }}|{{ x|capitalize }}|{{ x|trim }}|{{ x|length }}|{{ x|wordcount }}",
        r#"" it's a bC-dE (fg) ""#,
        " IT'S A BC-DE (FG) | it's a bc-de (fg) | It's A Bc-De (Fg) | it's a bc-de (fg) |it's a bC-dE (fg)|19|6",
    ),
    (
        "{{ 5|upper }} {{ 5|string|length }} {{ true|lower }} {{ none|title }} {{ 1.50|string }}",
        "0",
        "5 1 true None 1.5",
    ),
    (
        "{{ x|escape }} {{ x|e }} {{ x|forceescape }} {{ x|safe }}",
        r#""<a b='c'>\"&""#,
        r#"&lt;a b=&#39;c&#39;&gt;&#34;&amp; &lt;a b=&#39;c&#39;&gt;&#34;&amp; &lt;a b=&#39;c&#39;&gt;&#34;&amp; <a b='c'>"&"#,
    ),
    (
        "{{ x|replace('a', 'b') }} {{ x|replace('a', 'b', 1) }} {{ x|replace('a', '') }}",
        r#""banana""#,
        "bbnbnb bbnana bnn",
    ),
    (
        "{{ x|sort }} {{ x|sort(reverse=true) }} {{ x|unique|list }} {{ x|reverse|list }} {{ x|sum }} {{ x|min }} {{ x|max }} {{ x|first }} {{ x|last }} {{ x|length }} {{ x|count }}",
        "[3,1,3,2.5]",
        "[1, 2.5, 3, 3] [3, 3, 2.5, 1] [3, 1, 2.5] [2.5, 3, 1, 3] 9.5 1 3 3 2.5 4 4",
    ),
    (
        "{{ x|sort }} {{ x|sort(case_sensitive=true) }} {{ x|unique|list }} {{ x|unique(case_sensitive=true)|list }} {{ x|max }} {{ x|min }} {{ x|join(', ') }} {{ x|join }}",
        r#"["b","A","a","B"]"#,
        r#"["A", "a", "b", "B"] ["A", "B", "a", "b"] ["b", "A"] ["b", "A", "a", "B"] b A b, A, a, B bAaB"#,
    ),
    (
        "{{ x|sort(attribute='a')|map(attribute='n')|join('-') }} {{ x|map(attribute='c.x')|list }} {{ x|sum(attribute='a') }} {{ x|join('/', attribute='n') }} {{ x|join('/', 'n') }} {{ (x|max(attribute='c.x')).n }}",
        r#"[{"n":"bo","a":2,"c":{"x":1}},{"n":"Al","a":1,"c":{"x":3}},{"n":"cy","a":3,"c":{"x":2}}]"#,
        "Al-bo-cy [1, 3, 2] 6 bo/Al/cy bo/Al/cy Al",
    ),
    (
        "{{ x|selectattr('a', 'gt', 1)|map(attribute='n')|list }} {{ x|rejectattr('a', 'eq', 1)|list|length }} {{ x|selectattr('c.x')|list|length }} {{ x|selectattr('n', 'in', ['bo'])|list|length }}",
        r#"[{"n":"bo","a":2,"c":{"x":1}},{"n":"Al","a":1,"c":{"x":3}},{"n":"cy","a":3,"c":{"x":2}}]"#,
        r#"["bo", "cy"] 2 3 1"#,
    ),
    (
        "{{ x|select('odd')|list }} {{ x|reject('odd')|list }} {{ x|select|list }} {{ x|select('gt', 2)|list }} {{ x|map('string')|join }} ",
        "[0,1,2,3]",
        "[1, 3] [0, 2] [1, 2, 3] [3] 0123 ",
    ),
    (
        "{{ x|map('upper')|list }} {{ x|map('replace', 'a', 'o')|list }} {{ x|map('length')|sum }} {{ x|map('trim')|map('title')|join(' ') }}",
        r#"["ab","cad"]"#,
        r#"["AB", "CAD"] ["ob", "cod"] 5 Ab Cad"#,
    ),
    (
        "{% for g, l in x|groupby('k') %}{{ g }}:{{ l|map(attribute='v')|join(',') }};{% endfor %}{% for g in x|groupby('k') %}{{ g.grouper }}{{ g.list|length }}{% endfor %}",
        r#"[{"k":"b","v":1},{"k":"a","v":2},{"k":"b","v":3}]"#,
        "a:2;b:1,3;a1b2",
    ),
    (
        "{{ x|dictsort }} {{ x|dictsort(by='value') }} {{ x|dictsort(reverse=true) }} {{ x|items|list }} {{ x.items()|list }} {{ x.keys()|list }} {{ x.values()|list }} {{ x|list }}",
        r#"{"b":1,"A":3,"c":2}"#,
        r#"[["A", 3], ["b", 1], ["c", 2]] [["b", 1], ["c", 2], ["A", 3]] [["c", 2], ["b", 1], ["A", 3]] [["b", 1], ["A", 3], ["c", 2]] [["b", 1], ["A", 3], ["c", 2]] ["b", "A", "c"] [1, 3, 2] ["b", "A", "c"]"#,
    ),
    (
        "{{ x|batch(2)|list }} {{ x|batch(2, 0)|list }} {{ x|slice(2)|list }} {{ x|slice(2, 9)|list }} {{ x|slice(4)|list }}",
        "[1,2,3]",
        "[[1, 2], [3]] [[1, 2], [3, 0]] [[1, 2], [3]] [[1, 2], [3, 9]] [[1], [2], [3], []]",
    ),
    (
        "{{ x|round }} {{ x|round(1) }} {{ x|round(1, 'ceil') }} {{ x|round(1, 'floor') }} {{ 2.5|round }} {{ 3.5|round }} {{ 7|round(2) }} {{ 42|round(method='ceil') }} {{ 2.675|round(2) }} {{ 1234.5|round(-2) }} {{ 0.1|round(3) }}",
        "2.25",
        "2.0 2.2 2.3 2.2 2.0 4.0 7 42.0 2.67 1200.0 0.1",
    ),
    (
        "{{ x|truncate(9) }}|{{ x|truncate(9, true) }}|{{ x|truncate(9, false, '..') }}|{{ x|truncate(11) }}|{{ x|truncate(5, leeway=0) }}|{{ x|truncate(500) }}",
        r#""foo bar baz qux""#,
        "foo...|foo ba...|foo..|foo bar baz qux|fo...|foo bar baz qux",
    ),
    (
        "{{ x|indent }}|{{ x|indent(2, true) }}|{{ x|indent('> ', blank=true) }}|{{ x|indent(first=true) }}",
        r#""a\n\nb\n""#,
        "a\n\n    b\n|  a\n\n  b\n|a\n> \n> b\n> |    a\n\n    b\n",
    ),
    ("{{ x|center(11) }}|{{ x|center(4) }}|{{ x|center(2) }}|", r#""abc""#, "    abc    |abc |abc|"),
    (
        "{{ x|wordwrap(8) }}|{{ x|wordwrap(5, wrapstring='/') }}|{{ x|wordwrap(5, false) }}",
        r#""the quick brownish fox\njumps""#,
        "the\nquick\nbrownish\nfox\njumps|the/quick/brown/ish/fox/jumps|the\nquick\nbrownish\nfox\njumps",
    ),
    ("{{ x|striptags }}", r#""<p>a  <b>b</b>\n&lt;c&amp;</p><!-- <d> -->e""#, "a b <c&e"),
    (
        "{{ x|urlencode }} {{ 'a b/c?é'|urlencode }} {{ [['a', 1], ['b c', '/']]|urlencode }}",
        r#"{"a b":"c&d"}"#,
        "a+b=c%26d a%20b/c%3F%C3%A9 a=1&b+c=%2F",
    ),
    (
        r#"{{ x|tojson }} {{ x|tojson(indent=2) }} {{ 'a"é'|tojson }} {{ none|tojson }} {{ true|tojson }} {{ 1.0|tojson }}"#,
        r#"{"a":[1,{"b":null}],"c":[],"d":{}}"#,
        "{\"a\": [1, {\"b\": null}], \"c\": [], \"d\": {}} {\n  \"a\": [\n    1,\n    {\n      \"b\": null\n    }\n  ],\n  \"c\": [],\n  \"d\": {}\n} \"a\\\"é\" null true 1.0",
    ),
    (
        "{{ -x|abs }} {{ (0 - x)|abs }} {{ (0-2.5)|abs }} {{ [1, 2]|first }} {{ 'abc'|first }}{{ 'abc'|last }} {{ 'abc'|reverse }} {{ 'ab'|list }}",
        "3",
        r#"3 3 2.5 1 ac cba ["a", "b"]"#,
    ),
    ("{{ x|pprint }}", r#"{"a":[1,null,true,"it's"]}"#, r#"{'a': [1, None, True, "it's"]}"#),
    ("{{ ' x '|trim ~ '|' ~ '--x-'|trim('-') }}", "0", "x|x"),
    (
        "{{ [1,2,3]|sum(start=10) }} {{ ['a', 'b']|join(1) }} {{ []|sum }} {{ [none, 1]|map('default', 'z', true)|list }}",
        "0",
        r#"16 a1b 0 ["z", 1]"#,
    ),
    ("{{ [{'a':1},{}]|map(attribute='a', default=0)|list }}", "0", "[1, 0]"),
];

#[test]
fn filters() {
    all_render(FILTERS);
}

const METHODS: &[Row] = &[
    (
        "{{ x.upper() }}|{{ x.lower() }}|{{ x.title() }}|{{ x.capitalize() }}|{{ x.strip() }}|{{ x.lstrip() }}|{{ x.rstrip() }}|{{ x.split() }}|{{ x.split(' ') }}|{{ x.split(None, 1) }}|{{ x.split('b', 1) }}",
        r#"" it's a bC b1d ""#,
        r#" IT'S A BC B1D | it's a bc b1d | It'S A Bc B1D | it's a bc b1d |it's a bC b1d|it's a bC b1d | it's a bC b1d|["it's", "a", "bC", "b1d"]|["", "it's", "a", "bC", "b1d", ""]|["it's", "a bC b1d "]|[" it's a ", "C b1d "]"#,
    ),
    (
        "{{ x.rsplit(',', 1) }} {{ x.splitlines() }} {{ x.replace('a', 'o') }} {{ x.replace('a', 'o', 1) }} {{ x.startswith('a') }} {{ x.endswith(('c', 'x')) }} {{ x.find('b') }} {{ x.find('z') }} {{ x.count('a') }} {{ x.index('c') }}",
        r#""a,b,a,c""#,
        r#"["a,b,a", "c"] ["a,b,a,c"] o,b,o,c o,b,a,c True True 2 -1 2 6"#,
    ),
    (
        r"{{ '-'.join(x) }} {{ x.index('b') }} {{ x.count('a') }} {{ 'a\nb\n'.splitlines() }}",
        r#"["a","b"]"#,
        r#"a-b 1 1 ["a", "b"]"#,
    ),
    (
        "{{ '12'.isdigit() }} {{ 'ab'.isalpha() }} {{ 'AB1'.isupper() }} {{ 'ab'.islower() }} {{ ''.isdigit() }} {{ '1'.isupper() }} {{ 'a1'.isalnum() }} {{ '5'.zfill(3) }} {{ '-5'.zfill(4) }} {{ 'abc'.removeprefix('a') }} {{ 'abc'.removesuffix('bc') }} {{ '--a-'.strip('-') }}",
        "0",
        "True True True True False False True 005 -005 bc a a",
    ),
    (
        "{{ x.get('a') }} {{ x.get('z') }} {{ x.get('z', 5) }} {% for k, v in x.items() %}{{ k }}={{ v }};{% endfor %}",
        r#"{"a":1,"b":2}"#,
        "1 None 5 a=1;b=2;",
    ),
];

#[test]
fn methods() {
    all_render(METHODS);
}

const STATEMENTS: &[Row] = &[
    ("{% set a = x + 1 %}{{ a }}{% set a = a * 2 %} {{ a }}", "1", "2 4"),
    ("{% set a, b = x %}{{ b }}{{ a }}{% set c = 1, 2 %}{{ c }}", "[1,2]", "21[1, 2]"),
    (
        "{% set a %}<{{ x }}>{% endset %}{{ a }}{{ a|length }}{% set b | upper %}q{{ x }}{% endset %}{{ b }}",
        r#""v""#,
        "<v>3QV",
    ),
    ("{% set t = 0 %}{% for i in x %}{% set t = t + i %}{{ t }} {% endfor %}{{ t }}", "[1,2,3]", "1 2 3 0"),
    (
        "{% set ns = namespace(t=0) %}{% for i in x %}{% set ns.t = ns.t + i %}{% set ns.last = i %}{% endfor %}{{ ns.t }} {{ ns.last }}",
        "[1,2,3]",
        "6 3",
    ),
    ("{% if x > 2 %}big{% elif x == 2 %}two{% else %}small{% endif %}", "2", "two"),
    ("{%- if x == 1 -%} a {%- endif -%} b {%- if x == 0 -%} c {%- else %} d{% endif %}", "1", "ab d"),
    ("{% if x %}{% set v = 1 %}{% else %}{% set v = 2 %}{% endif %}{{ v }}", "0", "2"),
    (
        "{% for a in x %}{% for b in a if b > 1 %}{{ loop.index }}{{ b }}{{ loop.last }}{% else %}none{% endfor %};{% endfor %}",
        "[[1,2,3],[0]]",
        "12False23True;none;",
    ),
    (
        "{% for a in x %}{{ loop.index }}{{ loop.index0 }}{{ loop.revindex }}{{ loop.revindex0 }}{{ loop.first }}{{ loop.last }}{{ loop.length }}{{ loop.cycle('o', 'e') }}{{ loop.depth }} {{ loop.previtem|default('-') }}{{ loop.nextitem|default('-') }};{% endfor %}",
        r#"["p","q","r"]"#,
        "1032TrueFalse3o1 -q;2121FalseFalse3e1 pr;3210FalseTrue3o1 q-;",
    ),
    (
        "{% for k, v in x.items() %}{{ k }}{{ v }}{% if not loop.last %}, {% endif %}{% endfor %}",
        r#"{"b":1,"a":2}"#,
        "b1, a2",
    ),
    ("{% for i, (a, b) in x %}{{ i }}{{ a }}{{ b }}{% endfor %}", "[[1,[2,3]]]", "123"),
    ("{% for c in x %}{{ c }}.{% endfor %}{% for k in {'q': 1} %}{{ k }}{% endfor %}", r#""hé""#, "h.é.q"),
    (
        "{% for n in range(10) if n is odd %}{% if n == 3 %}{% continue %}{% elif n == 7 %}{% break %}{% endif %}{{ n }}{% endfor %}",
        "0",
        "15",
    ),
    (
        "{% raw %}{{ x }}{% endraw %}{# gone #}{% with a = 1, b = x %}{{ a + b }}{% endwith %}{% filter upper %}abc{{ x }}{% endfilter %}",
        "2",
        "{{ x }}3ABC2",
    ),
    (
        "{% for i in [1,2] %}{% set y = i %}{% if i == 1 %}{% set z = 5 %}{% endif %}{{ y }}{{ z|default('u') }}{% endfor %}",
        "2",
        "152u",
    ),
    ("{% set x = x|default('d') %}{{ x }}{% if false %}{% set x = 3 %}{% endif %}{{ x }}", "2", "22"),
    ("{% if x == 9 %}{% set x = 3 %}{% endif %}{{ x }}", "2", "2"),
    ("{% for x in x %}{{ x }}{% endfor %}{{ x }}", "[1]", "1[1]"),
    (
        "{% for a in [3,1,2]|sort %}{{ a }}{% endfor %}{% for a in x.split(',') %}{{ a|trim }}{% endfor %}{% for a in [x ~ x] %}{{ a }}{% endfor %}",
        r#""p, q""#,
        "123pqp, qp, q",
    ),
    ("  {%- for i in [1] +%}\n a{% endfor %}\n{%- set q = 1 %}\n\nb", "0", "\n a\n\nb"),
    ("Tell {{ x.name }}{{ ' (%s)' % x.age if x.age }}.", r#"{"name":"A","age":3}"#, "Tell A (3)."),
];

#[test]
fn statements() {
    all_render(STATEMENTS);
}
