//! Protects addresses in use from removal: the leases on them, and the addresses used since a collection began.
//!
//! A put of a blob that is already there writes nothing, so the blob must not be removed between the check and the
//! answer. A caller that relies on an address touches it here first. The writer, the only thread that removes, checks
//! here as it removes: either it finds the touch and keeps the address, or the caller learns that it is too late.

use std::collections::{HashMap, HashSet};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::Address;
use crate::address::BuildAddress;
use crate::shards::Shards;

/// Leases and touches, in shards to reduce lock contention.
#[derive(Debug, Default)]
pub(crate) struct Guard {
    shards: Shards<Mutex<Shard>>,
}

#[derive(Debug, Default)]
struct Shard {
    /// The addresses touched since the current collection began; `None` if there is none.
    touched: Option<HashSet<Address, BuildAddress>>,
    /// The addresses touched with everything that they lead to; true: for the value, false: for its derivation.
    followed: HashSet<(Address, bool)>,
    /// The addresses being removed now.
    leaving: HashSet<Address, BuildAddress>,
    /// The number of leases per address.
    held: HashMap<Address, u32, BuildAddress>,
}

impl Shard {
    fn touch(&mut self, address: &Address) -> Touch {
        if self.leaving.contains(address) {
            return Touch::Leaving;
        }
        if let Some(touched) = &mut self.touched {
            touched.insert(*address);
        }
        Touch::Stays
    }

    fn release(&mut self, address: &Address) {
        if let Some(count) = self.held.get_mut(address) {
            *count -= 1;
            if *count == 0 {
                self.held.remove(address);
            }
        }
    }
}

/// The result of a touch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Touch {
    /// The address stays.
    Stays,
    /// The address is being removed: treat it as missing.
    Leaving,
}

impl Guard {
    /// Protects an address from the current collection, if there is one.
    pub(crate) fn touch(&self, address: &Address) -> Touch {
        self.shard(address).touch(address)
    }

    /// Touches an address before the caller follows it, for its value or for its derivation. Returns true the first
    /// time during a collection.
    pub(crate) fn touch_once(&self, address: &Address, value: bool) -> bool {
        let mut shard = self.shard(address);
        shard.touch(address);
        shard.touched.is_some() && shard.followed.insert((*address, value))
    }

    pub(crate) fn hold(&self, address: &Address) -> Touch {
        let mut shard = self.shard(address);
        *shard.held.entry(*address).or_default() += 1;
        if shard.leaving.contains(address) { Touch::Leaving } else { Touch::Stays }
    }

    pub(crate) fn release(&self, address: &Address) {
        self.shard(address).release(address);
    }

    /// Touches and releases an address that a record just written leads to: a collection that began before has not seen
    /// that record.
    pub(crate) fn written(&self, address: &Address) {
        let mut shard = self.shard(address);
        shard.touch(address);
        shard.release(address);
    }

    /// Holds addresses that a record about to be written will lead to, and touches them once it is written: a
    /// collection that began before has not seen the record, and one that begins later will.
    pub(crate) fn want(&self, addresses: Vec<Address>) -> WantedAddresses<'_> {
        let is_leaving = addresses.iter().map(|address| self.hold(address) == Touch::Leaving).collect();
        WantedAddresses { guard: self, addresses, is_leaving }
    }

    /// All addresses that are held by leases now.
    pub(crate) fn held(&self) -> Vec<Address> {
        self.shards.iter().flat_map(|shard| lock(shard).held.keys().copied().collect::<Vec<_>>()).collect()
    }

    /// Whether a collection is going on.
    pub(crate) fn is_collecting(&self) -> bool {
        self.shards.iter().next().is_some_and(|shard| lock(shard).touched.is_some())
    }

    /// Begins a collection: touches are remembered until it ends.
    pub(crate) fn begin(&self) -> RunningCollection<'_> {
        for shard in self.shards.iter() {
            let mut shard = lock(shard);
            shard.touched = Some(HashSet::default());
            shard.followed.clear();
        }
        RunningCollection { guard: self }
    }

    /// Called by the writer before it removes an address: false if the address is held or touched, and must stay.
    pub(crate) fn leave(&self, address: &Address) -> bool {
        let mut shard = self.shard(address);
        let wanted = shard.held.contains_key(address)
            || shard.touched.as_ref().is_some_and(|touched| touched.contains(address));
        if !wanted {
            shard.leaving.insert(*address);
        }
        !wanted
    }

    /// Called by the writer before it removes an address that is damaged or invalidated, even if it is held.
    pub(crate) fn leave_now(&self, address: &Address) {
        self.shard(address).leaving.insert(*address);
    }

    /// Called by the writer once the address has been removed, or the removal failed.
    pub(crate) fn left(&self, address: &Address) {
        self.shard(address).leaving.remove(address);
    }

    fn shard(&self, address: &Address) -> MutexGuard<'_, Shard> {
        lock(self.shards.of(address))
    }
}

/// Addresses that a record about to be written will lead to.
pub(crate) struct WantedAddresses<'a> {
    guard: &'a Guard,
    addresses: Vec<Address>,
    is_leaving: Vec<bool>,
}

impl WantedAddresses<'_> {
    /// Whether the address at this place in the list was being removed when it was held.
    pub(crate) fn is_leaving(&self, place: usize) -> bool {
        self.is_leaving[place]
    }
}

impl Drop for WantedAddresses<'_> {
    fn drop(&mut self) {
        for address in &self.addresses {
            self.guard.written(address);
        }
    }
}

fn lock(shard: &Mutex<Shard>) -> MutexGuard<'_, Shard> {
    shard.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A collection that is going on.
pub(crate) struct RunningCollection<'a> {
    guard: &'a Guard,
}

impl Drop for RunningCollection<'_> {
    fn drop(&mut self) {
        for shard in self.guard.shards.iter() {
            let mut shard = lock(shard);
            shard.touched = None;
            shard.followed = HashSet::new();
        }
    }
}
