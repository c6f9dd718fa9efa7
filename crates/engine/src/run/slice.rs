//! The time for which a run works in place before it yields to other tasks.

use std::time::{Duration, Instant};

/// The inline work since the last yield. The clock is read after `stride` nodes, fewer the longer they take.
pub(super) struct Slice {
    pub(super) now: Instant,
    pub(super) began: Instant,
    pub(super) stride: u32,
    pub(super) until_check: u32,
}

/// A run yields after this much inline work.
const SLICE: Duration = Duration::from_micros(100);
/// The intended time between two clock reads.
const LOOK_EVERY: Duration = Duration::from_micros(20);
const MAX_STRIDE: u32 = 64;

impl Slice {
    pub(super) fn new(now: Instant) -> Slice {
        Slice { now, began: now, stride: 1, until_check: 1 }
    }

    /// Whether to yield.
    pub(super) fn is_over(&self) -> bool {
        self.now - self.began >= SLICE
    }

    pub(super) fn begin(&mut self, now: Instant) {
        self.now = now;
        self.began = now;
        self.until_check = self.stride;
    }

    /// Takes a clock read, and sets the stride so that the next one comes about [`LOOK_EVERY`] later.
    pub(super) fn look(&mut self, now: Instant) {
        let took = (now - self.now).max(Duration::from_nanos(1));
        let fitting = self.stride as u128 * LOOK_EVERY.as_nanos() / took.as_nanos();
        self.stride = fitting.clamp(1, (self.stride * 4).min(MAX_STRIDE) as u128) as u32;
        self.until_check = self.stride;
        self.now = now;
    }
}
