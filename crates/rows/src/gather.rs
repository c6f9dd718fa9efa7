//! Copies of selected rows, and columns of nulls.

use arrow_array::types::ArrowPrimitiveType;
use arrow_array::{BooleanArray, Int32Array, PrimitiveArray};
use arrow_buffer::{BooleanBuffer, NullBuffer};

use crate::batch::Batch;
use crate::column::{Column, Text};
use crate::dictionary::Dictionary;
use crate::key::Kind;
use crate::rows::{Rows, Selection};

impl Rows {
    /// Copies the active rows to a new batch in which all rows are active. Returns itself if they already are.
    #[must_use]
    pub fn compact(&self) -> Rows {
        if self.is_dense() {
            return self.clone();
        }
        let batch = self.batch();
        let columns = batch.columns().iter();
        Rows::new(match self.selection() {
            Selection::First(count) => {
                let sliced = columns.map(|(key, column)| (*key, column.first(*count)));
                Batch::with_columns(batch.ids().slice(0, *count), sliced.collect())
            }
            Selection::List(list) => {
                let gathered = columns.map(|(key, column)| (*key, column.gather(list)));
                Batch::with_columns(self.ids().collect::<Vec<_>>(), gathered.collect())
            }
        })
    }
}

impl Column {
    /// A column of `len` nulls.
    pub fn all_null(kind: Kind, len: usize) -> Column {
        match kind {
            Kind::Int => Column::Int(PrimitiveArray::new_null(len)),
            Kind::Float => Column::Float(PrimitiveArray::new_null(len)),
            Kind::Bool => Column::Bool(BooleanArray::new_null(len)),
            Kind::Text => Column::Text(Text::new(
                Int32Array::new_null(len),
                Dictionary::new::<&str>(std::iter::empty()),
            )),
        }
    }

    /// The first `count` rows. The result shares the memory.
    #[must_use]
    pub fn first(&self, count: usize) -> Column {
        match self {
            Column::Int(array) => Column::Int(array.slice(0, count)),
            Column::Float(array) => Column::Float(array.slice(0, count)),
            Column::Bool(array) => Column::Bool(array.slice(0, count)),
            Column::Text(text) => {
                Column::Text(Text::new(text.codes().slice(0, count), text.dictionary().clone()))
            }
        }
    }

    /// Copies the values of these rows, in this order. A row may be repeated.
    #[must_use]
    pub fn gather(&self, rows: &[u32]) -> Column {
        let nulls = self.nulls().filter(|nulls| nulls.null_count() > 0);
        let nulls = nulls.map(|nulls| rows.iter().map(|row| nulls.is_valid(*row as usize)).collect());
        self.copied(rows.iter().map(|row| *row as usize), nulls)
    }

    /// Copies the values of these rows, in this order, with null for every `None`.
    #[must_use]
    pub fn gather_or_null(&self, rows: &[Option<u32>]) -> Column {
        if self.is_empty() {
            return Column::all_null(self.kind(), rows.len());
        }
        let valid = rows.iter().map(|row| row.is_some_and(|row| !self.is_null(row as usize)));
        self.copied(rows.iter().map(|row| row.unwrap_or(0) as usize), Some(valid.collect()))
    }

    fn copied(&self, rows: impl ExactSizeIterator<Item = usize>, valid: Option<BooleanBuffer>) -> Column {
        let nulls = valid.map(NullBuffer::new).filter(|nulls| nulls.null_count() > 0);
        match self {
            Column::Int(array) => Column::Int(pick(array, rows, nulls)),
            Column::Float(array) => Column::Float(pick(array, rows, nulls)),
            Column::Bool(array) => {
                Column::Bool(BooleanArray::new(rows.map(|row| array.value(row)).collect(), nulls))
            }
            Column::Text(text) => {
                Column::Text(Text::new(pick(text.codes(), rows, nulls), text.dictionary().clone()))
            }
        }
    }
}

fn pick<T: ArrowPrimitiveType>(
    array: &PrimitiveArray<T>,
    rows: impl ExactSizeIterator<Item = usize>,
    nulls: Option<NullBuffer>,
) -> PrimitiveArray<T> {
    let values = array.values();
    PrimitiveArray::new(rows.map(|row| values[row]).collect(), nulls)
}
