//! The dataset as a whole: processors that see all of it, and exports.

use std::io::{self, Write};
use std::path::Path;
use std::sync::Arc;

use anabranch_value::Value;

use super::files::{FileError, cannot};
use super::folder::Folder;
use super::metadata::Metadata;
use super::read::read_rows;
use crate::error::Error;
use crate::processor::{Processor, Table};

/// Lets the processors that see the whole dataset change it, and writes it again in files of the same size.
pub(crate) fn after_generation(
    folder: &Folder,
    processors: &[Arc<dyn Processor>],
    metadata: &mut Metadata,
) -> Result<(), Error> {
    let processors: Vec<_> =
        processors.iter().filter(|processor| processor.points().after_generation).collect();
    if processors.is_empty() {
        return Ok(());
    }
    let old = folder.row_files()?;
    let mut table = Table::default();
    for path in &old {
        read_rows(path, |rows| {
            table.append(rows);
            Ok::<(), Error>(())
        })?;
    }
    for processor in processors {
        table = processor
            .after_generation(table)
            .map_err(|fault| Error::Processor { name: processor.name().to_owned(), fault })?;
    }
    metadata.actual_num_records = table.ids.len() as u64;
    metadata.file_paths = folder.rewrite(&table, metadata.buffer_size as usize, &old)?;
    metadata.num_completed_batches = metadata.file_paths.len() as u64;
    metadata.total_num_batches = metadata.num_completed_batches;
    Ok(())
}

/// A format that rows can be exported to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExportFormat {
    /// One JSON object per line.
    Jsonl,
    /// Comma-separated values with a header; lists and maps are written as JSON.
    Csv,
}

/// Writes the rows of a dataset in another format. Returns the number of rows. Blocks.
pub fn export(
    folder: &Folder,
    format: ExportFormat,
    to: &Path,
    out: &mut dyn Write,
) -> Result<u64, FileError> {
    let mut rows = 0;
    let mut header_is_written = format != ExportFormat::Csv;
    for path in folder.row_files()? {
        read_rows::<FileError>(&path, |table| {
            rows += table.ids.len() as u64;
            let is_first = !std::mem::replace(&mut header_is_written, true);
            write_table(&table, format, is_first, out).map_err(cannot("write", to))
        })?;
    }
    out.flush().map_err(cannot("write", to))?;
    Ok(rows)
}

/// Writes rows in a format. The first rows of a file of comma-separated values come below a header.
pub fn write_table(
    table: &Table,
    format: ExportFormat,
    has_header: bool,
    out: &mut dyn Write,
) -> io::Result<()> {
    if has_header && format == ExportFormat::Csv {
        csv_line(out, table.columns.iter().map(|column| column.name.clone()))?;
    }
    (0..table.ids.len()).try_for_each(|row| match format {
        ExportFormat::Jsonl => writeln!(out, "{}", table.row(row).to_json()),
        ExportFormat::Csv => csv_line(out, table.columns.iter().map(|column| csv_cell(&column.values[row]))),
    })
}

fn csv_line(out: &mut dyn Write, cells: impl Iterator<Item = String>) -> io::Result<()> {
    let mut line = csv::Writer::from_writer(Vec::new());
    line.write_record(cells)?;
    out.write_all(&line.into_inner().map_err(|error| error.into_error())?)
}

fn csv_cell(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::Text(text) => text.to_string(),
        other => other.to_json(),
    }
}
