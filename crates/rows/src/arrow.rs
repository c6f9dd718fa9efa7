//! Conversion between [`Rows`] and Arrow record batches.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{
    ArrowDictionaryKeyType, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type, UInt8Type,
    UInt16Type, UInt32Type, UInt64Type,
};
use arrow_array::{Array, ArrayRef, DictionaryArray, Int64Array, RecordBatch, StringArray};
use arrow_schema::{DataType, Field, Schema};

use crate::batch::Batch;
use crate::column::{Column, Text};
use crate::dictionary::Dictionary;
use crate::key::Key;
use crate::rows::Rows;

/// Why an Arrow record batch cannot be converted to [`Rows`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    #[error("the record batch has no column `id`; add one of 64-bit integers")]
    NoIds,
    #[error("column `id`, row {row}: the id is null; every row needs one")]
    NullId { row: usize },
    #[error("column `id` has the type {found}; ids must be integers")]
    IdType { found: DataType },
    #[error("column `{column}` is not a registered key; leave it out or register it")]
    UnknownColumn { column: String },
    #[error("column `{column}` has the key {key}, and so has another column; leave one of them out")]
    RepeatedKey { column: String, key: Key },
    #[error("column `{column}` has the type {found}; columns must be integers, floats, booleans or strings")]
    ColumnType { column: String, found: DataType },
    #[error("column `{column}`, row {row}: {value} is above the largest 64-bit signed integer")]
    TooLarge { column: String, row: usize, value: u64 },
}

impl Rows {
    /// Copies the active rows to a record batch: the column `id`, then one column per key, named by `name`.
    pub fn to_arrow(&self, name: impl Fn(Key) -> String) -> RecordBatch {
        let rows = self.compact();
        let batch = rows.batch();
        let mut fields = vec![Field::new("id", DataType::Int64, false)];
        let mut arrays: Vec<ArrayRef> = vec![Arc::new(Int64Array::new(batch.ids().clone(), None))];
        for (key, column) in batch.columns() {
            let array = column.to_arrow();
            fields.push(Field::new(name(*key), array.data_type().clone(), true));
            arrays.push(array);
        }
        RecordBatch::try_new(Arc::new(Schema::new(fields)), arrays)
            .expect("every column has one value per row")
    }

    /// Converts a record batch. Its column `id` becomes the ids; `key` maps the name of every other column to a key.
    pub fn from_arrow(batch: &RecordBatch, key: impl Fn(&str) -> Option<Key>) -> Result<Rows, Error> {
        let ids = ids_of(batch.column_by_name("id").ok_or(Error::NoIds)?)?;
        let mut columns: Vec<(Key, Column)> = Vec::with_capacity(batch.num_columns());
        for (field, array) in batch.schema_ref().fields().iter().zip(batch.columns()) {
            let name = field.name();
            if name == "id" {
                continue;
            }
            let key = key(name).ok_or_else(|| Error::UnknownColumn { column: name.clone() })?;
            if key == Key::ID || columns.iter().any(|(other, _)| *other == key) {
                return Err(Error::RepeatedKey { column: name.clone(), key });
            }
            columns.push((key, Column::from_arrow(name, array)?));
        }
        Ok(Rows::new(Batch::with_columns(ids.values().clone(), columns)))
    }
}

fn ids_of(array: &ArrayRef) -> Result<Int64Array, Error> {
    let ids = match Column::from_arrow("id", array)? {
        Column::Int(ids) => ids,
        _ => return Err(Error::IdType { found: array.data_type().clone() }),
    };
    match (0..ids.len()).find(|row| ids.is_null(*row)) {
        Some(row) => Err(Error::NullId { row }),
        None => Ok(ids),
    }
}

impl Column {
    /// The column as an Arrow array. Strings become a dictionary array with 32-bit codes.
    pub fn to_arrow(&self) -> ArrayRef {
        match self {
            Column::Int(array) => Arc::new(array.clone()),
            Column::Float(array) => Arc::new(array.clone()),
            Column::Bool(array) => Arc::new(array.clone()),
            Column::Text(text) => {
                let entries: ArrayRef = text.dictionary().array().clone();
                Arc::new(DictionaryArray::<Int32Type>::new(text.codes().clone(), entries))
            }
        }
    }

    /// Converts an Arrow array of integers, floats, booleans or strings. Errors name the column as `name`.
    pub fn from_arrow(name: &str, array: &ArrayRef) -> Result<Column, Error> {
        macro_rules! widened {
            ($from:ty, $variant:ident) => {
                Column::$variant(array.as_primitive::<$from>().unary(Into::into))
            };
        }
        Ok(match array.data_type() {
            DataType::Int64 => Column::Int(array.as_primitive::<Int64Type>().clone()),
            DataType::Int32 => widened!(Int32Type, Int),
            DataType::Int16 => widened!(Int16Type, Int),
            DataType::Int8 => widened!(Int8Type, Int),
            DataType::UInt32 => widened!(UInt32Type, Int),
            DataType::UInt16 => widened!(UInt16Type, Int),
            DataType::UInt8 => widened!(UInt8Type, Int),
            DataType::UInt64 => {
                let values = array.as_primitive::<UInt64Type>();
                let above = |value: u64| value > i64::MAX as u64;
                if let Some((row, value)) = values
                    .iter()
                    .enumerate()
                    .find_map(|(row, value)| Some((row, value.filter(|v| above(*v))?)))
                {
                    return Err(Error::TooLarge { column: name.to_owned(), row, value });
                }
                Column::Int(values.unary(|value| value as i64))
            }
            DataType::Float64 => Column::Float(array.as_primitive::<Float64Type>().clone()),
            DataType::Float32 => widened!(Float32Type, Float),
            DataType::Boolean => Column::Bool(array.as_boolean().clone()),
            DataType::Utf8 => Column::texts(array.as_string::<i32>().iter()),
            DataType::LargeUtf8 => Column::texts(array.as_string::<i64>().iter()),
            DataType::Utf8View => Column::texts(array.as_string_view().iter()),
            DataType::Dictionary(codes, entries) if **entries == DataType::Utf8 => match **codes {
                DataType::Int32 => from_codes(array.as_dictionary()),
                DataType::Int64 => reencoded::<Int64Type>(array),
                DataType::Int16 => reencoded::<Int16Type>(array),
                DataType::Int8 => reencoded::<Int8Type>(array),
                DataType::UInt64 => reencoded::<UInt64Type>(array),
                DataType::UInt32 => reencoded::<UInt32Type>(array),
                DataType::UInt16 => reencoded::<UInt16Type>(array),
                _ => reencoded::<UInt8Type>(array),
            },
            other => return Err(Error::ColumnType { column: name.to_owned(), found: other.clone() }),
        })
    }
}

/// Shares the codes and the entries with `array`.
fn from_codes(array: &DictionaryArray<Int32Type>) -> Column {
    let entries = array.values().as_string::<i32>();
    if entries.null_count() > 0 {
        return texts_of(array);
    }
    Column::Text(Text::new(array.keys().clone(), Dictionary::from(entries.clone())))
}

fn reencoded<C: ArrowDictionaryKeyType>(array: &ArrayRef) -> Column {
    texts_of(array.as_dictionary::<C>())
}

fn texts_of<C: ArrowDictionaryKeyType>(array: &DictionaryArray<C>) -> Column {
    let typed = array.downcast_dict::<StringArray>().expect("the entries are strings");
    Column::texts(typed)
}
