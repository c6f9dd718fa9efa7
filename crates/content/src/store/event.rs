//! Events of a store, and the statistics that they add up to.

use std::fmt;
use std::time::Duration;

use anabranch_text::count;

use super::report::Health;
use crate::facts::{Class, RemovalReason, Time};
use crate::{Address, Error};

/// Something that happened in a store.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Event {
    /// An operation ended. Cache hits are counted, but not reported as events.
    Done {
        /// `put`, `get`, `memo`, ...: the names in [`Stats::operations`].
        operation: &'static str,
        /// The outcome.
        outcome: Outcome,
    },
    /// The store was opened; the damage that was found and repaired.
    Opened(OpenReport),
    /// The bytes of a blob or of a description were not the ones that were put; the remains are in quarantine.
    Quarantined {
        /// The address of the damaged bytes.
        address: Address,
        /// The damage that was found.
        what: String,
        /// Acknowledged data is lost with it; derivable data can be derived again.
        class: Class,
    },
    /// Acknowledged data that is lost entirely, beyond the losses that [`Event::Quarantined`] reported one by one.
    Lost {
        /// A description of the loss.
        what: String,
        /// The number of lost items.
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
    /// Items were removed.
    Removed {
        /// The number of items.
        count: usize,
        /// The reason.
        why: RemovalReason,
    },
    /// Recent entries were written to the index.
    Indexed,
    /// The index was found damaged: calls that meet the damage wait until it is rebuilt from the log.
    IndexDamaged {
        /// The damage that was found.
        what: String,
    },
    /// A damaged index was rebuilt from the log, while the store was in use.
    IndexRebuilt {
        /// Records that were read from the log.
        replayed: u64,
        /// The duration.
        took: Duration,
    },
    /// Segments of the log were cleaned: rewritten without dead records.
    Cleaned {
        /// The number of segments.
        segments: usize,
        /// The disk space freed, in bytes.
        bytes: u64,
    },
    /// The store was over its quota and could not get below it.
    OverQuota {
        /// Bytes in use.
        used: u64,
    },
    /// A file that nothing names could not be removed.
    LeftBehind {
        /// The address of the blob in the file.
        address: Address,
        /// The error.
        error: Error,
    },
    /// Background work failed; it is retried. Derived values whose write failed are dropped, to be derived again.
    Failed {
        /// The work that failed.
        doing: &'static str,
        /// The error.
        error: Error,
    },
}

/// The outcome of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It succeeded and moved this many bytes; 0 for operations that move none.
    Bytes(u64),
    /// It succeeded, but found nothing or had nothing to do.
    Nothing,
    /// It failed.
    Failed,
}

/// The findings and repairs of opening a store.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct OpenReport {
    /// The last shutdown was clean.
    pub clean: bool,
    /// Records replayed from the log because the index did not have them.
    pub replayed: u64,
    /// The reason for which the index was rebuilt, if it was.
    pub rebuilt: Option<String>,
    /// Stretches of the log that hold no whole record: a torn write if at the log's end, else damage.
    pub unreadable: Vec<UnreadableStretch>,
    /// Files of unfinished puts, which were removed or quarantined.
    pub unfinished: u64,
    /// Files that do not belong to the store, which were left alone.
    pub strays: Vec<String>,
    /// Pins, names, memos and large blobs whose lost record was rewritten from the index.
    pub recovered: u64,
    /// Acknowledged items that are known to be lost: blobs and derivations whose bytes are gone, plus one for each
    /// unreadable stretch of the log whose content is unknown.
    pub lost: u64,
    /// The older format that the store is being upgraded from, until [`super::Store::finish_upgrade`].
    pub upgrade_from: Option<u32>,
}

impl OpenReport {
    /// The least number of acknowledged items that were lost: each unreadable stretch of the log that is neither
    /// torn nor covered by the index held one or more.
    pub fn losses(&self) -> u64 {
        self.lost.max(self.damaged().filter(|stretch| !stretch.covered).count() as u64)
    }

    /// Whether opening found anything to report.
    pub(crate) fn is_repaired(&self) -> bool {
        !self.findings().is_empty()
    }

    /// The findings and repairs, one clause each.
    fn findings(&self) -> Vec<String> {
        let mut found = Vec::new();
        if self.losses() > 0 {
            found.push(format!("at least {} lost", count(self.losses(), "acknowledged item")));
        }
        found.extend(self.damaged().take(STRETCHES_NAMED).map(UnreadableStretch::to_string));
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
            // If there is damage too, the record that named such a file may be among the losses.
            let is_kept = self.rebuilt.is_some() || self.damaged().next().is_some();
            let what = if is_kept { "moved to quarantine" } else { "removed" };
            found.push(format!("{} of unfinished puts {what}", count(self.unfinished, "file")));
        }
        if !self.strays.is_empty() {
            found.push(format!("{} left alone", count(self.strays.len() as u64, "unknown file")));
        }
        found
    }

    /// Unreadable stretches of the log that a crash does not explain.
    fn damaged(&self) -> impl Iterator<Item = &UnreadableStretch> {
        self.unreadable.iter().filter(|stretch| !stretch.torn)
    }
}

/// The most unreadable stretches that one sentence names.
const STRETCHES_NAMED: usize = 3;

/// One sentence: the findings and repairs of opening.
impl fmt::Display for OpenReport {
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
pub struct UnreadableStretch {
    /// The file, relative to the store.
    pub file: String,
    /// Its first byte.
    pub from: u64,
    /// The number of bytes.
    pub bytes: u64,
    /// It is the very end of the log: a torn write left by a crash, not damage.
    pub torn: bool,
    /// The index covers it, so the records it held are known: [`OpenReport::recovered`] and [`OpenReport::lost`]
    /// count them.
    pub covered: bool,
}

/// The unreadable file and range.
impl fmt::Display for UnreadableStretch {
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

/// The size of a store, and its activity since it was opened.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Stats {
    /// Blobs.
    pub blobs: u64,
    /// Blobs that callers put: of [`Class::Acknowledged`]. The others are computed values.
    pub put_blobs: u64,
    /// Bytes of all blobs.
    pub blob_bytes: u64,
    /// Derivations known.
    pub derivations: u64,
    /// Memos.
    pub memos: u64,
    /// Pins.
    pub pins: u64,
    /// Names that point to an address.
    pub names: u64,
    /// Tombstones: removed items that are remembered.
    pub gone: u64,
    /// Bytes of live records and files, as counted against the quota.
    pub used_bytes: u64,
    /// Bytes of the index on disk.
    pub index_bytes: u64,
    /// The cache of values.
    pub cache: crate::CacheStats,
    /// The operations so far, by kind.
    pub operations: Vec<Operation>,
    /// Damage, losses and failures since the store was opened.
    pub health: Health,
}

/// The counts of one kind of operation.
#[derive(Clone, Debug, Default)]
pub struct Operation {
    /// `put`, `get`, `memo`, ...
    pub name: &'static str,
    /// The number of calls.
    pub count: u64,
    /// The number of calls that failed.
    pub errors: u64,
    /// The number of calls that found nothing or had nothing to do.
    pub empty: u64,
    /// Bytes in or out.
    pub bytes: u64,
}

/// The reason in words.
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

/// Whether an item of this time is younger than the grace period.
pub(crate) fn is_young(at: Time, now: Time, grace: Duration) -> bool {
    now.since(at) < grace
}
