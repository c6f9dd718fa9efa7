//! Values in memory, by address: bounded by bytes, and what is worth the most for its size stays.
//!
//! Values leave by GreedyDual-Size-Frequency: the lowest `age + worth * uses / size` first, where the age is that
//! of the cache at the value's last use, and rises to the priority of whatever leaves.
//!
//! A hit takes the read lock of one shard of many. What changes the values held is rare and goes through one
//! ledger under one lock, so that the bound and the order of leaving are exact. Locks are taken in this order: the
//! ledger's, then a single shard's.

mod verified;
mod stats;
mod held;
mod shards;
mod ledger;

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;

use crate::Address;
use ledger::Ledger;
use shards::Shards;

pub use stats::CacheStats;
pub use verified::{Mismatch, Verified};

/// Values in memory, by address. A clone is the same cache.
///
/// ```
/// # use anabranch_content::{Address, Admission, Cache, CacheSettings, Verified};
/// let cache = Cache::new(CacheSettings { bytes: 1 << 20 });
/// let value = Verified::check(Address::of(b"hello"), "hello".into())?;
/// assert_eq!(cache.admit(value, 1_000_000), Admission::Admitted);
/// assert_eq!(cache.get(&Address::of(b"hello")), Some("hello".into()));
/// # Ok::<(), anabranch_content::Mismatch>(())
/// ```
#[derive(Clone)]
pub struct Cache {
    shared: Arc<Shared>,
}

struct Shared {
    shards: Shards,
    ledger: Mutex<Ledger>,
}

/// How large a cache is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// What the values may take, with [`Cache::ENTRY_BYTES`] more for each; 0 keeps nothing.
    pub bytes: u64,
}

/// What became of a value that was offered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Admission {
    /// It is held from now on.
    Admitted,
    /// It was held already, and keeps the worth that it had.
    Present,
    /// It is not held.
    Refused(Refusal),
}

/// Why a value is not held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// Larger than the whole cache.
    TooLarge,
    /// Larger than what is not pinned.
    AllPinned,
    /// It would have to throw out something worth more.
    WorthLess,
}

impl Cache {
    /// What a value takes beside its bytes: its place in a map and in a queue, and an allocation.
    pub const ENTRY_BYTES: u64 = 256;

    /// An empty cache.
    pub fn new(settings: Settings) -> Cache {
        let ledger = Mutex::new(Ledger::new(settings.bytes));
        Cache { shared: Arc::new(Shared { shards: Shards::default(), ledger }) }
    }

    /// The value, if it is held; counts as a use of it, and as a hit or a miss.
    pub fn get(&self, address: &Address) -> Option<Bytes> {
        self.shared.shards.get(address)
    }

    /// The value, if it is held; counts as nothing.
    pub fn peek(&self, address: &Address) -> Option<Bytes> {
        self.shared.shards.look(address, |held| held.bytes().clone())
    }

    /// Whether the value is held; counts as nothing.
    pub fn contains(&self, address: &Address) -> bool {
        self.shared.shards.look(address, |_| ()).is_some()
    }

    /// Offers a value, which is worth so many nanoseconds of work (or what costs as much) to make or fetch again.
    pub fn admit(&self, value: Verified, worth: u64) -> Admission {
        // Freeing what was thrown out takes time, so it outlives the lock.
        let (admission, _thrown_out) = self.ledger().admit(&self.shared.shards, value, worth);
        admission
    }

    /// The same, but only if nothing has to leave for it.
    pub fn admit_if_free(&self, value: Verified, worth: u64) -> Option<Admission> {
        let mut ledger = self.ledger();
        ledger.has_room(&value).then(|| ledger.admit(&self.shared.shards, value, worth).0)
    }

    /// Drops a value, pinned or not, and says whether it was held.
    pub fn remove(&self, address: &Address) -> bool {
        let removed = self.ledger().remove(&self.shared.shards, address);
        removed.is_some()
    }

    /// Keeps a value from being thrown out: from now on, or from when it is admitted, which then is for any worth.
    /// Holds until it is unpinned as often as it was pinned.
    pub fn pin(&self, address: Address) {
        self.ledger().pin(&self.shared.shards, address);
    }

    /// Takes back one pin, and says whether there was one.
    pub fn unpin(&self, address: &Address) -> bool {
        self.ledger().unpin(&self.shared.shards, address)
    }

    /// What has happened so far, and what is held.
    pub fn stats(&self) -> CacheStats {
        let ledger = self.ledger();
        self.shared.shards.count_gets(ledger.stats())
    }

    fn ledger(&self) -> MutexGuard<'_, Ledger> {
        self.shared.ledger.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Cache {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Cache").field("stats", &self.stats()).finish_non_exhaustive()
    }
}
