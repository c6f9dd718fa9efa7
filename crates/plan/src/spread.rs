//! A histogram of recent durations, with buckets that grow with the duration, so that any quantile is accurate to an
//! eighth.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

/// Buckets an octave, as a power of two.
const SPLIT: u32 = 3;

/// The first octave begins at this power of two of nanoseconds, about a microsecond. Shorter times count as that.
const FIRST: u32 = 10;

/// All buckets: 32 octaves, up to 73 minutes. Longer times count as that.
const BUCKETS: usize = 32 << SPLIT;

/// With fewer samples nothing is said.
const ENOUGH: u32 = 32;

/// The number of samples at which all counts are halved, so that new samples outweigh old ones.
const FULL: u32 = 2_048;

/// The spread of durations. Any number of threads may record at once.
pub(crate) struct Spread {
    counts: [AtomicU32; BUCKETS],
    total: AtomicU32,
    /// True if some thread is halving the counts.
    halving: AtomicBool,
}

impl Default for Spread {
    fn default() -> Spread {
        let counts = [const { AtomicU32::new(0) }; BUCKETS];
        Spread { counts, total: AtomicU32::new(0), halving: AtomicBool::new(false) }
    }
}

impl Spread {
    /// Counts one more.
    pub(crate) fn record(&self, took: Duration) {
        self.counts[bucket(took)].fetch_add(1, Ordering::Relaxed);
        if self.total.fetch_add(1, Ordering::Relaxed) + 1 >= FULL {
            self.halve();
        }
    }

    /// The duration that this part of the recorded ones (0.8: four of five) does not exceed: at most an eighth too
    /// long, never too short. `None` before there are enough.
    pub(crate) fn at(&self, quantile: f64) -> Option<Duration> {
        let mut counts = [0; BUCKETS];
        let mut total = 0;
        for (count, counted) in counts.iter_mut().zip(&self.counts) {
            *count = counted.load(Ordering::Relaxed);
            total += *count;
        }
        if total < ENOUGH {
            return None;
        }
        let mut rank = ((quantile * f64::from(total)).ceil() as u32).clamp(1, total);
        let holds = |count: &u32| {
            let holds = rank <= *count;
            rank = rank.saturating_sub(*count);
            holds
        };
        counts.iter().position(holds).map(end)
    }

    /// A thread that arrives while another one halves skips this. The next halving includes its count.
    fn halve(&self) {
        if self.halving.swap(true, Ordering::Acquire) {
            return;
        }
        let mut gone = 0;
        for count in &self.counts {
            // Rounded up, so that a duration that was seen once does not stay forever.
            let half = count.load(Ordering::Relaxed).div_ceil(2);
            count.fetch_sub(half, Ordering::Relaxed);
            gone += half;
        }
        self.total.fetch_sub(gone, Ordering::Relaxed);
        self.halving.store(false, Ordering::Release);
    }
}

fn bucket(took: Duration) -> usize {
    let nanos = u64::try_from(took.as_nanos()).unwrap_or(u64::MAX).max(1 << FIRST);
    let octave = nanos.ilog2();
    let part = (nanos >> (octave - SPLIT)) as usize - (1 << SPLIT);
    ((((octave - FIRST) as usize) << SPLIT) + part).min(BUCKETS - 1)
}

/// The longest duration in a bucket.
fn end(bucket: usize) -> Duration {
    let octave = FIRST + (bucket >> SPLIT) as u32;
    let part = (bucket & ((1 << SPLIT) - 1)) as u64 + (1 << SPLIT);
    Duration::from_nanos(((part + 1) << (octave - SPLIT)) - 1)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn says_nothing_before_there_are_enough() {
        let spread = Spread::default();
        (1..ENOUGH).for_each(|_| spread.record(Duration::from_millis(3)));
        assert_eq!(spread.at(0.5), None);
        spread.record(Duration::from_millis(3));
        let said = spread.at(0.5).unwrap();
        assert!(said >= Duration::from_millis(3) && said < Duration::from_micros(3_375), "{said:?}");
    }

    #[test]
    fn follows_change() {
        let spread = Spread::default();
        (0..100 * FULL).for_each(|_| spread.record(Duration::from_millis(1)));
        (0..2 * FULL).for_each(|_| spread.record(Duration::from_millis(10)));
        assert!(spread.at(0.5).unwrap() >= Duration::from_millis(10));
        (0..2 * FULL).for_each(|_| spread.record(Duration::from_millis(1)));
        assert!(spread.at(0.5).unwrap() < Duration::from_millis(2));
    }

    #[test]
    fn rare_times_do_not_pile_up() {
        let spread = Spread::default();
        for number in 0..50_000 {
            spread.record(Duration::from_millis(if number % 20 == 0 { 30 } else { 1 }));
        }
        assert!(spread.at(0.9).unwrap() < Duration::from_millis(2));
        assert!(spread.at(0.96).unwrap() >= Duration::from_millis(30));
        assert!(spread.total.load(Ordering::Relaxed) < FULL);
    }

    #[test]
    fn any_duration_has_a_bucket() {
        for took in [Duration::ZERO, Duration::from_nanos(1), Duration::from_secs(7_200), Duration::MAX] {
            let spread = Spread::default();
            (0..ENOUGH).for_each(|_| spread.record(took));
            let said = spread.at(1.0).unwrap();
            assert!(said <= Duration::from_secs(4_400), "{took:?} became {said:?}");
        }
        for bucket_number in 0..BUCKETS {
            assert_eq!(bucket(end(bucket_number)), bucket_number);
        }
    }

    proptest! {
        #[test]
        fn is_an_eighth_off_at_most(
            nanos in prop::collection::vec(1_024_u64..4_000_000_000_000, ENOUGH as usize..FULL as usize / 2),
            quantile in 0.0..=1.0_f64,
        ) {
            let spread = Spread::default();
            nanos.iter().for_each(|nanos| spread.record(Duration::from_nanos(*nanos)));
            let mut sorted = nanos;
            sorted.sort_unstable();
            let rank = ((quantile * sorted.len() as f64).ceil() as usize).clamp(1, sorted.len());
            let exact = sorted[rank - 1];
            let said = spread.at(quantile).unwrap().as_nanos() as u64;
            prop_assert!(said >= exact && said <= exact + exact / 8, "{said} for {exact}");
        }
    }
}
