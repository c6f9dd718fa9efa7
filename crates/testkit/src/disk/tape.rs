//! The tape: the calls in order.

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

/// How many calls of each kind succeeded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Reads of a file.
    pub reads: u64,
    /// Files created.
    pub creates: u64,
    /// Writes to a file.
    pub writes: u64,
    /// The bytes of those.
    pub written: u64,
    /// Lengths set.
    pub set_lens: u64,
    /// Syncs of a file.
    pub syncs: u64,
    /// Syncs of a folder.
    pub folder_syncs: u64,
    /// Renames.
    pub renames: u64,
    /// Files removed.
    pub removals: u64,
}

impl Call {
    /// Does it leave the disk unchanged?
    pub(super) fn only_looks(&self) -> bool {
        matches!(self, Call::Open | Call::List | Call::Read { .. })
    }
}

impl Counts {
    pub(super) fn of(tape: &[Event]) -> Counts {
        let mut counts = Counts::default();
        for event in tape.iter().filter(|event| !event.failed) {
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
