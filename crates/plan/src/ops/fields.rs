//! Reading fields of rows that are at hand: from the `fields` parameter to columns.

use std::sync::Arc;

use anabranch_rows::{Batch, Column, Key, Kind, Rows};
use anabranch_text::quote;
use serde_json::Value;

use super::columns::{filled, fitted, scattered};
use super::fetch::{then, unexpected};
use crate::call::Call;
use crate::error::OpError;
use crate::op::{Demand, Node, Sources, StartedWork};
use crate::registry::{KeyEntry, KeyKind};
use crate::source::{Data, Field, Pattern, Read, Reader, Reply};
use crate::value::Scalar;

/// The fields that a node reads if their columns are needed.
#[derive(Clone, Default)]
pub(super) struct Fields(Vec<Item>);

#[derive(Clone)]
struct Item {
    field: Field,
    /// The default for a missing value, for keys that are not nullable.
    default: Option<Scalar>,
}

impl Fields {
    /// The fields that a parameter lists: `"country"`, or `{"name": "ctry", "key": "country"}` where the names differ.
    /// Everything wrong is noted.
    pub(super) fn parse(node: &mut Node<'_>, param: &str) -> Fields {
        let mut fields = Fields::default();
        let list = match node.json(param) {
            None => return fields,
            Some(Value::Array(list)) => list,
            Some(_) => {
                node.problem(param, "not a list of fields");
                return fields;
            }
        };
        for (at, item) in list.iter().enumerate() {
            let place = format!("{param}[{at}]");
            let Some((name, key)) = named(node, &place, item) else { continue };
            let Some(entry) = key_entry(node, &place, &key) else { continue };
            if node.writable(&place, entry).is_none() {
                continue;
            }
            if fields.keys().any(|key| key == entry.key) {
                node.problem(&place, format!("key `{}` is listed twice", entry.name));
                continue;
            }
            fields.add(&name, entry);
        }
        fields
    }

    /// The one field that the nodes of rankd read: `country`.
    pub(super) fn country(node: &mut Node<'_>) -> Option<Fields> {
        let Some(entry) = node.registries().keys.named("country") else {
            let help = "register one, or use core::lookup or core::fanout";
            node.problem_with_help("op", "it reads `country`, and there is no key of this name", help);
            return None;
        };
        let KeyKind::Column(_) = entry.kind else {
            node.problem(
                "op",
                "it reads `country`, and the key of this name is a feature bundle, not a column",
            );
            return None;
        };
        let mut fields = Fields::default();
        fields.add("country", entry);
        Some(fields)
    }

    fn add(&mut self, name: &str, entry: &KeyEntry) {
        let KeyKind::Column(kind) = entry.kind else { return };
        let default = if entry.nullable { None } else { entry.default.as_ref() };
        let default = default.and_then(|value| fitted(value, kind));
        let field = Field { name: name.into(), key: entry.key, kind };
        self.0.push(Item { field, default });
        // Nodes that read the same fields share the read, however they list them.
        self.0.sort_by_key(|item| item.field.key);
    }

    pub(super) fn keys(&self) -> impl Iterator<Item = Key> + '_ {
        self.0.iter().map(|item| item.field.key)
    }

    /// The columns they become.
    pub(super) fn columns(&self) -> impl Iterator<Item = (Key, Kind)> + '_ {
        self.0.iter().map(|item| (item.field.key, item.field.kind))
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// A reader of the needed fields, if any.
    pub(super) fn bind(
        mut self,
        pattern: &Pattern,
        endpoint: usize,
        demand: &Demand,
        sources: &mut Sources<'_>,
    ) -> Option<Arc<FieldReader>> {
        self.0.retain(|item| demand.keys.has(item.field.key));
        if self.is_empty() {
            return None;
        }
        let fields = self.0.iter().map(|item| item.field.clone()).collect();
        let reader = sources.reader(endpoint, pattern, &Read::Fields(fields));
        Some(Arc::new(FieldReader { reader, fields: self }))
    }
}

/// The name and the key of a listed field.
fn named(node: &mut Node<'_>, place: &str, item: &Value) -> Option<(String, Value)> {
    match item {
        Value::String(name) => Some((name.clone(), item.clone())),
        Value::Object(members) => {
            if let Some(other) = members.keys().find(|member| !matches!(member.as_str(), "name" | "key")) {
                node.problem(place, format!("unknown member `{other}`; there are `name` and `key`"));
                return None;
            }
            let Some(Value::String(name)) = members.get("name") else {
                node.problem(place, "no `name`, or one that is not a string");
                return None;
            };
            let key = members.get("key").cloned().unwrap_or_else(|| Value::String(name.clone()));
            Some((name.clone(), key))
        }
        _ => {
            node.problem(place, "neither the name of a field nor an object with `name` and `key`");
            None
        }
    }
}

