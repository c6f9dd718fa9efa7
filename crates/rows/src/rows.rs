//! A batch with a selection of its rows.

use std::borrow::Cow;
use std::ops::Range;
use std::sync::Arc;

use arrow_buffer::ScalarBuffer;

use crate::batch::Batch;
use crate::column::Column;
use crate::key::Key;

/// Batches shorter than this are never sparse: a column of all their rows costs less than the allocations of a copy.
const SHORTEST_SPARSE: usize = 256;

/// A batch and its active rows, in order. A clone shares the memory.
#[derive(Clone, Debug)]
pub struct Rows {
    batch: Arc<Batch>,
    selection: Selection,
}

/// Which rows of a batch are active, and in which order.
#[derive(Clone, Debug)]
pub enum Selection {
    /// The first rows, as many as this number.
    First(usize),
    /// The rows with these indices, in this order. No index repeats.
    List(ScalarBuffer<u32>),
}

impl Rows {
    /// All rows of `batch`, in its order.
    pub fn new(batch: Batch) -> Rows {
        let selection = Selection::First(batch.len());
        Rows { batch: Arc::new(batch), selection }
    }

    /// No rows and no columns.
    pub fn empty() -> Rows {
        Rows::new(Batch::new(Vec::new()))
    }

    /// The same batch with these rows active, in this order. No row may repeat.
    #[must_use]
    pub fn with_active(&self, list: impl Into<ScalarBuffer<u32>>) -> Rows {
        let list = list.into();
        debug_assert!(
            list.iter().all(|row| (*row as usize) < self.batch.len()),
            "an active row must be a row of the batch"
        );
        Rows { batch: Arc::clone(&self.batch), selection: Selection::List(list) }
    }

    /// The same selection of another batch, which must have as many rows.
    #[must_use]
    pub fn with_batch(&self, batch: Batch) -> Rows {
        assert_eq!(batch.len(), self.batch.len(), "the batches must have the same number of rows");
        Rows { batch: Arc::new(batch), selection: self.selection.clone() }
    }

    /// The same rows, where `column` is added or replaces the column of the same key.
    #[must_use]
    pub fn with_column(&self, key: Key, column: Column) -> Rows {
        self.with_batch(self.batch.with_column(key, column))
    }

    /// The first `count` active rows, or all of them if there are fewer.
    #[must_use]
    pub fn first(&self, count: usize) -> Rows {
        let count = count.min(self.len());
        let selection = match &self.selection {
            Selection::First(_) => Selection::First(count),
            Selection::List(list) => Selection::List(list.slice(0, count)),
        };
        Rows { batch: Arc::clone(&self.batch), selection }
    }

    /// The batch that holds the rows.
    pub fn batch(&self) -> &Arc<Batch> {
        &self.batch
    }

    /// Which rows of the batch are active, and in which order.
    pub fn selection(&self) -> &Selection {
        &self.selection
    }

    /// The number of active rows.
    pub fn len(&self) -> usize {
        match &self.selection {
            Selection::First(count) => *count,
            Selection::List(list) => list.len(),
        }
    }

    /// True if no row is active.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// True if all rows of the batch are active, in the batch's order.
    pub fn is_dense(&self) -> bool {
        matches!(self.selection, Selection::First(count) if count == self.batch.len())
    }

    /// True if so few rows are active that copying them costs less than one more column of the whole batch.
    pub fn is_sparse(&self) -> bool {
        self.batch.len() >= SHORTEST_SPARSE && self.copied_values() <= self.batch.len()
    }

    /// The same rows, ready for more columns: compact if they are sparse, otherwise as they are.
    ///
    /// A column has a value for every row of the batch, active or not. After a selective filter or top-k, a compact
    /// copy is therefore cheaper than the first column that is added, and every further column is cheaper still.
    pub fn to_extend(&self) -> Cow<'_, Rows> {
        if self.is_sparse() { Cow::Owned(self.compact()) } else { Cow::Borrowed(self) }
    }

    /// The number of values that are copied or written to add the next column with [`Rows::to_extend`].
    pub fn values_to_extend(&self) -> usize {
        if self.is_sparse() { self.copied_values() } else { self.batch.len() }
    }

    /// The ids, the columns and one more column of the active rows.
    fn copied_values(&self) -> usize {
        self.len() * (self.batch.columns().len() + 2)
    }

    /// The index in the batch of the active row at `position`.
    #[inline]
    pub fn row(&self, position: usize) -> usize {
        match &self.selection {
            Selection::First(count) => {
                debug_assert!(position < *count);
                position
            }
            Selection::List(list) => list[position] as usize,
        }
    }

    /// The indices in the batch of the active rows, in order.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = usize> + ExactSizeIterator + Clone + '_ {
        match &self.selection {
            Selection::First(count) => ActiveRows::First(0..*count),
            Selection::List(list) => ActiveRows::List(list.iter()),
        }
    }

    /// The ids of the active rows, in order.
    pub fn ids(&self) -> impl DoubleEndedIterator<Item = i64> + ExactSizeIterator + Clone + '_ {
        let ids = self.batch.ids();
        self.iter().map(move |row| ids[row])
    }
}

/// The indices of active rows. Loops with `fold` or `for_each` choose between the variants once, not per row.
#[derive(Clone)]
enum ActiveRows<'a> {
    First(Range<usize>),
    List(std::slice::Iter<'a, u32>),
}

impl Iterator for ActiveRows<'_> {
    type Item = usize;

    #[inline]
    fn next(&mut self) -> Option<usize> {
        match self {
            ActiveRows::First(rows) => rows.next(),
            ActiveRows::List(rows) => rows.next().map(|row| *row as usize),
        }
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        match self {
            ActiveRows::First(rows) => rows.size_hint(),
            ActiveRows::List(rows) => rows.size_hint(),
        }
    }

    #[inline]
    fn nth(&mut self, count: usize) -> Option<usize> {
        match self {
            ActiveRows::First(rows) => rows.nth(count),
            ActiveRows::List(rows) => rows.nth(count).map(|row| *row as usize),
        }
    }

    #[inline]
    fn fold<B, F: FnMut(B, usize) -> B>(self, initial: B, mut add: F) -> B {
        match self {
            ActiveRows::First(rows) => rows.fold(initial, add),
            ActiveRows::List(rows) => rows.fold(initial, |sum, row| add(sum, *row as usize)),
        }
    }
}

impl DoubleEndedIterator for ActiveRows<'_> {
    #[inline]
    fn next_back(&mut self) -> Option<usize> {
        match self {
            ActiveRows::First(rows) => rows.next_back(),
            ActiveRows::List(rows) => rows.next_back().map(|row| *row as usize),
        }
    }
}

impl ExactSizeIterator for ActiveRows<'_> {}
