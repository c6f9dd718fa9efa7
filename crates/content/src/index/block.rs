//! A block: the unit that is read from a run. Its entries are sorted and found by binary search.
//!
//! The entries one after another (key's length, value's length or a mark, key, value), then where each begins, then how
//! many there are. A block has no checksum of its own: the leaf that names it has it, see [`super::span`].

use std::ops::Range;

use super::error::DecodeFailure;
use super::key::KEY_MOST;

/// The longest block. A value is at most [`VALUE_MOST`], so that two entries fit in any block.
pub(super) const BLOCK_MOST: usize = 4096;

/// The longest value.
pub(crate) const VALUE_MOST: usize = 2000;

const HEAD: usize = 3;
const DELETED: u16 = u16::MAX;

/// A block's bytes, seen as entries.
#[derive(Clone, Copy)]
pub(super) struct Block<'a> {
    entries: &'a [u8],
    offsets: &'a [[u8; 2]],
}

/// The positions of an entry's parts in a block's bytes. An entry without a value is a deleted key.
#[derive(Clone)]
pub(super) struct EntryRanges {
    pub(super) key: Range<usize>,
    pub(super) value: Option<Range<usize>>,
}

impl<'a> Block<'a> {
    pub(super) fn parse(bytes: &'a [u8]) -> Result<Block<'a>, DecodeFailure> {
        const SHORT: DecodeFailure = DecodeFailure("a block is too short for its entries");
        let (rest, count) = bytes.split_last_chunk().ok_or(SHORT)?;
        let count = usize::from(u16::from_le_bytes(*count));
        let end = rest.len().checked_sub(2 * count).ok_or(SHORT)?;
        let (entries, offsets) = rest.split_at(end);
        Ok(Block { entries, offsets: offsets.as_chunks().0 })
    }

    pub(super) fn count(&self) -> usize {
        self.offsets.len()
    }

    /// The position of an entry.
    pub(super) fn place(&self, number: usize) -> Result<EntryRanges, DecodeFailure> {
        let place = || {
            let start = usize::from(u16::from_le_bytes(*self.offsets.get(number)?));
            let [key_len, low, high] = *self.entries.get(start..)?.first_chunk::<HEAD>()?;
            let value_len = u16::from_le_bytes([low, high]);
            let middle = start + HEAD + usize::from(key_len);
            let end = if value_len == DELETED { middle } else { middle + usize::from(value_len) };
            let value = (value_len != DELETED).then_some(middle..end);
            (end <= self.entries.len()).then_some(EntryRanges { key: start + HEAD..middle, value })
        };
        place().ok_or(DecodeFailure("an entry reaches out of its block"))
    }

    /// An entry's key and value.
    pub(super) fn entry(&self, number: usize) -> Result<(&'a [u8], Option<&'a [u8]>), DecodeFailure> {
        let place = self.place(number)?;
        Ok((&self.entries[place.key], place.value.map(|value| &self.entries[value])))
    }

    /// The number of entries whose key is below this one.
    pub(super) fn below(&self, key: &[u8]) -> Result<usize, DecodeFailure> {
        let (mut low, mut high) = (0, self.count());
        while low < high {
            let middle = low.midpoint(high);
            match self.entry(middle)?.0 < key {
                true => low = middle + 1,
                false => high = middle,
            }
        }
        Ok(low)
    }

    /// The block's entry of a key: none, a deletion, or a value.
    pub(super) fn find(&self, key: &[u8]) -> Result<Option<Option<&'a [u8]>>, DecodeFailure> {
        let number = self.below(key)?;
        if number == self.count() {
            return Ok(None);
        }
        let (found, value) = self.entry(number)?;
        Ok((found == key).then_some(value))
    }

    /// Checks that these are exactly the bytes that a [`Builder`] would make. Lookups rely on it.
    pub(super) fn check(&self) -> Result<(), DecodeFailure> {
        let (mut end, mut before): (usize, &[u8]) = (0, &[]);
        for number in 0..self.count() {
            let place = self.place(number)?;
            let key = &self.entries[place.key.clone()];
            if place.key.start != end + HEAD || place.value.as_ref().is_some_and(|it| it.len() > VALUE_MOST) {
                return Err(DecodeFailure("a block's entries do not follow each other"));
            }
            if key.len() > KEY_MOST || key <= before {
                return Err(DecodeFailure("a block's keys are out of order"));
            }
            (end, before) = (place.value.map_or(place.key.end, |value| value.end), key);
        }
        if end == 0 || end != self.entries.len() {
            return Err(DecodeFailure("a block has bytes that are no entry"));
        }
        Ok(())
    }
}

/// Collects entries into a block.
pub(super) struct Builder {
    most: usize,
    entries: Vec<u8>,
    offsets: Vec<[u8; 2]>,
}

impl Builder {
    /// For blocks of at most `most` bytes.
    pub(super) fn new(most: usize) -> Builder {
        Builder { most, entries: Vec::with_capacity(most), offsets: Vec::new() }
    }

    /// Does the block stay short enough with one more entry?
    pub(super) fn fits(&self, key: &[u8], value: Option<&[u8]>) -> bool {
        let entry = HEAD + key.len() + value.map_or(0, <[u8]>::len);
        self.entries.len() + entry + 2 * (self.offsets.len() + 2) <= self.most
    }

    /// Adds the entry behind the others.
    pub(super) fn add(&mut self, key: &[u8], value: Option<&[u8]>) {
        let value_len = value.map_or(DELETED, |value| value.len() as u16).to_le_bytes();
        self.offsets.push((self.entries.len() as u16).to_le_bytes());
        self.entries.extend_from_slice(&[key.len() as u8, value_len[0], value_len[1]]);
        self.entries.extend_from_slice(key);
        self.entries.extend_from_slice(value.unwrap_or_default());
    }

    /// The first entry's key; empty when there is none.
    pub(super) fn first(&self) -> &[u8] {
        let len = self.entries.first().map_or(0, |len| usize::from(*len));
        self.entries.get(HEAD..HEAD + len).unwrap_or_default()
    }

    /// The block; the builder is then empty.
    pub(super) fn take(&mut self) -> Vec<u8> {
        let count = self.offsets.len() as u16;
        let mut block = std::mem::replace(&mut self.entries, Vec::with_capacity(self.most));
        block.extend_from_slice(self.offsets.as_flattened());
        block.extend_from_slice(&count.to_le_bytes());
        self.offsets.clear();
        block
    }
}
