//! A slot of a limit, for as long as it is held.

use std::time::Duration;

use super::adaptive::{Call, Moved, Verdict};
use super::table::{LONGEST_PAUSE, LimitKey, Limits};

/// One call allowed by a limit and all above it. Dropped, it counts as a call that says nothing of load, or as none
/// at all if none was made.
pub(crate) struct Permit {
    held: Option<(Limits, Call)>,
    key: LimitKey,
    /// What was counted of the limit's tokens.
    tokens: u32,
    made: Made,
}

/// Whether the call was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Made {
    Yes,
    No,
}

/// What a call's end tells its limit.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ended {
    pub(crate) verdict: Verdict,
    /// How long the backend asked to be left alone.
    pub(crate) retry_after: Option<Duration>,
    pub(crate) made: Made,
}

impl Ended {
    pub(crate) fn with(verdict: Verdict) -> Ended {
        Ended { verdict, retry_after: None, made: Made::Yes }
    }
}

impl Permit {
    pub(crate) fn new(limits: Limits, key: LimitKey, call: Call, tokens: u32) -> Permit {
        Permit { held: Some((limits, call)), key, tokens, made: Made::No }
    }

    /// The call is made.
    pub(crate) fn used(mut self) -> Permit {
        self.made = Made::Yes;
        self
    }

    pub(crate) fn key(&self) -> LimitKey {
        self.key
    }

    pub(crate) fn end(mut self, ended: Ended) -> Option<Moved> {
        let retry_after = ended.retry_after.map(|pause| pause.min(LONGEST_PAUSE));
        let (limits, call) = self.held.take()?;
        limits.end(self.key, call, self.tokens, Ended { retry_after, ..ended })
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        if let Some((limits, call)) = self.held.take() {
            let ended = Ended { made: self.made, ..Ended::with(Verdict::Failed) };
            limits.end(self.key, call, self.tokens, ended);
        }
    }
}
