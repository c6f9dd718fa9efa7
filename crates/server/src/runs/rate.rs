//! A limit of the details that are kept per second. Without it, an outage would fill the registry with copies of one
//! failure.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// The start of the current second, and the number of runs in it.
#[derive(Default)]
pub(crate) struct Rate(Mutex<(Option<Instant>, u32)>);

impl Rate {
    /// Counts one more, and returns whether the rate is within `most` per second.
    pub(crate) fn allows(&self, most: u32, now: Instant) -> bool {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let is_over = |began: Instant| now.saturating_duration_since(began) >= Duration::from_secs(1);
        if state.0.is_none_or(is_over) {
            *state = (Some(now), 0);
        }
        state.1 += 1;
        state.1 <= most
    }
}
