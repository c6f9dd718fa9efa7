//! The errors of builds.

use std::path::PathBuf;
use std::sync::Arc;

use anabranch_engine::admission::Refused;
use anabranch_text::Problems;

use crate::fault::Fault;
use crate::inputs::ColumnEdits;
use crate::journal;
use crate::output::FileError;

/// The error of a build.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The configuration is wrong.
    #[error("the configuration has {} errors", .0.errors.len())]
    Config(Problems),
    /// A cell failed in a column whose failures end the build (`on_error: fail_run`).
    #[error("column `{column}`{}: {failure}", .row.map_or_else(String::new, |row| format!(", row {row}")))]
    Column { column: String, row: Option<u64>, failure: String },
    /// A processor failed.
    #[error("processor `{name}`: {}", .fault.message)]
    Processor { name: String, fault: Fault },
    /// The folder holds a dataset that was made from something else.
    #[error("{} holds a dataset that was made with {}", path.display(), other_inputs(.differ))]
    Inputs {
        path: PathBuf,
        /// The names of the inputs that differ.
        differ: Vec<String>,
        /// The edits of the columns.
        columns: Box<ColumnEdits>,
    },
    /// The folder holds more rows than requested.
    #[error("{} holds a build of {rows} rows, which is more than asked for", path.display())]
    FewerRows { path: PathBuf, rows: u64 },
    /// The journal of paid replies failed.
    #[error("{0}")]
    Journal(Arc<journal::Error>),
    /// A model, a seed or a worker could not be set up.
    #[error("{0}")]
    Setup(String),
    /// A file could not be written or read.
    #[error(transparent)]
    File(#[from] FileError),
    /// The engine has too many runs, or shuts down.
    #[error(transparent)]
    Refused(#[from] Refused),
    /// The engine was shut down.
    #[error("the engine was shut down before the build ended")]
    Stopped,
}

impl From<journal::Error> for Error {
    fn from(error: journal::Error) -> Error {
        Error::Journal(Arc::new(error))
    }
}

fn other_inputs(differ: &[String]) -> String {
    let others: Vec<String> = differ.iter().map(|name| format!("another {name}")).collect();
    others.join(" and ")
}
