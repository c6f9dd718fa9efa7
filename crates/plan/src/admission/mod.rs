//! Who is let in: a request that would miss its deadline only makes others miss theirs.
//!
//! Every plan has a gate of its own, since plans take different times and need different stores. It is open until
//! requests miss their deadlines; so plans that answer in time by their fallbacks are never refused anything. From
//! then on, and until all was well for a second, a request with a deadline is let in if those under way leave it
//! enough time ([`Load`] says how much each one takes), or nobody is under way. Of the others one is let in now and
//! then to see whether that is still true: never more than one in the time that such a request has.
//!
//! An open gate costs a request one addition at the door and one at the exit; one in sixteen is timed.

mod load;

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError, TryLockError};
use std::time::{Duration, Instant};

use anabranch_engine::clock::Clock;

use crate::answer::Answer;
use crate::error::Error;
use crate::metrics::{Counts, Outcome};
pub(crate) use load::Totals;
use load::{Kept, Load, Timed, Watched};

/// While the gate is open, one request in so many is timed.
const SAMPLE: u64 = 16;

/// How long the gate is watched after a deadline was missed or a request refused.
const WATCH: Duration = Duration::from_secs(1);

/// The bounds of what a refused request is told to wait.
const RETRY: [Duration; 2] = [Duration::from_millis(1), Duration::from_secs(5)];

/// The way into a plan and out of it.
pub(crate) struct Door {
    pub(crate) counts: Counts,
    gate: Option<Gate>,
}

struct Gate {
    /// Times below are in nanoseconds since then.
    epoch: Instant,
    /// Until when requests with a deadline are looked at; 0 while the gate is open.
    watched_until: AtomicU64,
    /// How much time each request adds to that of those behind it; 0 while that is not known.
    each: AtomicU64,
    /// When the next request may be let in against the odds.
    next_try: AtomicU64,
    load: Mutex<Load>,
}

/// A request's way through a plan. Unless it is told how that ended, somebody stopped waiting.
pub(crate) struct Pass<'a> {
    door: &'a Door,
    clock: &'a dyn Clock,
    deadline: Option<Instant>,
    timed: Option<Entry>,
    outcome: Outcome,
}

struct Entry {
    at: Instant,
    ahead: u64,
}

impl Door {
    /// A door that is open; with an epoch it may also be closed.
    pub(crate) fn new(epoch: Option<Instant>) -> Door {
        let zero = || AtomicU64::new(0);
        let gate = epoch.map(|epoch| Gate {
            epoch,
            watched_until: zero(),
            each: zero(),
            next_try: zero(),
            load: Mutex::default(),
        });
        Door { counts: Counts::default(), gate }
    }

    /// Lets a request in, or says why not.
    pub(crate) fn enter<'a>(
        &'a self,
        deadline: Option<Instant>,
        clock: &'a dyn Clock,
    ) -> Result<Pass<'a>, Error> {
        let number = self.counts.enter();
        let mut pass = Pass { door: self, clock, deadline, timed: None, outcome: Outcome::Dropped };
        if let Some(gate) = &self.gate {
            let watched = deadline.filter(|_| gate.watched_until.load(Ordering::Relaxed) != 0);
            if watched.is_some() || number.is_multiple_of(SAMPLE) {
                let entry = gate.look(watched, self.counts.in_flight().saturating_sub(1), clock.now());
                pass.timed = Some(entry.inspect_err(|_| pass.outcome = Outcome::Refused)?);
            }
        }
        Ok(pass)
    }
}

impl Pass<'_> {
    /// The request has ended.
    pub(crate) fn end(mut self, answer: &Result<Answer, Error>) {
        self.outcome = match answer {
            Ok(answer) if answer.ledger.is_empty() => Outcome::Full,
            Ok(answer) => {
                self.door.counts.degraded(&answer.ledger);
                Outcome::Degraded
            }
            Err(Error::Refused(_) | Error::Overloaded { .. }) => Outcome::Refused,
            Err(error) if error.is_late() => Outcome::Deadline,
            Err(_) => Outcome::Failed,
        };
    }
}

impl Drop for Pass<'_> {
    fn drop(&mut self) {
        self.door.counts.end(self.outcome);
        if let Some(gate) = &self.door.gate
            && (self.timed.is_some() || self.outcome == Outcome::Deadline)
            && !matches!(self.outcome, Outcome::Refused | Outcome::Dropped)
        {
            gate.ended(self);
        }
    }
}

impl Gate {
    #[cold]
    fn look(&self, watched: Option<Instant>, ahead: u64, at: Instant) -> Result<Entry, Error> {
        let entry = Entry { at, ahead };
        let Some(deadline) = watched else { return Ok(entry) };
        let (now, left) = (self.since_epoch(at), deadline.saturating_duration_since(at));
        if now > self.watched_until.load(Ordering::Relaxed) {
            self.watched_until.store(0, Ordering::Relaxed);
            self.load.lock().unwrap_or_else(PoisonError::into_inner).watch(Watched::No);
            return Ok(entry);
        }
        let each = self.each.load(Ordering::Relaxed);
        let predicted = Duration::from_nanos(each.saturating_mul(ahead + 1));
        // What is predicted is the middle of what comes.
        let needed = predicted + predicted / 4;
        if ahead == 0 || needed <= left {
            return Ok(entry);
        }
        let next_try = self.next_try.load(Ordering::Relaxed);
        let then = now.saturating_add(nanos(left));
        if now >= next_try
            && self.next_try.compare_exchange(next_try, then, Ordering::Relaxed, Ordering::Relaxed).is_ok()
        {
            return Ok(entry);
        }
        self.watch(at);
        let [shortest, longest] = RETRY;
        Err(Error::Overloaded { retry_after: (needed - left).clamp(shortest, longest), predicted, left })
    }

    /// Takes in what became of a request.
    #[cold]
    fn ended(&self, pass: &Pass<'_>) {
        let at = pass.clock.now();
        let kept = match pass.deadline {
            Some(deadline) if pass.outcome == Outcome::Deadline || at > deadline => Kept::Missed,
            Some(_) => Kept::InTime,
            None => Kept::Free,
        };
        if kept == Kept::Missed {
            self.watch(at);
        }
        let Some(entry) = &pass.timed else { return };
        // Whoever finds it locked is one sample of many.
        let mut load = match self.load.try_lock() {
            Ok(load) => load,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => return,
        };
        let took = at.saturating_duration_since(entry.at);
        let request = Timed { took, ahead: entry.ahead, kept };
        load.ended(at, request, pass.door.counts.totals());
        self.each.store(load.each().map_or(0, |each| nanos(each).max(1)), Ordering::Relaxed);
    }

    fn watch(&self, at: Instant) {
        let until = self.since_epoch(at).saturating_add(nanos(WATCH));
        if self.watched_until.swap(until, Ordering::Relaxed) == 0 {
            self.load.lock().unwrap_or_else(PoisonError::into_inner).watch(Watched::Yes);
        }
    }

    fn since_epoch(&self, at: Instant) -> u64 {
        nanos(at.saturating_duration_since(self.epoch))
    }
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}
