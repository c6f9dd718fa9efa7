//! The log of calls to a disk, in order.

use std::fmt;
use std::path::{Path, PathBuf};

pub(super) struct Event {
    pub(super) call: Call,
    pub(super) path: PathBuf,
    pub(super) failed: bool,
}

pub(super) enum Call {
    Open,
    List,
    Read { offset: u64, len: usize },
    Create,
    MakeFolder,
    Rename { to: PathBuf },
    Remove,
    SyncFolder,
    Write { offset: u64, len: usize },
    SetLen { len: u64 },
    Sync,
}

/// The number of successful calls of each kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CallCounts {
    pub reads: u64,
    pub creates: u64,
    pub writes: u64,
    /// The bytes of all writes.
    pub written: u64,
    pub set_lens: u64,
    /// Syncs of files, not of folders.
    pub syncs: u64,
    pub folder_syncs: u64,
    pub renames: u64,
    pub removals: u64,
}

impl Call {
    /// Whether the call leaves the disk unchanged.
    pub(super) fn is_read_only(&self) -> bool {
        matches!(self, Call::Open | Call::List | Call::Read { .. })
    }
}

impl CallCounts {
    pub(super) fn of(log: &[Event]) -> CallCounts {
        let mut counts = CallCounts::default();
        for event in log.iter().filter(|event| !event.failed) {
            counts.add(&event.call);
        }
        counts
    }

    fn add(&mut self, call: &Call) {
        let count = match call {
            Call::Open | Call::List | Call::MakeFolder => return,
            Call::Read { .. } => &mut self.reads,
            Call::Create => &mut self.creates,
            Call::Rename { .. } => &mut self.renames,
            Call::Remove => &mut self.removals,
            Call::SyncFolder => &mut self.folder_syncs,
            Call::Write { len, .. } => {
                self.written += *len as u64;
                &mut self.writes
            }
            Call::SetLen { .. } => &mut self.set_lens,
            Call::Sync => &mut self.syncs,
        };
        *count += 1;
    }
}

impl fmt::Display for Event {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = if self.path == Path::new("") { Path::new(".") } else { &self.path }.display();
        match &self.call {
            Call::Open => write!(out, "open {path}"),
            Call::List => write!(out, "list {path}"),
            Call::Read { offset, len } => write!(out, "read {path} at {offset}: {len}"),
            Call::Create => write!(out, "create {path}"),
            Call::MakeFolder => write!(out, "make_folder {path}"),
            Call::Rename { to } => write!(out, "rename {path} to {}", to.display()),
            Call::Remove => write!(out, "remove {path}"),
            Call::SyncFolder => write!(out, "sync_folder {path}"),
            Call::Write { offset, len } => write!(out, "write {path} at {offset}: {len}"),
            Call::SetLen { len } => write!(out, "set_len {path}: {len}"),
            Call::Sync => write!(out, "sync {path}"),
        }?;
        out.write_str(if self.failed { " (failed)" } else { "" })
    }
}
