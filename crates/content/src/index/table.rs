//! The newest entries, in memory: one thread writes them, all threads read them.

use std::collections::{BTreeMap, HashMap};
use std::ops::Bound;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{PoisonError, RwLock, RwLockReadGuard};

use super::key::{Key, POINT_MOST, is_point, leading};
use super::pairs::Pairs;
use crate::address::BuildAddress;

/// The last change of a key: its new value, or `None` if it was deleted.
pub(crate) type Change = Option<Box<[u8]>>;

/// About the memory that an entry takes beside its value's bytes: a slot in a map that is two thirds full, and an
/// allocation.
const ENTRY_BYTES: usize = 150;

/// The latest changes, by key.
#[derive(Default)]
pub(super) struct Table {
    /// By [`Key::sixteenth`], so that readers seldom wait for the writer, and a scan of one address reads one shard.
    shards: [RwLock<Shard>; 16],
    bytes: AtomicUsize,
    points: AtomicUsize,
    pairs: AtomicUsize,
}

#[derive(Default)]
struct Shard {
    points: HashMap<Key, Change, BuildAddress>,
    pairs: Pairs,
}

impl Table {
    /// The key's last change, if it has one here.
    pub(super) fn get(&self, key: &Key) -> Option<Change> {
        let shard = self.shard(key.sixteenth());
        match is_point(key.as_bytes()) {
            true => shard.points.get(key).cloned(),
            false => shard.pairs.get(key).cloned(),
        }
    }

    /// Changes a key. One thread at a time.
    pub(super) fn insert(&self, key: Key, change: Change) {
        let added = value_bytes(&change);
        let mut shard = self.shards[key.sixteenth()].write().unwrap_or_else(PoisonError::into_inner);
        let (before, count) = match is_point(key.as_bytes()) {
            true => (shard.points.insert(key, change), &self.points),
            false => {
                shard.pairs.push(key, change);
                (None, &self.pairs)
            }
        };
        drop(shard);
        let bytes = self.bytes();
        let bytes = match &before {
            Some(before) => bytes + added - value_bytes(before),
            None => {
                count.store(count.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
                bytes + added + ENTRY_BYTES
            }
        };
        self.bytes.store(bytes, Ordering::Relaxed);
    }

    /// About the memory that it takes.
    pub(super) fn bytes(&self) -> usize {
        self.bytes.load(Ordering::Relaxed)
    }

    /// The number of its keys that a filter must hold.
    pub(super) fn points(&self) -> usize {
        self.points.load(Ordering::Relaxed)
    }

    /// The number of its entries. A pair that was changed twice counts twice.
    pub(super) fn len(&self) -> usize {
        self.points() + self.pairs.load(Ordering::Relaxed)
    }

    /// Adds the changes of keys that start with `prefix`, from `from` on, unless `into` has newer ones.
    pub(super) fn collect(&self, prefix: &[u8], from: Bound<&Key>, into: &mut BTreeMap<Key, Change>) {
        let shards = match prefix.get(1) {
            Some(byte) => usize::from(byte >> 4)..usize::from(byte >> 4) + 1,
            None => 0..self.shards.len(),
        };
        for shard in shards.map(|number| self.shard(number)) {
            for (key, change) in shard.points(prefix, from).chain(shard.pairs.starting(prefix, from)) {
                into.entry(*key).or_insert_with(|| change.clone());
            }
        }
    }

    /// Calls `each` for all changes in key order, until an error.
    pub(super) fn in_order<E>(&self, mut each: impl FnMut(&Key, &Change) -> Result<(), E>) -> Result<(), E> {
        let shards: Vec<_> = (0..self.shards.len()).map(|number| self.shard(number)).collect();
        let all = shards.iter().flat_map(|shard| shard.points.iter().chain(shard.pairs.newest_first()));
        let mut sorted = Vec::with_capacity(self.len());
        sorted.extend(all.map(|(key, change)| (leading(key.as_bytes()), key, change)));
        // A stable sort: the first of a key's changes is the newest.
        sorted.sort_by(|one, other| (one.0, one.1).cmp(&(other.0, other.1)));
        sorted.dedup_by_key(|(_, key, _)| *key);
        sorted.into_iter().try_for_each(|(_, key, change)| each(key, change))
    }

    fn shard(&self, number: usize) -> RwLockReadGuard<'_, Shard> {
        self.shards[number].read().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Shard {
    /// The points that start with `prefix`. They have no order, so all are looked at, unless the prefix is a whole
    /// point.
    fn points(&self, prefix: &[u8], from: Bound<&Key>) -> impl Iterator<Item = (&Key, &Change)> {
        let (exact, all) = match prefix.len() >= POINT_MOST {
            true => (Key::new(prefix).and_then(|key| self.points.get_key_value(&key)), None),
            false => (None, Some(&self.points)),
        };
        let wanted = move |key: &Key| key.as_bytes().starts_with(prefix) && is_from(key, from);
        exact.into_iter().chain(all.into_iter().flatten()).filter(move |(key, _)| wanted(key))
    }
}

fn value_bytes(change: &Change) -> usize {
    change.as_ref().map_or(0, |value| value.len())
}

/// Whether a key is not before this bound.
pub(super) fn is_from(key: &Key, from: Bound<&Key>) -> bool {
    match from {
        Bound::Included(first) => key >= first,
        Bound::Excluded(before) => key > before,
        Bound::Unbounded => true,
    }
}
