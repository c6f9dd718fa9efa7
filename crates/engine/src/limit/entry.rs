//! One key of a table: its slots, its rates, its queue.

use std::collections::{BTreeMap, VecDeque};
use std::time::Instant;

use super::super::sync::Arc;
use super::adaptive::Adaptive;
use super::bucket::Bucket;
use super::table::{Customer, LimitKey, News};

/// A key's state.
pub(super) struct Entry {
    pub(super) name: String,
    pub(super) concurrency: Fitted,
    pub(super) requests: Option<Bucket>,
    pub(super) tokens: Option<Bucket>,
    pub(super) parent: Option<u32>,
    pub(super) in_flight: u32,
    pub(super) cooling_until: Option<Instant>,
    pub(super) waiting: BTreeMap<u64, Waiting>,
    /// For a key without parent: it and the keys below it that have waiting runs, in turn.
    pub(super) turns: VecDeque<u32>,
    /// The customer last told when to look, and that time.
    pub(super) told: Option<(u64, Instant)>,
}

/// How many calls may be in flight.
pub(super) enum Fitted {
    Fixed(u32),
    Adaptive(Box<Adaptive>),
}

/// A run in a key's queue.
pub(super) struct Waiting {
    pub(super) customer: Arc<dyn Customer>,
    pub(super) tokens: u32,
}

impl Entry {
    /// Whether what it allows depends on the time.
    pub(super) fn is_timed(&self) -> bool {
        self.cooling_until.is_some()
            || self.requests.is_some()
            || self.tokens.is_some()
            || matches!(self.concurrency, Fitted::Adaptive(_))
    }

    pub(super) fn limit(&self) -> u32 {
        match &self.concurrency {
            Fitted::Fixed(limit) => *limit,
            Fitted::Adaptive(adaptive) => adaptive.limit(),
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

    /// Tells whoever is first when to look, once.
    pub(super) fn tell_first(&mut self, key: LimitKey, at: Instant) -> Option<News> {
        let (&arrival, first) = self.waiting.first_key_value()?;
        if self.told == Some((arrival, at)) {
            return None;
        }
        self.told = Some((arrival, at));
        Some(News::LookAt(Arc::clone(&first.customer), key, at))
    }
}
