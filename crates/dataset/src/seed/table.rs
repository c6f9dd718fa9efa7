//! The files of a seed, read and joined to one table.

use std::path::{Path, PathBuf};

use anabranch_value::Value;

use super::column::{Column, Texts};
use super::error::Error;
use super::types::{join, join_texts, settled, typed};
use super::{csv, json, parquet};
use crate::column_type::ColumnType;

/// The most that a seed may hold.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    pub(super) rows: u64,
    pub(super) bytes: u64,
    pub(super) columns: usize,
}

impl Limits {
    pub(super) const DEFAULT: Limits = Limits { rows: 50_000_000, bytes: 2 << 30, columns: 10_000 };

    /// Checks that this many rows and bytes are within the limits.
    pub(super) fn check(&self, rows: u64, bytes: u64) -> Result<(), Error> {
        if rows > self.rows {
            return Err(Error::TooLarge { limit: self.rows, unit: "rows" });
        }
        if bytes > self.bytes {
            return Err(Error::TooLarge { limit: self.bytes >> 20, unit: "MiB in memory" });
        }
        Ok(())
    }

    /// The limits that remain beside this many rows and bytes.
    fn less(&self, rows: u64, bytes: u64) -> Limits {
        Limits { rows: self.rows.saturating_sub(rows), bytes: self.bytes.saturating_sub(bytes), ..*self }
    }
}

/// One file.
#[derive(Debug)]
pub(super) struct FileTable {
    pub(super) rows: u64,
    pub(super) columns: Vec<FileColumn>,
}

/// One column of a file.
#[derive(Debug)]
pub(super) struct FileColumn {
    pub(super) name: String,
    pub(super) cells: FileCells,
    /// `None` if all cells are null.
    pub(super) column_type: Option<ColumnType>,
}

#[derive(Debug)]
pub(super) enum FileCells {
    /// Texts of a CSV file, whose type is not known before all files are read.
    Untyped(Texts),
    Typed(Column),
}

impl FileCells {
    fn bytes(&self) -> u64 {
        match self {
            FileCells::Untyped(texts) => texts.bytes(),
            FileCells::Typed(column) => column.bytes(),
        }
    }
}

/// All files of a seed as one table.
pub(super) struct Table {
    pub(super) columns: Vec<(String, ColumnType)>,
    /// The number of the first row behind each part.
    ends: Vec<u64>,
    /// Per file its columns, in the order of `columns`.
    parts: Vec<Vec<Column>>,
}

impl Table {
    pub(super) fn read(paths: &[PathBuf], limits: Limits) -> Result<Table, Error> {
        let mut files: Vec<FileTable> = Vec::with_capacity(paths.len());
        let (mut rows, mut bytes) = (0, 0);
        for path in paths {
            let file = read_file(path, limits.less(rows, bytes))?;
            rows += file.rows;
            bytes += file.columns.iter().map(|column| column.cells.bytes()).sum::<u64>();
            limits.check(rows, bytes)?;
            files.push(file);
        }
        unify(paths, files)
    }

    pub(super) fn rows(&self) -> u64 {
        self.ends.last().copied().unwrap_or(0)
    }

    pub(super) fn get(&self, row: u64, column: usize) -> Value {
        let part = self.ends.partition_point(|end| *end <= row);
        let start = part.checked_sub(1).map_or(0, |before| self.ends[before]);
        self.parts[part][column].get((row - start) as usize, &self.columns[column].1)
    }
}

fn read_file(path: &Path, limits: Limits) -> Result<FileTable, Error> {
    let extension = path.extension().and_then(|extension| extension.to_str()).map(str::to_ascii_lowercase);
    match extension.as_deref() {
        Some("csv") => csv::read(path, limits),
        Some("json") => json::read_array(path, limits),
        Some("jsonl") => json::read_lines(path, limits),
        Some("parquet") => parquet::read(path, limits),
        _ => Err(Error::Format { path: path.to_owned() }),
    }
}

/// One type per column for all files.
fn unify(paths: &[PathBuf], mut files: Vec<FileTable>) -> Result<Table, Error> {
    let names: Vec<String> = match files.first() {
        Some(first) => first.columns.iter().map(|column| column.name.clone()).collect(),
        None => Vec::new(),
    };
    for (file, path) in files.iter_mut().zip(paths) {
        same_columns(&names, file, path, &paths[0])?;
    }
    let mut columns = Vec::with_capacity(names.len());
    for (at, name) in names.into_iter().enumerate() {
        columns.push((name, column_type(paths, &files, at)?));
    }
    let (mut ends, mut parts, mut end) = (Vec::new(), Vec::new(), 0);
    for file in files {
        end += file.rows;
        ends.push(end);
        let part =
            file.columns.into_iter().zip(&columns).map(|(column, (_, column_type))| match column.cells {
                FileCells::Untyped(texts) => typed(texts, column_type),
                FileCells::Typed(cells) => cells,
            });
        parts.push(part.collect());
    }
    Ok(Table { columns, ends, parts })
}

/// Puts the columns of a file into the order of the first.
fn same_columns(names: &[String], file: &mut FileTable, path: &Path, first: &Path) -> Result<(), Error> {
    let wrong = |column: &str, problem: String| {
        let problem = format!("{problem}; the files of a seed have the same columns");
        Error::Column { path: path.to_owned(), column: column.to_owned(), problem }
    };
    if let Some(extra) = file.columns.iter().find(|column| !names.contains(&column.name)) {
        return Err(wrong(&extra.name, format!("`{}` does not have it", first.display())));
    }
    for (at, name) in names.iter().enumerate() {
        match file.columns.iter().position(|column| column.name == *name) {
            Some(found) => file.columns.swap(at, found),
            None => return Err(wrong(name, format!("it is missing, and `{}` has it", first.display()))),
        }
    }
    Ok(())
}

fn column_type(paths: &[PathBuf], files: &[FileTable], at: usize) -> Result<ColumnType, Error> {
    let mut known: Option<(ColumnType, bool, &Path)> = None;
    for (file, path) in files.iter().zip(paths) {
        let column = &file.columns[at];
        let Some(found) = column.column_type.clone() else { continue };
        let untyped = matches!(column.cells, FileCells::Untyped(_));
        known = Some(match known {
            None => (found, untyped, path),
            Some((before, true, first)) if untyped => (join_texts(before, found), true, first),
            Some((before, _, first)) => {
                let joined = join(before.clone(), found.clone());
                let mixed = joined == ColumnType::Json && before != joined && found != joined;
                if mixed {
                    let problem = format!(
                        "it is {} here and {} in `{}`; write both files with one type",
                        word(&found),
                        word(&before),
                        first.display()
                    );
                    return Err(Error::Column { path: path.clone(), column: column.name.clone(), problem });
                }
                (joined, false, first)
            }
        });
    }
    Ok(known.map_or(ColumnType::Text, |(column_type, ..)| settled(column_type)))
}

fn word(column_type: &ColumnType) -> &'static str {
    match column_type {
        ColumnType::Bool => "true or false",
        ColumnType::Int => "a whole number",
        ColumnType::Float => "a number",
        ColumnType::Text => "text",
        ColumnType::Json => "JSON of any shape",
        ColumnType::List(_) => "a list",
        ColumnType::Struct(_) => "a map",
    }
}
