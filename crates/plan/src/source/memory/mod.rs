//! A store in memory, filled from files. A plan can run without any other installation.
//!
//! The reads of a plan are prepared when it is loaded: ids are mapped to row numbers, text to typed columns and flat
//! lists, so that a request does no string work.

mod data;
mod table;
mod bound;

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use anabranch_engine::clock::Clock;

pub use data::MemoryData;
pub(crate) use data::StoredEntry;

use super::{Bound, Error, Fetch, Hedge, Keys, Pattern, Read, ReadContext, Source};
use bound::{Fields, Lists};

/// A source of the content of [`MemoryData`].
pub struct Memory {
    endpoint: Arc<str>,
    data: Arc<MemoryData>,
    clock: Arc<dyn Clock>,
    faults: Vec<(String, Arc<FaultState>)>,
    hedge: Option<Hedge>,
    /// Reads prepared so far, so that equal ones share their memory.
    bound: Mutex<Vec<PreparedRead>>,
    max_inflight: Option<u32>,
    strict_values: bool,
}

/// A read that was bound.
struct PreparedRead {
    pattern: Pattern,
    read: Read,
    bound: Arc<dyn Bound>,
}

/// Trouble on order, for demonstrations and tests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Fault {
    /// The duration of each trip.
    pub delay: Duration,
    /// Every n-th trip fails: 0 none, 1 all, 3 the third, the sixth and so on.
    pub fail_every: u32,
    /// The number of trips after which none returns any more.
    pub stall_after: Option<u32>,
}

struct FaultState {
    fault: Fault,
    trips: AtomicU32,
}

impl Memory {
    /// A source of `data` that stands for `endpoint`.
    pub fn new(endpoint: impl Into<Arc<str>>, data: Arc<MemoryData>, clock: Arc<dyn Clock>) -> Memory {
        Memory {
            endpoint: endpoint.into(),
            data,
            clock,
            faults: Vec::new(),
            hedge: None,
            bound: Mutex::default(),
            max_inflight: None,
            strict_values: false,
        }
    }

    /// The same source, with faults in reads whose key pattern begins with `prefix`; the empty prefix means all. Of
    /// several that match, the first counts.
    #[must_use]
    pub fn with_fault(mut self, prefix: impl Into<String>, fault: Fault) -> Memory {
        self.faults.push((prefix.into(), Arc::new(FaultState { fault, trips: AtomicU32::new(0) })));
        self
    }

    /// The same source, with reads that are late sent a second time.
    #[must_use]
    pub fn with_hedge(mut self, hedge: Hedge) -> Memory {
        self.hedge = Some(hedge);
        self
    }

    /// The same source, with at most this many concurrent trips, at least one.
    #[must_use]
    pub fn with_max_inflight(mut self, trips: u32) -> Memory {
        self.max_inflight = Some(trips.max(1));
        self
    }

    /// The same source; a value that cannot be read, or a key of another type, fails the read instead of being null.
    #[must_use]
    pub fn with_strict_values(mut self) -> Memory {
        self.strict_values = true;
        self
    }
}

impl Source for Memory {
    fn bind(&self, pattern: &Pattern, read: &Read) -> Arc<dyn Bound> {
        let mut known = self.bound.lock().expect("no bind panics half-way");
        let same = |known: &&PreparedRead| known.pattern == *pattern && known.read == *read;
        if let Some(PreparedRead { bound, .. }) = known.iter().find(same) {
            return Arc::clone(bound);
        }
        let bound: Arc<dyn Bound> = match read {
            Read::Fields(fields) => {
                Arc::new(Fields::new(&self.endpoint, &self.data, pattern, fields, self.strict_values))
            }
            Read::List { .. } | Read::Scored { .. } => {
                Arc::new(Lists::new(&self.endpoint, &self.data, pattern, read, self.strict_values))
            }
        };
        let text = pattern.to_string();
        let fault = self.faults.iter().find(|(prefix, _)| text.starts_with(&**prefix));
        let bound = match fault {
            None => bound,
            Some((_, fault)) => Arc::new(FaultyRead {
                endpoint: Arc::clone(&self.endpoint),
                clock: Arc::clone(&self.clock),
                fault: Arc::clone(fault),
                bound,
            }),
        };
        let (pattern, read) = (pattern.clone(), read.clone());
        known.push(PreparedRead { pattern, read, bound: Arc::clone(&bound) });
        bound
    }

    fn hedge(&self) -> Option<Hedge> {
        self.hedge
    }

    fn max_inflight(&self) -> Option<u32> {
        self.max_inflight
    }
}

/// A read with trouble on order.
struct FaultyRead {
    endpoint: Arc<str>,
    clock: Arc<dyn Clock>,
    fault: Arc<FaultState>,
    bound: Arc<dyn Bound>,
}

impl Bound for FaultyRead {
    fn refusal(&self) -> Option<&Error> {
        self.bound.refusal()
    }

    fn fetch(&self, keys: Keys, context: ReadContext<'_>) -> Fetch {
        let Fault { delay, fail_every, stall_after } = self.fault.fault;
        let trip = self.fault.trips.fetch_add(1, Ordering::Relaxed).wrapping_add(1);
        if stall_after.is_some_and(|after| trip > after) {
            return Fetch::Later(Box::pin(std::future::pending()));
        }
        let reply = if fail_every > 0 && trip.is_multiple_of(fail_every) {
            let cause = format!("trip {trip} was told to fail").into();
            Fetch::Ready(Err(Error::Connect { endpoint: Arc::clone(&self.endpoint), cause }))
        } else {
            self.bound.fetch(keys, context)
        };
        if delay.is_zero() {
            return reply;
        }
        let done = self.clock.sleep_until(self.clock.now() + delay);
        Fetch::Later(Box::pin(async move {
            done.await;
            match reply {
                Fetch::Ready(reply) => reply,
                Fetch::Later(reply) => reply.await,
            }
        }))
    }
}
