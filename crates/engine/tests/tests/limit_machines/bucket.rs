//! Token buckets: exact to the nanosecond, and never more than was promised.

use std::time::{Duration, Instant};

use anabranch_engine::clock::{Clock, SystemClock};
use anabranch_engine::limit::{Bucket, Quota, Rate};
use expect_test::{Expect, expect};
use proptest::prelude::*;

const MINUTE: Duration = Duration::from_secs(60);
const DAY: Duration = Duration::from_secs(24 * 60 * 60);

fn per_minute(amount: u64, burst: u64) -> (Bucket, Instant) {
    let now = SystemClock.now();
    (Bucket::new(Rate { amount, per: MINUTE, burst }, now).unwrap(), now)
}

fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

#[test]
fn refills_while_it_is_not_full() {
    let (mut bucket, start) = per_minute(60, 10);
    assert_eq!(bucket.take(start, 10), Ok(()));
    assert_eq!(bucket.take(start, 3), Err(start + seconds(3)));
    assert_eq!(bucket.take(start + seconds(3), 3), Ok(()));
    assert_eq!(bucket.left(start + seconds(3600)), 10);
}

#[test]
fn does_not_drift() {
    let start = SystemClock.now();
    let mut bucket = Bucket::new(Rate { amount: 7, per: seconds(3), burst: 5 }, start).unwrap();
    let end = start + seconds(10 * 3600);
    let (mut now, mut taken) = (start, 0);
    while now <= end {
        match bucket.take(now, 1) {
            Ok(()) => taken += 1,
            Err(at) => now = at,
        }
    }
    assert_eq!(taken, 5 + 10 * 3600 * 7 / 3);
}

#[test]
fn more_than_fits_waits_for_a_full_bucket_and_leaves_debt() {
    let (mut bucket, start) = per_minute(60, 10);
    assert_eq!(bucket.take(start, 1), Ok(()));
    assert_eq!(bucket.take(start, 25), Err(start + seconds(1)));
    assert_eq!(bucket.take(start + seconds(1), 25), Ok(()));
    assert_eq!(bucket.take(start + seconds(1), 1), Err(start + seconds(1 + 15 + 1)));
}

#[test]
fn a_wait_of_more_than_a_day_is_told_a_day_at_a_time() {
    let start = SystemClock.now();
    let mut bucket = Bucket::new(Rate { amount: 1, per: seconds(3600), burst: 20 }, start).unwrap();
    assert_eq!(bucket.take(start, 40), Ok(()));
    assert_eq!(bucket.take(start, 20), Err(start + DAY));
    assert_eq!(bucket.take(start + DAY, 20), Err(start + seconds(40 * 3600)));
    assert_eq!(bucket.take(start + seconds(40 * 3600), 20), Ok(()));
}

#[test]
fn an_estimate_is_corrected() {
    let (mut bucket, start) = per_minute(60, 100);
    assert_eq!(bucket.take(start, 50), Ok(()));
    bucket.settle(start, 50, 20);
    assert_eq!(bucket.left(start), 80);
    assert_eq!(bucket.take(start, 50), Ok(()));
    bucket.settle(start, 50, 90);
    assert_eq!(bucket.take(start, 1), Err(start + seconds(11)));
    bucket.settle(start + seconds(11), 0, 0);
    assert_eq!(bucket.left(start + seconds(11)), 1);
}

/// What is left after ten are taken of a hundred, ten more are outstanding, and the backend gave its word.
fn check_word(remaining: u64, limit: Option<u64>, expected: u64) {
    let (mut bucket, start) = per_minute(60, 100);
    assert_eq!(bucket.take(start, 10), Ok(()));
    assert_eq!(bucket.take(start, 10), Ok(()));
    bucket.settle(start, 10, 10);
    bucket.feed(start, Quota { limit, remaining, full_at: None });
    assert_eq!(bucket.left(start), expected, "{remaining} {limit:?}");
}

#[test]
fn the_backend_has_the_last_word() {
    check_word(90, None, 80); // it has not counted what is outstanding
    check_word(80, None, 80); // it has
    check_word(85, None, 80);
    check_word(30, None, 30); // somebody else takes too
    check_word(0, None, 0);
    check_word(95, None, 85); // less was used than was settled
    check_word(400, None, 90); // never more than fits
    check_word(90, Some(50), 50);
    check_word(90, Some(500), 80);
}

#[test]
fn a_lower_limit_of_the_backend_slows_it_down() {
    let (mut bucket, start) = per_minute(60, 60);
    bucket.feed(start, Quota { limit: Some(6), remaining: 0, full_at: None });
    assert_eq!(bucket.take(start, 1), Err(start + seconds(10)));
    bucket.feed(start, Quota { limit: Some(120), remaining: 0, full_at: None });
    assert_eq!(bucket.take(start, 1), Err(start + seconds(1)));
    bucket.feed(start, Quota { limit: Some(0), remaining: 0, full_at: None });
    assert_eq!(bucket.take(start, 1), Err(start + seconds(60)));
}

