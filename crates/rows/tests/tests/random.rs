//! Random rows, and rows as plain values.

use anabranch_rows::{Batch, Cell, Column, Dictionary, Key, Rows, Text};
use arrow_array::Int32Array;
use proptest::collection::vec;
use proptest::prelude::*;

pub(crate) const INT: Key = Key(10);
pub(crate) const FLOAT: Key = Key(11);
pub(crate) const BOOL: Key = Key(12);
pub(crate) const TEXT: Key = Key(13);

/// Rows with some of four columns, few distinct values, nulls, and any active list.
pub(crate) fn rows(most: usize) -> impl Strategy<Value = Rows> {
    (0..=most).prop_flat_map(|len| {
        let null = 0.8;
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
            vec(proptest::option::weighted(null, prop_oneof![-3..3i64, any::<i64>()]), len),
            vec(proptest::option::weighted(null, float), len),
            vec(proptest::option::weighted(null, any::<bool>()), len),
            text(len),
            any::<[bool; 4]>(),
            active(len),
        )
            .prop_map(|(ids, ints, floats, bools, text, has, active)| {
                let all = [
                    (INT, Column::ints(ints)),
                    (FLOAT, Column::floats(floats)),
                    (BOOL, Column::bools(bools)),
                    (TEXT, text),
                ];
                let kept = all.into_iter().zip(has).filter_map(|(column, has)| has.then_some(column));
                let rows = Rows::new(Batch::with_columns(ids, kept.collect()));
                match active {
                    Chosen::First(count) => rows.first(count),
                    Chosen::List(list) => rows.with_active(list),
                }
            })
    })
}

/// Strings of a dictionary with repeated and unused entries, small or much larger than the rows.
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
enum Chosen {
    First(usize),
    List(Vec<u32>),
}

fn active(len: usize) -> impl Strategy<Value = Chosen> {
    let all: Vec<u32> = (0..len as u32).collect();
    let list = (Just(all).prop_shuffle(), 0..=len).prop_map(|(mut list, count)| {
        list.truncate(count);
        Chosen::List(list)
    });
    prop_oneof![(0..=len).prop_map(Chosen::First), Just(Chosen::First(len)), list]
}

/// A value on its own.
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

/// A row: its id and the values of the four columns, null where there is no column.
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
