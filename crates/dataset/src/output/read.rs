//! Reading the files of a dataset.

use std::fs::File;
use std::ops::Range;
use std::path::{Path, PathBuf};

use anabranch_value::Value;
use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, Int64Type};
use arrow_array::{Array, RecordBatch};
use arrow_schema::{DataType, SchemaRef};
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::{ParquetRecordBatchReader, ParquetRecordBatchReaderBuilder};
use parquet::file::metadata::FileMetaData;

use super::arrow::row_numbers;
use super::files::{FileError, cannot};
use crate::column_type::ColumnType;
use crate::processor::{Table, TableColumn};

/// Rows that are read at a time.
const ROWS_AT_A_TIME: usize = 4096;

/// The note in a file of rows that has the rows' stable numbers.
pub(super) const IDS_NOTE: &str = "anabranch.row_ids";

/// A file of a dataset's rows, read some rows at a time.
pub struct RowFile {
    path: PathBuf,
    reader: ParquetRecordBatchReader,
    columns: Vec<(String, ColumnType)>,
    /// The stable numbers of the rows that are not read yet.
    ids: std::vec::IntoIter<Option<u64>>,
    rows: u64,
}

impl RowFile {
    /// Opens a file. Blocks.
    pub fn open(path: &Path) -> Result<RowFile, FileError> {
        RowFile::of(path, builder(path)?)
    }

    /// Opens a part of a file: some columns, in the order of the file, of the rows at these positions. The rows have no
    /// numbers. Blocks.
    pub(crate) fn open_part(
        path: &Path,
        columns: &[&str],
        positions: Range<u64>,
    ) -> Result<RowFile, FileError> {
        let builder = builder(path)?;
        let fields = builder.schema().fields();
        let number = |name: &&str| {
            let number = fields.iter().position(|field| field.name() == name);
            number.ok_or_else(|| unreadable(path, format!("there is no column `{name}`")))
        };
        let numbers = columns.iter().map(number).collect::<Result<Vec<usize>, FileError>>()?;
        let mask = ProjectionMask::roots(builder.parquet_schema(), numbers);
        let (start, rows) = (positions.start as usize, (positions.end - positions.start) as usize);
        let mut part = RowFile::of(path, builder.with_projection(mask).with_offset(start).with_limit(rows))?;
        part.columns.retain(|(name, _)| columns.contains(&&**name));
        part.ids = Vec::new().into_iter();
        Ok(part)
    }

    fn of(path: &Path, builder: Builder) -> Result<RowFile, FileError> {
        let columns = builder.schema().fields().iter().map(|field| {
            let known = column_type(field.data_type());
            let name = field.name();
            let what = || format!("column `{name}` has the type {}, which no dataset has", field.data_type());
            Ok((name.clone(), known.ok_or_else(|| unreadable(path, what()))?))
        });
        let columns = columns.collect::<Result<_, FileError>>()?;
        let metadata = builder.metadata().file_metadata();
        let rows = u64::try_from(metadata.num_rows()).unwrap_or(0);
        let ids =
            note_in(metadata, IDS_NOTE).and_then(|note| row_numbers(note, rows as usize)).unwrap_or_default();
        let reader =
            builder.with_batch_size(ROWS_AT_A_TIME).build().map_err(|error| unreadable(path, error))?;
        Ok(RowFile { path: path.to_owned(), reader, columns, ids: ids.into_iter(), rows })
    }

    /// The names and types of the columns. Text that is JSON has the type of text.
    pub fn columns(&self) -> &[(String, ColumnType)] {
        &self.columns
    }

    /// The stable numbers of the rows that were not read yet; `None` of rows that a processor added. There may be fewer
    /// than rows: the rest has none.
    pub fn ids(&self) -> &[Option<u64>] {
        self.ids.as_slice()
    }

    /// The number of rows in the file.
    pub fn rows(&self) -> u64 {
        self.rows
    }

    fn table(&mut self, batch: &RecordBatch) -> Table {
        let columns =
            self.columns.iter().zip(batch.columns()).map(|((name, column_type), array)| TableColumn {
                name: name.clone(),
                column_type: column_type.clone(),
                values: (0..array.len()).map(|row| value(&**array, row)).collect(),
            });
        let ids = (0..batch.num_rows()).map(|_| self.ids.next().flatten()).collect();
        Table { ids, columns: columns.collect() }
    }
}

impl Iterator for RowFile {
    type Item = Result<Table, FileError>;

    /// The next rows. Blocks.
    fn next(&mut self) -> Option<Result<Table, FileError>> {
        let batch = self.reader.next()?;
        Some(batch.map(|batch| self.table(&batch)).map_err(|error| unreadable(&self.path, error)))
    }
}

type Builder = ParquetRecordBatchReaderBuilder<File>;

fn builder(path: &Path) -> Result<Builder, FileError> {
    let file = File::open(path).map_err(cannot("read", path))?;
    Builder::try_new(file).map_err(|error| unreadable(path, error))
}

/// The columns of a file of a dataset, and its rows some at a time. Blocks.
pub(super) fn batches(
    path: &Path,
) -> Result<(SchemaRef, impl Iterator<Item = Result<RecordBatch, FileError>>), FileError> {
    let builder = builder(path)?;
    let schema = SchemaRef::clone(builder.schema());
    let reader = builder.with_batch_size(ROWS_AT_A_TIME).build().map_err(|error| unreadable(path, error))?;
    Ok((schema, reader.map(move |batch| batch.map_err(|error| unreadable(path, error)))))
}

/// A note in a file. Blocks.
pub(super) fn note(path: &Path, name: &str) -> Result<Option<String>, FileError> {
    Ok(note_in(builder(path)?.metadata().file_metadata(), name).map(str::to_owned))
}

/// A note in the metadata of a file.
pub(super) fn note_in<'m>(metadata: &'m FileMetaData, name: &str) -> Option<&'m str> {
    let notes = metadata.key_value_metadata()?;
    notes.iter().find(|note| note.key == name)?.value.as_deref()
}

fn unreadable(path: &Path, cause: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> FileError {
    cannot("read", path)(std::io::Error::other(cause))
}

/// Visits the rows of a file of a dataset, some at a time.
pub(super) fn read_rows<E: From<FileError>>(
    path: &Path,
    mut visit: impl FnMut(Table) -> Result<(), E>,
) -> Result<(), E> {
    RowFile::open(path)?.try_for_each(|table| visit(table?))
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
