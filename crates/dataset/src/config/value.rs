//! Parts of the tree as values.

use anabranch_document::{Node, Notes, Table, Tree};
use anabranch_value::{Map, Value};

/// A part of the tree as a value. The parser limits its depth.
pub(super) fn value(node: &Node, notes: &mut Notes<'_>) -> Value {
    match &node.value {
        Tree::Null => Value::Null,
        Tree::Bool(truth) => Value::Bool(*truth),
        Tree::Int(int) => Value::Int(*int),
        Tree::Float(float) | Tree::Big(float) => Value::Float(*float),
        Tree::Text(text) => text.as_str().into(),
        Tree::List(items) => Value::list(items.iter().map(|item| value(item, notes)).collect::<Vec<_>>()),
        Tree::Table(table) => map(table, notes).into(),
        Tree::Other(what) => {
            notes.note(&node.at, format!("a value cannot be {what}"), "write it as text, in quotes");
            Value::Null
        }
    }
}

/// A table as a map.
pub(super) fn map(table: &Table, notes: &mut Notes<'_>) -> Map {
    table.iter().map(|(key, node)| (key.name.as_str().into(), value(node, notes))).collect()
}

/// Text, a number, or true or false, as a value.
pub(super) fn scalar(node: &Node, name: &str, notes: &mut Notes<'_>) -> Option<Value> {
    match node.value {
        Tree::List(_) | Tree::Table(_) | Tree::Other(_) => {
            notes.mismatch(node, name, "text, a number, or true or false", None);
            None
        }
        _ => Some(value(node, notes)),
    }
}

/// The text of a category's value, by which subcategories find it.
pub(super) fn category_text(value: &Value) -> String {
    match value {
        Value::Text(text) => text.to_string(),
        other => other.to_json(),
    }
}
