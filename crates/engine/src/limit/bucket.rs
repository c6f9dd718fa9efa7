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
    /// The amount allowed in the time `per` of the bucket's [`Rate`]. A limit without a rate gets one from it: per minute,
    /// or per the longer time that `full_at` shows.
    pub limit: Option<u64>,
    /// The amount that is left.
    pub remaining: u64,
    /// The time at which the whole amount is available again.
    pub full_at: Option<Instant>,
}

impl Quota {
    /// The time in which the whole `limit` becomes available, if `full_at` shows that it is more than a minute: such as
    /// a day, when a hundredth of the quota is used and comes back within a hundredth of a day.
    fn long_window(&self, now: Instant, limit: u64) -> Option<Duration> {
        let until_full = self.full_at?.saturating_duration_since(now).min(LONGEST);
        if until_full <= MINUTE {
            return None;
        }
        let used = limit.saturating_sub(self.remaining).max(1);
        let nanos = until_full.as_nanos() * u128::from(limit) / u128::from(used);
        Some(u64::try_from(nanos).map_or(LONGEST, Duration::from_nanos).clamp(MINUTE, LONGEST))
    }
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
    source: RateSource,
}

/// The origin of a bucket's rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RateSource {
    /// A reported limit can only lower the rate.
    Configured,
    /// The rate is that of the last report.
    Reported,
}

const MINUTE: Duration = Duration::from_secs(60);
/// The longest wait that is returned, and the longest time `per` of a reported rate.
const LONGEST: Duration = Duration::from_secs(24 * 60 * 60);

impl Bucket {
    /// A full bucket.
    pub fn new(rate: Rate, now: Instant) -> Result<Bucket, Error> {
        let Rate { amount, per, burst } = rate;
        let zero = [("amount", amount == 0), ("per", per.is_zero()), ("burst", burst == 0)];
        if let Some((field, _)) = zero.into_iter().find(|(_, is_zero)| *is_zero) {
            return Err(Error::Zero { field });
        }
        let mut bucket = Bucket {
            rate,
            limit: u64::MAX,
            level: 0,
            since: now,
            outstanding: 0,
            source: RateSource::Configured,
        };
        bucket.level = bucket.capacity();
        Ok(bucket)
    }

    /// A bucket with the rate that the backend reported while `outstanding` was in use, if it reported one.
    pub(super) fn reported(now: Instant, quota: Quota, outstanding: u64) -> Option<Bucket> {
        let limit = quota.limit.filter(|limit| *limit > 0)?;
        let per = quota.long_window(now, limit).unwrap_or(MINUTE);
        let mut bucket = Bucket::new(Rate { amount: limit, per, burst: limit }, now).ok()?;
        (bucket.outstanding, bucket.source) = (outstanding, RateSource::Reported);
        bucket.feed(now, quota);
        Some(bucket)
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
        let limit = quota.limit.map_or(self.limit, |limit| limit.max(1));
        self.limit = limit;
        if self.source == RateSource::Reported && quota.limit.is_some() {
            let known = if limit == self.rate.amount { self.rate.per } else { MINUTE };
            let per = quota.long_window(now, limit).unwrap_or(known);
            self.change_rate(Rate { amount: limit, per, burst: limit });
        }
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

    /// Changes the rate. The amount in the bucket stays. Its grains are recounted, because their size depends on `per`.
    fn change_rate(&mut self, rate: Rate) {
        let (from, to) = (self.rate.per.as_nanos() as i128, rate.per.as_nanos() as i128);
        // In two parts, to avoid an overflow.
        let whole = (self.level / from).saturating_mul(to);
        self.level = whole.saturating_add(self.level % from * to / from);
        self.rate = rate;
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
