//! Large blobs as files.
//!
//! A blob's file is `files/<first two digits>/<address>.<number>` and holds exactly its bytes, so that `b3sum` prints
//! its name. The number is unique per write, so removing an old file never removes a newer one. A blob of more
//! than 1 MiB has a tree file of the same name with `.tree`. It is rebuilt from the bytes when it is missing or wrong,
//! and so never synced. Writes begin in `incoming/` and end with a rename; damaged files end in `quarantine/`.
//!
//! [`BlobWriter`] and [`BlobReader`] block. [`Sink`] and [`Stream`] are the same over the store's threads.

mod name;
mod buffers;
mod incoming;
mod writing;
mod stored;
mod values;
mod rebuild;
mod reading;
mod stream;
mod sink;
mod lanes;
mod copy;
#[cfg(test)]
mod tests;

use std::collections::HashSet;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

use crate::io::JobFailure;
use crate::{Disk, Entry};
use buffers::Buffers;
use name::Kind;

pub(crate) use copy::{SourceFile, check_blob, copy_file};
pub(crate) use name::Name;
pub(crate) use reading::BlobReader;
pub(crate) use sink::{HashedBlob, Sink};
pub(crate) use stream::Stream;
pub(crate) use writing::{BlobWriter, WrittenBlob};

/// A piece, which is how much is read, written and hashed at a time: eight groups.
pub(crate) const PIECE_LEN: usize = 512 << 10;

/// The longest blob that is read and checked as a whole and has no tree.
pub(crate) const WHOLE_LEN: u64 = 1 << 20;

const FILES: &str = "files";
const INCOMING: &str = "incoming";
const QUARANTINE: &str = "quarantine";

/// The files of a store.
#[derive(Debug)]
pub(crate) struct Files {
    disk: Arc<dyn Disk>,
    /// The folders below `files` that are known to be durable.
    durable_folders: [AtomicBool; 256],
    /// Counts rebuilt trees, so that each has its own name in `incoming`.
    rebuilds: AtomicU64,
    buffers: Arc<Buffers>,
    /// Whether the store is closed. Read while a name in `incoming` is made, moved or removed: the next owner of the
    /// folder may use the same names.
    closed: RwLock<bool>,
}

/// When a new file must be durable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Durability {
    /// Before it is acknowledged.
    Now,
    /// When the system writes it: it may be torn after a power cut.
    Later,
}

/// The reason why a file could not be read or written.
#[derive(Clone, Debug, thiserror::Error)]
pub(crate) enum Error {
    #[error(transparent)]
    Disk(#[from] crate::Error),
    #[error("the file is not there")]
    Missing,
    #[error("{what}")]
    Corrupt { what: String },
    #[error("a write was given up half-way")]
    Torn,
    #[error(transparent)]
    Lost(#[from] JobFailure),
}

/// The files below `files`.
#[derive(Debug, Default)]
pub(crate) struct FileListing {
    /// The blobs' files and their lengths.
    pub(crate) blobs: Vec<(Name, u64)>,
    /// Names with a tree and no blob, left by a write or a removal that a crash interrupted. To be removed.
    pub(crate) orphans: Vec<Name>,
    /// Files that are not the store's.
    pub(crate) strays: Vec<PathBuf>,
}

impl Files {
    /// The files on this disk. Creates the folders that are missing.
    pub(crate) fn open(disk: Arc<dyn Disk>) -> Result<Arc<Files>, Error> {
        for folder in [FILES, INCOMING, QUARANTINE].map(Path::new) {
            disk.make_folder(folder).map_err(failed("make", folder))?;
        }
        let files = Files {
            disk,
            durable_folders: [const { AtomicBool::new(false) }; 256],
            rebuilds: AtomicU64::new(0),
            buffers: Arc::default(),
            closed: RwLock::new(false),
        };
        files.sync_folder(Path::new(""))?;
        Ok(Arc::new(files))
    }

    /// From now on no file is made or moved, and none of `incoming` is removed: they are the next owner's.
    pub(crate) fn close(&self) {
        *self.closed.write().unwrap_or_else(PoisonError::into_inner) = true;
    }

    /// Does something with a name in `incoming`, unless the store is closed.
    fn with_incoming<T>(&self, work: impl FnOnce() -> Result<T, Error>) -> Result<T, Error> {
        let closed = self.closed.read().unwrap_or_else(PoisonError::into_inner);
        if *closed { Err(Error::Lost(JobFailure::Closed)) } else { work() }
    }

    /// Removes a blob's files; a missing file is not an error.
    pub(crate) fn remove(&self, name: &Name) -> Result<(), Error> {
        self.remove_path(&name.data())?;
        self.remove_path(&name.tree())
    }

    /// Moves a damaged blob to the quarantine folder, where an operator can inspect it; a missing file is not an error.
    pub(crate) fn quarantine(&self, name: &Name) -> Result<(), Error> {
        match self.disk.rename(&name.data(), &name.quarantined()) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                Err(failed("quarantine", &name.data())(error))
            }
            _ => self.remove_path(&name.tree()),
        }
    }

