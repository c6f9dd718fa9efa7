//! The content of a file: the bytes that a process sees, the durable bytes, and the changes between the two.

use std::iter;
use std::mem;
use std::ops::Range;
use std::sync::Arc;

use super::crash::{Chances, Crash, SectorOutcome};
use crate::Rng;

/// The size of a sector in bytes. Unless it is torn, a sector is written as a whole or not at all.
const SECTOR: usize = 512;

/// A clone is cheap: it shares the bytes until one of the two is written to.
#[derive(Clone, Default)]
pub(super) struct Content {
    visible: Arc<Vec<u8>>,
    durable: Arc<Vec<u8>>,
    /// The changes that the next sync makes durable, in order. After a failed sync, some of the changes are not here.
    changes: Vec<Change>,
}

#[derive(Clone)]
enum Change {
    Len(usize),
    /// Offset and bytes; the end is within the file's length at that time.
    Write(usize, Arc<[u8]>),
}

impl Content {
    pub(super) fn visible(&self) -> &[u8] {
        &self.visible
    }

    pub(super) fn write(&mut self, bytes: &[u8], offset: usize) {
        if bytes.is_empty() {
            return;
        }
        let end = offset + bytes.len();
        if end > self.visible.len() {
            self.set_len(end);
        }
        Arc::make_mut(&mut self.visible)[offset..end].copy_from_slice(bytes);
        self.changes.push(Change::Write(offset, bytes.into()));
    }

    pub(super) fn set_len(&mut self, len: usize) {
        Arc::make_mut(&mut self.visible).resize(len, 0);
        self.changes.push(Change::Len(len));
    }

    pub(super) fn sync(&mut self) {
        let durable = Arc::make_mut(&mut self.durable);
        for change in mem::take(&mut self.changes) {
            match change {
                Change::Len(len) => durable.resize(len, 0),
                // After a failed sync, the durable length may be shorter than the length at the time of the write.
                Change::Write(offset, bytes) => {
                    durable.resize(durable.len().max(offset + bytes.len()), 0);
                    durable[offset..][..bytes.len()].copy_from_slice(&bytes);
                }
            }
        }
    }

    /// Models a failed sync: the changes stay visible, and no later sync makes them durable.
    pub(super) fn fail_sync(&mut self) {
        self.changes.clear();
    }

    /// Makes all visible bytes durable.
    pub(super) fn make_durable(&mut self) {
        self.changes.clear();
        self.durable = Arc::clone(&self.visible);
    }

    /// Changes the visible bytes. Call [`make_durable`](Content::make_durable) afterwards.
    pub(super) fn edit(&mut self, edit: impl FnOnce(&mut Vec<u8>)) {
        edit(Arc::make_mut(&mut self.visible));
    }

    /// The content after power loss.
    pub(super) fn after_crash(&self, crash: Crash, rng: &mut Rng) -> Content {
        let mut result = Arc::clone(&self.durable);
        if !self.changes.is_empty() {
            self.replay(Arc::make_mut(&mut result), Chances::new(crash, rng));
        }
        Content { visible: Arc::clone(&result), durable: result, changes: Vec::new() }
    }

    fn replay(&self, result: &mut Vec<u8>, mut chances: Chances<'_>) {
        let lens = self.changes.iter().filter(|change| matches!(change, Change::Len(_))).count();
        let mut kept_lens = chances.surviving_prefix(lens);
        for change in &self.changes {
            match change {
                Change::Len(len) if kept_lens > 0 => {
                    kept_lens -= 1;
                    result.resize(*len, 0);
                }
                Change::Len(_) => {}
                Change::Write(offset, bytes) => {
                    for part in sectors(*offset..offset + bytes.len()) {
                        let new = &bytes[part.start - offset..part.end - offset];
                        // Bytes beyond the surviving length are lost.
                        let end = part.end.min(result.len());
                        let old = &mut result[part.start.min(end)..end];
                        write_sector(old, &new[..old.len()], &mut chances);
                    }
                }
            }
        }
    }
}

/// Overwrites the old bytes of a sector with a random outcome.
fn write_sector(old: &mut [u8], new: &[u8], chances: &mut Chances<'_>) {
    match chances.sector_outcome() {
        SectorOutcome::New => old.copy_from_slice(new),
        SectorOutcome::Old => {}
        SectorOutcome::Zeros => old.fill(0),
        SectorOutcome::Torn => {
            let tear = chances.rng.within(0..new.len() as u64 + 1) as usize;
            old[..tear].copy_from_slice(&new[..tear]);
            old[tear..].fill_with(|| chances.rng.bits() as u8);
        }
    }
}

/// Splits a range at the boundaries of sectors.
fn sectors(range: Range<usize>) -> impl Iterator<Item = Range<usize>> {
    let mut start = range.start;
    iter::from_fn(move || {
        let end = ((start / SECTOR + 1) * SECTOR).min(range.end);
        (start < end).then(|| mem::replace(&mut start, end)..end)
    })
}
