//! What an op reads with: a bound read, with its keys made from rows.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use anabranch_rows::Rows;

use super::reads::{Reads, StaleReads};
use super::shared::{Flight, Progress};
use super::stale::Stale;
use super::{Bound, Error, Fetch, Keys, Later, Pattern, Read, Reply};
use crate::call::Call;

pub use super::shared::Shared;

/// A read of a node, ready to be made for the rows of a request.
#[derive(Clone)]
pub struct Reader {
    pub(crate) pattern: Pattern,
    pub(crate) read: Read,
    pub(crate) bound: Arc<dyn Bound>,
    /// Its place among the plan's readers.
    pub(crate) number: u32,
    /// The place of the endpoint it reads from.
    pub(crate) endpoint: usize,
    group: Arc<Group>,
    /// The node it belongs to, by number.
    node: usize,
}

/// Readers of one plan whose keys and reads are the same.
struct Group {
    /// Their table among those of a request; [`ALONE`] as long as there is one reader.
    table: AtomicUsize,
    /// What they remember, if one of them wants to.
    stale: OnceLock<Arc<Stale>>,
}

const ALONE: usize = usize::MAX;

impl Reader {
    /// A read that no other node makes.
    pub(crate) fn new(pattern: &Pattern, read: &Read, bound: Arc<dyn Bound>) -> Reader {
        let group = Arc::new(Group { table: AtomicUsize::new(ALONE), stale: OnceLock::new() });
        Reader { pattern: pattern.clone(), read: read.clone(), bound, number: 0, endpoint: 0, group, node: 0 }
    }

    /// This read, as that of a node.
    pub(crate) fn of_node(mut self, node: usize) -> Reader {
        self.node = node;
        self
    }

    /// Joins another reader, if both read the same of the same endpoint: what one of them has read for a request
    /// the other need not. `tables` counts the tables that a request needs.
    pub(crate) fn join(&mut self, other: &Reader, tables: &mut usize) -> bool {
        let same_keys = match (self.pattern.affixes(), other.pattern.affixes()) {
            (Some(affixes), Some(others)) => affixes == others,
            _ => self.pattern == other.pattern,
        };
        if !same_keys || self.read != other.read {
            return false;
        }
        self.group = Arc::clone(&other.group);
        if !self.is_shared() {
            self.group.table.store(*tables, Ordering::Relaxed);
            *tables += 1;
        }
        true
    }

    /// Has all who read the same remember what they read.
    pub(crate) fn remember(&self) {
        self.group.stale.get_or_init(Arc::default);
    }

    /// Whether other nodes read the same.
    pub(crate) fn is_shared(&self) -> bool {
        self.group.table.load(Ordering::Relaxed) != ALONE
    }

    /// The table of what it shares with other nodes, if it does.
    pub(crate) fn shared_table(&self) -> Option<usize> {
        Some(self.group.table.load(Ordering::Relaxed)).filter(|table| *table != ALONE)
    }

    /// Reads what the active rows point to, in one trip: a row's value a key, in their order. What another node of
    /// the request has read, or is reading, is not read again.
    pub fn read(&self, rows: &Rows, call: &Arc<Call>) -> Fetch {
        let keys = self.pattern.apply(rows, call);
        let fetch = match (&call.reads, &call.recorder) {
            (Reads::Recorded(recorded), _) => recorded.read(self, rows, &keys, call),
            (_, None) => self.read_keys(keys, call),
            (_, Some(recorder)) => {
                let watch = recorder.watch(self.number, &keys, call);
                watch.over(self.read_keys(keys, call))
            }
        };
        match &call.seen {
            None => fetch,
            Some(seen) => seen.watch(self.node, fetch),
        }
    }

    fn read_keys(&self, keys: Keys, call: &Arc<Call>) -> Fetch {
        if let Reads::Stale(stale) = &call.reads {
            return Fetch::Ready(self.read_stale(&keys, stale, call));
        }
        let table = self.group.table.load(Ordering::Relaxed);
        match table < call.shared.len() {
            true => self.read_shared(keys, table, call),
            false => self.fetch(keys, call),
        }
    }

