//! The files that an earlier build left in a folder, and which of its row groups are kept.

use std::fs::{self, File};
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};

use parquet::file::reader::FileReader;
use parquet::file::serialized_reader::SerializedFileReader;

use super::arrow::all_row_numbers;
use super::errors_file;
use super::files::{FileError, cannot};
use super::folder::{DROPPED, ERRORS, Folder, PROCESSED, ROWS};
use super::read::note_in;
use crate::errors::RowError;

/// Notes in the file of a row group: the rows that it was built for, the number of missing rows because the build was
/// stopped, and the rows that were not accepted.
pub(super) const RANGE_NOTE: &str = "anabranch.rows";
pub(super) const UNFINISHED_NOTE: &str = "anabranch.unfinished";
pub(super) const REJECTED_NOTE: &str = "anabranch.rejected";

/// A row group that is on disk.
#[derive(Clone, Debug)]
pub(crate) struct GroupOnDisk {
    /// The rows that it was built for.
    pub(crate) ids: Range<u64>,
    /// The rows that it has.
    pub(crate) rows: u64,
    /// Rows that are missing because the build was stopped.
    pub(crate) unfinished: u64,
    pub(crate) errors: Vec<RowError>,
    /// The number of rows that were not accepted.
    pub(crate) rejected: u64,
}

impl Folder {
    /// The row group of a number, if its file exists and records the rows that it was built for. Blocks.
    pub(crate) fn group(&self, group: u64) -> Result<Option<GroupOnDisk>, FileError> {
        let path = self.path().join(ROWS).join(format!("batch_{group:05}.parquet"));
        let file = match File::open(&path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(cannot("read", &path)(error)),
        };
        // A file with its final name is whole. One that cannot be read was not written by a build: it is built again.
        let Ok(reader) = SerializedFileReader::new(file) else { return Ok(None) };
        let metadata = reader.metadata().file_metadata();
        let note = |name: &str| note_in(metadata, name);
        let Some(ids) = note(RANGE_NOTE).and_then(range) else { return Ok(None) };
        let Some(unfinished) = note(UNFINISHED_NOTE).and_then(|count| count.parse().ok()) else {
            return Ok(None);
        };
        let rows = u64::try_from(metadata.num_rows()).unwrap_or(0);
        let rejected = note(REJECTED_NOTE).map_or(0, |rows| all_row_numbers(rows).len() as u64);
        Ok(Some(GroupOnDisk { ids, rows, unfinished, errors: self.group_errors(group)?, rejected }))
    }

    fn group_errors(&self, group: u64) -> Result<Vec<RowError>, FileError> {
        let path = self.path().join(ERRORS).join(format!("batch_{group:05}.jsonl"));
        match errors_file::read_errors(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
            read => read.map_err(cannot("read", &path)),
        }
    }

    /// Removes the files of all row groups except for those that `keep` accepts. Blocks.
    pub(crate) fn remove_groups(&self, keep: impl Fn(u64) -> bool) -> Result<(), FileError> {
        let processed = entries(&self.path().join(PROCESSED))?;
        let folders = [ROWS, DROPPED, ERRORS].map(|name| self.path().join(name));
        for folder in folders.into_iter().chain(processed) {
            for path in entries(&folder)? {
                if group_number(&path).is_some_and(|group| !keep(group)) {
                    fs::remove_file(&path).map_err(cannot("remove", &path))?;
                }
            }
        }
        Ok(())
    }
}

/// The entries of a folder; none if there is no such folder.
pub(super) fn entries(folder: &Path) -> Result<Vec<PathBuf>, FileError> {
    let read = match fs::read_dir(folder) {
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
            return Ok(Vec::new());
        }
        read => read.map_err(cannot("read", folder))?,
    };
    let paths = read.map(|entry| Ok(entry?.path())).collect::<io::Result<Vec<_>>>();
    paths.map_err(cannot("read", folder))
}

/// The number in a name such as `batch_00012.parquet`.
pub(super) fn group_number(path: &Path) -> Option<u64> {
    path.file_stem()?.to_str()?.strip_prefix("batch_")?.parse().ok()
}

fn range(text: &str) -> Option<Range<u64>> {
    let (start, end) = text.split_once("..")?;
    Some(start.parse().ok()?..end.parse().ok()?)
}