    /// Lists the files below `files`.
    pub(crate) fn list(&self) -> Result<FileListing, Error> {
        let mut listed = FileListing::default();
        for Entry { name, len } in self.entries(Path::new(FILES))? {
            let folder = Path::new(FILES).join(&name);
            if len.is_none() && name::is_fan_out(&name) {
                self.list_folder(&folder, &name, &mut listed)?;
            } else {
                listed.strays.push(folder);
            }
        }
        Ok(listed)
    }

    fn list_folder(&self, folder: &Path, fan_out: &str, listed: &mut FileListing) -> Result<(), Error> {
        let (mut blobs, mut trees) = (HashSet::new(), Vec::new());
        for entry in self.entries(folder)? {
            match (Name::parse(fan_out, &entry.name), entry.len) {
                (Some((name, Kind::Blob)), Some(len)) => {
                    blobs.insert(name);
                    listed.blobs.push((name, len));
                }
                (Some((name, Kind::Tree)), Some(_)) => trees.push(name),
                _ => listed.strays.push(folder.join(entry.name)),
            }
        }
        listed.orphans.extend(trees.into_iter().filter(|tree| !blobs.contains(tree)));
        Ok(())
    }

    /// Removes the files of writes that a crash interrupted. To be called before the first write. Returns the files
    /// that are not the store's.
    pub(crate) fn clear_incoming(&self) -> Result<Vec<PathBuf>, Error> {
        let mut strays = Vec::new();
        for Entry { name, len } in self.entries(Path::new(INCOMING))? {
            let path = Path::new(INCOMING).join(&name);
            if len.is_some() && name::is_incoming(&name) {
                self.remove_path(&path)?;
            } else {
                strays.push(path);
            }
        }
        Ok(strays)
    }

    fn entries(&self, folder: &Path) -> Result<Vec<Entry>, Error> {
        self.disk.list(folder).map_err(failed("list", folder))
    }

    fn remove_path(&self, path: &Path) -> Result<(), Error> {
        match self.disk.remove(path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(failed("remove", path)(error)),
            _ => Ok(()),
        }
    }

    /// Makes the name of a file durable.
    fn sync_folders(&self, name: &Name) -> Result<(), Error> {
        self.sync_folder(&name.folder())?;
        let known = &self.durable_folders[name.fan_out()];
        if !known.load(Ordering::Acquire) {
            self.sync_folder(Path::new(FILES))?;
            known.store(true, Ordering::Release);
        }
        Ok(())
    }

    fn sync_folder(&self, folder: &Path) -> Result<(), Error> {
        self.disk.sync_folder(folder).map_err(failed("sync", folder))
    }
}

/// A name that parses is the one name of what it parses to.
pub(crate) fn fuzz(bytes: &[u8]) {
    let Ok(text) = str::from_utf8(bytes) else { return };
    if let Some((name, kind)) = text.split_at_checked(2).and_then(|(fan_out, _)| Name::parse(fan_out, text)) {
        let path = match kind {
            Kind::Blob => name.data(),
            Kind::Tree => name.tree(),
        };
        assert_eq!(path.file_name().and_then(|name| name.to_str()), Some(text));
    }
    name::is_incoming(text);
}

fn failed(doing: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Error {
    move |cause| Error::Disk(crate::Error::disk(doing, path, cause))
}

fn missing_or_failed(doing: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Error {
    move |cause| match cause.kind() {
        io::ErrorKind::NotFound => Error::Missing,
        _ => failed(doing, path)(cause),
    }
}
