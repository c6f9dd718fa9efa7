//! Whole files: written aside, synced, renamed.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, ZstdLevel};
use parquet::file::metadata::KeyValue;
use parquet::file::properties::WriterProperties;

/// A file of the output folder could not be written or read.
#[derive(Debug, thiserror::Error)]
#[error("cannot {action} {}", path.display())]
pub struct FileError {
    pub action: &'static str,
    pub path: PathBuf,
    #[source]
    pub cause: io::Error,
}

/// For `map_err`: adds the failed action and the path.
pub(crate) fn cannot(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> FileError {
    move |cause| FileError { action, path: path.to_owned(), cause }
}

/// Writes a file as a whole: a crash leaves the old one or the new one.
pub(super) fn write_whole(
    path: &Path,
    write: impl FnOnce(&mut BufWriter<File>) -> io::Result<()>,
) -> Result<(), FileError> {
    let mut aside = path.as_os_str().to_owned();
    aside.push(".tmp");
    let aside = PathBuf::from(aside);
    let written = (|| {
        let mut file = BufWriter::with_capacity(1 << 16, File::create(&aside)?);
        write(&mut file)?;
        file.into_inner().map_err(io::IntoInnerError::into_error)?.sync_all()?;
        fs::rename(&aside, path)?;
        sync_folder(path.parent().unwrap_or(Path::new(".")))
    })();
    written.map_err(|cause| {
        // The temporary file is useless. Only the first error counts.
        let _ = fs::remove_file(&aside);
        FileError { action: "write", path: path.to_owned(), cause }
    })
}

/// Writes a small JSON file as a whole.
pub(crate) fn write_json(path: &Path, value: &impl serde::Serialize) -> Result<(), FileError> {
    write_whole(path, |file| {
        serde_json::to_writer_pretty(&mut *file, value)?;
        file.write_all(b"\n")
    })
}

fn sync_folder(folder: &Path) -> io::Result<()> {
    File::open(folder)?.sync_all()
}

/// The properties of a Parquet file of rows with these notes.
pub(super) fn row_properties(notes: &[(&str, String)]) -> WriterProperties {
    let notes = notes.iter().map(|(name, value)| KeyValue::new((*name).to_owned(), value.clone())).collect();
    WriterProperties::builder()
        .set_compression(Compression::ZSTD(ZstdLevel::try_new(1).expect("1 is a level of zstd")))
        .set_key_value_metadata(Some(notes))
        .build()
}

/// Writes a Parquet file of these parts as a whole.
pub(crate) fn write_parquet_parts(
    path: &Path,
    schema: SchemaRef,
    parts: impl Iterator<Item = io::Result<RecordBatch>>,
    notes: &[(&str, String)],
) -> Result<(), FileError> {
    write_whole(path, |file| {
        let mut writer = ArrowWriter::try_new(file.by_ref(), schema, Some(row_properties(notes)))
            .map_err(io::Error::other)?;
        for part in parts {
            writer.write(&part?).map_err(io::Error::other)?;
        }
        writer.close().map(drop).map_err(io::Error::other)
    })
}
