//! The errors of opening a seed.

use std::io;
use std::path::PathBuf;

/// The error of opening a seed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("the seed `{}` cannot be read: {cause}", .path.display())]
    Io {
        path: PathBuf,
        #[source]
        cause: io::Error,
    },
    #[error("no file matches the seed path `{pattern}`: check the path and the file name pattern")]
    NoFile { pattern: String },
    #[error("the seed path `{path}` {problem}")]
    Path { path: String, problem: String },
    #[error("`{}` is not a seed format: use .parquet, .csv, .json or .jsonl", .path.display())]
    Format { path: PathBuf },
    #[error("{}: {problem}", .path.display())]
    File { path: PathBuf, problem: String },
    #[error("{}:{line}: {problem}", .path.display())]
    Line { path: PathBuf, line: u64, problem: String },
    #[error("{}, column `{column}`: {problem}", .path.display())]
    Column { path: PathBuf, column: String, problem: String },
    #[error("the selection of seed rows {selection} does not fit: the seed has {rows} rows, numbered from 0 to {}", .rows.saturating_sub(1))]
    Selection { selection: String, rows: u64 },
    #[error("the seed `{path}` has no rows: give it a file with at least one row")]
    Empty { path: String },
    #[error(
        "the seed is too large: more than {limit} {unit}; select a part of the files, or split the dataset"
    )]
    TooLarge { limit: u64, unit: &'static str },
    #[error("the encoding `{0}` of the seed is not known: use utf-8, utf-8-sig or latin-1")]
    Encoding(String),
}
