//! Tables as hashes: each row of a CSV or Parquet file becomes a hash. Its key is made from its columns.

use std::fmt::Write as _;

use anabranch_text::{Problem, Problems};
use arrow_array::cast::AsArray;
use arrow_array::types::{
    Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type, UInt8Type, UInt16Type, UInt32Type,
    UInt64Type,
};
use arrow_array::{Array, ArrayRef, RecordBatch};
use arrow_schema::DataType;
use hyper::body::Bytes;
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::{ArrowReaderOptions, ParquetRecordBatchReaderBuilder};
use parquet::errors::ParquetError;

use super::data::{MemoryData, StoredEntry};
use crate::source::pattern::{Piece, pieces};

/// The most problems of a table that are listed.
const LISTED: usize = 20;

impl MemoryData {
    /// Adds the rows of a CSV text with a header line. An empty cell is a field that is not there.
    pub fn add_csv(&mut self, place: &str, content: &[u8], key: &str) -> Result<(), Problems> {
        let mut reader = csv::Reader::from_reader(content);
        if let Some(line) = unclosed_quote(content) {
            let problem = Problem::new(format!("{place}, line {line}"), "a quoted cell has no closing quote");
            return Err(problem
                .help("close it with `\"`, or write `\"\"` for a quote inside of a cell")
                .into());
        }
        let headers = reader.headers().map_err(|e| Problem::new(place, e.to_string()))?.clone();
        let names: Vec<&str> = headers.iter().collect();
        let mut rows = TableRows::new(self, place, key, &names)?;
        for record in reader.records() {
            let record = record.map_err(|e| Problem::new(place, e.to_string()))?;
            rows.add(|column| record.get(column).filter(|cell| !cell.is_empty()).map(str::to_owned))?;
        }
        rows.finish()
    }

    /// Adds the rows of a Parquet file's content. A null is a field that is not there.
    pub fn add_parquet(&mut self, place: &str, content: Vec<u8>, key: &str) -> Result<(), Problems> {
        let wrong = |e: &ParquetError| Problem::new(place, not_read(e));
        // The file's own types, not those of the program that wrote it: one kind of string instead of five.
        let options = ArrowReaderOptions::new().with_skip_arrow_metadata(true);
        let builder = ParquetRecordBatchReaderBuilder::try_new_with_options(Bytes::from(content), options)
            .map_err(|e| wrong(&e))?;
        // Feature tables have times and lists that no plan reads: those columns are left in the file.
        let schema = builder.schema().clone();
        let (readable, others): (Vec<usize>, Vec<usize>) =
            (0..schema.fields().len()).partition(|at| is_readable(schema.field(*at).data_type()));
        for field in others.into_iter().map(|at| schema.field(at)) {
            let what = format!("column `{}` of {place} is of type {}", field.name(), field.data_type());
            if key.contains(&format!("{{{}}}", field.name())) {
                return Err(Problem::new(format!("{place}, pattern `{key}`"), what).help(READABLE).into());
            }
            self.leave_out(field.name(), key, &format!("{what}; {READABLE}"));
        }
        let names: Vec<&str> = readable.iter().map(|at| schema.field(*at).name().as_str()).collect();
        let mut rows = TableRows::new(self, place, key, &names)?;
        let chosen = ProjectionMask::roots(builder.parquet_schema(), readable);
        let batches = builder.with_projection(chosen).build().map_err(|e| wrong(&e))?;
        for batch in batches {
            let batch: RecordBatch = batch.map_err(|e| wrong(&ParquetError::ArrowError(e.to_string())))?;
            for row in 0..batch.num_rows() {
                rows.add(|column| cell(batch.column(column), row))?;
            }
        }
        rows.finish()
    }
}

/// The types of columns that are read.
const READABLE: &str = "columns of integers, floats, booleans and strings are read";

/// The error of reading a Parquet file. An unsupported compression has its own message.
fn not_read(error: &ParquetError) -> String {
    let text = error.to_string();
    match text.split_once("Disabled feature at compile time: ") {
        Some((_, name)) => {
            let name = name.trim_end_matches('.');
            format!(
                "is compressed with {name}, which is not read; write it with zstd, snappy, gzip or brotli"
            )
        }
        None => format!("is not a Parquet file that can be read: {text}"),
    }
}

/// The line of a quote that opens a cell of a CSV text and is never closed. The reader would take all that follows for
/// one cell.
fn unclosed_quote(content: &[u8]) -> Option<usize> {
    let content = content.strip_prefix(b"\xef\xbb\xbf").unwrap_or(content);
    let (mut line, mut opened, mut begins) = (1, None, true);
    let mut bytes = content.iter().peekable();
    while let Some(byte) = bytes.next() {
        line += usize::from(*byte == b'\n');
        match (opened, byte) {
            (Some(_), b'"') if bytes.next_if_eq(&&b'"').is_some() => {}
            (Some(_), b'"') => opened = None,
            (Some(_), _) => {}
            (None, b'"') if begins => (opened, begins) = (Some(line), false),
            (None, byte) => begins = matches!(byte, b',' | b'\n' | b'\r'),
        }
    }
    opened
}

