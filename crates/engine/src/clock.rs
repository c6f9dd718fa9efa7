//! The clock of an engine: a trait, so that tests can use virtual time.

use std::pin::Pin;
use std::time::{Duration, Instant};

/// Tells the time and sets timers.
pub trait Clock: Send + Sync + 'static {
    /// The time now.
    fn now(&self) -> Instant;

    /// A future that ends when `now()` has reached `at`.
    fn sleep_until(&self, at: Instant) -> Sleep;
}

/// The future of [`Clock::sleep_until`].
pub type Sleep = Pin<Box<dyn Future<Output = ()> + Send>>;

/// `began + time`; `None` (never) if there is no time, or more than an `Instant` can hold.
pub(crate) fn after(began: Instant, time: Option<Duration>) -> Option<Instant> {
    time.and_then(|time| began.checked_add(time))
}

/// The earlier of two points in time; `None` is never.
pub(crate) fn earlier(a: Option<Instant>, b: Option<Instant>) -> Option<Instant> {
    match (a, b) {
        (Some(a), Some(b)) => Some(a.min(b)),
        (a, b) => a.or(b),
    }
}

/// The machine's monotonic clock, with tokio's timers (in steps of 1 ms).
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    #[allow(clippy::disallowed_methods, reason = "this is the seam that the ban leads to")]
    fn now(&self) -> Instant {
        Instant::now()
    }

    fn sleep_until(&self, at: Instant) -> Sleep {
        Box::pin(tokio::time::sleep_until(at.into()))
    }
}
