//! The layer that shares reads: nodes of one request that read the same keys read them once.
//!
//! A node claims the keys that no other node has read or is reading, reads these in one trip, and only then waits for
//! the keys that other nodes have claimed. So a node never waits for a trip that has not begun, and no two nodes wait
//! for each other. A trip that fails or is cancelled returns its claims, and the nodes that need the keys read them.

use std::hash::Hash;
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard};

use hashbrown::HashMap;
use hashbrown::hash_map::Entry;
use tokio::sync::Notify;

use super::layers::Reader;
use super::{Data, Fetch, Keys, Reply, merge};
use crate::call::Call;

/// Reads `keys` of a table that the nodes of a request share.
pub(super) fn read(reader: &Reader, keys: Keys, table: usize, call: &Arc<Call>) -> Fetch {
    if let Some(reply) = reader.read.without_trip(&keys) {
        return Fetch::Ready(Ok(reply));
    }
    let flight = Flight::new(Arc::clone(call), table);
    let trip = match flight.progress(&keys) {
        Progress::Done(data) => return Fetch::Ready(Ok(Reply::of(data))),
        Progress::Wait => None,
        Progress::Mine(mine) => Some(reader.trip(mine, call)),
    };
    match trip {
        Some(Fetch::Ready(Err(error))) => Fetch::Ready(Err(error)),
        Some(Fetch::Ready(Ok(reply))) => {
            let brought = flight.land(reply);
            match flight.progress(&keys) {
                Progress::Done(data) => Fetch::Ready(Ok(Reply { data, ..brought })),
                Progress::Wait => wait(reader, flight, keys, None, brought),
                Progress::Mine(mine) => {
                    let trip = reader.trip(mine, call);
                    wait(reader, flight, keys, Some(trip), brought)
                }
            }
        }
        later => wait(reader, flight, keys, later, Reply::of(Data::Columns(Vec::new()))),
    }
}

/// Waits for its own trip, then for those of other nodes; keys that these fail to bring it reads itself. `brought` is
/// the trips made so far.
fn wait(reader: &Reader, flight: Flight, keys: Keys, mut trip: Option<Fetch>, mut brought: Reply) -> Fetch {
    let reader = reader.clone();
    Fetch::Later(Box::pin(async move {
        loop {
            if let Some(trip) = trip.take() {
                let reply = match trip {
                    Fetch::Ready(reply) => reply?,
                    Fetch::Later(reply) => reply.await?,
                };
                brought = brought.and(flight.land(reply));
            }
            match flight.progress_or_wait(&keys).await {
                Progress::Done(data) => return Ok(Reply { data, ..brought }),
                Progress::Wait => {}
                Progress::Mine(mine) => trip = Some(reader.trip(mine, flight.call())),
            }
        }
    }))
}

/// The reads that nodes of one request share; one table per kind of read.
#[derive(Default)]
pub struct Shared {
    table: Mutex<Table>,
    /// Told whenever claims become values, or are returned.
    changed: Notify,
}

#[derive(Default)]
struct Table {
    ids: HashMap<i64, State>,
    whole: HashMap<Box<str>, State>,
    replies: Vec<Arc<Data>>,
}

/// The state of a key in a table.
#[derive(Clone, Copy)]
enum State {
    /// Some flight is reading it.
    Claimed,
    /// It is here.
    Read(Pick),
}

/// A row of one of several replies.
#[derive(Clone, Copy)]
pub(super) struct Pick {
    pub(super) reply: u32,
    pub(super) row: u32,
}

/// The progress of a read.
pub(super) enum Progress {
    /// It is complete.
    Done(Data),
    /// Other nodes are reading the missing keys.
    Wait,
    /// These distinct keys are claimed and must be read now.
    Mine(Keys),
}

/// One node's part in a table. Its claims are returned on drop.
pub(super) struct Flight {
    call: Arc<Call>,
    table: usize,
    /// The keys that it has claimed and not yet delivered, if any.
    claims: Mutex<Option<Keys>>,
}

impl Flight {
    pub(super) fn new(call: Arc<Call>, table: usize) -> Flight {
        Flight { call, table, claims: Mutex::default() }
    }

