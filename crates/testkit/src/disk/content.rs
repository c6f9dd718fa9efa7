//! A file: the bytes that a process sees, those that are certainly on the disk, and the changes in between.

use std::iter;
use std::mem;
use std::ops::Range;
use std::sync::Arc;

use super::crash::{Crash, Fate, Luck};
use crate::Rng;

/// The size of a sector: a disk writes it as a whole, or tears it.
const SECTOR: usize = 512;

/// Cheap to copy: bytes are shared until one of the copies is written to.
#[derive(Clone, Default)]
pub(super) struct Content {
    seen: Arc<Vec<u8>>,
    durable: Arc<Vec<u8>>,
    /// The changes that the next sync makes durable, in order. After a failed sync these are fewer than the difference.
    changes: Vec<Change>,
}

#[derive(Clone)]
enum Change {
    Len(usize),
    /// Within the length at that time.
    Write(usize, Arc<[u8]>),
}

impl Content {
    pub(super) fn seen(&self) -> &[u8] {
        &self.seen
    }

    pub(super) fn write(&mut self, bytes: &[u8], offset: usize) {
        if bytes.is_empty() {
            return;
        }
        let end = offset + bytes.len();
        if end > self.seen.len() {
            self.set_len(end);
        }
        Arc::make_mut(&mut self.seen)[offset..end].copy_from_slice(bytes);
        self.changes.push(Change::Write(offset, bytes.into()));
    }

    pub(super) fn set_len(&mut self, len: usize) {
        Arc::make_mut(&mut self.seen).resize(len, 0);
        self.changes.push(Change::Len(len));
    }

    pub(super) fn sync(&mut self) {
        let durable = Arc::make_mut(&mut self.durable);
        for change in mem::take(&mut self.changes) {
            match change {
                Change::Len(len) => durable.resize(len, 0),
                // The length may be that of before a failed sync.
                Change::Write(offset, bytes) => {
                    durable.resize(durable.len().max(offset + bytes.len()), 0);
                    durable[offset..][..bytes.len()].copy_from_slice(&bytes);
                }
            }
        }
    }

    /// A sync fails: the changes stay in memory, and no later sync makes them durable.
    pub(super) fn fail_sync(&mut self) {
        self.changes.clear();
    }

    /// All that a process sees is on the disk.
    pub(super) fn settle(&mut self) {
        self.changes.clear();
        self.durable = Arc::clone(&self.seen);
    }

    /// Changes the bytes that a process sees, for [`settle`](Content::settle) to make it durable.
    pub(super) fn edit(&mut self, edit: impl FnOnce(&mut Vec<u8>)) {
        edit(Arc::make_mut(&mut self.seen));
    }

    /// The content after power loss.
    pub(super) fn after(&self, crash: Crash, rng: &mut Rng) -> Content {
        let mut found = Arc::clone(&self.durable);
        if !self.changes.is_empty() {
            self.replay(Arc::make_mut(&mut found), Luck::new(crash, rng));
        }
        Content { seen: Arc::clone(&found), durable: found, changes: Vec::new() }
    }

    fn replay(&self, found: &mut Vec<u8>, mut luck: Luck<'_>) {
        let lens = self.changes.iter().filter(|change| matches!(change, Change::Len(_))).count();
        let mut kept_lens = luck.first(lens);
        for change in &self.changes {
            match change {
                Change::Len(len) if kept_lens > 0 => {
                    kept_lens -= 1;
                    found.resize(*len, 0);
                }
                Change::Len(_) => {}
                Change::Write(offset, bytes) => {
                    for part in sectors(*offset..offset + bytes.len()) {
                        let new = &bytes[part.start - offset..part.end - offset];
                        // Bytes behind a length that was lost are lost with it.
                        let end = part.end.min(found.len());
                        let old = &mut found[part.start.min(end)..end];
                        strike(old, &new[..old.len()], &mut luck);
                    }
                }
            }
        }
    }
}

/// Writes a random part of the new bytes over the old ones.
fn strike(old: &mut [u8], new: &[u8], luck: &mut Luck<'_>) {
    match luck.fate() {
        Fate::New => old.copy_from_slice(new),
        Fate::Old => {}
        Fate::Zeros => old.fill(0),
        Fate::Torn => {
            let tear = luck.rng.within(0..new.len() as u64 + 1) as usize;
            old[..tear].copy_from_slice(&new[..tear]);
            old[tear..].fill_with(|| luck.rng.bits() as u8);
        }
    }
}

/// A range's part in each sector.
fn sectors(range: Range<usize>) -> impl Iterator<Item = Range<usize>> {
    let mut start = range.start;
    iter::from_fn(move || {
        let end = ((start / SECTOR + 1) * SECTOR).min(range.end);
        (start < end).then(|| mem::replace(&mut start, end)..end)
    })
}
