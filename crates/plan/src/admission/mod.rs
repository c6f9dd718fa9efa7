//! Admission control (load shedding): a request that would miss its deadline makes other requests miss theirs, so it is
//! refused.
//!
//! Every plan has its own overload control, since plans take different times and need different stores. It admits every
//! request until requests miss their deadlines, or, in a plan without fallbacks, wait for most of the time that they have
//! to spare. So a plan that answers in time by its fallbacks never refuses a request. After such a sign of overload, and
//! until one second has passed without another, a request with a deadline is admitted in two cases:
//! the requests in flight leave it enough time ([`Load`] estimates the time per request), or no request is in flight. Of
//! the other requests, some are admitted as probes, to measure again: at most one in the time that such a request has.
//!
//! Without recent misses, admission costs one addition at the start and one at the end. One request in sixteen is timed.

mod load;

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError, TryLockError};
use std::time::{Duration, Instant};

use anabranch_engine::clock::Clock;

use crate::answer::Answer;
use crate::error::Error;
use crate::metrics::{Counts, Outcome};
pub(crate) use load::Totals;
use load::{DeadlineOutcome, Load, RecentMisses, TimedRequest};

/// One request in this many is timed while there are no recent misses.
const SAMPLE: u64 = 16;

/// The time for which requests are checked after a missed deadline or a refused request.
const WATCH: Duration = Duration::from_secs(1);

/// The shortest and the longest `retry_after` of a refused request.
const RETRY: [Duration; 2] = [Duration::from_millis(1), Duration::from_secs(5)];

/// Admits the requests of one plan and counts their outcomes.
pub(crate) struct PlanAdmission {
    pub(crate) counts: Counts,
    control: Option<OverloadControl>,
}

struct OverloadControl {
    /// The times below are nanoseconds since this instant.
    epoch: Instant,
    /// The time until which requests with a deadline are checked; 0 without recent misses.
    checked_until: AtomicU64,
    /// The time that each request in flight adds to those behind it; 0 while it is not known.
    each: AtomicU64,
    /// The time from which the next request may be admitted as a probe.
    next_try: AtomicU64,
    load: Mutex<Load>,
}

/// A request between its admission and its end. A guard: dropped without [`end`](Self::end), the request counts as
/// dropped by its caller.
pub(crate) struct AdmittedRequest<'a> {
    admission: &'a PlanAdmission,
    clock: &'a dyn Clock,
    deadline: Option<Instant>,
    slow_requests: SlowRequests,
    timed: Option<Arrival>,
    outcome: Outcome,
}

/// The meaning of a request that is in time, but waited for long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SlowRequests {
    /// A sign of overload.
    Warn,
    /// Nothing: fallbacks may take until shortly before the deadline.
    Ignore,
}

struct Arrival {
    at: Instant,
    ahead: u64,
}

impl PlanAdmission {
    /// Admission for a new plan. Without an epoch every request is admitted.
    pub(crate) fn new(epoch: Option<Instant>) -> PlanAdmission {
        let zero = || AtomicU64::new(0);
        let control = epoch.map(|epoch| OverloadControl {
            epoch,
            checked_until: zero(),
            each: zero(),
            next_try: zero(),
            load: Mutex::default(),
        });
        PlanAdmission { counts: Counts::default(), control }
    }

    /// Fails with [`Error::Overloaded`] if [`enter`](Self::enter) would, and counts that. A request without a deadline has
    /// the time `within`. It is cheap, so that callers can refuse a request before they read it.
    pub(crate) fn check(
        &self,
        deadline: Option<Instant>,
        within: Option<Duration>,
        clock: &dyn Clock,
    ) -> Result<(), Error> {
        let Some(control) = &self.control else { return Ok(()) };
        let checked_until = control.checked_until.load(Ordering::Relaxed);
        if checked_until == 0 {
            return Ok(());
        }
        let at = clock.now();
        let Some(deadline) = deadline.or_else(|| at.checked_add(within?)) else { return Ok(()) };
        let now = control.since_epoch(at);
        let is_probe = now >= control.next_try.load(Ordering::Relaxed);
        match control.refusal(deadline, self.counts.in_flight(), at) {
            Some(refusal) if !is_probe && now <= checked_until => {
                control.watch(at);
                self.counts.enter();
                self.counts.end(Outcome::Refused);
                Err(refusal)
            }
            _ => Ok(()),
        }
    }

    /// Admits a request, or fails with [`Error::Overloaded`].
    pub(crate) fn enter<'a>(
        &'a self,
        deadline: Option<Instant>,
        slow_requests: SlowRequests,
        clock: &'a dyn Clock,
    ) -> Result<AdmittedRequest<'a>, Error> {
        let number = self.counts.enter();
        let outcome = Outcome::Dropped;
        let mut request =
            AdmittedRequest { admission: self, clock, deadline, slow_requests, timed: None, outcome };
        if let Some(control) = &self.control {
            let watched = deadline.filter(|_| control.checked_until.load(Ordering::Relaxed) != 0);
            if watched.is_some() || number.is_multiple_of(SAMPLE) {
                let arrival = control.look(watched, self.counts.in_flight().saturating_sub(1), clock.now());
                request.timed = Some(arrival.inspect_err(|_| request.outcome = Outcome::Refused)?);
            }
        }
        Ok(request)
    }
}

