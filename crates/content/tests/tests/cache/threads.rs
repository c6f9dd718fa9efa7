//! Many callers at once.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use anabranch_content::{Address, Admission, Cache, CacheSettings, CacheStats};
use anabranch_testkit::Rng;

use super::{address, value};

const BOUND: u64 = 40_000;
const SHARED: u64 = 64;
const STEPS: u64 = 5_000;

fn length(number: u64) -> usize {
    8 + number as usize % 13 * 300
}

fn name(number: u64) -> Address {
    address(number, length(number))
}

/// Does as it likes with the values that all share; returns how often it called `get`.
fn hammer(cache: &Cache, seed: u64) -> u64 {
    let mut rng = Rng::new(seed);
    let mut gets = 0;
    for _ in 0..STEPS {
        let number = rng.within(0..SHARED);
        match rng.within(0..100) {
            0..50 => {
                gets += 1;
                let found = cache.get(&name(number));
                assert!(found.is_none_or(|bytes| bytes[..8] == number.to_le_bytes()));
            }
            50..85 => drop(cache.admit(value(number, length(number)), rng.within(0..5000))),
            85..90 => drop(cache.remove(&name(number))),
            90..95 => {
                cache.pin(name(number));
                assert!(cache.unpin(&name(number)));
            }
            _ => hold_own(cache, SHARED + seed),
        }
    }
    gets
}

/// What nobody else removes, stays while it is pinned.
fn hold_own(cache: &Cache, number: u64) {
    cache.pin(name(number));
    let admission = cache.admit(value(number, length(number)), 0);
    if !matches!(admission, Admission::Refused(_)) {
        for other in 0..10 {
            cache.admit(value(other, length(other)), 5000);
        }
        assert!(cache.contains(&name(number)));
    }
    assert!(cache.unpin(&name(number)));
}

/// Until told to stop.
fn watch(cache: &Cache, stop: &AtomicBool) {
    while !stop.load(Ordering::Relaxed) {
        check_stats(cache.stats());
        thread::yield_now();
    }
}

fn check_stats(stats: CacheStats) {
    assert!(stats.pinned_bytes <= stats.bytes && stats.bytes <= BOUND, "{stats:?}");
    assert_eq!(stats.admitted - stats.evicted - stats.removed, stats.entries, "{stats:?}");
}

#[test]
fn the_bound_holds_and_the_counts_add_up_with_many_threads() {
    for seeds in [0..4, 4..8, 8..12] {
        let cache = &Cache::new(CacheSettings { bytes: BOUND });
        let stop = AtomicBool::new(false);
        let gets = thread::scope(|scope| {
            scope.spawn(|| watch(cache, &stop));
            let hammers: Vec<_> = seeds.map(|seed| scope.spawn(move || hammer(cache, seed))).collect();
            let ends: Vec<_> = hammers.into_iter().map(|hammer| hammer.join()).collect();
            stop.store(true, Ordering::Relaxed);
            ends.into_iter().map(Result::unwrap).sum()
        });
        check_end(cache, gets);
    }
}

fn check_end(cache: &Cache, gets: u64) {
    let stats = cache.stats();
    check_stats(stats);
    assert_eq!(stats.hits + stats.misses, gets);
    assert_eq!(stats.pinned_bytes, 0);
    let held = (0..SHARED + 16).filter(|number| cache.contains(&name(*number)));
    let sizes: Vec<u64> = held.map(|number| length(number) as u64 + Cache::ENTRY_BYTES).collect();
    assert_eq!((sizes.len() as u64, sizes.iter().sum()), (stats.entries, stats.bytes));

    // Nothing may be stuck: something that is pinned can throw all the rest out.
    let whole = (BOUND - Cache::ENTRY_BYTES) as usize;
    cache.pin(address(0, whole));
    assert_eq!(cache.admit(value(0, whole), 0), Admission::Admitted);
    assert_eq!((cache.stats().entries, cache.stats().bytes), (1, BOUND));
}
