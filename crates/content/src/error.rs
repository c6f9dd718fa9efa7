//! The store's errors, split by what a caller can do about them.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anabranch_text::size;

use crate::Address;

/// An error of the store. Cheap to clone: one failed write may fail many callers.
#[derive(Clone, Debug, thiserror::Error)]
pub enum Error {
    /// A call to the disk failed; acknowledged data is safe.
    #[error("could not {doing} `{}`", path.display())]
    Disk {
        /// The operation that failed.
        doing: &'static str,
        /// The file, relative to the store.
        path: PathBuf,
        /// The disk's error.
        #[source]
        cause: Arc<io::Error>,
    },
    /// The bytes at this address are not the ones that were put. They are in quarantine; from now on the address is
    /// missing.
    #[error(
        "the bytes of {address} are damaged: {what}; they were moved to quarantine, put or derive them again"
    )]
    Corrupt {
        /// The address of the damaged bytes.
        address: Address,
        /// The damage that was found.
        what: String,
    },
    /// A write or fsync of the log failed. Acknowledged data is safe; nothing more is written until the store is opened
    /// again.
    #[error("the log can no longer be written; close the store and open it again")]
    Broken(#[source] Box<Error>),
    /// The index is damaged. No data is lost: the index is being rebuilt from the log.
    #[error("the index is damaged ({what}) and is being rebuilt from the log; try again")]
    Index {
        /// The damage that was found.
        what: String,
    },
    /// Another process has the store open.
    #[error("the store is in use by {owner}")]
    Owned {
        /// The owning process, and where it listens.
        owner: String,
        /// The address it listens on, if it announced one.
        listens_on: Option<String>,
    },
    /// The folder does not hold a store of a known format.
    #[error("this is not a store this program can read: {found}")]
    Format {
        /// The text found in place of the format.
        found: String,
    },
    /// The store was written by a newer version of this program.
    #[error("the store has format {found}, this program reads formats up to {known}; use a newer version")]
    Newer {
        /// The store's format.
        found: u32,
        /// The newest format that this program reads.
        known: u32,
    },
    /// The store has reached its quota.
    #[error("there is no room for this write: the store uses {} of its quota of {}; remove or unpin items, or raise the quota", size::format(*.used), size::format(*.quota))]
    Quota {
        /// Bytes in use, with those of writes that are not finished.
        used: u64,
        /// Bytes allowed.
        quota: u64,
    },
    /// A value is larger than its limit.
    #[error("{what} has {size} bytes; the most is {most}")]
    TooLarge {
        /// The kind of value.
        what: &'static str,
        /// Its size.
        size: u64,
        /// The limit.
        most: u64,
    },
    /// A setting is out of its range.
    #[error("setting `{setting}` must be {allowed}")]
    Setting {
        /// The setting.
        setting: &'static str,
        /// Its allowed values.
        allowed: &'static str,
    },
    /// The text is not allowed as a name.
    #[error(
        "{name:?} is not allowed as a name: use 1 to 255 bytes without control characters, not an address"
    )]
    Name {
        /// The name.
        name: String,
    },
    /// A name does not point to the address that the caller expected, and was not changed.
    #[error("{name:?} {found}, but {expected} was expected; read the name again before changing it", found = points(found), expected = target(expected))]
    NameConflict {
        /// The name.
        name: String,
        /// The address that the caller expected; `None`: that the name is not set.
        expected: Option<Address>,
        /// The address that the name points to; `None`: it is not set.
        found: Option<Address>,
    },
    /// An item cannot be removed, because something holds it.
    #[error("{address} cannot be removed: {holder} holds it")]
    Held {
        /// The address of the item.
        address: Address,
        /// The holder: a pin, a name, an import, a lease, or a derivation.
        holder: String,
    },
    /// The text is not the beginning of an address.
    #[error("{prefix:?} is not the beginning of an address: use 4 to 64 hex digits")]
    Prefix {
        /// The text.
        prefix: String,
    },
    /// The description of a derivation is not a canonical encoding.
    #[error("a derivation's description must be a canonical encoding (`Value::encode`)")]
    Description(#[source] crate::DecodeError),
    /// An alias leads to one derivation, and a derivation has one alias.
    #[error(
        "{alias} cannot become an alias of derivation {derivation}: one of them is already paired with {taken}"
    )]
    Alias {
        /// The alias.
        alias: Address,
        /// The derivation that the caller gave it to.
        derivation: Address,
        /// The alias that the derivation has, or the derivation that the alias leads to.
        taken: Address,
    },
    /// An archive is damaged or not an archive.
    #[error("the archive is damaged at byte {at}: {what}")]
    Archive {
        /// The position in bytes.
        at: u64,
        /// The damage that was found.
        what: String,
    },
    /// An address that the operation needs is not in the store.
    #[error("{address} is not in the store")]
    Missing {
        /// The address.
        address: Address,
    },
    /// An earlier write to this blob failed or was cancelled, so the blob lacks bytes.
    #[error("an earlier write to this blob failed or was cancelled; start the blob again")]
    Torn,
    /// The stream of bytes to be put failed.
    #[error("reading the bytes to be put failed")]
    Source(#[source] Arc<dyn std::error::Error + Send + Sync>),
    /// Cleaning of the log moved the record every time the read tried to find it.
    #[error("the record of {address} was moved by cleaning during every attempt to read it; try again")]
    Moving {
        /// The record's address.
        address: Address,
    },
    /// The store was closed.
    #[error("the store is closed")]
    Closed,
    /// A thread of the store panicked.
    #[error("a thread of the store panicked")]
    Panicked,
    /// The answer is not in memory. Internal: the store retries on a thread that may wait for the disk.
    #[error("the answer is not in memory")]
    WouldBlock,
}

