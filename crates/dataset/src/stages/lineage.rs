//! The origins and outcomes of rows.

use std::fs::File;
use std::path::Path;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{UInt32Type, UInt64Type};
use arrow_array::{Array, ArrayRef, RecordBatch, StringArray, UInt32Array, UInt64Array};
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;

use crate::output::{FileError, cannot, write_parquet_parts};

/// The file in a stage's folder that records the effects of its steps on rows.
pub(super) const FATES: &str = "steps.parquet";

/// The id of a row that was made from another one: the item of this number.
pub fn child_id(parent: u64, item: u32) -> u64 {
    let mut hasher = blake3::Hasher::new_derive_key("anabranch 2026 dataset: rows made out of rows");
    hasher.update(&parent.to_le_bytes()).update(&item.to_le_bytes());
    let hash = hasher.finalize();
    let bytes: [u8; 8] = hash.as_bytes()[..8].try_into().expect("a hash has more than 8 bytes");
    // Rows that were not made from others have smaller numbers.
    u64::from_le_bytes(bytes) | 1 << 63
}

/// The id of a row that is written as its number, or as a path of items such as `17.3`.
pub fn parse_row(text: &str) -> Option<u64> {
    let mut parts = text.split('.');
    let first = parts.next()?.parse().ok()?;
    parts.try_fold(first, |parent, item| Some(child_id(parent, item.parse().ok()?)))
}

/// The fate of one row in the steps behind a stage.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RowFate {
    /// The row's id.
    pub row: u64,
    /// The number of the step, from 0.
    pub step: u32,
    pub fate: StepFate,
}

/// The effect of a step on one row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StepFate {
    /// The condition of a filter was not true.
    FilteredOut,
    /// It has the same values as this row, which was kept.
    Duplicate(u64),
    /// It had no items to make rows out of.
    Empty,
    /// It was not drawn.
    NotDrawn,
    /// The step failed on it.
    Failed(String),
    /// The row is the item of this number of another row.
    Item { parent: u64, item: u32 },
}

impl StepFate {
    fn word(&self) -> &str {
        match self {
            StepFate::FilteredOut => "filtered out",
            StepFate::Duplicate(_) => "duplicate",
            StepFate::Empty => "empty",
            StepFate::NotDrawn => "not drawn",
            StepFate::Failed(_) => "failed",
            StepFate::Item { .. } => "item",
        }
    }

    fn read(word: &str, other: Option<u64>, item: Option<u32>, message: Option<&str>) -> Option<StepFate> {
        Some(match word {
            "filtered out" => StepFate::FilteredOut,
            "duplicate" => StepFate::Duplicate(other?),
            "empty" => StepFate::Empty,
            "not drawn" => StepFate::NotDrawn,
            "failed" => StepFate::Failed(message?.to_owned()),
            "item" => StepFate::Item { parent: other?, item: item? },
            _ => return None,
        })
    }
}

/// Fates per part of the file.
const ROWS_AT_A_TIME: usize = 1 << 16;

/// Writes the fates of rows. Blocks.
pub(super) fn write_fates(folder: &Path, fates: &[RowFate]) -> Result<(), FileError> {
    let empty = record_batch(&[]);
    let parts = fates.chunks(ROWS_AT_A_TIME).map(|part| Ok(record_batch(part)));
    write_parquet_parts(&folder.join(FATES), empty.schema(), parts, &[])
}

