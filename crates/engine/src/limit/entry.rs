//! One limit of a table: its slots, its rates and its queue.

use std::collections::{BTreeMap, VecDeque};
use std::time::Instant;

use super::super::sync::Arc;
use super::adaptive::Adaptive;
use super::bucket::{Bucket, Quota};
use super::table::{LimitKey, Notice, SlotReceiver};

/// The state of one limit.
pub(super) struct Entry {
    pub(super) name: String,
    pub(super) concurrency: ConcurrencyState,
    pub(super) requests: Option<Bucket>,
    pub(super) tokens: Option<Bucket>,
    pub(super) parent: Option<u32>,
    pub(super) in_flight: u32,
    /// Calls that were made and have ended, and those among them that were refused.
    pub(super) calls: u64,
    pub(super) refused: u64,
    pub(super) cooling_until: Option<Instant>,
    pub(super) waiting: BTreeMap<u64, WaitingRun>,
    /// Of a limit without parent: itself and its descendants that have waiting runs, in the order they are served.
    pub(super) turns: VecDeque<u32>,
    /// The run that was last asked to look again, by its arrival, and the time that it was asked for.
    pub(super) asked_to_look: Option<(u64, Instant)>,
}

/// The maximum number of calls in flight, with the knowledge of an adaptive limit.
pub(super) enum ConcurrencyState {
    Fixed(u32),
    Adaptive(Box<Adaptive>),
}

/// A run in the queue of a limit.
pub(super) struct WaitingRun {
    pub(super) receiver: Arc<dyn SlotReceiver>,
    pub(super) tokens: u32,
}

impl Entry {
    /// Whether its allowance changes with time.
    pub(super) fn is_timed(&self) -> bool {
        self.cooling_until.is_some()
            || self.requests.is_some()
            || self.tokens.is_some()
            || matches!(self.concurrency, ConcurrencyState::Adaptive(_))
    }

    pub(super) fn limit(&self) -> u32 {
        match &self.concurrency {
            ConcurrencyState::Fixed(limit) => *limit,
            ConcurrencyState::Adaptive(adaptive) => adaptive.limit(),
        }
    }

    pub(super) fn cool(&mut self, until: Instant) {
        self.cooling_until = Some(self.cooling_until.map_or(until, |known| known.max(until)));
    }

    pub(super) fn has_room(&self, now: Instant) -> Result<(), Option<Instant>> {
        match self.cooling_until {
            Some(until) if until > now => Err(Some(until)),
            _ if self.in_flight >= self.limit() => Err(None),
            _ => Ok(()),
        }
    }

    pub(super) fn take(&mut self, tokens: u32, now: Instant) -> Result<(), Instant> {
        if let Some(bucket) = &mut self.requests {
            bucket.take(now, 1)?;
        }
        if let Some(bucket) = &mut self.tokens
            && let Err(at) = bucket.take(now, tokens.into())
        {
            self.requests.iter_mut().for_each(|bucket| bucket.settle(now, 1, 0));
            return Err(at);
        }
        Ok(())
    }

    pub(super) fn settle(&mut self, tokens: u32, now: Instant) {
        self.requests.iter_mut().for_each(|bucket| bucket.settle(now, 1, 1));
        self.tokens.iter_mut().for_each(|bucket| bucket.settle(now, tokens.into(), tokens.into()));
    }

    pub(super) fn put_back(&mut self, tokens: u32, now: Instant) {
        self.requests.iter_mut().for_each(|bucket| bucket.settle(now, 1, 0));
        self.tokens.iter_mut().for_each(|bucket| bucket.settle(now, tokens.into(), 0));
    }

    /// Takes over the request quota that the backend reports. A limit without a rate gets that of the report.
    pub(super) fn feed_requests(&mut self, quota: Quota, now: Instant) {
        match &mut self.requests {
            Some(bucket) => bucket.feed(now, quota),
            none => *none = Bucket::reported(now, quota, self.in_flight.into()),
        }
    }

    /// Like [`feed_requests`](Self::feed_requests), for tokens. The tokens of the calls in flight are unknown.
    pub(super) fn feed_tokens(&mut self, quota: Quota, now: Instant) {
        match &mut self.tokens {
            Some(bucket) => bucket.feed(now, quota),
            none => *none = Bucket::reported(now, quota, 0),
        }
    }

    /// Asks the first run in the queue to look again at `at`, unless it was asked already.
    pub(super) fn ask_first_to_look(&mut self, key: LimitKey, at: Instant) -> Option<Notice> {
        let (&arrival, first) = self.waiting.first_key_value()?;
        if self.asked_to_look == Some((arrival, at)) {
            return None;
        }
        self.asked_to_look = Some((arrival, at));
        Some(Notice::LookAt(Arc::clone(&first.receiver), key, at))
    }
}
