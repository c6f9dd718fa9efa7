//! The budget of one call: its memory and its time.
//!
//! A call is granted memory before it begins. A function claims memory beyond the amount that its signature declares. A
//! claim beyond the grant is a fault, and the executor calls the function again with a larger grant. So a call never
//! waits for memory in the middle of its work, and its outcome does not depend on the load.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anabranch_engine::clock::Clock;

use crate::function::Fault;
use crate::progress::CallProgress;

/// The steps of work between two checks: a few milliseconds.
const BETWEEN_CHECKS: u64 = 1 << 20;

/// The budget of one call. A function claims the memory that its signature does not declare, and checks between parts
/// of its work whether it must stop.
#[derive(Debug)]
pub struct CallBudget {
    granted: u64,
    claimed: AtomicU64,
    /// The steps of work since the last check.
    unchecked: AtomicU64,
    stop: AtomicBool,
    time: Option<CallTime>,
    progress: Option<CallProgress>,
}

/// The time of a call.
pub(crate) struct CallTime {
    limit: Duration,
    began: Instant,
    /// The nanoseconds that it waited for a thread.
    waited: AtomicU64,
    clock: Arc<dyn Clock>,
}

impl CallTime {
    /// The time of a call that starts now.
    pub(crate) fn starting(now: Instant, limit: Duration, clock: &Arc<dyn Clock>) -> CallTime {
        CallTime { limit, began: now, waited: AtomicU64::new(0), clock: Arc::clone(clock) }
    }
}

impl CallBudget {
    /// A budget without limits, for calls outside an executor.
    pub fn unlimited() -> Arc<CallBudget> {
        Arc::new(CallBudget::new(u64::MAX, None))
    }

    /// A budget with `granted` bytes of memory for claims.
    pub fn of_bytes(granted: u64) -> Arc<CallBudget> {
        Arc::new(CallBudget::new(granted, None))
    }

    pub(crate) fn new(granted: u64, time: Option<CallTime>) -> CallBudget {
        CallBudget {
            granted,
            claimed: AtomicU64::new(0),
            unchecked: AtomicU64::new(0),
            stop: AtomicBool::new(false),
            time,
            progress: None,
        }
    }

    /// The same budget, for a call that reports its progress.
    pub(crate) fn with_progress(self, progress: CallProgress) -> CallBudget {
        CallBudget { progress: Some(progress), ..self }
    }

    /// The progress of the call, if it is reported.
    pub(crate) fn progress(&self) -> Option<&CallProgress> {
        self.progress.as_ref()
    }

    /// Makes the next check fail: no caller waits for the call any more.
    pub(crate) fn stop(&self) {
        self.stop.store(true, Ordering::Relaxed);
    }

    /// Extends the time of the call by a wait for a thread.
    pub(crate) fn waited(&self, wait: Duration) {
        if let Some(time) = &self.time {
            time.waited.fetch_add(u64::try_from(wait.as_nanos()).unwrap_or(u64::MAX), Ordering::Relaxed);
        }
    }

    /// Claims memory, before it is allocated.
    pub fn claim(&self, bytes: u64) -> Result<(), Fault> {
        let needed = self.claimed.fetch_add(bytes, Ordering::Relaxed).saturating_add(bytes);
        match needed > self.granted {
            true => Err(Fault::Memory { needed, granted: self.granted }),
            false => Ok(()),
        }
    }

    /// Releases memory that was claimed.
    pub fn release(&self, bytes: u64) {
        self.claimed.fetch_sub(bytes, Ordering::Relaxed);
    }

    /// The number of bytes claimed at this moment.
    pub(crate) fn claimed(&self) -> u64 {
        self.claimed.load(Ordering::Relaxed)
    }

    /// The number of bytes granted for claims.
    pub fn granted(&self) -> u64 {
        self.granted
    }

    /// Counts steps of work of a few nanoseconds each, and checks the budget once there are enough of them. Only the
    /// thread of the call counts.
    pub(crate) fn work(&self, steps: u64) -> Result<(), Fault> {
        let unchecked = self.unchecked.load(Ordering::Relaxed).saturating_add(steps);
        if unchecked < BETWEEN_CHECKS {
            self.unchecked.store(unchecked, Ordering::Relaxed);
            return Ok(());
        }
        self.unchecked.store(0, Ordering::Relaxed);
        self.check()
    }

    /// Fails if the call must stop, because no caller waits for it any more or its time is over. Check at least once
    /// every few milliseconds of work. Each check also updates the progress that listeners receive.
    pub fn check(&self) -> Result<(), Fault> {
        if self.stop.load(Ordering::Relaxed) {
            return Err(Fault::Stopped);
        }
        let Some(time) = &self.time else { return Ok(()) };
        let now = time.clock.now();
        let waited = Duration::from_nanos(time.waited.load(Ordering::Relaxed));
        if now.saturating_duration_since(time.began).saturating_sub(waited) >= time.limit {
            return Err(Fault::TooLong { limit: time.limit });
        }
        if let Some(progress) = &self.progress {
            progress.step(now);
        }
        Ok(())
    }
}

impl std::fmt::Debug for CallTime {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("CallTime").field("limit", &self.limit).finish_non_exhaustive()
    }
}

/// Claimed memory that grows with the data it is for, and is released on drop.
#[derive(Debug)]
pub(crate) struct Claim {
    budget: Arc<CallBudget>,
    bytes: u64,
}

impl Claim {
    pub(crate) fn new(budget: &Arc<CallBudget>) -> Claim {
        Claim { budget: Arc::clone(budget), bytes: 0 }
    }

    /// Raises the claim to `bytes` in total. A smaller number changes nothing.
    pub(crate) fn grow_to(&mut self, bytes: u64) -> Result<(), Fault> {
        if bytes > self.bytes {
            let more = bytes - self.bytes;
            self.bytes = bytes;
            self.budget.claim(more)?;
        }
        Ok(())
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        self.budget.release(self.bytes);
    }
}
