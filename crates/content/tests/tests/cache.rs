//! What a cache holds, refuses and lets go; `model` compares it with a naive one, `threads` has many callers,
//! `memory` weighs it.
#![allow(clippy::unwrap_used, reason = "helpers of tests are tests")]

mod memory;
mod model;
mod threads;

use std::ops::Range;

use anabranch_content::{
    Address, Admission, Cache, CacheSettings, CacheStats, Mismatch, Refusal, VerifiedBytes,
};
use bytes::Bytes;

const ENTRY: u64 = Cache::ENTRY_BYTES;

/// A value of so many bytes, unlike that of any other number.
fn value(number: u64, length: usize) -> VerifiedBytes {
    let mut bytes = number.to_le_bytes().to_vec();
    bytes.resize(length.max(8), 0);
    VerifiedBytes::check(Address::of(&bytes), bytes.into()).unwrap()
}

fn address(number: u64, length: usize) -> Address {
    let mut bytes = number.to_le_bytes().to_vec();
    bytes.resize(length.max(8), 0);
    Address::of(&bytes)
}

/// Many tests use values that take a thousand bytes each.
const LENGTH: usize = 1000 - ENTRY as usize;

fn thousand(number: u64) -> VerifiedBytes {
    value(number, LENGTH)
}

fn name(number: u64) -> Address {
    address(number, LENGTH)
}

/// A cache with room for so many of them.
fn room_for(count: u64) -> Cache {
    Cache::new(CacheSettings { bytes: count * 1000 })
}

/// A cache that is full of values of worth 1000, each used so often.
fn full_of(count: u64, uses: u64) -> Cache {
    let cache = room_for(count);
    for number in 0..count {
        assert_eq!(cache.admit(thousand(number), 1000), Admission::Admitted);
        (1..uses).for_each(|_| assert!(cache.get(&name(number)).is_some()));
    }
    cache
}

fn held(cache: &Cache, numbers: Range<u64>) -> usize {
    numbers.filter(|number| cache.contains(&name(*number))).count()
}

#[test]
fn a_value_is_there_until_it_is_removed() {
    let cache = room_for(2);
    let same = cache.clone();
    assert_eq!(cache.get(&name(1)), None);
    assert_eq!(same.admit(thousand(1), 5), Admission::Admitted);
    assert_eq!(cache.admit(thousand(1), 5), Admission::Present);
    let bytes = cache.get(&name(1)).unwrap();
    assert_eq!(Address::of(&bytes), name(1));
    assert_eq!(cache.peek(&name(1)), Some(bytes));
    assert!(cache.remove(&name(1)));
    assert!(!same.remove(&name(1)));
    assert!(!cache.contains(&name(1)) && cache.peek(&name(1)).is_none());
    let counted = CacheStats { hits: 1, misses: 1, admitted: 1, removed: 1, ..CacheStats::default() };
    assert_eq!(cache.stats(), counted);
}

#[test]
fn bytes_of_another_address_are_not_verified() {
    let [said, found] = [b"said", b"sent"].map(|bytes| Address::of(bytes));
    assert_eq!(VerifiedBytes::check(said, Bytes::from_static(b"sent")), Err(Mismatch { said, found }));
}

#[test]
fn a_cache_of_no_bytes_is_off() {
    let cache = room_for(0);
    assert_eq!(cache.admit(value(1, 8), u64::MAX), Admission::Refused(Refusal::TooLarge));
    assert_eq!(cache.get(&address(1, 8)), None);
    let counted = CacheStats { misses: 1, refused_too_large: 1, ..CacheStats::default() };
    assert_eq!(cache.stats(), counted);
}

#[test]
fn one_value_may_fill_the_cache_and_not_a_byte_more() {
    let cache = full_of(10, 1);
    let bound = 10_000;
    let length = (bound - ENTRY) as usize;
    assert_eq!(cache.admit(value(1, length + 1), u64::MAX), Admission::Refused(Refusal::TooLarge));
    assert_eq!(cache.stats().entries, 10);
    assert_eq!(cache.admit(value(1, length), u64::MAX), Admission::Admitted);
    let stats = cache.stats();
    assert_eq!((stats.entries, stats.bytes, stats.evicted), (1, bound, 10));
}

#[test]
fn a_refusal_throws_nothing_out() {
    let cache = room_for(10);
    for number in 0..9 {
        cache.admit(thousand(number), 1000);
    }
    cache.admit(thousand(9), 1_000_000);
    let large = value(10, 10_000 - ENTRY as usize);
    assert_eq!(cache.admit(large, 500_000), Admission::Refused(Refusal::WorthLess));
    let stats = cache.stats();
    assert_eq!((stats.entries, stats.evicted, stats.refused_worth_less), (10, 0, 1));
}

#[test]
fn what_is_worth_far_more_survives() {
    let cache = room_for(10);
    cache.admit(thousand(0), 1_000_000);
    for number in 1..1000 {
        assert_eq!(cache.admit(thousand(number), 1000), Admission::Admitted);
    }
    assert!(cache.contains(&name(0)));
    assert_eq!(held(&cache, 991..1000), 9);
}

