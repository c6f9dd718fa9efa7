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
    /// The marks of `pairs`. Most memos that are looked for are not held, and the marks, which say so, fit the caches of
    /// the processor, while the pairs do not.
    marks: Vec<[Mark; 2]>,
}

/// Some bits of a held memo's derivation; 0 if no memo is held.
type Mark = u16;

/// The mark of a derivation. Its bits choose neither a shard nor a slot.
fn mark(derivation: &Address) -> Mark {
    let bytes = derivation.as_bytes();
    Mark::from_le_bytes([bytes[30], bytes[31]]) | 1
}

impl Shard {
    /// The memo of a derivation, if it is held at this place.
    fn held(&self, place: usize, derivation: &Address) -> Option<&Memo> {
        if !self.marks.get(place)?.contains(&mark(derivation)) {
            return None;
        }
        self.pairs[place].iter().flatten().find(|memo| memo.derivation == *derivation)
    }

    /// Changes a pair, and its marks with it.
    fn change(&mut self, place: usize, change: impl FnOnce(&mut [Option<Memo>; 2])) {
        let pair = &mut self.pairs[place];
        change(pair);
        let mark_of = |held: &Option<Memo>| held.as_ref().map_or(0, |memo| mark(&memo.derivation));
        self.marks[place] = [mark_of(&pair[0]), mark_of(&pair[1])];
    }
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
        let held = self.place(derivation).and_then(|place| shard.held(place, derivation));
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
        if let Some(place) = self.place(derivation)
            && shard.held(place, derivation).is_some()
        {
            let is_it = |memo: &mut Memo| memo.derivation == *derivation;
            shard.change(place, |pair| pair.iter_mut().for_each(|held| _ = held.take_if(is_it)));
        }
    }

    fn put(&self, shard: &mut Shard, memo: &Memo) {
        let Some(place) = self.place(&memo.derivation) else { return };
        if shard.pairs.is_empty() {
            shard.pairs.resize_with(self.pairs, Default::default);
            shard.marks.resize_with(self.pairs, Default::default);
        }
        let is_other = |held: &mut Memo| held.derivation != memo.derivation;
        shard.change(place, |[first, second]| {
            // One derivation takes one place only: a second memo of it would be out of date.
            match first.take_if(is_other) {
                Some(other) => *second = Some(other),
                None => *second = second.take_if(is_other),
            }
            *first = Some(memo.clone());
        });
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

#[cfg(test)]
mod tests {
    use super::{CACHE_BYTES, RecalledMemos, mark};
    use crate::Address;
    use crate::facts::{Cost, Memo, Time};
    use crate::shards::SHARDS;

    /// Addresses with one place and one mark.
    fn address(number: u8) -> Address {
        let mut bytes = [7; 32];
        bytes[12] = number;
        Address::from_bytes(bytes)
    }

    fn memo(number: u8) -> Memo {
        let output = Address::from_bytes([number; 32]);
        Memo { derivation: address(number), output, size: 1, cost: Cost::default(), at: Time(0) }
    }

    #[test]
    fn memos_with_one_mark_are_told_apart() {
        assert_eq!(mark(&address(1)), mark(&address(2)));
        let memos = RecalledMemos::new(CACHE_BYTES * 2 * SHARDS as u64);
        let held = || -> Vec<u8> { (1..5).filter(|number| memos.get(&address(*number)).is_ok()).collect() };
        assert!(held().is_empty());
        memos.written(&memo(1));
        memos.written(&memo(2));
        assert_eq!(held(), [1, 2]);
        memos.written(&memo(3));
        assert_eq!(held(), [2, 3], "the older of two is replaced");
        let newer = Memo { size: 2, ..memo(2) };
        memos.written(&newer);
        assert_eq!(held(), [2, 3]);
        assert_eq!(memos.get(&address(2)), Ok(newer));
        memos.removed(&address(4));
        assert_eq!(held(), [2, 3]);
        memos.removed(&address(2));
        assert_eq!(held(), [3]);
        let version = memos.get(&address(4)).expect_err("it is not held");
        memos.found(version, &memo(4));
        assert_eq!(held(), [3, 4]);
        memos.removed(&address(3));
        memos.removed(&address(4));
        assert!(held().is_empty());
        memos.found(version, &memo(1));
        assert!(held().is_empty(), "it may be out of date");
    }
}
