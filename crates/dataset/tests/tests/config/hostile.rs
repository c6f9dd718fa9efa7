//! Files that are meant to take for ever.

use std::fmt::Write as _;

use anabranch_dataset::Config;
use anabranch_dataset::config::Setting;
use expect_test::expect;

use super::parse;

fn first_error(text: &str) -> String {
    parse(text).expect_err("a problem").errors[0].to_string()
}

#[test]
fn large_files_and_many_columns_are_refused() {
    expect!["data.yaml:1:1: the file has 10 MiB, more than 8 MiB (split it, or keep large values elsewhere)"]
        .assert_eq(&first_error(&" ".repeat(10 << 20)));
    let column = "- {name: a, column_type: sampler, sampler_type: uuid}\n";
    expect!["data.yaml:2:3: there are 2000 columns, more than 1000 (split the dataset, or gather values in columns of type `llm-structured`)"].assert_eq(&first_error(&format!("columns:\n{}", column.repeat(2_000))));
    expect!["data.yaml:1:265: recursion limit exceeded"]
        .assert_eq(&first_error(&format!("columns: {}", "[".repeat(50_000))));
}

#[test]
fn many_problems_are_told_soon() {
    let mut text = "columns:\n".to_owned();
    for number in 0..1_000 {
        let names: Vec<String> = (0..5).map(|name| format!("{{{{ name_{number}_{name} }}}}")).collect();
        let _ =
            writeln!(text, "  - {{name: c{number}, column_type: expression, expr: '{}'}}", names.join(" "));
    }
    let problems = parse(&text).unwrap_err();
    assert_eq!(problems.errors.len(), 101);
    expect!["data.yaml: and 4900 more problems"].assert_eq(&problems.errors[100].to_string());
}

#[test]
fn long_lists_and_long_lines_take_bounded_time() {
    let values = vec!["v"; 20_000].join(", ");
    let keys: Vec<String> = (0..5_000).map(|key| format!("k{key}: [x]")).collect();
    let text = format!(
        "columns: [{{name: a, column_type: sampler, sampler_type: category, params: {{values: [{values}]}}}}, \
         {{name: b, column_type: sampler, sampler_type: subcategory, params: {{category: a, values: {{{}}}}}}}]\n",
        keys.join(", ")
    );
    let problems = parse(&text).unwrap_err();
    assert_eq!(problems.errors.len(), 2, "{problems}");
}

#[test]
fn a_thousand_columns_in_a_cycle_are_one_problem() {
    let mut text = "columns:\n".to_owned();
    for number in 0..1_000 {
        let next = (number + 1) % 1_000;
        let _ = writeln!(text, "  - {{name: c{number}, column_type: expression, expr: '{{{{ c{next} }}}}'}}");
    }
    let problems = parse(&text).unwrap_err();
    assert_eq!(problems.errors.len(), 1, "{problems}");
}

#[test]
fn odd_texts_do_not_panic() {
    let base = "columns: [{name: a, column_type: llm-text, prompt: \"x {{ ä }} {b}\\n\", model_alias: m}]";
    for end in (0..base.len()).filter(|end| base.is_char_boundary(*end)) {
        let _ = parse(&base[..end]);
        let _ = Config::parse("x.json", &base[..end], &mut Setting::default());
        let _ = parse(&base[end..]);
    }
    for text in [
        "null",
        "5",
        "columns: null",
        "data_designer: null",
        "columns: {a: 1}",
        "columns: [null]",
        "\u{0}",
        "{}",
    ] {
        assert!(parse(text).is_err(), "{text}");
    }
}
