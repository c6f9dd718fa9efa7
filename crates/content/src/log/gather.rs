//! The queue between the callers and the writer, which takes requests in batches (group commit).
//!
//! The callers of one batch get their answers together, so their next requests arrive together. A writer that starts
//! with the first of them splits the callers into two groups that take turns, each with half of the batch it could
//! have. So the writer waits for as many requests as the last batch had, while more keep arriving. A single caller
//! never waits. The writer waits for at most [`WAIT_FOR_MOST`] requests: when that many share one sync, its cost per
//! request is small, and other callers prepare their requests while it runs.
//!
//! A deferred request has no caller that waits for the answer. It stays in the queue for up to [`DEFER`], so that the
//! writer does not wake up for each one.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// The time that the writer waits for the next request.
const NEXT_REQUEST_WAIT: Duration = Duration::from_micros(100);

/// The writer does not wait for a larger batch than this.
const WAIT_FOR_MOST: usize = 256;

/// The maximum number of waits per batch.
const WAITS_MOST: u32 = 100;

/// The time that deferred requests stay in the queue, and the number of them that ends the wait.
const DEFER: Duration = Duration::from_millis(1);
const DEFERRED_MOST: usize = 4096;

/// A queue that the writer empties all at once. It is bounded by the number of callers, each of which waits for its
/// answer; deferred requests are bounded by the room that they reserve before they come here.
#[derive(Debug)]
pub(crate) struct Gather<T> {
    state: Mutex<State<T>>,
    arrived: Condvar,
}

#[derive(Debug)]
struct State<T> {
    waiting: Vec<T>,
    /// The number of requests with a waiting caller.
    urgent: usize,
    /// The writer wakes up at this many urgent requests, or at this many of both kinds.
    wanted: usize,
    wanted_of_all: usize,
    closed: bool,
}

impl<T> Gather<T> {
    pub(crate) fn new() -> Gather<T> {
        let state = State { waiting: Vec::new(), urgent: 0, wanted: 1, wanted_of_all: 1, closed: false };
        Gather { state: Mutex::new(state), arrived: Condvar::new() }
    }

    /// Queues a request; returns it if the queue is closed.
    pub(crate) fn push(&self, item: T) -> Result<(), T> {
        self.push_counted(item, 1)
    }

    /// Queues a request that no caller waits for.
    pub(crate) fn push_deferred(&self, item: T) -> Result<(), T> {
        self.push_counted(item, 0)
    }

    fn push_counted(&self, item: T, urgent: usize) -> Result<(), T> {
        let mut state = self.lock();
        if state.closed {
            return Err(item);
        }
        state.waiting.push(item);
        state.urgent += urgent;
        if state.urgent >= state.wanted || state.waiting.len() >= state.wanted_of_all {
            state.wake_at_none();
            drop(state);
            self.arrived.notify_one();
        }
        Ok(())
    }

    /// Moves all requests, at least one, into `batch`, which is empty; false once the queue is closed and empty. `last`
    /// is the number of urgent requests in the last batch.
    pub(crate) fn take(&self, last: usize, batch: &mut Vec<T>) -> bool {
        let mut state = self.lock();
        while state.waiting.is_empty() {
            if state.closed {
                return false;
            }
            (state.wanted, state.wanted_of_all) = (1, 1);
            state = self.arrived.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        if state.urgent == 0 && state.waiting.len() < DEFERRED_MOST && !state.closed {
            (state.wanted, state.wanted_of_all) = (1, DEFERRED_MOST);
            let waited = self.arrived.wait_timeout_while(state, DEFER, |state| {
                state.urgent == 0 && state.waiting.len() < DEFERRED_MOST && !state.closed
            });
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        let wanted = last.min(WAIT_FOR_MOST);
        for _ in 0..WAITS_MOST {
            let there = state.urgent;
            if there >= wanted || there == 0 || state.closed {
                break;
            }
            (state.wanted, state.wanted_of_all) = (wanted, usize::MAX);
            let waited = self.arrived.wait_timeout(state, NEXT_REQUEST_WAIT);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
            if state.urgent == there {
                break;
            }
        }
        state.wake_at_none();
        state.urgent = 0;
        std::mem::swap(&mut state.waiting, batch);
        true
    }

    /// Refuses new requests; those in the queue can still be taken.
    pub(crate) fn close(&self) {
        self.lock().closed = true;
        self.arrived.notify_all();
    }

    fn lock(&self) -> MutexGuard<'_, State<T>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T> State<T> {
    /// The writer is awake: no request has to wake it.
    fn wake_at_none(&mut self) {
        (self.wanted, self.wanted_of_all) = (usize::MAX, usize::MAX);
    }
}
