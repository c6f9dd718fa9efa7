//! What happens in a store, told as it happens.

use std::fmt;
use std::time::Duration;

use super::report::{Health, count};
use crate::facts::{Class, RemovalReason, Time};
use crate::{Address, Error};

/// One fact about a store.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Event {
    /// Something was asked of the store and answered. Hits of the cache are not told, but counted.
    Done {
        /// `put`, `get`, `memo`, ...: the names in [`Stats::operations`].
        operation: &'static str,
        /// What it came to.
        outcome: Outcome,
    },
    /// The store was opened; what was found and mended.
    Opened(Opened),
    /// The bytes of a blob or of a description were not the ones that were put; what is left of them is in quarantine.
    Quarantined {
        /// Whose bytes.
        address: Address,
        /// What did not hold.
        what: String,
        /// Acknowledged data is lost with it; derivable data can be derived again.
        class: Class,
    },
    /// Acknowledged things of which nothing is left, beyond those that [`Event::Quarantined`] told of one by one.
    Lost {
        /// What was lost.
        what: String,
        /// How many things.
        count: u64,
    },
    /// A derivation was remembered with another output than before.
    Diverged {
        /// The derivation.
        derivation: Address,
        /// Its output before.
        before: Address,
        /// Its output from now on.
        now: Address,
    },
    /// Things were removed.
    Removed {
        /// How many.
        count: usize,
        /// Why.
        why: RemovalReason,
    },
    /// Recent entries were written to the index.
    Indexed,
    /// The index was found damaged: it answers errors now and is made anew from the log when the store is opened.
    IndexDamaged {
        /// What does not hold.
        what: String,
    },
    /// Segments of the log were rewritten without what no longer holds.
    Cleaned {
        /// How many.
        segments: usize,
        /// Bytes given back to the disk.
        bytes: u64,
    },
    /// The store was over its quota and could not get below it.
    OverQuota {
        /// Bytes in use.
        used: u64,
    },
    /// A file that nothing names could not be removed.
    LeftBehind {
        /// Whose file.
        address: Address,
        /// Why not.
        error: Error,
    },
    /// Something in the background failed; it is tried again. Derived values that could not be written are not known
    /// any more.
    Failed {
        /// What was tried.
        doing: &'static str,
        /// Why it failed.
        error: Error,
    },
}

/// What an operation came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It moved so many bytes, or none where there are none to move.
    Bytes(u64),
    /// There was nothing, or nothing to do.
    Nothing,
    /// It failed.
    Failed,
}

/// What opening a store found, and what it did about it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Opened {
    /// It was closed in order the last time.
    pub clean: bool,
    /// Records read again from the log because the index did not have them.
    pub replayed: u64,
    /// Why the index was made anew, if it was.
    pub rebuilt: Option<String>,
    /// Stretches of the log that hold no whole record: a write cut short by a crash, at the log's end; damage, else.
    pub unreadable: Vec<Unreadable>,
    /// Files of blobs whose put was never answered, removed.
    pub unfinished: u64,
    /// Files that are none of the store's, left alone.
    pub strays: Vec<String>,
    /// Pins, names, memos and large blobs whose record was lost and was written again from the index.
    pub recovered: u64,
    /// Acknowledged things that are known to be lost: blobs and derivations whose bytes are gone, and one for each
    /// unreadable stretch of the log of which nobody knows what it had.
    pub lost: u64,
    /// The format that the store was of before, until [`super::Store::finish_upgrade`].
    pub upgrade_from: Option<u32>,
}

impl Opened {
    /// How many acknowledged things were lost, at least: an unreadable stretch of the log that is neither torn nor covered
    /// by the index held one or more.
    pub fn losses(&self) -> u64 {
        self.lost.max(self.damaged().filter(|stretch| !stretch.covered).count() as u64)
    }

    /// Whether opening found anything to tell of.
    pub(crate) fn is_repaired(&self) -> bool {
        !self.findings().is_empty()
    }

