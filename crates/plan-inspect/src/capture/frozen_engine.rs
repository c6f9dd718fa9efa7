//! An engine on which no time passes, so that nothing is late in a replay.

use std::future::{pending, ready};
use std::sync::Arc;
use std::time::{Duration, Instant};

use anabranch_engine as engine;
use anabranch_engine::clock::{Clock, Sleep, SystemClock};
use anabranch_engine::pool::{Pool, Task};
use anabranch_engine::seams::Seams;
use anabranch_engine::tasks::TokioTasks;

/// An engine without its own time and threads: everything runs where the run is polled.
pub(super) fn engine() -> engine::Engine {
    let here: Arc<dyn Pool> = Arc::new(Here);
    let seams = Seams {
        clock: Arc::new(StoppedClock(SystemClock.now())),
        tasks: Arc::new(TokioTasks),
        latency: Arc::clone(&here),
        batch: Arc::clone(&here),
        blocking: here,
    };
    let config = engine::Config { inline_threshold: Duration::MAX, ..engine::Config::default() };
    engine::Engine::with_seams(seams, &config)
}

/// The clock of nodes on such an engine. Every wait of a node ends immediately. It starts at the engine's time;
/// otherwise nodes would seem to take as long as the age of the engine.
pub(super) fn hurried(runs: &engine::Engine) -> Arc<dyn Clock> {
    Arc::new(HurriedClock(runs.clock().now()))
}

/// A clock that stands: no timeout ever comes.
struct StoppedClock(Instant);

impl Clock for StoppedClock {
    fn now(&self) -> Instant {
        self.0
    }

    fn sleep_until(&self, at: Instant) -> Sleep {
        if at <= self.0 { Box::pin(ready(())) } else { Box::pin(pending()) }
    }
}

struct HurriedClock(Instant);

impl Clock for HurriedClock {
    fn now(&self) -> Instant {
        self.0
    }

    fn sleep_until(&self, _: Instant) -> Sleep {
        Box::pin(ready(()))
    }
}

/// No pool: work is done where it is handed in.
struct Here;

impl Pool for Here {
    fn submit(&self, task: Task) {
        task();
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn nodes_and_their_engine_agree_on_the_time() {
        let runs = super::engine();
        assert_eq!(super::hurried(&runs).now(), runs.clock().now());
    }
}