/// The registered keys that a parameter lists, by name or number, each with its place. Problems are reported.
pub(super) fn listed_keys<'a>(node: &mut Node<'a>, param: &str) -> Vec<(String, &'a KeyEntry)> {
    let list = match node.json(param) {
        None => return Vec::new(),
        Some(Value::Array(list)) => list,
        Some(_) => {
            node.problem(param, "must be a list of keys");
            return Vec::new();
        }
    };
    let mut keys: Vec<(String, &KeyEntry)> = Vec::new();
    for (at, item) in list.iter().enumerate() {
        let place = format!("{param}[{at}]");
        let Some(entry) = key_entry(node, &place, item) else { continue };
        match keys.iter().any(|(_, other)| other.key == entry.key) {
            true => node.problem(&place, format!("key `{}` is listed twice", entry.name)),
            false => keys.push((place, entry)),
        }
    }
    keys
}

/// The registered key of a JSON value, by name or number. An unknown key is reported.
pub(super) fn key_entry<'a>(node: &mut Node<'a>, place: &str, key: &Value) -> Option<&'a KeyEntry> {
    let keys = &node.registries().keys;
    let entry = match key {
        Value::String(name) => keys.named(name),
        Value::Number(number) => {
            number.as_u64().and_then(|number| keys.get(Key(u32::try_from(number).ok()?)))
        }
        _ => {
            node.problem(place, "neither the name nor the number of a key");
            return None;
        }
    };
    if entry.is_none() {
        let name = key.as_str().map_or_else(|| key.to_string(), str::to_owned);
        let what = format!("there is no key {}", quote(&name));
        node.unknown(place, what, &name, keys.iter().map(|entry| &*entry.name));
    }
    entry
}

/// The bytes of the texts in a column, each text once, without unused entries of its dictionary.
fn text_bytes(column: &Column) -> u64 {
    let Column::Text(text) = column else { return 0 };
    let dictionary = text.dictionary();
    let mut used = vec![false; dictionary.len()];
    let mut bytes = 0;
    for code in text.codes().iter().flatten() {
        if !std::mem::replace(&mut used[code as usize], true) {
            bytes += dictionary.get(code).len() as u64;
        }
    }
    bytes
}

/// Reads fields of rows and makes them columns.
pub(super) struct FieldReader {
    reader: Reader,
    fields: Fields,
}

impl FieldReader {
    /// `rows` with the columns, after one trip; without a trip if there are no rows.
    pub(super) fn start(self: Arc<FieldReader>, rows: &Rows, call: &Arc<Call>) -> StartedWork {
        let rows = rows.to_extend().into_owned();
        if rows.is_empty() {
            let columns = self.fields.columns().map(|(_, kind)| Column::all_null(kind, 0)).collect();
            return StartedWork::Ready(self.add(&rows, columns));
        }
        // A key and the fields of each row.
        let values = rows.len() * (1 + self.fields.0.len());
        if let Err(over) = call.budget.take_values(values as u64) {
            return StartedWork::Ready(Err(over.into()));
        }
        let fetch = self.reader.read(&rows, call);
        let call = Arc::clone(call);
        then(fetch, move |Reply { data, .. }| {
            StartedWork::Ready(match data {
                Data::Columns(columns) => {
                    match call.budget.take_bytes(columns.iter().map(text_bytes).sum()) {
                        Ok(()) => self.add(&rows, columns),
                        Err(over) => Err(over.into()),
                    }
                }
                Data::Lists(_) => Err(unexpected("columns")),
            })
        })
    }

    fn add(&self, rows: &Rows, columns: Vec<Column>) -> Result<Rows, OpError> {
        let fits =
            |(item, column): (&Item, &Column)| column.kind() == item.field.kind && column.len() == rows.len();
        if columns.len() != self.fields.0.len() || !self.fields.0.iter().zip(&columns).all(fits) {
            return Err(unexpected("a column a field and a value a row"));
        }
        let batch = rows.batch();
        let mut all = Vec::with_capacity(batch.columns().len() + columns.len());
        let kept = |(key, _): &&(Key, Column)| !self.fields.keys().any(|other| other == *key);
        all.extend(batch.columns().iter().filter(kept).cloned());
        for (item, column) in self.fields.0.iter().zip(columns) {
            let column = scattered(column, rows);
            let column = match &item.default {
                Some(default) => filled(&column, rows, default),
                None => column,
            };
            all.push((item.field.key, column));
        }
        Ok(rows.with_batch(Batch::with_columns(batch.ids().clone(), all)))
    }
}
