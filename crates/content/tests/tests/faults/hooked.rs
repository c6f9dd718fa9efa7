//! A disk with a hook: it is asked before every call, and may refuse it.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anabranch_content::{Disk, Entry, File, Open, Wait};
use anabranch_testkit::CrashDisk;

/// What is about to be done, or was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Call {
    Read,
    Write,
    Sync,
    /// A sync that went well.
    Synced,
    Other,
}

type Hook = dyn Fn(Call, &Path) -> io::Result<()> + Send + Sync;

#[derive(Clone)]
pub(crate) struct HookedDisk {
    disk: CrashDisk,
    hook: Arc<Hook>,
}

impl HookedDisk {
    pub(crate) fn new(
        disk: &CrashDisk,
        hook: impl Fn(Call, &Path) -> io::Result<()> + Send + Sync + 'static,
    ) -> HookedDisk {
        HookedDisk { disk: disk.clone(), hook: Arc::new(hook) }
    }
}

impl fmt::Debug for HookedDisk {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "Hooked({:?})", self.disk)
    }
}

impl Disk for HookedDisk {
    fn open(&self, path: &Path, how: Open) -> io::Result<Arc<dyn File>> {
        (self.hook)(Call::Other, path)?;
        let file = self.disk.open(path, how)?;
        Ok(Arc::new(HookedFile { file, path: path.to_owned(), hook: Arc::clone(&self.hook) }))
    }

    fn list(&self, folder: &Path) -> io::Result<Vec<Entry>> {
        (self.hook)(Call::Other, folder)?;
        self.disk.list(folder)
    }

    fn make_folder(&self, folder: &Path) -> io::Result<()> {
        (self.hook)(Call::Other, folder)?;
        self.disk.make_folder(folder)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        (self.hook)(Call::Other, from)?;
        self.disk.rename(from, to)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        (self.hook)(Call::Other, path)?;
        self.disk.remove(path)
    }

    fn sync_folder(&self, folder: &Path) -> io::Result<()> {
        (self.hook)(Call::Other, folder)?;
        self.disk.sync_folder(folder)
    }
}

struct HookedFile {
    file: Arc<dyn File>,
    path: PathBuf,
    hook: Arc<Hook>,
}

impl fmt::Debug for HookedFile {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "HookedFile({})", self.path.display())
    }
}

impl File for HookedFile {
    fn read_at(&self, into: &mut [u8], offset: u64, wait: Wait) -> io::Result<usize> {
        (self.hook)(Call::Read, &self.path)?;
        self.file.read_at(into, offset, wait)
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        (self.hook)(Call::Write, &self.path)?;
        self.file.write_at(bytes, offset)
    }

    fn sync(&self) -> io::Result<()> {
        (self.hook)(Call::Sync, &self.path)?;
        self.file.sync()?;
        (self.hook)(Call::Synced, &self.path)
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        (self.hook)(Call::Other, &self.path)?;
        self.file.set_len(len)
    }

    fn len(&self) -> io::Result<u64> {
        self.file.len()
    }
}
