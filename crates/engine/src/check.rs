//! Cancellation of CPU work that nobody waits for any more.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use crate::clock::{Clock, SystemClock};

/// Tells a job whether to continue. A long job polls it between parts of its work.
pub struct Check<'a> {
    stop: &'a AtomicBool,
    due: Option<(Instant, Bound)>,
    clock: &'a dyn Clock,
    /// Whether it was reported to the job that its time is over.
    told_late: AtomicBool,
}

/// The bound on a job's time that comes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Bound {
    /// The node's own timeout.
    Timeout,
    /// The time that the run's deadline leaves to the node.
    Deadline,
}

impl Check<'static> {
    /// A check that never says to stop, for work that is called outside of a run.
    pub fn never() -> Check<'static> {
        static STOP: AtomicBool = AtomicBool::new(false);
        Check::new(&STOP, None, None, &SystemClock)
    }
}

impl<'a> Check<'a> {
    pub(crate) fn new(
        stop: &'a AtomicBool,
        timeout: Option<Instant>,
        deadline: Option<Instant>,
        clock: &'a dyn Clock,
    ) -> Check<'a> {
        let due = match (timeout, deadline) {
            (Some(timeout), deadline) if deadline.is_none_or(|deadline| timeout <= deadline) => {
                Some((timeout, Bound::Timeout))
            }
            (_, deadline) => deadline.map(|deadline| (deadline, Bound::Deadline)),
        };
        Check { stop, due, clock, told_late: AtomicBool::new(false) }
    }

    /// Whether to stop: the run has ended, or the node's time is over. The result that the job then returns is ignored.
    ///
    /// Costs an atomic read, and a clock read when the node has a timeout or the run a deadline. Poll it every few
    /// microseconds of work.
    pub fn should_stop(&self) -> bool {
        if self.stop.load(Ordering::Relaxed) {
            return true;
        }
        let late = self.due.is_some_and(|(due, _)| self.clock.now() >= due);
        if late {
            self.told_late.store(true, Ordering::Relaxed);
        }
        late
    }

    /// The bound that was reported to the job as exceeded, if any.
    pub(crate) fn bound_met(&self) -> Option<Bound> {
        self.due.map(|(_, bound)| bound).filter(|_| self.told_late.load(Ordering::Relaxed))
    }
}
