//! The storage seam: the few calls by which this crate touches a disk, so that tests can put a disk under it that
//! crashes, writes short, flips bits or is full.

use std::fmt;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::io::ReadWriteFlags;

/// A folder of files and folders. All paths are relative to it. All calls block.
pub trait Disk: fmt::Debug + Send + Sync + 'static {
    /// Opens a file.
    fn open(&self, path: &Path, how: Open) -> io::Result<Arc<dyn File>>;

    /// What is in a folder, in no order.
    fn list(&self, folder: &Path) -> io::Result<Vec<Entry>>;

    /// Makes a folder, and those above it, unless it is there.
    fn make_folder(&self, folder: &Path) -> io::Result<()>;

    /// Moves a file to another name, over what has that name.
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;

    /// Removes a file.
    fn remove(&self, path: &Path) -> io::Result<()>;

    /// Makes durable what was made, renamed and removed in a folder.
    fn sync_folder(&self, folder: &Path) -> io::Result<()>;
}

/// How to open a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Open {
    /// An existing one, to read.
    Read,
    /// A new one, to write and read; an error when there is one.
    Create,
}

/// Something in a folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Its name in the folder.
    pub name: String,
    /// A file's length; nothing for a folder.
    pub len: Option<u64>,
}

/// An open file.
#[allow(clippy::len_without_is_empty, reason = "nobody asks whether a file is empty")]
pub trait File: fmt::Debug + Send + Sync {
    /// Reads into the whole buffer, or as far as the file goes; says how much.
    fn read_at(&self, into: &mut [u8], offset: u64, wait: Wait) -> io::Result<usize>;

    /// Writes all bytes; after an error, any part of them may have been written.
    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()>;

    /// Makes the bytes written so far durable.
    fn sync(&self) -> io::Result<()>;

    /// Cuts the file off.
    fn set_len(&self, len: u64) -> io::Result<()>;

    /// How long the file is.
    fn len(&self) -> io::Result<u64>;
}

/// May a read wait for the disk?
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wait {
    /// It may: the caller's thread may block.
    Yes,
    /// It may not: what is not in memory is [`io::ErrorKind::WouldBlock`].
    No,
}

/// A folder of the file system.
#[derive(Clone, Debug)]
pub struct Folder {
    root: PathBuf,
}

impl Folder {
    /// The folder at this path; it and its parents are made when missing.
    pub fn new(root: impl Into<PathBuf>) -> io::Result<Folder> {
        let root = root.into();
        std::fs::create_dir_all(&root)?;
        Ok(Folder { root })
    }
}

impl Disk for Folder {
    fn open(&self, path: &Path, how: Open) -> io::Result<Arc<dyn File>> {
        let mut options = std::fs::File::options();
        let options = match how {
            Open::Read => options.read(true),
            Open::Create => options.read(true).write(true).create_new(true),
        };
        Ok(Arc::new(options.open(self.root.join(path))?))
    }

    fn list(&self, folder: &Path) -> io::Result<Vec<Entry>> {
        let mut entries = Vec::new();
        for entry in std::fs::read_dir(self.root.join(folder))? {
            let entry = entry?;
            // A name that is not text is not one of ours.
            let Ok(name) = entry.file_name().into_string() else { continue };
            let meta = match entry.metadata() {
                Ok(meta) => meta,
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                Err(error) => return Err(error),
            };
            entries.push(Entry { name, len: meta.is_file().then_some(meta.len()) });
        }
        Ok(entries)
    }

    fn make_folder(&self, folder: &Path) -> io::Result<()> {
        std::fs::create_dir_all(self.root.join(folder))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        std::fs::rename(self.root.join(from), self.root.join(to))
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        std::fs::remove_file(self.root.join(path))
    }

    fn sync_folder(&self, folder: &Path) -> io::Result<()> {
        std::fs::File::open(self.root.join(folder))?.sync_all()
    }
}

impl File for std::fs::File {
    fn read_at(&self, into: &mut [u8], offset: u64, wait: Wait) -> io::Result<usize> {
        let mut done = 0;
        while done < into.len() {
            let (rest, at) = (&mut into[done..], offset + done as u64);
            let read = match wait {
                Wait::Yes => FileExt::read_at(self, rest, at),
                Wait::No => read_cached(self, rest, at),
            };
            match read {
                Ok(0) => break,
                Ok(count) => done += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(done)
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        self.write_all_at(bytes, offset)
    }

    fn sync(&self) -> io::Result<()> {
        self.sync_data()
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        std::fs::File::set_len(self, len)
    }

    fn len(&self) -> io::Result<u64> {
        Ok(self.metadata()?.len())
    }
}

/// Reads what the system has in memory. A file system that cannot tell counts as one that would wait.
fn read_cached(file: &std::fs::File, into: &mut [u8], offset: u64) -> io::Result<usize> {
    let mut parts = [io::IoSliceMut::new(into)];
    match rustix::io::preadv2(file, &mut parts, offset, ReadWriteFlags::NOWAIT) {
        Err(rustix::io::Errno::OPNOTSUPP | rustix::io::Errno::NOSYS) => Err(io::ErrorKind::WouldBlock.into()),
        read => Ok(read?),
    }
}
