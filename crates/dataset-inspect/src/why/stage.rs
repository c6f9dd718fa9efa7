//! A row in the files of one stage.

use std::io;
use std::path::{Path, PathBuf};

use anabranch_dataset::RowError;
use anabranch_dataset::output::{FileError, Folder, RowFile};
use anabranch_value::Value;

use super::StepStory;
use crate::report::{lines, row_files};

/// A row in one stage.
#[derive(Clone, Debug)]
pub struct StageStory {
    /// The name of the stage; `None` if there is only one.
    pub stage: Option<String>,
    /// The id of the row here.
    pub id: u64,
    /// The row as it is written.
    pub row: String,
    pub place: RowPlace,
    /// Cells of the row that have no value.
    pub errors: Vec<RowError>,
    /// The values in the files, those of dropped columns last.
    pub values: Vec<(String, Value)>,
    /// The steps behind the stage.
    pub steps: StepStory,
}

/// The place of a row in the files of a stage.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RowPlace {
    /// At this position of a file of the dataset's folder, from 0.
    InFile { file: PathBuf, position: u64, rows: u64 },
    /// A cell of it failed: see the errors.
    Dropped,
    /// A condition of `accept` was not met.
    NotAccepted,
    /// No file has it.
    Absent,
    /// The row is a part of another row that was never exploded.
    NoSuchPart { row: String },
}

/// The folder of a stage with the columns that are not in its rows.
const DROPPED_COLUMNS: &str = "dropped-columns-parquet-files";

impl StageStory {
    pub(super) fn read(
        folder: &Path,
        stage: Option<String>,
        (id, row): (u64, String),
        is_earlier: bool,
    ) -> Result<StageStory, FileError> {
        let errors = errors(folder, id)?;
        let (mut place, mut values) = (RowPlace::Absent, Vec::new());
        for file in row_files(folder, is_earlier)? {
            if let Some((position, rows)) = position(&file, id)? {
                values = values_at(&file, position)?;
                let apart = folder.join(DROPPED_COLUMNS).join(file.file_name().unwrap_or_default());
                if apart.exists() {
                    values.extend(values_at(&apart, position)?);
                }
                place = RowPlace::InFile { file, position, rows };
                break;
            }
            if Folder::open(folder)?.rejected(&file)?.contains(&id) {
                place = RowPlace::NotAccepted;
                break;
            }
        }
        if place == RowPlace::Absent && errors.iter().any(|error| !error.kept) {
            place = RowPlace::Dropped;
        }
        Ok(StageStory { stage, id, row, place, errors, values, steps: StepStory::Passed })
    }
}

/// The position of a row in a file, and the number of rows there.
fn position(file: &Path, id: u64) -> Result<Option<(u64, u64)>, FileError> {
    let found = RowFile::open(file)?;
    let position = found.ids().iter().position(|found| *found == Some(id));
    Ok(position.map(|position| (position as u64, found.rows())))
}

fn values_at(file: &Path, position: u64) -> Result<Vec<(String, Value)>, FileError> {
    let mut start = 0;
    for table in RowFile::open(file)? {
        let table = table?;
        let end = start + table.ids.len() as u64;
        if position < end {
            let row = (position - start) as usize;
            let value = |column: anabranch_dataset::processor::TableColumn| {
                let value = column.values[row].clone();
                (column.name, value)
            };
            return Ok(table.columns.into_iter().map(value).collect());
        }
        start = end;
    }
    Ok(Vec::new())
}

/// The errors of a row, in the files of its row groups.
fn errors(folder: &Path, id: u64) -> Result<Vec<RowError>, FileError> {
    let path = folder.join("errors-files");
    let unreadable = |cause: io::Error| FileError { action: "read", path: path.clone(), cause };
    let entries = match std::fs::read_dir(&path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries.map_err(unreadable)?,
    };
    let mut files = Vec::new();
    for entry in entries {
        files.push(entry.map_err(unreadable)?.path());
    }
    files.sort();
    let mut errors = Vec::new();
    for file in files.iter().filter(|file| file.extension().is_some_and(|end| end == "jsonl")) {
        lines(file, |line| {
            let error: RowError = serde_json::from_str(line)?;
            errors.extend((error.row == id).then_some(error));
            Ok(())
        })?;
    }
    Ok(errors)
}
