//! An immutable table: ids and columns of equal length.

use arrow_buffer::ScalarBuffer;

use crate::column::Column;
use crate::key::Key;

/// One id per row, and columns by key. A clone shares the memory.
#[derive(Clone, Debug)]
pub struct Batch {
    ids: ScalarBuffer<i64>,
    /// By ascending key.
    columns: Vec<(Key, Column)>,
}

impl Batch {
    /// A batch with these ids and no columns.
    pub fn new(ids: impl Into<ScalarBuffer<i64>>) -> Batch {
        let ids = ids.into();
        assert!(u32::try_from(ids.len()).is_ok(), "a batch has at most 2^32 - 1 rows");
        Batch { ids, columns: Vec::new() }
    }

    /// A batch with these columns. They may come in any order; no key may repeat.
    pub fn with_columns(ids: impl Into<ScalarBuffer<i64>>, mut columns: Vec<(Key, Column)>) -> Batch {
        let batch = Batch::new(ids);
        columns.sort_by_key(|(key, _)| *key);
        for (key, column) in &columns {
            batch.check(*key, column);
        }
        debug_assert!(columns.windows(2).all(|pair| pair[0].0 != pair[1].0), "no key repeats");
        Batch { columns, ..batch }
    }

    /// A copy of this batch in which `column` is added, or replaces the column of the same key.
    #[must_use]
    pub fn with_column(&self, key: Key, column: Column) -> Batch {
        self.check(key, &column);
        let mut columns = Vec::with_capacity(self.columns.len() + 1);
        let at = self.columns.partition_point(|(other, _)| *other < key);
        columns.extend_from_slice(&self.columns[..at]);
        columns.push((key, column));
        let replaced = self.columns.get(at).is_some_and(|(other, _)| *other == key);
        columns.extend_from_slice(&self.columns[at + usize::from(replaced)..]);
        Batch { ids: self.ids.clone(), columns }
    }

    fn check(&self, key: Key, column: &Column) {
        assert!(key != Key::ID, "the ids cannot be set as a column");
        assert_eq!(column.len(), self.len(), "column {key} must have one value per row");
    }

    /// The number of rows, active or not.
    pub fn len(&self) -> usize {
        self.ids.len()
    }

    /// True if the batch has no rows.
    pub fn is_empty(&self) -> bool {
        self.ids.is_empty()
    }

    /// The ids of all rows, active or not.
    pub fn ids(&self) -> &ScalarBuffer<i64> {
        &self.ids
    }

    /// The column of `key`; `None` for [`Key::ID`], since the ids are not a column.
    pub fn column(&self, key: Key) -> Option<&Column> {
        let at = self.columns.binary_search_by_key(&key, |(key, _)| *key).ok()?;
        Some(&self.columns[at].1)
    }

    /// All columns, in ascending order of their keys.
    pub fn columns(&self) -> &[(Key, Column)] {
        &self.columns
    }
}
