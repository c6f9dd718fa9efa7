//! Columns in memory, a few bytes per cell.

use anabranch_value::Value;

use super::types::conform;
use crate::column_type::ColumnType;

/// The cells of one column of one file.
#[derive(Debug)]
pub(super) enum Column {
    Bool(Vec<bool>, Nulls),
    Int(Vec<i64>, Nulls),
    Float(Vec<f64>, Nulls),
    Text(Texts),
    /// Values of any shape as JSON text.
    Json(Texts),
}

/// The positions of null cells.
#[derive(Debug, Default)]
pub(super) struct Nulls {
    words: Vec<u64>,
    len: usize,
}

impl Nulls {
    pub(super) fn push(&mut self, null: bool) {
        if self.len.is_multiple_of(64) {
            self.words.push(0);
        }
        if null && let Some(last) = self.words.last_mut() {
            *last |= 1 << (self.len % 64);
        }
        self.len += 1;
    }

    pub(super) fn is_null(&self, row: usize) -> bool {
        self.words[row / 64] >> (row % 64) & 1 == 1
    }

    fn bytes(&self) -> u64 {
        self.words.len() as u64 * 8
    }
}

/// Texts behind each other in one buffer.
#[derive(Debug, Default)]
pub(super) struct Texts {
    buffer: String,
    ends: Vec<usize>,
    nulls: Nulls,
}

impl Texts {
    pub(super) fn push(&mut self, text: Option<&str>) {
        self.buffer.push_str(text.unwrap_or_default());
        self.ends.push(self.buffer.len());
        self.nulls.push(text.is_none());
    }

    pub(super) fn get(&self, row: usize) -> Option<&str> {
        if self.nulls.is_null(row) {
            return None;
        }
        let start = row.checked_sub(1).map_or(0, |before| self.ends[before]);
        Some(&self.buffer[start..self.ends[row]])
    }

    pub(super) fn len(&self) -> usize {
        self.ends.len()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = Option<&str>> {
        (0..self.len()).map(|row| self.get(row))
    }

    pub(super) fn bytes(&self) -> u64 {
        self.buffer.len() as u64 + self.ends.len() as u64 * 8 + self.nulls.bytes()
    }
}

impl Column {
    pub(super) fn bytes(&self) -> u64 {
        match self {
            Column::Bool(cells, nulls) => cells.len() as u64 + nulls.bytes(),
            Column::Int(cells, nulls) => cells.len() as u64 * 8 + nulls.bytes(),
            Column::Float(cells, nulls) => cells.len() as u64 * 8 + nulls.bytes(),
            Column::Text(texts) | Column::Json(texts) => texts.bytes(),
        }
    }

    /// The cell as a value of the seed's type, to which the column was widened.
    pub(super) fn get(&self, row: usize, column_type: &ColumnType) -> Value {
        let value = match self {
            Column::Bool(cells, nulls) if !nulls.is_null(row) => Value::Bool(cells[row]),
            Column::Int(cells, nulls) if !nulls.is_null(row) => Value::Int(cells[row]),
            Column::Float(cells, nulls) if !nulls.is_null(row) => Value::Float(cells[row]),
            Column::Text(texts) => texts.get(row).map_or(Value::Null, Value::from),
            Column::Json(texts) => {
                texts.get(row).map_or(Value::Null, |text| Value::from_json(text).unwrap_or_default())
            }
            _ => Value::Null,
        };
        conform(value, column_type)
    }
}
