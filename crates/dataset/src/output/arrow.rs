//! Values as Arrow arrays of a declared type.

use std::sync::Arc;

use anabranch_value::Value;
use arrow_array::builder::{BooleanBuilder, Float64Builder, Int64Builder, StringBuilder};
use arrow_array::{ArrayRef, ListArray, RecordBatch, RecordBatchOptions, StructArray, new_null_array};
use arrow_buffer::{NullBuffer, OffsetBuffer};
use arrow_schema::{ArrowError, DataType, Field, Fields, Schema};

use crate::column_type::ColumnType;
use crate::processor::Table;

/// The Arrow type of a column.
pub(super) fn data_type(column_type: &ColumnType) -> DataType {
    match column_type {
        ColumnType::Bool => DataType::Boolean,
        ColumnType::Int => DataType::Int64,
        ColumnType::Float => DataType::Float64,
        ColumnType::Text | ColumnType::Json => DataType::Utf8,
        ColumnType::List(item) => DataType::List(Arc::new(Field::new("item", data_type(item), true))),
        ColumnType::Struct(fields) => DataType::Struct(struct_fields(fields)),
    }
}

/// The Arrow type of a column in words, for metadata.
pub fn type_name(column_type: &ColumnType) -> String {
    match column_type {
        ColumnType::Bool => "bool".to_owned(),
        ColumnType::Int => "int64".to_owned(),
        ColumnType::Float => "double".to_owned(),
        ColumnType::Text => "string".to_owned(),
        ColumnType::Json => "string (JSON)".to_owned(),
        ColumnType::List(item) => format!("list<{}>", type_name(item)),
        ColumnType::Struct(fields) => {
            let fields: Vec<String> =
                fields.iter().map(|(name, field)| format!("{name}: {}", type_name(field))).collect();
            format!("struct<{}>", fields.join(", "))
        }
    }
}

fn struct_fields(fields: &[(String, ColumnType)]) -> Fields {
    fields.iter().map(|(name, field)| Field::new(name, data_type(field), true)).collect()
}

/// The rows of a table as Arrow arrays.
pub(super) fn record_batch(table: &Table) -> Result<RecordBatch, ArrowError> {
    let fields: Fields = table
        .columns
        .iter()
        .map(|column| Field::new(&column.name, data_type(&column.column_type), true))
        .collect();
    let arrays = table.columns.iter().map(|column| {
        let values: Vec<Option<&Value>> = column.values.iter().map(Some).collect();
        array(&column.column_type, &values)
    });
    let options = RecordBatchOptions::new().with_row_count(Some(table.ids.len()));
    RecordBatch::try_new_with_options(Arc::new(Schema::new(fields)), arrays.collect(), &options)
}

/// Values that were fitted to the type. Anything else is null, which [`ColumnType::fit`] rules out.
fn array(column_type: &ColumnType, values: &[Option<&Value>]) -> ArrayRef {
    match column_type {
        ColumnType::Bool => {
            let mut builder = BooleanBuilder::with_capacity(values.len());
            values.iter().for_each(|value| {
                builder.append_option(match value {
                    Some(Value::Bool(truth)) => Some(*truth),
                    _ => None,
                });
            });
            Arc::new(builder.finish())
        }
        ColumnType::Int => {
            let mut builder = Int64Builder::with_capacity(values.len());
            values.iter().for_each(|value| {
                builder.append_option(match value {
                    Some(Value::Int(int)) => Some(*int),
                    _ => None,
                });
            });
            Arc::new(builder.finish())
        }
        ColumnType::Float => {
            let mut builder = Float64Builder::with_capacity(values.len());
            values.iter().for_each(|value| builder.append_option(value.and_then(Value::as_number)));
            Arc::new(builder.finish())
        }
        ColumnType::Text | ColumnType::Json => texts(column_type, values),
        ColumnType::List(item) => list(item, values),
        ColumnType::Struct(fields) => structure(fields, values),
    }
}

