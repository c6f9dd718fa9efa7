//! The times of reads, by endpoint, for metrics.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use anabranch_engine::clock::Clock;

use super::{Bound, Error, Fetch, Keys, ReadContext};

/// The upper bounds of the buckets are powers of two of microseconds: 128 us to 16.8 s.
const FIRST_POWER: u32 = 7;
const BUCKETS: usize = 18;

/// Counts the times of the reads of one endpoint. A read costs two additions.
pub(crate) struct ReadTimes {
    clock: Arc<dyn Clock>,
    /// The last one is for longer times.
    buckets: [AtomicU64; BUCKETS + 1],
    sum_us: AtomicU64,
}

/// The times of the reads of an endpoint so far.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ReadLatency {
    /// The upper bounds of the buckets in seconds, each with the number of reads that took at most as long.
    pub within: Vec<(f64, u64)>,
    /// The number of reads.
    pub count: u64,
    /// The sum of their times.
    pub sum: Duration,
}

impl ReadTimes {
    pub(crate) fn new(clock: Arc<dyn Clock>) -> ReadTimes {
        ReadTimes { clock, buckets: [const { AtomicU64::new(0) }; BUCKETS + 1], sum_us: AtomicU64::new(0) }
    }

    fn add(&self, took: Duration) {
        let us = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
        // The power of two that is not below the time.
        let power = u64::BITS - us.saturating_sub(1).leading_zeros();
        let bucket = (power.saturating_sub(FIRST_POWER) as usize).min(BUCKETS);
        self.buckets[bucket].fetch_add(1, Ordering::Relaxed);
        self.sum_us.fetch_add(us, Ordering::Relaxed);
    }

    pub(crate) fn read(&self) -> ReadLatency {
        let mut count = 0;
        let mut within = Vec::with_capacity(BUCKETS);
        for (power, bucket) in (FIRST_POWER..).zip(&self.buckets[..BUCKETS]) {
            count += bucket.load(Ordering::Relaxed);
            within.push(((1_u64 << power) as f64 / 1e6, count));
        }
        count += self.buckets[BUCKETS].load(Ordering::Relaxed);
        ReadLatency { within, count, sum: Duration::from_micros(self.sum_us.load(Ordering::Relaxed)) }
    }
}

/// A read whose time is counted, unless its reply is there at once.
pub(super) struct TimedRead {
    pub(super) bound: Arc<dyn Bound>,
    pub(super) times: Arc<ReadTimes>,
}

impl Bound for TimedRead {
    fn refusal(&self) -> Option<&Error> {
        self.bound.refusal()
    }

    fn fetch(&self, keys: Keys, context: ReadContext<'_>) -> Fetch {
        let began = self.times.clock.now();
        match self.bound.fetch(keys, context) {
            Fetch::Ready(reply) => Fetch::Ready(reply),
            Fetch::Later(reply) => {
                let times = Arc::clone(&self.times);
                Fetch::Later(Box::pin(async move {
                    let reply = reply.await;
                    times.add(times.clock.now().saturating_duration_since(began));
                    reply
                }))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use anabranch_engine::clock::SystemClock;

    use super::*;

    #[test]
    fn times_are_counted_up_to_their_bounds() {
        let times = ReadTimes::new(Arc::new(SystemClock));
        for us in [0, 1, 128, 129, 256, 16_777_216, 16_777_217, u64::MAX] {
            times.add(Duration::from_micros(us));
        }
        let read = times.read();
        assert_eq!(read.within[..2], [(0.000_128, 3), (0.000_256, 5)]);
        assert_eq!((read.within[BUCKETS - 1], read.count), ((16.777_216, 6), 8));
    }
}
