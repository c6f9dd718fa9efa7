//! The layers that every read of a plan passes. This file puts them together and says their order, outermost first:
//!
//! ```text
//! observe    an inspected request shows each read and its reply to its observer
//! answer     live; or from memory, for a node that falls back; or from a recording, for a request that is replayed
//! share      nodes of one request that read the same keys read them once
//! remember   replies are kept for nodes that may fall back to stale values
//! count      trips and commands are added up for the request
//! hedge      a late trip is sent a second time
//! source     the trip itself: Redis, HTTP, memory
//! ```
//!
//! The inner two are bound once per plan ([`Sources::reader`]), the others go by the request ([`Reader::read`]).

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use anabranch_rows::Rows;

use super::hedge::{HedgedRead, Hedging};
use super::observe;
use super::remember::{Memory, StaleStore};
use super::share;
use super::times::{ReadTimes, TimedRead};
use super::{Bound, Error, Fetch, Keys, Later, Pattern, Read, Reply, Source};
use crate::call::{Answers, Call};
use crate::inspect::ReadRequest;

/// Binds reads to the sources of a plan's endpoints.
pub struct Sources<'a> {
    by_endpoint: &'a [Arc<dyn Source>],
    /// By endpoint: how it hedges.
    hedges: &'a [Option<Arc<Hedging>>],
    /// By endpoint: the times of its reads.
    times: &'a [Arc<ReadTimes>],
    /// The memory of replies that all plans of the engine share.
    memory: Option<&'a StaleStore>,
    /// The reads bound so far, so that nodes that read the same share them.
    readers: Vec<Reader>,
    /// Tables of shared reads that a request needs.
    tables: usize,
    /// The node whose reads are bound now, by number.
    node: usize,
    /// True if the reads bound now are kept for a fallback to stale values.
    remembering: bool,
}

/// A read of a node, prepared for the rows of requests.
#[derive(Clone)]
pub struct Reader {
    /// The pattern of its keys.
    pub pattern: Pattern,
    /// The values that are read per key.
    pub read: Read,
    /// Its index among the plan's readers.
    pub number: u32,
    /// The index of the endpoint that it reads from.
    pub endpoint: usize,
    /// The node that it belongs to, by number.
    pub node: usize,
    bound: Arc<dyn Bound>,
    group: Arc<Group>,
}

/// The readers of one plan that make the same read.
struct Group {
    /// The index of their table among those of a request; [`ALONE`] while there is only one reader.
    table: AtomicUsize,
    /// The memory of their replies, if one of them may fall back to stale values.
    memory: OnceLock<Arc<Memory>>,
}

const ALONE: usize = usize::MAX;

impl<'a> Sources<'a> {
    pub(crate) fn new(
        by_endpoint: &'a [Arc<dyn Source>],
        hedges: &'a [Option<Arc<Hedging>>],
        times: &'a [Arc<ReadTimes>],
        memory: Option<&'a StaleStore>,
    ) -> Sources<'a> {
        Sources {
            by_endpoint,
            hedges,
            times,
            memory,
            readers: Vec::new(),
            tables: 0,
            node: 0,
            remembering: false,
        }
    }

    /// The reads bound from now on are those of this node.
    pub(crate) fn begin(&mut self, node: usize, remembering: bool) {
        (self.node, self.remembering) = (node, remembering);
    }

    /// The readers of the node that was begun last.
    pub(crate) fn of_node(&self) -> impl Iterator<Item = &Reader> {
        self.readers.iter().filter(|reader| reader.node == self.node)
    }

    /// The number of tables of shared reads that a request needs.
    pub(crate) fn shared_count(&self) -> usize {
        self.tables
    }

    /// A read of `endpoint` (by its place) with keys that look like `pattern`.
    pub fn reader(&mut self, endpoint: usize, pattern: &Pattern, read: &Read) -> Reader {
        let mut bound = self.by_endpoint[endpoint].bind(pattern, read);
        if let Some(Some(hedging)) = self.hedges.get(endpoint) {
            bound = Arc::new(HedgedRead::new(bound, Arc::clone(hedging)));
        }
        if let Some(times) = self.times.get(endpoint) {
            bound = Arc::new(TimedRead { bound, times: Arc::clone(times) });
        }
        let number = self.readers.len() as u32;
        let mut reader = Reader::new(pattern, read, bound).at(endpoint, number, self.node);
        let mut others = self.readers.iter().filter(|other| other.endpoint == endpoint);
        others.any(|other| reader.join(other, &mut self.tables));
        if let Some(store) = self.memory.filter(|_| self.remembering) {
            reader.remember_in(store);
        }
        self.readers.push(reader.clone());
        reader
    }
}

