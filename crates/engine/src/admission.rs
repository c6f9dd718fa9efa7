//! The errors of starting a run, and the result of draining an engine.

use std::borrow::Cow;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Poll, Waker};
use std::time::Duration;

use crate::clock::{Clock, after};
use crate::event::RunId;
use crate::limit::LimitKey;

/// Why a run could not start.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// The engine is draining.
    #[error("the engine is draining and takes no new runs")]
    Draining,
    /// [`Config::max_runs`](crate::Config::max_runs) runs are active.
    #[error("the engine already has {max_runs} active runs, its limit; try again when one has ended")]
    Busy {
        /// The limit.
        max_runs: usize,
    },
    /// The deadline has passed already.
    #[error("the deadline passed {ago:?} before the run began")]
    DeadlinePassed {
        /// How long ago.
        ago: Duration,
    },
    /// A run with `in_flight: 0` can never move.
    #[error("`in_flight` is 0; a run needs at least 1 node in flight to move")]
    ZeroInFlight,
    /// A policy names a limit that the run's options do not have.
    #[error("a policy names limit {0}, which is not in `limits` of the run's options")]
    UnknownLimit(LimitKey),
    /// The reserve table does not fit the graph.
    #[error("the reserve table has {entries} entries for {node_count} nodes; give one entry per node")]
    ReserveCount {
        /// Entries given.
        entries: usize,
        /// Nodes of the graph.
        node_count: u32,
    },
}

/// The runs that were active when [`Engine::drain`](crate::Engine::drain) began, by how they ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Drained {
    /// The number of runs that ended by themselves within the grace period.
    pub finished: usize,
    /// The runs that were told to stop when it was over, with their labels.
    pub cut: Vec<(RunId, Label)>,
    /// The runs among them that had not ended 100 ms later: nothing polls or drops them.
    pub stuck: Vec<(RunId, Label)>,
}

/// The label of a run, see [`Options::label`](crate::Options::label).
type Label = Cow<'static, str>;

/// A run that can be told to stop from outside.
pub(crate) trait Cut: Send + Sync {
    fn cut(&self);
}

/// How long a run that was told to stop may take to leave.
const LAST_WORD: Duration = Duration::from_millis(100);

pub(crate) struct Active {
    max_runs: usize,
    /// Read by runs while they work inline, when no message could reach them.
    cutting: AtomicBool,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    runs: Vec<Option<Entry>>,
    free: Vec<usize>,
    next_run: u64,
    draining: bool,
    drainers: Vec<Waker>,
}

struct Entry {
    run: RunId,
    label: Label,
    cut: Option<Arc<dyn Cut>>,
}

impl Active {
    pub(crate) fn new(max_runs: usize) -> Active {
        Active { max_runs, cutting: AtomicBool::new(false), state: Mutex::default() }
    }

    pub(crate) fn enter(self: &Arc<Self>, label: Label) -> Result<Admitted, Refused> {
        let mut state = self.lock();
        if state.draining {
            return Err(Refused::Draining);
        }
        if state.active() == self.max_runs {
            return Err(Refused::Busy { max_runs: self.max_runs });
        }
        let run = RunId(state.next_run);
        state.next_run += 1;
        let entry = Some(Entry { run, label, cut: None });
        let place = match state.free.pop() {
            Some(place) => {
                state.runs[place] = entry;
                place
            }
            None => {
                state.runs.push(entry);
                state.runs.len() - 1
            }
        };
        drop(state);
        Ok(Admitted { active: Arc::clone(self), place, run })
    }

    pub(crate) fn is_cutting(&self) -> bool {
        self.cutting.load(Ordering::Relaxed)
    }

    pub(crate) async fn drain(&self, clock: &dyn Clock, grace: Duration) -> Drained {
        let running = self.close();
        self.empty_or(clock, grace).await;
        let cut = self.cut();
        self.empty_or(clock, LAST_WORD).await;
        let stuck = self.lock().listed();
        Drained { finished: running - cut.len(), cut, stuck }
    }

    fn close(&self) -> usize {
        let mut state = self.lock();
        state.draining = true;
        state.active()
    }

    fn cut(&self) -> Vec<(RunId, Label)> {
        self.cutting.store(true, Ordering::Relaxed);
        let state = self.lock();
        let listed = state.listed();
        let handles: Vec<_> = state.runs.iter().flatten().filter_map(|entry| entry.cut.clone()).collect();
        drop(state);
        for handle in handles {
            handle.cut();
        }
        listed
    }

    async fn empty_or(&self, clock: &dyn Clock, longest: Duration) {
        let mut sleep = after(clock.now(), Some(longest)).map(|at| clock.sleep_until(at));
        std::future::poll_fn(|cx| {
            let mut state = self.lock();
            if state.active() == 0 {
                return Poll::Ready(());
            }
            state.drainers.push(cx.waker().clone());
            drop(state);
            sleep.as_mut().map_or(Poll::Pending, |sleep| sleep.as_mut().poll(cx))
        })
        .await;
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn active(&self) -> usize {
        self.runs.len() - self.free.len()
    }

    fn listed(&self) -> Vec<(RunId, Label)> {
        self.runs.iter().flatten().map(|entry| (entry.run, entry.label.clone())).collect()
    }
}

/// A run's place among the active ones, given up when dropped.
pub(crate) struct Admitted {
    active: Arc<Active>,
    place: usize,
    pub(crate) run: RunId,
}

impl Admitted {
    /// Says how this run is told to stop while it waits.
    pub(crate) fn reached_by(&self, handle: Arc<dyn Cut>) {
        if let Some(entry) = &mut self.active.lock().runs[self.place] {
            entry.cut = Some(handle);
        }
    }
}

impl Drop for Admitted {
    fn drop(&mut self) {
        let mut state = self.active.lock();
        state.runs[self.place] = None;
        state.free.push(self.place);
        let drainers = std::mem::take(&mut state.drainers);
        drop(state);
        // Without the lock: the last waker of a task drops the task, and with it may go another run.
        drainers.into_iter().for_each(Waker::wake);
    }
}
