//! The rows of a dataset as one Parquet file, written row group by row group.

use std::path::PathBuf;
use std::vec::IntoIter;

use arrow_schema::SchemaRef;
use parquet::arrow::ArrowWriter;

use super::files::{FileError, cannot, row_properties};
use super::read::batches;

/// The bytes of one Parquet file with the rows of several, which have the same columns. Each piece is the row group of one
/// file, and the last one is the end of the file. Only one row group is in memory at a time.
pub struct JoinedFile {
    files: IntoIter<PathBuf>,
    /// `None` before the first file and behind the last piece.
    writer: Option<(SchemaRef, ArrowWriter<Vec<u8>>)>,
    last: PathBuf,
}

impl JoinedFile {
    /// One file of the rows of these files.
    pub fn new(files: Vec<PathBuf>) -> JoinedFile {
        JoinedFile { files: files.into_iter(), writer: None, last: PathBuf::new() }
    }

    fn add(&mut self, path: PathBuf) -> Result<Vec<u8>, FileError> {
        let failed =
            |cause: parquet::errors::ParquetError| cannot("join", &path)(std::io::Error::other(cause));
        let (schema, batches) = batches(&path)?;
        if self.writer.is_none() {
            let writer =
                ArrowWriter::try_new(Vec::new(), SchemaRef::clone(&schema), Some(row_properties(&[])));
            self.writer = Some((schema.clone(), writer.map_err(failed)?));
        }
        let (first, writer) = self.writer.as_mut().expect("it was just made");
        if first.fields() != schema.fields() {
            let cause = std::io::Error::other("its columns are not those of the first file");
            return Err(cannot("join", &path)(cause));
        }
        for batch in batches {
            writer.write(&batch?).map_err(failed)?;
        }
        writer.flush().map_err(failed)?;
        let piece = std::mem::take(writer.inner_mut());
        self.last = path;
        Ok(piece)
    }
}

impl Iterator for JoinedFile {
    type Item = Result<Vec<u8>, FileError>;

    /// The next piece. Blocks.
    fn next(&mut self) -> Option<Result<Vec<u8>, FileError>> {
        if let Some(path) = self.files.next() {
            return Some(self.add(path));
        }
        let (_, writer) = self.writer.take()?;
        let failed = |cause| cannot("join", &self.last)(std::io::Error::other(cause));
        Some(writer.into_inner().map_err(failed))
    }
}
