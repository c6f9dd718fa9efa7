//! The rows behind the steps of a stage, as a table or as files.

use std::io;
use std::ops::Range;
use std::path::Path;

use anabranch_value::Value;
use serde::{Deserialize, Serialize};

use super::lineage::write_fates;
use super::rows::StageRows;
use super::select::{Selection, StepReport, StepSetting, select};
use crate::column_type::ColumnType;
use crate::error::Error;
use crate::output::{FileError, Folder, cannot, write_json};
use crate::processor::{Table, TableColumn};

/// The folder of a stage with the rows behind its steps.
const ROWS: &str = "rows-after-steps";
/// The file that is written after all others.
const DONE: &str = "steps.json";
/// The number of rows that are gathered at a time.
const GATHERED: usize = 20_000;

/// A note about steps that were applied.
#[derive(Serialize, Deserialize)]
struct AppliedSteps {
    /// The digest of the rows before the steps.
    digest: String,
    /// The number of files with the rows after the steps.
    files: usize,
    steps: Vec<StepReport>,
}

/// The rows of a stage behind its steps, with the results of the steps. Steps that were applied to the same rows before
/// are not applied again. Blocks.
pub(crate) fn after_steps(
    folder: &Folder,
    columns: Vec<(String, ColumnType)>,
    setting: StepSetting<'_>,
    rows_per_file: usize,
) -> Result<(StageRows, Vec<StepReport>), Error> {
    let rows = StageRows::in_files(columns, folder.row_files()?)?;
    if setting.steps.is_empty() {
        return Ok((rows, Vec::new()));
    }
    let path = folder.path();
    let after = super::select::columns_after(rows.columns.clone(), setting.steps).map_err(Error::Setup)?;
    if let Some(done) = read_done(path)?.filter(|done| done.digest == rows.digest) {
        return Ok((StageRows::in_files(after, files(path, done.files))?, done.steps));
    }
    clear(path)?;
    let selection = select(&rows, setting)?;
    write_fates(path, &selection.fates)?;
    let files_written = write(folder, &rows, &selection, rows_per_file.max(1))?;
    let steps = selection.reports;
    let done = AppliedSteps { digest: rows.digest, files: files_written, steps: steps.clone() };
    write_json(&path.join(DONE), &done)?;
    Ok((StageRows::in_files(after, files(path, files_written))?, steps))
}

fn read_done(folder: &Path) -> Result<Option<AppliedSteps>, FileError> {
    let path = folder.join(DONE);
    match std::fs::read_to_string(&path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        // A file that cannot be understood is of another version: the steps are applied again.
        text => Ok(serde_json::from_str(&text.map_err(cannot("read", &path))?).ok()),
    }
}

fn clear(folder: &Path) -> Result<(), FileError> {
    for (path, is_folder) in [(folder.join(DONE), false), (folder.join(ROWS), true)] {
        let removed = if is_folder { std::fs::remove_dir_all(&path) } else { std::fs::remove_file(&path) };
        match removed {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                return Err(cannot("remove", &path)(error));
            }
            _ => {}
        }
    }
    Ok(())
}

fn files(folder: &Path, count: usize) -> Vec<std::path::PathBuf> {
    (0..count).map(|number| folder.join(ROWS).join(format!("batch_{number:05}.parquet"))).collect()
}

/// Writes the rows of a selection in files of `rows_per_file` rows. Returns the number of files.
fn write(
    folder: &Folder,
    rows: &StageRows,
    selection: &Selection,
    rows_per_file: usize,
) -> Result<usize, Error> {
    let together = (GATHERED / rows_per_file).max(1) * rows_per_file;
    let (mut files, count) = (0, selection.records.len());
    for start in (0..count).step_by(together) {
        let table = gather(rows, selection, start..(start + together).min(count))?;
        for start in (0..table.ids.len()).step_by(rows_per_file) {
            let part = table.slice(start..(start + rows_per_file).min(table.ids.len()));
            folder.write_table(ROWS, files as u64, &part, &[])?;
            files += 1;
        }
    }
    Ok(files)
}

/// Some rows of a selection, in its order. Blocks.
pub(crate) fn gather(
    rows: &StageRows,
    selection: &Selection,
    wanted: Range<usize>,
) -> Result<Table, FileError> {
    let records = &selection.records[wanted];
    let mut order: Vec<usize> = (0..records.len()).collect();
    order.sort_by_key(|record| records[*record].position);
    let all: Vec<usize> = (0..rows.columns.len()).collect();
    let mut values = vec![vec![Value::Null; records.len()]; all.len()];
    let (first, last) = (order.first(), order.last());
    let positions = first.map_or(0, |record| records[*record].position)
        ..last.map_or(0, |record| records[*record].position + 1);
    let mut order = order.into_iter().peekable();
    rows.visit(&all, positions, |start, table| {
        let end = start + table.ids.len() as u64;
        while let Some(number) = order.next_if(|record| records[*record].position < end) {
            let record = &records[number];
            let row = (record.position - start) as usize;
            for (column, values) in values.iter_mut().enumerate() {
                values[number] = selection.item(record, column, &table.columns[column].values[row]);
            }
        }
        Ok::<(), FileError>(())
    })?;
    let columns = selection.columns.iter().zip(values).map(|((name, column_type), values)| TableColumn {
        name: name.clone(),
        column_type: column_type.clone(),
        values,
    });
    Ok(Table { ids: records.iter().map(|record| Some(record.id)).collect(), columns: columns.collect() })
}
