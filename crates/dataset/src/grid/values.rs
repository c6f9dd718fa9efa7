//! The values of a row group while it is built.

use std::mem::size_of;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use anabranch_value::Value;

use crate::stop::{StopReason, StopSwitch};

/// The memory of the values of a build's row groups in progress. Clones share the count.
#[derive(Clone)]
pub(crate) struct ValueMemory {
    held: Arc<AtomicUsize>,
    /// The bytes at which the build is stopped.
    most: usize,
    stop: StopSwitch,
}

impl ValueMemory {
    pub(crate) fn new(most: usize, stop: StopSwitch) -> ValueMemory {
        ValueMemory { held: Arc::default(), most, stop }
    }

    fn hold(&self, bytes: usize) {
        if self.held.fetch_add(bytes, Relaxed).saturating_add(bytes) > self.most {
            self.stop.stop(StopReason::Memory { most: self.most });
        }
    }
}

/// A group's part of it, which it gives back when it is dropped.
struct HeldMemory {
    of: ValueMemory,
    bytes: usize,
}

impl Drop for HeldMemory {
    fn drop(&mut self) {
        self.of.held.fetch_sub(self.bytes, Relaxed);
    }
}

/// About the bytes of a value.
fn bytes(value: &Value) -> usize {
    let inside = match value {
        Value::Text(text) => text.len(),
        Value::List(list) => list.iter().map(bytes).sum(),
        Value::Map(map) => map.iter().map(|(name, value)| name.len() + bytes(value)).sum(),
        _ => 0,
    };
    size_of::<Value>() + inside
}

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
    memory: Option<HeldMemory>,
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
            memory: None,
        }
    }

    /// Counts the values that are set from now on.
    pub(crate) fn count_in(&mut self, memory: &ValueMemory) {
        if self.memory.is_none() {
            self.memory = Some(HeldMemory { of: memory.clone(), bytes: 0 });
        }
    }

    pub(crate) fn rows(&self) -> usize {
        self.ids.len()
    }

    pub(crate) fn get(&self, row: usize, column: usize) -> &Value {
        &self.values[row * self.columns + column]
    }

    pub(crate) fn set(&mut self, row: usize, column: usize, value: Value) {
        if let Some(memory) = &mut self.memory {
            let bytes = bytes(&value);
            memory.bytes += bytes;
            memory.of.hold(bytes);
        }
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
