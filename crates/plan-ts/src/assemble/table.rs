//! Tables of expressions and predicates.

use std::collections::HashMap;

use anabranch_plan::Registries;
use serde_json::{Map, Value, json};

/// The part of a comparison that the user did not write: a value is used as a predicate.
pub(super) const IMPLIED: &str = "implied";

/// `expr_table` or `pred_table`. Equal entries are stored once, so that equal nodes are, too.
pub(super) struct Table {
    prefix: &'static str,
    pub(super) entries: Map<String, Value>,
    ids: HashMap<String, String>,
}

impl Table {
    pub(super) fn new(prefix: &'static str) -> Table {
        Table { prefix, entries: Map::new(), ids: HashMap::new() }
    }

    /// The id of an entry.
    pub(super) fn add(&mut self, entry: Value) -> String {
        let (prefix, next) = (self.prefix, self.ids.len());
        let id = self.ids.entry(entry.to_string()).or_insert_with(|| format!("{prefix}{next}")).clone();
        self.entries.entry(id.as_str()).or_insert(entry);
        id
    }
}

/// Converts an expression or predicate to plan JSON: numbers instead of names, without locations.
pub(super) fn clean(ir: &Value, registries: &Registries) -> Value {
    match ir {
        Value::Object(fields) => {
            let mut out = Map::new();
            for (name, value) in fields {
                match (name.as_str(), value.as_str()) {
                    ("at" | IMPLIED, _) => {}
                    ("key", Some(key)) => match registries.keys.named(key) {
                        Some(entry) => drop(out.insert("key_id".to_owned(), json!(entry.key.0))),
                        None => drop(out.insert("key".to_owned(), json!(key))),
                    },
                    ("param", Some(param)) => match registries.params.named(param) {
                        Some(entry) => drop(out.insert("param_id".to_owned(), json!(entry.id))),
                        None => drop(out.insert("param".to_owned(), json!(param))),
                    },
                    _ => drop(out.insert(name.clone(), clean(value, registries))),
                }
            }
            Value::Object(out)
        }
        Value::Array(items) => items.iter().map(|item| clean(item, registries)).collect(),
        other => other.clone(),
    }
}
