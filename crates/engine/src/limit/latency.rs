//! How long calls take, and whether that differs from what was known by more than chance.

use std::cmp::Ordering;
use std::time::Duration;

/// How long calls take on average, as far as that is known.
#[derive(Clone, Copy, Debug)]
pub(super) struct Mean {
    seconds: f64,
    /// How many calls it is known from, up to [`MOST`].
    calls: u32,
}

/// The calls of one window.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Window {
    calls: u32,
    mean: f64,
    /// The sum of squared distances from the mean.
    spread: f64,
    in_flight: u64,
}

/// Fewer calls tell nothing.
const FEWEST: u32 = 16;
/// More calls than this are not waited for, nor remembered.
const MOST: u32 = 256;
/// The standard error of a mean that is clear enough to judge by, as a share of it.
const CLEAR: f64 = 0.12;
/// Standard errors that are not chance.
const SURE: f64 = 2.5;
/// A call counts for at most so many usual ones, lest the few that hang outweigh the rest.
const OUTLIER: f64 = 4.0;

impl Mean {
    /// What somebody vouches for.
    pub(super) fn of(latency: Duration) -> Mean {
        Mean { seconds: latency.as_secs_f64(), calls: MOST }
    }

    pub(super) fn latency(&self) -> Duration {
        Duration::from_secs_f64(self.seconds)
    }

    /// Moves towards a window's mean.
    pub(super) fn learn(&mut self, window: &Window) {
        let weight = f64::from(window.calls) / f64::from(self.calls + window.calls);
        self.seconds += weight * (window.mean - self.seconds);
        self.calls = MOST.min(self.calls + window.calls);
    }

    /// The other one, if that is less and well known.
    pub(super) fn least(self, other: Mean) -> Mean {
        if other.calls == MOST && other.seconds < self.seconds { other } else { self }
    }

    /// How many calls in flight take this long each, when `level` of them queue and take `queued` each.
    pub(super) fn fits(&self, level: u32, queued: Mean) -> u32 {
        (f64::from(level) * self.seconds / queued.seconds).round() as u32
    }
}

impl Window {
    pub(super) fn add(&mut self, latency: Duration, usual: Option<Mean>, in_flight: u32) {
        let longest = usual.map_or(f64::INFINITY, |usual| usual.seconds * OUTLIER);
        let seconds = latency.as_secs_f64().min(longest);
        self.calls += 1;
        let distance = seconds - self.mean;
        self.mean += distance / f64::from(self.calls);
        self.spread += distance * (seconds - self.mean);
        self.in_flight += u64::from(in_flight);
    }

    pub(super) fn mean(&self) -> Mean {
        Mean { seconds: self.mean, calls: self.calls.min(MOST) }
    }

    /// Calls in flight, on average.
    pub(super) fn in_flight(&self) -> u32 {
        (self.in_flight as f64 / f64::from(self.calls)).round() as u32
    }

    /// Whether a whole round of `limit` calls has been seen, and enough to know their mean.
    pub(super) fn is_full(&self, limit: u32) -> bool {
        self.calls >= limit.max(FEWEST) && (self.calls >= MOST || self.error() <= CLEAR * self.mean)
    }

    /// On which side of `factor` times a known mean this one lies; `None` while that could be chance.
    pub(super) fn side(&self, known: Mean, factor: f64) -> Option<Ordering> {
        let level = known.seconds * factor;
        // Calls are taken to scatter as they do in this window, in proportion.
        let scatter = (f64::from(self.calls) / f64::from(known.calls)).sqrt() * level / self.mean;
        let error = self.error() * scatter.hypot(1.0);
        let distance = self.mean - level;
        let settled = self.calls >= MOST || distance.abs() > SURE * error;
        settled.then(|| distance.total_cmp(&0.0))
    }

    fn error(&self) -> f64 {
        self.spread.sqrt() / f64::from(self.calls)
    }
}
