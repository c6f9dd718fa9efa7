//! Files that must not change while they are read.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use rustix::fs::{Mode, OFlags, Stat, fstat, open};

use super::super::progress::Meter;

/// A file of a folder that is to be put.
#[derive(Clone)]
pub(in super::super) struct FileToRead {
    pub(super) path: PathBuf,
    pub(super) executable: bool,
    pub(super) seen: Seen,
    /// Shows how far the whole folder is.
    pub(super) meter: Arc<Mutex<Meter>>,
}

/// What tells a file from another one, and from itself before a change: device, number, length, times of change.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Seen([i128; 7]);

impl Seen {
    pub(super) fn of(stat: &Stat) -> Seen {
        Seen([
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
    pub(in super::super) fn reader(&self) -> io::Result<Box<dyn Read + Send>> {
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK;
        let file = File::from(open(&self.path, flags, Mode::empty())?);
        let reader =
            Watched { file, path: self.path.clone(), seen: self.seen, meter: Arc::clone(&self.meter) };
        reader.check()?;
        Ok(Box::new(reader))
    }

    pub(in super::super) fn path(&self) -> &Path {
        &self.path
    }
}

struct Watched {
    file: File,
    path: PathBuf,
    seen: Seen,
    meter: Arc<Mutex<Meter>>,
}

impl Watched {
    fn check(&self) -> io::Result<()> {
        match Seen::of(&fstat(&self.file)?) == self.seen {
            true => Ok(()),
            false => Err(io::Error::other(format!(
                "{} changed while the folder was read; put the folder again",
                self.path.display()
            ))),
        }
    }
}

impl Read for Watched {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let len = self.file.read(buffer)?;
        if len == 0 {
            self.check()?;
        }
        self.meter.lock().unwrap_or_else(PoisonError::into_inner).add(len);
        Ok(len)
    }
}
