//! The traits through which the content store uses a disk.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anabranch_content::{Disk, Entry, File, Open, Wait};

use super::CrashDisk;
use super::call_log::Call;
use super::tree::{Id, Node, parent};

impl Disk for CrashDisk {
    fn open(&self, path: &Path, how: Open) -> io::Result<Arc<dyn File>> {
        let mut state = self.lock();
        let id = match how {
            Open::Read => state.call(Call::Open, path, |state| state.tree.visible.file(path)),
            Open::Create => state.call(Call::Create, path, |state| state.create(path)),
        }?;
        Ok(Arc::new(Handle { disk: self.clone(), id, path: path.to_owned(), how }))
    }

    fn list(&self, folder: &Path) -> io::Result<Vec<Entry>> {
        self.lock().call(Call::List, folder, |state| {
            state.tree.visible.folder(folder)?;
            let inside = state.tree.visible.iter().filter(|(path, _)| parent(path) == folder);
            let entry = |(path, node): (&Path, Node)| Entry {
                name: path.file_name().unwrap().to_str().unwrap().to_owned(),
                len: match node {
                    Node::Folder => None,
                    Node::File(id) => Some(state.content(id).visible().len() as u64),
                },
            };
            Ok(inside.map(entry).collect())
        })
    }

    fn make_folder(&self, folder: &Path) -> io::Result<()> {
        self.lock().call(Call::MakeFolder, folder, |state| state.tree.add_folders(folder))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        let call = Call::Rename { to: to.to_owned() };
        self.lock().call(call, from, |state| state.tree.rename(from, to))
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        self.lock().call(Call::Remove, path, |state| state.tree.remove(path))
    }

    fn sync_folder(&self, folder: &Path) -> io::Result<()> {
        self.lock().call(Call::SyncFolder, folder, |state| state.tree.sync(folder))
    }
}

/// An open file. It can still be used after its name was removed.
struct Handle {
    disk: CrashDisk,
    id: Id,
    /// The path under which it was opened, for the log of calls.
    path: PathBuf,
    how: Open,
}

impl Handle {
    fn check_writable(&self) -> io::Result<()> {
        match self.how {
            Open::Create => Ok(()),
            Open::Read => Err(io::Error::other("the file is open for reading only")),
        }
    }
}

impl File for Handle {
    fn read_at(&self, into: &mut [u8], offset: u64, wait: Wait) -> io::Result<usize> {
        let call = Call::Read { offset, len: into.len() };
        self.disk.lock().call(call, &self.path, |state| {
            if wait == Wait::No && !state.rng.percent(state.faults.cached_percent) {
                return Err(io::ErrorKind::WouldBlock.into());
            }
            let rest = state.content(self.id).visible().get(offset as usize..).unwrap_or_default();
            let count = rest.len().min(into.len());
            into[..count].copy_from_slice(&rest[..count]);
            Ok(count)
        })
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        self.check_writable()?;
        self.disk.lock().write(self.id, &self.path, bytes, offset)
    }

    fn sync(&self) -> io::Result<()> {
        self.disk.lock().sync(self.id, &self.path)
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.check_writable()?;
        self.disk.lock().call(Call::SetLen { len }, &self.path, |state| state.set_len(self.id, len))
    }

    fn len(&self) -> io::Result<u64> {
        let state = self.disk.lock();
        state.check_alive()?;
        Ok(state.content(self.id).visible().len() as u64)
    }
}

impl fmt::Debug for Handle {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "Handle({})", self.path.display())
    }
}
