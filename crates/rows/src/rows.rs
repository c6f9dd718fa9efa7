//! A batch and which of its rows are active, in which order.

use std::sync::Arc;

use arrow_buffer::ScalarBuffer;

use crate::batch::Batch;
use crate::column::Column;
use crate::key::Key;

/// The active rows of a batch, in order. Cloning shares the memory.
#[derive(Clone, Debug)]
pub struct Rows {
    batch: Arc<Batch>,
    active: Active,
}

/// Which rows of a batch are active.
#[derive(Clone, Debug)]
pub enum Active {
    /// The first so many, in their order.
    First(usize),
    /// These, in this order; none twice.
    List(ScalarBuffer<u32>),
}

impl Rows {
    /// All rows of `batch`.
    pub fn new(batch: Batch) -> Rows {
        let active = Active::First(batch.len());
        Rows { batch: Arc::new(batch), active }
    }

    /// No rows, no columns.
    pub fn none() -> Rows {
        Rows::new(Batch::new(Vec::new()))
    }

    /// The same batch with these rows active, in this order.
    #[must_use]
    pub fn with_active(&self, list: impl Into<ScalarBuffer<u32>>) -> Rows {
        let list = list.into();
        debug_assert!(list.iter().all(|row| (*row as usize) < self.batch.len()), "active rows are rows");
        Rows { batch: Arc::clone(&self.batch), active: Active::List(list) }
    }

    /// The same rows active, of a batch with the same rows.
    #[must_use]
    pub fn with_batch(&self, batch: Batch) -> Rows {
        assert_eq!(batch.len(), self.batch.len(), "the same rows");
        Rows { batch: Arc::new(batch), active: self.active.clone() }
    }

    /// The same rows with one more, or another, column.
    #[must_use]
    pub fn with(&self, key: Key, column: Column) -> Rows {
        self.with_batch(self.batch.with(key, column))
    }

    /// The first `count` active rows, or all if there are fewer.
    #[must_use]
    pub fn first(&self, count: usize) -> Rows {
        let count = count.min(self.len());
        let active = match &self.active {
            Active::First(_) => Active::First(count),
            Active::List(list) => Active::List(list.slice(0, count)),
        };
        Rows { batch: Arc::clone(&self.batch), active }
    }

    /// The batch behind them.
    pub fn batch(&self) -> &Arc<Batch> {
        &self.batch
    }

    /// Which rows of the batch are active.
    pub fn active(&self) -> &Active {
        &self.active
    }

    /// How many rows are active.
    pub fn len(&self) -> usize {
        match &self.active {
            Active::First(count) => *count,
            Active::List(list) => list.len(),
        }
    }

    /// Whether no row is active.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether every row of the batch is active, in its order.
    pub fn is_dense(&self) -> bool {
        matches!(self.active, Active::First(count) if count == self.batch.len())
    }

    /// The batch's row behind the active row at `position`.
    #[inline]
    pub fn row(&self, position: usize) -> usize {
        match &self.active {
            Active::First(count) => {
                debug_assert!(position < *count);
                position
            }
            Active::List(list) => list[position] as usize,
        }
    }

    /// The batch's rows that are active, in order.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = usize> + ExactSizeIterator + Clone + '_ {
        (0..self.len()).map(|position| self.row(position))
    }

    /// The ids of the active rows, in order.
    pub fn ids(&self) -> impl DoubleEndedIterator<Item = i64> + ExactSizeIterator + Clone + '_ {
        let ids = self.batch.ids();
        self.iter().map(move |row| ids[row])
    }
}
