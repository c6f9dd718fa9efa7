//! How long a run works in place before it lets others go first.

use std::time::{Duration, Instant};

/// Inline work since the last yield. The clock is read every few nodes, as few as their pace asks for.
pub(super) struct Slice {
    pub(super) now: Instant,
    pub(super) began: Instant,
    pub(super) stride: u32,
    pub(super) until_check: u32,
}

/// A run that works inline lets others on its thread go first after this long.
const SLICE: Duration = Duration::from_micros(100);
/// Aim of the time between two looks at the clock.
const LOOK_EVERY: Duration = Duration::from_micros(20);
const MAX_STRIDE: u32 = 64;

impl Slice {
    pub(super) fn new(now: Instant) -> Slice {
        Slice { now, began: now, stride: 1, until_check: 1 }
    }

    /// Whether it has lasted long enough.
    pub(super) fn is_over(&self) -> bool {
        self.now - self.began >= SLICE
    }

    pub(super) fn begin(&mut self, now: Instant) {
        self.now = now;
        self.began = now;
        self.until_check = self.stride;
    }

    /// Sets the pace so that the next look comes about [`LOOK_EVERY`] from now.
    pub(super) fn look(&mut self, now: Instant) {
        let took = (now - self.now).max(Duration::from_nanos(1));
        let fitting = self.stride as u128 * LOOK_EVERY.as_nanos() / took.as_nanos();
        self.stride = fitting.clamp(1, (self.stride * 4).min(MAX_STRIDE) as u128) as u32;
        self.until_check = self.stride;
        self.now = now;
    }
}
