//! A value in the cache, and its priority, which decides when it is evicted.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use bytes::Bytes;

use super::Cache;

/// The value with the lowest is evicted first. The bits of a float that is not negative: they have its order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Priority(u64);

/// Further uses do not count, so that a value that was used very often, but no longer is, gets evicted in the end.
/// Among values with more uses, the last use decides.
const USES_COUNTED: u64 = 16;

impl Priority {
    /// Above all others.
    pub(super) const HIGHEST: Priority = Priority(u64::MAX);

    /// The priority of a value last used at this age. It is above the age however little the value is worth:
    /// otherwise an age with more digits than a float holds would never rise.
    pub(super) fn new(age: f64, density: f64, uses: u64) -> Priority {
        Priority((age + density * uses as f64).max(age.next_up()).to_bits())
    }

    /// The age of a cache that evicted a value of this priority.
    pub(super) fn as_age(self) -> f64 {
        f64::from_bits(self.0)
    }
}

/// A value's place in the eviction queue: values of equal priority are evicted in the order of their arrival.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct EvictionPlace {
    pub(super) priority: Priority,
    arrival: u64,
}

/// A value in the cache. Hits change the atomic fields, under a read lock.
pub(super) struct HeldValue {
    bytes: Bytes,
    density: f64,
    uses: AtomicU64,
    /// Bits of the cache's age at the last use.
    age: AtomicU64,
    /// Bits of the priority that the value has in the queue. Uses do not change it; only the ledger does.
    queued: AtomicU64,
    arrival: u64,
}

impl HeldValue {
    pub(super) fn new(bytes: Bytes, worth: u64, age: f64, arrival: u64) -> HeldValue {
        let density = density(worth, size(&bytes));
        let [uses, age, queued] = [1, age.to_bits(), 0].map(AtomicU64::new);
        HeldValue { bytes, density, uses, age, queued, arrival }
    }

    pub(super) fn bytes(&self) -> &Bytes {
        &self.bytes
    }

    /// Takes the same bytes from another buffer, and hands back those it had.
    pub(super) fn replace_bytes(&mut self, same: Bytes) -> Bytes {
        std::mem::replace(&mut self.bytes, same)
    }

    pub(super) fn size(&self) -> u64 {
        size(&self.bytes)
    }

    /// Notes a use. It reads before it writes: a value in constant use is then only read, and its cache line stays
    /// shared between processors.
    pub(super) fn note_use(&self, age: f64) {
        if self.uses.load(Relaxed) < USES_COUNTED {
            self.uses.fetch_add(1, Relaxed);
        }
        if self.age.load(Relaxed) != age.to_bits() {
            self.age.store(age.to_bits(), Relaxed);
        }
    }

    /// The priority after the uses so far.
    pub(super) fn priority(&self) -> Priority {
        Priority::new(f64::from_bits(self.age.load(Relaxed)), self.density, self.uses.load(Relaxed))
    }

    /// Gives the value the place of its current priority.
    pub(super) fn earn_place(&self) -> EvictionPlace {
        self.queued.store(self.priority().0, Relaxed);
        self.place()
    }

    /// The value's place in the queue.
    pub(super) fn place(&self) -> EvictionPlace {
        EvictionPlace { priority: Priority(self.queued.load(Relaxed)), arrival: self.arrival }
    }
}

/// The memory that a value of these bytes takes in the cache.
pub(super) fn size(bytes: &Bytes) -> u64 {
    bytes.len() as u64 + Cache::ENTRY_BYTES
}

/// A value's worth per byte.
pub(super) fn density(worth: u64, size: u64) -> f64 {
    worth as f64 / size as f64
}
