//! A disk in memory that keeps the promises of a Unix file system across power loss, and no more than those.
//!
//! Every process sees the bytes that a process wrote, but they are not durable yet. A file's bytes and length are
//! durable after its `sync`, a name in a folder after `sync_folder`, a new folder after `sync_folder` of its parent. A
//! rename belongs to the folder that it moves a file to; it happens as a whole or not at all.
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

/// A disk that crashes, fails, fills up and flips bits as a test tells it. A clone is the same disk; see
/// [`snapshot`](CrashDisk::snapshot) for a copy.
///
/// A call is one that changes the disk or makes it durable. Calls are counted from 1, failed ones too.
#[derive(Clone)]
pub struct CrashDisk {
    state: Arc<Mutex<State>>,
}

/// Crashes and copies.
impl CrashDisk {
    /// An empty disk, whose faults follow from `seed`.
    pub fn new(seed: u64) -> CrashDisk {
        CrashDisk::with(State::new(Rng::new(seed)))
    }

    /// The disk that the next process finds after a crash. This disk does not change.
    pub fn crash(&self, seed: u64, crash: Crash) -> CrashDisk {
        CrashDisk::with(self.lock().after(crash, Rng::new(seed)))
    }

    /// A copy, with the same bytes durable. Its calls are counted from 1 again, and it has no faults.
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

    /// The process dies in this call: this call and all later ones, reads too, fail. If it is a write, the first part
    /// of its bytes is written.
    pub fn fail_from(&self, call: u64) {
        self.lock().faults.dies_at = Some(call);
    }

    /// This call fails. A write writes a part of its bytes, a sync loses the changes it should have made durable.
    pub fn fail_once(&self, call: u64, error: io::ErrorKind) {
        self.lock().faults.once.insert(call, error);
    }

    /// This sync of a file, counted from 1, fails. As on Linux, the bytes can still be read but count as clean: no later
    /// sync makes them durable. (A folder's names do not change when its sync fails.)
    pub fn fail_sync(&self, sync: u64) {
        self.lock().faults.syncs.insert(sync);
    }

    /// Limits the bytes of all files that have a name. A write beyond the limit writes the part that fits.
    pub fn capacity(&self, bytes: u64) {
        self.lock().faults.capacity = Some(bytes);
    }

    /// The percentage of reads with [`Wait::No`](anabranch_content::Wait) that find their bytes in memory; 100 by
    /// default.
    pub fn cached(&self, percent: u64) {
        self.lock().faults.cached = percent;
    }
}

/// The tape.
impl CrashDisk {
    /// All calls and reads so far, as `write log/7 at 0: 512`. A file is named as it was when it was opened.
    pub fn tape(&self) -> Vec<String> {
        self.lock().tape.iter().map(ToString::to_string).collect()
    }

    /// How many calls of each kind the tape has, without failed ones.
    pub fn counts(&self) -> Counts {
        Counts::of(&self.lock().tape)
    }

    /// Empties the tape. The count of calls goes on.
    pub fn clear_tape(&self) {
        self.lock().tape.clear();
    }
}

/// Inspection and edits from outside. They do not count as calls, and never fail. An edit first makes everything that
/// was written durable, as an orderly shutdown does.
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

    /// Creates a file and the folders above it, or replaces its bytes.
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
