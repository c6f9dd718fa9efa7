//! Columns, lists and keys as bytes.

use anabranch_rows::{Column, Interner, Kind, Text};
use arrow_array::{BooleanArray, Float64Array, Int32Array, Int64Array};
use arrow_buffer::{BooleanBuffer, NullBuffer};

use super::bytes::{ByteReader, ByteWriter};
use anabranch_plan::source::{Data, Keys, Lists};

pub(super) fn give_kind(kind: Kind, to: &mut ByteWriter) {
    to.u8(match kind {
        Kind::Int => 0,
        Kind::Float => 1,
        Kind::Bool => 2,
        Kind::Text => 3,
    });
}

pub(super) fn take_kind(from: &mut ByteReader<'_>) -> Option<Kind> {
    [Kind::Int, Kind::Float, Kind::Bool, Kind::Text].get(usize::from(from.u8()?)).copied()
}

pub(super) fn give_keys(keys: &Keys, to: &mut ByteWriter) {
    match keys {
        Keys::Ids(ids) => {
            to.u8(0);
            to.u64s(ids.iter().map(|id| *id as u64));
        }
        Keys::Whole(keys) => {
            to.u8(1);
            to.u32(keys.len() as u32);
            for key in keys {
                to.flag(key.is_some());
                key.iter().for_each(|key| to.text(key));
            }
        }
    }
}

pub(super) fn take_keys(from: &mut ByteReader<'_>) -> Option<Keys> {
    match from.u8()? {
        0 => Some(Keys::Ids(from.u64s()?.into_iter().map(|id| id as i64).collect())),
        1 => {
            let count = from.count(1)?;
            let mut key = || match from.flag()? {
                true => from.text().map(|text| Some(text.into())),
                false => Some(None),
            };
            (0..count).map(|_| key()).collect::<Option<_>>().map(Keys::Whole)
        }
        _ => None,
    }
}

pub(super) fn give_data(data: &Data, to: &mut ByteWriter) {
    match data {
        Data::Columns(columns) => {
            to.u8(0);
            to.u32(columns.len() as u32);
            columns.iter().for_each(|column| give_column(column, to));
        }
        Data::Lists(Lists { lens, ids, scores }) => {
            to.u8(1);
            to.u32s(lens.iter().copied());
            to.u64s(ids.iter().map(|id| *id as u64));
            to.flag(scores.is_some());
            scores.iter().for_each(|scores| to.u64s(scores.iter().map(|score| score.to_bits())));
        }
    }
}

pub(super) fn take_data(from: &mut ByteReader<'_>) -> Option<Data> {
    match from.u8()? {
        0 => {
            let count = from.count(1)?;
            (0..count).map(|_| take_column(from)).collect::<Option<_>>().map(Data::Columns)
        }
        1 => {
            let lens = from.u32s()?;
            let ids = from.u64s()?.into_iter().map(|id| id as i64).collect();
            let scores = match from.flag()? {
                true => Some(from.u64s()?.into_iter().map(f64::from_bits).collect()),
                false => None,
            };
            Some(Data::Lists(Lists { lens, ids, scores }))
        }
        _ => None,
    }
}

/// The values under nulls have no meaning, so they are not kept.
fn give_column(column: &Column, to: &mut ByteWriter) {
    give_kind(column.kind(), to);
    to.flags((0..column.len()).map(|row| !column.is_null(row)));
    let there = |row: &usize| !column.is_null(*row);
    let rows = || (0..column.len()).map(|row| Some(row).filter(there));
    match column {
        Column::Int(values) => to.u64s(rows().map(|row| row.map_or(0, |row| values.value(row)) as u64)),
        Column::Float(values) => {
            to.u64s(rows().map(|row| row.map_or(0.0, |row| values.value(row)).to_bits()));
        }
        Column::Bool(values) => to.flags(rows().map(|row| row.is_some_and(|row| values.value(row)))),
        Column::Text(text) => {
            let mut interner = Interner::default();
            let codes: Vec<i32> = rows()
                .map(|row| row.and_then(|row| text.get(row)).map_or(0, |text| interner.intern(text)))
                .collect();
            let dictionary = interner.finish();
            to.u32(dictionary.len() as u32);
            dictionary.iter().for_each(|entry| to.text(entry));
            to.u32s(codes.into_iter().map(|code| code as u32));
        }
    }
}

fn take_column(from: &mut ByteReader<'_>) -> Option<Column> {
    let kind = take_kind(from)?;
    let valid = from.flags()?;
    let nulls = NullBuffer::from(valid.as_slice());
    let nulls = (nulls.null_count() > 0).then_some(nulls);
    let rows = |len: usize| (len == valid.len()).then_some(());
    Some(match kind {
        Kind::Int => {
            let values: Vec<i64> = from.u64s()?.into_iter().map(|value| value as i64).collect();
            rows(values.len())?;
            Column::Int(Int64Array::new(values.into(), nulls))
        }
        Kind::Float => {
            let values: Vec<f64> = from.u64s()?.into_iter().map(f64::from_bits).collect();
            rows(values.len())?;
            Column::Float(Float64Array::new(values.into(), nulls))
        }
        Kind::Bool => {
            let values = from.flags()?;
            rows(values.len())?;
            Column::Bool(BooleanArray::new(BooleanBuffer::from(values), nulls))
        }
        Kind::Text => {
            let count = from.count(4)?;
            let entries: Vec<&str> = (0..count).map(|_| from.text()).collect::<Option<_>>()?;
            let codes = from.u32s()?;
            rows(codes.len())?;
            let fits =
                |(code, valid): (&u32, &bool)| if *valid { (*code as usize) < count } else { *code == 0 };
            if !codes.iter().zip(&valid).all(fits) {
                return None;
            }
            let codes: Vec<i32> = codes.into_iter().map(|code| code as i32).collect();
            let dictionary = anabranch_rows::Dictionary::new(entries);
            Column::Text(Text::new(Int32Array::new(codes.into(), nulls), dictionary))
        }
    })
}