    /// Makes a trip, and counts it.
    fn fetch(&self, keys: Keys, call: &Arc<Call>) -> Fetch {
        let memory = self.group.stale.get().map(|stale| (Arc::clone(stale), keys.clone()));
        match self.bound.fetch(keys) {
            Fetch::Ready(reply) => {
                note(call, &reply, memory);
                Fetch::Ready(reply)
            }
            Fetch::Later(reply) => {
                let call = Arc::clone(call);
                let counted: Later = Box::pin(async move {
                    let reply = reply.await;
                    note(&call, &reply, memory);
                    reply
                });
                Fetch::Later(counted)
            }
        }
    }

    /// What was read before, instead of a trip.
    fn read_stale(&self, keys: &Keys, stale: &StaleReads, call: &Call) -> Result<Reply, Error> {
        if let Some(reply) = self.read.without_trip(keys) {
            return Ok(reply);
        }
        let remembered = self.group.stale.get();
        let found = remembered.and_then(|memory| memory.lookup(keys, call.clock.now(), stale.max_age));
        let (data, age) = found.ok_or_else(|| Error::Forgotten {
            command: format!("{} {}", self.read.command(), self.pattern),
            max_age: stale.max_age,
        })?;
        stale.used(age);
        Ok(Reply::whole(data, 0, 0))
    }

    fn read_shared(&self, keys: Keys, table: usize, call: &Arc<Call>) -> Fetch {
        if let Some(reply) = self.read.without_trip(&keys) {
            return Fetch::Ready(Ok(reply));
        }
        let flight = Flight::new(Arc::clone(call), table);
        let trip = match flight.progress(&keys) {
            Progress::Done(data) => return Fetch::Ready(Ok(Reply::whole(data, 0, 0))),
            Progress::Wait => None,
            Progress::Mine(mine) => Some(self.fetch(mine, call)),
        };
        match trip {
            Some(Fetch::Ready(Err(error))) => Fetch::Ready(Err(error)),
            Some(Fetch::Ready(Ok(reply))) => {
                let (trips, commands) = (reply.trips, reply.commands);
                flight.land(reply.data);
                match flight.progress(&keys) {
                    Progress::Done(data) => Fetch::Ready(Ok(Reply::whole(data, trips, commands))),
                    Progress::Wait => self.wait(flight, keys, None),
                    Progress::Mine(mine) => {
                        let trip = self.fetch(mine, call);
                        self.wait(flight, keys, Some(trip))
                    }
                }
            }
            later => self.wait(flight, keys, later),
        }
    }

    /// Waits for its own trip, then for those of others; what these fail to bring it reads itself.
    fn wait(&self, flight: Flight, keys: Keys, mut trip: Option<Fetch>) -> Fetch {
        let reader = self.clone();
        Fetch::Later(Box::pin(async move {
            let (mut trips, mut commands) = (0, 0);
            loop {
                if let Some(trip) = trip.take() {
                    let reply = match trip {
                        Fetch::Ready(reply) => reply?,
                        Fetch::Later(reply) => reply.await?,
                    };
                    trips += reply.trips;
                    commands += reply.commands;
                    flight.land(reply.data);
                }
                match flight.progress_or_wait(&keys).await {
                    Progress::Done(data) => return Ok(Reply::whole(data, trips, commands)),
                    Progress::Wait => {}
                    Progress::Mine(mine) => trip = Some(reader.fetch(mine, flight.call())),
                }
            }
        }))
    }
}

/// Counts a trip that is back, and remembers what it brought.
fn note(call: &Call, fetched: &Result<Reply, Error>, memory: Option<(Arc<Stale>, Keys)>) {
    if let (Ok(reply), Some((stale, keys))) = (fetched, memory) {
        stale.remember(keys, reply.data.clone(), call.clock.now());
    }
    count(call, fetched);
}

/// Counts a trip for the request that made it.
pub(crate) fn count(call: &Call, fetched: &Result<Reply, Error>) {
    if let Ok(reply) = fetched {
        call.tally.trips.fetch_add(reply.trips, Ordering::Relaxed);
        call.tally.commands.fetch_add(reply.commands, Ordering::Relaxed);
    }
}