fn points(found: &Option<Address>) -> String {
    found.map_or_else(|| "is not set".to_owned(), |found| format!("points to {found}"))
}

fn target(expected: &Option<Address>) -> String {
    expected.map_or_else(|| "no address".to_owned(), |expected| expected.to_string())
}

impl From<crate::io::JobFailure> for Error {
    fn from(lost: crate::io::JobFailure) -> Error {
        match lost {
            crate::io::JobFailure::Closed => Error::Closed,
            crate::io::JobFailure::Panicked(_) => Error::Panicked,
        }
    }
}

impl From<crate::files::Error> for Error {
    /// For calls that read no blob; calls that do read one name its address in their errors.
    fn from(error: crate::files::Error) -> Error {
        match error {
            crate::files::Error::Disk(error) => error,
            crate::files::Error::Lost(lost) => lost.into(),
            other => Error::disk("use", Path::new("files"), io::Error::other(other)),
        }
    }
}

impl Error {
    /// Whether the same call may succeed later, without a change by the caller: the disk may recover, the queue may
    /// drain, the store may be opened again.
    pub fn is_transient(&self) -> bool {
        match self {
            Error::Disk { .. }
            | Error::Broken(_)
            | Error::Index { .. }
            | Error::Owned { .. }
            | Error::Quota { .. }
            | Error::Moving { .. }
            | Error::Source(_)
            | Error::Closed
            | Error::WouldBlock => true,
            Error::Corrupt { .. }
            | Error::Format { .. }
            | Error::Newer { .. }
            | Error::TooLarge { .. }
            | Error::Setting { .. }
            | Error::Name { .. }
            | Error::NameConflict { .. }
            | Error::Held { .. }
            | Error::Prefix { .. }
            | Error::Description(_)
            | Error::Alias { .. }
            | Error::Archive { .. }
            | Error::Missing { .. }
            | Error::Torn
            | Error::Panicked => false,
        }
    }

    /// Whether the disk has no room left.
    pub fn is_disk_full(&self) -> bool {
        match self {
            Error::Disk { cause, .. } => {
                matches!(cause.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
            }
            Error::Broken(error) => error.is_disk_full(),
            _ => false,
        }
    }

    /// A failed call to the disk.
    pub(crate) fn disk(doing: &'static str, path: &Path, cause: io::Error) -> Error {
        Error::Disk { doing, path: path.to_owned(), cause: Arc::new(cause) }
    }
}
