//! What can go wrong, by what a caller can do about it.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::Address;

/// An error of the store. Cheap to clone: one failed write may be many callers' error.
#[derive(Clone, Debug, thiserror::Error)]
pub enum Error {
    /// The disk refused; what was acknowledged before is safe.
    #[error("could not {doing} `{}`", path.display())]
    Disk {
        /// What was tried.
        doing: &'static str,
        /// On which file, relative to the store.
        path: PathBuf,
        /// What the disk said.
        #[source]
        cause: Arc<io::Error>,
    },
    /// The bytes at this address are not the ones that were put. They are in quarantine; from now on the address is
    /// missing.
    #[error(
        "the bytes of {address} are damaged: {what}; they were moved to quarantine, put or derive them again"
    )]
    Corrupt {
        /// Whose bytes.
        address: Address,
        /// What does not hold.
        what: String,
    },
}

impl Error {
    /// A failed call to the disk.
    pub(crate) fn disk(doing: &'static str, path: &Path, cause: io::Error) -> Error {
        Error::Disk { doing, path: path.to_owned(), cause: Arc::new(cause) }
    }
}
