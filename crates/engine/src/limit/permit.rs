//! The permit: a slot of a limit while it is in use.

use std::time::Duration;

use super::adaptive::{Call, CallOutcome, LimitChange};
use super::table::{LONGEST_PAUSE, LimitKey, Limits};

/// The right to make one call, granted by a limit and its parents. Dropping the permit counts as a call that was given
/// up, or as no call if none was made.
pub(crate) struct Permit {
    held: Option<(Limits, Call)>,
    key: LimitKey,
    /// The tokens that were counted for the call.
    tokens: u32,
    /// Whether the call was made. If not, its requests and tokens are returned.
    pub(crate) call_made: bool,
}

/// The end of a call, as reported to its limit.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CallEnd {
    pub(crate) outcome: CallOutcome,
    /// The pause that the backend requested.
    pub(crate) retry_after: Option<Duration>,
}

impl CallEnd {
    pub(crate) fn with(outcome: CallOutcome) -> CallEnd {
        CallEnd { outcome, retry_after: None }
    }
}

impl Permit {
    pub(crate) fn new(limits: Limits, key: LimitKey, call: Call, tokens: u32) -> Permit {
        Permit { held: Some((limits, call)), key, tokens, call_made: false }
    }

    pub(crate) fn key(&self) -> LimitKey {
        self.key
    }

    pub(crate) fn end(mut self, ended: CallEnd) -> Option<LimitChange> {
        self.give_back(ended)
    }

    fn give_back(&mut self, ended: CallEnd) -> Option<LimitChange> {
        let (limits, call) = self.held.take()?;
        let retry_after = ended.retry_after.map(|pause| pause.min(LONGEST_PAUSE));
        let ended = self.call_made.then_some(CallEnd { retry_after, ..ended });
        limits.end(self.key, call, self.tokens, ended)
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        self.give_back(CallEnd::with(CallOutcome::GivenUp));
    }
}
