//! One value of a column, for those who look at few.

use std::fmt;

use crate::column::Column;

/// A value that is not null.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Cell<'a> {
    /// An integer.
    Int(i64),
    /// A float.
    Float(f64),
    /// True or false.
    Bool(bool),
    /// A string.
    Text(&'a str),
}

impl Column {
    /// The value of `row`, unless it is null.
    pub fn get(&self, row: usize) -> Option<Cell<'_>> {
        if self.is_null(row) {
            return None;
        }
        Some(match self {
            Column::Int(values) => Cell::Int(values.value(row)),
            Column::Float(values) => Cell::Float(values.value(row)),
            Column::Bool(values) => Cell::Bool(values.value(row)),
            Column::Text(text) => Cell::Text(text.get(row)?),
        })
    }
}

impl fmt::Display for Cell<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Cell::Int(value) => value.fmt(f),
            Cell::Float(value) => value.fmt(f),
            Cell::Bool(value) => value.fmt(f),
            Cell::Text(value) => value.fmt(f),
        }
    }
}
