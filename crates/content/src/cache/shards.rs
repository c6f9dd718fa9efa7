//! The values by address, cut into shards so that hits seldom meet.

use std::array;
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use bytes::Bytes;

use super::held::Held;
use super::stats::CacheStats;
use crate::Address;
use crate::address::BuildAddress;

pub(super) struct Shards {
    shards: [Shard; SHARDS],
    age: Age,
}

const SHARDS: usize = 64;

/// All that a hit writes is here. Two cache lines apart from the next one: processors fetch them in pairs.
#[derive(Default)]
#[repr(align(128))]
struct Shard {
    values: RwLock<Values>,
    hits: AtomicU64,
    misses: AtomicU64,
}

type Values = HashMap<Address, Held, BuildAddress>;

/// Bits of the cache's age; on a line of its own, as all hits read it.
#[derive(Default)]
#[repr(align(128))]
struct Age(AtomicU64);

impl Default for Shards {
    fn default() -> Shards {
        Shards { shards: array::from_fn(|_| Shard::default()), age: Age::default() }
    }
}

impl Shards {
    pub(super) fn get(&self, address: &Address) -> Option<Bytes> {
        let shard = self.shard(address);
        let values = shard.read();
        let Some(held) = values.get(address) else {
            shard.misses.fetch_add(1, Relaxed);
            return None;
        };
        shard.hits.fetch_add(1, Relaxed);
        held.note_use(self.age());
        Some(held.bytes().clone())
    }

    pub(super) fn look<T>(&self, address: &Address, look: impl FnOnce(&Held) -> T) -> Option<T> {
        self.shard(address).read().get(address).map(look)
    }

    pub(super) fn insert(&self, address: Address, held: Held) {
        self.shard(&address).write().insert(address, held);
    }

    pub(super) fn remove(&self, address: &Address) -> Option<Held> {
        self.shard(address).write().remove(address)
    }

    pub(super) fn age(&self) -> f64 {
        f64::from_bits(self.age.0.load(Relaxed))
    }

    /// For the ledger's owner alone: two at a time could lower it.
    pub(super) fn raise_age(&self, to: f64) {
        self.age.0.store(to.max(self.age()).to_bits(), Relaxed);
    }

    /// The same stats with the gets in them.
    pub(super) fn count_gets(&self, mut stats: CacheStats) -> CacheStats {
        for shard in &self.shards {
            stats.hits += shard.hits.load(Relaxed);
            stats.misses += shard.misses.load(Relaxed);
        }
        stats
    }

    fn shard(&self, address: &Address) -> &Shard {
        &self.shards[address.bits() as usize % SHARDS]
    }
}

impl Shard {
    fn read(&self) -> RwLockReadGuard<'_, Values> {
        self.values.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, Values> {
        self.values.write().unwrap_or_else(PoisonError::into_inner)
    }
}
