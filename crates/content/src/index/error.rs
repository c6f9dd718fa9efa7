//! Errors of the index, by what its owner can do about them.

use std::io;
use std::path::{Path, PathBuf};

/// An error of the index.
#[derive(Clone, Debug, thiserror::Error)]
pub(crate) enum Error {
    /// The disk refused: try again later. The index is as it was.
    #[error(transparent)]
    Disk(#[from] crate::Error),
    /// A file is not what was written: reset the index and rebuild it from the log.
    #[error("the index's file `{}` is damaged: {what}", path.display())]
    Damaged { path: PathBuf, what: String },
    /// A read that may not wait found that it had to: ask again where waiting is fine.
    #[error("the index's answer is not in memory")]
    WouldBlock,
}

impl Error {
    /// A failed call to the disk.
    pub(super) fn disk(doing: &'static str, path: &Path, cause: io::Error) -> Error {
        match cause.kind() {
            io::ErrorKind::WouldBlock => Error::WouldBlock,
            _ => Error::Disk(crate::Error::disk(doing, path, cause)),
        }
    }

    pub(super) fn damaged(path: &Path, what: impl Into<String>) -> Error {
        Error::Damaged { path: path.to_owned(), what: what.into() }
    }
}

/// The reason why bytes do not decode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct DecodeFailure(pub(super) &'static str);
