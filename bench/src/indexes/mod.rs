//! The store's index and its peers in the role that the index has: it follows a log in the background, takes entries in
//! large batches, and can be built anew from the log.

mod ours;
mod redb_peer;
mod fjall_peer;

use std::error::Error;
use std::path::Path;

use crate::content::callers::{address, mix};

pub(crate) type Result<T> = std::result::Result<T, Box<dyn Error + Send + Sync>>;

/// A key as a memo has it in the store's index: the table's byte and an address.
pub(crate) type Key = [u8; 33];
/// A value as long as a memo's row in the store's index.
pub(crate) type Value = [u8; 117];
pub(crate) type Entry = (Key, Value);

/// The contenders.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Ours,
    Redb,
    Fjall,
}

/// An index in a folder of its own, open.
pub(crate) trait Contender {
    /// Inserts a batch of entries, in any order, and makes it durable once.
    fn insert(&mut self, batch: &mut [Entry]) -> Result<()>;

    /// Builds the whole index of these entries, durably, in the fastest way that the contender has.
    fn build(&mut self, entries: &mut [Entry]) -> Result<()>;

    /// Waits for all work in the background, so that it is in the figures.
    fn settle(&mut self) -> Result<()>;

    /// Shows the value of a key; false when there is none.
    fn look(&self, key: &Key, see: &mut dyn FnMut(&[u8])) -> Result<bool>;

    /// Reads and checks all files, if the contender can. An error says that damage was found.
    fn check(&mut self) -> Option<Result<()>>;
}

impl Kind {
    pub(crate) const ALL: [Kind; 3] = [Kind::Ours, Kind::Redb, Kind::Fjall];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Kind::Ours => "ours",
            Kind::Redb => "redb 4.4",
            Kind::Fjall => "fjall 3.1",
        }
    }

    /// Opens the index in a folder, or begins one. Our index has no cache of its own.
    pub(crate) fn open(self, folder: &Path, cache_bytes: u64) -> Result<Box<dyn Contender>> {
        std::fs::create_dir_all(folder)?;
        Ok(match self {
            Kind::Ours => Box::new(ours::Ours::open(folder)?),
            Kind::Redb => Box::new(redb_peer::Redb::open(folder, cache_bytes)?),
            Kind::Fjall => Box::new(fjall_peer::Fjall::open(folder, cache_bytes)?),
        })
    }
}

/// The key of a number, as even as a hash.
pub(crate) fn key(number: u64) -> Key {
    let mut key = [b'm'; 33];
    key[1..].copy_from_slice(address(number).as_bytes());
    key
}

/// The value of a number, laid out as a memo's row: place and time that grow, the key's own address, the address of an
/// output, a size, a cost. So it can be compressed exactly as far as a memo's row can.
pub(crate) fn value(number: u64) -> Value {
    let mut value = [0; 117];
    value[0..4].copy_from_slice(&((number >> 18) as u32).to_le_bytes());
    value[4..12].copy_from_slice(&(number.wrapping_mul(256) & 0x3ff_ffff).to_le_bytes());
    value[12] = 1;
    value[13..21].copy_from_slice(&(1_790_000_000_000 + number / 100).to_le_bytes());
    value[21..53].copy_from_slice(address(number).as_bytes());
    value[53..85].copy_from_slice(address(mix(number) | 1 << 63).as_bytes());
    value[85..93].copy_from_slice(&(mix(number) % 100_000).to_le_bytes());
    value[93..101].copy_from_slice(&(mix(number) % 50_000).to_le_bytes());
    value
}

pub(crate) fn entries(numbers: std::ops::Range<u64>) -> Vec<Entry> {
    numbers.map(|number| (key(number), value(number))).collect()
}