    /// What was found and done, a clause each.
    fn findings(&self) -> Vec<String> {
        let mut found = Vec::new();
        if self.losses() > 0 {
            found.push(format!("at least {} lost", count(self.losses(), "acknowledged thing")));
        }
        found.extend(self.damaged().take(STRETCHES_NAMED).map(Unreadable::to_string));
        let unnamed = self.damaged().skip(STRETCHES_NAMED).count() as u64;
        if unnamed > 0 {
            found.push(format!("the log is unreadable in {}", count(unnamed, "more place")));
        }
        if self.recovered > 0 {
            found.push(format!("{} recovered from the index", count(self.recovered, "lost record")));
        }
        if let Some(from) = self.upgrade_from {
            found.push(format!("the store was upgraded from format {from}"));
        }
        if let Some(why) = &self.rebuilt {
            found.push(format!("the index was rebuilt from the log ({why})"));
        }
        if self.replayed > 0 {
            found.push(format!("{} read again from the log", count(self.replayed, "record")));
        }
        if let Some(torn) = self.unreadable.iter().find(|stretch| stretch.torn) {
            found.push(format!("an unfinished write of {} dropped", count(torn.bytes, "byte")));
        }
        if self.unfinished > 0 {
            // Beside damage, the record that named such a file may be what is lost.
            let is_kept = self.rebuilt.is_some() || self.damaged().next().is_some();
            let what = if is_kept { "moved to quarantine" } else { "removed" };
            found.push(format!("{} of unfinished puts {what}", count(self.unfinished, "file")));
        }
        if !self.strays.is_empty() {
            found.push(format!("{} left alone", count(self.strays.len() as u64, "unknown file")));
        }
        found
    }

    /// Unreadable stretches of the log that no crash explains.
    fn damaged(&self) -> impl Iterator<Item = &Unreadable> {
        self.unreadable.iter().filter(|stretch| !stretch.torn)
    }
}

/// So many unreadable stretches are named in a sentence.
const STRETCHES_NAMED: usize = 3;

/// One sentence: what opening found, and what it did about it.
impl fmt::Display for Opened {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let found = self.findings().join("; ");
        match (found.is_empty(), self.clean) {
            (true, _) => out.write_str("opened"),
            (false, true) => write!(out, "opened: {found}"),
            (false, false) => write!(out, "opened after a crash: {found}"),
        }
    }
}

/// A stretch of the log that holds no whole record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unreadable {
    /// The file, relative to the store.
    pub file: String,
    /// Its first byte.
    pub from: u64,
    /// How many bytes.
    pub bytes: u64,
    /// It is the very end of the log: what a crash leaves, not damage.
    pub torn: bool,
    /// The index covers it, so that the store knows exactly what it had: [`Opened::recovered`] and [`Opened::lost`]
    /// count that.
    pub covered: bool,
}

/// Which file is unreadable, and where.
impl fmt::Display for Unreadable {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.bytes {
            0 => write!(out, "{} is missing or empty", self.file),
            bytes => write!(
                out,
                "{} is unreadable for {} from byte {}",
                self.file,
                count(bytes, "byte"),
                self.from
            ),
        }
    }
}

/// How much a store holds, and what it did since it was opened.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Stats {
    /// Blobs.
    pub blobs: u64,
    /// Bytes of all blobs.
    pub blob_bytes: u64,
    /// Derivations known.
    pub derivations: u64,
    /// Memos.
    pub memos: u64,
    /// Pins.
    pub pins: u64,
    /// Names that mean something.
    pub names: u64,
    /// Removed things that are remembered.
    pub gone: u64,
    /// Bytes of records and files that hold: what a quota counts.
    pub used_bytes: u64,
    /// Bytes of the index on disk.
    pub index_bytes: u64,
    /// The cache of values.
    pub cache: crate::CacheStats,
    /// What was asked of the store, by kind.
    pub operations: Vec<Operation>,
    /// Damage, losses and failures since the store was opened.
    pub health: Health,
}

/// What was asked of a store, of one kind.
#[derive(Clone, Debug, Default)]
pub struct Operation {
    /// `put`, `get`, `memo`, ...
    pub name: &'static str,
    /// How often.
    pub count: u64,
    /// How often it failed.
    pub errors: u64,
    /// How often there was nothing, or nothing to do.
    pub empty: u64,
    /// Bytes in or out.
    pub bytes: u64,
}

/// A time and a reason, in words.
impl fmt::Display for RemovalReason {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            RemovalReason::Collected => "collected",
            RemovalReason::Quota => "collected for the quota",
            RemovalReason::Damaged => "damaged",
            RemovalReason::Invalidated => "invalidated",
        })
    }
}

/// How old something may be to count as young.
pub(crate) fn is_young(at: Time, now: Time, grace: Duration) -> bool {
    now.since(at) < grace
}
