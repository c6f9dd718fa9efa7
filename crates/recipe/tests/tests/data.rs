//! Functions of JSON, CSV, YAML and TOML.

use anabranch_recipe::{Functions, Params};
use anabranch_testkit::Rng;
use bytes::Bytes;

use crate::kit::{given, golden, same_however_cut, shown, texts};
use crate::world::{get, leaf, recipe};

#[test]
fn json() {
    let deep = |depth: usize| [vec![b'['; depth], vec![b']'; depth]].concat();
    golden(&[
        ("json_validate/1.0.0", &[b" {\"a\": [1, 2.50]} "], &[], r#" {\"a\": [1, 2.50]} "#),
        ("json_validate/1.0.0", &[b"{\"a\":1,\"a\":2}"], &[], r#"{\"a\":1,\"a\":2}"#),
        ("json_validate/1.0.0", &[b"[1,]"], &[], "! input 1: not JSON: trailing comma at line 1 column 4"),
        (
            "json_validate/1.0.0",
            &[b"1e999"],
            &[],
            "! input 1: not JSON: number out of range at line 1 column 5",
        ),
        (
            "json_validate/1.0.0",
            &[b"\"\\ud800\""],
            &[],
            "! input 1: not JSON: unexpected end of hex escape at line 1 column 8",
        ),
        (
            "json_validate/1.0.0",
            &[b"\"\xff\""],
            &[],
            "! input 1: not JSON: invalid unicode code point at line 1 column 2",
        ),
        ("json_validate/1.0.0", &[&deep(127)], &[], &format!("{}{}", "[".repeat(127), "]".repeat(127))),
        (
            "json_validate/1.0.0",
            &[&deep(128)],
            &[],
            "! input 1: not JSON: recursion limit exceeded at line 1 column 128",
        ),
        (
            "pretty_json/1.0.0",
            &[b"{\"b\":[1,{}],\"a\":\"\xc3\xa9\"}"],
            &[],
            r#"{\n  \"a\": \"\xc3\xa9\",\n  \"b\": [\n    1,\n    {}\n  ]\n}"#,
        ),
        (
            "minify_json/1.0.0",
            &[b"{ \"b\" : 1e2, \"a\" : 0.1, \"b\": 18446744073709551616 }"],
            &[],
            r#"{\"a\":0.1,\"b\":1.8446744073709552e+19}"#,
        ),
        ("minify_json/1.0.0", &[b"1e2"], &[], "100.0"),
        (
            "minify_json/1.0.0",
            &[b""],
            &[],
            "! input 1: not JSON: EOF while parsing a value at line 1 column 0",
        ),
        ("json_lines/1.0.0", &[b"[1, {\"b\": 2, \"a\": 3}, \"x\"]"], &[], r#"1\n{\"a\":3,\"b\":2}\n\"x\""#),
        ("json_lines/1.0.0", &[b"[]"], &[], ""),
        ("json_lines/1.0.0", &[b"{}"], &[], "! input 1: is not a JSON list"),
        (
            "json_from_lines/1",
            &[b"1\n\n{\"b\": 2, \"a\": 3}\r\n \"x\""],
            &[],
            r#"[1,{\"a\":3,\"b\":2},\"x\"]"#,
        ),
        ("json_from_lines/1", &[b""], &[], "[]"),
        (
            "json_from_lines/1",
            &[b"1\n[2"],
            &[],
            "! input 1: line 2, column 2: not JSON: EOF while parsing a list",
        ),
    ]);
}

#[test]
fn csv() {
    golden(&[
        (
            "csv_to_json/1.0.0",
            &[b"\xef\xbb\xbfname,age\r\n\"O\"\"Neil, A\",3\n\n\xc3\xa9,\n"],
            &[],
            r#"[\n  {\n    \"age\": \"3\",\n    \"name\": \"O\\\"Neil, A\"\n  },\n  {\n    \"age\": \"\",\n    \"name\": \"\xc3\xa9\"\n  }\n]"#,
        ),
        ("csv_to_json/1.0.0", &[b""], &[], "[]"),
        ("csv_to_json/1.0.0", &[b"a,b"], &[], "[]"),
        (
            "csv_to_json/1.0.0",
            &[b"a,b\n1,2\n\n3\n"],
            &[],
            "! input 1: the record that ends in line 4 has 1 fields; the header has 2",
        ),
        (
            "csv_to_json/1.0.0",
            &[b"a,a\n1,2\n"],
            &[],
            "! input 1: the header has \"a\" twice; a name must be there once",
        ),
        (
            "csv_to_json/1.0.0",
            &[b"a,b\n\xc3,\xa9\n"],
            &[],
            "! input 1: the record that ends in line 2 is not UTF-8",
        ),
        ("csv_select/1", &[b"a,b,c\n1,\"x,y\",3\n"], &[("columns", "c, b")], r#"c,b\n3,\"x,y\"\n"#),
        ("csv_select/1", &[b"a,b\n,2\n"], &[("columns", "a")], r#"a\n\"\"\n"#),
        ("csv_select/1", &[b"a,b\n"], &[("columns", "z")], "! input 1: has no column \"z\"; it has \"a, b\""),
        ("csv_select/1", &[b""], &[("columns", "z")], "! input 1: is empty, so it has no header"),
        (
            "json_to_csv/1.0.0",
            &[b"[{\"b\":1,\"a\":\"x\"},{\"c\":[1,\"q\"],\"a\":null}]"],
            &[],
            r#"a,b,c\nx,1,\nnull,,\"[1,\"\"q\"\"]\"\n"#,
        ),
        ("json_to_csv/1.0.0", &[b"[]"], &[], ""),
        ("json_to_csv/1.0.0", &[b"[{}]"], &[], r#"\"\"\n\"\"\n"#),
        ("json_to_csv/1.0.0", &[b"[{},1]"], &[], "! input 1: element 1 of the list is not an object"),
        ("json_to_csv/1.0.0", &[b"{}"], &[], "! input 1: is not a JSON list of objects"),
    ]);
}

#[test]
fn yaml() {
    golden(&[
        ("yaml_to_json/1.0.0", &[b"z: [1, 0x1F, 1.5, true, yes, ~, 'q']\na: {b: \"c\"}\n1: x\n"], &[], r#"{\"z\":[1,31,1.5,true,\"yes\",null,\"q\"],\"a\":{\"b\":\"c\"},\"1\":\"x\"}"#),
        ("yaml_to_json/1.0.0", &[b""], &[], "null"),
        ("yaml_to_json/1.0.0", &[b"- a\n- - b\n  - |\n    c\n    d\n"], &[], r#"[\"a\",[\"b\",\"c\\nd\\n\"]]"#),
        ("yaml_to_json/1.0.0", &[b"base: &b {x: 1, y: 2}\nmore:\n  <<: *b\n  y: 3\n"], &[], r#"{\"base\":{\"x\":1,\"y\":2},\"more\":{\"y\":3,\"x\":1}}"#),
        ("yaml_to_json/1.0.0", &[b"a: 1\na: 2\n"], &[], "! input 1: not YAML: duplicate mapping key: a not allowed here at line 2, column 1"),
        ("yaml_to_json/1.0.0", &[b"a: .nan\n"], &[], "! input 1: not YAML: value `.nan` is not a finite number at line 1, column 4"),
        ("yaml_to_json/1.0.0", &[b"a: !mine 1\n"], &[], "! input 1: not YAML: unsupported tag `!mine` at line 1, column 10"),
        ("yaml_to_json/1.0.0", &[b"a: 1\n---\nb: 2\n"], &[], "! input 1: not YAML: only single YAML document expected but multiple found at line 3, column 1"),
        ("yaml_to_json/1.0.0", &[b"a: [1\n"], &[], "! input 1: not YAML: unclosed bracket '[' at line 1, column 4"),
        ("yaml_to_json/1.0.0", &[b"a: 18446744073709551616\n"], &[], r#"{\"a\":1.8446744073709552e+19}"#),
        ("yaml_to_json/1.0.0", &[b"~: 1\n"], &[], "! input 1: not YAML: null is not allowed here at line 1, column 1"),
        ("json_to_yaml/2.0.0", &[b"{\"b\":{\"c\":[1,[2,3],{\"d\":null,\"e\":\"yes\"}],\"f\":[]},\"a\":\"plain words\",\"1\":\"x: y\",\"g\":{}}"], &[], r#"\"1\": \"x: y\"\na: plain words\nb:\n  c:\n  - 1\n  - - 2\n    - 3\n  - d: null\n    e: \"yes\"\n  f: []\ng: {}\n"#),
        ("json_to_yaml/2.0.0", &[b"\"\""], &[], r#"\"\"\n"#),
        ("json_to_yaml/2.0.0", &[b"[]"], &[], r"[]\n"),
    ]);
}

#[test]
fn a_yaml_anchor_may_have_many_aliases() {
    let text = format!("- &a {{b: 1}}\n{}", "- *a\n".repeat(300));
    let json = given(&Functions::builtin(), "yaml_to_json/1.0.0", &[vec![text.into()]], &Params::new());
    assert_eq!(json.unwrap(), format!("[{}]", [r#"{"b":1}"#; 301].join(",")).as_bytes());
}

#[test]
fn yaml_that_repeats_itself_has_bounds() {
    let laughs = (1..9).fold("a0: &a0 [x, x, x, x, x, x, x, x, x]\n".to_owned(), |text, level| {
        let inner = vec![format!("*a{}", level - 1); 9].join(", ");
        text + &format!("a{level}: &a{level} [{inner}]\n")
    });
    let long = format!("- &a {}\n", "x".repeat(4 << 20)) + &"- *a\n".repeat(90);
    let wide = format!("- &a {}\n", "x".repeat(1 << 20)) + &"- &b y\n".repeat(2000) + &"- *a\n".repeat(9000);
    for text in [laughs, long, wide] {
        let given = given(&Functions::builtin(), "yaml_to_json/1.0.0", &[vec![text.into()]], &Params::new());
        assert!(shown(&given).starts_with("! input 1: not YAML: "), "{:.200}", shown(&given));
    }
}

#[test]
fn toml() {
    golden(&[
        (
            "toml_to_json/1.0.0",
            &[b"b = 1\n[a]\nx = [1.5, true]\n"],
            &[],
            r#"{\"a\":{\"x\":[1.5,true]},\"b\":1}"#,
        ),
        ("toml_to_json/1.0.0", &[b""], &[], "{}"),
        (
            "toml_to_json/1.0.0",
            &[b"[a]\nb = [1979-05-27]"],
            &[],
            "! input 1: at `a.b.0`: a date; toml_to_json/2.0.0 makes a text of it",
        ),
        (
            "toml_to_json/2.0.0",
            &[b"a = 1979-05-27T07:32:00Z\nb = 07:32:00\n"],
            &[],
            r#"{\"a\":\"1979-05-27T07:32:00Z\",\"b\":\"07:32:00\"}"#,
        ),
        ("toml_to_json/2.0.0", &[b"a = nan"], &[], "! input 1: at `a`: JSON has no `nan` and no `inf`"),
        ("toml_to_json/2.0.0", &[b"a = 1\na = 2\n"], &[], "! input 1: not TOML, in line 2: duplicate key"),
        (
            "json_to_toml/1.0.0",
            &[b"{\"b\":{\"c\":1},\"a\":[1,\"x\"],\"z\":1.0,\"t\":[{\"q\":true}]}"],
            &[],
            r#"a = [1, \"x\"]\nz = 1.0\n\n[b]\nc = 1\n\n[[t]]\nq = true\n"#,
        ),
        ("json_to_toml/1.0.0", &[b"{}"], &[], ""),
        (
            "json_to_toml/1.0.0",
            &[b"{\"a\":[{\"b\":null}]}"],
            &[],
            "! input 1: at `a.0.b`: null; TOML has none",
        ),
        (
            "json_to_toml/1.0.0",
            &[b"{\"a\":9223372036854775808}"],
            &[],
            "! input 1: at `a`: an integer beyond 64 bits with a sign",
        ),
        (
            "json_to_toml/1.0.0",
            &[b"{\"a\":{\"$__toml_private_datetime\":\"1979-05-27\"}}"],
            &[],
            r#"[a]\n\"$__toml_private_datetime\" = \"1979-05-27\"\n"#,
        ),
        ("json_to_toml/1.0.0", &[b"[]"], &[], "! input 1: is not a JSON object"),
    ]);
}

#[test]
fn selections() {
    let json: &[u8] = b"{\"users\":[{\"name\":\"Ann\",\"a/b\":1},{\"name\":\"Bob\"}]}";
    golden(&[
        ("json_select/1", &[json], &[("path", "/users/1")], r#"{\"name\":\"Bob\"}"#),
        ("json_select/1", &[json], &[("path", "users[0].name")], r#"\"Ann\""#),
        ("json_select/1", &[json], &[("path", "users[0].name"), ("as", "text")], "Ann"),
        ("json_select/1", &[json], &[("path", "/users/0/a~1b")], "1"),
        ("json_select/1", &[json], &[("path", "users[0][\"a/b\"]"), ("as", "text")], "1"),
        ("json_select/1", &[b"[1, 2]"], &[("path", "[1]")], "2"),
        ("json_select/1", &[b"[1, 2]"], &[("path", "")], "[1,2]"),
        (
            "json_select/1",
            &[json],
            &[("path", "/users/2")],
            r#"! input 1: at "/users": a list of 2, without index 2"#,
        ),
        (
            "json_select/1",
            &[json],
            &[("path", "users[0].age")],
            r#"! input 1: at "/users/0": an object without "age"; it has "a/b, name""#,
        ),
        (
            "json_select/1",
            &[json],
            &[("path", "users.name")],
            r#"! input 1: at "/users": /name is inside a list, which has indexes"#,
        ),
        (
            "json_select/1",
            &[json],
            &[("path", "/users/01")],
            r#"! input 1: at "/users": "01" is not an index; it is a list"#,
        ),
        (
            "json_select/1",
            &[json],
            &[("path", "users..name")],
            "! parameter `path`: column 7: expected a name, `[index]` or `[\"name\"]`, as in `users[0].name`",
        ),
        (
            "json_select/1",
            &[json],
            &[("path", "users[-1]")],
            "! parameter `path`: column 7: expected a name, `[index]` or `[\"name\"]`, as in `users[0].name`",
        ),
        (
            "json_select/1",
            &[json],
            &[("path", "/a~2")],
            r#"! parameter `path`: "a~2": `~` is written `~0`, and `/` inside a key `~1`"#,
        ),
        (
            "json_select/1",
            &[json],
            &[("path", ""), ("as", "yaml")],
            r#"! parameter `as`: "yaml" is not `json` or `text`"#,
        ),
    ]);
}

#[test]
fn selections_of_other_formats() {
    golden(&[
        ("yaml_select/1", &[b"a:\n- b: 1\n"], &[("path", "a[0].b")], "1"),
        ("toml_select/1", &[b"[a]\nb = 1979-05-27\n"], &[("path", "/a/b"), ("as", "text")], "1979-05-27"),
        ("lines_select/1", &[b"1\r\n2\n3\n4\n5"], &[("lines", "1,3-4,9-")], r"1\r\n3\n4\n"),
        ("lines_select/1", &[b"1\n2\n3"], &[("lines", "2-")], r"2\n3"),
        (
            "lines_select/1",
            &[b"1\n"],
            &[("lines", "3,2")],
            "! parameter `lines`: \"2\" is not after line 3; write the numbers in ascending order",
        ),
        (
            "lines_select/1",
            &[b"1\n"],
            &[("lines", "0")],
            "! parameter `lines`: \"0\" is not a number from 1, or a range as `3-5` or `9-`",
        ),
    ]);
}

/// JSON with what readers of other formats trip over.
fn value(rng: &mut Rng, depth: u64) -> serde_json::Value {
    let words = [
        "",
        "a",
        "yes",
        "No",
        "null",
        "~",
        "1",
        "0x1f",
        "1e3",
        ".5",
        "- a",
        "a: b",
        "a #b",
        " x ",
        "é\u{85}",
        "\u{feff}",
        "x\ny",
        "\"q\"",
        "2020-01-01",
        "<<",
        "=",
        "!a",
        "&a",
        "*a",
        "\t",
        "{",
        "[",
        "%",
        "@",
        "`",
        "|",
        ">",
        "?",
        ":",
        "a b-c/d.e_f",
    ];
    match rng.within(0..if depth == 0 { 5 } else { 8 }) {
        0 => serde_json::Value::Null,
        1 => rng.percent(50).into(),
        2 => (rng.bits() as i64 >> rng.within(0..64)).into(),
        3 => (f64::from(rng.bits() as i32) / 64.0).into(),
        4 => (*rng.choose(&words)).into(),
        5 | 6 => (0..rng.within(0..4)).map(|_| value(rng, depth - 1)).collect::<Vec<_>>().into(),
        _ => {
            let entry = |rng: &mut Rng| {
                (rng.choose(&words).repeat(1 + 800 * usize::from(rng.percent(1))), value(rng, depth - 1))
            };
            serde_json::Value::Object((0..rng.within(0..4)).map(|_| entry(rng)).collect())
        }
    }
}

#[test]
fn json_comes_back_out_of_yaml() {
    let functions = Functions::builtin();
    for seed in 0..2000 {
        let json = Bytes::from(value(&mut Rng::new(seed), 4).to_string());
        let yaml = given(&functions, "json_to_yaml/2.0.0", &[vec![json.clone()]], &Params::new()).unwrap();
        let back = given(&functions, "yaml_to_json/1.0.0", &[vec![yaml.clone().into()]], &Params::new());
        assert_eq!(
            shown(&back),
            shown(&Ok(json.to_vec())),
            "seed {seed}\n{}",
            String::from_utf8_lossy(&yaml)
        );
    }
}

#[test]
fn no_cut_shows() {
    let functions = Functions::builtin();
    let json = |rng: &mut Rng| value(rng, 3).to_string().into_bytes();
    let lines = |rng: &mut Rng| {
        (0..rng.within(0..20)).flat_map(|_| format!("{}\n", value(rng, 2)).into_bytes()).collect()
    };
    let csv = |rng: &mut Rng| {
        let parts =
            ["a", "b", ",", ",", "\n", "\r\n", "\"x\"\"y\"", "\"p,\nq\"", "é", "\"", "1,2\n", "3,4\r\n"];
        let start = *rng.choose(&["", "\u{feff}", "a,b\n", "\u{feff}a,b\n"]);
        (0..rng.within(0..40)).fold(start.to_owned(), |text, _| text + *rng.choose(&parts)).into_bytes()
    };
    let rows: &[(&str, &[(&str, &str)])] = &[
        ("json_validate/1.0.0", &[]),
        ("pretty_json/1.0.0", &[]),
        ("minify_json/1.0.0", &[]),
        ("json_lines/1.0.0", &[]),
        ("json_from_lines/1", &[]),
        ("csv_to_json/1.0.0", &[]),
        ("csv_select/1", &[("columns", "b")]),
        ("json_to_csv/1.0.0", &[]),
        ("yaml_to_json/1.0.0", &[]),
        ("json_to_yaml/2.0.0", &[]),
        ("toml_to_json/2.0.0", &[]),
        ("json_to_toml/1.0.0", &[]),
        ("json_select/1", &[("path", "/0")]),
        ("lines_select/1", &[("lines", "2-3,5-")]),
        ("template/1", &[("template", "{{ inputs }}")]),
    ];
    for (id, params) in rows {
        let function = functions.get(&id.parse().unwrap()).unwrap();
        same_however_cut(function, &texts(params), 0..40, &json);
        same_however_cut(function, &texts(params), 40..80, &lines);
        same_however_cut(function, &texts(params), 80..200, &csv);
    }
}

#[test]
fn output_is_bounded() {
    let functions = Functions::builtin();
    let most = "1000000";
    let check = |id: &str, input: String| {
        assert!(input.len() < 500_000, "{id}: {}", input.len());
        let got = shown(&given(&functions, id, &[vec![input.into()]], &texts(&[("max_bytes", most)])));
        assert_eq!(format!("{got:.100}"), format!("! the output would have more than {most} bytes"), "{id}");
    };
    let names: String = (0..100).map(|name| format!("{name}{},", "x".repeat(1000))).collect();
    check("csv_to_json/1.0.0", format!("{names}z\n") + &(",".repeat(100) + "\n").repeat(12));
    let deep = "[".repeat(127) + &"0,".repeat(5 << 10) + "0" + &"]".repeat(127);
    check("pretty_json/1.0.0", deep.clone());
    check("json_to_yaml/2.0.0", deep);
    let tables: Vec<String> = (0..200).map(|table| format!("\"{table}\":{{}}")).collect();
    check("json_to_toml/1.0.0", format!("{{\"{}\":{{{}}}}}", "k".repeat(10 << 10), tables.join(",")));
    let objects: Vec<String> = (0..2000).map(|key| format!("{{\"{key}\":1}}")).collect();
    check("json_to_csv/1.0.0", format!("[{}]", objects.join(",")));
    let twice = given(&functions, "csv_select/1", &[vec!["a\n1\n".into()]], &texts(&[("columns", "a,a")]));
    assert_eq!(shown(&twice), r#"! parameter `columns`: "a" is there twice"#);
    let too_large = texts(&[("max_bytes", "1073741825")]);
    let refused = given(&functions, "pretty_json/1.0.0", &[vec!["1".into()]], &too_large);
    assert_eq!(
        shown(&refused),
        "! parameter `max_bytes`: \"1073741825\" is not a whole number, 0 to 1073741824"
    );
}

/// Lists and tables around each other: refused before the stack ends.
#[test]
fn depth_is_bounded() {
    let functions = Functions::builtin();
    let deep = 200_000;
    let rows = [
        ("toml_to_json/2.0.0", format!("a = {}{}", "[".repeat(deep), "]".repeat(deep))),
        ("toml_to_json/2.0.0", format!("a = {}1{}", "{a=".repeat(deep), "}".repeat(deep))),
        ("toml_to_json/2.0.0", format!("{}a = 1", "a.".repeat(deep))),
        ("toml_to_json/2.0.0", format!("[{}a]", "a.".repeat(deep))),
        ("toml_to_json/2.0.0", format!("[[{}a]]", "a.".repeat(deep))),
        ("yaml_to_json/1.0.0", "[".repeat(deep) + &"]".repeat(deep)),
        ("yaml_to_json/1.0.0", "- ".repeat(deep)),
        ("yaml_to_json/1.0.0", "? ".repeat(deep)),
        ("json_to_yaml/2.0.0", "[".repeat(deep) + &"]".repeat(deep)),
        ("json_from_lines/1", "[".repeat(deep) + &"]".repeat(deep)),
    ];
    for (id, input) in rows {
        let got = shown(&given(&functions, id, &[vec![input.clone().into()]], &Params::new()));
        assert!(got.starts_with("! input 1: "), "{id} {input:.20}: {got:.200}");
    }
}

/// A usual document of several megabytes fits the memory of a call with the default settings.
#[tokio::test]
async fn toml_of_megabytes_is_read_by_an_executor() {
    let executor = anabranch_recipe::Executor::in_memory(Functions::builtin()).unwrap();
    let package = |at: u32| format!("[package.name-{at}]\nversion = \"1.0.{at}\"\nsource = \"registry\"\n\n");
    let text: String = (0..33_000).map(package).collect();
    assert!(text.len() > 1_900_000);
    let data = leaf(&executor, text).await;
    let json = recipe(&executor, "toml_to_json/2.0.0", &[data]).await;
    let json = get(&executor, json).await.unwrap();
    let json = leaf(&executor, json).await;
    let toml = recipe(&executor, "json_to_toml", &[json]).await;
    assert!(get(&executor, toml).await.unwrap().len() > 1_900_000);
}
