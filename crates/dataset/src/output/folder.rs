//! The folder of a dataset.

use std::fs;
use std::path::{Path, PathBuf};

use anabranch_value::Value;
use arrow_array::RecordBatch;

use super::arrow::record_batch;
use super::files::{FileError, cannot, write_parquet_parts, write_whole};
use super::metadata::Metadata;
use super::{arrow, errors_file};
use crate::errors::RowError;
use crate::processor::Table;

/// The folder of a dataset.
#[derive(Clone, Debug)]
pub struct Folder {
    path: PathBuf,
}

/// The folder of the rows.
const ROWS: &str = "parquet-files";
/// The folder of columns that are not in the rows.
const DROPPED: &str = "dropped-columns-parquet-files";
/// The folder of what processors write beside the rows.
const PROCESSED: &str = "processors-files";
/// The folder of the errors, one file per row group that has some.
const ERRORS: &str = "errors-files";
const METADATA: &str = "metadata.json";
const ERRORS_TABLE: &str = "errors.parquet";
const ERRORS_LINES: &str = "errors.jsonl";
/// The entries of a dataset's folder that a new build may replace.
const OWN: [&str; 8] = [ROWS, DROPPED, PROCESSED, ERRORS, METADATA, ERRORS_TABLE, ERRORS_LINES, EVENTS];
/// The file with one JSON object per event of the build.
const EVENTS: &str = "events.jsonl";

/// The tables of one row group.
pub(crate) struct GroupFiles {
    pub(crate) rows: Table,
    pub(crate) dropped: Option<Table>,
    /// With the name of the processor.
    pub(crate) processed: Vec<(String, Table)>,
    pub(crate) errors: Vec<RowError>,
}

impl Folder {
    /// A new folder, or an empty one. A folder that holds a dataset is refused, unless `replace`: then the dataset's own
    /// files are removed, and nothing else.
    pub fn create(path: &Path, replace: bool) -> Result<Folder, FileError> {
        fs::create_dir_all(path).map_err(cannot("create", path))?;
        for name in OWN {
            let own = path.join(name);
            if fs::symlink_metadata(&own).is_err() {
                continue;
            }
            if !replace {
                let what = "it holds a dataset already; choose another folder, or replace it";
                return Err(FileError {
                    action: "build into",
                    path: path.to_owned(),
                    cause: std::io::Error::new(std::io::ErrorKind::AlreadyExists, what),
                });
            }
            let removed = if own.is_dir() { fs::remove_dir_all(&own) } else { fs::remove_file(&own) };
            removed.map_err(cannot("remove", &own))?;
        }
        let rows = path.join(ROWS);
        fs::create_dir_all(&rows).map_err(cannot("create", &rows))?;
        Ok(Folder { path: path.to_owned() })
    }

