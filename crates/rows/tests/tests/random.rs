//! Random rows, and their values as plain Rust values to compare with.

use anabranch_rows::{Batch, Cell, Column, Dictionary, Key, Rows, Text};
use arrow_array::Int32Array;
use proptest::collection::vec;
use proptest::prelude::*;

pub(crate) const INT: Key = Key(10);
pub(crate) const FLOAT: Key = Key(11);
pub(crate) const BOOL: Key = Key(12);
pub(crate) const TEXT: Key = Key(13);

/// Rows with up to four columns, few distinct values, some nulls, and any selection.
pub(crate) fn rows(max_rows: usize) -> impl Strategy<Value = Rows> {
    (0..=max_rows).prop_flat_map(|len| {
        let not_null = 0.8;
        let float = prop_oneof![
            Just(-0.0),
            Just(0.0),
            (-3..3i32).prop_map(|value| f64::from(value) / 2.0),
            proptest::num::f64::NORMAL,
            Just(f64::INFINITY),
            Just(f64::NEG_INFINITY)
        ];
        (
            vec(prop_oneof![-3..3i64, any::<i64>()], len),
            vec(proptest::option::weighted(not_null, prop_oneof![-3..3i64, any::<i64>()]), len),
            vec(proptest::option::weighted(not_null, float), len),
            vec(proptest::option::weighted(not_null, any::<bool>()), len),
            text(len),
            any::<[bool; 4]>(),
            selection(len),
        )
            .prop_map(|(ids, ints, floats, bools, text, has, selection)| {
                let all = [
                    (INT, Column::ints(ints)),
                    (FLOAT, Column::floats(floats)),
                    (BOOL, Column::bools(bools)),
                    (TEXT, text),
                ];
                let kept = all.into_iter().zip(has).filter_map(|(column, has)| has.then_some(column));
                let rows = Rows::new(Batch::with_columns(ids, kept.collect()));
                match selection {
                    RandomSelection::First(count) => rows.first(count),
                    RandomSelection::List(list) => rows.with_active(list),
                }
            })
    })
}

/// Strings whose dictionary has repeated and unused entries, and is small or has many more entries than there are rows.
fn text(len: usize) -> impl Strategy<Value = Column> {
    let entry = prop_oneof![Just(""), Just("US"), Just("CA"), Just("GB"), Just("Åland"), Just("us")];
    prop_oneof![vec(entry.clone(), 1..6), vec(entry, 100..120)].prop_flat_map(move |entries| {
        let codes = vec(proptest::option::weighted(0.8, 0..entries.len() as i32), len);
        codes.prop_map(move |codes| {
            let codes: Int32Array = codes.into_iter().collect();
            Column::Text(Text::new(codes, Dictionary::new(&entries)))
        })
    })
}

#[derive(Clone, Debug)]
enum RandomSelection {
    First(usize),
    List(Vec<u32>),
}

fn selection(len: usize) -> impl Strategy<Value = RandomSelection> {
    let all: Vec<u32> = (0..len as u32).collect();
    let list = (Just(all).prop_shuffle(), 0..=len).prop_map(|(mut list, count)| {
        list.truncate(count);
        RandomSelection::List(list)
    });
    prop_oneof![(0..=len).prop_map(RandomSelection::First), Just(RandomSelection::First(len)), list]
}

/// A value that owns its text.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Plain {
    Int(i64),
    Float(f64),
    Bool(bool),
    Text(String),
}

pub(crate) fn plain(cell: Cell<'_>) -> Plain {
    match cell {
        Cell::Int(value) => Plain::Int(value),
        Cell::Float(value) => Plain::Float(value),
        Cell::Bool(value) => Plain::Bool(value),
        Cell::Text(value) => Plain::Text(value.to_owned()),
    }
}

/// The id of a row and its values in the four columns; `None` for a null, or where the column is missing.
pub(crate) type PlainRow = (i64, Vec<Option<Plain>>);

pub(crate) fn plain_rows(rows: &Rows) -> Vec<PlainRow> {
    let batch = rows.batch();
    let value = |key: Key, row: usize| batch.column(key).and_then(|column| column.get(row)).map(plain);
    let row = |row: usize| (batch.ids()[row], [INT, FLOAT, BOOL, TEXT].map(|key| value(key, row)).to_vec());
    rows.iter().map(row).collect()
}

pub(crate) fn keys(rows: &Rows) -> Vec<u32> {
    rows.batch().columns().iter().map(|(key, _)| key.0).collect()
}
