//! Decides what is held: how much, what stays whatever comes, and what leaves next.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use super::held::{Held, Place, Priority, density, size};
use super::shards::Shards;
use super::{Admission, CacheStats, Refusal, Verified};
use crate::Address;

/// Has one owner at a time, who alone changes which values the shards hold.
#[derive(Default)]
pub(super) struct Ledger {
    bound: u64,
    /// What is held and not pinned, the next to leave first. Hits move nothing here, so places may be too low.
    queue: BTreeMap<Place, Address>,
    /// How often, for what is held and for what may come.
    pins: BTreeMap<Address, u64>,
    arrivals: u64,
    /// All but the gets.
    stats: CacheStats,
}

impl Ledger {
    pub(super) fn new(bound: u64) -> Ledger {
        Ledger { bound, ..Ledger::default() }
    }

    pub(super) fn stats(&self) -> CacheStats {
        self.stats
    }

    /// Whether there is room for a value as it is.
    pub(super) fn has_room(&self, value: &Verified) -> bool {
        self.stats.bytes + size(&value.bytes) <= self.bound
    }

    /// Takes a value in if it may, and hands back what had to leave.
    pub(super) fn admit(
        &mut self,
        shards: &Shards,
        Verified { address, bytes }: Verified,
        worth: u64,
    ) -> (Admission, Vec<Held>) {
        if shards.look(&address, |_| ()).is_some() {
            return (Admission::Present, Vec::new());
        }
        let size = size(&bytes);
        let priority = if self.pins.contains_key(&address) {
            Priority::HIGHEST
        } else {
            Priority::new(shards.age(), density(worth, size), 1)
        };
        match self.make_room(shards, size, priority) {
            Ok(thrown_out) => {
                self.arrivals += 1;
                self.hold(shards, address, Held::new(bytes, worth, shards.age(), self.arrivals));
                (Admission::Admitted, thrown_out)
            }
            Err(why) => {
                self.refuse(shards, worth, why);
                (Admission::Refused(why), Vec::new())
            }
        }
    }

    pub(super) fn remove(&mut self, shards: &Shards, address: &Address) -> Option<Held> {
        let held = self.release(shards, address)?;
        self.stats.removed += 1;
        Some(held)
    }

    pub(super) fn pin(&mut self, shards: &Shards, address: Address) {
        let pins = self.pins.entry(address).or_default();
        *pins += 1;
        if *pins > 1 {
            return;
        }
        shards.look(&address, |held| {
            self.queue.remove(&held.place());
            self.stats.pinned_bytes += held.size();
        });
    }

    pub(super) fn unpin(&mut self, shards: &Shards, address: &Address) -> bool {
        let Entry::Occupied(mut pins) = self.pins.entry(*address) else { return false };
        *pins.get_mut() -= 1;
        if *pins.get() == 0 {
            pins.remove();
            shards.look(address, |held| {
                self.queue.insert(held.earn_place(), *address);
                self.stats.pinned_bytes -= held.size();
            });
        }
        true
    }

    fn make_room(&mut self, shards: &Shards, size: u64, priority: Priority) -> Result<Vec<Held>, Refusal> {
        if size > self.bound {
            return Err(Refusal::TooLarge);
        }
        if size > self.bound - self.stats.pinned_bytes {
            return Err(Refusal::AllPinned);
        }
        let excess = (self.stats.bytes + size).saturating_sub(self.bound);
        let leaving = self.take_lowest(shards, excess, priority)?;
        Ok(leaving.into_iter().map(|(place, address)| self.evict(shards, place, &address)).collect())
    }

    /// Takes values out of the queue that together hold `excess` bytes, the lowest first; or none, if that takes
    /// one from above `newcomer`.
    fn take_lowest(
        &mut self,
        shards: &Shards,
        mut excess: u64,
        newcomer: Priority,
    ) -> Result<Vec<(Place, Address)>, Refusal> {
        let mut taken = Vec::new();
        // Hits go on meanwhile and could keep us here for ever: one look at each value is enough.
        let mut looks = self.queue.len();
        while excess > 0 {
            let (place, address) = self.queue.pop_first().expect("what is not pinned holds the excess");
            let look = |held: &Held| (held.priority(), held.size());
            let (earned, size) = shards.look(&address, look).expect("what is queued is held");
            if earned != place.priority && looks > 0 {
                looks -= 1;
                shards.look(&address, |held| self.queue.insert(held.earn_place(), address));
                continue;
            }
            taken.push((place, address));
            if place.priority > newcomer {
                self.queue.extend(taken);
                return Err(Refusal::WorthLess);
            }
            excess = excess.saturating_sub(size);
        }
        Ok(taken)
    }

    fn evict(&mut self, shards: &Shards, place: Place, address: &Address) -> Held {
        shards.raise_age(place.priority.as_age());
        self.stats.evicted += 1;
        self.release(shards, address).expect("what was queued is held")
    }

    fn refuse(&mut self, shards: &Shards, worth: u64, why: Refusal) {
        match why {
            Refusal::TooLarge => self.stats.refused_too_large += 1,
            Refusal::AllPinned => self.stats.refused_all_pinned += 1,
            Refusal::WorthLess => {
                self.stats.refused_worth_less += 1;
                // Refusals age the cache too, or it would keep for ever what once was used the most; a cacheful of
                // them as much as if it had been admitted.
                shards.raise_age(Priority::new(shards.age(), density(worth, self.bound), 1).as_age());
            }
        }
    }

    fn hold(&mut self, shards: &Shards, address: Address, held: Held) {
        self.stats.admitted += 1;
        self.stats.entries += 1;
        self.stats.bytes += held.size();
        if self.pins.contains_key(&address) {
            self.stats.pinned_bytes += held.size();
        } else {
            self.queue.insert(held.earn_place(), address);
        }
        shards.insert(address, held);
    }

    fn release(&mut self, shards: &Shards, address: &Address) -> Option<Held> {
        let held = shards.remove(address)?;
        self.stats.entries -= 1;
        self.stats.bytes -= held.size();
        if self.pins.contains_key(address) {
            self.stats.pinned_bytes -= held.size();
        } else {
            self.queue.remove(&held.place());
        }
        Some(held)
    }
}
