//! The values of a row group while it is built.

use anabranch_value::Value;

/// The values of a row group: one per (row, column), null until they are filled.
pub(crate) struct RowValues {
    /// The rows' stable numbers.
    pub(crate) ids: Vec<u64>,
    columns: usize,
    /// Row by row.
    values: Vec<Value>,
    /// True for rows that were dropped.
    dropped: Vec<bool>,
    /// Flags for skipped cells, row by row; empty if no column of the dataset can be skipped.
    skipped: Vec<bool>,
}

impl RowValues {
    pub(crate) fn new(ids: Vec<u64>, columns: usize, may_skip: bool) -> RowValues {
        let (rows, cells) = (ids.len(), ids.len() * columns);
        RowValues {
            ids,
            columns,
            values: vec![Value::Null; cells],
            dropped: vec![false; rows],
            skipped: vec![false; if may_skip { cells } else { 0 }],
        }
    }

    pub(crate) fn rows(&self) -> usize {
        self.ids.len()
    }

    pub(crate) fn get(&self, row: usize, column: usize) -> &Value {
        &self.values[row * self.columns + column]
    }

    pub(crate) fn set(&mut self, row: usize, column: usize, value: Value) {
        self.values[row * self.columns + column] = value;
    }

    pub(crate) fn take(&mut self, row: usize, column: usize) -> Value {
        std::mem::take(&mut self.values[row * self.columns + column])
    }

    pub(crate) fn is_skipped(&self, row: usize, column: usize) -> bool {
        !self.skipped.is_empty() && self.skipped[row * self.columns + column]
    }

    pub(crate) fn mark_skipped(&mut self, row: usize, column: usize) {
        self.skipped[row * self.columns + column] = true;
    }

    pub(crate) fn is_dropped(&self, row: usize) -> bool {
        self.dropped[row]
    }

    /// Drops a row; `false` if it was dropped before.
    pub(crate) fn drop_row(&mut self, row: usize) -> bool {
        !std::mem::replace(&mut self.dropped[row], true)
    }

    /// The rows that were not dropped.
    pub(crate) fn kept(&self) -> impl Iterator<Item = usize> {
        (0..self.rows()).filter(|row| !self.dropped[*row])
    }
}