#[test]
fn what_is_small_outlives_what_is_large() {
    let cache = room_for(10);
    cache.admit(value(0, 8), 1000);
    cache.admit(value(1, 5000), 1000);
    for number in 2..8 {
        cache.admit(thousand(number), 1000);
    }
    assert!(cache.contains(&address(0, 8)) && !cache.contains(&address(1, 5000)));
}

#[test]
fn what_is_used_survives_a_scan() {
    let cache = full_of(100, 4);
    for number in 100..3000 {
        cache.admit(thousand(number), 1000);
        cache.get(&name(number % 50));
    }
    assert_eq!(held(&cache, 0..50), 50);
    assert!(held(&cache, 50..100) == 0 && held(&cache, 2950..3000) == 50);
}

#[test]
fn a_scan_throws_out_nothing_that_was_hot() {
    let cache = full_of(100, 20);
    for number in 100..1000 {
        assert_eq!(cache.admit(thousand(number), 1000), Admission::Refused(Refusal::WorthLess));
    }
    assert_eq!((held(&cache, 0..100), cache.stats().refused_worth_less), (100, 900));
}

#[test]
fn what_was_hot_long_ago_leaves() {
    let all_hot = full_of(100, 10_000);
    for number in 100..2000 {
        all_hot.admit(thousand(number), 1000);
    }
    assert_eq!(held(&all_hot, 0..100), 0);

    let one_hot = room_for(100);
    one_hot.admit(thousand(0), 1000);
    (0..10_000).for_each(|_| assert!(one_hot.get(&name(0)).is_some()));
    for number in 1..2000 {
        one_hot.admit(thousand(number), 1000);
    }
    assert!(!one_hot.contains(&name(0)));
}

/// A large age swallows what a cheap value adds to it; it has to rise all the same.
#[test]
fn a_very_old_cache_still_changes() {
    let cache = room_for(2);
    (0..4).for_each(|number| assert_eq!(cache.admit(thousand(number), u64::MAX), Admission::Admitted));
    (2..4).for_each(|number| assert!(cache.remove(&name(number))));
    (4..6).for_each(|number| assert_eq!(cache.admit(thousand(number), 1_000_000), Admission::Admitted));
    for number in 6..1000 {
        cache.admit(thousand(number), 1);
    }
    assert_eq!((held(&cache, 4..6), held(&cache, 998..1000)), (0, 2));
}

#[test]
fn pinned_values_stay() {
    let cache = room_for(3);
    cache.admit(thousand(0), 0);
    cache.pin(name(0));
    cache.pin(name(0));
    cache.pin(name(1));
    assert_eq!((cache.stats().bytes, cache.stats().pinned_bytes), (1000, 1000));
    cache.admit(thousand(1), 0);
    for number in 2..100 {
        assert_eq!(cache.admit(thousand(number), 1000), Admission::Admitted);
    }
    assert_eq!((held(&cache, 0..2), cache.stats().pinned_bytes), (2, 2000));

    assert!(cache.unpin(&name(0)) && cache.unpin(&name(1)));
    cache.admit(thousand(100), 1000);
    assert_eq!((held(&cache, 0..2), cache.stats().pinned_bytes), (1, 1000));
    assert!(cache.unpin(&name(0)) && !cache.unpin(&name(0)));
    cache.admit(thousand(101), 1000);
    assert_eq!((held(&cache, 0..2), cache.stats().pinned_bytes), (0, 0));
}

#[test]
fn a_cache_full_of_pinned_values_refuses() {
    let cache = full_of(4, 1);
    (0..3).for_each(|number| cache.pin(name(number)));
    let two_thousand = 2000 - ENTRY as usize;
    assert_eq!(cache.admit(value(9, two_thousand), u64::MAX), Admission::Refused(Refusal::AllPinned));
    assert_eq!(cache.admit(thousand(4), 1000), Admission::Admitted);
    cache.pin(name(4));
    assert_eq!(cache.admit(thousand(5), u64::MAX), Admission::Refused(Refusal::AllPinned));
    assert_eq!(cache.stats().refused_all_pinned, 2);
}

#[test]
fn a_pinned_value_enters_whatever_it_is_worth() {
    let cache = full_of(4, 16);
    assert_eq!(cache.admit(thousand(4), 0), Admission::Refused(Refusal::WorthLess));
    cache.pin(name(4));
    assert_eq!(cache.admit(thousand(4), 0), Admission::Admitted);
}

#[test]
fn removing_a_pinned_value_leaves_its_pin() {
    let cache = room_for(1);
    cache.pin(name(0));
    cache.admit(thousand(0), 0);
    assert!(cache.remove(&name(0)));
    assert_eq!(cache.stats().pinned_bytes, 0);
    cache.admit(thousand(0), 0);
    assert_eq!(cache.admit(thousand(1), 1000), Admission::Refused(Refusal::AllPinned));
}
