//! The ledger: it counts the bytes held, knows the pins, and decides which value is evicted next.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use super::held::{EvictionPlace, HeldValue, Priority, density, size};
use super::values::Values;
use super::{Admission, CacheStats, Refusal, VerifiedBytes};
use crate::Address;

/// The record of which values are held. It has one owner at a time, and only the owner changes it.
#[derive(Default)]
pub(super) struct Ledger {
    bound: u64,
    /// The values held and not pinned, the next to be evicted first. Hits do not move a value, so its place may be too
    /// low.
    queue: BTreeMap<EvictionPlace, Address>,
    /// The number of pins per address, whether its value is held or not.
    pins: BTreeMap<Address, u64>,
    arrivals: u64,
    /// All but hits and misses.
    stats: CacheStats,
}

impl Ledger {
    pub(super) fn new(bound: u64) -> Ledger {
        Ledger { bound, ..Ledger::default() }
    }

    pub(super) fn stats(&self) -> CacheStats {
        self.stats
    }

    /// Whether there is room for a value without evicting another.
    pub(super) fn has_room(&self, value: &VerifiedBytes) -> bool {
        self.stats.bytes + size(&value.bytes) <= self.bound
    }

    /// Admits a value if its worth allows, and hands back the evicted ones.
    pub(super) fn admit(
        &mut self,
        values: &Values,
        VerifiedBytes { address, bytes }: VerifiedBytes,
        worth: u64,
    ) -> (Admission, Vec<HeldValue>) {
        if values.look(&address, |_| ()).is_some() {
            return (Admission::Present, Vec::new());
        }
        let size = size(&bytes);
        let priority = if self.pins.contains_key(&address) {
            Priority::HIGHEST
        } else {
            Priority::new(values.age(), density(worth, size), 1)
        };
        match self.make_room(values, size, priority) {
            Ok(evicted) => {
                self.arrivals += 1;
                self.hold(values, address, HeldValue::new(bytes, worth, values.age(), self.arrivals));
                (Admission::Admitted, evicted)
            }
            Err(why) => {
                self.refuse(values, worth, why);
                (Admission::Refused(why), Vec::new())
            }
        }
    }

    pub(super) fn remove(&mut self, values: &Values, address: &Address) -> Option<HeldValue> {
        let held = self.release(values, address)?;
        self.stats.removed += 1;
        Some(held)
    }

    pub(super) fn pin(&mut self, values: &Values, address: Address) {
        let pins = self.pins.entry(address).or_default();
        *pins += 1;
        if *pins > 1 {
            return;
        }
        values.look(&address, |held| {
            self.queue.remove(&held.place());
            self.stats.pinned_bytes += held.size();
        });
    }

    pub(super) fn unpin(&mut self, values: &Values, address: &Address) -> bool {
        let Entry::Occupied(mut pins) = self.pins.entry(*address) else { return false };
        *pins.get_mut() -= 1;
        if *pins.get() == 0 {
            pins.remove();
            values.look(address, |held| {
                self.queue.insert(held.earn_place(), *address);
                self.stats.pinned_bytes -= held.size();
            });
        }
        true
    }

    fn make_room(
        &mut self,
        values: &Values,
        size: u64,
        priority: Priority,
    ) -> Result<Vec<HeldValue>, Refusal> {
        if size > self.bound {
            return Err(Refusal::TooLarge);
        }
        if size > self.bound - self.stats.pinned_bytes {
            return Err(Refusal::AllPinned);
        }
        let excess = (self.stats.bytes + size).saturating_sub(self.bound);
        let leaving = self.take_lowest(values, excess, priority)?;
        Ok(leaving.into_iter().map(|(place, address)| self.evict(values, place, &address)).collect())
    }

    /// Takes values out of the queue that together hold `excess` bytes, the lowest first; or none, if that takes
    /// one from above `newcomer`.
    fn take_lowest(
        &mut self,
        values: &Values,
        mut excess: u64,
        newcomer: Priority,
    ) -> Result<Vec<(EvictionPlace, Address)>, Refusal> {
        let mut taken = Vec::new();
        // Hits raise priorities meanwhile, which could go on for ever: each value is moved at most once.
        let mut looks = self.queue.len();
        while excess > 0 {
            let (place, address) = self.queue.pop_first().expect("what is not pinned holds the excess");
            let look = |held: &HeldValue| (held.priority(), held.size());
            let (earned, size) = values.look(&address, look).expect("what is queued is held");
            if earned != place.priority && looks > 0 {
                looks -= 1;
                values.look(&address, |held| self.queue.insert(held.earn_place(), address));
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

    fn evict(&mut self, values: &Values, place: EvictionPlace, address: &Address) -> HeldValue {
        values.raise_age(place.priority.as_age());
        self.stats.evicted += 1;
        self.release(values, address).expect("what was queued is held")
    }

    fn refuse(&mut self, values: &Values, worth: u64, why: Refusal) {
        match why {
            Refusal::TooLarge => self.stats.refused_too_large += 1,
            Refusal::AllPinned => self.stats.refused_all_pinned += 1,
            Refusal::WorthLess => {
                self.stats.refused_worth_less += 1;
                // Refusals age the cache too: otherwise values that were once used very often would stay for ever.
                // Refusing as many bytes as the cache holds ages it as much as admitting them.
                values.raise_age(Priority::new(values.age(), density(worth, self.bound), 1).as_age());
            }
        }
    }

    fn hold(&mut self, values: &Values, address: Address, held: HeldValue) {
        self.stats.admitted += 1;
        self.stats.entries += 1;
        self.stats.bytes += held.size();
        if self.pins.contains_key(&address) {
            self.stats.pinned_bytes += held.size();
        } else {
            self.queue.insert(held.earn_place(), address);
        }
        values.insert(address, held);
    }

    fn release(&mut self, values: &Values, address: &Address) -> Option<HeldValue> {
        let held = values.remove(address)?;
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
