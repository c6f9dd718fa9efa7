//! The layer that remembers replies, for nodes that fall back to stale values.
//!
//! Whole replies are kept, and for each key the last reply with its value. A reply is dropped when all of its keys have
//! newer ones. All replies of a process share one limit ([`StaleStore`]), and the oldest is dropped first. They belong
//! to the engine and not to a plan, so they survive a reload of the plan.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

use hashbrown::HashMap;

use super::share::Pick;
use super::{Data, Error, Keys, Pattern, Read, Reply, merge};
use crate::call::Call;
use crate::document::StaleTerms;

/// Bytes of a key's place in a table, about.
const ENTRY: usize = 32;

/// The replies that an engine remembers, within one bound.
pub(crate) struct StaleStore {
    budget: Arc<Budget>,
    /// One memory per kind of read.
    memories: Mutex<Vec<(ReadIdentity, Arc<Memory>)>>,
    /// The time that ages are counted from.
    start: Instant,
}

/// Identifies a read of an endpoint across plans.
#[derive(Clone, PartialEq)]
struct ReadIdentity {
    endpoint: usize,
    pattern: Pattern,
    read: Read,
}

/// The bytes of all memories of an engine.
struct Budget {
    most: usize,
    used: AtomicUsize,
    memories: Mutex<Vec<Weak<Memory>>>,
}

/// The replies to one kind of read.
pub(crate) struct Memory {
    budget: Arc<Budget>,
    start: Instant,
    /// The time of the oldest reply, in nanoseconds after the start; `u64::MAX` if there is none.
    oldest: AtomicU64,
    table: Mutex<Table>,
}

#[derive(Default)]
struct Table {
    ids: HashMap<i64, Place>,
    whole: HashMap<Box<str>, Place>,
    /// By number, the oldest first.
    replies: BTreeMap<u64, RememberedReply>,
    /// The number of the next reply.
    number: u64,
}

/// A row of a reply.
#[derive(Clone, Copy)]
struct Place {
    reply: u64,
    row: u32,
}

struct RememberedReply {
    data: Arc<Data>,
    keys: Keys,
    at: Instant,
    bytes: usize,
    /// Keys for which it is the last.
    current: usize,
}

/// A key, of either kind.
#[derive(Clone, Copy)]
enum Name<'a> {
    Id(i64),
    Whole(&'a str),
}

/// Remembered values of some keys.
pub(crate) struct RememberedData {
    pub(crate) data: Data,
    /// The age of the oldest.
    pub(crate) age: Duration,
    /// Keys of which something is known.
    pub(crate) known: u32,
}

impl StaleStore {
    /// A store of at most `most` bytes.
    pub(crate) fn new(most: usize, now: Instant) -> StaleStore {
        let budget = Budget { most, used: AtomicUsize::new(0), memories: Mutex::default() };
        StaleStore { budget: Arc::new(budget), memories: Mutex::default(), start: now }
    }

    /// The memory of one kind of read; of plans that make the same read it is the same.
    pub(crate) fn memory(&self, endpoint: usize, pattern: &Pattern, read: &Read) -> Arc<Memory> {
        let identity = ReadIdentity { endpoint, pattern: pattern.clone(), read: read.clone() };
        let mut memories = lock(&self.memories);
        if let Some((_, memory)) = memories.iter().find(|(other, _)| *other == identity) {
            return Arc::clone(memory);
        }
        // A memory that no plan uses any more and that holds nothing is of no use to the next one either.
        memories.retain(|(_, memory)| Arc::strong_count(memory) > 1 || !memory.is_empty());
        let memory = Memory::new(&self.budget, self.start);
        memories.push((identity, Arc::clone(&memory)));
        memory
    }
}

impl Budget {
    /// Evicts the oldest replies of all memories until an eighth of the budget is free again.
    fn evict(&self) {
        let memories: Vec<Arc<Memory>> = {
            let mut memories = lock(&self.memories);
            memories.retain(|memory| memory.strong_count() > 0);
            memories.iter().filter_map(Weak::upgrade).collect()
        };
        let enough = self.most - self.most / 8;
        while self.used.load(Ordering::Relaxed) > enough {
            let oldest = memories.iter().min_by_key(|memory| memory.oldest.load(Ordering::Relaxed));
            match oldest {
                Some(memory) if !memory.is_empty() => memory.evict_oldest(),
                _ => return,
            }
        }
    }
}

