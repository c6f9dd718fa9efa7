//! Admission of runs and graceful shutdown: the list of active runs.

use std::borrow::Cow;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Poll, Waker};
use std::time::Duration;

use crate::clock::{Clock, after};
use crate::event::RunId;
use crate::limit::LimitKey;

/// The reason why a run could not start.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// [`Engine::drain`](crate::Engine::drain) was called.
    #[error("the engine is shutting down and accepts no new runs")]
    Draining,
    /// [`Config::max_runs`](crate::Config::max_runs) runs are active.
    #[error("the engine already has {max_runs} active runs, its limit; try again when one has ended")]
    Busy { max_runs: usize },
    /// The deadline has passed already.
    #[error("the deadline passed {ago:?} before the run began")]
    DeadlinePassed { ago: Duration },
    /// With `in_flight: 0` no node could start.
    #[error("`in_flight` is 0, so no node could start; set it to at least 1")]
    ZeroInFlight,
    /// A policy names a limit that is not in the run's options.
    #[error(
        "a policy names limit {0}, which is not in `limits` of the run's options; add it to that table first"
    )]
    UnknownLimit(LimitKey),
    /// The reserve table does not fit the graph.
    #[error("the reserve table has {entries} entries for {node_count} nodes; give one entry per node")]
    ReserveCount { entries: usize, node_count: u32 },
}

/// The runs that were active when [`Engine::drain`](crate::Engine::drain) began, by how they ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DrainReport {
    /// The number of runs that ended by themselves within the grace period.
    pub finished: usize,
    /// The runs that were asked to stop after the grace period, with their labels.
    pub cut: Vec<(RunId, Label)>,
    /// The runs among `cut` that had not ended 100 ms later, because nothing polls or drops them.
    pub stuck: Vec<(RunId, Label)>,
}

/// The label of a run, see [`Options::label`](crate::Options::label).
type Label = Cow<'static, str>;

/// Tells a run to stop.
pub(crate) trait StopHandle: Send + Sync {
    /// Stops the run now.
    fn cut(&self);
    /// Stops the run when its work in flight has ended.
    fn drain(&self);
}

/// The time that runs have to end after they were asked to stop.
const CUT_WAIT: Duration = Duration::from_millis(100);

/// The runs of an engine that have not ended.
pub(crate) struct ActiveRuns {
    max_runs: usize,
    /// Read by runs between inline jobs, when they do not look at their messages.
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
    stop_handle: Option<Arc<dyn StopHandle>>,
}

impl ActiveRuns {
    pub(crate) fn new(max_runs: usize) -> ActiveRuns {
        ActiveRuns { max_runs, cutting: AtomicBool::new(false), state: Mutex::default() }
    }

    pub(crate) fn enter(self: &Arc<Self>, label: Label) -> Result<AdmittedRun, Refused> {
        let mut state = self.lock();
        if state.draining {
            return Err(Refused::Draining);
        }
        if state.active() == self.max_runs {
            return Err(Refused::Busy { max_runs: self.max_runs });
        }
        let run = RunId(state.next_run);
        state.next_run += 1;
        let entry = Some(Entry { run, label, stop_handle: None });
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
        Ok(AdmittedRun { active: Arc::clone(self), place, run })
    }

    pub(crate) fn is_cutting(&self) -> bool {
        self.cutting.load(Ordering::Relaxed)
    }

    pub(crate) async fn drain(&self, clock: &dyn Clock, grace: Duration) -> DrainReport {
        let running = self.close();
        self.wait_until_empty(clock, grace).await;
        let cut = self.cut();
        self.wait_until_empty(clock, CUT_WAIT).await;
        let stuck = self.lock().labels();
        DrainReport { finished: running - cut.len(), cut, stuck }
    }

    fn close(&self) -> usize {
        let mut state = self.lock();
        state.draining = true;
        state.active()
    }

    fn cut(&self) -> Vec<(RunId, Label)> {
        self.cutting.store(true, Ordering::Relaxed);
        let state = self.lock();
        let labels = state.labels();
        let handles: Vec<_> =
            state.runs.iter().flatten().filter_map(|entry| entry.stop_handle.clone()).collect();
        drop(state);
        for handle in handles {
            handle.cut();
        }
        labels
    }

    async fn wait_until_empty(&self, clock: &dyn Clock, longest: Duration) {
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

    fn labels(&self) -> Vec<(RunId, Label)> {
        self.runs.iter().flatten().map(|entry| (entry.run, entry.label.clone())).collect()
    }
}

/// A run in the list of active runs; dropping it takes the run off the list.
pub(crate) struct AdmittedRun {
    active: Arc<ActiveRuns>,
    place: usize,
    pub(crate) run: RunId,
}

impl AdmittedRun {
    /// Sets the handle that tells this run to stop.
    pub(crate) fn set_stop_handle(&self, handle: Arc<dyn StopHandle>) {
        if let Some(entry) = &mut self.active.lock().runs[self.place] {
            entry.stop_handle = Some(handle);
        }
    }
}

impl Drop for AdmittedRun {
    fn drop(&mut self) {
        let mut state = self.active.lock();
        state.runs[self.place] = None;
        state.free.push(self.place);
        let drainers = std::mem::take(&mut state.drainers);
        drop(state);
        // After the lock: the last waker of a task drops the task, which may hold another run.
        drainers.into_iter().for_each(Waker::wake);
    }
}