fn record_batch(fates: &[RowFate]) -> RecordBatch {
    let rows = UInt64Array::from_iter_values(fates.iter().map(|fate| fate.row));
    let steps = UInt32Array::from_iter_values(fates.iter().map(|fate| fate.step));
    let words = StringArray::from_iter_values(fates.iter().map(|fate| fate.fate.word()));
    let others = UInt64Array::from_iter(fates.iter().map(|fate| match fate.fate {
        StepFate::Duplicate(other) | StepFate::Item { parent: other, .. } => Some(other),
        _ => None,
    }));
    let items = UInt32Array::from_iter(fates.iter().map(|fate| match fate.fate {
        StepFate::Item { item, .. } => Some(item),
        _ => None,
    }));
    let messages = StringArray::from_iter(fates.iter().map(|fate| match &fate.fate {
        StepFate::Failed(message) => Some(message.as_str()),
        _ => None,
    }));
    let columns: [(&str, ArrayRef); 6] = [
        ("row", Arc::new(rows)),
        ("step", Arc::new(steps)),
        ("fate", Arc::new(words)),
        ("other", Arc::new(others)),
        ("item", Arc::new(items)),
        ("message", Arc::new(messages)),
    ];
    let nullable = columns.map(|(name, column)| (name, column, true));
    RecordBatch::try_from_iter_with_nullable(nullable).expect("all columns have one entry per fate")
}

/// Visits the fates of rows in the steps behind a stage; none if the stage has no steps. Blocks.
pub fn read_fates(folder: &Path, mut visit: impl FnMut(RowFate)) -> Result<(), FileError> {
    let path = folder.join(FATES);
    let failed = |error: parquet::errors::ParquetError| cannot("read", &path)(std::io::Error::other(error));
    let file = match File::open(&path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
        file => file.map_err(cannot("read", &path))?,
    };
    let reader = ParquetRecordBatchReaderBuilder::try_new(file).map_err(failed)?.build().map_err(failed)?;
    for batch in reader {
        let batch = batch.map_err(|error| cannot("read", &path)(std::io::Error::other(error)))?;
        read_batch(&batch, &mut visit)
            .ok_or_else(|| cannot("read", &path)(std::io::Error::other("it is not a file of steps")))?;
    }
    Ok(())
}

fn read_batch(batch: &RecordBatch, visit: &mut impl FnMut(RowFate)) -> Option<()> {
    let rows = batch.column_by_name("row")?.as_primitive_opt::<UInt64Type>()?;
    let steps = batch.column_by_name("step")?.as_primitive_opt::<UInt32Type>()?;
    let words = batch.column_by_name("fate")?.as_string_opt::<i32>()?;
    let others = batch.column_by_name("other")?.as_primitive_opt::<UInt64Type>()?;
    let items = batch.column_by_name("item")?.as_primitive_opt::<UInt32Type>()?;
    let messages = batch.column_by_name("message")?.as_string_opt::<i32>()?;
    for row in 0..batch.num_rows() {
        let other = others.is_valid(row).then(|| others.value(row));
        let item = items.is_valid(row).then(|| items.value(row));
        let message = messages.is_valid(row).then(|| messages.value(row));
        let fate = StepFate::read(words.value(row), other, item, message)?;
        visit(RowFate { row: rows.value(row), step: steps.value(row), fate });
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_follow_from_paths() {
        assert_eq!(parse_row("17"), Some(17));
        assert_eq!(parse_row("17.3"), Some(child_id(17, 3)));
        assert_eq!(parse_row("17.3.0"), Some(child_id(child_id(17, 3), 0)));
        assert_ne!(child_id(17, 3), child_id(3, 17));
        for wrong in ["", ".", "1.", "a", "1.b", "-1"] {
            assert_eq!(parse_row(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn fates_are_read_as_they_were_written() {
        let folder = std::env::temp_dir().join(format!("anabranch-fates-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let fates = [
            StepFate::FilteredOut,
            StepFate::Duplicate(4),
            StepFate::Empty,
            StepFate::NotDrawn,
            StepFate::Failed("no list".to_owned()),
            StepFate::Item { parent: 1, item: 2 },
        ];
        let fates: Vec<RowFate> =
            (0..).zip(fates).map(|(step, fate)| RowFate { row: u64::from(step) << 60, step, fate }).collect();
        write_fates(&folder, &fates).unwrap();
        let mut read = Vec::new();
        read_fates(&folder, |fate| read.push(fate)).unwrap();
        assert_eq!(read, fates);
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