impl Memory {
    fn new(budget: &Arc<Budget>, start: Instant) -> Arc<Memory> {
        let memory = Arc::new(Memory {
            budget: Arc::clone(budget),
            start,
            oldest: AtomicU64::new(u64::MAX),
            table: Mutex::default(),
        });
        lock(&budget.memories).push(Arc::downgrade(&memory));
        memory
    }

    /// Remembers a reply to `keys` that came `at` this time. One that takes an eighth of the budget or more is not kept.
    pub(super) fn remember(&self, keys: Keys, data: Data, at: Instant) {
        let bytes = ENTRY * keys.len() + keys.weight() + data.weight();
        if keys.commands() == 0 || bytes > self.budget.most / 8 {
            return;
        }
        // Before anybody can outdate it, which takes it off again.
        let used = self.budget.used.fetch_add(bytes, Ordering::Relaxed) + bytes;
        let mut table = self.lock();
        let number = table.number;
        table.number += 1;
        let (mut current, mut freed) = (0, 0);
        for (row, name) in names(&keys) {
            let before = table.put(name, Place { reply: number, row });
            match before {
                Some(before) if before.reply == number => {}
                Some(before) => {
                    freed += table.outdate(before.reply);
                    current += 1;
                }
                None => current += 1,
            }
        }
        table.replies.insert(number, RememberedReply { data: Arc::new(data), keys, at, bytes, current });
        self.note_oldest(&table);
        drop(table);
        self.budget.used.fetch_sub(freed, Ordering::Relaxed);
        if used - freed > self.budget.most {
            self.budget.evict();
        }
    }

    /// The values that `keys` had when they were last read, at most `max_age` ago. A key of which nothing is known is as
    /// one that is not there; `None` when that is all of them.
    pub(super) fn lookup(&self, keys: &Keys, now: Instant, max_age: Duration) -> Option<RememberedData> {
        let table = self.lock();
        let mut picks: Vec<Option<Pick>> = vec![None; keys.len()];
        let mut replies = Vec::new();
        let (mut age, mut known) = (Duration::ZERO, 0);
        let mut chosen: HashMap<u64, u32> = HashMap::new();
        for (row, name) in names(keys) {
            let Some(place) = table.get(name) else { continue };
            let reply = &table.replies[&place.reply];
            let since = now.saturating_duration_since(reply.at);
            if since > max_age {
                continue;
            }
            known += 1;
            let reply = *chosen.entry(place.reply).or_insert_with(|| {
                age = age.max(since);
                replies.push(Arc::clone(&reply.data));
                (replies.len() - 1) as u32
            });
            picks[row as usize] = Some(Pick { reply, row: place.row });
        }
        drop(table);
        (!replies.is_empty()).then(|| RememberedData { data: merge::merge(&replies, &picks), age, known })
    }

    fn evict_oldest(&self) {
        let mut table = self.lock();
        let freed = table.forget_oldest();
        self.note_oldest(&table);
        drop(table);
        self.budget.used.fetch_sub(freed, Ordering::Relaxed);
    }

    fn note_oldest(&self, table: &Table) {
        let since =
            |reply: &RememberedReply| reply.at.saturating_duration_since(self.start).as_nanos() as u64;
        let oldest = table.replies.first_key_value().map_or(u64::MAX, |(_, reply)| since(reply));
        self.oldest.store(oldest, Ordering::Relaxed);
    }

    fn is_empty(&self) -> bool {
        self.oldest.load(Ordering::Relaxed) == u64::MAX
    }

    fn lock(&self) -> MutexGuard<'_, Table> {
        lock(&self.table)
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        let table = self.table.get_mut().unwrap_or_else(PoisonError::into_inner);
        let bytes: usize = table.replies.values().map(|reply| reply.bytes).sum();
        self.budget.used.fetch_sub(bytes, Ordering::Relaxed);
    }
}

impl Table {
    fn get(&self, name: Name<'_>) -> Option<Place> {
        match name {
            Name::Id(id) => self.ids.get(&id).copied(),
            Name::Whole(key) => self.whole.get(key).copied(),
        }
    }

