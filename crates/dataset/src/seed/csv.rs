//! CSV files: a header, commas, double quotes; an empty cell is null.

use std::fs::File;
use std::io::{BufReader, Read, Seek, SeekFrom};
use std::path::Path;

use csv::{ReaderBuilder, StringRecord};

use super::column::Texts;
use super::error::Error;
use super::table::{FileCells, FileColumn, FileTable, Limits};
use super::types::{join_texts, type_of_text};
use crate::column_type::ColumnType;

/// Rows between two looks at the limits.
const ROWS_PER_CHECK: u64 = 1024;

pub(super) fn read(path: &Path, limits: Limits) -> Result<FileTable, Error> {
    let file = open(path)?;
    let mut reader = ReaderBuilder::new().from_reader(BufReader::new(file));
    let wrong = |error: csv::Error| describe(path, &error);
    let header = reader.headers().map_err(wrong)?.clone();
    check_header(path, &header, limits)?;
    let mut columns: Vec<(Texts, Option<ColumnType>)> = header.iter().map(|_| Default::default()).collect();
    let mut record = StringRecord::new();
    let mut rows = 0;
    while reader.read_record(&mut record).map_err(wrong)? {
        for (cell, (texts, column_type)) in record.iter().zip(&mut columns) {
            if cell.is_empty() {
                texts.push(None);
                continue;
            }
            texts.push(Some(cell));
            if *column_type != Some(ColumnType::Text) {
                let found = type_of_text(cell);
                *column_type = Some(match column_type.take() {
                    Some(known) => join_texts(known, found),
                    None => found,
                });
            }
        }
        rows += 1;
        if rows % ROWS_PER_CHECK == 0 {
            limits.check(rows, columns.iter().map(|(texts, _)| texts.bytes()).sum())?;
        }
    }
    let columns = header.iter().zip(columns).map(|(name, (texts, column_type))| FileColumn {
        name: name.to_owned(),
        cells: FileCells::Untyped(texts),
        column_type,
    });
    Ok(FileTable { rows, columns: columns.collect() })
}

/// The file, behind a byte order mark if it has one.
fn open(path: &Path) -> Result<File, Error> {
    let io = |cause| Error::Io { path: path.to_owned(), cause };
    let mut file = File::open(path).map_err(io)?;
    let mut mark = [0; 3];
    let has_mark = file.read_exact(&mut mark).is_ok() && mark == [0xef, 0xbb, 0xbf];
    file.seek(SeekFrom::Start(if has_mark { 3 } else { 0 })).map_err(io)?;
    Ok(file)
}

fn check_header(path: &Path, header: &StringRecord, limits: Limits) -> Result<(), Error> {
    let wrong = |problem: String| Error::Line { path: path.to_owned(), line: 1, problem };
    if header.is_empty() {
        return Err(wrong("the file is empty: the first line names the columns".into()));
    }
    if header.len() > limits.columns {
        return Err(Error::TooLarge { limit: limits.columns as u64, unit: "columns" });
    }
    let mut seen = std::collections::HashSet::new();
    for (at, name) in header.iter().enumerate() {
        if name.is_empty() {
            return Err(wrong(format!("column {} has no name in the header", at + 1)));
        }
        if !seen.insert(name) {
            return Err(wrong(format!("the header has the column `{name}` twice: rename one")));
        }
    }
    Ok(())
}

fn describe(path: &Path, error: &csv::Error) -> Error {
    let path = path.to_owned();
    let line = error.position().map_or(1, csv::Position::line);
    let problem = match error.kind() {
        csv::ErrorKind::Io(cause) => {
            return Error::Io { path, cause: std::io::Error::new(cause.kind(), cause.to_string()) };
        }
        csv::ErrorKind::UnequalLengths { expected_len, len, .. } => {
            format!(
                "the row has {len} cells, and the header has {expected_len}: is a quote or a comma missing?"
            )
        }
        csv::ErrorKind::Utf8 { err, .. } => {
            format!("cell {} is not UTF-8: convert the file to UTF-8", err.field() + 1)
        }
        _ => error.to_string(),
    };
    Error::Line { path, line, problem }
}
