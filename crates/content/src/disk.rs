//! The only calls with which this crate touches a disk. Tests replace the disk with one that crashes, writes short,
//! flips bits or is full.

use std::fmt;
use std::io;
use std::os::unix::fs::{DirBuilderExt, FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A folder of files and folders. All paths are relative to it. All calls block.
pub trait Disk: fmt::Debug + Send + Sync + 'static {
    /// Opens a file.
    fn open(&self, path: &Path, how: Open) -> io::Result<Arc<dyn File>>;

    /// The entries of a folder, in no order.
    fn list(&self, folder: &Path) -> io::Result<Vec<Entry>>;

    /// Creates a folder and the missing ones above it.
    fn make_folder(&self, folder: &Path) -> io::Result<()>;

    /// Renames a file; a file that has the new name is replaced.
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;

    /// Removes a file.
    fn remove(&self, path: &Path) -> io::Result<()>;

    /// Makes the creations, renames and removals in a folder durable.
    fn sync_folder(&self, folder: &Path) -> io::Result<()>;
}

/// The mode in which a file is opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Open {
    /// Opens an existing file to read it.
    Read,
    /// Creates a file to write and read it; fails if the file exists.
    Create,
}

/// An entry of a folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Its name in the folder.
    pub name: String,
    /// The length of a file; `None` for a folder.
    pub len: Option<u64>,
}

/// An open file.
#[allow(clippy::len_without_is_empty, reason = "no caller needs to know whether a file is empty")]
pub trait File: fmt::Debug + Send + Sync {
    /// Fills the buffer, or as much of it as the file has bytes; returns how many were read.
    fn read_at(&self, into: &mut [u8], offset: u64, wait: Wait) -> io::Result<usize>;

    /// Writes all bytes; after an error, any part of them may have been written.
    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()>;

    /// Makes the bytes written so far durable.
    fn sync(&self) -> io::Result<()>;

    /// Cuts the file, or extends it with zeros, to this length.
    fn set_len(&self, len: u64) -> io::Result<()>;

    /// The length of the file.
    fn len(&self) -> io::Result<u64>;

    /// Takes all bytes of another file without a copy of them. An error if the disk cannot do so: nothing was written, or
    /// any part of those bytes.
    fn share(&self, _from: &std::fs::File) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }
}

/// Whether a read may wait for the disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wait {
    /// It may block the caller's thread.
    Yes,
    /// It must not: bytes that are not in memory are an [`io::ErrorKind::WouldBlock`].
    No,
}

/// A folder of the file system.
#[derive(Clone, Debug)]
pub struct Folder {
    root: PathBuf,
}

/// The modes of new folders and files: a store is its owner's alone.
pub(crate) const FILE_MODE: u32 = 0o600;
const FOLDER_MODE: u32 = 0o700;

impl Folder {
    /// The folder at this path; it and its parents are created when missing, and are durable then.
    pub fn new(root: impl Into<PathBuf>) -> io::Result<Folder> {
        let root = root.into();
        create_folders(&root, |parent| std::fs::File::open(parent)?.sync_all())?;
        Ok(Folder { root })
    }
}

/// Creates a folder and the missing ones above it, and syncs the parent of each: a new folder is there after a power
/// cut only if its entry in its parent is durable.
fn create_folders(folder: &Path, mut sync: impl FnMut(&Path) -> io::Result<()>) -> io::Result<()> {
    let is_new = |folder: &&Path| *folder != Path::new("") && !folder.exists();
    let new: Vec<&Path> = folder.ancestors().take_while(is_new).collect();
    // Others may not look into a new store. A folder that is there keeps its mode, and so do the folders above it.
    if new.len() > 1 {
        std::fs::create_dir_all(parent_of(folder))?;
    }
    std::fs::DirBuilder::new().recursive(true).mode(FOLDER_MODE).create(folder)?;
    new.into_iter().rev().try_for_each(|folder| sync(parent_of(folder)))
}

fn parent_of(folder: &Path) -> &Path {
    folder.parent().filter(|parent| *parent != Path::new("")).unwrap_or(Path::new("."))
}

