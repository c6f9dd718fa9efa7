//! A histogram of durations. Adding is cheap, also from many threads at once.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// The buckets per power of two of microseconds. A percentile is at most 6% too high.
const STEPS: usize = 16;
/// Durations of 2^36 us (19 hours) and more are counted in the last bucket.
const POWERS: usize = 36;
const BUCKETS: usize = (POWERS - 3) * STEPS;

/// A histogram of durations.
pub(crate) struct Histogram {
    buckets: Box<[AtomicU64]>,
    sum_us: AtomicU64,
}

/// A snapshot of a histogram.
#[derive(Clone, Default)]
pub(crate) struct Durations {
    counts: Vec<u64>,
    pub(crate) count: u64,
    pub(crate) sum: Duration,
}

impl Default for Histogram {
    fn default() -> Histogram {
        Histogram { buckets: (0..BUCKETS).map(|_| AtomicU64::new(0)).collect(), sum_us: AtomicU64::new(0) }
    }
}

impl Histogram {
    pub(crate) fn add(&self, duration: Duration) {
        let us = u64::try_from(duration.as_micros()).unwrap_or(u64::MAX);
        self.buckets[bucket(us)].fetch_add(1, Ordering::Relaxed);
        self.sum_us.fetch_add(us, Ordering::Relaxed);
    }

    pub(crate) fn read(&self) -> Durations {
        let counts: Vec<u64> = self.buckets.iter().map(|count| count.load(Ordering::Relaxed)).collect();
        Durations {
            count: counts.iter().sum(),
            counts,
            sum: Duration::from_micros(self.sum_us.load(Ordering::Relaxed)),
        }
    }
}

impl Durations {
    /// The durations that were added after an earlier snapshot of the same histogram.
    pub(crate) fn since(&self, earlier: &Durations) -> Durations {
        let before = earlier.counts.iter().copied().chain(std::iter::repeat(0));
        let counts: Vec<u64> =
            self.counts.iter().zip(before).map(|(now, before)| now.saturating_sub(before)).collect();
        let sum = self.sum.saturating_sub(earlier.sum);
        Durations { count: counts.iter().sum(), counts, sum }
    }

    /// The duration that this share of all durations does not exceed, in milliseconds; `None` if there are none.
    pub(crate) fn percentile_ms(&self, share: f64) -> Option<f64> {
        if self.count == 0 {
            return None;
        }
        let rank = ((self.count as f64 * share).ceil() as u64).clamp(1, self.count);
        let mut below = 0;
        let at = self.counts.iter().position(|count| {
            below += count;
            below >= rank
        });
        at.map(|at| upper_us(at) as f64 / 1e3)
    }

    /// The number of durations below `1 << power` microseconds.
    pub(crate) fn below_power(&self, power: usize) -> u64 {
        self.counts[..bucket(1 << power)].iter().sum()
    }
}

fn bucket(us: u64) -> usize {
    if us < STEPS as u64 {
        return us as usize;
    }
    let power = us.ilog2() as usize;
    let step = (us >> (power - 4)) as usize % STEPS;
    ((power - 3) * STEPS + step).min(BUCKETS - 1)
}

/// The largest duration of a bucket, in microseconds.
fn upper_us(bucket: usize) -> u64 {
    if bucket < STEPS {
        return bucket as u64;
    }
    let (power, step) = (bucket / STEPS + 3, (bucket % STEPS) as u64);
    ((STEPS as u64 + step + 1) << (power - 4)) - 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_follow_each_other_and_hold_what_is_put_there() {
        for us in (0..5_000).chain([1 << 20, (1 << 20) - 1, u64::MAX]) {
            let at = bucket(us);
            assert!(at + 1 == BUCKETS || us <= upper_us(at), "{us}");
            assert!(at == 0 || us > upper_us(at - 1), "{us}");
        }
    }

    #[test]
    fn percentiles_and_powers() {
        let histogram = Histogram::default();
        assert_eq!(histogram.read().percentile_ms(0.5), None);
        for ms in 1..=100 {
            histogram.add(Duration::from_millis(ms));
        }
        let read = histogram.read();
        let near = |share: f64, ms: f64| {
            let found = read.percentile_ms(share).unwrap();
            assert!(found >= ms && found < ms * 1.07, "{share}: {found}");
        };
        near(0.5, 50.0);
        near(0.99, 99.0);
        near(1.0, 100.0);
        assert_eq!((read.count, read.sum), (100, Duration::from_millis(5050)));
        assert_eq!(read.below_power(16), 65);
        assert_eq!(read.below_power(30), 100);
    }
}
