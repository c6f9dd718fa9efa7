//! How much of a plan gets done a second, and what that says about a request at the door. No clock inside: times are
//! passed in.
//!
//! A plan that is asked for more than it can do keeps its requests waiting, and Little's law says for how long: those
//! under way, divided by those done a second. So all that must be known is how many a second it can do. That is seen
//! only while there is more to do than can be done; at other times the rate is just how much was asked for. Rates are
//! taken over windows of time, for the sake of plans of which a few requests are slow by themselves: that moves a
//! latency, and hardly a rate.

use std::time::{Duration, Instant};

/// A window is closed when it is this old.
const SHORTEST: Duration = Duration::from_millis(50);

/// And so many times as old as its requests took, for they may end in waves.
const WAVES: u32 = 2;

/// Older windows are given up: what lies between their ends is mostly silence.
const LONGEST: Duration = Duration::from_secs(2);

/// A window with fewer requests that were timed says nothing.
const ENOUGH: u32 = 8;

/// Where all were late, this part of them might have been in time.
const LOW_GUESS: f64 = 1.0 / 8.0;

/// The least that can be known, in requests a second: as long as hours are out of the question.
const LEAST: f64 = 1e-3;

/// What is known of a plan's load.
#[derive(Debug, Default)]
pub(crate) struct Load {
    /// Requests a second, once that was to be seen.
    capacity: Option<f64>,
    /// How long a request takes that nothing keeps waiting.
    unloaded: Option<Duration>,
    watched: Watched,
    window: Option<Window>,
}

/// Whether there was trouble lately.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Watched {
    /// All is well.
    #[default]
    No,
    /// Some were late, or refused.
    Yes,
}

#[derive(Debug)]
struct Window {
    began: Instant,
    /// As it began.
    totals: Totals,
    timed: u32,
    took: Duration,
    least: Duration,
    in_time: u32,
    missed: u32,
    /// The most requests a second that one of them shows to be possible, as it took no longer with those than alone.
    shown: f64,
    /// Whether some request found nothing under way: then the rate may be just what was asked for.
    idle: bool,
}

/// Counted since the plan was loaded.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Totals {
    /// Requests that ended by themselves, well or not.
    pub(crate) done: u64,
    /// Requests whose deadline passed.
    pub(crate) missed: u64,
}

/// A request that was timed, when it has ended.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Timed {
    pub(crate) took: Duration,
    /// How many were under way when it came.
    pub(crate) ahead: u64,
    pub(crate) kept: Kept,
}

/// What became of a request's deadline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kept {
    /// There was none.
    Free,
    /// It was kept.
    InTime,
    /// It passed.
    Missed,
}

impl Load {
    /// How much time each request adds to that of those behind it; `None` before the plan had too much to do.
    pub(crate) fn each(&self) -> Option<Duration> {
        self.capacity.map(|capacity| Duration::from_secs_f64(1.0 / capacity))
    }

    /// From now on all requests with a deadline are timed, for some were late; or no longer, for all is well.
    pub(crate) fn watch(&mut self, watched: Watched) {
        self.watched = watched;
        self.window = None;
    }

    /// Takes in that a request has ended.
    pub(crate) fn ended(&mut self, at: Instant, request: Timed, totals: Totals) {
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
        match request.kept {
            Kept::Free => {}
            Kept::InTime => window.in_time += 1,
            Kept::Missed => window.missed += 1,
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
        // Those that were too late are no measure of what can be done. But where hardly anything else gets done, a low
        // guess is better than none.
        let rate = done.max((done + missed) * LOW_GUESS) / age.as_secs_f64();
        let took = window.took / window.timed;
        let late = f64::from(window.missed) / f64::from((window.missed + window.in_time).max(1));
        let is_late = late >= 0.125;
        let is_slow = self.unloaded.map(|unloaded| took >= unloaded * 3 / 2);
        let is_watched = self.watched == Watched::Yes;
        let is_unknown = self.capacity.is_none() && is_watched;
        let too_much = !window.idle && (is_late || is_slow.unwrap_or(is_watched) || is_unknown);
        let shown =
            if window.missed == 0 && is_slow == Some(false) { window.shown.max(rate) * 1.25 } else { 0.0 };
        let capacity = match self.capacity {
            None => too_much.then_some(rate),
            // As much as was thought possible, and nobody had to wait: more is possible.
            Some(capacity) if shown > capacity => Some(shown),
            Some(capacity) if rate > capacity => Some((capacity + rate) / 2.0),
            // A rate that fell is believed in steps, for it may be a pause; the larger ones, the more were late.
            Some(capacity) if too_much => {
                Some(capacity + (rate.max(capacity / 2.0) - capacity) * late.max(0.25))
            }
            same => same,
        };
        self.capacity = capacity.map(|capacity| capacity.max(LEAST));
        self.unloaded = Some(match self.unloaded {
            None => window.least,
            Some(unloaded) if window.least < unloaded || is_watched => unloaded.min(window.least),
            // Followed slowly: it may be load.
            Some(unloaded) => window.least.min(unloaded + unloaded / 64),
        });
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use proptest::prelude::*;

    use super::*;

    /// Servers that take requests in turn, each for this long, while there are `crowd` of them at all times.
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
            let timed = Timed { took: now - came, ahead, kept: Kept::Free };
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
            load.watch(Watched::Yes);
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
                let kept = [Kept::Free, Kept::InTime, Kept::Missed, Kept::InTime][usize::from(what)];
                let timed = Timed { took: Duration::from_millis(took), ahead, kept };
                totals.done += u64::from(kept != Kept::Missed);
                totals.missed += u64::from(kept == Kept::Missed);
                load.ended(at, timed, totals);
                prop_assert!(load.each().is_none_or(|each| !each.is_zero() && each <= Duration::from_secs(1_000)));
            }
        }
    }
}