impl Disk for Folder {
    fn open(&self, path: &Path, how: Open) -> io::Result<Arc<dyn File>> {
        let mut options = std::fs::File::options();
        let options = match how {
            Open::Read => options.read(true),
            Open::Create => options.read(true).write(true).create_new(true).mode(FILE_MODE),
        };
        Ok(Arc::new(options.open(self.root.join(path))?))
    }

    fn list(&self, folder: &Path) -> io::Result<Vec<Entry>> {
        let mut entries = Vec::new();
        for entry in std::fs::read_dir(self.root.join(folder))? {
            let entry = entry?;
            // Every name that this crate writes is UTF-8, so this file is not the store's.
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
        std::fs::DirBuilder::new().recursive(true).mode(FOLDER_MODE).create(self.root.join(folder))
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
        self.sync_data()?;
        // Otherwise writes would be acknowledged that nobody can ever read.
        match self.metadata()?.nlink() {
            0 => Err(io::Error::new(io::ErrorKind::NotFound, "it was removed while the store was in use")),
            _ => Ok(()),
        }
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        std::fs::File::set_len(self, len)
    }

    fn len(&self) -> io::Result<u64> {
        Ok(self.metadata()?.len())
    }

    #[cfg(target_os = "linux")]
    fn share(&self, from: &std::fs::File) -> io::Result<()> {
        Ok(rustix::fs::ioctl_ficlone(self, from)?)
    }
}

/// Reads only from the system's page cache. If the file system does not support this, the read fails as if it would
/// block.
#[cfg(target_os = "linux")]
fn read_cached(file: &std::fs::File, into: &mut [u8], offset: u64) -> io::Result<usize> {
    use rustix::io::{Errno, ReadWriteFlags, preadv2};

    let mut parts = [io::IoSliceMut::new(into)];
    match preadv2(file, &mut parts, offset, ReadWriteFlags::NOWAIT) {
        Err(Errno::OPNOTSUPP | Errno::NOSYS) => Err(io::ErrorKind::WouldBlock.into()),
        read => Ok(read?),
    }
}

/// Other systems have no such call: every read may wait.
#[cfg(not(target_os = "linux"))]
fn read_cached(_: &std::fs::File, _: &mut [u8], _: u64) -> io::Result<usize> {
    Err(io::ErrorKind::WouldBlock.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_parent_of_each_new_folder_is_synced() {
        let name = format!("anabranch-folders-{}", std::process::id());
        let root = std::env::temp_dir().join(name);
        let create = |folder: &str| {
            let mut synced = Vec::new();
            create_folders(&root.join(folder), |parent| {
                synced.push(parent.to_owned());
                Ok(())
            })
            .unwrap();
            assert!(root.join(folder).is_dir());
            synced
        };
        assert_eq!(create("a/b/store"), [root.parent().unwrap(), &root, &root.join("a"), &root.join("a/b")]);
        assert_eq!(create("a/b/store"), [] as [PathBuf; 0]);
        assert_eq!(create("a/other"), [root.join("a")]);
        std::fs::remove_dir_all(root).unwrap();
    }

    #[test]
    fn a_new_store_is_its_owners_alone() {
        use std::os::unix::fs::PermissionsExt;
        let root = std::env::temp_dir().join(format!("anabranch-modes-{}", std::process::id()));
        let folder = Folder::new(root.join("above/store")).unwrap();
        folder.make_folder(Path::new("files/ab")).unwrap();
        folder.open(Path::new("files/ab/one"), Open::Create).unwrap();
        let mode = |path: &str| std::fs::metadata(root.join(path)).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode("above/store"), mode("above/store/files/ab")), (0o700, 0o700));
        assert_eq!(mode("above/store/files/ab/one"), 0o600);
        assert_ne!(mode("above") & 0o050, 0, "a folder above the store has the usual mode");
        std::fs::remove_dir_all(root).unwrap();
    }

    #[test]
    fn the_parent_of_a_bare_name_is_the_working_folder() {
        assert_eq!(parent_of(Path::new("store")), Path::new("."));
        assert_eq!(parent_of(Path::new("/data/store")), Path::new("/data"));
    }
}