#[test]
fn is_not_full_before_the_backend_is() {
    let (mut bucket, start) = per_minute(60, 60);
    let feed = |bucket: &mut Bucket, remaining, full_in| {
        let full_at = Some(start + seconds(full_in));
        bucket.feed(start, Quota { limit: None, remaining, full_at });
    };
    feed(&mut bucket, 30, 50);
    assert_eq!(bucket.left(start + seconds(20)), 30);
    assert_eq!(bucket.left(start + seconds(49)), 59);
    assert_eq!(bucket.take(start + seconds(10), 31), Err(start + seconds(21)));
    feed(&mut bucket, 0, 60);
    assert_eq!(bucket.take(start, 5), Err(start + seconds(5)));
    feed(&mut bucket, 0, 1);
    assert_eq!(bucket.take(start, 5), Err(start + seconds(5)));
}

fn check_rate(amount: u64, per: Duration, burst: u64, expected: Expect) {
    let made = Bucket::new(Rate { amount, per, burst }, SystemClock.now());
    expected.assert_eq(&made.map_or_else(|error| error.to_string(), |_| "fine".into()));
}

#[test]
fn rates_are_checked() {
    check_rate(1, Duration::from_nanos(1), 1, expect!["fine"]);
    check_rate(0, MINUTE, 1, expect!["`amount` is 0, so no call could ever be made; set a larger value"]);
    check_rate(
        1,
        Duration::ZERO,
        1,
        expect!["`per` is 0, so no call could ever be made; set a larger value"],
    );
    check_rate(1, MINUTE, 0, expect!["`burst` is 0, so no call could ever be made; set a larger value"]);
}

fn rates() -> impl Strategy<Value = Rate> {
    (1_u64..2000, 1_u64..100_000_000_000, 1_u64..500).prop_map(|(amount, per, burst)| Rate {
        amount,
        per: Duration::from_nanos(per),
        burst,
    })
}

proptest! {
    #[test]
    fn never_grants_more_than_burst_and_flow(
        rate in rates(),
        asks in prop::collection::vec((0_u64..3_000_000_000, 1_u64..500), 1..120),
    ) {
        let start = SystemClock.now();
        let mut bucket = Bucket::new(rate, start).unwrap();
        let mut now = start;
        let mut granted: Vec<(Instant, u64)> = Vec::new();
        for (pause, amount) in asks {
            now += Duration::from_nanos(pause);
            let amount = amount.min(rate.burst);
            if bucket.take(now, amount).is_ok() {
                granted.push((now, amount));
            }
        }
        for first in 0..granted.len() {
            let mut sum = 0;
            for &(at, amount) in &granted[first..] {
                sum += u128::from(amount);
                let flow = u128::from(rate.amount) * (at - granted[first].0).as_nanos();
                prop_assert!((sum - u128::from(rate.burst).min(sum)) * rate.per.as_nanos() <= flow);
            }
        }
    }

    #[test]
    fn the_wait_it_tells_is_exact(rate in rates(), first in 1_u64..1000, second in 1_u64..1000) {
        let mut now = SystemClock.now();
        let mut bucket = Bucket::new(rate, now).unwrap();
        prop_assert!(bucket.take(now, first).is_ok());
        while let Err(at) = bucket.take(now, second) {
            // A longer wait is told a day at a time.
            if at < now + DAY {
                let early = at - Duration::from_nanos(1);
                prop_assert_eq!(bucket.clone().take(early, second), Err(at));
                prop_assert!(bucket.clone().take(at, second).is_ok());
            }
            now = at;
        }
    }

    #[test]
    fn holds_no_more_than_fits_whatever_it_is_told(
        amount in 1_u64.., per in 1_u64.., burst in 1_u64..,
        told in prop::collection::vec((0_u64..10_000_000_000, any::<u64>(), any::<u64>(), 0..4), 0..40),
    ) {
        let start = SystemClock.now();
        let mut bucket = Bucket::new(Rate { amount, per: Duration::from_nanos(per), burst }, start).unwrap();
        for (after, one, other, what) in told {
            let now = start + Duration::from_nanos(after);
            match what {
                0 => { let _ = bucket.take(now, one); }
                1 => bucket.settle(now, one, other),
                2 => bucket.feed(now, Quota { limit: Some(one), remaining: other, full_at: None }),
                _ => bucket.feed(now, Quota { limit: None, remaining: other, full_at: Some(start) }),
            }
            prop_assert!(bucket.left(now) <= burst);
        }
    }
}
