//! Values as numbers that are equal if and only if the values are: what ops group and match rows by.

use anabranch_rows::{Column, Interner, Key, Rows};
use arrow_array::{Array, BooleanArray};
use arrow_buffer::NullBuffer;

/// The numbers of a column of active rows.
pub(super) struct Numbers<'a> {
    rows: &'a Rows,
    values: Values<'a>,
    nulls: Option<&'a NullBuffer>,
}

enum Values<'a> {
    Ints(&'a [i64]),
    Floats(&'a [f64]),
    Bools(&'a BooleanArray),
    /// By position among the active rows.
    Texts(Vec<i32>),
}

impl<'a> Numbers<'a> {
    /// Those of the column `key`, which the rows have; strings are known by `interner`, so that columns of different
    /// rows can be compared.
    pub(super) fn of(rows: &'a Rows, key: Key, interner: &mut Interner) -> Numbers<'a> {
        let batch = rows.batch();
        if key == Key::ID {
            return Numbers { rows, values: Values::Ints(batch.ids()), nulls: None };
        }
        let Some(column) = batch.column(key) else {
            assert!(rows.is_empty(), "rows have the columns that a node reads, as checked at load");
            return Numbers { rows, values: Values::Ints(&[]), nulls: None };
        };
        let values = match column {
            Column::Int(values) => Values::Ints(values.values()),
            Column::Float(values) => Values::Floats(values.values()),
            Column::Bool(values) => Values::Bools(values),
            Column::Text(text) => Values::Texts(interned(rows, text, interner)),
        };
        Numbers { rows, values, nulls: column.nulls().filter(|nulls| nulls.null_count() > 0) }
    }

    /// The number of the active row at `position`, unless it is null.
    pub(super) fn get(&self, position: usize) -> Option<u64> {
        let row = self.rows.row(position);
        if self.nulls.is_some_and(|nulls| nulls.is_null(row)) {
            return None;
        }
        Some(match &self.values {
            Values::Ints(values) => values[row] as u64,
            // Both zeros are one value.
            Values::Floats(values) => (values[row] + 0.0).to_bits(),
            Values::Bools(values) => u64::from(values.value(row)),
            Values::Texts(codes) => codes[position] as u64,
        })
    }
}

/// The interner's codes of the active rows, each entry of the dictionary looked up at most once.
fn interned(rows: &Rows, text: &anabranch_rows::Text, interner: &mut Interner) -> Vec<i32> {
    const UNKNOWN: i32 = -1;
    let codes = text.codes();
    let dictionary = text.dictionary();
    let mut known = vec![UNKNOWN; dictionary.len()];
    let code = |row: usize| {
        if codes.is_null(row) {
            return UNKNOWN;
        }
        let code = codes.value(row);
        let known = &mut known[code as usize];
        if *known == UNKNOWN {
            *known = interner.intern(dictionary.get(code));
        }
        *known
    };
    rows.iter().map(code).collect()
}
