//! A soft stop of runs: they start nothing more, and end when their work in flight has ended.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::admission::StopHandle;

/// Stops runs softly. A handle: clones share the state, and any number of runs can have it in their
/// [`Options::drain`](crate::Options::drain).
///
/// After [`begin`](Self::begin) a run starts no further node. Nodes in flight end as usual and reach their workload;
/// the others do not end, and a node that would be retried does not end either. The run then ends with
/// [`Stopped::Drained`](crate::Stopped::Drained), or with `Ok` if every node has ended. So a workload that keeps the
/// values of finished nodes can continue from them in a later run.
///
/// ```
/// use anabranch_engine::{Drain, Options};
/// let drain = Drain::new();
/// let options = Options { drain: Some(drain.clone()), ..Options::default() };
/// drain.begin();
/// assert!(options.drain.is_some_and(|drain| drain.is_begun()));
/// ```
#[derive(Clone, Default)]
pub struct Drain {
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    /// It changes while `runs` is locked, so that a run that enters learns of a drain either here or through its
    /// handle.
    begun: AtomicBool,
    runs: Mutex<Runs>,
}

/// The runs to wake, by their order of arrival.
#[derive(Default)]
struct Runs {
    handles: BTreeMap<u64, Arc<dyn StopHandle>>,
    arrivals: u64,
}

impl Drain {
    /// A drain that has not begun.
    pub fn new() -> Drain {
        Drain::default()
    }

    /// Begins the drain: the runs that have this handle, now or later, start no further node.
    pub fn begin(&self) {
        let runs = self.lock();
        if self.shared.begun.swap(true, Ordering::AcqRel) {
            return;
        }
        let handles: Vec<_> = runs.handles.values().cloned().collect();
        drop(runs);
        for handle in handles {
            handle.drain();
        }
    }

    /// True once the drain has begun.
    #[inline]
    pub fn is_begun(&self) -> bool {
        self.shared.begun.load(Ordering::Acquire)
    }

    /// Has `handle` called when the drain begins, or now if it has begun, until the returned guard is dropped.
    pub(crate) fn enter(&self, handle: Arc<dyn StopHandle>) -> DrainedRun {
        let mut runs = self.lock();
        let arrival = runs.arrivals;
        runs.arrivals += 1;
        if self.is_begun() {
            drop(runs);
            handle.drain();
        } else {
            runs.handles.insert(arrival, handle);
        }
        DrainedRun { drain: self.clone(), arrival }
    }

    fn lock(&self) -> MutexGuard<'_, Runs> {
        self.shared.runs.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A run in the list of a drain; dropping it takes the run off the list.
pub(crate) struct DrainedRun {
    drain: Drain,
    arrival: u64,
}

impl Drop for DrainedRun {
    fn drop(&mut self) {
        let handle = self.drain.lock().handles.remove(&self.arrival);
        // After the lock: a handle is the last owner of messages, which may hold slots of limits.
        drop(handle);
    }
}
