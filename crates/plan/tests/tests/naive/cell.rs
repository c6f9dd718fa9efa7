//! Values of the model, and how they compare.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::fmt;

use serde_json::Value;

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Cell {
    Int(i64),
    Float(f64),
    Bool(bool),
    Text(String),
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Kind {
    Int,
    Float,
    Bool,
    Text,
}

/// An id, and the cells that are not null.
pub(super) type Row = (i64, BTreeMap<u64, Cell>);

/// The kind of a key's values.
pub(super) fn kind_of(key: u64) -> Kind {
    match key {
        1005 => Kind::Bool,
        3000.. => Kind::Text,
        2000.. => Kind::Float,
        _ => Kind::Int,
    }
}

impl Cell {
    /// As a request or an answer has it.
    pub(super) fn json(&self) -> Value {
        match self {
            Cell::Int(value) => Value::from(*value),
            Cell::Float(value) => Value::from(*value),
            Cell::Bool(value) => Value::from(*value),
            Cell::Text(value) => Value::from(value.as_str()),
        }
    }
}

/// As a store keeps it.
impl fmt::Display for Cell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Cell::Int(value) => write!(f, "{value}"),
            Cell::Float(value) => write!(f, "{value}"),
            Cell::Bool(value) => write!(f, "{value}"),
            Cell::Text(value) => f.write_str(value),
        }
    }
}

pub(super) fn cell(row: &Row, key: u64) -> Option<Cell> {
    if key == 1 { Some(Cell::Int(row.0)) } else { row.1.get(&key).cloned() }
}

pub(super) fn set(row: &mut Row, key: u64, cell: Option<Cell>) {
    match cell {
        Some(cell) => row.1.insert(key, cell),
        None => row.1.remove(&key),
    };
}

pub(super) fn float(cell: &Cell) -> f64 {
    match cell {
        Cell::Int(value) => *value as f64,
        Cell::Float(value) => *value,
        other => panic!("{other} is no number"),
    }
}

/// Numbers as what they are, not as the floats next to them.
pub(super) fn compare(a: &Cell, b: &Cell) -> Option<Ordering> {
    match (a, b) {
        (Cell::Int(a), Cell::Int(b)) => Some(a.cmp(b)),
        (Cell::Bool(a), Cell::Bool(b)) => Some(a.cmp(b)),
        (Cell::Text(a), Cell::Text(b)) => Some(a.cmp(b)),
        (Cell::Float(a), Cell::Float(b)) => a.partial_cmp(b),
        (Cell::Int(_), Cell::Float(b)) if b.is_infinite() => 0.0.partial_cmp(b),
        (Cell::Int(a), Cell::Float(b)) if !b.is_nan() => {
            Some(i128::from(*a).cmp(&(b.trunc() as i128)).then(0.0.partial_cmp(&b.fract())?))
        }
        (Cell::Float(_), Cell::Int(_)) => compare(b, a).map(Ordering::reverse),
        _ => None,
    }
}

/// Equal for equal values only.
pub(super) fn name(cell: &Cell) -> String {
    match cell {
        // Both zeros are one.
        Cell::Float(value) => format!("{:?}", Cell::Float(value + 0.0)),
        cell => format!("{cell:?}"),
    }
}
