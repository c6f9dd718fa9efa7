//! Files that must not change while they are read.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use rustix::fs::{Mode, OFlags, Stat, fstat, open};
use rustix::io::Errno;

use super::super::progress::Meter;

/// A file of a folder to store.
#[derive(Clone)]
pub(in super::super) struct FileToRead {
    pub(super) path: PathBuf,
    pub(super) executable: bool,
    pub(super) seen: FileState,
    pub(super) meter: Arc<Mutex<Meter>>,
}

/// The state of a file on disk: device, inode, length and times of change. It differs if the file changes.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct FileState([i128; 7]);

impl FileState {
    pub(super) fn of(stat: &Stat) -> FileState {
        FileState([
            i128::from(stat.st_dev),
            i128::from(stat.st_ino),
            i128::from(stat.st_size),
            i128::from(stat.st_mtime),
            i128::from(stat.st_mtime_nsec),
            i128::from(stat.st_ctime),
            i128::from(stat.st_ctime_nsec),
        ])
    }
}

impl FileToRead {
    /// Opens the file, if it is still the one that was found in the folder.
    pub(in super::super) fn open(&self) -> io::Result<File> {
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK;
        let file = open(&self.path, flags, Mode::empty()).map_err(|error| match error {
            // The file is gone, or something else has taken its place.
            Errno::NOENT | Errno::LOOP | Errno::NOTDIR => io::Error::other(changed_meanwhile(&self.path)),
            other => other.into(),
        });
        let file = File::from(file?);
        self.check(&file)?;
        Ok(file)
    }

    /// An error if the opened file has changed since it was found.
    pub(in super::super) fn check(&self, file: &File) -> io::Result<()> {
        match FileState::of(&fstat(file)?) == self.seen {
            true => Ok(()),
            false => Err(io::Error::other(changed_meanwhile(&self.path))),
        }
    }

    /// Reads the file, and checks it at its end.
    pub(in super::super) fn reader(&self) -> io::Result<Box<dyn Read + Send>> {
        Ok(Box::new(WatchedReader { file: self.open()?, watched: self.clone() }))
    }

    /// The length of the file when it was found.
    pub(in super::super) fn len(&self) -> u64 {
        u64::try_from(self.seen.0[2]).unwrap_or(0)
    }

    /// The progress of the whole folder.
    pub(in super::super) fn meter(&self) -> &Mutex<Meter> {
        &self.meter
    }

    pub(in super::super) fn path(&self) -> &Path {
        &self.path
    }

    /// Whether this is the same file, unchanged.
    pub(super) fn is_same(&self, other: &FileToRead) -> bool {
        (&self.path, self.executable, self.seen) == (&other.path, other.executable, other.seen)
    }
}

/// The message about a file or a folder that changed.
pub(super) fn changed_meanwhile(path: &Path) -> String {
    format!("{} changed while the folder was read; put the folder again", path.display())
}

struct WatchedReader {
    file: File,
    watched: FileToRead,
}

impl Read for WatchedReader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let len = self.file.read(buffer)?;
        if len == 0 {
            self.watched.check(&self.file)?;
        }
        self.watched.meter.lock().unwrap_or_else(PoisonError::into_inner).add(len);
        Ok(len)
    }
}
