//! A cache of memos, so that a memo that is recalled often is not read from the index each time.
//!
//! The writer keeps the cache current: it adds and removes each memo that it writes and removes. A memo that a reader
//! found in the index is added only if the writer changed nothing in its shard meanwhile, as it may be out of date.

use std::sync::{PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use crate::Address;
use crate::facts::Memo;
use crate::shards::{SHARDS, Shards, slot};

/// The most memos held, however large the cache of values is; about 10 MiB.
const MOST: u64 = 1 << 16;

/// One memo is held per this many bytes of the cache of values.
const CACHE_BYTES: u64 = 4096;

/// Memos by derivation. An address has two possible places; a new memo replaces the older of the two.
#[derive(Debug)]
pub(crate) struct RecalledMemos {
    shards: Shards<RwLock<Shard>>,
    pairs: usize,
}

#[derive(Debug, Default)]
struct Shard {
    /// Counts the writer's changes in this shard.
    version: u64,
    /// Empty until the first memo is added.
    pairs: Vec<[Option<Memo>; 2]>,
}

/// The state of an address's shard at some time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Version(u64);

impl RecalledMemos {
    pub(crate) fn new(cache_bytes: u64) -> RecalledMemos {
        let most = (cache_bytes / CACHE_BYTES).min(MOST) as usize;
        RecalledMemos { shards: Shards::default(), pairs: most / 2 / SHARDS }
    }

    /// The memo, if it is held; else the state of its shard, for [`RecalledMemos::found`].
    pub(crate) fn get(&self, derivation: &Address) -> Result<Memo, Version> {
        let shard = self.read(derivation);
        let pair = self.place(derivation).and_then(|place| shard.pairs.get(place));
        let held = pair.and_then(|pair| pair.iter().flatten().find(|memo| memo.derivation == *derivation));
        held.cloned().ok_or(Version(shard.version))
    }

    /// Adds a memo that the index had at this version or later.
    pub(crate) fn found(&self, version: Version, memo: &Memo) {
        let mut shard = self.write(&memo.derivation);
        if shard.version == version.0 {
            self.put(&mut shard, memo);
        }
    }

    /// Called by the writer: the index has this memo now.
    pub(crate) fn written(&self, memo: &Memo) {
        let mut shard = self.write(&memo.derivation);
        shard.version += 1;
        self.put(&mut shard, memo);
    }

    /// Called by the writer: the index has no memo of this derivation now.
    pub(crate) fn removed(&self, derivation: &Address) {
        let mut shard = self.write(derivation);
        shard.version += 1;
        if let Some(pair) = self.place(derivation).and_then(|place| shard.pairs.get_mut(place)) {
            let is_it = |memo: &mut Memo| memo.derivation == *derivation;
            pair.iter_mut().for_each(|held| _ = held.take_if(is_it));
        }
    }

    fn put(&self, shard: &mut Shard, memo: &Memo) {
        let place = self.place(&memo.derivation);
        if shard.pairs.is_empty() {
            shard.pairs.resize_with(self.pairs, Default::default);
        }
        let Some([first, second]) = place.and_then(|place| shard.pairs.get_mut(place)) else { return };
        let is_other = |held: &mut Memo| held.derivation != memo.derivation;
        // One derivation takes one place only: a second memo of it would be out of date.
        match first.take_if(is_other) {
            Some(other) => *second = Some(other),
            None => *second = second.take_if(is_other),
        }
        *first = Some(memo.clone());
    }

    fn place(&self, derivation: &Address) -> Option<usize> {
        slot(derivation, self.pairs)
    }

    fn read(&self, derivation: &Address) -> RwLockReadGuard<'_, Shard> {
        self.shard(derivation).read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self, derivation: &Address) -> RwLockWriteGuard<'_, Shard> {
        self.shard(derivation).write().unwrap_or_else(PoisonError::into_inner)
    }

    fn shard(&self, derivation: &Address) -> &RwLock<Shard> {
        self.shards.of(derivation)
    }
}
