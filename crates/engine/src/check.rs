//! How CPU work learns that nobody waits for it any more.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use crate::clock::{Clock, SystemClock};

/// Asked by a job between chunks of its work.
pub struct Check<'a> {
    stop: &'a AtomicBool,
    due: Option<Instant>,
    clock: &'a dyn Clock,
    late: AtomicBool,
}

impl Check<'static> {
    /// One that never says to stop: for work that is called outside a run.
    pub fn never() -> Check<'static> {
        static STOP: AtomicBool = AtomicBool::new(false);
        Check::new(&STOP, None, &SystemClock)
    }
}

impl<'a> Check<'a> {
    pub(crate) fn new(stop: &'a AtomicBool, due: Option<Instant>, clock: &'a dyn Clock) -> Check<'a> {
        Check { stop, due, clock, late: AtomicBool::new(false) }
    }

    /// Whether to give up: the run is over or the node's time is. What the job then returns is not looked at.
    ///
    /// Costs an atomic read, and a clock read when the node has a budget: ask every few microseconds of work.
    pub fn should_stop(&self) -> bool {
        if self.stop.load(Ordering::Relaxed) {
            return true;
        }
        let late = self.due.is_some_and(|due| self.clock.now() >= due);
        if late {
            self.late.store(true, Ordering::Relaxed);
        }
        late
    }

    /// Whether the job was told that its time is over.
    pub(crate) fn told_late(&self) -> bool {
        self.late.load(Ordering::Relaxed)
    }
}
