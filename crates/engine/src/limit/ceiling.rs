//! What is known to be too much for a backend, and when to find out whether it still is.

use super::bounds::Ramp;

/// The fewest calls in flight known to be too many.
///
/// A limit returns to just below it at once, but goes past it only after a while, and by one. As long as that holds,
/// the backend has grown, and the steps double.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ceiling {
    level: Option<u32>,
    ramp: Ramp,
    step: u32,
    /// How often in a row it was found in about the same place, up to [`SURE`].
    confirmed: u32,
    /// A window was well since it was found. Else this is rather a backend that refuses all it is asked.
    held: bool,
}

/// Where a limit goes after a window in which all was well.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Next {
    Stay,
    /// Up to where it has been before.
    Return(u32),
    /// Past that.
    Probe(u32),
}

/// A ceiling is let be for so many calls, and so many rounds; twice as many for each time it is confirmed. Of the
/// calls to a backend that refuses the first one too many, not even one in a hundred is refused in the end.
const PATIENCE_CALLS: u32 = 16;
const PATIENCE_ROUNDS: u32 = 2;
/// Confirmations after which patience no longer grows.
const SURE: u32 = 3;

impl Ceiling {
    pub(super) fn unknown(ramp: Ramp, start: u32) -> Ceiling {
        let step = match ramp {
            Ramp::Double => start,
            Ramp::One => 1,
        };
        Ceiling { level: None, ramp, step, confirmed: 0, held: false }
    }

    pub(super) fn level(&self) -> Option<u32> {
        self.level
    }

    /// So many calls in flight are too many.
    pub(super) fn found(&mut self, level: u32) {
        let same = self.level.is_some_and(|known| known.abs_diff(level) <= 1 + known / 8);
        self.confirmed = if same && self.held { SURE.min(self.confirmed + 1) } else { 0 };
        self.held = false;
        self.level = Some(level);
        self.step = 1;
    }

    /// So many calls in flight are not too many, and can be returned to.
    pub(super) fn is_above(&mut self, limit: u32) {
        self.level = self.level.max(Some(limit.saturating_add(1)));
    }

    /// Where a limit goes that has been what it is for `held` calls.
    pub(super) fn next(&mut self, limit: u32, held: u32) -> Next {
        self.held = true;
        match self.level {
            Some(level) if limit.saturating_add(1) < level => Next::Return(level - 1),
            Some(_) if self.step == 1 && held < self.patience(limit) => Next::Stay,
            _ => {
                let goal = limit.saturating_add(self.step);
                if self.level.is_some() || self.ramp == Ramp::Double {
                    self.step = self.step.saturating_mul(2).min(goal);
                }
                if self.level.is_some() {
                    self.is_above(limit);
                }
                Next::Probe(goal)
            }
        }
    }

    fn patience(&self, limit: u32) -> u32 {
        PATIENCE_CALLS.max(limit.saturating_mul(PATIENCE_ROUNDS)).saturating_mul(1 << self.confirmed)
    }
}
