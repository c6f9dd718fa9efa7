//! Values of a column as 64-bit numbers, to sort, group and match rows without a look at the kind of the column.

use arrow_array::{Array, BooleanArray};
use arrow_buffer::NullBuffer;

use crate::column::{Column, Text};
use crate::dictionary::Interner;
use crate::key::Key;
use crate::rows::Rows;

/// One number per value of a column. Numbers are equal if and only if the values are; both zeros are one value.
pub struct Numbers<'a> {
    pub(crate) values: Values<'a>,
    pub(crate) nulls: Option<&'a NullBuffer>,
}

pub(crate) enum Values<'a> {
    Ints(&'a [i64]),
    Floats(&'a [f64]),
    Bools(&'a BooleanArray),
    /// The codes of the rows, and the numbers of the codes.
    Texts(&'a [i32], CodeNumbers),
}

impl<'a> Numbers<'a> {
    /// Numbers that match rows by their values. Strings get their number from `interner`, so the numbers of several
    /// rows agree if all are made with the same interner. Rows that are not empty must have the column.
    pub fn matching(rows: &'a Rows, key: Key, interner: &mut Interner) -> Numbers<'a> {
        if key != Key::ID && rows.is_empty() {
            return Numbers { values: Values::Ints(&[]), nulls: None };
        }
        Numbers::of(rows, key, |text| CodeNumbers::interned(text, rows, interner))
    }

    /// Numbers in the order of the values. The rows must have the column.
    pub(crate) fn ordered(rows: &'a Rows, key: Key) -> Numbers<'a> {
        Numbers::of(rows, key, |text| CodeNumbers::ranks(text, rows))
    }

    fn of(rows: &'a Rows, key: Key, texts: impl FnOnce(&'a Text) -> CodeNumbers) -> Numbers<'a> {
        let batch = rows.batch();
        if key == Key::ID {
            return Numbers { values: Values::Ints(batch.ids()), nulls: None };
        }
        let column = batch.column(key).expect("the caller names a column that the rows have");
        let values = match column {
            Column::Int(values) => Values::Ints(values.values()),
            Column::Float(values) => Values::Floats(values.values()),
            Column::Bool(values) => Values::Bools(values),
            Column::Text(text) => Values::Texts(text.codes().values(), texts(text)),
        };
        Numbers { values, nulls: column.nulls().filter(|nulls| nulls.null_count() > 0) }
    }

    /// The number of an active row of the batch; `None` if its value is null.
    pub fn get(&self, row: usize) -> Option<u64> {
        if self.nulls.is_some_and(|nulls| nulls.is_null(row)) {
            return None;
        }
        Some(match &self.values {
            Values::Ints(values) => of_int(values[row]),
            Values::Floats(values) => of_float(values[row]),
            Values::Bools(values) => u64::from(values.value(row)),
            Values::Texts(codes, numbers) => numbers.get(codes[row]),
        })
    }
}

pub(crate) fn of_int(value: i64) -> u64 {
    (value as u64) ^ (1 << 63)
}

/// Positive and negative zero get the same number.
pub(crate) fn of_float(value: f64) -> u64 {
    let bits = (value + 0.0).to_bits();
    bits ^ (((bits as i64 >> 63) as u64) | (1 << 63))
}

/// The number of each string of a dictionary.
pub(crate) enum CodeNumbers {
    /// By code. Codes that no active row has may have any number.
    All(Vec<u32>),
    /// For the codes that active rows use, in ascending order of the code.
    Used(Vec<(i32, u32)>),
}

impl CodeNumbers {
    /// The rank of each string in the sorted order of the strings.
    fn ranks(text: &Text, rows: &Rows) -> CodeNumbers {
        let dictionary = text.dictionary();
        let codes = text.codes();
        let whole = dictionary.len() <= 2 * rows.len();
        let mut used: Vec<i32> = if whole {
            (0..dictionary.len() as i32).collect()
        } else {
            let valid = rows.iter().filter(|row| codes.is_valid(*row));
            valid.map(|row| codes.value(row)).collect()
        };
        used.sort_unstable_by_key(|code| (dictionary.get(*code), *code));
        used.dedup();
        let mut rank = 0;
        let mut ranked: Vec<(i32, u32)> = Vec::with_capacity(used.len());
        for (at, code) in used.iter().enumerate() {
            rank += u32::from(at > 0 && dictionary.get(used[at - 1]) != dictionary.get(*code));
            ranked.push((*code, rank));
        }
        ranked.sort_unstable();
        if whole {
            CodeNumbers::All(ranked.into_iter().map(|(_, rank)| rank).collect())
        } else {
            CodeNumbers::Used(ranked)
        }
    }

    /// The code of each string in `interner`. A string of the dictionary is looked up at most once.
    fn interned(text: &Text, rows: &Rows, interner: &mut Interner) -> CodeNumbers {
        const UNKNOWN: u32 = u32::MAX;
        let codes = text.codes();
        let dictionary = text.dictionary();
        let mut numbers = vec![UNKNOWN; dictionary.len()];
        for row in rows.iter().filter(|row| codes.is_valid(*row)) {
            let code = codes.value(row);
            let number = &mut numbers[code as usize];
            if *number == UNKNOWN {
                *number = interner.intern(dictionary.get(code)) as u32;
            }
        }
        CodeNumbers::All(numbers)
    }

    pub(crate) fn get(&self, code: i32) -> u64 {
        u64::from(match self {
            CodeNumbers::All(numbers) => numbers[code as usize],
            CodeNumbers::Used(numbers) => {
                let at = numbers.binary_search_by_key(&code, |(code, _)| *code);
                numbers[at.expect("every code of an active row has a number")].1
            }
        })
    }
}
