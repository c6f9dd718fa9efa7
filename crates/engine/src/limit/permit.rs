//! A slot of a limit, for as long as it is held.

use std::time::Duration;

use super::adaptive::{Call, Moved, Verdict};
use super::table::{LONGEST_PAUSE, LimitKey, Limits};

/// One call allowed by a limit and all above it. A permit that is dropped counts as a call that was given up, or as
/// none if no call was made.
pub(crate) struct Permit {
    held: Option<(Limits, Call)>,
    key: LimitKey,
    /// What was counted of the limit's tokens.
    tokens: u32,
    /// Whether the call was made. One that was not costs nothing.
    pub(crate) call_made: bool,
}

/// What a call's end tells its limit.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ended {
    pub(crate) verdict: Verdict,
    /// How long the backend asked to be left alone.
    pub(crate) retry_after: Option<Duration>,
}

impl Ended {
    pub(crate) fn with(verdict: Verdict) -> Ended {
        Ended { verdict, retry_after: None }
    }
}

impl Permit {
    pub(crate) fn new(limits: Limits, key: LimitKey, call: Call, tokens: u32) -> Permit {
        Permit { held: Some((limits, call)), key, tokens, call_made: false }
    }

    pub(crate) fn key(&self) -> LimitKey {
        self.key
    }

    pub(crate) fn end(mut self, ended: Ended) -> Option<Moved> {
        self.give_back(ended)
    }

    fn give_back(&mut self, ended: Ended) -> Option<Moved> {
        let (limits, call) = self.held.take()?;
        let retry_after = ended.retry_after.map(|pause| pause.min(LONGEST_PAUSE));
        let ended = self.call_made.then_some(Ended { retry_after, ..ended });
        limits.end(self.key, call, self.tokens, ended)
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        self.give_back(Ended::with(Verdict::GivenUp));
    }
}