    pub(super) fn call(&self) -> &Arc<Call> {
        &self.call
    }

    fn shared(&self) -> &Shared {
        &self.call.shared[self.table]
    }

    /// Looks up `keys`, and claims those that no other node has.
    pub(super) fn progress(&self, keys: &Keys) -> Progress {
        let mut table = self.shared().lock();
        let Table { ids, whole, .. } = &mut *table;
        let (picks, mine) = match keys {
            Keys::Ids(keys) => {
                let (picks, mine) = look(ids, keys.iter().map(Some));
                (picks, Keys::Ids(mine))
            }
            Keys::Whole(keys) => {
                let (picks, mine) = look(whole, keys.iter().map(Option::as_ref));
                (picks, Keys::Whole(mine.into_iter().map(Some).collect()))
            }
        };
        if !mine.is_empty() {
            *self.claims.lock().expect("nothing panics while it is held") = Some(mine.clone());
            return Progress::Mine(mine);
        }
        let Some(picks) = picks else { return Progress::Wait };
        let replies = table.replies.clone();
        drop(table);
        Progress::Done(merge::merge(&replies, &picks))
    }

    /// The same, but returns from a wait only when something has changed.
    pub(super) async fn progress_or_wait(&self, keys: &Keys) -> Progress {
        let mut changed = pin!(self.shared().changed.notified());
        // Before looking, so that no change slips through between.
        changed.as_mut().enable();
        let progress = self.progress(keys);
        if matches!(progress, Progress::Wait) {
            changed.await;
        }
        progress
    }

    /// Brings the values of the keys that were claimed; the reply without them.
    pub(super) fn land(&self, reply: Reply) -> Reply {
        let (data, rest) = reply.split();
        let claims = self.claims.lock().expect("nothing panics while it is held").take();
        let mut table = self.shared().lock();
        let reply = table.replies.len() as u32;
        table.replies.push(Arc::new(data));
        let read = |row: usize| State::Read(Pick { reply, row: row as u32 });
        match claims.expect("what lands was claimed") {
            Keys::Ids(ids) => {
                for (row, id) in ids.into_iter().enumerate() {
                    table.ids.insert(id, read(row));
                }
            }
            Keys::Whole(keys) => {
                for (row, key) in keys.into_iter().enumerate() {
                    table.whole.insert(key.expect("claims are whole"), read(row));
                }
            }
        }
        drop(table);
        self.shared().changed.notify_waiters();
        rest
    }
}

impl Drop for Flight {
    fn drop(&mut self) {
        let claims = self.claims.get_mut().ok().and_then(Option::take);
        let Some(claims) = claims else { return };
        let mut table = self.shared().lock();
        match claims {
            Keys::Ids(ids) => ids.iter().for_each(|id| _ = table.ids.remove(id)),
            Keys::Whole(keys) => keys.iter().flatten().for_each(|key| _ = table.whole.remove(key)),
        }
        drop(table);
        self.shared().changed.notify_waiters();
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Table> {
        self.table.lock().expect("nothing panics while it is held")
    }
}

/// The location of each key (`None` if any is missing), and the keys that are claimed now.
fn look<'k, K: Hash + Eq + Clone + 'k>(
    known: &mut HashMap<K, State>,
    keys: impl ExactSizeIterator<Item = Option<&'k K>>,
) -> (Option<Vec<Option<Pick>>>, Vec<K>) {
    let mut picks = Some(Vec::with_capacity(keys.len()));
    let mut mine = Vec::new();
    for key in keys {
        let pick = match key {
            None => Some(None),
            Some(key) => match known.entry(key.clone()) {
                Entry::Occupied(entry) => match *entry.get() {
                    State::Read(pick) => Some(Some(pick)),
                    State::Claimed => None,
                },
                Entry::Vacant(entry) => {
                    mine.push(key.clone());
                    entry.insert(State::Claimed);
                    None
                }
            },
        };
        match (pick, &mut picks) {
            (Some(pick), Some(picks)) => picks.push(pick),
            _ => picks = None,
        }
    }
    (picks, mine)
}

#[cfg(test)]
mod tests;
