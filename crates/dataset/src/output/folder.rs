//! The folder of a dataset.

use std::fs;
use std::ops::Range;
use std::path::{Path, PathBuf};

use anabranch_value::Value;
use arrow_array::RecordBatch;

use super::arrow::record_batch;
use super::files::{FileError, cannot, write_json, write_parquet_parts, write_whole};
use super::metadata::{METADATA, Metadata};
use super::read::IDS_NOTE;
use super::resume::{RANGE_NOTE, REJECTED_NOTE, UNFINISHED_NOTE, entries, group_number};
use super::status::STATUS;
use super::{arrow, errors_file};
use crate::errors::RowError;
use crate::processor::Table;
use crate::stages::STAGES;

/// The folder of a dataset, or of one of its stages.
#[derive(Clone, Debug)]
pub struct Folder {
    path: PathBuf,
    /// The output folder of the dataset, which has the events and the state of the build.
    home: PathBuf,
}

/// The folder of the rows.
pub(super) const ROWS: &str = "parquet-files";
/// The folder of columns that are not in the rows.
pub(super) const DROPPED: &str = "dropped-columns-parquet-files";
/// The folder of the additional tables that processors write.
pub(super) const PROCESSED: &str = "processors-files";
/// The folder of the errors, one file per row group that has some.
pub(super) const ERRORS: &str = "errors-files";
/// The folder of the journal. A new build keeps it, because its replies were paid for.
pub(crate) const JOURNAL: &str = "journal";
const ERRORS_TABLE: &str = "errors.parquet";
const ERRORS_LINES: &str = "errors.jsonl";
/// The entries of a dataset's folder that a new build may replace.
const OWN: [&str; 10] =
    [ROWS, DROPPED, PROCESSED, ERRORS, METADATA, ERRORS_TABLE, ERRORS_LINES, EVENTS, STATUS, STAGES];
/// The file with one JSON object per event of the build.
const EVENTS: &str = "events.jsonl";

/// The tables of one row group.
pub(crate) struct GroupFiles {
    pub(crate) rows: Table,
    pub(crate) dropped: Option<Table>,
    /// With the name of the processor.
    pub(crate) processed: Vec<(String, Table)>,
    pub(crate) errors: Vec<RowError>,
    /// Rows that were not accepted.
    pub(crate) rejected: Vec<u64>,
    /// The rows that the group was built for.
    pub(crate) ids: Range<u64>,
    /// Rows that are not there because the build was stopped.
    pub(crate) unfinished: u64,
}

impl Folder {
    /// A folder for rows, new or with its existing content.
    pub(crate) fn create(path: &Path) -> Result<Folder, FileError> {
        let rows = path.join(ROWS);
        fs::create_dir_all(&rows).map_err(cannot("create", &rows))?;
        Ok(Folder { path: path.to_owned(), home: path.to_owned() })
    }

    /// The folder of a stage below this one.
    pub(crate) fn stage(&self, name: &str) -> Result<Folder, FileError> {
        let stage = Folder::create(&self.path.join(name))?;
        Ok(Folder { home: self.path.clone(), ..stage })
    }

    /// The output folder of the dataset.
    pub(crate) fn home(&self) -> &Path {
        &self.home
    }

    /// True if the folder has files of a dataset.
    pub(crate) fn holds_dataset(path: &Path) -> bool {
        let is_there = |name: &&str| fs::symlink_metadata(path.join(name)).is_ok();
        Folder::has_rows(path) || OWN.iter().any(|name| *name != ROWS && is_there(name))
    }

    /// True if the folder has files of rows.
    pub(crate) fn has_rows(path: &Path) -> bool {
        fs::read_dir(path.join(ROWS)).is_ok_and(|mut rows| rows.next().is_some())
    }

    /// True if the folder has stages of a build.
    pub(crate) fn has_stages(path: &Path) -> bool {
        path.join(STAGES).exists()
    }

    /// Removes the files of row groups. Blocks.
    pub(crate) fn clear_rows(&self) -> Result<(), FileError> {
        self.remove_groups(|_| false)
    }

    /// Removes the files of a dataset, and nothing else. The journal stays.
    pub(crate) fn clear(path: &Path) -> Result<(), FileError> {
        for own in OWN.map(|name| path.join(name)) {
            let Ok(found) = fs::symlink_metadata(&own) else { continue };
            let removed = if found.is_dir() { fs::remove_dir_all(&own) } else { fs::remove_file(&own) };
            removed.map_err(cannot("remove", &own))?;
        }
        Ok(())
    }

    /// A folder that holds a dataset.
    pub fn open(path: &Path) -> Result<Folder, FileError> {
        let rows = path.join(ROWS);
        fs::read_dir(&rows).map_err(cannot("read", &rows))?;
        Ok(Folder { path: path.to_owned(), home: path.to_owned() })
    }

