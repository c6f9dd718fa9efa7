//! The times of model calls, for metrics.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

/// The upper bounds of the buckets are powers of two of milliseconds: 16 ms to 524 s.
const FIRST_POWER: u32 = 4;
const BUCKETS: usize = 16;

/// Counts the times of the calls to one model.
#[derive(Default)]
pub(crate) struct CallTimer {
    /// The last one is for longer times.
    buckets: [AtomicU64; BUCKETS + 1],
    sum_us: AtomicU64,
}

/// The times of calls to a model so far.
#[derive(Clone, Debug, PartialEq)]
pub struct CallTimes {
    /// The upper bounds of the buckets, each with the number of calls that took at most as long.
    pub within: [(Duration, u64); BUCKETS],
    /// The number of calls, answered or failed.
    pub count: u64,
    /// The sum of their times.
    pub sum: Duration,
}

impl CallTimer {
    pub(crate) fn add(&self, took: Duration) {
        let us = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
        let ms = us.div_ceil(1_000);
        // The power of two that is not below the time.
        let power = u64::BITS - ms.saturating_sub(1).leading_zeros();
        let bucket = (power.saturating_sub(FIRST_POWER) as usize).min(BUCKETS);
        self.buckets[bucket].fetch_add(1, Relaxed);
        self.sum_us.fetch_add(us, Relaxed);
    }

    pub(crate) fn read(&self) -> CallTimes {
        let mut times = CallTimes::default();
        let mut count = 0;
        for ((_, within), bucket) in times.within.iter_mut().zip(&self.buckets) {
            count += bucket.load(Relaxed);
            *within = count;
        }
        times.count = count + self.buckets[BUCKETS].load(Relaxed);
        times.sum = Duration::from_micros(self.sum_us.load(Relaxed));
        times
    }
}

impl Default for CallTimes {
    fn default() -> CallTimes {
        let bound = |bucket: usize| Duration::from_millis(1 << (FIRST_POWER as usize + bucket));
        let within = std::array::from_fn(|bucket| (bound(bucket), 0));
        CallTimes { within, count: 0, sum: Duration::ZERO }
    }
}

impl std::ops::AddAssign<&CallTimes> for CallTimes {
    fn add_assign(&mut self, other: &CallTimes) {
        for ((_, count), (_, more)) in self.within.iter_mut().zip(&other.within) {
            *count += more;
        }
        self.count += other.count;
        self.sum += other.sum;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_counted_up_to_their_bounds() {
        let timer = CallTimer::default();
        for ms in [0, 16, 17, 32, 524_288, 524_289] {
            timer.add(Duration::from_millis(ms));
        }
        let mut times = timer.read();
        times += &timer.read();
        let (first, last) = (times.within[0], times.within[BUCKETS - 1]);
        assert_eq!((first, times.within[1].1), ((Duration::from_millis(16), 4), 8));
        assert_eq!((last, times.count), ((Duration::from_millis(524_288), 10), 12));
        assert_eq!(times.sum, Duration::from_millis(2 * 1_048_642));
    }
}