impl Reader {
    /// A read that no other node makes.
    pub(crate) fn new(pattern: &Pattern, read: &Read, bound: Arc<dyn Bound>) -> Reader {
        let group = Arc::new(Group { table: AtomicUsize::new(ALONE), memory: OnceLock::new() });
        let (pattern, read) = (pattern.clone(), read.clone());
        Reader { pattern, read, number: 0, endpoint: 0, node: 0, bound, group }
    }

    fn at(self, endpoint: usize, number: u32, node: usize) -> Reader {
        Reader { endpoint, number, node, ..self }
    }

    /// Joins another reader if both make the same read, so that they share their replies within a request. `tables`
    /// counts the tables that a request needs.
    pub(crate) fn join(&mut self, other: &Reader, tables: &mut usize) -> bool {
        let same_keys = match (self.pattern.affixes(), other.pattern.affixes()) {
            (Some(affixes), Some(others)) => affixes == others,
            _ => self.pattern == other.pattern,
        };
        if !same_keys || self.read != other.read {
            return false;
        }
        self.group = Arc::clone(&other.group);
        if self.shared_table().is_none() {
            self.group.table.store(*tables, Ordering::Relaxed);
            *tables += 1;
        }
        true
    }

    /// Has the replies of all readers that make the same read remembered.
    pub(super) fn remember_in(&self, store: &StaleStore) {
        self.group.memory.get_or_init(|| store.memory(self.endpoint, &self.pattern, &self.read));
    }

    /// The error of every read, if the source knows already that it cannot make it.
    pub(crate) fn refusal(&self) -> Option<&Error> {
        self.bound.refusal()
    }

    /// True if other nodes make the same read.
    pub fn is_shared(&self) -> bool {
        self.shared_table().is_some()
    }

    /// The table, among those of a request, of the reads that it shares with other nodes.
    pub fn shared_table(&self) -> Option<usize> {
        Some(self.group.table.load(Ordering::Relaxed)).filter(|table| *table != ALONE)
    }

    /// Reads the values of the active rows, in one trip: one value per row, in their order. Keys that another node of
    /// the request has read, or is reading, are not read again.
    pub fn read(&self, rows: &Rows, call: &Arc<Call>) -> Fetch {
        let keys = self.pattern.apply(rows, call);
        match &call.observer {
            None => self.answer(rows, keys, call),
            Some(observer) => {
                let watch = observe::Watch::new(Arc::clone(observer), self, &keys, call);
                watch.over(self.answer(rows, keys, call))
            }
        }
    }

    /// Fetches the reply from the layer that answers the request's reads.
    fn answer(&self, rows: &Rows, keys: Keys, call: &Arc<Call>) -> Fetch {
        match &call.answers {
            Answers::Live => match self.shared_table().filter(|table| *table < call.shared.len()) {
                Some(table) => share::read(self, keys, table, call),
                None => self.trip(keys, call),
            },
            Answers::Stale(stale) => {
                Fetch::Ready(stale.read(&self.pattern, &self.read, self.group.memory.get(), &keys, call))
            }
            Answers::Recorded { recording, stale } => {
                let request = ReadRequest { reader: self, rows, keys: &keys, call, stale: *stale };
                let reply = recording.read(&request);
                call.tally.count(&reply);
                Fetch::Ready(reply)
            }
        }
    }

    /// Makes a trip; its reply is remembered and counted.
    pub(super) fn trip(&self, keys: Keys, call: &Arc<Call>) -> Fetch {
        let kept = self.group.memory.get().map(|memory| (Arc::clone(memory), keys.clone()));
        match self.bound.fetch(keys, call.read_context()) {
            Fetch::Ready(reply) => Fetch::Ready(landed(reply, self.node, kept, call)),
            Fetch::Later(reply) => {
                let (node, call) = (self.node, Arc::clone(call));
                let landed: Later = Box::pin(async move { landed(reply.await, node, kept, &call) });
                Fetch::Later(landed)
            }
        }
    }
}

/// Counts a trip of a node that is back, and remembers its reply.
fn landed(
    reply: Result<Reply, Error>,
    node: usize,
    kept: Option<(Arc<Memory>, Keys)>,
    call: &Call,
) -> Result<Reply, Error> {
    if let Ok(reply) = &reply {
        call.add_malformed(node, &reply.malformed);
        if let Some((memory, keys)) = kept {
            memory.remember(keys, reply.data.clone(), call.clock.now());
        }
    }
    call.tally.count(&reply);
    reply
}
