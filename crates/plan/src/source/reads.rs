//! Who answers the reads of a request.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crate::capture::Recorded;

/// Who answers the reads of a request.
#[derive(Default)]
pub(crate) enum Reads {
    /// The sources.
    #[default]
    Live,
    /// What they said before, at most so long ago.
    Stale(StaleReads),
    /// What they said to the request that was captured.
    Recorded(Recorded),
}

/// Reads of a node whose source did not make it.
pub(crate) struct StaleReads {
    /// The oldest that will do.
    pub(crate) max_age: Duration,
    /// The age of the oldest value used so far, in nanoseconds.
    oldest: AtomicU64,
}

impl StaleReads {
    pub(crate) fn new(max_age: Duration) -> StaleReads {
        StaleReads { max_age, oldest: AtomicU64::new(0) }
    }

    /// Notes that a value of this age was used.
    pub(crate) fn used(&self, age: Duration) {
        self.oldest.fetch_max(u64::try_from(age.as_nanos()).unwrap_or(u64::MAX), Ordering::Relaxed);
    }

    /// The age of the oldest value used.
    pub(crate) fn oldest(&self) -> Duration {
        Duration::from_nanos(self.oldest.load(Ordering::Relaxed))
    }
}
