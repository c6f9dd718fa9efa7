//! How much may be asked of a backend in a time: so many requests a minute, so many tokens a minute.
//!
//! The level is counted in grains, so fine that a nanosecond's refill is a whole number of them: nothing is ever
//! rounded, and hours of refilling do not drift.

use std::time::{Duration, Instant};

use super::error::Error;

/// So much in a time, and so much at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rate {
    /// How much flows in.
    pub amount: u64,
    /// The time in which it does.
    pub per: Duration,
    /// How much can be taken at once, when nothing was for long.
    pub burst: u64,
}

/// What a backend says is left of what it allows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Quota {
    /// How much it allows in the time of the bucket's [`Rate`].
    pub limit: Option<u64>,
    /// How much of that is left.
    pub remaining: u64,
    /// When all of it will be there again.
    pub full_at: Option<Instant>,
}

/// An amount that flows in over time and is taken in parts, starting full.
#[derive(Clone, Debug)]
pub struct Bucket {
    rate: Rate,
    /// What the backend allows, where that is less than the rate.
    limit: u64,
    /// Less than nothing while in debt.
    level: i128,
    /// When the level was that; in the future while it holds still.
    since: Instant,
    /// Taken but not settled.
    outstanding: u64,
}

/// No wait is told to be longer.
const LONGEST: Duration = Duration::from_secs(24 * 60 * 60);

impl Bucket {
    /// A full bucket.
    pub fn new(rate: Rate, now: Instant) -> Result<Bucket, Error> {
        let Rate { amount, per, burst } = rate;
        let zero = [("amount", amount == 0), ("per", per.is_zero()), ("burst", burst == 0)];
        if let Some((field, _)) = zero.into_iter().find(|(_, is_zero)| *is_zero) {
            return Err(Error::Zero { field });
        }
        let mut bucket = Bucket { rate, limit: u64::MAX, level: 0, since: now, outstanding: 0 };
        bucket.level = bucket.capacity();
        Ok(bucket)
    }

    /// Takes an amount, or tells when to try again. Every amount taken must be settled.
    ///
    /// More than fits the bucket is let through when the bucket is full, and leaves it in debt.
    pub fn take(&mut self, now: Instant, amount: u64) -> Result<(), Instant> {
        self.refill(now);
        let missing = self.grains(amount).min(self.capacity()).saturating_sub(self.level);
        if missing > 0 {
            return Err(self.since + self.time_for(missing));
        }
        self.level = self.level.saturating_sub(self.grains(amount));
        self.outstanding = self.outstanding.saturating_add(amount);
        Ok(())
    }

    /// Corrects an amount taken beforehand by what was really used; the bucket may go into debt.
    pub fn settle(&mut self, now: Instant, taken: u64, used: u64) {
        self.outstanding = self.outstanding.saturating_sub(taken);
        self.correct(now, taken, used);
    }

    /// Corrects what was counted for a call that is settled on its own.
    pub fn correct(&mut self, now: Instant, counted: u64, used: u64) {
        self.refill(now);
        let left_over = self.grains(counted) - self.grains(used);
        self.level = self.level.saturating_add(left_over);
    }

    /// Takes a backend's word for what is left, given with the answer to a call that is settled already.
    ///
    /// It may have counted what is outstanding or not, so only what is outside of that span is corrected.
    pub fn feed(&mut self, now: Instant, quota: Quota) {
        self.refill(now);
        // Were nothing allowed, nothing could ever be asked to find out that something is again.
        self.limit = quota.limit.map_or(self.limit, |limit| limit.max(1));
        let most = self.grains(quota.remaining).min(self.capacity());
        let least = most - self.grains(self.outstanding);
        self.level = self.level.clamp(least, most);
        if let Some(full_at) = quota.full_at {
            let refill = self.time_for(self.capacity().saturating_sub(self.level));
            self.since = full_at.checked_sub(refill).map_or(now, |start| start.max(now));
        }
    }

    /// How much could be taken.
    pub fn left(&self, now: Instant) -> u64 {
        let whole = self.level_at(now).max(0) / self.grains(1);
        u64::try_from(whole).unwrap_or(u64::MAX)
    }

    fn refill(&mut self, now: Instant) {
        self.level = self.level_at(now);
        self.since = self.since.max(now);
    }

    fn level_at(&self, now: Instant) -> i128 {
        let time = now.saturating_duration_since(self.since).as_nanos() as i128;
        self.level.saturating_add(time.saturating_mul(self.flow())).min(self.capacity())
    }

    fn time_for(&self, grains: i128) -> Duration {
        let nanos = grains.saturating_add(self.flow() - 1) / self.flow();
        u64::try_from(nanos).map_or(LONGEST, |nanos| Duration::from_nanos(nanos).min(LONGEST))
    }

    /// Grains a nanosecond.
    fn flow(&self) -> i128 {
        self.rate.amount.min(self.limit).into()
    }

    fn capacity(&self) -> i128 {
        self.grains(self.rate.burst.min(self.limit))
    }

    fn grains(&self, amount: u64) -> i128 {
        i128::from(amount).saturating_mul(self.rate.per.as_nanos() as i128)
    }
}
