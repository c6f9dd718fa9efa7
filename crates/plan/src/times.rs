//! The recent durations of a plan's stages. They determine the time that late nodes leave to the others, and the nodes
//! that are not worth starting.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use anabranch_engine::{Dag, NodeId, OnError, Policies};

use crate::compiled::{Stage, StageWork};
use crate::spread::Spread;

/// The number of requests that are timed at first. Later, one in [`EVERY`] is timed.
const AT_FIRST: u32 = 64;
/// One in this many requests is timed, because reading the clock after each stage has a cost.
const EVERY: u32 = 16;
/// The reserve is computed again after this many timed requests.
const RENEW: u32 = 16;
/// A timer fires up to a millisecond late, because of its resolution, and then a task must wake up.
const SLACK: Duration = Duration::from_millis(2);
/// The assumed time of a stage that reads for a fallback and has never run.
const GUESS: Duration = Duration::from_millis(5);

/// The recent durations of a plan's stages.
#[derive(Default)]
pub(crate) struct Times {
    /// By stage. Set once a request is timed.
    stages: OnceLock<Box<[StageTimes]>>,
    requests: AtomicU32,
    timed: AtomicU32,
    reserve: Mutex<Option<Arc<[Duration]>>>,
}

#[derive(Default)]
struct StageTimes {
    took: Spread,
    /// The least of it, in nanoseconds; 0 if that is not known, or not worth a thought.
    least: AtomicU64,
}

impl Times {
    /// True if the next request is timed.
    pub(crate) fn is_next_timed(&self) -> bool {
        let count = self.requests.fetch_add(1, Ordering::Relaxed);
        count < AT_FIRST || count.is_multiple_of(EVERY)
    }

    /// Records the duration of a stage, of a plan with this many stages.
    pub(crate) fn record(&self, stage: usize, stages: usize, took: Duration) {
        let times = self.stages.get_or_init(|| (0..stages).map(|_| StageTimes::default()).collect());
        times[stage].took.record(took);
    }

    /// A timed request is over.
    pub(crate) fn renew(&self, stages: &[Stage], graph: &Dag, policies: &Policies) {
        if !(self.timed.fetch_add(1, Ordering::Relaxed) + 1).is_multiple_of(RENEW) {
            return;
        }
        let Some(times) = self.stages.get() else { return };
        for time in times {
            // Durations are known to an eighth, from above. Stages that are faster than the timer resolution are always
            // started.
            let least = time.took.at(0.0).map_or(Duration::ZERO, |least| least * 7 / 8);
            let least = if least < SLACK { 0 } else { u64::try_from(least.as_nanos()).unwrap_or(u64::MAX) };
            time.least.store(least, Ordering::Relaxed);
        }
        *self.lock() = Some(reserve(times, stages, graph, policies));
    }

    /// The least that a stage took lately, as far as that is known and worth a thought.
    pub(crate) fn least(&self, stage: usize) -> Duration {
        let times = self.stages.get();
        Duration::from_nanos(times.map_or(0, |times| times[stage].least.load(Ordering::Relaxed)))
    }

    /// The time that each stage must leave to the stages behind it, if enough requests were timed.
    pub(crate) fn reserve(&self) -> Option<Arc<[Duration]>> {
        self.lock().clone()
    }

    fn lock(&self) -> MutexGuard<'_, Option<Arc<[Duration]>>> {
        self.reserve.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn reserve(times: &[StageTimes], stages: &[Stage], graph: &Dag, policies: &Policies) -> Arc<[Duration]> {
    let needed = |stage: NodeId| {
        let is_fallback = stages[stage.index()].membership.is_some_and(|membership| membership.is_fallback);
        let usual = times[stage.index()].took.at(0.95);
        match (policies.of(stage).on_error, &stages[stage.index()].what) {
            (_, StageWork::Wait(_)) if is_fallback => usual.unwrap_or(GUESS),
            // The run need not wait for the end of a node with a fallback.
            (OnError::Fallback, _) if !is_fallback => Duration::ZERO,
            _ => usual.unwrap_or_default(),
        }
    };
    graph.time_after(needed).into_iter().map(|after| after + SLACK).collect()
}