    /// The path of the folder.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The file of the build's events: one JSON object per line.
    pub fn events(&self) -> PathBuf {
        self.home.join(EVENTS)
    }

    /// The file of the errors: one JSON object per failed cell.
    pub fn errors(&self) -> PathBuf {
        self.path.join(ERRORS_LINES)
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
        numbered_files(&self.path.join(ROWS))
    }

    /// Writes a row group. Blocks.
    pub(crate) fn write_group(&self, group: u64, files: &GroupFiles) -> Result<(), FileError> {
        if let Some(dropped) = &files.dropped {
            self.write_table(DROPPED, group, dropped, &[])?;
        }
        for (name, table) in &files.processed {
            self.write_table(&format!("{PROCESSED}/{name}"), group, table, &[])?;
        }
        let name = format!("batch_{group:05}.jsonl");
        if !files.errors.is_empty() {
            let path = self.file(ERRORS, &name)?;
            write_whole(&path, |file| errors_file::write_lines(&files.errors, file))?;
        } else if let Some(old) = Some(self.path.join(ERRORS).join(&name)).filter(|old| old.exists()) {
            fs::remove_file(&old).map_err(cannot("remove", &old))?;
        }
        let rejected: Vec<Option<u64>> = files.rejected.iter().copied().map(Some).collect();
        let notes = [
            (RANGE_NOTE, format!("{}..{}", files.ids.start, files.ids.end)),
            (UNFINISHED_NOTE, files.unfinished.to_string()),
            (REJECTED_NOTE, arrow::ranges(&rejected)),
        ];
        self.write_table(ROWS, group, &files.rows, &notes)
    }

    /// Puts the errors of all groups together, as one table and one file of JSON lines, those of earlier stages first.
    /// Blocks.
    pub(crate) fn write_errors(&self, earlier: &[PathBuf]) -> Result<(), FileError> {
        let mut parts = Vec::new();
        for folder in earlier.iter().chain([&self.path]) {
            parts.extend(numbered_files(&folder.join(ERRORS))?);
        }
        write_whole(&self.path.join(ERRORS_LINES), |file| {
            parts.iter().try_for_each(|path| std::io::copy(&mut fs::File::open(path)?, file).map(drop))
        })?;
        let parts = parts.iter().map(|path| errors_file::read_lines(path));
        write_parquet_parts(&self.path.join(ERRORS_TABLE), errors_file::schema(), parts, &[])
    }

    /// Writes the whole dataset again in files of `size` rows, and removes the old ones. Blocks.
    pub(super) fn rewrite(
        &self,
        table: &Table,
        size: usize,
        old: &[PathBuf],
    ) -> Result<Vec<String>, FileError> {
        let mut names = Vec::new();
        for (group, start) in (0..table.ids.len().max(1)).step_by(size.max(1)).enumerate() {
            let part = table.slice(start..(start + size).min(table.ids.len()));
            self.write_table(ROWS, group as u64, &part, &[])?;
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
        write_json(&self.path.join(METADATA), metadata)
    }

    /// Keeps a copy of the configuration. Blocks.
    pub(crate) fn write_config(&self, source: &str) -> Result<(), FileError> {
        // JSON is YAML too.
        let path = self.path.join("config.yaml");
        write_whole(&path, |file| std::io::Write::write_all(file, source.as_bytes()))
    }

    /// Writes a table as the file of that number in a folder below this one. Blocks.
    pub(crate) fn write_table(
        &self,
        folder: &str,
        group: u64,
        table: &Table,
        notes: &[(&str, String)],
    ) -> Result<(), FileError> {
        let path = self.file(folder, &format!("batch_{group:05}.parquet"))?;
        let rows: RecordBatch =
            record_batch(table).map_err(|error| cannot("write", &path)(std::io::Error::other(error)))?;
        let mut notes = notes.to_vec();
        notes.push((IDS_NOTE, arrow::ranges(&table.ids)));
        write_parquet_parts(&path, rows.schema(), std::iter::once(Ok(rows)), &notes)
    }

    fn file(&self, folder: &str, name: &str) -> Result<PathBuf, FileError> {
        let folder = self.path.join(folder);
        fs::create_dir_all(&folder).map_err(cannot("create", &folder))?;
        Ok(folder.join(name))
    }
}

/// The files of row groups in a folder, in order; none if there is no such folder.
fn numbered_files(folder: &Path) -> Result<Vec<PathBuf>, FileError> {
    let mut files = entries(folder)?;
    files.retain(|path| group_number(path).is_some());
    // Names of more than five digits do not sort as text.
    files.sort_by_key(|path| group_number(path));
    Ok(files)
}
