//! Which failures are worth another try, and when.

use std::convert::Infallible;
use std::time::Duration;

use crate::workload::Failure;

/// How often and when a node is tried again. While it waits it holds no slot, and fresh work goes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Retry {
    /// Further tries after the first. Tries that the backend refused for its load do not count.
    pub rounds: u32,
    /// The pause before the first of them; each later one is twice as long, give or take a random quarter.
    pub base: Duration,
    /// The longest pause.
    pub longest: Duration,
}

/// What kind of failure an error is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Severity {
    /// May well succeed next time.
    Transient,
    /// The backend has too much to do; it may say for how long.
    Throttled {
        /// The pause it asks for.
        retry_after: Option<Duration>,
    },
    /// Will fail the same way again.
    Permanent,
}

/// An error that knows its kind.
pub trait Classified {
    /// The kind. Unless told otherwise, an error is permanent.
    fn severity(&self) -> Severity {
        Severity::Permanent
    }
}

impl Classified for () {}
impl Classified for String {}
impl Classified for Infallible {}

/// Refusals that one node takes before it fails; what they wait is up to the backend.
pub(crate) const MAX_REFUSALS: u32 = 1_000;

impl Retry {
    /// The pause before try `round` (from 0), with `random` to spread those that failed together.
    pub(crate) fn pause(&self, round: u32, random: u64) -> Duration {
        let full = self.base.saturating_mul(1 << round.min(30)).min(self.longest);
        let spread = (random % 1024) as u32;
        // Between three quarters and five quarters.
        (full / 4 * 3).saturating_add(full / 2048 * spread).min(self.longest)
    }
}

impl<E: Classified> Failure<E> {
    pub(crate) fn severity(&self) -> Severity {
        match self {
            Failure::Error(error) => error.severity(),
            Failure::Timeout(_) => Severity::Transient,
            Failure::Panic(_) | Failure::Deadline | Failure::Abandoned => Severity::Permanent,
        }
    }
}

/// Numbers for spreading pauses: SplitMix64.
pub(crate) struct Spread(pub(crate) u64);

impl Spread {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = self.0;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        bits ^ (bits >> 31)
    }
}
