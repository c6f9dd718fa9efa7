//! The capacity of a plan (requests completed per second), estimated from its throughput under overload. The module
//! reads no clock: callers pass the times.
//!
//! An overloaded plan keeps its requests waiting, and Little's law says how long: the requests in flight divided by the
//! requests completed per second. So the capacity is all that must be known. It can be measured only during overload; at
//! other times the throughput is just the arrival rate. Throughput is measured over windows of time, because a few slow
//! requests move a mean latency much and a throughput little.

use std::time::{Duration, Instant};

/// The shortest window.
const SHORTEST: Duration = Duration::from_millis(50);

/// A window is at least this many times as long as its requests take, because requests may end in waves.
const WAVES: u32 = 2;

/// The longest window. An older one is discarded, because most of it had no requests.
const LONGEST: Duration = Duration::from_secs(2);

/// The fewest timed requests that a window needs.
const ENOUGH: u32 = 8;

/// The part of late requests that counts as completed in a window where all were late.
const LOW_GUESS: f64 = 1.0 / 8.0;

/// The lowest capacity, in requests per second, so that the time per request stays finite.
const LEAST: f64 = 1e-3;

/// The estimates for one plan.
#[derive(Debug, Default)]
pub(crate) struct Load {
    /// Requests per second; `None` before the first overload.
    capacity: Option<f64>,
    /// The duration of a request that waits for no other request.
    unloaded: Option<Duration>,
    watched: RecentMisses,
    window: Option<Window>,
}

/// Records if deadlines were missed, or requests refused, in the last second.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum RecentMisses {
    /// All requests were admitted and in time.
    #[default]
    No,
    /// Some requests were late or refused.
    Yes,
}

#[derive(Debug)]
struct Window {
    began: Instant,
    /// The totals at the begin of the window.
    totals: Totals,
    timed: u32,
    took: Duration,
    least: Duration,
    in_time: u32,
    missed: u32,
    /// The highest throughput that a request proves possible: it was as fast beside others as alone.
    shown: f64,
    /// True if a request found none in flight. Then the throughput may be just the arrival rate.
    idle: bool,
}

/// Counts since the plan was loaded.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Totals {
    /// Requests that completed or failed by themselves.
    pub(crate) done: u64,
    /// Requests whose deadline passed.
    pub(crate) missed: u64,
}

/// The measurements of a request that has ended.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TimedRequest {
    pub(crate) took: Duration,
    /// The number of requests in flight at its arrival.
    pub(crate) ahead: u64,
    pub(crate) deadline_outcome: DeadlineOutcome,
}

/// The result of a request in respect of its deadline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DeadlineOutcome {
    /// The request had no deadline.
    Free,
    /// The answer came in time.
    InTime,
    /// The deadline passed first.
    Missed,
}

impl Load {
    /// The time that each request in flight adds to those behind it; `None` before the first overload.
    pub(crate) fn each(&self) -> Option<Duration> {
        self.capacity.map(|capacity| Duration::from_secs_f64(1.0 / capacity))
    }

    /// True if a request that had this much time waited for more than three quarters of the time that it did not need. Where
    /// requests need most of their time anyway, a wait is no sign of more to come.
    pub(crate) fn is_warning(&self, request: TimedRequest, had: Option<Duration>) -> bool {
        let (Some(needed), Some(had)) = (self.unloaded, had) else { return false };
        request.ahead > 0 && had >= needed * 3 && request.took > needed + (had - needed) / 4 * 3
    }

    /// Sets if there are recent misses, and begins a new window.
    pub(crate) fn watch(&mut self, watched: RecentMisses) {
        self.watched = watched;
        self.window = None;
    }

    /// Adds a request that has ended, and updates the estimates if that fills the window.
    pub(crate) fn ended(&mut self, at: Instant, request: TimedRequest, totals: Totals) {
        let window = self.window.get_or_insert(Window {
            began: at,
            totals,
            timed: 0,
            took: Duration::ZERO,
            least: Duration::MAX,
            in_time: 0,
            missed: 0,
            shown: 0.0,
            idle: false,
        });
        window.timed += 1;
        window.took += request.took;
        window.least = window.least.min(request.took);
        window.idle |= request.ahead == 0;
        if self.unloaded.is_some_and(|unloaded| request.took < unloaded * 9 / 8) {
            let shown = (request.ahead + 1) as f64 / request.took.as_secs_f64().max(1e-6);
            window.shown = window.shown.max(shown);
        }
        match request.deadline_outcome {
            DeadlineOutcome::Free => {}
            DeadlineOutcome::InTime => window.in_time += 1,
            DeadlineOutcome::Missed => window.missed += 1,
        }
        let age = at.saturating_duration_since(window.began);
        let waves = window.took / window.timed * WAVES;
        let is_full = age >= waves.clamp(SHORTEST, LONGEST / 2) && window.timed >= ENOUGH;
        if let Some(window) = self.window.take_if(|_| is_full || age > LONGEST)
            && is_full
        {
            self.close(&window, age, totals);
        }
    }

