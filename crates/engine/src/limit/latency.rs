//! The latency of calls, and whether it differs from a known latency by more than chance.

use std::cmp::Ordering;
use std::time::Duration;

/// A mean latency and how well it is known.
#[derive(Clone, Copy, Debug)]
pub(super) struct MeanLatency {
    seconds: f64,
    /// The number of calls it was measured with, up to [`MAX_CALLS`].
    calls: u32,
}

/// The calls of one window.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Window {
    calls: u32,
    mean: f64,
    /// The sum of the squared distances from the mean.
    squared_distances: f64,
    in_flight: u64,
}

/// A window with fewer calls is not judged.
const MIN_CALLS: u32 = 16;
/// A window ends after this many calls, however much their latencies vary.
const MAX_CALLS: u32 = 256;
/// The highest standard error at which a window is judged, as a share of its mean.
const MAX_RELATIVE_ERROR: f64 = 0.12;
/// A difference of more than this many standard errors is not chance.
const MIN_STANDARD_ERRORS: f64 = 2.5;
/// A call counts with at most this many times the usual latency, so that a few hanging calls do not outweigh the rest.
const OUTLIER_FACTOR: f64 = 4.0;

impl MeanLatency {
    /// A latency from outside, taken as well known.
    pub(super) fn of(latency: Duration) -> MeanLatency {
        MeanLatency { seconds: latency.as_secs_f64(), calls: MAX_CALLS }
    }

    pub(super) fn latency(&self) -> Duration {
        Duration::from_secs_f64(self.seconds)
    }

    /// Moves towards the mean of a window.
    pub(super) fn update(&mut self, window: &Window) {
        let weight = f64::from(window.calls) / f64::from(self.calls + window.calls);
        self.seconds += weight * (window.mean - self.seconds);
        self.calls = MAX_CALLS.min(self.calls + window.calls);
    }

    /// The other mean if it is lower and well known, else this one.
    pub(super) fn min_if_certain(self, other: MeanLatency) -> MeanLatency {
        if other.calls == MAX_CALLS && other.seconds < self.seconds { other } else { self }
    }

    /// The number of calls in flight at which none queues, given that `level` calls take `queued` each.
    pub(super) fn calls_without_queue(&self, level: u32, queued: MeanLatency) -> u32 {
        (f64::from(level) * self.seconds / queued.seconds).round() as u32
    }
}

impl Window {
    pub(super) fn add(&mut self, latency: Duration, usual: Option<MeanLatency>, in_flight: u32) {
        let longest = usual.map_or(f64::INFINITY, |usual| usual.seconds * OUTLIER_FACTOR);
        let seconds = latency.as_secs_f64().min(longest);
        self.calls += 1;
        let distance = seconds - self.mean;
        self.mean += distance / f64::from(self.calls);
        self.squared_distances += distance * (seconds - self.mean);
        self.in_flight += u64::from(in_flight);
    }

    pub(super) fn mean(&self) -> MeanLatency {
        MeanLatency { seconds: self.mean, calls: self.calls.min(MAX_CALLS) }
    }

    /// The mean number of calls in flight.
    pub(super) fn in_flight(&self) -> u32 {
        (self.in_flight as f64 / f64::from(self.calls)).round() as u32
    }

    /// The window is full: it has a whole round of `limit` calls, and enough of them to know their mean.
    pub(super) fn is_full(&self, limit: u32) -> bool {
        self.calls >= limit.max(MIN_CALLS)
            && (self.calls >= MAX_CALLS || self.error() <= MAX_RELATIVE_ERROR * self.mean)
    }

    /// Compares the mean of the window with `factor` times a known mean; `None` while the difference could be chance.
    pub(super) fn compare(&self, known: MeanLatency, factor: f64) -> Option<Ordering> {
        let level = known.seconds * factor;
        // The known latency is assumed to vary as much as this window does, in proportion.
        let scatter = (f64::from(self.calls) / f64::from(known.calls)).sqrt() * level / self.mean;
        let error = self.error() * scatter.hypot(1.0);
        let distance = self.mean - level;
        let settled = self.calls >= MAX_CALLS || distance.abs() > MIN_STANDARD_ERRORS * error;
        settled.then(|| distance.total_cmp(&0.0))
    }

    fn error(&self) -> f64 {
        self.squared_distances.sqrt() / f64::from(self.calls)
    }
}