    /// Moves a key to a new place; its place before.
    fn put(&mut self, name: Name<'_>, place: Place) -> Option<Place> {
        match name {
            Name::Id(id) => self.ids.insert(id, place),
            Name::Whole(key) => match self.whole.get_mut(key) {
                Some(known) => Some(std::mem::replace(known, place)),
                None => self.whole.insert(key.into(), place),
            },
        }
    }

    /// One key of a reply has a newer one; the bytes that are free if it was the last.
    fn outdate(&mut self, number: u64) -> usize {
        let reply = self.replies.get_mut(&number).expect("keys lead to replies that are kept");
        reply.current -= 1;
        match reply.current {
            0 => self.replies.remove(&number).map_or(0, |reply| reply.bytes),
            _ => 0,
        }
    }

    /// Forgets the oldest reply; the bytes that are free.
    fn forget_oldest(&mut self) -> usize {
        let Some((number, reply)) = self.replies.pop_first() else { return 0 };
        for (_, name) in names(&reply.keys) {
            if self.get(name).is_some_and(|place| place.reply == number) {
                match name {
                    Name::Id(id) => _ = self.ids.remove(&id),
                    Name::Whole(key) => _ = self.whole.remove(key),
                }
            }
        }
        reply.bytes
    }
}

/// The keys that are whole, and their rows.
fn names(keys: &Keys) -> impl Iterator<Item = (u32, Name<'_>)> {
    let (ids, whole): (&[i64], &[Option<Box<str>>]) = match keys {
        Keys::Ids(ids) => (ids, &[]),
        Keys::Whole(whole) => (&[], whole),
    };
    let ids = ids.iter().map(|id| Some(Name::Id(*id)));
    let whole = whole.iter().map(|key| key.as_deref().map(Name::Whole));
    ids.chain(whole).zip(0..).filter_map(|(name, row)| Some((row, name?)))
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The reads of a node that falls back to stale values.
pub(crate) struct StaleReads {
    terms: StaleTerms,
    /// The age of the oldest value used so far, in nanoseconds.
    oldest: AtomicU64,
    known: AtomicU32,
    asked: AtomicU32,
}

/// The use of remembered values by a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct StaleUse {
    /// The age of the oldest value.
    pub(crate) age: Duration,
    /// The number of keys with a remembered value.
    pub(crate) known: u32,
    /// The number of requested keys.
    pub(crate) asked: u32,
}

impl StaleReads {
    pub(crate) fn new(terms: StaleTerms) -> StaleReads {
        let [known, asked] = [const { AtomicU32::new(0) }; 2];
        StaleReads { terms, oldest: AtomicU64::new(0), known, asked }
    }

    /// The remembered values of `keys`. An error if fewer are known than the terms ask for.
    pub(super) fn read(
        &self,
        pattern: &Pattern,
        read: &Read,
        memory: Option<&Arc<Memory>>,
        keys: &Keys,
        call: &Call,
    ) -> Result<Reply, Error> {
        if let Some(reply) = read.without_trip(keys) {
            return Ok(reply);
        }
        let asked = keys.commands();
        let found = memory.and_then(|memory| memory.lookup(keys, call.clock.now(), self.terms.max_age));
        let known = found.as_ref().map_or(0, |found| found.known);
        let enough = f64::from(known) >= self.terms.min_known * f64::from(asked);
        let found = found.filter(|_| enough).ok_or_else(|| Error::Forgotten {
            command: format!("{} {pattern}", read.command()),
            max_age: self.terms.max_age,
            known,
            asked,
        })?;
        self.oldest.fetch_max(u64::try_from(found.age.as_nanos()).unwrap_or(u64::MAX), Ordering::Relaxed);
        self.known.fetch_add(known, Ordering::Relaxed);
        self.asked.fetch_add(asked, Ordering::Relaxed);
        Ok(Reply::of(found.data))
    }

    /// The remembered values that were used so far.
    pub(crate) fn used(&self) -> StaleUse {
        let [known, asked] = [&self.known, &self.asked].map(|count| count.load(Ordering::Relaxed));
        StaleUse { age: Duration::from_nanos(self.oldest.load(Ordering::Relaxed)), known, asked }
    }
}

#[cfg(test)]
mod tests;
