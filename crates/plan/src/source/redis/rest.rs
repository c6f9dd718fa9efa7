//! Connections that rest: a connection on which a slow trip was cancelled is skipped for a while.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use anabranch_engine::clock::Clock;

use crate::spread::Spread;

/// The duration of a rest.
const REST: Duration = Duration::from_millis(50);

/// A trip is slow after this multiple of the median, and not before [`SHORTEST`].
const LONG: u32 = 2;

/// A shorter silence says more about this machine than about a connection.
const SHORTEST: Duration = Duration::from_millis(1);

/// The rests of the connections to one server.
pub(super) struct Rests {
    clock: Arc<dyn Clock>,
    /// The durations of answered trips.
    spread: Spread,
    /// Whether any connection may be resting. Otherwise no lock is taken.
    any: AtomicBool,
    /// The end of each connection's rest.
    until: Mutex<Vec<Option<Instant>>>,
}

/// A trip on a connection. If it is dropped before its end, it was cancelled.
pub(super) struct Outing<'a> {
    rests: Option<&'a Rests>,
    link: usize,
    began: Instant,
}

impl Rests {
    pub(super) fn new(clock: &Arc<dyn Clock>, links: usize) -> Rests {
        let (any, until) = (AtomicBool::new(false), Mutex::new(vec![None; links]));
        Rests { clock: Arc::clone(clock), spread: Spread::default(), any, until }
    }

    /// The first connection from `link` on that does not rest; `link` itself when all do.
    pub(super) fn pass_over(&self, link: usize) -> usize {
        if !self.any.load(Ordering::Relaxed) {
            return link;
        }
        let now = self.clock.now();
        let mut until = self.lock();
        until.iter_mut().for_each(|until| _ = until.take_if(|until| *until <= now));
        self.any.store(until.iter().any(Option::is_some), Ordering::Relaxed);
        let count = until.len();
        (link..link + count).map(|link| link % count).find(|link| until[*link].is_none()).unwrap_or(link)
    }

    pub(super) fn begin(&self, link: usize) -> Outing<'_> {
        Outing { rests: Some(self), link, began: self.clock.now() }
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Option<Instant>>> {
        self.until.lock().expect("nothing panics while it is held")
    }
}

impl Outing<'_> {
    /// It was answered.
    pub(super) fn answered(mut self) {
        if let Some(rests) = self.rests.take() {
            rests.spread.record(rests.clock.now().saturating_duration_since(self.began));
        }
    }

    /// It failed, which is for the connection to mend.
    pub(super) fn failed(mut self) {
        self.rests = None;
    }
}

impl Drop for Outing<'_> {
    fn drop(&mut self) {
        let Some(rests) = self.rests else { return };
        let now = rests.clock.now();
        let long = rests.spread.at(0.5).map(|median| (LONG * median).max(SHORTEST));
        if long.is_some_and(|long| now.saturating_duration_since(self.began) >= long) {
            rests.lock()[self.link] = Some(now + REST);
            rests.any.store(true, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use anabranch_testkit::Sim;

    use super::*;

    /// The outcome of a trip on a connection.
    fn trip(sim: &Sim, rests: &Rests, link: usize, millis: u64, answered: bool) {
        let clock = sim.clock();
        let outing = rests.begin(link);
        sim.block_on(clock.sleep_until(clock.now() + Duration::from_millis(millis)));
        if answered {
            outing.answered();
        }
    }

    #[test]
    fn who_was_given_up_late_rests() {
        let sim = Sim::new(1);
        let rests = Rests::new(&sim.clock(), 3);
        trip(&sim, &rests, 0, 900, false);
        assert_eq!(rests.pass_over(0), 0, "what is long is not known yet");
        (0..40).for_each(|_| trip(&sim, &rests, 0, 2, true));
        trip(&sim, &rests, 0, 3, false);
        assert_eq!(rests.pass_over(0), 0, "that was not long");
        trip(&sim, &rests, 0, 20, false);
        assert_eq!([0, 1, 2].map(|link| rests.pass_over(link)), [1, 1, 2]);
        trip(&sim, &rests, 1, 20, false);
        assert_eq!([0, 1, 2].map(|link| rests.pass_over(link)), [2, 2, 2]);
        trip(&sim, &rests, 2, 20, false);
        assert_eq!([0, 1, 2].map(|link| rests.pass_over(link)), [0, 1, 2], "all rest, so none does");
        trip(&sim, &rests, 0, 20, true);
        assert_eq!([0, 1, 2].map(|link| rests.pass_over(link)), [0, 0, 0]);
        trip(&sim, &rests, 0, 60, true);
        assert_eq!([0, 1, 2].map(|link| rests.pass_over(link)), [0, 1, 2]);
        assert!(!rests.any.load(Ordering::Relaxed));
    }
}
