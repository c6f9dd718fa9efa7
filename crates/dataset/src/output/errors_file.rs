//! The errors table as files.

use std::io::{self, Write};
use std::path::Path;
use std::sync::Arc;

use arrow_array::{ArrayRef, BooleanArray, RecordBatch, StringArray, UInt32Array, UInt64Array};
use arrow_schema::SchemaRef;

use crate::errors::RowError;

pub(super) fn write_lines(errors: &[RowError], out: &mut impl Write) -> io::Result<()> {
    for error in errors {
        serde_json::to_writer(&mut *out, error)?;
        out.write_all(b"\n")?;
    }
    Ok(())
}

/// Reads the errors of one group.
pub(super) fn read_errors(path: &Path) -> io::Result<Vec<RowError>> {
    let text = std::fs::read_to_string(path)?;
    text.lines().map(|line| serde_json::from_str(line).map_err(io::Error::from)).collect()
}

/// Reads the errors of one group as columns.
pub(super) fn read_lines(path: &Path) -> io::Result<RecordBatch> {
    Ok(record_batch(&read_errors(path)?))
}

/// The columns of the errors table.
pub(super) fn schema() -> SchemaRef {
    record_batch(&[]).schema()
}

fn record_batch(errors: &[RowError]) -> RecordBatch {
    let texts = |text: fn(&RowError) -> &str| -> ArrayRef {
        Arc::new(StringArray::from_iter_values(errors.iter().map(text)))
    };
    let rows: ArrayRef = Arc::new(UInt64Array::from_iter_values(errors.iter().map(|error| error.row)));
    let attempts: ArrayRef =
        Arc::new(UInt32Array::from_iter_values(errors.iter().map(|error| error.attempts)));
    let kept: ArrayRef = Arc::new(BooleanArray::from_iter(errors.iter().map(|error| Some(error.kept))));
    RecordBatch::try_from_iter([
        ("row", rows),
        ("column", texts(|error| &error.column)),
        ("class", texts(|error| &error.class)),
        ("attempts", attempts),
        ("message", texts(|error| &error.message)),
        ("kept", kept),
    ])
    .expect("all columns have one entry per error")
}
