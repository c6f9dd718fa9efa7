//! The ceiling: the number of calls that was too many for a backend, and when to try it again.

use super::bounds::Ramp;

/// The lowest number of calls in flight that is known to be too many.
///
/// A limit returns to just below it immediately. It goes past it only after a delay, by one call; while such probes
/// succeed, the backend has grown, and their steps double.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ceiling {
    level: Option<u32>,
    ramp: Ramp,
    step: u32,
    /// The number of times in a row that about the same level was found, up to [`MAX_CONFIRMED`].
    confirmed: u32,
    /// Whether a window passed since the level was set. If not, the backend probably refuses every call.
    window_passed: bool,
}

/// The next target of a limit, after a window without problems.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NextTarget {
    Stay,
    /// Back to a limit that worked before.
    Return(u32),
    /// To a limit that was not tried yet, or that was too high.
    Probe(u32),
}

/// The ceiling is probed after this many calls and rounds; the delay doubles each time the ceiling is confirmed. So
/// a backend with a hard limit refuses less than one call in a hundred.
const PROBE_DELAY_CALLS: u32 = 16;
const PROBE_DELAY_ROUNDS: u32 = 2;
/// Confirmations after which the delay no longer grows.
const MAX_CONFIRMED: u32 = 3;

impl Ceiling {
    pub(super) fn unknown(ramp: Ramp, start: u32) -> Ceiling {
        let step = match ramp {
            Ramp::Double => start,
            Ramp::One => 1,
        };
        Ceiling { level: None, ramp, step, confirmed: 0, window_passed: false }
    }

    pub(super) fn level(&self) -> Option<u32> {
        self.level
    }

    /// Records that `level` calls in flight are too many.
    pub(super) fn set(&mut self, level: u32) {
        let same = self.level.is_some_and(|known| known.abs_diff(level) <= 1 + known / 8);
        self.confirmed = if same && self.window_passed { MAX_CONFIRMED.min(self.confirmed + 1) } else { 0 };
        self.window_passed = false;
        self.level = Some(level);
        self.step = 1;
    }

    /// Records that `limit` calls in flight are not too many.
    pub(super) fn raise_above(&mut self, limit: u32) {
        self.level = self.level.max(Some(limit.saturating_add(1)));
    }

    /// The next target of a limit that has not changed for `calls_at_limit` calls.
    pub(super) fn next(&mut self, limit: u32, calls_at_limit: u32) -> NextTarget {
        self.window_passed = true;
        match self.level {
            Some(level) if limit.saturating_add(1) < level => NextTarget::Return(level - 1),
            Some(_) if self.step == 1 && calls_at_limit < self.probe_delay(limit) => NextTarget::Stay,
            _ => {
                let target = limit.saturating_add(self.step);
                if self.level.is_some() || self.ramp == Ramp::Double {
                    self.step = self.step.saturating_mul(2).min(target);
                }
                if self.level.is_some() {
                    self.raise_above(limit);
                }
                NextTarget::Probe(target)
            }
        }
    }

    fn probe_delay(&self, limit: u32) -> u32 {
        PROBE_DELAY_CALLS.max(limit.saturating_mul(PROBE_DELAY_ROUNDS)).saturating_mul(1 << self.confirmed)
    }
}
