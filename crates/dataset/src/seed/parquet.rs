//! Parquet files.

use std::fs::File;
use std::path::Path;

use anabranch_value::{Map, Value};
use arrow_array::cast::AsArray;
use arrow_array::temporal_conversions as time;
use arrow_array::types::{
    Date32Type, Date64Type, Decimal128Type, Decimal256Type, Float16Type, Float32Type, Float64Type, Int8Type,
    Int16Type, Int32Type, Int64Type, TimestampMicrosecondType, TimestampMillisecondType,
    TimestampNanosecondType, TimestampSecondType, UInt8Type, UInt16Type, UInt32Type, UInt64Type,
};
use arrow_array::{Array, ArrayRef};
use arrow_schema::{DataType, TimeUnit};
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;

use super::column::{Column, Nulls, Texts};
use super::error::Error;
use super::table::{FileCells, FileColumn, FileTable, Limits};
use crate::column_type::ColumnType;

const ROWS_PER_BATCH: usize = 8192;

/// The maximum nesting depth of lists and structs.
const MAX_DEPTH: usize = 32;

pub(super) fn read(path: &Path, limits: Limits) -> Result<FileTable, Error> {
    let file = File::open(path).map_err(|cause| Error::Io { path: path.to_owned(), cause })?;
    let wrong = |error: &dyn std::fmt::Display| Error::File {
        path: path.to_owned(),
        problem: format!("cannot be read as Parquet ({error}): write it with Snappy or Zstandard, or as CSV"),
    };
    let builder = ParquetRecordBatchReaderBuilder::try_new(file).map_err(|error| wrong(&error))?;
    limits.check(u64::try_from(builder.metadata().file_metadata().num_rows()).unwrap_or(0), 0)?;
    let schema = builder.schema().clone();
    if schema.fields().len() > limits.columns {
        return Err(Error::TooLarge { limit: limits.columns as u64, unit: "columns" });
    }
    let mut columns = Vec::with_capacity(schema.fields().len());
    for field in schema.fields() {
        let problem =
            |problem| Error::Column { path: path.to_owned(), column: field.name().clone(), problem };
        let column_type = column_type(field.data_type(), 0).map_err(problem)?;
        let cells = empty(column_type.as_ref());
        columns.push(FileColumn { name: field.name().clone(), cells: FileCells::Typed(cells), column_type });
    }
    let reader = builder.with_batch_size(ROWS_PER_BATCH).build().map_err(|error| wrong(&error))?;
    let mut rows = 0;
    for batch in reader {
        let batch = batch.map_err(|error| wrong(&error))?;
        let mut bytes = 0;
        for (column, array) in columns.iter_mut().zip(batch.columns()) {
            let FileCells::Typed(cells) = &mut column.cells else { continue };
            append(cells, array).map_err(|(row, problem)| {
                let problem = format!("row {}: {problem}", rows + row as u64);
                Error::Column { path: path.to_owned(), column: column.name.clone(), problem }
            })?;
            bytes += cells.bytes();
        }
        rows += batch.num_rows() as u64;
        limits.check(rows, bytes)?;
    }
    Ok(FileTable { rows, columns })
}

/// Our type for Arrow's; `None` for a column of nulls.
fn column_type(data_type: &DataType, depth: usize) -> Result<Option<ColumnType>, String> {
    if depth > MAX_DEPTH {
        return Err(format!("it is nested deeper than {MAX_DEPTH} levels"));
    }
    let inner = |data_type: &DataType| {
        Ok::<_, String>(column_type(data_type, depth + 1)?.unwrap_or(ColumnType::Json))
    };
    Ok(Some(match data_type {
        DataType::Null => return Ok(None),
        DataType::Boolean => ColumnType::Bool,
        data_type if data_type.is_integer() => ColumnType::Int,
        data_type if data_type.is_floating() => ColumnType::Float,
        DataType::Decimal128(..) | DataType::Decimal256(..) => ColumnType::Float,
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => ColumnType::Text,
        DataType::Date32 | DataType::Date64 | DataType::Timestamp(..) => ColumnType::Text,
        DataType::Dictionary(_, values) => return column_type(values, depth + 1),
        DataType::List(field) | DataType::LargeList(field) | DataType::FixedSizeList(field, _) => {
            ColumnType::List(Box::new(inner(field.data_type())?))
        }
        DataType::Struct(fields) if !fields.is_empty() => {
            let field =
                |field: &arrow_schema::FieldRef| Ok((field.name().clone(), inner(field.data_type())?));
            ColumnType::Struct(fields.iter().map(field).collect::<Result<_, String>>()?)
        }
        other => {
            return Err(format!(
                "a seed cannot have the Arrow type {other}; convert the column to text or numbers, or leave it out"
            ));
        }
    }))
}

fn empty(column_type: Option<&ColumnType>) -> Column {
    match column_type {
        Some(ColumnType::Bool) => Column::Bool(Vec::new(), Nulls::default()),
        Some(ColumnType::Int) => Column::Int(Vec::new(), Nulls::default()),
        Some(ColumnType::Float) => Column::Float(Vec::new(), Nulls::default()),
        Some(ColumnType::Text) | None => Column::Text(Texts::default()),
        Some(_) => Column::Json(Texts::default()),
    }
}

