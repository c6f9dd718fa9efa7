//! Columns that ops make of other columns.

use anabranch_rows::{Batch, Column, Dictionary, Key, Kind, Rows, Text};
use arrow_array::{BooleanArray, Float64Array, Int32Array, Int64Array};
use arrow_buffer::{ArrowNativeType, NullBuffer, ScalarBuffer};

use crate::schema::KeySet;
use crate::value::Scalar;

/// `value` as one of kind `kind`, if it can be one: integers are floats too.
pub(crate) fn fitted(value: &Scalar, kind: Kind) -> Option<Scalar> {
    match (value, kind) {
        (Scalar::Int(value), Kind::Float) => Some(Scalar::Float(*value as f64)),
        _ => (value.kind() == kind).then(|| value.clone()),
    }
}

/// A column of one value, or of nulls.
pub(crate) fn constant(kind: Kind, value: Option<&Scalar>, len: usize) -> Column {
    match value {
        None => Column::all_null(kind, len),
        Some(Scalar::Int(value)) => Column::Int(Int64Array::from(vec![*value; len])),
        Some(Scalar::Float(value)) => Column::Float(Float64Array::from(vec![*value; len])),
        Some(Scalar::Bool(value)) => Column::Bool(BooleanArray::from(vec![*value; len])),
        Some(Scalar::Text(value)) => {
            Column::Text(Text::new(Int32Array::from(vec![0; len]), Dictionary::new([&**value])))
        }
    }
}

/// The column with `values`, one per active row in their order, and null in the rows that are not active.
pub(crate) fn scattered(values: Column, rows: &Rows) -> Column {
    assert_eq!(values.len(), rows.len(), "one value per active row");
    if rows.is_dense() {
        return values;
    }
    let mut from: Vec<Option<u32>> = vec![None; rows.batch().len()];
    for (position, row) in (0u32..).zip(rows.iter()) {
        from[row] = Some(position);
    }
    values.gather_or_null(from.iter().copied())
}

/// `rows` with nulls for the columns that only the other side has.
pub(super) fn completed(rows: &Rows, missing: &[(Key, Kind)]) -> Rows {
    if missing.is_empty() {
        return rows.clone();
    }
    let rows = rows.to_extend();
    let batch = rows.batch();
    let nulls = missing.iter().map(|(key, kind)| (*key, Column::all_null(*kind, batch.len())));
    let columns = batch.columns().iter().cloned().chain(nulls).collect();
    rows.with_batch(Batch::with_columns(batch.ids().clone(), columns))
}

/// `rows` without the columns that are not in `keys`.
pub(super) fn only(rows: &Rows, keys: &KeySet) -> Rows {
    let batch = rows.batch();
    if batch.columns().iter().all(|(key, _)| keys.has(*key)) {
        return rows.clone();
    }
    let kept = batch.columns().iter().filter(|(key, _)| keys.has(*key)).cloned();
    rows.with_batch(Batch::with_columns(batch.ids().clone(), kept.collect()))
}

/// `column` with `value`, which is of its kind, in the active rows that are null.
pub(super) fn filled(column: &Column, rows: &Rows, value: &Scalar) -> Column {
    if column.nulls().is_none_or(|nulls| nulls.null_count() == 0) {
        return column.clone();
    }
    let mut empty = vec![false; column.len()];
    rows.iter().filter(|row| column.is_null(*row)).for_each(|row| empty[row] = true);
    let nulls: NullBuffer = (0..column.len()).map(|row| empty[row] || !column.is_null(row)).collect();
    match (column, value) {
        (Column::Int(array), Scalar::Int(value)) => {
            Column::Int(Int64Array::new(replaced(array.values(), &empty, *value), Some(nulls)))
        }
        (Column::Float(array), Scalar::Float(value)) => {
            Column::Float(Float64Array::new(replaced(array.values(), &empty, *value), Some(nulls)))
        }
        (Column::Bool(array), Scalar::Bool(value)) => {
            let values = array.values().iter().zip(&empty);
            let values = values.map(|(old, empty)| if *empty { *value } else { old }).collect();
            Column::Bool(BooleanArray::new(values, Some(nulls)))
        }
        (Column::Text(text), Scalar::Text(value)) => {
            let (dictionary, code) = with_entry(text.dictionary(), value);
            let codes = replaced(text.codes().values(), &empty, code);
            Column::Text(Text::new(Int32Array::new(codes, Some(nulls)), dictionary))
        }
        _ => unreachable!("a {} column is filled with a {}", column.kind(), value.kind()),
    }
}

fn replaced<T: ArrowNativeType>(values: &[T], empty: &[bool], value: T) -> ScalarBuffer<T> {
    values.iter().zip(empty).map(|(old, empty)| if *empty { value } else { *old }).collect()
}

/// A dictionary that has `entry`, and its code.
fn with_entry(dictionary: &Dictionary, entry: &str) -> (Dictionary, i32) {
    let at = dictionary.iter().position(|other| other == entry);
    let code = at.unwrap_or(dictionary.len());
    let dictionary = match at {
        Some(_) => dictionary.clone(),
        None => Dictionary::new(dictionary.iter().chain([entry])),
    };
    (dictionary, i32::try_from(code).expect("codes are 31 bits"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn show(column: &Column) -> String {
        let value = |row| column.get(row).map_or("-".to_owned(), |cell| cell.to_string());
        (0..column.len()).map(value).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn values_go_to_their_rows() {
        let rows = Rows::new(Batch::new(vec![1, 2, 3, 4])).with_active(vec![3, 0, 2]);
        assert_eq!(show(&scattered(Column::ints([Some(7), None, Some(9)]), &rows)), "- - 9 7");
        assert_eq!(show(&scattered(Column::texts([Some("a"), Some("b"), None]), &rows)), "b - - a");
        assert_eq!(show(&scattered(Column::bools([Some(true), None, None]), &rows)), "- - - true");
        assert_eq!(show(&scattered(Column::floats([None, Some(0.5), None]), &rows)), "0.5 - - -");
    }

    #[test]
    fn nulls_of_active_rows_are_filled() {
        let rows = Rows::new(Batch::new(vec![1, 2, 3])).with_active(vec![2, 0]);
        let check = |column: Column, value: Scalar, expected: &str| {
            assert_eq!(show(&filled(&column, &rows, &value)), expected);
        };
        check(Column::ints([None, None, Some(3)]), Scalar::Int(5), "5 - 3");
        check(Column::floats([Some(1.5), None, None]), Scalar::Float(0.0), "1.5 - 0");
        check(Column::bools([Some(false), None, None]), Scalar::Bool(true), "false - true");
        check(Column::texts([Some("a"), None, None]), Scalar::Text("a".into()), "a - a");
        check(Column::texts([Some("a"), None, None]), Scalar::Text("b".into()), "a - b");
        check(Column::all_null(Kind::Text, 3), Scalar::Text("x".into()), "x - x");
    }
}
