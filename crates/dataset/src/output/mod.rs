//! The output folder: Parquet files per row group, an errors table, metadata and events.
//!
//! A file is written under another name, synced, and renamed, so that a file with its final name is whole. The main file of
//! a row group is renamed last: where it is, the group's other files are as well.

mod arrow;
mod cut;
mod errors_file;
mod files;
mod lock;
mod metadata;
mod folder;
mod resume;
mod spend;
mod status;
mod read;
mod whole;
mod join;

pub use arrow::type_name;
pub use files::FileError;
pub(crate) use files::{cannot, write_json, write_parquet_parts};
pub use folder::Folder;
pub(crate) use folder::{GroupFiles, JOURNAL};
pub use join::JoinedFile;
pub(crate) use lock::Lock;
pub use metadata::{ColumnMetadata, ColumnSpend, Metadata, ModelMetadata, StageReport};
pub use read::RowFile;
pub(crate) use resume::GroupOnDisk;
pub use spend::{Figures, SpendLine};
pub use status::{BuildState, BuildStatus, FolderStatus, LimitReport, StageView};
pub(crate) use status::{read_status, write_status};
pub(crate) use whole::after_generation;
pub use whole::{ExportFormat, export, write_table};
