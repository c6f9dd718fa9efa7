//! Checks the reference pages in `docs` against the code: every field that a parser reads is in a table, every field of
//! a table is read, and the real parser accepts every example.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::Path;

use anabranch_text::Problems;
use expect_test::expect_file;

use crate::document::Document;
use crate::fields::asked;
use crate::op::{Ops, ParamKind, ParamSpec, Spec};
use crate::project::Project;
use crate::registry::Registries;

const REGISTRY: &str = include_str!("../../../docs/registry.md");
const PROJECT: &str = include_str!("../../../docs/project-file.md");
const PLAN: &str = include_str!("../../../docs/plan-json.md");

/// Field names by place.
type Tables = BTreeMap<String, BTreeSet<String>>;

/// The code blocks of a page whose first line is ` ```LANGUAGE NAME `, by name.
fn examples<'a>(page: &'a str, language: &str) -> Vec<(&'a str, &'a str)> {
    let blocks = page.split("```").skip(1).step_by(2);
    blocks
        .filter_map(|block| {
            let (head, text) = block.split_once('\n')?;
            Some((head.strip_prefix(language)?.trim(), text))
        })
        .collect()
}

/// The tables of a page, by the place before each: `<!-- fields: PLACE -->`.
fn tables(page: &str) -> Tables {
    let mut tables = Tables::new();
    for part in page.split("<!-- fields: ").skip(1) {
        let (place, rest) = part.split_once(" -->\n").expect("a place stands before its table");
        let rows = rest.lines().skip(2).take_while(|line| line.starts_with('|'));
        let name = |row: &str| row.split('`').nth(1).expect("a row begins with a name").to_owned();
        tables.insert(place.to_owned(), rows.map(name).collect());
    }
    tables
}

/// The fields that were read, by place without the names of entries.
fn asked() -> Tables {
    let mut tables = Tables::new();
    for (place, names) in asked::take() {
        let table = tables.entry(general(&place)).or_default();
        table.extend(names.into_iter().map(str::to_owned));
    }
    tables
}

/// A place without the names of entries: ``key `price` `` is `key`.
fn general(place: &str) -> String {
    let segments = place.split(", ").map(|segment| {
        let word = segment.split([' ', '[']).next().unwrap_or_default();
        if word.starts_with("plan.endpoints.") { "plan.endpoints" } else { word }
    });
    segments.collect::<Vec<_>>().join(", ")
}

fn registries() -> Registries {
    let parsed = Registries::parse(examples(REGISTRY, "toml"), None);
    parsed.unwrap_or_else(|problems| panic!("{problems}")).0
}

#[test]
fn the_registry_page_has_every_field() {
    registries();
    let mut found = asked();
    // Files of lists have nothing else at their top, and the shape of payloads is JSON Schema's.
    found.retain(|place, _| {
        let top = place.ends_with(".toml") && place != "validation.toml";
        !top && !place.contains("payload_schema")
    });
    if let Some(top) = found.get_mut("validation.toml") {
        top.retain(|name| !["schema_version", "version"].contains(&name.as_str()));
    }
    // Parsed alone, so that the example can leave them out.
    Registries::parse([("validation.toml", "[patterns]\n[limits]\n[enums]"), ("keys.toml", "")], None).ok();
    for (place, names) in asked().into_iter().filter(|(place, _)| place.starts_with("validation.toml, ")) {
        found.insert(place, names);
    }
    assert_eq!(found, tables(REGISTRY));
}

#[test]
fn the_page_of_the_project_file_has_every_field() {
    let [(_, text)] = examples(PROJECT, "toml")[..] else { panic!("one example") };
    let secret = |_: &str| Some("secret".to_owned());
    Project::parse_with(text, Path::new("anabranch.toml"), &secret)
        .unwrap_or_else(|problems| panic!("{problems}"));
    assert_eq!(asked(), tables(PROJECT));
}

#[test]
fn the_page_of_plan_json_has_every_field() {
    let registries = registries();
    asked::take();
    let [(_, text)] = examples(PLAN, "json")[..] else { panic!("one example") };
    let stale = r#""fallback": {"stale": {"max_age_ms": 60000}}"#;
    for text in [text, &text.replace("\"fallback\": \"empty\"", stale)] {
        let mut problems = Problems::default();
        let read = Document::parse(text, &Ops::builtin(), &registries, &mut problems);
        assert!(read.is_some(), "{problems}");
    }
    let mut found = asked();
    let top = found.remove("").expect("a plan has fields");
    found.insert("plan".to_owned(), top);
    assert_eq!(found, tables(PLAN));
}

