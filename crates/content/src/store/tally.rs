//! Counts that are always right: kept with every change, saved with the index.

use std::collections::BTreeMap;

use super::tables::{Blob, Home, Row};
use crate::fields::{Give, Take};
use crate::log::Place;

/// How much a store holds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Tally {
    pub blobs: u64,
    pub blob_bytes: u64,
    /// Of those bytes, the ones in files of their own.
    pub file_bytes: u64,
    pub derivations: u64,
    /// Derivations that are entries of tables.
    pub entries: u64,
    pub memos: u64,
    pub pins: u64,
    pub names: u64,
    pub gone: u64,
    /// More than any file's number.
    pub next_file: u64,
    /// Bytes of records that still hold, by segment, and of all together.
    live: BTreeMap<u32, u64>,
    live_bytes: u64,
}

impl Tally {
    /// Bytes of all records that still hold.
    pub(crate) fn live_bytes(&self) -> u64 {
        self.live_bytes
    }

    /// What counts against a quota.
    pub(crate) fn used_bytes(&self) -> u64 {
        self.live_bytes() + self.file_bytes
    }

    /// A row takes the place of another; its count and its record's bytes follow.
    pub(crate) fn replace<R: Row>(
        &mut self,
        count: fn(&mut Tally) -> &mut u64,
        old: Option<&R>,
        new: Option<&R>,
    ) {
        if let Some(row) = old {
            *count(self) -= u64::from(row.counts());
            self.unlive(row.place());
        }
        if let Some(row) = new {
            *count(self) += u64::from(row.counts());
            self.enliven(row.place());
        }
    }

    pub(crate) fn replace_blob(&mut self, old: Option<&Blob>, new: Option<&Blob>) {
        self.replace(|tally| &mut tally.blobs, old, new);
        if let Some(blob) = old {
            self.blob_bytes -= blob.size();
            self.file_bytes -= file_bytes(blob);
        }
        if let Some(blob) = new {
            self.blob_bytes += blob.size();
            self.file_bytes += file_bytes(blob);
        }
    }

    fn enliven(&mut self, place: Place) {
        *self.live.entry(place.segment).or_default() += u64::from(place.len);
        self.live_bytes += u64::from(place.len);
    }

    fn unlive(&mut self, place: Place) {
        if let Some(live) = self.live.get_mut(&place.segment) {
            let gone = u64::from(place.len).min(*live);
            *live -= gone;
            self.live_bytes -= gone;
            if *live == 0 {
                self.live.remove(&place.segment);
            }
        }
    }

    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        for number in self.counts() {
            out.give_u64(number);
        }
        for (segment, live) in &self.live {
            out.give_u32(*segment);
            out.give_u64(*live);
        }
        out
    }

    pub(crate) fn decode(bytes: &[u8]) -> Option<Tally> {
        let mut take = Take(bytes);
        let mut next = || take.u64();
        let mut tally = Tally {
            blobs: next()?,
            blob_bytes: next()?,
            file_bytes: next()?,
            derivations: next()?,
            entries: next()?,
            memos: next()?,
            pins: next()?,
            names: next()?,
            gone: next()?,
            next_file: next()?,
            live: BTreeMap::new(),
            live_bytes: 0,
        };
        while !take.0.is_empty() {
            let segment = take.u32()?;
            tally.live.insert(segment, take.u64()?);
        }
        tally.live_bytes = tally.live.values().try_fold(0u64, |sum, live| sum.checked_add(*live))?;
        Some(tally)
    }

    fn counts(&self) -> [u64; 10] {
        let Tally {
            blobs,
            blob_bytes,
            file_bytes,
            derivations,
            entries,
            memos,
            pins,
            names,
            gone,
            next_file,
            live: _,
            live_bytes: _,
        } = *self;
        [blobs, blob_bytes, file_bytes, derivations, entries, memos, pins, names, gone, next_file]
    }
}

fn file_bytes(blob: &Blob) -> u64 {
    match blob.home {
        Home::Packed => 0,
        Home::File { len, .. } => len,
    }
}
