//! The memory that a cache takes is the memory that it says it takes.

use anabranch_content::{Address, Admission, Cache, CacheSettings, VerifiedBytes};
use bytes::Bytes;

use super::address;
use crate::allocated::count;

const BOUND: u64 = 8 << 20;

/// Values arrive as slices of buffers like the ones that a connection is read into.
const BUFFER: usize = 8 << 10;

/// A value in the middle of a buffer.
fn received(number: u64, length: usize) -> VerifiedBytes {
    let mut buffer = vec![0; BUFFER.max(length + 64)];
    buffer[32..40].copy_from_slice(&number.to_le_bytes());
    let bytes = Bytes::from(buffer).slice(32..32 + length);
    VerifiedBytes::check(Address::of(&bytes), bytes).unwrap()
}

/// Fills a cache, uses each value, and compares what it holds with what it says whenever there are 2% more values.
fn check_fill(cache: &Cache, held: &dyn Fn() -> i64, numbers: std::ops::Range<u64>, length: usize) {
    let mut next = 2000;
    for number in numbers {
        cache.admit(received(number, length), 1_000_000);
        cache.get(&address(number, length));
        let stats = cache.stats();
        if stats.entries >= next {
            next += next / 50;
            let share = held() as f64 / stats.bytes as f64;
            assert!((0.9..1.03).contains(&share), "{share:.3} at {} values of {length} bytes", stats.entries);
        }
        assert!(
            held() as f64 <= BOUND as f64 * 1.03,
            "{} values of {length} bytes: {}",
            stats.entries,
            held()
        );
    }
}

#[test]
fn a_cache_holds_as_much_memory_as_it_says() {
    for length in [64, 1000, 1024, 3000] {
        count(|held| {
            let cache = Cache::new(CacheSettings { bytes: BOUND });
            check_fill(&cache, held, 0..40_000, length);
            assert!(cache.stats().bytes > BOUND * 9 / 10, "it was never full");
        });
    }
}

/// What many small values needed must be free again for a few large ones.
#[test]
fn a_cache_that_held_many_values_holds_no_more_memory_for_few() {
    count(|held| {
        let cache = Cache::new(CacheSettings { bytes: BOUND });
        check_fill(&cache, held, 0..30_000, 64);
        check_fill(&cache, held, 0..2000, 60_000);
        let share = held() as f64 / cache.stats().bytes as f64;
        assert!((0.9..1.03).contains(&share), "{share:.3} of {:?}", cache.stats());
    });
}

#[test]
fn a_value_that_is_refused_or_present_is_not_copied() {
    let cache = Cache::new(CacheSettings { bytes: BOUND });
    assert_eq!(cache.admit(received(1, 5000), 1), Admission::Admitted);
    let large = BOUND as usize;
    let offers = [received(1, 5000), received(2, large)];
    count(|held| {
        let mut highest = 0;
        for offer in offers {
            assert_ne!(cache.admit(offer.clone(), 1), Admission::Admitted);
            assert!(!matches!(cache.admit_if_free(offer, 1), Some(Admission::Admitted)));
            highest = highest.max(held());
        }
        assert!(highest < 1000, "{highest} bytes were allocated");
    });
}
