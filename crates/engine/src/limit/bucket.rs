//! Rate limits as token buckets, such as 600 requests per minute or 90,000 tokens per minute.
//!
//! The level of a bucket is counted in *grains*, units so small that a nanosecond refills a whole number of them. So
//! nothing is rounded, and a bucket does not drift over hours.

use std::time::{Duration, Instant};

use super::error::Error;

/// A rate and a burst.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rate {
    /// The amount that becomes available in the time `per`.
    pub amount: u64,
    /// The time in which the amount becomes available.
    pub per: Duration,
    /// The most that can be taken at once, after a time without use.
    pub burst: u64,
}

/// The remaining quota as the backend reports it, for example in the headers of a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Quota {
    /// The amount allowed in the time `per` of the bucket's [`Rate`].
    pub limit: Option<u64>,
    /// The amount that is left.
    pub remaining: u64,
    /// When the whole amount will be available again.
    pub full_at: Option<Instant>,
}

/// A token bucket. It starts full and refills over time.
#[derive(Clone, Debug)]
pub struct Bucket {
    rate: Rate,
    /// The amount that the backend allows, if it is less than the rate.
    limit: u64,
    /// In grains; negative while the bucket is in debt.
    level: i128,
    /// The time of that level; in the future while the bucket does not refill.
    since: Instant,
    /// The amount that was taken and not settled yet.
    outstanding: u64,
}

/// The longest wait that is returned.
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

    /// Takes an amount, or returns the time to try again. Every amount taken must be settled.
    ///
    /// An amount larger than the burst is granted when the bucket is full, and leaves it in debt.
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

    /// Ends the call that took `taken` and really used `used`. The bucket may go into debt.
    pub fn settle(&mut self, now: Instant, taken: u64, used: u64) {
        self.outstanding = self.outstanding.saturating_sub(taken);
        self.correct(now, taken, used);
    }

    /// Corrects the amount counted for a call; the call is settled separately.
    pub fn correct(&mut self, now: Instant, counted: u64, used: u64) {
        self.refill(now);
        let left_over = self.grains(counted) - self.grains(used);
        self.level = self.level.saturating_add(left_over);
    }

    /// Takes over the quota that the backend reported in its response to a settled call.
    ///
    /// The backend may or may not have counted the calls that are outstanding. So the level is moved only if it is
    /// outside of the range between the two.
    pub fn feed(&mut self, now: Instant, quota: Quota) {
        self.refill(now);
        // At 0 no call could ever be made, and a higher quota would never be seen.
        self.limit = quota.limit.map_or(self.limit, |limit| limit.max(1));
        let most = self.grains(quota.remaining).min(self.capacity());
        let least = most - self.grains(self.outstanding);
        self.level = self.level.clamp(least, most);
        if let Some(full_at) = quota.full_at {
            let refill = self.time_for(self.capacity().saturating_sub(self.level));
            self.since = full_at.checked_sub(refill).map_or(now, |start| start.max(now));
        }
    }

    /// The amount that is available.
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

    /// Grains per nanosecond.
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
