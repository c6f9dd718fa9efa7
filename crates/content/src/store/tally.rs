//! The tally: exact counts, updated with every change and saved with the index.

use std::collections::BTreeMap;

use super::tables::{Blob, Home, Row};
use crate::facts::Class;
use crate::fields::{FieldReader, FieldWriter};

/// The counts and sizes of a store's data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Tally {
    pub blobs: u64,
    pub blob_bytes: u64,
    /// The part of those bytes that is in files.
    pub file_bytes: u64,
    pub derivations: u64,
    pub memos: u64,
    pub pins: u64,
    pub names: u64,
    pub gone: u64,
    /// Blobs of [`Class::Acknowledged`]: callers put them. `None` if the index was written by a version that did not
    /// count them.
    pub put_blobs: Option<u64>,
    /// More than any file's number.
    pub next_file: u64,
    /// Bytes of live records, by segment and in total.
    live: BTreeMap<u32, u64>,
    live_bytes: u64,
}

impl Default for Tally {
    fn default() -> Tally {
        Tally::decode(&[0; 80]).expect("the counts of an empty store")
    }
}

impl Tally {
    /// Bytes of all live records.
    pub(crate) fn live_bytes(&self) -> u64 {
        self.live_bytes
    }

    /// The bytes that count against the quota.
    pub(crate) fn used_bytes(&self) -> u64 {
        self.live_bytes() + self.file_bytes
    }

    /// Adds the changes of a batch.
    pub(crate) fn add(&mut self, change: &TallyChange) {
        let TallyChange { counts, next_file, live } = change;
        let totals = [
            &mut self.blobs,
            &mut self.blob_bytes,
            &mut self.file_bytes,
            &mut self.derivations,
            &mut self.memos,
            &mut self.pins,
            &mut self.names,
            &mut self.gone,
        ];
        for (total, change) in totals.into_iter().chain(&mut self.put_blobs).zip(counts) {
            *total = total.wrapping_add_signed(*change);
        }
        self.next_file = self.next_file.max(*next_file);
        for (segment, change) in live {
            let before = self.live.get(segment).copied().unwrap_or_default();
            // The shares of the tombstones in one record add up to a little less than the record.
            let now = before.saturating_add_signed(*change);
            self.live_bytes = self.live_bytes - before + now;
            match now {
                0 => _ = self.live.remove(segment),
                _ => _ = self.live.insert(*segment, now),
            }
        }
    }

    /// The segments that have live records, with the bytes of those.
    pub(crate) fn live_segments(&self) -> impl Iterator<Item = (u32, u64)> {
        self.live.iter().map(|(segment, live)| (*segment, *live))
    }

    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        for number in self.counts().into_iter().chain(self.put_blobs) {
            out.give_u64(number);
        }
        for (segment, live) in &self.live {
            out.give_u32(*segment);
            out.give_u64(*live);
        }
        out
    }

    pub(crate) fn decode(bytes: &[u8]) -> Option<Tally> {
        // The pairs at the end have 12 bytes each, the counts before them 72, or 80 with the last one.
        let counts_put_blobs = bytes.len() % 12 == 8;
        let mut take = FieldReader(bytes);
        let mut next = || take.u64();
        let mut tally = Tally {
            blobs: next()?,
            blob_bytes: next()?,
            file_bytes: next()?,
            derivations: next()?,
            memos: next()?,
            pins: next()?,
            names: next()?,
            gone: next()?,
            next_file: next()?,
            put_blobs: if counts_put_blobs { Some(next()?) } else { None },
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

    fn counts(&self) -> [u64; 9] {
        let Tally {
            blobs,
            blob_bytes,
            file_bytes,
            derivations,
            memos,
            pins,
            names,
            gone,
            next_file,
            put_blobs: _,
            live: _,
            live_bytes: _,
        } = *self;
        [blobs, blob_bytes, file_bytes, derivations, memos, pins, names, gone, next_file]
    }
}

/// The changes of a batch to the tally.
#[derive(Clone, Debug, Default)]
pub(crate) struct TallyChange {
    /// By [`Count`].
    counts: [i64; 9],
    next_file: u64,
    /// Bytes of live records, by segment: a batch touches few.
    live: BTreeMap<u32, i64>,
}

/// The kinds of counted rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Count {
    Blobs,
    BlobBytes,
    FileBytes,
    Derivations,
    Memos,
    Pins,
    Names,
    Gone,
    PutBlobs,
}

impl TallyChange {
    pub(crate) fn clear(&mut self) {
        *self = TallyChange::default();
    }

    pub(crate) fn count(&self, count: Count) -> i64 {
        self.counts[count as usize]
    }

    /// A file with this number was named.
    pub(crate) fn file(&mut self, number: u64) {
        self.next_file = self.next_file.max(number + 1);
    }

    /// A row takes the place of another; its count and its record's bytes follow.
    pub(crate) fn replace<R: Row>(&mut self, count: Count, old: Option<&R>, new: Option<&R>) {
        for (row, sign) in [(old, -1), (new, 1)] {
            if let Some(row) = row {
                self.counts[count as usize] += sign * i64::from(row.counts());
                let place = row.place();
                *self.live.entry(place.segment).or_default() += sign * i64::from(place.len);
            }
        }
    }

    pub(crate) fn replace_blob(&mut self, old: Option<&Blob>, new: Option<&Blob>) {
        self.replace(Count::Blobs, old, new);
        for (blob, sign) in [(old, -1), (new, 1)] {
            if let Some(blob) = blob {
                self.counts[Count::PutBlobs as usize] += sign * i64::from(blob.class == Class::Acknowledged);
                self.counts[Count::BlobBytes as usize] += sign * blob.size() as i64;
                self.counts[Count::FileBytes as usize] += sign * file_bytes(blob) as i64;
            }
        }
    }
}

fn file_bytes(blob: &Blob) -> u64 {
    match blob.home {
        Home::Packed => 0,
        Home::File { len, .. } => len,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Versions before this one did not count the blobs that callers put.
    #[test]
    fn counts_of_older_versions_are_read() {
        let tally = Tally { blobs: 3, put_blobs: Some(2), live: [(7, 40)].into(), ..Tally::default() };
        let new = tally.encode();
        let old = [&new[..72], &new[80..]].concat();
        let read = Tally::decode(&old).unwrap();
        assert_eq!((read.blobs, read.put_blobs, read.live_bytes()), (3, None, 40));
        assert_eq!(Tally::decode(&new).unwrap().put_blobs, Some(2));
        assert_eq!(Tally::decode(&new[..79]), None);
    }
}
