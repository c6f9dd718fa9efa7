//! A disk that notes what is done to it and can be told to refuse.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use super::{Arc, Disk, File, Memory, Open, Wait};
use crate::Entry;

/// Notes of all calls that change something.
#[derive(Debug, Default)]
pub(super) struct WatchedDisk {
    memory: Memory,
    notes: Arc<Notes>,
}

#[derive(Debug, Default)]
struct Notes {
    calls: Mutex<Vec<String>>,
    refused: Mutex<Option<&'static str>>,
    shares: AtomicBool,
    fails_to_share: AtomicBool,
}

#[derive(Debug)]
struct WatchedFile {
    file: Arc<dyn File>,
    path: PathBuf,
    notes: Arc<Notes>,
}

impl WatchedDisk {
    /// From now on, calls fail whose note begins with these words.
    pub(super) fn refuse(&self, call: Option<&'static str>) {
        *self.notes.refused.lock().unwrap() = call;
    }

    /// From now on, files take the bytes of others without a copy.
    pub(super) fn share_bytes(&self) {
        self.notes.shares.store(true, Ordering::Relaxed);
    }

    /// From now on, sharing fails once more bytes than the other file has are there.
    pub(super) fn fail_to_share(&self) {
        self.notes.fails_to_share.store(true, Ordering::Relaxed);
    }

    /// The notes since the last time, a line each, with addresses cut short.
    pub(super) fn notes(&self) -> String {
        self.notes.calls.lock().unwrap().drain(..).map(|note| note + "\n").collect()
    }
}

impl Notes {
    fn note(&self, call: &str, path: &Path) -> io::Result<()> {
        let path: Vec<_> = path.iter().map(|part| shortened(part.to_str().unwrap())).collect();
        let note = format!("{call} {}", path.join("/"));
        let refused = self.refused.lock().unwrap().is_some_and(|words| {
            note.strip_prefix(words).is_some_and(|rest| rest.is_empty() || rest.starts_with(' '))
        });
        self.calls.lock().unwrap().push(note);
        if refused { Err(io::ErrorKind::StorageFull.into()) } else { Ok(()) }
    }
}

fn shortened(part: &str) -> String {
    match part.split_once('.') {
        Some((address, rest)) if address.len() == 64 => format!("{address:.6}.{rest}"),
        _ => part.to_owned(),
    }
}

impl Disk for WatchedDisk {
    fn open(&self, path: &Path, how: Open) -> io::Result<Arc<dyn File>> {
        if how == Open::Create {
            self.notes.note("make", path)?;
        }
        let file = self.memory.open(path, how)?;
        Ok(Arc::new(WatchedFile { file, path: path.to_owned(), notes: Arc::clone(&self.notes) }))
    }

    fn list(&self, folder: &Path) -> io::Result<Vec<Entry>> {
        self.memory.list(folder)
    }

    fn make_folder(&self, folder: &Path) -> io::Result<()> {
        self.notes.note("folder", folder)?;
        self.memory.make_folder(folder)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.notes.note("rename to", to)?;
        self.memory.rename(from, to)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        let thread = std::thread::current();
        let on_pool = thread.name().is_some_and(|name| name.starts_with("content-io-"));
        self.notes.note(if on_pool { "remove on a thread" } else { "remove" }, path)?;
        self.memory.remove(path)
    }

    fn sync_folder(&self, folder: &Path) -> io::Result<()> {
        self.notes.note("sync folder", folder)
    }
}

impl File for WatchedFile {
    fn read_at(&self, into: &mut [u8], offset: u64, wait: Wait) -> io::Result<usize> {
        self.file.read_at(into, offset, wait)
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        self.notes.note(&format!("write {} at {offset} of", bytes.len()), &self.path)?;
        self.file.write_at(bytes, offset)
    }

    fn sync(&self) -> io::Result<()> {
        self.notes.note("sync", &self.path)
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.file.set_len(len)
    }

    fn len(&self) -> io::Result<u64> {
        self.file.len()
    }

    fn share(&self, from: &std::fs::File) -> io::Result<()> {
        if self.notes.fails_to_share.load(Ordering::Relaxed) {
            self.file.write_at(b"bytes of a share that failed", File::len(from)?)?;
            return Err(io::ErrorKind::Interrupted.into());
        }
        if !self.notes.shares.load(Ordering::Relaxed) {
            return Err(io::ErrorKind::Unsupported.into());
        }
        self.notes.note("share", &self.path)?;
        let mut bytes = vec![0; File::len(from)? as usize];
        File::read_at(from, &mut bytes, 0, Wait::Yes)?;
        self.file.write_at(&bytes, 0)
    }
}
