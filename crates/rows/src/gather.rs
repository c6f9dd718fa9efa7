//! Copies of selected rows of one or several columns, and columns of nulls.

use arrow_array::types::ArrowPrimitiveType;
use arrow_array::{BooleanArray, Int32Array, PrimitiveArray};
use arrow_buffer::{BooleanBuffer, NullBuffer};
use hashbrown::HashMap;

use crate::batch::Batch;
use crate::column::{Column, Text};
use crate::dictionary::{Dictionary, Interner};
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
    pub fn gather_or_null(&self, rows: impl ExactSizeIterator<Item = Option<u32>> + Clone) -> Column {
        if self.is_empty() {
            return Column::all_null(self.kind(), rows.len());
        }
        let valid = |row: Option<u32>| row.is_some_and(|row| !self.is_null(row as usize));
        let all_valid = rows.clone().all(valid);
        let nulls = (!all_valid).then(|| rows.clone().map(valid).collect());
        self.copied(rows.map(|row| row.unwrap_or(0) as usize), nulls)
    }

    /// Copies values of several columns of one kind: the value of each pair of a column's index and a row, in this
    /// order, with null for every `None`. There must be a column.
    #[must_use]
    pub fn gather_from(
        columns: &[&Column],
        rows: impl ExactSizeIterator<Item = Option<(usize, usize)>> + Clone,
    ) -> Column {
        let rows = rows.map(|row| row.map(|(column, row)| (columns[column], row)));
        let valid = |row: Option<(&Column, usize)>| row.is_some_and(|(column, row)| !column.is_null(row));
        let nulls: NullBuffer = rows.clone().map(valid).collect();
        let nulls = (nulls.null_count() > 0).then_some(nulls);
        macro_rules! values {
            ($kind:ident) => {
                rows.map(|row| match row {
                    Some((Column::$kind(values), row)) => values.value(row),
                    _ => Default::default(),
                })
                .collect::<Vec<_>>()
            };
        }
        match columns[0] {
            Column::Int(_) => Column::Int(PrimitiveArray::new(values!(Int).into(), nulls)),
            Column::Float(_) => Column::Float(PrimitiveArray::new(values!(Float).into(), nulls)),
            Column::Bool(_) => Column::Bool(BooleanArray::new(BooleanBuffer::from(values!(Bool)), nulls)),
            Column::Text(text) => Column::Text(gather_texts(text.dictionary(), rows, nulls)),
        }
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

/// Strings of several columns. They keep `shared` if it is the dictionary of all columns, and get a new one otherwise.
fn gather_texts<'a>(
    shared: &Dictionary,
    rows: impl ExactSizeIterator<Item = Option<(&'a Column, usize)>> + Clone,
    nulls: Option<NullBuffer>,
) -> Text {
    let is_shared =
        |column: &Column| matches!(column, Column::Text(text) if text.dictionary().ptr_eq(shared));
    let one = rows.clone().flatten().all(|(column, _)| is_shared(column));
    let mut interner = Interner::default();
    let codes = rows.map(|row| match row {
        Some((Column::Text(text), row)) if one => text.codes().value(row),
        Some((Column::Text(text), row)) => text.get(row).map_or(0, |text| interner.intern(text)),
        _ => 0,
    });
    let codes = Int32Array::new(codes.collect::<Vec<_>>().into(), nulls);
    let dictionary = if one { shared.clone() } else { interner.finish() };
    Text::new(codes, dictionary)
}

impl Text {
    /// The same strings with a dictionary of just those that rows use.
    #[must_use]
    pub fn with_used_entries(self) -> Text {
        let (codes, dictionary) = self.into_parts();
        let (_, codes, nulls) = codes.into_parts();
        let mut codes = Vec::from(codes);
        let mut known: HashMap<i32, i32> = HashMap::with_capacity(codes.len());
        let mut used = Vec::with_capacity(codes.len());
        for (row, code) in codes.iter_mut().enumerate() {
            if nulls.as_ref().is_some_and(|nulls| nulls.is_null(row)) {
                *code = 0;
                continue;
            }
            *code = *known.entry(*code).or_insert_with(|| {
                used.push(*code);
                used.len() as i32 - 1
            });
        }
        let dictionary = Dictionary::new(used.iter().map(|code| dictionary.get(*code)));
        Text::new(Int32Array::new(codes.into(), nulls), dictionary)
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