    fn close(&mut self, window: &Window, age: Duration, totals: Totals) {
        let done = totals.done.saturating_sub(window.totals.done) as f64;
        let missed = totals.missed.saturating_sub(window.totals.missed) as f64;
        // Late requests do not measure the capacity. But where hardly any other request completes, a low guess is better
        // than none.
        let rate = done.max((done + missed) * LOW_GUESS) / age.as_secs_f64();
        let took = window.took / window.timed;
        let late = f64::from(window.missed) / f64::from((window.missed + window.in_time).max(1));
        let is_late = late >= 0.125;
        let is_slow = self.unloaded.map(|unloaded| took >= unloaded * 3 / 2);
        let is_watched = self.watched == RecentMisses::Yes;
        let is_unknown = self.capacity.is_none() && is_watched;
        let too_much = !window.idle && (is_late || is_slow.unwrap_or(is_watched) || is_unknown);
        let shown =
            if window.missed == 0 && is_slow == Some(false) { window.shown.max(rate) * 1.25 } else { 0.0 };
        let capacity = match self.capacity {
            None => too_much.then_some(rate),
            // The throughput reached the estimate and no request waited: the capacity is higher.
            Some(capacity) if shown > capacity => Some(shown),
            Some(capacity) if rate > capacity => Some((capacity + rate) / 2.0),
            // A decrease is adopted in steps, because it may be a pause. The steps are larger the more requests were late.
            Some(capacity) if too_much => {
                Some(capacity + (rate.max(capacity / 2.0) - capacity) * late.max(0.25))
            }
            same => same,
        };
        self.capacity = capacity.map(|capacity| capacity.max(LEAST));
        self.unloaded = Some(match self.unloaded {
            None => window.least,
            Some(unloaded) if window.least < unloaded || is_watched => unloaded.min(window.least),
            // An increase is adopted slowly, because load may be its cause.
            Some(unloaded) => window.least.min(unloaded + unloaded / 64),
        });
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use proptest::prelude::*;

    use super::*;

    /// Simulates `servers` servers that take requests in order, each for `trip`, with `crowd` requests present at all
    /// times.
    fn crowded(load: &mut Load, start: Instant, servers: u64, trip: Duration, crowd: u64) -> Instant {
        let end = start + (trip * (crowd / servers) as u32 * 60).max(Duration::from_secs(1));
        let mut free: VecDeque<Instant> = (0..servers).map(|_| start).collect();
        let mut waiting: VecDeque<(Instant, u64)> = (0..crowd).map(|ahead| (start, ahead)).collect();
        let mut now = start;
        for done in 1.. {
            if now > end {
                break;
            }
            let (came, ahead) = waiting.pop_front().expect("a crowd");
            now = free.pop_front().expect("a server").max(came) + trip;
            free.push_back(now);
            let timed = TimedRequest { took: now - came, ahead, deadline_outcome: DeadlineOutcome::Free };
            load.ended(now, timed, Totals { done, ..Totals::default() });
            waiting.push_back((now, crowd - 1));
        }
        now
    }

    #[allow(clippy::disallowed_methods, reason = "any instant will do to count from")]
    fn start() -> Instant {
        Instant::now()
    }

    proptest! {
        #[test]
        fn capacity_is_what_gets_done(servers in 1..50_u64, trip in 1..200_u64, queue in 2..20_u64) {
            let trip = Duration::from_millis(trip);
            let mut load = Load { unloaded: Some(trip), ..Load::default() };
            crowded(&mut load, start(), servers, trip, servers * queue);
            let each = load.each().expect("there was too much to do").as_secs_f64();
            let truth = trip.as_secs_f64() / servers as f64;
            prop_assert!((0.75..1.34).contains(&(each / truth)), "{each} for {truth}");
        }

        #[test]
        fn a_plan_that_keeps_up_has_no_known_bound(servers in 1..50_u64, trip in 1..200_u64) {
            let mut load = Load::default();
            crowded(&mut load, start(), servers, Duration::from_millis(trip), servers);
            prop_assert_eq!(load.each(), None);
        }

        #[test]
        fn a_change_is_followed(factor in prop::sample::select(vec![0.1, 0.3, 3.0, 10.0])) {
            let trip = Duration::from_millis(10);
            let mut load = Load { unloaded: Some(trip), ..Load::default() };
            let now = crowded(&mut load, start(), 8, trip, 64);
            load.watch(RecentMisses::Yes);
            crowded(&mut load, now, 8, trip.mul_f64(factor), 64);
            let each = load.each().expect("there was too much to do").as_secs_f64();
            let truth = trip.as_secs_f64() * factor / 8.0;
            prop_assert!((0.7..1.4).contains(&(each / truth)), "{each} for {truth}");
        }

        #[test]
        fn whatever_comes_there_is_an_answer(
            ends in prop::collection::vec((0..3_000_u64, 0..5_000_u64, 0..1_000_u64, 0..4_u8), 0..400),
        ) {
            let (mut load, mut at, mut totals) = (Load::default(), start(), Totals::default());
            for (pause, took, ahead, what) in ends {
                at += Duration::from_millis(pause / 100);
                let deadline_outcome = [DeadlineOutcome::Free, DeadlineOutcome::InTime, DeadlineOutcome::Missed, DeadlineOutcome::InTime][usize::from(what)];
                let timed = TimedRequest { took: Duration::from_millis(took), ahead, deadline_outcome };
                totals.done += u64::from(deadline_outcome != DeadlineOutcome::Missed);
                totals.missed += u64::from(deadline_outcome == DeadlineOutcome::Missed);
                load.ended(at, timed, totals);
                prop_assert!(load.each().is_none_or(|each| !each.is_zero() && each <= Duration::from_secs(1_000)));
            }
        }
    }
}
