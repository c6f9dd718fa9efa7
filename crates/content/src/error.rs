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
    /// The disk failed to keep what it took. What was acknowledged before is safe; nothing more is written until the
    /// store is opened again.
    #[error("the log can no longer be written; close the store and open it again")]
    Broken(#[source] Box<Error>),
    /// The index is damaged. Nothing is lost: it is made anew from the log when the store is opened again.
    #[error("the index is damaged ({what}); open the store again, which makes it anew from the log")]
    Index {
        /// What does not hold.
        what: String,
    },
    /// Another process has the store.
    #[error("the store is in use by {owner}")]
    Owned {
        /// Who, and where it listens.
        owner: String,
        /// Where it listens, if it said so.
        listens_on: Option<String>,
    },
    /// Not a store of this format.
    #[error("this is not a store this program can read: {found}")]
    Format {
        /// What was found instead.
        found: String,
    },
    /// The store was written by a later version.
    #[error("the store has format {found}, this program reads up to {known}; use a newer one")]
    Newer {
        /// The store's format.
        found: u32,
        /// The latest format known here.
        known: u32,
    },
    /// The store is full by its own measure.
    #[error("the store holds {used} of its {quota} bytes; collect it, unpin something or raise the quota")]
    Quota {
        /// Bytes in use.
        used: u64,
        /// Bytes allowed.
        quota: u64,
    },
    /// A value is larger than the place it is meant for.
    #[error("{what} has {size} bytes; the most is {most}")]
    TooLarge {
        /// What it is.
        what: &'static str,
        /// Its size.
        size: u64,
        /// The bound.
        most: u64,
    },
    /// A setting is out of its range.
    #[error("setting `{setting}` must be {allowed}")]
    Setting {
        /// Which one.
        setting: &'static str,
        /// What it may be.
        allowed: &'static str,
    },
    /// A name that names cannot have.
    #[error("{name:?} is not a name: 1 to 255 bytes without control characters, and no address")]
    Name {
        /// The name.
        name: String,
    },
    /// The description of a derivation is not a canonical encoding.
    #[error("a derivation's description must be a canonical encoding (`Value::encode`)")]
    Description(#[source] crate::DecodeError),
    /// An alias leads to one derivation, and a derivation has one alias.
    #[error("{alias} cannot become an alias of derivation {derivation}: {taken} is in its place already")]
    Alias {
        /// The alias.
        alias: Address,
        /// The derivation that it was to lead to.
        derivation: Address,
        /// The alias that the derivation has, or the derivation that the alias leads to.
        taken: Address,
    },
    /// An archive that cannot be read.
    #[error("the archive is damaged at byte {at}: {what}")]
    Archive {
        /// Where.
        at: u64,
        /// What does not hold.
        what: String,
    },
    /// Some of what was asked for is not there.
    #[error("{address} is not in the store")]
    Missing {
        /// The address.
        address: Address,
    },
    /// A blob that was being written lacks bytes.
    #[error("a write of this blob was given up half-way; begin it again")]
    Torn,
    /// The stream of bytes to be put failed.
    #[error("reading the bytes to be put failed")]
    Source(#[source] Arc<dyn std::error::Error + Send + Sync>),
    /// The record was moved again and again while it was read, by the cleaning of the log.
    #[error("{address} kept moving while it was read; try again")]
    Moving {
        /// Its address.
        address: Address,
    },
    /// The store was closed.
    #[error("the store is closed")]
    Closed,
    /// A thread of the store panicked.
    #[error("a thread of the store panicked")]
    Panicked,
    /// The answer would have to wait for the disk; the store asks again where that is fine.
    #[error("the answer is not in memory")]
    WouldBlock,
}

impl From<crate::io::Lost> for Error {
    fn from(lost: crate::io::Lost) -> Error {
        match lost {
            crate::io::Lost::Closed => Error::Closed,
            crate::io::Lost::Panicked(_) => Error::Panicked,
        }
    }
}

impl From<crate::files::Error> for Error {
    /// For calls that meet no bytes: those that do say whose they are.
    fn from(error: crate::files::Error) -> Error {
        match error {
            crate::files::Error::Disk(error) => error,
            crate::files::Error::Lost(lost) => lost.into(),
            other => Error::disk("use", Path::new("files"), io::Error::other(other)),
        }
    }
}

impl Error {
    /// A failed call to the disk.
    pub(crate) fn disk(doing: &'static str, path: &Path, cause: io::Error) -> Error {
        Error::Disk { doing, path: path.to_owned(), cause: Arc::new(cause) }
    }
}
