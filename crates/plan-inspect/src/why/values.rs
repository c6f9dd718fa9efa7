//! Values of rows, as data.

use anabranch_rows::{Key, Rows};
use serde_json::Value;

use anabranch_plan::Scalar;
use anabranch_plan::registry::Keys;

/// The value of a column in a row of the batch, unless it is null or not there.
pub(super) fn cell(rows: &Rows, key: Key, row: usize) -> Option<Scalar> {
    if key == Key::ID {
        return Some(Scalar::Int(rows.batch().ids()[row]));
    }
    rows.batch().column(key)?.get(row).map(Scalar::from)
}

/// The value of a column in the active row at a position.
pub(super) fn at(rows: &Rows, key: Key, position: usize) -> Option<Scalar> {
    cell(rows, key, rows.row(position))
}

/// Equal for equal values of a kind only; both zeros are one.
pub(super) fn name(value: &Scalar) -> String {
    match value {
        Scalar::Float(value) => format!("{:?}", value + 0.0),
        Scalar::Int(value) => value.to_string(),
        Scalar::Bool(value) => value.to_string(),
        Scalar::Text(value) => value.to_string(),
    }
}

/// A value as JSON; null if there is none.
pub(super) fn json(value: Option<&Scalar>) -> Value {
    match value {
        None => Value::Null,
        Some(Scalar::Int(value)) => Value::from(*value),
        Some(Scalar::Float(value)) => Value::from(*value),
        Some(Scalar::Bool(value)) => Value::from(*value),
        Some(Scalar::Text(value)) => Value::from(value.to_string()),
    }
}

/// A key's name.
pub(super) fn column(keys: &Keys, key: Key) -> String {
    keys.get(key).map_or_else(|| format!("key {key}"), |entry| entry.name.clone())
}
