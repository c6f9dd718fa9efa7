//! Columns of the same rows.

use arrow_buffer::ScalarBuffer;

use crate::column::Column;
use crate::key::Key;

/// An id for each row, and columns by key. Cloning shares the memory.
#[derive(Clone, Debug)]
pub struct Batch {
    ids: ScalarBuffer<i64>,
    /// By ascending key.
    columns: Vec<(Key, Column)>,
}

impl Batch {
    /// A batch of these ids and no other column.
    pub fn new(ids: impl Into<ScalarBuffer<i64>>) -> Batch {
        let ids = ids.into();
        assert!(u32::try_from(ids.len()).is_ok(), "a batch has fewer than 2^32 rows");
        Batch { ids, columns: Vec::new() }
    }

    /// A batch with these columns, in any order, each key once.
    pub fn with_columns(ids: impl Into<ScalarBuffer<i64>>, mut columns: Vec<(Key, Column)>) -> Batch {
        let batch = Batch::new(ids);
        columns.sort_by_key(|(key, _)| *key);
        for (key, column) in &columns {
            batch.check(*key, column);
        }
        debug_assert!(columns.windows(2).all(|pair| pair[0].0 != pair[1].0), "each key once");
        Batch { columns, ..batch }
    }

    /// This batch with one more, or another, column.
    #[must_use]
    pub fn with(&self, key: Key, column: Column) -> Batch {
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
        assert!(key != Key::ID, "ids are not an ordinary column");
        assert_eq!(column.len(), self.len(), "column {key} has a value a row");
    }

    /// How many rows it has, active or not.
    pub fn len(&self) -> usize {
        self.ids.len()
    }

    /// Whether it has no rows.
    pub fn is_empty(&self) -> bool {
        self.ids.is_empty()
    }

    /// The ids of all rows.
    pub fn ids(&self) -> &ScalarBuffer<i64> {
        &self.ids
    }

    /// The column of `key`. The ids are no column.
    pub fn column(&self, key: Key) -> Option<&Column> {
        let at = self.columns.binary_search_by_key(&key, |(key, _)| *key).ok()?;
        Some(&self.columns[at].1)
    }

    /// All columns, by ascending key.
    pub fn columns(&self) -> &[(Key, Column)] {
        &self.columns
    }
}
