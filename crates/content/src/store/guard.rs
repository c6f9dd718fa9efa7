//! Keeps what is wanted from being removed: who holds an address, and who asked for it since a collection began.
//!
//! A put of a blob that is already there writes nothing, so the blob must not go between the look and the answer.
//! Whoever relies on an address touches it here first; the writer, which alone removes, looks here at the moment it
//! does. Either it finds the touch and leaves the address alone, or the toucher learns that it is too late.

use std::collections::{HashMap, HashSet};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::Address;
use crate::address::BuildAddress;
use crate::shards::Shards;

/// Who holds what, in shards, so that callers hardly meet.
#[derive(Debug, Default)]
pub(crate) struct Guard {
    shards: Shards<Mutex<Shard>>,
}

#[derive(Debug, Default)]
struct Shard {
    /// Touched since the collection began, if one is going on.
    touched: Option<HashSet<Address, BuildAddress>>,
    /// Touched with all that they lead to: for their value, or for what it takes to derive it.
    followed: HashSet<(Address, bool)>,
    /// Being removed now.
    leaving: HashSet<Address, BuildAddress>,
    /// Leases, counted.
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

/// What a touch found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Touch {
    /// What is there now stays.
    Stays,
    /// It is being removed: treat it as missing.
    Leaving,
}

impl Guard {
    /// Says that an address is wanted.
    pub(crate) fn touch(&self, address: &Address) -> Touch {
        self.shard(address).touch(address)
    }

    /// Touches an address that is about to be followed to what it leads to: true the first time while a collection goes
    /// on, for its value or for what it takes to derive it.
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

    /// Releases an address that something just written leads to: a collection that began before has not seen that.
    pub(crate) fn written(&self, address: &Address) {
        let mut shard = self.shard(address);
        shard.touch(address);
        shard.release(address);
    }

    /// Holds addresses that something about to be written will lead to, and touches them when that is in: a collection
    /// that began before has not seen it, and one that begins later does.
    pub(crate) fn want(&self, addresses: Vec<Address>) -> Wanted<'_> {
        let is_leaving = addresses.iter().map(|address| self.hold(address) == Touch::Leaving).collect();
        Wanted { guard: self, addresses, is_leaving }
    }

    /// Everything that leases hold now.
    pub(crate) fn held(&self) -> Vec<Address> {
        self.shards.iter().flat_map(|shard| lock(shard).held.keys().copied().collect::<Vec<_>>()).collect()
    }

    /// Are touches remembered?
    pub(crate) fn is_collecting(&self) -> bool {
        self.shards.iter().next().is_some_and(|shard| lock(shard).touched.is_some())
    }

    /// From now on touches are remembered, until the collection ends.
    pub(crate) fn begin(&self) -> Collecting<'_> {
        for shard in self.shards.iter() {
            let mut shard = lock(shard);
            shard.touched = Some(HashSet::default());
            shard.followed.clear();
        }
        Collecting { guard: self }
    }

    /// The writer is about to remove this: true unless somebody wants it.
    pub(crate) fn leave(&self, address: &Address) -> bool {
        let mut shard = self.shard(address);
        let wanted = shard.held.contains_key(address)
            || shard.touched.as_ref().is_some_and(|touched| touched.contains(address));
        if !wanted {
            shard.leaving.insert(*address);
        }
        !wanted
    }

    /// The same, whoever wants it: its bytes are damaged, or its owner says that it no longer holds.
    pub(crate) fn leave_now(&self, address: &Address) {
        self.shard(address).leaving.insert(*address);
    }

    /// It has been removed, or the removal failed.
    pub(crate) fn left(&self, address: &Address) {
        self.shard(address).leaving.remove(address);
    }

    fn shard(&self, address: &Address) -> MutexGuard<'_, Shard> {
        lock(self.shards.of(address))
    }
}

/// Addresses that are about to be led to.
pub(crate) struct Wanted<'a> {
    guard: &'a Guard,
    addresses: Vec<Address>,
    is_leaving: Vec<bool>,
}

impl Wanted<'_> {
    /// Was this one, by its place in the list, being removed when it was asked for?
    pub(crate) fn is_leaving(&self, place: usize) -> bool {
        self.is_leaving[place]
    }
}

impl Drop for Wanted<'_> {
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
pub(crate) struct Collecting<'a> {
    guard: &'a Guard,
}

impl Drop for Collecting<'_> {
    fn drop(&mut self) {
        for shard in self.guard.shards.iter() {
            let mut shard = lock(shard);
            shard.touched = None;
            shard.followed = HashSet::new();
        }
    }
}
