//! Retries: which failures are retried, how often, and after which pause.

use std::convert::Infallible;
use std::error::Error;
use std::fmt;
use std::time::Duration;

use crate::workload::{BoxError, Failure};

/// The number and the times of a node's retries. A node that waits for a retry holds no slot of a limit, and nodes that
/// were not tried yet go first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Retry {
    /// The number of retries before those of [`salvage`](Self::salvage). Tries that end as [`Severity::Throttled`] do not count. Default: 3.
    pub rounds: u32,
    /// The pause before the first retry. It doubles per retry and varies by a random quarter. Default: 50 ms.
    pub base: Duration,
    /// The longest pause of these retries. Default: 5 s.
    pub longest: Duration,
    /// Further retries, with longer pauses, of a node for which the others were not enough. Default: none.
    pub salvage: Salvage,
}

impl Default for Retry {
    fn default() -> Retry {
        let (base, longest) = (Duration::from_millis(50), Duration::from_secs(5));
        Retry { rounds: 3, base, longest, salvage: Salvage::default() }
    }
}

/// The last retries of a node, for a backend that is down for longer than a few quick retries last.
///
/// ```
/// use anabranch_engine::retry::{Retry, Salvage};
/// use std::time::Duration;
/// // Three quick retries, then one after about 30 s and one about 60 s after that.
/// let retry = Retry { salvage: Salvage { rounds: 2, ..Salvage::default() }, ..Retry::default() };
/// assert_eq!(retry.salvage.pause, Duration::from_secs(30));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Salvage {
    /// The number of these retries. Default: 0.
    pub rounds: u32,
    /// The pause before the first of them. It doubles per retry and varies by a random quarter; [`Retry::longest`] does
    /// not bound it. Default: 30 s.
    pub pause: Duration,
}

impl Default for Salvage {
    fn default() -> Salvage {
        Salvage { rounds: 0, pause: Duration::from_secs(30) }
    }
}

/// The kind of a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Severity {
    /// A retry may succeed.
    Transient,
    /// The backend is overloaded (HTTP 429 or 503).
    Throttled {
        /// The pause that the backend requests, if any.
        retry_after: Option<Duration>,
    },
    /// A retry would fail in the same way.
    Permanent,
}

/// An error that says whether a retry may help.
///
/// Implemented for [`BoxError`], so that a node can fail with any error.
pub trait Classified {
    /// The kind of the failure. The default is [`Severity::Transient`], because a node is retried only if its policy
    /// has retries.
    fn severity(&self) -> Severity {
        Severity::Transient
    }
}

impl Classified for () {}
impl Classified for String {}
impl Classified for Infallible {}

/// The severity of the first [`ClassifiedError`] among the error and its sources.
impl Classified for BoxError {
    fn severity(&self) -> Severity {
        let error: &(dyn Error + 'static) = &**self;
        let chain = std::iter::successors(Some(error), |error| (*error).source());
        let classified = chain.take(MAX_SOURCES).find_map(|error| error.downcast_ref::<ClassifiedError>());
        classified.map_or(Severity::Transient, |error| error.severity)
    }
}

/// The number of sources of an error that are searched for a severity.
const MAX_SOURCES: usize = 64;

/// An error with its severity, for nodes whose errors are boxed.
///
/// ```
/// use anabranch_engine::retry::{Classified, ClassifiedError, Severity};
/// use anabranch_engine::workload::BoxError;
///
/// fn parse(text: &str) -> Result<u64, BoxError> {
///     Ok(text.parse().map_err(|error| ClassifiedError::new(Severity::Permanent, error))?)
/// }
///
/// let error = parse("x").unwrap_err();
/// assert_eq!((error.severity(), error.to_string().as_str()), (Severity::Permanent, "invalid digit found in string"));
/// ```
#[derive(Debug)]
pub struct ClassifiedError {
    severity: Severity,
    error: BoxError,
}

impl ClassifiedError {
    /// An error with this severity.
    pub fn new(severity: Severity, error: impl Into<BoxError>) -> ClassifiedError {
        ClassifiedError { severity, error: error.into() }
    }
}

impl fmt::Display for ClassifiedError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.error.fmt(f)
    }
}

impl Error for ClassifiedError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.error.source()
    }
}

impl Classified for ClassifiedError {
    fn severity(&self) -> Severity {
        self.severity
    }
}

/// Throttled tries after which a node fails. The backend decides how long the pauses between them are.
pub(crate) const MAX_REFUSALS: u32 = 1_000;

impl Retry {
    /// The pause before retry `round` (from 0). `random` spreads the retries of nodes that failed at the same time.
    pub(crate) fn pause(&self, round: u32, random: u64) -> Duration {
        spread(doubled(self.base, round).min(self.longest), random).min(self.longest)
    }

    /// The pause after the `failed`th failed try, or `None` if that was the last.
    pub(crate) fn pause_after(&self, failed: u32, random: u64) -> Option<Duration> {
        let retry = failed - 1;
        match retry.checked_sub(self.rounds) {
            None => Some(self.pause(retry, random)),
            Some(round) if round < self.salvage.rounds => {
                Some(spread(doubled(self.salvage.pause, round), random))
            }
            Some(_) => None,
        }
    }
}

fn doubled(pause: Duration, times: u32) -> Duration {
    pause.saturating_mul(1 << times.min(30))
}

/// Between three quarters and five quarters of a pause.
fn spread(pause: Duration, random: u64) -> Duration {
    let jitter = (random % 1024) as u32;
    (pause / 4 * 3).saturating_add(pause / 2048 * jitter)
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

/// Random numbers for the pauses before retries (SplitMix64).
pub(crate) struct Jitter(pub(crate) u64);

impl Jitter {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = self.0;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        bits ^ (bits >> 31)
    }
}
