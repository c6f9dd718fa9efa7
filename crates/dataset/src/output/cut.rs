//! Takes rows out of row groups that are on disk.

use std::path::Path;

use super::arrow::all_row_numbers;
use super::files::FileError;
use super::folder::{DROPPED, Folder, PROCESSED, ROWS};
use super::read::{note, read_rows};
use super::resume::{RANGE_NOTE, REJECTED_NOTE, UNFINISHED_NOTE, entries};
use crate::processor::Table;

impl Folder {
    /// Keeps the first rows of a group, and records that the others are missing. A build for more rows makes them
    /// again. Blocks.
    pub(crate) fn cut_group(&self, group: u64, rows: usize) -> Result<(), FileError> {
        let name = format!("batch_{group:05}.parquet");
        let processed = entries(&self.path().join(PROCESSED))?;
        let beside = processed.iter().filter_map(|folder| folder.file_name()?.to_str());
        let mut folders: Vec<String> = beside.map(|beside| format!("{PROCESSED}/{beside}")).collect();
        folders.push(DROPPED.to_owned());
        for folder in folders {
            let path = self.path().join(&folder).join(&name);
            if path.exists() {
                let table = read_table(&path)?;
                let kept = table.slice(0..rows.min(table.ids.len()));
                self.write_table(&folder, group, &kept, &[])?;
            }
        }
        // Last, as when the group was written: where it is cut, the other files are as well.
        let path = self.path().join(ROWS).join(&name);
        let table = read_table(&path)?;
        let rows = rows.min(table.ids.len());
        let before: u64 = note(&path, UNFINISHED_NOTE)?.and_then(|count| count.parse().ok()).unwrap_or(0);
        let notes = [
            (RANGE_NOTE, note(&path, RANGE_NOTE)?.unwrap_or_default()),
            (UNFINISHED_NOTE, (before + (table.ids.len() - rows) as u64).to_string()),
            (REJECTED_NOTE, note(&path, REJECTED_NOTE)?.unwrap_or_default()),
        ];
        self.write_table(ROWS, group, &table.slice(0..rows), &notes)
    }

    /// The rows of a group that were not accepted. Blocks.
    pub fn rejected(&self, file: &Path) -> Result<Vec<u64>, FileError> {
        Ok(note(file, REJECTED_NOTE)?.map_or_else(Vec::new, |rows| all_row_numbers(&rows)))
    }
}

fn read_table(path: &Path) -> Result<Table, FileError> {
    let mut table = Table::default();
    read_rows(path, |rows| {
        table.append(rows);
        Ok::<(), FileError>(())
    })?;
    Ok(table)
}
