//! Where callers leave what they want written, and the writer picks it up in batches.
//!
//! Callers of one batch come back at about the same time. A writer that takes whoever is there first splits them into
//! two cohorts that take turns, each half as large as it could be. So the writer waits for as many as came the last
//! time, as long as they keep coming; one caller alone never waits. Of many callers it does not wait for all: what a
//! sync costs is then spread thin, and they had better prepare while it writes.
//!
//! What nobody waits for may lie a while, so that the writer is not woken for each.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// How long the writer waits for the next caller to come.
const PATIENCE: Duration = Duration::from_micros(100);

/// It waits for no more than this many.
const COMPANY: usize = 256;

/// How often it does so for one batch.
const WAITS_MOST: u32 = 100;

/// How long what nobody waits for may lie, and how much of it.
const LEISURE: Duration = Duration::from_millis(1);
const LEISURE_MOST: usize = 4096;

/// A queue that is emptied at one go. Its bound is its callers' number, as each waits for its answer; of what nobody
/// waits for, the bound is the room that it takes.
#[derive(Debug)]
pub(crate) struct Gather<T> {
    state: Mutex<State<T>>,
    arrived: Condvar,
}

#[derive(Debug)]
struct State<T> {
    waiting: Vec<T>,
    /// How many of those somebody waits for.
    urgent: usize,
    /// The writer wants to be woken at this many urgent ones, and at this many of all.
    wanted: usize,
    wanted_of_all: usize,
    closed: bool,
}

impl<T> Gather<T> {
    pub(crate) fn new() -> Gather<T> {
        let state = State { waiting: Vec::new(), urgent: 0, wanted: 1, wanted_of_all: 1, closed: false };
        Gather { state: Mutex::new(state), arrived: Condvar::new() }
    }

    /// Leaves something for the writer; gives it back when the queue is closed.
    pub(crate) fn push(&self, item: T) -> Result<(), T> {
        self.push_counted(item, 1)
    }

    /// The same for something that nobody waits for.
    pub(crate) fn push_leisurely(&self, item: T) -> Result<(), T> {
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
            state.no_more();
            drop(state);
            self.arrived.notify_one();
        }
        Ok(())
    }

    /// Everything there is, at least one, into an empty list; false once the queue is closed and empty. `last` is how
    /// many urgent ones came the last time.
    pub(crate) fn take(&self, last: usize, batch: &mut Vec<T>) -> bool {
        let mut state = self.lock();
        while state.waiting.is_empty() {
            if state.closed {
                return false;
            }
            (state.wanted, state.wanted_of_all) = (1, 1);
            state = self.arrived.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        if state.urgent == 0 && state.waiting.len() < LEISURE_MOST && !state.closed {
            (state.wanted, state.wanted_of_all) = (1, LEISURE_MOST);
            let waited = self.arrived.wait_timeout_while(state, LEISURE, |state| {
                state.urgent == 0 && state.waiting.len() < LEISURE_MOST && !state.closed
            });
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        let wanted = last.min(COMPANY);
        for _ in 0..WAITS_MOST {
            let there = state.urgent;
            if there >= wanted || there == 0 || state.closed {
                break;
            }
            (state.wanted, state.wanted_of_all) = (wanted, usize::MAX);
            let waited = self.arrived.wait_timeout(state, PATIENCE);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
            if state.urgent == there {
                break;
            }
        }
        state.no_more();
        state.urgent = 0;
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

impl<T> State<T> {
    /// The writer is awake: it need not be woken.
    fn no_more(&mut self) {
        (self.wanted, self.wanted_of_all) = (usize::MAX, usize::MAX);
    }
}
