//! What a read brought last, for when its source does not make it.
//!
//! Remembered are whole replies, and for each key the last one it came in. A reply goes when all of its keys have
//! newer ones, and the oldest go when there are too many; so what is kept is bounded by what it holds, read or not.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use hashbrown::HashMap;

use super::shared::Pick;
use super::{Data, Keys, merge};

/// Rows of all replies that are kept.
const MOST_ROWS: usize = 65_536;

/// Bytes of all replies that are kept, about.
const MOST_BYTES: usize = 32 << 20;

/// Bytes of a key's place in the table, about.
const ENTRY: usize = 32;

/// What all readers of one kind of read remember.
pub(crate) struct Stale {
    most_rows: usize,
    most_bytes: usize,
    table: Mutex<Table>,
}

#[derive(Default)]
struct Table {
    ids: HashMap<i64, Place>,
    whole: HashMap<Box<str>, Place>,
    /// By number, the oldest first.
    replies: BTreeMap<u64, Kept>,
    /// Of the next reply.
    number: u64,
    rows: usize,
    bytes: usize,
}

/// A row of a reply.
#[derive(Clone, Copy)]
struct Place {
    reply: u64,
    row: u32,
}

struct Kept {
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

impl Default for Stale {
    fn default() -> Stale {
        Stale::bounded(MOST_ROWS, MOST_BYTES)
    }
}

impl Stale {
    fn bounded(most_rows: usize, most_bytes: usize) -> Stale {
        Stale { most_rows, most_bytes, table: Mutex::default() }
    }

    /// Remembers a reply to `keys` that came `at` this time. One that alone is too large is not kept.
    pub(super) fn remember(&self, keys: Keys, data: Data, at: Instant) {
        let bytes = ENTRY * keys.len() + keys.weight() + data.weight();
        if keys.commands() == 0 || keys.len() > self.most_rows || bytes > self.most_bytes {
            return;
        }
        let mut table = self.lock();
        let number = table.number;
        table.number += 1;
        table.rows += keys.len();
        table.bytes += bytes;
        let mut current = 0;
        for (row, name) in names(&keys) {
            let before = table.put(name, Place { reply: number, row });
            match before {
                Some(before) if before.reply == number => {}
                Some(before) => {
                    table.outdate(before.reply);
                    current += 1;
                }
                None => current += 1,
            }
        }
        table.replies.insert(number, Kept { data: Arc::new(data), keys, at, bytes, current });
        while table.rows > self.most_rows || table.bytes > self.most_bytes {
            table.forget_oldest();
        }
    }

    /// What `keys` held when they were last read, at most `max_age` ago, and how old the oldest of that is. A key of
    /// which nothing is known is as one that is not there; `None` when that is all of them.
    pub(super) fn lookup(&self, keys: &Keys, now: Instant, max_age: Duration) -> Option<(Data, Duration)> {
        let table = self.lock();
        let mut picks: Vec<Option<Pick>> = vec![None; keys.len()];
        let mut replies = Vec::new();
        let mut oldest = Duration::ZERO;
        let mut chosen: HashMap<u64, u32> = HashMap::new();
        for (row, name) in names(keys) {
            let Some(place) = table.get(name) else { continue };
            let kept = &table.replies[&place.reply];
            let age = now.saturating_duration_since(kept.at);
            if age > max_age {
                continue;
            }
            let reply = *chosen.entry(place.reply).or_insert_with(|| {
                oldest = oldest.max(age);
                replies.push(Arc::clone(&kept.data));
                (replies.len() - 1) as u32
            });
            picks[row as usize] = Some(Pick { reply, row: place.row });
        }
        drop(table);
        (!replies.is_empty()).then(|| (merge::merge(&replies, &picks), oldest))
    }

    fn lock(&self) -> MutexGuard<'_, Table> {
        self.table.lock().expect("nothing panics while it is held")
    }
}

impl Table {
    fn get(&self, name: Name<'_>) -> Option<Place> {
        match name {
            Name::Id(id) => self.ids.get(&id).copied(),
            Name::Whole(key) => self.whole.get(key).copied(),
        }
    }

    /// Where the key is from now on; where it was.
    fn put(&mut self, name: Name<'_>, place: Place) -> Option<Place> {
        match name {
            Name::Id(id) => self.ids.insert(id, place),
            Name::Whole(key) => match self.whole.get_mut(key) {
                Some(known) => Some(std::mem::replace(known, place)),
                None => self.whole.insert(key.into(), place),
            },
        }
    }

    /// One key of a reply has a newer one.
    fn outdate(&mut self, reply: u64) {
        let kept = self.replies.get_mut(&reply).expect("keys lead to replies that are kept");
        kept.current -= 1;
        if kept.current == 0 {
            let kept = self.replies.remove(&reply).expect("it was there just now");
            self.rows -= kept.keys.len();
            self.bytes -= kept.bytes;
        }
    }

    fn forget_oldest(&mut self) {
        let Some((number, kept)) = self.replies.pop_first() else { return };
        self.rows -= kept.keys.len();
        self.bytes -= kept.bytes;
        for (_, name) in names(&kept.keys) {
            if self.get(name).is_some_and(|place| place.reply == number) {
                match name {
                    Name::Id(id) => _ = self.ids.remove(&id),
                    Name::Whole(key) => _ = self.whole.remove(key),
                }
            }
        }
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

#[cfg(test)]
mod tests;
