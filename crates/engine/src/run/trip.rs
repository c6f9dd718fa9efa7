//! A trip to a pool: one job, or a chain of jobs (links) on one thread, each of which passes its value to the next.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::Message;
use super::slots::Mail;
use super::timer::Ticket;
use crate::check::{Bound, Check};
use crate::clock::{Clock, after};
use crate::graph::NodeId;
use crate::panics;
use crate::workload::{Failure, Job};

/// The state that the run and the pool's thread share during a trip.
pub(super) struct Trip {
    stop: AtomicBool,
    /// The current link, and its start in nanoseconds since `base`.
    progress: AtomicU64,
    /// The start of each link and the end of the last one, if the run has a listener.
    marks: Mutex<Vec<Instant>>,
    base: Instant,
}

/// The longest trip. A longer chain takes several trips.
pub(super) const MAX_LINKS: usize = 256;
const TIME_BITS: u32 = 52;

impl Trip {
    pub(super) fn new(base: Instant) -> Trip {
        Trip { stop: AtomicBool::new(false), progress: AtomicU64::new(0), marks: Mutex::default(), base }
    }

    pub(super) fn stop(&self) {
        self.stop.store(true, Ordering::Relaxed);
    }

    /// The current link and its start.
    pub(super) fn progress(&self) -> (usize, Instant) {
        let packed = self.progress.load(Ordering::Relaxed);
        let since_base = Duration::from_nanos(packed & ((1 << TIME_BITS) - 1));
        ((packed >> TIME_BITS) as usize, self.base + since_base)
    }

    /// The start of each link so far and, once the trip has ended, its end.
    pub(super) fn take_marks(&self) -> Vec<Instant> {
        std::mem::take(&mut *self.marks.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// True if the trip has waited for a thread so long that its first job cannot end in time. Under overload its work
    /// would only make other trips late. A trip that did not wait is tried, because the estimate may be wrong.
    fn is_hopeless(&self, now: Instant, deadline: Instant, least: Duration) -> bool {
        let (waited, left) =
            (now.saturating_duration_since(self.base), deadline.saturating_duration_since(now));
        left < least && left < waited
    }

    fn mark(&self, now: Instant) {
        self.marks.lock().unwrap_or_else(PoisonError::into_inner).push(now);
    }

    fn begin(&self, link: usize, now: Instant) {
        let nanos = now.saturating_duration_since(self.base).as_nanos() as u64;
        self.progress.store((link as u64) << TIME_BITS | nanos, Ordering::Relaxed);
    }
}

/// One node of a trip.
pub(super) struct Link<J> {
    pub(super) node: NodeId,
    pub(super) job: J,
    pub(super) timeout: Option<Duration>,
}

/// The result of a trip: its last link and that link's result.
pub(super) struct Outcome<V, E> {
    pub(super) reached: usize,
    pub(super) result: Result<V, Failure<E>>,
}

/// Runs a trip on a pool's thread.
pub(super) struct TripRunner<V, E> {
    pub(super) trip: Arc<Trip>,
    pub(super) reply: Reply<V, E>,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) deadline: Option<Instant>,
    /// The time that the first job takes at least, by its estimate.
    pub(super) least: Duration,
    pub(super) keep_marks: bool,
}

impl<V, E> TripRunner<V, E> {
    /// Runs the jobs of `links` in order, on this thread.
    pub(super) fn run<J: Job<V, E>>(self, links: Vec<Link<J>>) {
        let TripRunner { trip, reply, clock, deadline, least, keep_marks } = self;
        if deadline.is_some_and(|deadline| trip.is_hopeless(clock.now(), deadline, least)) {
            // The deadline ends the run, as it would end this trip.
            return reply.forget();
        }
        let mut carried = None;
        let last = links.len() - 1;
        // A clock read costs as much as a small job, so it is left out if the time is not needed.
        let timed = keep_marks || links.iter().any(|link| link.timeout.is_some());
        for (reached, link) in links.into_iter().enumerate() {
            if trip.stop.load(Ordering::Relaxed) {
                return reply.forget();
            }
            let now = if timed { clock.now() } else { trip.base };
            // The first link began when the trip was handed to the pool: waiting for a thread counts.
            let began = if reached == 0 { trip.base } else { now };
            trip.begin(reached, began);
            if keep_marks {
                trip.mark(now);
            }
            let check = Check::new(&trip.stop, after(began, link.timeout), deadline, &*clock);
            let result = run_job(link.job, carried.take(), &check, link.timeout);
            match result {
                Ok(value) if reached < last => carried = Some(value),
                result => {
                    if keep_marks {
                        trip.mark(clock.now());
                    }
                    return reply.send(Outcome { reached, result });
                }
            }
        }
    }
}

/// Runs one job. A panic and a late result become failures.
pub(super) fn run_job<V, E, J: Job<V, E>>(
    job: J,
    input: Option<V>,
    check: &Check<'_>,
    timeout: Option<Duration>,
) -> Result<V, Failure<E>> {
    let result = catch_unwind(AssertUnwindSafe(|| job.run(input, check)));
    match (result, check.bound_met()) {
        (Err(payload), _) => Err(Failure::Panic(panics::message(&*payload))),
        (Ok(_), Some(Bound::Timeout)) => Err(Failure::Timeout(timeout.unwrap_or_default())),
        (Ok(_), Some(Bound::Deadline)) => Err(Failure::Deadline),
        (Ok(result), None) => result.map_err(Failure::Error),
    }
}

/// The promise of a result. Dropped without one, it reports that the pool abandoned the work.
pub(super) struct Reply<V, E> {
    mail: Option<Arc<Mail<V, E>>>,
    ticket: Ticket,
}

impl<V, E> Reply<V, E> {
    pub(super) fn new(mail: Arc<Mail<V, E>>, ticket: Ticket) -> Reply<V, E> {
        Reply { mail: Some(mail), ticket }
    }

    pub(super) fn send(mut self, outcome: Outcome<V, E>) {
        if let Some(mail) = self.mail.take() {
            mail.push(Message::Done(self.ticket, outcome));
        }
    }

    /// Sends nothing: the run has cancelled the work, or will.
    fn forget(mut self) {
        self.mail = None;
    }
}

impl<V, E> Drop for Reply<V, E> {
    fn drop(&mut self) {
        if let Some(mail) = self.mail.take() {
            let outcome = Outcome { reached: 0, result: Err(Failure::Abandoned) };
            mail.push(Message::Done(self.ticket, outcome));
        }
    }
}
