//! The page about expressions: every op stands in its tables, and its examples give what it says.

use std::collections::BTreeSet;

use anabranch_engine::Check;
use anabranch_plan::expr::op_names;
use anabranch_plan::{Scalar, Values};
use serde_json::{Map, Value, json};

use crate::expr_world::{cell, filter, no_params, program, rows};

const PAGE: &str = include_str!("../../../../docs/expressions.md");

/// The rows of the table below a heading: their cells.
fn table(heading: &str) -> Vec<Vec<String>> {
    let (_, part) = PAGE.split_once(&format!("\n## {heading}\n")).expect("the page has this part");
    let part = part.split("\n## ").next().unwrap();
    let rows = part.lines().filter(|line| line.starts_with("| `"));
    let cells =
        |row: &str| row.replace("\\|", "\u{1}").split('|').map(|cell| cell.trim().to_owned()).collect();
    rows.map(cells).collect()
}

/// An example as JSON: bare names are keys, bare values constants.
fn written_out(example: &str) -> Value {
    let mut quoted = example.to_owned();
    for key in ["id", "count", "score", "country", "title", "absent"] {
        for end in [",", "}"] {
            quoted = quoted.replace(
                &format!(": {key}{end}"),
                &format!(": {{\"op\": \"key_ref\", \"key\": \"{key}\"}}{end}"),
            );
        }
    }
    let mut json: Value = serde_json::from_str(&quoted).unwrap_or_else(|error| panic!("{example}: {error}"));
    constants(&mut json);
    json
}

fn constants(json: &mut Value) {
    let Some(fields) = json.as_object_mut() else { return };
    let operands = ["a", "b", "x", "lo", "hi", "then", "else", "lhs"];
    for (name, value) in fields.iter_mut() {
        let op = match value {
            Value::Number(_) => "const_number",
            Value::String(_) => "const_string",
            _ => "",
        };
        if operands.contains(&name.as_str()) && !op.is_empty() {
            *value = Value::Object(Map::from_iter([
                ("op".to_owned(), json!(op)),
                ("value".to_owned(), value.clone()),
            ]));
        } else {
            constants(value);
        }
    }
}

fn params() -> Values {
    let mut params = no_params();
    params[0] = Some(Scalar::Float(0.5));
    params.set_now(1_700_000_000.5);
    params
}

fn example(cells: &[String]) -> (Value, &str) {
    let (example, gives) = (&cells[cells.len() - 3], &cells[cells.len() - 2]);
    (written_out(example.trim_matches('`')), gives)
}

#[test]
fn every_op_is_in_the_tables() {
    let named = |heading: &str| table(heading).into_iter().map(|cells| cells[1].trim_matches('`').to_owned());
    let listed: BTreeSet<String> = named("Expressions").chain(named("Predicates")).collect();
    let known: BTreeSet<String> = op_names().map(str::to_owned).collect();
    assert_eq!(listed, known);
}

#[test]
fn the_examples_of_expressions_give_what_the_page_says() {
    for cells in table("Expressions") {
        let (json, gives) = example(&cells);
        assert_eq!(json["op"], cells[1].trim_matches('`'));
        let program = program(&json).unwrap_or_else(|problems| panic!("{json}: {problems}"));
        let value = program.kind().and_then(|kind| {
            let column = program.column(&rows(), &params(), kind, &Check::never()).unwrap();
            cell(&column, 0)
        });
        assert_eq!(value.map_or("null".to_owned(), |value| value.to_string()), gives, "{json}");
    }
}

#[test]
fn the_examples_of_predicates_give_what_the_page_says() {
    for cells in table("Predicates") {
        let (json, gives) = example(&cells);
        assert_eq!(json["op"], cells[1].trim_matches('`'));
        let filter = filter(&json).unwrap_or_else(|problems| panic!("{json}: {problems}"));
        let holds = filter.select(&rows(), &params(), &Check::never()).unwrap().contains(&0);
        assert_eq!(holds.to_string(), gives, "{json}");
    }
}
