//! A disk whose calls fail from a chosen one on, and that forgets in a crash what was not synced.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use crate::{Disk, Entry, File, Memory, Open, Wait};

/// The calls that fail: `count` of them, starting with number `from`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Faults {
    pub(super) from: usize,
    pub(super) count: usize,
}

/// The data that survives a crash.
#[derive(Clone, Copy, Debug)]
pub(super) enum Crash {
    /// All changes, synced or not.
    All,
    /// All names, but only the synced bytes of each file.
    Names,
    /// Only the synced names and bytes.
    Synced,
}

#[derive(Debug)]
pub(super) struct ShakyDisk {
    faults: Faults,
    calls: Arc<AtomicUsize>,
    names: Mutex<Names>,
}

#[derive(Debug, Default)]
struct Names {
    now: BTreeMap<PathBuf, Arc<ShakyFile>>,
    synced: BTreeMap<PathBuf, Arc<ShakyFile>>,
}

#[derive(Debug)]
struct ShakyFile {
    faults: Faults,
    calls: Arc<AtomicUsize>,
    now: Mutex<Vec<u8>>,
    synced: Mutex<Vec<u8>>,
}

fn call(calls: &AtomicUsize, faults: Faults) -> io::Result<()> {
    let number = calls.fetch_add(1, Ordering::Relaxed);
    let fails = number >= faults.from && number - faults.from < faults.count;
    if fails { Err(io::ErrorKind::StorageFull.into()) } else { Ok(()) }
}

impl ShakyDisk {
    pub(super) fn new(faults: Faults) -> ShakyDisk {
        ShakyDisk { faults, calls: Arc::default(), names: Mutex::default() }
    }

    /// The number of calls so far.
    pub(super) fn calls(&self) -> usize {
        self.calls.load(Ordering::Relaxed)
    }

    /// The disk after a crash.
    pub(super) fn after(&self, crash: Crash) -> Arc<Memory> {
        let memory = Memory::new();
        let names = self.names.lock().unwrap();
        let left = if matches!(crash, Crash::Synced) { &names.synced } else { &names.now };
        for (path, file) in left {
            let bytes = if matches!(crash, Crash::All) { &file.now } else { &file.synced };
            memory.make_folder(path.parent().unwrap()).unwrap();
            memory.open(path, Open::Create).unwrap().write_at(&bytes.lock().unwrap(), 0).unwrap();
        }
        Arc::new(memory)
    }

    fn change<T>(&self, change: impl FnOnce(&mut Names) -> Option<T>) -> io::Result<T> {
        call(&self.calls, self.faults)?;
        change(&mut self.names.lock().unwrap()).ok_or(io::ErrorKind::NotFound.into())
    }
}

impl Disk for ShakyDisk {
    fn open(&self, path: &Path, how: Open) -> io::Result<Arc<dyn File>> {
        let file = self.change(|names| match how {
            Open::Read => names.now.get(path).cloned(),
            Open::Create => {
                let file = ShakyFile {
                    faults: self.faults,
                    calls: Arc::clone(&self.calls),
                    now: Mutex::default(),
                    synced: Mutex::default(),
                };
                assert!(!names.now.contains_key(path), "{} exists", path.display());
                Some(Arc::clone(names.now.entry(path.to_owned()).or_insert(Arc::new(file))))
            }
        })?;
        Ok(file)
    }

    fn list(&self, folder: &Path) -> io::Result<Vec<Entry>> {
        self.change(|names| {
            let paths = names.now.keys().filter(|path| path.parent() == Some(folder));
            let names = paths.map(|path| path.file_name().unwrap().to_str().unwrap().to_owned());
            Some(names.map(|name| Entry { name, len: Some(0) }).collect())
        })
    }

    fn make_folder(&self, _: &Path) -> io::Result<()> {
        self.change(|_| Some(()))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.change(|names| {
            let file = names.now.remove(from)?;
            names.now.insert(to.to_owned(), file);
            Some(())
        })
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        self.change(|names| names.now.remove(path).map(|_| ()))
    }

    fn sync_folder(&self, _: &Path) -> io::Result<()> {
        self.change(|names| {
            names.synced = names.now.clone();
            Some(())
        })
    }
}

impl File for ShakyFile {
    fn read_at(&self, into: &mut [u8], offset: u64, _: Wait) -> io::Result<usize> {
        call(&self.calls, self.faults)?;
        let bytes = self.now.lock().unwrap();
        let rest = bytes.get(offset as usize..).unwrap_or_default();
        let count = rest.len().min(into.len());
        into[..count].copy_from_slice(&rest[..count]);
        Ok(count)
    }

    /// A write that fails has written half.
    fn write_at(&self, new: &[u8], offset: u64) -> io::Result<()> {
        let result = call(&self.calls, self.faults);
        let new = if result.is_ok() { new } else { &new[..new.len() / 2] };
        let mut bytes = self.now.lock().unwrap();
        let end = offset as usize + new.len();
        if bytes.len() < end {
            bytes.resize(end, 0);
        }
        bytes[offset as usize..end].copy_from_slice(new);
        result
    }

    fn sync(&self) -> io::Result<()> {
        call(&self.calls, self.faults)?;
        self.synced.lock().unwrap().clone_from(&self.now.lock().unwrap());
        Ok(())
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        call(&self.calls, self.faults)?;
        self.now.lock().unwrap().resize(len as usize, 0);
        Ok(())
    }

    fn len(&self) -> io::Result<u64> {
        call(&self.calls, self.faults)?;
        Ok(self.now.lock().unwrap().len() as u64)
    }
}
