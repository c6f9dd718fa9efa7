//! A disk in memory, for stores that end with the process.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};

use crate::{Disk, Entry, File, Open, Wait};

/// A disk whose files are in memory; dropping it drops them.
#[derive(Debug, Default)]
pub struct Memory {
    tree: RwLock<Tree>,
}

#[derive(Debug, Default)]
struct Tree {
    files: BTreeMap<PathBuf, Arc<MemoryFile>>,
    folders: BTreeSet<PathBuf>,
}

#[derive(Debug, Default)]
struct MemoryFile {
    bytes: RwLock<Vec<u8>>,
}

impl Memory {
    /// An empty disk.
    pub fn new() -> Memory {
        Memory::default()
    }

    fn write<T>(&self, change: impl FnOnce(&mut Tree) -> T) -> T {
        change(&mut self.tree.write().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Disk for Memory {
    fn open(&self, path: &Path, how: Open) -> io::Result<Arc<dyn File>> {
        self.write(|tree| match (tree.files.get(path), how) {
            (Some(file), Open::Read) => Ok(Arc::clone(file) as Arc<dyn File>),
            (None, Open::Read) => Err(io::ErrorKind::NotFound.into()),
            (Some(_), Open::Create) => Err(io::ErrorKind::AlreadyExists.into()),
            (None, Open::Create) => {
                let parent = path.parent().unwrap_or(Path::new(""));
                if parent != Path::new("") && !tree.folders.contains(parent) {
                    return Err(io::ErrorKind::NotFound.into());
                }
                let file: Arc<MemoryFile> = Arc::default();
                tree.files.insert(path.to_owned(), Arc::clone(&file));
                Ok(file as Arc<dyn File>)
            }
        })
    }

    fn list(&self, folder: &Path) -> io::Result<Vec<Entry>> {
        self.write(|tree| {
            if folder != Path::new("") && !tree.folders.contains(folder) {
                return Err(io::ErrorKind::NotFound.into());
            }
            let named = |path: &Path, len| {
                let name = path.strip_prefix(folder).ok()?.to_str()?;
                (!name.is_empty() && !name.contains('/')).then(|| Entry { name: name.to_owned(), len })
            };
            let files =
                tree.files.iter().filter_map(|(path, file)| named(path, Some(file.read(<[u8]>::len) as u64)));
            Ok(files.chain(tree.folders.iter().filter_map(|path| named(path, None))).collect())
        })
    }

    fn make_folder(&self, folder: &Path) -> io::Result<()> {
        let folders = folder.ancestors().filter(|folder| *folder != Path::new("")).map(Path::to_owned);
        self.write(|tree| tree.folders.extend(folders));
        Ok(())
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.write(|tree| {
            let file = tree.files.remove(from).ok_or(io::ErrorKind::NotFound)?;
            tree.files.insert(to.to_owned(), file);
            Ok(())
        })
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        self.write(|tree| tree.files.remove(path).map(|_| ()).ok_or(io::ErrorKind::NotFound.into()))
    }

    fn sync_folder(&self, _: &Path) -> io::Result<()> {
        Ok(())
    }
}

impl MemoryFile {
    fn read<T>(&self, look: impl FnOnce(&[u8]) -> T) -> T {
        look(&self.bytes.read().unwrap_or_else(PoisonError::into_inner))
    }

    fn change(&self, change: impl FnOnce(&mut Vec<u8>)) {
        change(&mut self.bytes.write().unwrap_or_else(PoisonError::into_inner));
    }
}

impl File for MemoryFile {
    fn read_at(&self, into: &mut [u8], offset: u64, _: Wait) -> io::Result<usize> {
        self.read(|bytes| {
            let rest = bytes.get(offset as usize..).unwrap_or_default();
            let count = rest.len().min(into.len());
            into[..count].copy_from_slice(&rest[..count]);
            Ok(count)
        })
    }

    fn write_at(&self, new: &[u8], offset: u64) -> io::Result<()> {
        self.change(|bytes| {
            let end = offset as usize + new.len();
            if bytes.len() < end {
                bytes.resize(end, 0);
            }
            bytes[offset as usize..end].copy_from_slice(new);
        });
        Ok(())
    }

    fn sync(&self) -> io::Result<()> {
        Ok(())
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.change(|bytes| bytes.resize(len as usize, 0));
        Ok(())
    }

    fn len(&self) -> io::Result<u64> {
        Ok(self.read(<[u8]>::len) as u64)
    }
}