/// `UPDATE_EXPECT=1` writes `docs/ops.md` again.
#[test]
fn the_page_of_ops_has_every_op_and_parameter() {
    let mut page = String::from(
        "# Ops\n\n\
         The ops that nodes of a plan may have, with their parameters. A test writes this page from the code;\n\
         `anabranch plan ops` prints the same. In TypeScript an op is a method of the same name, and a\n\
         parameter an option: `out_key` is `outKey`, and expressions stand in place of their ids\n\
         ([typescript.md](typescript.md)). Every op also takes `trace`, a label for timelines.\n\
         [plans.md](plans.md) explains how to choose among them.\n",
    );
    let ops = Ops::builtin();
    for spec in ops.iter().map(|op| op.spec()) {
        describe(&mut page, spec);
    }
    let registries = registries();
    for (_, text) in examples(&page, "json") {
        let node: serde_json::Value = serde_json::from_str(text).expect("an example is JSON");
        let plan = serde_json::json!({
            "schema_version": 1, "plan_name": "example", "outputs": ["example"],
            "nodes": [node, {"node_id": "a", "op": "core::viewer", "inputs": [], "params": {"endpoint": "catalog"}},
                {"node_id": "b", "op": "core::viewer", "inputs": [], "params": {"endpoint": "catalog"}}],
            "expr_table": {"e": {"op": "const_number", "value": 1}},
            "pred_table": {"p": {"op": "const_bool", "value": true}},
        });
        let mut problems = Problems::default();
        Document::parse(&plan.to_string(), &ops, &registries, &mut problems);
        assert!(problems.is_fine(), "{text}: {problems}");
    }
    expect_file!["../../../docs/ops.md"].assert_eq(&page);
}

/// The section of an op: its sentence, its parameters, a node.
fn describe(page: &mut String, spec: &Spec) {
    let inputs = match spec.inputs {
        0 => "no input".to_owned(),
        1 => "1 input".to_owned(),
        count => format!("{count} inputs"),
    };
    writeln!(page, "\n## {} ({inputs})\n\n{}\n", spec.name, spec.doc).expect("a string takes all text");
    if !spec.params.is_empty() {
        page.push_str("| parameter | type | needed | meaning |\n|---|---|---|---|\n");
    }
    for param in spec.params {
        let needed = if param.required { "required" } else { "optional" };
        let doc = param.doc.replace('|', "\\|");
        writeln!(page, "| `{}` | {} | {needed} | {doc} |", param.name, kind(param.kind))
            .expect("a string takes all text");
    }
    let inputs = &["a", "b"][..spec.inputs.min(2)];
    let params: serde_json::Map<String, serde_json::Value> = spec
        .params
        .iter()
        .filter(|param| param.required)
        .map(|param| (param.name.to_owned(), sample(spec, param)))
        .collect();
    let (inputs, params) = (serde_json::json!(inputs), serde_json::Value::Object(params));
    let node =
        format!(r#"{{"node_id": "example", "op": "{}", "inputs": {inputs}, "params": {params}}}"#, spec.name);
    let gap = if spec.params.is_empty() { "" } else { "\n" };
    writeln!(page, "{gap}```json\n{node}\n```").expect("a string takes all text");
}

fn kind(kind: ParamKind) -> String {
    match kind {
        ParamKind::Int(i64::MIN, i64::MAX) => "whole number".to_owned(),
        ParamKind::Int(least, i64::MAX) => format!("whole number from {least}"),
        ParamKind::Int(least, most) => format!("whole number from {least} to {most}"),
        ParamKind::Float => "number".to_owned(),
        ParamKind::Bool => "true or false".to_owned(),
        ParamKind::Text => "string".to_owned(),
        ParamKind::Choice(words) => {
            words.iter().map(|word| format!("`{word}`")).collect::<Vec<_>>().join(", ")
        }
        ParamKind::Key => "key: its name or number".to_owned(),
        ParamKind::SortKeys => "key, or list of keys and of `{\"key\": key, \"order\": order}`".to_owned(),
        ParamKind::Node => "id of a node".to_owned(),
        ParamKind::Nodes => "list of ids of nodes".to_owned(),
        ParamKind::Endpoint(Some(kind)) => format!("{kind} endpoint: its name or id"),
        ParamKind::Endpoint(None) => "endpoint: its name or id".to_owned(),
        ParamKind::Expr => "id in `expr_table`".to_owned(),
        ParamKind::Pred => "id in `pred_table`".to_owned(),
        ParamKind::Json => "JSON".to_owned(),
    }
}

/// A value that a parameter may have.
fn sample(spec: &Spec, param: &ParamSpec) -> serde_json::Value {
    match (param.kind, param.name) {
        (ParamKind::Int(least, _), _) => least.max(10).into(),
        (ParamKind::Float, _) => 0.5.into(),
        (ParamKind::Bool, _) => true.into(),
        (ParamKind::Text, "key") if spec.name == "core::fanout" => "offers:{user_id}".into(),
        (ParamKind::Text, "key") => "product:{id}".into(),
        (ParamKind::Text, _) => "text".into(),
        (ParamKind::Choice(words), _) => words[0].into(),
        (ParamKind::Key, _) => "score".into(),
        (ParamKind::SortKeys, _) => serde_json::json!([{"key": "score", "order": "desc"}, "id"]),
        (ParamKind::Node, _) => "b".into(),
        (ParamKind::Nodes, _) => serde_json::json!(["a", "b"]),
        (ParamKind::Endpoint(_), _) => "catalog".into(),
        (ParamKind::Expr, _) => "e".into(),
        (ParamKind::Pred, _) => "p".into(),
        (ParamKind::Json, _) => serde_json::json!(["price"]),
    }
}
