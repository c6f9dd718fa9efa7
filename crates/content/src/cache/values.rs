//! The values by address, in shards.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use bytes::Bytes;

use super::held::HeldValue;
use super::stats::CacheStats;
use crate::Address;
use crate::address::BuildAddress;
use crate::shards::Shards;

/// The values in the cache, and the cache's age.
#[derive(Default)]
pub(super) struct Values {
    shards: Shards<Shard>,
    age: Age,
}

/// A hit writes nothing else. Aligned to two cache lines, as processors fetch them in pairs.
#[derive(Default)]
#[repr(align(128))]
struct Shard {
    held: RwLock<Map>,
    hits: AtomicU64,
    misses: AtomicU64,
}

type Map = HashMap<Address, HeldValue, BuildAddress>;

/// Bits of the cache's age; on a line of its own, as all hits read it.
#[derive(Default)]
#[repr(align(128))]
struct Age(AtomicU64);

impl Values {
    pub(super) fn get(&self, address: &Address) -> Option<Bytes> {
        let shard = self.shards.of(address);
        let map = shard.read();
        let Some(held) = map.get(address) else {
            shard.misses.fetch_add(1, Relaxed);
            return None;
        };
        shard.hits.fetch_add(1, Relaxed);
        held.note_use(self.age());
        Some(held.bytes().clone())
    }

    pub(super) fn look<T>(&self, address: &Address, look: impl FnOnce(&HeldValue) -> T) -> Option<T> {
        self.shards.of(address).read().get(address).map(look)
    }

    pub(super) fn insert(&self, address: Address, held: HeldValue) {
        self.shards.of(&address).write().insert(address, held);
    }

    pub(super) fn remove(&self, address: &Address) -> Option<HeldValue> {
        let mut map = self.shards.of(address).write();
        let removed = map.remove(address);
        // A map keeps the memory of removed entries, which can be more than the cache's bound allows for the others.
        // A map that is 3/8 full shrinks to half: that moves at most three entries per removal.
        if map.len() * 8 < map.capacity() * 3 {
            map.shrink_to(0);
        }
        removed
    }

    /// Lets go of the buffer that a value came in: from now on the cache holds these bytes, which are the same.
    pub(super) fn replace_bytes(&self, address: &Address, same: Bytes) {
        // Dropped after the lock: freeing a large buffer takes time.
        let _before = self.shards.of(address).write().get_mut(address).map(|held| held.replace_bytes(same));
    }

    pub(super) fn age(&self) -> f64 {
        f64::from_bits(self.age.0.load(Relaxed))
    }

    /// Only for the ledger, under its lock: two calls at a time could lower the age.
    pub(super) fn raise_age(&self, to: f64) {
        self.age.0.store(to.max(self.age()).to_bits(), Relaxed);
    }

    /// The stats with hits and misses added.
    pub(super) fn count_gets(&self, mut stats: CacheStats) -> CacheStats {
        for shard in self.shards.iter() {
            stats.hits += shard.hits.load(Relaxed);
            stats.misses += shard.misses.load(Relaxed);
        }
        stats
    }
}

impl Shard {
    fn read(&self) -> RwLockReadGuard<'_, Map> {
        self.held.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, Map> {
        self.held.write().unwrap_or_else(PoisonError::into_inner)
    }
}
