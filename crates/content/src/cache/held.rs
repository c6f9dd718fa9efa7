//! A value in the cache, and what decides when it leaves.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use bytes::Bytes;

use super::Cache;

/// The lowest leaves first. A float that is not negative, by its bits, which have the same order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Priority(u64);

/// Uses beyond this count no more, so that what was used the most, but no longer is, leaves after so many turns of
/// the rest. Among what is used more, the last use decides.
const USES_COUNTED: u64 = 16;

impl Priority {
    /// Above all others.
    pub(super) const HIGHEST: Priority = Priority(u64::MAX);

    /// Of a value last used at this age. It is above the age by however little the value is worth: otherwise an age
    /// that outgrew a float's digits would stand still.
    pub(super) fn new(age: f64, density: f64, uses: u64) -> Priority {
        Priority((age + density * uses as f64).max(age.next_up()).to_bits())
    }

    /// The age of a cache that something of this priority has left.
    pub(super) fn as_age(self) -> f64 {
        f64::from_bits(self.0)
    }
}

/// Where a value stands in the queue to leave: equals leave in the order of their arrival.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Place {
    pub(super) priority: Priority,
    arrival: u64,
}

/// A value in the cache. Hits change what is atomic, under a lock that they share.
pub(super) struct Held {
    bytes: Bytes,
    density: f64,
    uses: AtomicU64,
    /// Bits of the cache's age at the last use.
    age: AtomicU64,
    /// Bits of the priority that the value is queued by. Later uses do not change it, only the ledger's owner does.
    queued: AtomicU64,
    arrival: u64,
}

impl Held {
    pub(super) fn new(bytes: Bytes, worth: u64, age: f64, arrival: u64) -> Held {
        let density = density(worth, size(&bytes));
        let [uses, age, queued] = [1, age.to_bits(), 0].map(AtomicU64::new);
        Held { bytes, density, uses, age, queued, arrival }
    }

    pub(super) fn bytes(&self) -> &Bytes {
        &self.bytes
    }

    pub(super) fn size(&self) -> u64 {
        size(&self.bytes)
    }

    /// Notes a use. Looks before it writes: what is used all the time is then only read, by all threads at once.
    pub(super) fn note_use(&self, age: f64) {
        if self.uses.load(Relaxed) < USES_COUNTED {
            self.uses.fetch_add(1, Relaxed);
        }
        if self.age.load(Relaxed) != age.to_bits() {
            self.age.store(age.to_bits(), Relaxed);
        }
    }

    /// What the uses so far have earned.
    pub(super) fn priority(&self) -> Priority {
        Priority::new(f64::from_bits(self.age.load(Relaxed)), self.density, self.uses.load(Relaxed))
    }

    /// The place that the uses so far have earned: from now on the value's.
    pub(super) fn earn_place(&self) -> Place {
        self.queued.store(self.priority().0, Relaxed);
        self.place()
    }

    /// The value's place in the queue.
    pub(super) fn place(&self) -> Place {
        Place { priority: Priority(self.queued.load(Relaxed)), arrival: self.arrival }
    }
}

/// What bytes take in the cache.
pub(super) fn size(bytes: &Bytes) -> u64 {
    bytes.len() as u64 + Cache::ENTRY_BYTES
}

/// What a value is worth a byte.
pub(super) fn density(worth: u64, size: u64) -> f64 {
    worth as f64 / size as f64
}
