//! The output folder: Parquet files per row group, an errors table, metadata and events.
//!
//! A file is written under another name, synced, and renamed, so that a file with its final name is whole. The main file of
//! a row group is renamed last: where it is, the group's other files are as well.

mod arrow;
mod errors_file;
mod files;
mod folder;
mod metadata;
mod read;
mod whole;

pub(crate) use arrow::type_name;
pub use files::FileError;
pub use folder::Folder;
pub(crate) use folder::GroupFiles;
pub use metadata::{ColumnMetadata, Metadata, ModelMetadata};
pub(crate) use whole::after_generation;
pub use whole::{ExportFormat, export};
