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

/// And this much older than requests take, since they may end in waves.
const WAVES: u32 = 4;

/// Older windows are given up: what lies between their ends is mostly silence.
const LONGEST: Duration = Duration::from_secs(2);

/// A window with fewer requests that were timed says nothing.
const ENOUGH: u32 = 8;

/// The least that can be known, in requests a second: as long as hours are out of the question.
const LEAST: f64 = 1e-3;

/// What is known of a plan's load.
#[derive(Debug, Default)]
pub(crate) struct Load {
    /// Requests a second, once that was to be seen.
    capacity: Option<f64>,
    /// How long a request takes that nothing keeps waiting.
    unloaded: Option<Duration>,
    window: Option<Window>,
}

#[derive(Debug)]
struct Window {
    began: Instant,
    /// As it began.
    totals: Totals,
    timed: u32,
    took: Duration,
    in_time: u32,
    missed: u32,
    /// Whether some request found nothing under way: then the rate may be just what was asked for.
    idle: bool,
}

/// Counted since the plan was loaded.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Totals {
    /// Requests that ended by themselves, well or not.
    pub(crate) done: u64,
    /// Requests that were refused because of load.
    pub(crate) refused: u64,
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

    /// Forgets the window that is open.
    pub(crate) fn begin_anew(&mut self) {
        self.window = None;
    }

    /// Takes in that a request has ended.
    pub(crate) fn ended(&mut self, at: Instant, request: Timed, totals: Totals) {
        let window = self.window.get_or_insert(Window {
            began: at,
            totals,
            timed: 0,
            took: Duration::ZERO,
            in_time: 0,
            missed: 0,
            idle: false,
        });
        window.timed += 1;
        window.took += request.took;
        window.idle |= request.ahead == 0;
        match request.kept {
            Kept::Free => {}
            Kept::InTime => window.in_time += 1,
            Kept::Missed => window.missed += 1,
        }
        let age = at.saturating_duration_since(window.began);
        let waves = self.unloaded.map_or(SHORTEST, |unloaded| unloaded * WAVES);
        if age < waves.clamp(SHORTEST, LONGEST / 2) {
            return;
        }
        if let Some(window) = self.window.take()
            && window.timed >= ENOUGH
            && age <= LONGEST
        {
            self.close(&window, age, totals);
        }
    }

    /// A request that was let in against the odds took this long. They were wrong if that was well below them.
    pub(crate) fn tried(&mut self, request: Timed) {
        let Some(capacity) = self.capacity else { return };
        let shown = (request.ahead + 1) as f64 / request.took.as_secs_f64().max(1e-9);
        if request.kept == Kept::InTime && shown > capacity * 4.0 / 3.0 {
            self.capacity = Some((capacity + shown) / 2.0).map(|half_way| half_way.min(capacity * 2.0));
        }
    }

    fn close(&mut self, window: &Window, age: Duration, totals: Totals) {
        let rate = (totals.done - window.totals.done) as f64 / age.as_secs_f64();
        let took = window.took / window.timed;
        let is_calm = window.missed == 0 && totals.refused == window.totals.refused;
        let is_late = window.missed > 0 && window.missed * 8 >= window.missed + window.in_time;
        let is_slow = match self.unloaded {
            Some(unloaded) => took >= unloaded * 3 / 2,
            None => !is_calm,
        };
        let too_much = !window.idle && (is_late || is_slow || (self.capacity.is_none() && !is_calm));
        self.capacity = match self.capacity {
            None => too_much.then_some(rate),
            Some(capacity) if rate > capacity => Some((capacity + rate) / 2.0),
            // A rate that fell is believed in steps: it may be a pause.
            Some(capacity) if too_much => Some(capacity + (rate.max(capacity / 2.0) - capacity) / 4.0),
            same => same,
        };
        self.capacity = self.capacity.map(|capacity| capacity.max(LEAST));
        if is_calm {
            self.unloaded = Some(match self.unloaded {
                None => took,
                Some(unloaded) if took < unloaded => (unloaded + took) / 2,
                // Followed slowly: it may be load.
                Some(unloaded) => took.min(unloaded + unloaded / 64),
            });
        }
    }
}