fn texts(column_type: &ColumnType, values: &[Option<&Value>]) -> ArrayRef {
    let bytes = values.iter().flatten().filter_map(|value| value.as_text()).map(str::len).sum();
    let mut builder = StringBuilder::with_capacity(values.len(), bytes);
    for value in values {
        match value {
            None | Some(Value::Null) => builder.append_null(),
            Some(Value::Text(text)) if *column_type == ColumnType::Text => builder.append_value(text),
            Some(value) => builder.append_value(value.to_json()),
        }
    }
    Arc::new(builder.finish())
}

fn list(item: &ColumnType, values: &[Option<&Value>]) -> ArrayRef {
    let lists: Vec<Option<&[Value]>> = values.iter().map(|value| value.and_then(Value::as_list)).collect();
    let items: Vec<Option<&Value>> = lists.iter().flatten().flat_map(|list| list.iter().map(Some)).collect();
    let offsets = OffsetBuffer::from_lengths(lists.iter().map(|list| list.map_or(0, <[Value]>::len)));
    let nulls = NullBuffer::from_iter(lists.iter().map(Option::is_some));
    let field = Arc::new(Field::new("item", data_type(item), true));
    Arc::new(ListArray::new(field, offsets, array(item, &items), Some(nulls)))
}

fn structure(fields: &[(String, ColumnType)], values: &[Option<&Value>]) -> ArrayRef {
    let maps: Vec<Option<&Value>> =
        values.iter().map(|value| value.filter(|value| value.as_map().is_some())).collect();
    if fields.is_empty() {
        return new_null_array(&DataType::Struct(Fields::empty()), values.len());
    }
    let column = |(name, field): &(String, ColumnType)| {
        let values: Vec<Option<&Value>> = maps.iter().map(|map| map.and_then(|map| map.get(name))).collect();
        array(field, &values)
    };
    let nulls = NullBuffer::from_iter(maps.iter().map(Option::is_some));
    Arc::new(StructArray::new(struct_fields(fields), fields.iter().map(column).collect(), Some(nulls)))
}

/// Row numbers as ranges, for instance `0-4,6-999`; a row that a processor added is `+`.
pub(super) fn ranges(ids: &[Option<u64>]) -> String {
    let mut text = String::new();
    let mut ids = ids.iter().peekable();
    while let Some(first) = ids.next() {
        if !text.is_empty() {
            text.push(',');
        }
        let Some(first) = first else {
            text.push('+');
            continue;
        };
        let mut last = *first;
        while let Some(Some(_)) = ids.next_if(|next| last < u64::MAX && **next == Some(last + 1)) {
            last += 1;
        }
        text.push_str(&if last == *first { first.to_string() } else { format!("{first}-{last}") });
    }
    text
}

/// The row numbers of [`ranges`]; `None` if the text is not of that form, or names more rows than `most`.
pub(super) fn row_numbers(ranges: &str, most: usize) -> Option<Vec<Option<u64>>> {
    let mut ids = Vec::new();
    for part in ranges.split(',').filter(|part| !part.is_empty()) {
        if part == "+" {
            ids.push(None);
            continue;
        }
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last): (u64, u64) = (first.parse().ok()?, last.parse().ok()?);
        if last.checked_sub(first)? >= most.checked_sub(ids.len())? as u64 {
            return None;
        }
        ids.extend((first..=last).map(Some));
    }
    (ids.len() <= most).then_some(ids)
}

/// The most rows that a note is believed to name.
const ROWS_MOST: usize = 100_000_000;

/// The row numbers of [`ranges`], however many; none if the text is not of that form.
pub(super) fn all_row_numbers(ranges: &str) -> Vec<u64> {
    row_numbers(ranges, ROWS_MOST).unwrap_or_default().into_iter().flatten().collect()
}

#[cfg(test)]
mod tests {
    use super::{ranges, row_numbers};

    #[test]
    fn row_numbers_come_back() {
        for ids in [vec![], vec![Some(3)], vec![Some(0), Some(1), None, None, Some(7), Some(5), Some(6)]] {
            assert_eq!(row_numbers(&ranges(&ids), ids.len()), Some(ids));
        }
        for (wrong, most) in [("1-3", 2), ("5-3", 9), ("x", 9), ("1,2,+", 2), ("0-18446744073709551615", 9)] {
            assert_eq!(row_numbers(wrong, most), None, "{wrong}");
        }
    }
}