impl AdmittedRequest<'_> {
    /// Notes the outcome of the request.
    pub(crate) fn end(mut self, answer: &Result<Answer, Error>) {
        self.outcome = match answer {
            Ok(answer) if answer.ledger.is_empty() => Outcome::Full,
            Ok(answer) => {
                self.admission.counts.degraded(&answer.ledger);
                Outcome::Degraded
            }
            Err(Error::Refused(_) | Error::Overloaded { .. }) => Outcome::Refused,
            Err(error) if error.is_late() => Outcome::Deadline,
            Err(_) => Outcome::Failed,
        };
    }
}

impl Drop for AdmittedRequest<'_> {
    fn drop(&mut self) {
        self.admission.counts.end(self.outcome);
        if let Some(control) = &self.admission.control
            && (self.timed.is_some() || self.outcome == Outcome::Deadline)
            && !matches!(self.outcome, Outcome::Refused | Outcome::Dropped)
        {
            control.ended(self);
        }
    }
}

impl OverloadControl {
    #[cold]
    fn look(&self, watched: Option<Instant>, ahead: u64, at: Instant) -> Result<Arrival, Error> {
        let arrival = Arrival { at, ahead };
        let Some(deadline) = watched else { return Ok(arrival) };
        let now = self.since_epoch(at);
        if now > self.checked_until.load(Ordering::Relaxed) {
            self.checked_until.store(0, Ordering::Relaxed);
            self.load.lock().unwrap_or_else(PoisonError::into_inner).watch(RecentMisses::No);
            return Ok(arrival);
        }
        let Some(refusal) = self.refusal(deadline, ahead, at) else { return Ok(arrival) };
        let next_try = self.next_try.load(Ordering::Relaxed);
        let then = now.saturating_add(nanos(deadline.saturating_duration_since(at)));
        if now >= next_try
            && self.next_try.compare_exchange(next_try, then, Ordering::Relaxed, Ordering::Relaxed).is_ok()
        {
            return Ok(arrival);
        }
        self.watch(at);
        Err(refusal)
    }

    /// The refusal of a request with this many requests ahead; `None` if they leave it enough time.
    fn refusal(&self, deadline: Instant, ahead: u64, at: Instant) -> Option<Error> {
        let left = deadline.saturating_duration_since(at);
        let each = self.each.load(Ordering::Relaxed);
        let predicted = Duration::from_nanos(each.saturating_mul(ahead + 1));
        // The prediction is a mean, so a quarter is added.
        let needed = predicted + predicted / 4;
        let [shortest, longest] = RETRY;
        (ahead > 0 && needed > left).then(|| {
            let retry_after = (needed - left).clamp(shortest, longest);
            Error::Overloaded { retry_after, predicted, left }
        })
    }

    /// Updates the estimates with a request that has ended.
    #[cold]
    fn ended(&self, request: &AdmittedRequest<'_>) {
        let at = request.clock.now();
        let deadline_outcome = match request.deadline {
            Some(deadline) if request.outcome == Outcome::Deadline || at > deadline => {
                DeadlineOutcome::Missed
            }
            Some(_) => DeadlineOutcome::InTime,
            None => DeadlineOutcome::Free,
        };
        if deadline_outcome == DeadlineOutcome::Missed {
            self.watch(at);
        }
        let Some(arrival) = &request.timed else { return };
        // Another request is updating the estimates, and this one is only one sample of many.
        let mut load = match self.load.try_lock() {
            Ok(load) => load,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => return,
        };
        let took = at.saturating_duration_since(arrival.at);
        let timed = TimedRequest { took, ahead: arrival.ahead, deadline_outcome };
        load.ended(at, timed, request.admission.counts.totals());
        self.each.store(load.each().map_or(0, |each| nanos(each).max(1)), Ordering::Relaxed);
        let had = request.deadline.map(|deadline| deadline.saturating_duration_since(arrival.at));
        let warns = request.slow_requests == SlowRequests::Warn && load.is_warning(timed, had);
        drop(load);
        if warns {
            self.watch(at);
        }
    }

    fn watch(&self, at: Instant) {
        let until = self.since_epoch(at).saturating_add(nanos(WATCH));
        if self.checked_until.swap(until, Ordering::Relaxed) == 0 {
            self.load.lock().unwrap_or_else(PoisonError::into_inner).watch(RecentMisses::Yes);
        }
    }

    fn since_epoch(&self, at: Instant) -> u64 {
        nanos(at.saturating_duration_since(self.epoch))
    }
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}
