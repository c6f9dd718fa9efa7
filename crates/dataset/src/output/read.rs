//! Reading the files of a dataset.

use std::fs::File;
use std::ops::Range;
use std::path::Path;

use anabranch_value::Value;
use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, Int64Type};
use arrow_array::{Array, RecordBatch};
use arrow_schema::DataType;
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use parquet::file::metadata::FileMetaData;

use super::arrow::{IDS_NOTE, parse_ranges};
use super::files::{FileError, cannot};
use crate::column_type::ColumnType;
use crate::processor::{Table, TableColumn};

/// Rows that are read at a time.
const ROWS_AT_A_TIME: usize = 4096;

/// Visits the rows of a file of a dataset, some at a time.
pub(super) fn read_rows<E: From<FileError>>(
    path: &Path,
    visit: impl FnMut(Table) -> Result<(), E>,
) -> Result<(), E> {
    visit_rows(path, open(path)?, visit)
}

/// Visits some columns of the rows of a file at these positions, some rows at a time.
pub(crate) fn read_part<E: From<FileError>>(
    path: &Path,
    columns: &[&str],
    positions: Range<u64>,
    mut visit: impl FnMut(Table) -> Result<(), E>,
) -> Result<(), E> {
    let builder = open(path)?;
    let fields = builder.schema().fields();
    let numbers = columns.iter().map(|name| {
        fields.iter().position(|field| field.name() == name).ok_or_else(|| {
            cannot("read", path)(std::io::Error::other(format!("there is no column `{name}`")))
        })
    });
    let numbers = numbers.collect::<Result<Vec<usize>, FileError>>()?;
    let mask = ProjectionMask::roots(builder.parquet_schema(), numbers);
    let (start, rows) = (positions.start as usize, (positions.end - positions.start) as usize);
    let builder = builder.with_projection(mask).with_offset(start).with_limit(rows);
    visit_rows(path, builder, |mut table| {
        // Parquet gives them in the order of the file.
        let place = |column: &TableColumn| columns.iter().position(|name| *name == column.name);
        table.columns.sort_by_key(place);
        visit(table)
    })
}

/// The ids of the rows of a file, in order; a row that a processor added has none.
pub(crate) fn count_rows(path: &Path) -> Result<Vec<Option<u64>>, FileError> {
    let builder = open(path)?;
    let metadata = builder.metadata().file_metadata();
    let ids = note_in(metadata, IDS_NOTE).and_then(parse_ranges);
    let rows = usize::try_from(metadata.num_rows()).unwrap_or(0);
    ids.filter(|ids| ids.len() == rows)
        .ok_or_else(|| cannot("read", path)(std::io::Error::other("it does not say which rows it has")))
}

/// A note in a file. Blocks.
pub(super) fn note(path: &Path, name: &str) -> Result<Option<String>, FileError> {
    Ok(note_in(open(path)?.metadata().file_metadata(), name).map(str::to_owned))
}

/// A note in the metadata of a file.
pub(super) fn note_in<'m>(metadata: &'m FileMetaData, name: &str) -> Option<&'m str> {
    let notes = metadata.key_value_metadata()?;
    notes.iter().find(|note| note.key == name)?.value.as_deref()
}

type Builder = ParquetRecordBatchReaderBuilder<File>;

fn open(path: &Path) -> Result<Builder, FileError> {
    let file = File::open(path).map_err(cannot("read", path))?;
    Builder::try_new(file).map_err(|error| cannot("read", path)(std::io::Error::other(error)))
}

fn visit_rows<E: From<FileError>>(
    path: &Path,
    builder: Builder,
    mut visit: impl FnMut(Table) -> Result<(), E>,
) -> Result<(), E> {
    let reader = builder.with_batch_size(ROWS_AT_A_TIME).build();
    let reader = reader.map_err(|error| cannot("read", path)(std::io::Error::other(error)))?;
    for batch in reader {
        let batch = batch.map_err(|error| cannot("read", path)(std::io::Error::other(error)))?;
        let table = table(&batch).map_err(|what| cannot("read", path)(std::io::Error::other(what)))?;
        visit(table)?;
    }
    Ok(())
}

fn table(batch: &RecordBatch) -> Result<Table, String> {
    let schema = batch.schema();
    let columns = schema.fields().iter().zip(batch.columns()).map(|(field, array)| {
        let column_type = column_type(field.data_type()).ok_or_else(|| {
            format!("column `{}` has the type {}, which no dataset has", field.name(), field.data_type())
        })?;
        let values = (0..array.len()).map(|row| value(&**array, row)).collect();
        Ok(TableColumn { name: field.name().clone(), column_type, values })
    });
    Ok(Table { ids: vec![None; batch.num_rows()], columns: columns.collect::<Result<_, String>>()? })
}

fn column_type(data_type: &DataType) -> Option<ColumnType> {
    match data_type {
        DataType::Boolean => Some(ColumnType::Bool),
        DataType::Int64 => Some(ColumnType::Int),
        DataType::Float64 => Some(ColumnType::Float),
        DataType::Utf8 => Some(ColumnType::Text),
        DataType::List(item) => Some(ColumnType::List(Box::new(column_type(item.data_type())?))),
        DataType::Struct(fields) => {
            let field = |field: &arrow_schema::FieldRef| {
                Some((field.name().clone(), column_type(field.data_type())?))
            };
            Some(ColumnType::Struct(fields.iter().map(field).collect::<Option<_>>()?))
        }
        _ => None,
    }
}

/// The value in a row of an array whose type [`column_type`] knows.
fn value(array: &dyn Array, row: usize) -> Value {
    if array.is_null(row) {
        return Value::Null;
    }
    match array.data_type() {
        DataType::Boolean => array.as_boolean().value(row).into(),
        DataType::Int64 => array.as_primitive::<Int64Type>().value(row).into(),
        DataType::Float64 => array.as_primitive::<Float64Type>().value(row).into(),
        DataType::Utf8 => array.as_string::<i32>().value(row).into(),
        DataType::List(_) => {
            let items = array.as_list::<i32>().value(row);
            Value::list((0..items.len()).map(|item| value(&*items, item)))
        }
        DataType::Struct(fields) => {
            let columns = array.as_struct().columns();
            Value::map(
                fields
                    .iter()
                    .zip(columns)
                    .map(|(field, column)| (field.name().as_str(), value(&**column, row))),
            )
        }
        other => unreachable!("{other} is refused when the file is opened"),
    }
}
