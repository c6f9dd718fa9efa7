//! Changes of keys that are longer than a point, mostly looked up by their first address.
//!
//! They are written far more often than they are read, so a change is only appended, with a link to the one before it
//! that has the same first address. Readers sort.

use std::collections::HashMap;
use std::ops::Bound;

use super::key::{Key, POINT_MOST, bits};
use super::table::{Change, is_from};
use crate::address::BuildAddress;

/// Changes in the order in which they were made. A key that is changed twice is in it twice.
#[derive(Default)]
pub(super) struct Pairs {
    all: Vec<LinkedChange>,
    /// The last change, by the bits of a point that begins as its key does.
    last: HashMap<u64, u32, BuildAddress>,
}

struct LinkedChange {
    key: Key,
    change: Change,
    /// The change before this one that has the same bits.
    before: Option<u32>,
}

impl Pairs {
    /// The last change of a key.
    pub(super) fn get(&self, key: &Key) -> Option<&Change> {
        self.linked(key.as_bytes()).find(|(other, _)| *other == key).map(|(_, change)| change)
    }

    pub(super) fn push(&mut self, key: Key, change: Change) {
        let place = u32::try_from(self.all.len()).expect("a table is frozen long before this many changes");
        let before = self.last.insert(bits(key.as_bytes()).rotate_left(24), place);
        self.all.push(LinkedChange { key, change, before });
    }

    /// All changes, the last one first.
    pub(super) fn newest_first(&self) -> impl Iterator<Item = (&Key, &Change)> {
        self.all.iter().rev().map(|it| (&it.key, &it.change))
    }

    /// The changes of keys that start with `prefix`, from `from` on, the last one first.
    pub(super) fn starting(&self, prefix: &[u8], from: Bound<&Key>) -> impl Iterator<Item = (&Key, &Change)> {
        let (linked, all) = match prefix.len() >= POINT_MOST {
            true => (Some(self.linked(prefix)), None),
            false => (None, Some(self.newest_first())),
        };
        let wanted = move |key: &Key| key.as_bytes().starts_with(prefix) && is_from(key, from);
        linked.into_iter().flatten().chain(all.into_iter().flatten()).filter(move |(key, _)| wanted(key))
    }

    /// The changes whose keys have the bits of this one, the last one first.
    fn linked(&self, start: &[u8]) -> impl Iterator<Item = (&Key, &Change)> {
        let mut next = self.last.get(&bits(start).rotate_left(24)).copied();
        std::iter::from_fn(move || {
            let it = &self.all[next? as usize];
            next = it.before;
            Some((&it.key, &it.change))
        })
    }
}
