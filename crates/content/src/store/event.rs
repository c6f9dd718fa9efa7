//! What happens in a store, told as it happens.

use std::time::Duration;

use crate::facts::{Time, Why};
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
        /// Whether they had been acknowledged, or can be derived again.
        class: crate::Class,
        /// What did not hold.
        what: String,
    },
    /// Acknowledged things are lost, more than are told of one by one.
    Lost {
        /// What happened.
        what: String,
        /// How many.
        count: u64,
    },
    /// A derivation was remembered with another output than before: it is not deterministic.
    Diverged {
        /// The derivation.
        derivation: Address,
        /// The output that was remembered before.
        before: Address,
        /// The output that is remembered now.
        now: Address,
    },
    /// Things were removed.
    Removed {
        /// How many.
        count: usize,
        /// Why.
        why: Why,
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
impl std::fmt::Display for Why {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str(match self {
            Why::Collected => "collected",
            Why::Quota => "collected for the quota",
            Why::Damaged => "damaged",
            Why::Invalidated => "invalidated",
        })
    }
}

/// How old something may be to count as young.
pub(crate) fn is_young(at: Time, now: Time, grace: Duration) -> bool {
    now.since(at) < grace
}
