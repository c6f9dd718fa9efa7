//! A disk in memory with exactly the guarantees that a Unix file system gives across power loss.
//!
//! All processes see written bytes at once, but these are not durable yet. `sync` makes the bytes and the length of a
//! file durable. `sync_folder` makes the names in a folder durable; a new folder needs `sync_folder` of its parent. A
//! rename is atomic, and `sync_folder` of its target folder makes it durable.
//!
//! Reading order: `crash`, `content`, `tree`, `call_log`, `state`, `store_disk`.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard};

mod call_log;
mod content;
mod crash;
mod state;
mod store_disk;
mod tree;

use crate::Rng;
use state::State;

pub use call_log::CallCounts;
pub use crash::Crash;

/// A disk for tests that can crash, fail a call, run full and flip bits. A clone is a handle to the same disk;
/// [`snapshot`](CrashDisk::snapshot) makes a copy.
///
/// Calls that change the disk or make changes durable are counted from 1, including failed ones. Reads are not.
#[derive(Clone)]
pub struct CrashDisk {
    state: Arc<Mutex<State>>,
}

/// Crashes and copies.
impl CrashDisk {
    /// An empty disk. `seed` decides every random choice.
    pub fn new(seed: u64) -> CrashDisk {
        CrashDisk::with(State::new(Rng::new(seed)))
    }

    /// The disk that the next process finds after a crash. This disk itself does not change.
    pub fn crash(&self, seed: u64, crash: Crash) -> CrashDisk {
        CrashDisk::with(self.lock().after_crash(crash, Rng::new(seed)))
    }

    /// A copy with the same visible and durable data, without faults. Its calls are counted from 1.
    pub fn snapshot(&self) -> CrashDisk {
        let state = self.lock();
        CrashDisk::with(state.after_crash(Crash::Kill, state.rng.clone()))
    }

    fn with(state: State) -> CrashDisk {
        CrashDisk { state: Arc::new(Mutex::new(state)) }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }
}

/// Faults.
impl CrashDisk {
    /// The number of calls so far.
    pub fn calls(&self) -> u64 {
        self.lock().calls
    }

    /// Makes the process die in this call: it fails, and so do all later calls and reads. If the call is a write, a
    /// random prefix of its bytes is written.
    pub fn fail_from(&self, call: u64) {
        self.lock().faults.dies_at = Some(call);
    }

    /// Makes this one call fail. A failing write writes a random prefix of its bytes; a failing sync loses the changes
    /// that it should have made durable.
    pub fn fail_once(&self, call: u64, error: io::ErrorKind) {
        self.lock().faults.fail_once.insert(call, error);
    }

    /// Makes one sync of a file fail; syncs of files are counted from 1. As on Linux, the bytes can still be read, but no
    /// later sync makes them durable. A failed sync of a folder has no such effect on its names.
    pub fn fail_sync(&self, sync: u64) {
        self.lock().faults.fail_syncs.insert(sync);
    }

    /// Limits the total size of all files that have a name. A write beyond the limit writes the part that fits.
    pub fn set_capacity(&self, bytes: u64) {
        self.lock().faults.capacity = Some(bytes);
    }

    /// Sets the percentage of reads with [`Wait::No`](anabranch_content::Wait) that find their bytes in memory. The
    /// default is 100.
    pub fn set_cached_percent(&self, percent: u64) {
        self.lock().faults.cached_percent = percent;
    }
}

/// The log of calls.
impl CrashDisk {
    /// All calls and reads so far, such as `write log/7 at 0: 512`. A file has the path under which it was opened.
    pub fn call_log(&self) -> Vec<String> {
        self.lock().call_log.iter().map(ToString::to_string).collect()
    }

    /// The number of successful calls of each kind in the log.
    pub fn counts(&self) -> CallCounts {
        CallCounts::of(&self.lock().call_log)
    }

    /// Empties the log. [`calls`](CrashDisk::calls) keeps counting.
    pub fn clear_call_log(&self) {
        self.lock().call_log.clear();
    }
}

/// Inspection and edits by the test. They are not counted as calls and no fault affects them. An edit also makes all
/// visible data durable, as a clean shutdown does.
impl CrashDisk {
    /// All files with their lengths, sorted by path.
    pub fn files(&self) -> Vec<(PathBuf, u64)> {
        self.lock().lengths().collect()
    }

    /// The bytes of a file; `None` if it does not exist.
    pub fn bytes(&self, path: impl AsRef<Path>) -> Option<Vec<u8>> {
        let state = self.lock();
        let id = state.tree.visible.file(path.as_ref()).ok()?;
        Some(state.content(id).visible().to_vec())
    }

    /// Flips the bits that are set in `mask` in one byte of a file.
    pub fn flip(&self, path: impl AsRef<Path>, offset: u64, mask: u8) {
        self.edit(path.as_ref(), |bytes| bytes[offset as usize] ^= mask);
    }

    /// Changes all files whose path is wanted, at one moment: a program at work may remove a file between two calls.
    pub fn edit_all(&self, is_wanted: impl Fn(&Path) -> bool, edit: impl Fn(&mut Vec<u8>)) {
        let mut state = self.lock();
        let wanted: Vec<PathBuf> =
            state.lengths().map(|(path, _)| path).filter(|path| is_wanted(path)).collect();
        for path in wanted {
            let id = state.tree.visible.file(&path).expect("the file was listed just now");
            state.content_mut(id).edit(&edit);
        }
        state.make_durable();
    }

    /// Sets the length of a file. A longer file is filled with zeros.
    pub fn truncate(&self, path: impl AsRef<Path>, len: u64) {
        self.edit(path.as_ref(), |bytes| bytes.resize(len as usize, 0));
    }

    /// Writes a file. Creates it and the folders above it if they do not exist.
    pub fn put(&self, path: impl AsRef<Path>, bytes: impl Into<Vec<u8>>) {
        self.lock().make_file(path.as_ref()).unwrap();
        self.edit(path.as_ref(), |old| *old = bytes.into());
    }

    /// Removes a file.
    pub fn remove_file(&self, path: impl AsRef<Path>) {
        let mut state = self.lock();
        state.tree.remove(path.as_ref()).unwrap();
        state.make_durable();
    }

    fn edit(&self, path: &Path, edit: impl FnOnce(&mut Vec<u8>)) {
        let mut state = self.lock();
        let id = state
            .tree
            .visible
            .file(path)
            .unwrap_or_else(|_| panic!("the disk has no file `{}`", path.display()));
        state.content_mut(id).edit(edit);
        state.make_durable();
    }
}

impl fmt::Debug for CrashDisk {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = self.lock();
        write!(out, "CrashDisk({} files, {} calls)", state.lengths().count(), state.calls)
    }
}