    /// A folder that holds a dataset.
    pub fn open(path: &Path) -> Result<Folder, FileError> {
        let rows = path.join(ROWS);
        fs::read_dir(&rows).map_err(cannot("read", &rows))?;
        Ok(Folder { path: path.to_owned() })
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The file of the build's events: one JSON object per line.
    pub fn events(&self) -> PathBuf {
        self.path.join(EVENTS)
    }

    /// Adds an event. Blocks.
    pub(crate) fn write_event(&self, event: &Value) -> Result<(), FileError> {
        let path = self.events();
        let line = format!("{}\n", event.to_json());
        let mut file =
            fs::OpenOptions::new().create(true).append(true).open(&path).map_err(cannot("write", &path))?;
        std::io::Write::write_all(&mut file, line.as_bytes()).map_err(cannot("write", &path))
    }

    /// The files with the rows, in order.
    pub fn row_files(&self) -> Result<Vec<PathBuf>, FileError> {
        let folder = self.path.join(ROWS);
        let mut files = Vec::new();
        for entry in fs::read_dir(&folder).map_err(cannot("read", &folder))? {
            let path = entry.map_err(cannot("read", &folder))?.path();
            if path.extension().is_some_and(|extension| extension == "parquet") {
                files.push(path);
            }
        }
        // By number: names of more than five digits do not sort as text.
        files.sort_by_key(|path| (path.as_os_str().len(), path.clone()));
        Ok(files)
    }

    /// Writes a row group. Blocks.
    pub(crate) fn write_group(&self, group: u64, files: &GroupFiles) -> Result<(), FileError> {
        if let Some(dropped) = &files.dropped {
            self.write_table(DROPPED, group, dropped)?;
        }
        for (name, table) in &files.processed {
            self.write_table(&format!("{PROCESSED}/{name}"), group, table)?;
        }
        if !files.errors.is_empty() {
            let path = self.file(ERRORS, &format!("batch_{group:05}.jsonl"))?;
            write_whole(&path, |file| errors_file::write_lines(&files.errors, file))?;
        }
        self.write_table(ROWS, group, &files.rows)
    }

    /// Puts the errors of all groups together, as one table and one file of JSON lines. Blocks.
    pub(crate) fn write_errors(&self, groups: u64) -> Result<(), FileError> {
        let parts = (0..groups).map(|group| self.path.join(ERRORS).join(format!("batch_{group:05}.jsonl")));
        let parts: Vec<PathBuf> = parts.filter(|path| path.exists()).collect();
        write_whole(&self.path.join(ERRORS_LINES), |file| {
            parts.iter().try_for_each(|path| std::io::copy(&mut fs::File::open(path)?, file).map(drop))
        })?;
        let parts = parts.iter().map(|path| errors_file::read_lines(path));
        write_parquet_parts(&self.path.join(ERRORS_TABLE), errors_file::schema(), parts, &[])
    }

    /// Writes the whole dataset anew in files of so many rows, and removes the old ones. Blocks.
    pub(super) fn rewrite(
        &self,
        table: &Table,
        size: usize,
        old: &[PathBuf],
    ) -> Result<Vec<String>, FileError> {
        let mut names = Vec::new();
        for (group, start) in (0..table.ids.len().max(1)).step_by(size.max(1)).enumerate() {
            let part = table.slice(start..(start + size).min(table.ids.len()));
            self.write_table(ROWS, group as u64, &part)?;
            names.push(format!("{ROWS}/batch_{group:05}.parquet"));
        }
        for path in old {
            if !names.iter().any(|name| self.path.join(name) == *path) {
                fs::remove_file(path).map_err(cannot("remove", path))?;
            }
        }
        Ok(names)
    }

    /// Writes the metadata. Blocks.
    pub(crate) fn write_metadata(&self, metadata: &Metadata) -> Result<(), FileError> {
        let path = self.path.join(METADATA);
        write_whole(&path, |file| {
            serde_json::to_writer_pretty(&mut *file, metadata)?;
            std::io::Write::write_all(file, b"\n")
        })
    }

    /// Keeps a copy of the configuration. Blocks.
    pub(crate) fn write_config(&self, source: &str) -> Result<(), FileError> {
        // JSON is YAML too.
        let path = self.path.join("config.yaml");
        write_whole(&path, |file| std::io::Write::write_all(file, source.as_bytes()))
    }

    fn write_table(&self, folder: &str, group: u64, table: &Table) -> Result<(), FileError> {
        let path = self.file(folder, &format!("batch_{group:05}.parquet"))?;
        let rows: RecordBatch =
            record_batch(table).map_err(|error| cannot("write", &path)(std::io::Error::other(error)))?;
        let notes = [("anabranch.row_ids", arrow::ranges(&table.ids))];
        write_parquet_parts(&path, rows.schema(), std::iter::once(Ok(rows)), &notes)
    }

    fn file(&self, folder: &str, name: &str) -> Result<PathBuf, FileError> {
        let folder = self.path.join(folder);
        fs::create_dir_all(&folder).map_err(cannot("create", &folder))?;
        Ok(folder.join(name))
    }
}
