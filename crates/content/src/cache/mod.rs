//! Values in memory, by address: bounded by bytes. The values that are worth the most for their size stay.
//!
//! Values are evicted by GreedyDual-Size-Frequency: the lowest `age + worth * uses / size` first. The age is the
//! cache's age at the value's last use; an eviction raises the cache's age to the priority of the evicted value.
//!
//! A hit takes the read lock of one shard of many. Admissions and removals are rare and go through one ledger (which
//! counts the bytes and orders the evictions) under one lock, so that the bound and the order are exact. The ledger's
//! lock is taken before a shard's, and one shard's at a time.

mod verified;
mod stats;
mod held;
mod values;
mod ledger;

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;

use crate::Address;
use ledger::Ledger;
use values::Values;

pub use stats::CacheStats;
pub use verified::{Mismatch, VerifiedBytes};

/// Values in memory, by address. A clone is the same cache.
///
/// ```
/// # use anabranch_content::{Address, Admission, Cache, CacheSettings, VerifiedBytes};
/// let cache = Cache::new(CacheSettings { bytes: 1 << 20 });
/// let value = VerifiedBytes::check(Address::of(b"hello"), "hello".into())?;
/// assert_eq!(cache.admit(value, 1_000_000), Admission::Admitted);
/// assert_eq!(cache.get(&Address::of(b"hello")), Some("hello".into()));
/// # Ok::<(), anabranch_content::Mismatch>(())
/// ```
#[derive(Clone)]
pub struct Cache {
    shared: Arc<Shared>,
}

struct Shared {
    values: Values,
    ledger: Mutex<Ledger>,
}

/// The size of a cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// The memory that the values may take, with [`Cache::ENTRY_BYTES`] more for each; 0 keeps nothing.
    pub bytes: u64,
}

/// The result of offering a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Admission {
    /// It is held from now on.
    Admitted,
    /// It was held already, and keeps its worth.
    Present,
    /// It is not held.
    Refused(Refusal),
}

/// The reason why a value is not held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// Larger than the whole cache.
    TooLarge,
    /// Larger than the room that pinned values leave.
    AllPinned,
    /// A value that is worth more would have to be evicted for it.
    WorthLess,
}

impl Cache {
    /// The memory that a value takes beside its bytes: about 180 bytes in a map that is never quite full, 100 in the
    /// eviction queue, 32 for the reference count of the bytes, and 24 of allocator overhead. A test measures the sum.
    pub const ENTRY_BYTES: u64 = 336;

    /// An empty cache.
    pub fn new(settings: Settings) -> Cache {
        let ledger = Mutex::new(Ledger::new(settings.bytes));
        Cache { shared: Arc::new(Shared { values: Values::default(), ledger }) }
    }

    /// The value, if it is held; counts as a use of it, and as a hit or a miss.
    pub fn get(&self, address: &Address) -> Option<Bytes> {
        self.shared.values.get(address)
    }

    /// The value, if it is held; does not count as a use, a hit or a miss.
    pub fn peek(&self, address: &Address) -> Option<Bytes> {
        self.shared.values.look(address, |held| held.bytes().clone())
    }

    /// Whether the value is held; does not count as a use, a hit or a miss.
    pub fn contains(&self, address: &Address) -> bool {
        self.shared.values.look(address, |_| ()).is_some()
    }

    /// Offers a value. Its worth is the time in nanoseconds that it would take to compute or fetch it again.
    pub fn admit(&self, value: VerifiedBytes, worth: u64) -> Admission {
        self.admit_to(self.ledger(), value, worth)
    }

    /// Offers a value, but only if there is room without evicting another; `None` if there is not.
    pub fn admit_if_free(&self, value: VerifiedBytes, worth: u64) -> Option<Admission> {
        let ledger = self.ledger();
        ledger.has_room(&value).then(|| self.admit_to(ledger, value, worth))
    }

    /// Removes a value, pinned or not. Returns whether it was held.
    pub fn remove(&self, address: &Address) -> bool {
        let removed = self.ledger().remove(&self.shared.values, address);
        removed.is_some()
    }

    /// Keeps a value from being evicted: from now on, or from its admission, for which its worth no longer matters.
    /// Lasts until the value is unpinned as often as it was pinned.
    pub fn pin(&self, address: Address) {
        self.ledger().pin(&self.shared.values, address);
    }

    /// Removes one pin. Returns whether there was one.
    pub fn unpin(&self, address: &Address) -> bool {
        self.ledger().unpin(&self.shared.values, address)
    }

    /// The activity of the cache so far, and its content now.
    pub fn stats(&self) -> CacheStats {
        let ledger = self.ledger();
        self.shared.values.count_gets(ledger.stats())
    }

    /// The only way in. A value that is admitted is copied: its bytes may be a slice of a buffer of any size, all of
    /// which they would keep in memory.
    fn admit_to(&self, mut ledger: MutexGuard<'_, Ledger>, value: VerifiedBytes, worth: u64) -> Admission {
        let (address, bytes) = (value.address, value.bytes.clone());
        let (admission, evicted) = ledger.admit(&self.shared.values, value, worth);
        // Copying and freeing take time, so they come after the lock.
        drop(ledger);
        drop(evicted);
        if admission == Admission::Admitted {
            self.shared.values.replace_bytes(&address, Bytes::copy_from_slice(&bytes));
        }
        admission
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