fn append(cells: &mut Column, array: &ArrayRef) -> Result<(), (usize, String)> {
    for row in 0..array.len() {
        let value = value(&**array, row).map_err(|problem| (row, problem))?;
        match (&mut *cells, value) {
            (Column::Bool(cells, nulls), value) => {
                cells.push(value == Value::Bool(true));
                nulls.push(value.is_null());
            }
            (Column::Int(cells, nulls), value) => {
                cells.push(if let Value::Int(int) = value { int } else { 0 });
                nulls.push(value.is_null());
            }
            (Column::Float(cells, nulls), value) => {
                cells.push(value.as_number().unwrap_or(0.0));
                nulls.push(value.is_null());
            }
            (Column::Text(texts), value) => texts.push(value.as_text()),
            (Column::Json(texts), Value::Null) => texts.push(None),
            (Column::Json(texts), value) => texts.push(Some(&value.to_json())),
        }
    }
    Ok(())
}

/// One cell.
fn value(array: &dyn Array, row: usize) -> Result<Value, String> {
    if array.is_null(row) {
        return Ok(Value::Null);
    }
    Ok(match array.data_type() {
        DataType::Boolean => array.as_boolean().value(row).into(),
        DataType::Utf8 => array.as_string::<i32>().value(row).into(),
        DataType::LargeUtf8 => array.as_string::<i64>().value(row).into(),
        DataType::Utf8View => array.as_string_view().value(row).into(),
        DataType::Dictionary(..) => {
            let dictionary = array.as_any_dictionary();
            let key = dictionary.keys();
            let Value::Int(key) = value(key, row)? else { return Ok(Value::Null) };
            value(&**dictionary.values(), usize::try_from(key).map_err(|_| "a dictionary key is negative")?)?
        }
        DataType::List(_) => list(&array.as_list::<i32>().value(row))?,
        DataType::LargeList(_) => list(&array.as_list::<i64>().value(row))?,
        DataType::FixedSizeList(..) => list(&array.as_fixed_size_list().value(row))?,
        DataType::Struct(fields) => {
            let columns = array.as_struct().columns();
            let field = |(field, column): (&arrow_schema::FieldRef, &ArrayRef)| {
                Ok((field.name().as_str().into(), value(&**column, row)?))
            };
            Value::from(fields.iter().zip(columns).map(field).collect::<Result<Map, String>>()?)
        }
        data_type if data_type.is_temporal() => moment(array, row)?,
        _ => number(array, row)?,
    })
}

fn list(items: &ArrayRef) -> Result<Value, String> {
    Ok((0..items.len()).map(|item| value(&**items, item)).collect::<Result<Vec<Value>, String>>()?.into())
}

fn number(array: &dyn Array, row: usize) -> Result<Value, String> {
    let decimal =
        |text: String| text.parse::<f64>().map_err(|_| format!("the decimal {text} is not a number"));
    Ok(match array.data_type() {
        DataType::Int8 => i64::from(array.as_primitive::<Int8Type>().value(row)).into(),
        DataType::Int16 => i64::from(array.as_primitive::<Int16Type>().value(row)).into(),
        DataType::Int32 => i64::from(array.as_primitive::<Int32Type>().value(row)).into(),
        DataType::Int64 => array.as_primitive::<Int64Type>().value(row).into(),
        DataType::UInt8 => i64::from(array.as_primitive::<UInt8Type>().value(row)).into(),
        DataType::UInt16 => i64::from(array.as_primitive::<UInt16Type>().value(row)).into(),
        DataType::UInt32 => i64::from(array.as_primitive::<UInt32Type>().value(row)).into(),
        DataType::UInt64 => {
            let int = array.as_primitive::<UInt64Type>().value(row);
            i64::try_from(int).map_err(|_| format!("{int} is above 2^63: convert the column to text"))?.into()
        }
        DataType::Float16 => f64::from(array.as_primitive::<Float16Type>().value(row).to_f32()).into(),
        DataType::Float32 => f64::from(array.as_primitive::<Float32Type>().value(row)).into(),
        DataType::Float64 => array.as_primitive::<Float64Type>().value(row).into(),
        DataType::Decimal128(..) => {
            decimal(array.as_primitive::<Decimal128Type>().value_as_string(row))?.into()
        }
        DataType::Decimal256(..) => {
            decimal(array.as_primitive::<Decimal256Type>().value_as_string(row))?.into()
        }
        other => return Err(format!("a seed cannot have the Arrow type {other}")),
    })
}

/// A date or time as ISO text.
fn moment(array: &dyn Array, row: usize) -> Result<Value, String> {
    let (moment, format) = match array.data_type() {
        DataType::Date32 => {
            (time::date32_to_datetime(array.as_primitive::<Date32Type>().value(row)), "%Y-%m-%d")
        }
        DataType::Date64 => {
            (time::date64_to_datetime(array.as_primitive::<Date64Type>().value(row)), "%Y-%m-%d")
        }
        DataType::Timestamp(unit, zone) => {
            let moment = match unit {
                TimeUnit::Second => {
                    time::timestamp_s_to_datetime(array.as_primitive::<TimestampSecondType>().value(row))
                }
                TimeUnit::Millisecond => time::timestamp_ms_to_datetime(
                    array.as_primitive::<TimestampMillisecondType>().value(row),
                ),
                TimeUnit::Microsecond => time::timestamp_us_to_datetime(
                    array.as_primitive::<TimestampMicrosecondType>().value(row),
                ),
                TimeUnit::Nanosecond => {
                    time::timestamp_ns_to_datetime(array.as_primitive::<TimestampNanosecondType>().value(row))
                }
            };
            // A moment with a zone is kept in UTC.
            (moment, if zone.is_some() { "%Y-%m-%dT%H:%M:%S%.fZ" } else { "%Y-%m-%dT%H:%M:%S%.f" })
        }
        other => return Err(format!("a seed cannot have the Arrow type {other}")),
    };
    let moment = moment.ok_or("the date is out of range")?;
    Ok(moment.format(format).to_string().into())
}
