//! `core::fill`: values for rows that have none.

use anabranch_rows::{Column, Key, Kind};
use serde_json::Value;

use super::columns::{filled, fitted};
use super::fields::key_entry;
use crate::op::{
    Contract, Demand, Effect, Form, Mark, Node, NodePlan, Op, ParamKind, ParamSpec, RowsNeeded, Spec, Takes,
};
use crate::registry::KeyEntry;
use crate::value::Scalar;

pub(super) struct Fill;

static SPEC: Spec = Spec {
    name: "core::fill",
    doc: "Puts a value into columns where an active row has none; makes columns that are missing.",
    inputs: 1,
    params: &[
        ParamSpec::required("keys", ParamKind::Json, "the columns: a list of names or numbers of keys"),
        ParamSpec::optional(
            "value",
            ParamKind::Json,
            "the value; the registered default of each if not given",
        ),
    ],
    writes: Effect::Unknown,
    contract: Contract::SameRows,
    mark: Mark::Auto,
    distinct: false,
};

/// The estimated time per row and column.
const NANOS: f64 = 2.0;

impl Op for Fill {
    fn spec(&self) -> &Spec {
        &SPEC
    }

    fn plan(&self, node: &mut Node<'_>) -> Option<NodePlan> {
        let Some(Value::Array(list)) = node.json("keys") else {
            node.problem("keys", "not a list of keys");
            return None;
        };
        if list.is_empty() {
            node.problem("keys", "there is nothing to fill");
        }
        let mut schema = node.input(0).clone();
        let mut fills: Vec<(Key, Kind, Scalar)> = Vec::new();
        for (at, key) in list.iter().enumerate() {
            let place = format!("keys[{at}]");
            let Some(entry) = key_entry(node, &place, key) else { continue };
            let Some(kind) = node.writable(&place, entry) else { continue };
            schema.add(entry.key, kind);
            if fills.iter().any(|(key, ..)| *key == entry.key) {
                node.problem(&place, format!("key `{}` is listed twice", entry.name));
            } else if let Some(value) = value_for(node, &place, entry, kind) {
                fills.push((entry.key, kind, value));
            }
        }
        // A column is looked at only for those who ask for it, and then it is passed on anyway.
        let takes = [Takes::passing([]).rows(RowsNeeded::AsAsked)];
        Some(NodePlan::new(schema, takes, move |demand: &Demand, _| {
            fills.retain(|(key, ..)| demand.keys.has(*key));
            Form::extend(NANOS * fills.len() as f64, fills.len(), move |rows, _, _| {
                let mut rows = rows.clone();
                for (key, kind, value) in &fills {
                    let missing = || Column::all_null(*kind, rows.batch().len());
                    let column = rows.batch().column(*key).cloned().unwrap_or_else(missing);
                    rows = rows.with_column(*key, filled(&column, &rows, value));
                }
                Ok(rows)
            })
        }))
    }
}

/// The value that fills a column.
fn value_for(node: &mut Node<'_>, place: &str, entry: &KeyEntry, kind: Kind) -> Option<Scalar> {
    let Some(json) = node.json("value") else {
        let default = entry.default.as_ref().and_then(|value| fitted(value, kind));
        if default.is_none() {
            let what = format!("key `{}` has no registered default", entry.name);
            node.problem_with_help(place, what, "give a `value`, or register a default");
        }
        return default;
    };
    let value = match (json, kind) {
        (Value::Number(number), Kind::Int) => number.as_i64().map(Scalar::Int),
        (Value::Number(number), Kind::Float) => number.as_f64().map(Scalar::Float),
        (Value::Bool(value), Kind::Bool) => Some(Scalar::Bool(*value)),
        (Value::String(value), Kind::Text) => Some(Scalar::Text(value.as_str().into())),
        _ => None,
    };
    if value.is_none() {
        node.problem("value", format!("{json} is no {kind}, which key `{}` takes", entry.name));
    }
    value
}
