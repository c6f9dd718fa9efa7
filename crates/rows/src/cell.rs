//! A single value of a column, for callers that read only a few.

use std::fmt;

use crate::column::Column;

/// A value that is not null. Columns of many rows are faster to read through [`Column::as_int`] and the like.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Cell<'a> {
    Int(i64),
    Float(f64),
    Bool(bool),
    Text(&'a str),
}

impl Column {
    /// The value of `row`; `None` if it is null.
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
