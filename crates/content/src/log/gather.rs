//! Where callers leave what they want written, and the writer picks it up in batches.
//!
//! Callers of one batch come back at about the same time. A writer that takes whoever is there first splits them into
//! two cohorts that take turns, each half as large as it could be. So the writer waits for as many as came the last
//! time, as long as they keep coming; one caller alone never waits. Of many callers it does not wait for all: what a
//! sync costs is then spread thin, and they had better prepare while it writes.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// How long the writer waits for the next caller to come.
const PATIENCE: Duration = Duration::from_micros(100);

/// It waits for no more than this many.
const COMPANY: usize = 256;

/// How often it does so for one batch.
const WAITS_MOST: u32 = 100;

/// A queue that is emptied at one go. Its bound is its callers' number: each waits for its answer.
#[derive(Debug)]
pub(crate) struct Gather<T> {
    state: Mutex<State<T>>,
    arrived: Condvar,
}

#[derive(Debug)]
struct State<T> {
    waiting: Vec<T>,
    /// The writer wants to be woken at this many.
    wanted: usize,
    closed: bool,
}

impl<T> Gather<T> {
    pub(crate) fn new() -> Gather<T> {
        let state = State { waiting: Vec::new(), wanted: 1, closed: false };
        Gather { state: Mutex::new(state), arrived: Condvar::new() }
    }

    /// Leaves something for the writer; gives it back when the queue is closed.
    pub(crate) fn push(&self, item: T) -> Result<(), T> {
        let mut state = self.lock();
        if state.closed {
            return Err(item);
        }
        state.waiting.push(item);
        if state.waiting.len() >= state.wanted {
            state.wanted = usize::MAX;
            drop(state);
            self.arrived.notify_one();
        }
        Ok(())
    }

    /// Everything there is, at least one, into an empty list; false once the queue is closed and empty. `last` is how
    /// many came the last time.
    pub(crate) fn take(&self, last: usize, batch: &mut Vec<T>) -> bool {
        let mut state = self.lock();
        while state.waiting.is_empty() {
            if state.closed {
                return false;
            }
            state.wanted = 1;
            state = self.arrived.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        let wanted = last.min(COMPANY);
        for _ in 0..WAITS_MOST {
            let there = state.waiting.len();
            if there >= wanted || state.closed {
                break;
            }
            state.wanted = wanted;
            let waited = self.arrived.wait_timeout(state, PATIENCE);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
            if state.waiting.len() == there {
                break;
            }
        }
        state.wanted = usize::MAX;
        std::mem::swap(&mut state.waiting, batch);
        true
    }

    /// Nothing more comes in; what is there can still be taken.
    pub(crate) fn close(&self) {
        self.lock().closed = true;
        self.arrived.notify_all();
    }

    fn lock(&self) -> MutexGuard<'_, State<T>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
