//! The clock that runs go by: a seam, so that tests can bring a virtual one.

use std::pin::Pin;
use std::time::{Duration, Instant};

/// Tells the time and sets timers.
pub trait Clock: Send + Sync + 'static {
    /// The time now.
    fn now(&self) -> Instant;

    /// A future that ends once `now()` has reached `at`.
    fn sleep_until(&self, at: Instant) -> Sleep;
}

/// The future of [`Clock::sleep_until`].
pub type Sleep = Pin<Box<dyn Future<Output = ()> + Send>>;

/// The end of `time` that begins at `began`; `None` when it never ends: no time is given, or more than an `Instant`
/// can hold.
pub(crate) fn after(began: Instant, time: Option<Duration>) -> Option<Instant> {
    time.and_then(|time| began.checked_add(time))
}

/// The earlier of two points in time, where `None` never comes.
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
