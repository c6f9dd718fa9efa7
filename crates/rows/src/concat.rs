//! Concatenation: the rows of several batches in one.

use arrow_array::types::{ArrowPrimitiveType, Int32Type};
use arrow_array::{Array, BooleanArray, Int32Array, PrimitiveArray};
use arrow_buffer::{BooleanBufferBuilder, NullBuffer, NullBufferBuilder};

use crate::batch::Batch;
use crate::column::{Column, Text};
use crate::dictionary::{Dictionary, Interner};
use crate::key::{Key, Kind};
use crate::rows::{Rows, Selection};

impl Rows {
    /// Copies the active rows of all parts, in order, to one new batch. The same part may be given twice.
    ///
    /// The result has every column that any part has; rows of parts without it are null there. A key must have the
    /// same kind in all parts.
    pub fn concat(parts: &[&Rows]) -> Rows {
        if let [only] = parts {
            return only.compact();
        }
        let len = parts.iter().map(|part| part.len()).sum();
        let mut ids: Vec<i64> = Vec::with_capacity(len);
        for part in parts {
            match part.selection() {
                Selection::First(count) => ids.extend_from_slice(&part.batch().ids()[..*count]),
                Selection::List(_) => ids.extend(part.ids()),
            }
        }
        let mut keys: Vec<(Key, Kind)> = Vec::new();
        for (key, column) in parts.iter().flat_map(|part| part.batch().columns()) {
            match keys.binary_search_by_key(key, |(key, _)| *key) {
                Ok(at) => {
                    assert_eq!(keys[at].1, column.kind(), "key {key} must have the same kind in all parts");
                }
                Err(at) => keys.insert(at, (*key, column.kind())),
            }
        }
        let columns = keys.iter().map(|(key, kind)| (*key, concat_column(parts, *key, *kind, len)));
        Rows::new(Batch::with_columns(ids, columns.collect()))
    }
}

fn concat_column(parts: &[&Rows], key: Key, kind: Kind, len: usize) -> Column {
    let pieces = || parts.iter().map(|part| (*part, part.batch().column(key)));
    match kind {
        Kind::Int => Column::Int(concat_values(
            pieces().map(|(rows, column)| (rows, column.map(|column| column.as_int().expect(ONE_KIND)))),
            len,
        )),
        Kind::Float => Column::Float(concat_values(
            pieces().map(|(rows, column)| (rows, column.map(|column| column.as_float().expect(ONE_KIND)))),
            len,
        )),
        Kind::Bool => {
            let mut values = BooleanBufferBuilder::new(len);
            for (rows, column) in pieces() {
                match column.map(|column| column.as_bool().expect(ONE_KIND)) {
                    Some(array) => rows.iter().for_each(|row| values.append(array.value(row))),
                    None => values.append_n(rows.len(), false),
                }
            }
            let nulls = concat_nulls(pieces().map(|(rows, column)| (rows, column.map(Column::nulls))), len);
            Column::Bool(BooleanArray::new(values.finish(), nulls))
        }
        Kind::Text => concat_texts(
            pieces().map(|(rows, column)| (rows, column.map(|column| column.as_text().expect(ONE_KIND)))),
            len,
        ),
    }
}

const ONE_KIND: &str = "the kinds were compared above";

fn concat_values<'a, T: ArrowPrimitiveType>(
    pieces: impl Iterator<Item = (&'a Rows, Option<&'a PrimitiveArray<T>>)> + Clone,
    len: usize,
) -> PrimitiveArray<T> {
    let mut values: Vec<T::Native> = Vec::with_capacity(len);
    for (rows, array) in pieces.clone() {
        match array {
            Some(array) => extend(&mut values, rows, array.values()),
            None => values.resize(values.len() + rows.len(), T::Native::default()),
        }
    }
    let nulls = concat_nulls(pieces.map(|(rows, array)| (rows, array.map(Array::nulls))), len);
    PrimitiveArray::new(values.into(), nulls)
}

fn extend<T: Copy>(values: &mut Vec<T>, rows: &Rows, from: &[T]) {
    match rows.selection() {
        Selection::First(count) => values.extend_from_slice(&from[..*count]),
        Selection::List(list) => values.extend(list.iter().map(|row| from[*row as usize])),
    }
}

/// A part without the column contributes nulls; a column without a null buffer contributes none.
fn concat_nulls<'a>(
    pieces: impl Iterator<Item = (&'a Rows, Option<Option<&'a NullBuffer>>)>,
    len: usize,
) -> Option<NullBuffer> {
    let mut valid = NullBufferBuilder::new(len);
    for (rows, nulls) in pieces {
        match nulls {
            None => valid.append_n_nulls(rows.len()),
            Some(None) => valid.append_n_non_nulls(rows.len()),
            Some(Some(nulls)) => rows.iter().for_each(|row| valid.append(nulls.is_valid(row))),
        }
    }
    valid.finish()
}

/// Keeps the dictionary if all parts have equal ones. Otherwise merges them: the entries of the first dictionary in
/// order, then the new entries of the next.
fn concat_texts<'a>(
    pieces: impl Iterator<Item = (&'a Rows, Option<&'a Text>)> + Clone,
    len: usize,
) -> Column {
    let mut dictionaries = pieces.clone().filter_map(|(_, text)| text).map(Text::dictionary);
    let first = dictionaries.next().expect("the key comes from a part that has the column");
    if dictionaries.all(|other| other == first) {
        let codes = pieces.map(|(rows, text)| (rows, text.map(Text::codes)));
        return Column::Text(Text::new(concat_values(codes, len), first.clone()));
    }
    let mut interner = Interner::default();
    let mut codes: Vec<i32> = Vec::with_capacity(len);
    for (rows, text) in pieces.clone() {
        match text {
            Some(text) => recode(&mut codes, rows, text, &mut interner),
            None => codes.resize(codes.len() + rows.len(), 0),
        }
    }
    let nulls = concat_nulls(pieces.map(|(rows, text)| (rows, text.map(|text| text.codes().nulls()))), len);
    let codes: PrimitiveArray<Int32Type> = Int32Array::new(codes.into(), nulls);
    Column::Text(Text::new(codes, interner.finish()))
}

fn recode(codes: &mut Vec<i32>, rows: &Rows, text: &Text, interner: &mut Interner) {
    let dictionary: &Dictionary = text.dictionary();
    // A dictionary that a whole store shares may be far larger than these rows: take only the entries they use.
    if dictionary.len() > 4 * rows.len() + 64 {
        codes.extend(rows.iter().map(|row| text.get(row).map_or(0, |entry| interner.intern(entry))));
        return;
    }
    let merged: Vec<i32> = dictionary.iter().map(|entry| interner.intern(entry)).collect();
    let old = text.codes();
    codes.extend(rows.iter().map(|row| if old.is_valid(row) { merged[old.value(row) as usize] } else { 0 }));
}
