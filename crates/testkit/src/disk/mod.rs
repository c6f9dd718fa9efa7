//! A disk in memory that keeps the promises of a Unix file system across power loss, and no more than those.
//!
//! What a process wrote is there for every process, but not yet durable: a file's bytes and length are after its
//! `sync`, a name in a folder after `sync_folder`, a new folder after `sync_folder` of the one above it. A rename
//! belongs to the folder it moves to; it has happened or has not, and is never halfway.
//!
//! Reading order: `crash`, `content`, `tree`, `tape`, `state`, `seam`.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard};

mod content;
mod crash;
mod seam;
mod state;
mod tape;
mod tree;

use crate::Rng;
use state::State;

pub use crash::Crash;
pub use tape::Counts;

/// A disk that crashes, fails, fills up and rots as a test likes. A clone is the same disk; see
/// [`snapshot`](CrashDisk::snapshot) for a copy.
///
/// Calls are those that change the disk or make it durable, counted from 1, failed ones too.
#[derive(Clone)]
pub struct CrashDisk {
    state: Arc<Mutex<State>>,
}

/// Ends of the process.
impl CrashDisk {
    /// An empty disk, whose faults follow from `seed`.
    pub fn new(seed: u64) -> CrashDisk {
        CrashDisk::with(State::new(Rng::new(seed)))
    }

    /// The disk as the next process finds it. This one stays as it is.
    pub fn crash(&self, seed: u64, crash: Crash) -> CrashDisk {
        CrashDisk::with(self.lock().after(crash, Rng::new(seed)))
    }

    /// A copy: what is durable here is durable there. Its calls count from 1 again, it has no faults.
    pub fn snapshot(&self) -> CrashDisk {
        let state = self.lock();
        CrashDisk::with(state.after(Crash::Kill, state.rng.clone()))
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
    /// How many calls were made.
    pub fn calls(&self) -> u64 {
        self.lock().calls
    }

    /// The process dies in this call: it and all after it, reads too, are errors. If it is a write, a part of its
    /// bytes, from the first on, was written.
    pub fn fail_from(&self, call: u64) {
        self.lock().faults.dies_at = Some(call);
    }

    /// This call is an error. A write writes a part, a sync loses what it should have kept.
    pub fn fail_once(&self, call: u64, error: io::ErrorKind) {
        self.lock().faults.once.insert(call, error);
    }

    /// This sync of a file, counted from 1, is an error. As on Linux, what it should have kept still is there to
    /// read but counts as clean: no later sync keeps it. (A folder's names stay as they are when its sync fails.)
    pub fn fail_sync(&self, sync: u64) {
        self.lock().faults.syncs.insert(sync);
    }

    /// The files that have a name hold at most so many bytes. A write beyond writes what fits.
    pub fn capacity(&self, bytes: u64) {
        self.lock().faults.capacity = Some(bytes);
    }

    /// So many in a hundred of the reads that may not wait find their bytes in memory; all, unless told.
    pub fn cached(&self, percent: u64) {
        self.lock().faults.cached = percent;
    }
}

/// The tape.
impl CrashDisk {
    /// All calls and reads so far, as `write log/7 at 0: 512`. A file goes by the name it was opened by.
    pub fn tape(&self) -> Vec<String> {
        self.lock().tape.iter().map(ToString::to_string).collect()
    }

    /// How many of each the tape has, without those that failed.
    pub fn counts(&self) -> Counts {
        Counts::of(&self.lock().tape)
    }

    /// Empties the tape. The calls go on counting.
    pub fn clear_tape(&self) {
        self.lock().tape.clear();
    }
}

/// Looks and edits at rest. They are no calls, and never fail. An edit first makes all durable that was written, as
/// an orderly shutdown does.
impl CrashDisk {
    /// The files and their lengths, by path.
    pub fn files(&self) -> Vec<(PathBuf, u64)> {
        self.lock().lengths().collect()
    }

    /// A file's bytes, if it is there.
    pub fn bytes(&self, path: impl AsRef<Path>) -> Option<Vec<u8>> {
        let state = self.lock();
        let id = state.tree.seen.file(path.as_ref()).ok()?;
        Some(state.content(id).seen().to_vec())
    }

    /// Flips the bits of `mask` in one byte of a file.
    pub fn flip(&self, path: impl AsRef<Path>, offset: u64, mask: u8) {
        self.edit(path.as_ref(), |bytes| bytes[offset as usize] ^= mask);
    }

    /// Cuts a file off, or fills it up with zeros.
    pub fn truncate(&self, path: impl AsRef<Path>, len: u64) {
        self.edit(path.as_ref(), |bytes| bytes.resize(len as usize, 0));
    }

    /// Makes a file, or gives it other bytes; makes the folders above it.
    pub fn put(&self, path: impl AsRef<Path>, bytes: impl Into<Vec<u8>>) {
        self.lock().make_file(path.as_ref()).unwrap();
        self.edit(path.as_ref(), |old| *old = bytes.into());
    }

    /// Removes a file.
    pub fn remove_file(&self, path: impl AsRef<Path>) {
        let mut state = self.lock();
        state.tree.remove(path.as_ref()).unwrap();
        state.settle();
    }

    fn edit(&self, path: &Path, edit: impl FnOnce(&mut Vec<u8>)) {
        let mut state = self.lock();
        let id = state.tree.seen.file(path).unwrap_or_else(|_| panic!("no file `{}`", path.display()));
        state.content_mut(id).edit(edit);
        state.settle();
    }
}

impl fmt::Debug for CrashDisk {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = self.lock();
        write!(out, "CrashDisk({} files, {} calls)", state.lengths().count(), state.calls)
    }
}