/// Adds rows of a table, one by one.
struct TableRows<'a> {
    data: &'a mut MemoryData,
    place: &'a str,
    key: Vec<KeyPart>,
    /// The fields' names, by column.
    names: Vec<u32>,
    row: usize,
    problems: Problems,
}

enum KeyPart {
    Literal(String),
    Column(usize),
}

impl<'a> TableRows<'a> {
    fn new(
        data: &'a mut MemoryData,
        place: &'a str,
        key: &str,
        columns: &[&str],
    ) -> Result<TableRows<'a>, Problems> {
        let mut seen: Vec<&str> = columns.to_vec();
        seen.sort_unstable();
        if let Some(pair) = seen.windows(2).find(|pair| pair[0] == pair[1]) {
            return Err(Problem::new(place, format!("has two columns `{}`", pair[0])).into());
        }
        let key = parse_key(key, columns)
            .map_err(|what| Problem::new(format!("{place}, pattern `{key}`"), what))?;
        let names = columns.iter().map(|name| data.name(name)).collect();
        Ok(TableRows { data, place, key, names, row: 0, problems: Problems::default() })
    }

    fn add(&mut self, cell: impl Fn(usize) -> Option<String>) -> Result<(), Problems> {
        self.row += 1;
        let (place, row) = (self.place, self.row);
        let at = || format!("{place}, row {row}");
        let mut key = String::new();
        for part in &self.key {
            match part {
                KeyPart::Literal(text) => key.push_str(text),
                KeyPart::Column(column) => match cell(*column) {
                    Some(value) => key.push_str(&value),
                    None => {
                        let name = self.data.field(self.names[*column]);
                        let what = format!("`{name}`, of which its key is made, is empty");
                        self.problems.error(Problem::new(at(), what));
                        return self.enough();
                    }
                },
            }
        }
        let fields = self.names.iter().enumerate();
        let fields = fields.filter_map(|(column, name)| Some((*name, cell(column)?.into()))).collect();
        self.data.add(at, &key, StoredEntry::Hash(fields), &mut self.problems);
        self.enough()
    }

    /// Stops at a table that has far too much wrong with it.
    fn enough(&mut self) -> Result<(), Problems> {
        if self.problems.errors.len() < LISTED { Ok(()) } else { Err(std::mem::take(&mut self.problems)) }
    }

    fn finish(self) -> Result<(), Problems> {
        if self.problems.is_fine() { Ok(()) } else { Err(self.problems) }
    }
}

fn parse_key(key: &str, columns: &[&str]) -> Result<Vec<KeyPart>, String> {
    let part = |piece: Piece<'_>| match piece {
        Piece::Literal(text) => Ok(KeyPart::Literal(text.to_owned())),
        Piece::Placeholder(name) => {
            let column = columns.iter().position(|column| *column == name).map(KeyPart::Column);
            column.ok_or_else(|| format!("the table has no column `{name}`; it has {}", columns.join(", ")))
        }
    };
    let parts: Vec<KeyPart> = pieces(key)?.into_iter().map(part).collect::<Result<_, String>>()?;
    if !parts.iter().any(|part| matches!(part, KeyPart::Column(_))) {
        return Err("names no column, so all rows would have the same key".to_owned());
    }
    Ok(parts)
}

fn is_readable(kind: &DataType) -> bool {
    match kind {
        DataType::Utf8 | DataType::Boolean | DataType::Float32 | DataType::Float64 => true,
        other => other.is_integer(),
    }
}

/// A value as text, as a store keeps it.
fn cell(array: &ArrayRef, row: usize) -> Option<String> {
    if array.is_null(row) {
        return None;
    }
    let mut text = String::new();
    macro_rules! number {
        ($kind:ty) => {
            write!(text, "{}", array.as_primitive::<$kind>().value(row))
        };
    }
    let written = match array.data_type() {
        DataType::Int8 => number!(Int8Type),
        DataType::Int16 => number!(Int16Type),
        DataType::Int32 => number!(Int32Type),
        DataType::Int64 => number!(Int64Type),
        DataType::UInt8 => number!(UInt8Type),
        DataType::UInt16 => number!(UInt16Type),
        DataType::UInt32 => number!(UInt32Type),
        DataType::UInt64 => number!(UInt64Type),
        DataType::Float32 => number!(Float32Type),
        DataType::Float64 => number!(Float64Type),
        DataType::Boolean => write!(text, "{}", array.as_boolean().value(row)),
        DataType::Utf8 => text.write_str(array.as_string::<i32>().value(row)),
        other => unreachable!("columns of type {other} are refused before"),
    };
    written.expect("a string takes all that is written");
    Some(text)
}
