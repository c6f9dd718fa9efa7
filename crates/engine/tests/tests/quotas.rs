//! Quotas that a backend reports: rates that a limit learns, tokens that are overdrawn, and the counts for displays.

use std::sync::Arc;
use std::time::Duration;

use anabranch_engine::limit::{Allowance, LimitKey, Limits, Quota, Rate};
use anabranch_engine::{Config, Options};
use anabranch_testkit::Sim;
use expect_test::expect;

use crate::drain::both;
use crate::script::{Player, Script, play_limited};

/// Four calls to a backend without a rate of its own, after `before`.
fn four_calls_after(before: impl FnOnce(&Limits, LimitKey)) -> String {
    let add = |table: &Limits| {
        let key = table.add("backend", Allowance::adaptive()).unwrap();
        before(table, key);
        vec![key]
    };
    let calls = "a: io 1 limit 0; b: io 1 limit 0; c: io 1 limit 0; d: io 1 limit 0";
    play_limited(calls, add, |_, _| {}).timeline
}

fn quota(limit: u64, remaining: u64) -> Quota {
    Quota { limit: Some(limit), remaining, full_at: None }
}

#[test]
fn a_reported_rate_paces_calls() {
    // One per second, two of them left.
    expect!["0..1 a | 0..1 b | 1000..1001 c | 2000..2001 d"]
        .assert_eq(&four_calls_after(|limits, key| limits.feed_requests(key, quota(60, 2))));
    // The next report is of twice the rate.
    expect!["0..1 a | 0..1 b | 500..501 c | 1000..1001 d"].assert_eq(&four_calls_after(|limits, key| {
        limits.feed_requests(key, quota(60, 9));
        limits.feed_requests(key, quota(120, 2));
    }));
    // A report without a limit, or with none at all, makes no rate.
    expect!["0..1 a | 0..1 b | 0..1 c | 0..1 d"].assert_eq(&four_calls_after(|limits, key| {
        limits.feed_requests(key, Quota { limit: None, ..quota(0, 0) });
        limits.feed_tokens(key, quota(0, 0));
    }));
}

#[test]
fn overdrawn_tokens_hold_calls_back_until_they_are_refilled() {
    // 1,000 tokens per second and 1,000 left, of which the call before used 3,000.
    expect!["2000..2001 a | 2000..2001 b | 2000..2001 c | 2000..2001 d"].assert_eq(&four_calls_after(
        |limits, key| {
            limits.feed_tokens(key, quota(60_000, 1_000));
            limits.used(key, 0, 3_000);
        },
    ));
}

#[test]
fn the_window_of_a_reported_rate_follows_from_the_time_until_it_is_full() {
    let sim = Sim::new(1);
    let clock = sim.clock();
    let limits = Limits::new(sim.clock());
    let key = limits.add("backend", Allowance::adaptive()).unwrap();
    let left = |limits: &Limits| limits.status(key).requests_left;
    let seconds = Duration::from_secs;
    let wait = |time: u64| sim.block_on(clock.sleep_until(clock.now() + seconds(time)));
    assert_eq!(left(&limits), None);
    // A tenth of a thousand comes back in a tenth of a day.
    let report = |limit, remaining, full_in| Quota {
        full_at: Some(clock.now() + seconds(full_in)),
        ..quota(limit, remaining)
    };
    limits.feed_requests(key, report(1_000, 900, 8_640));
    wait(864);
    assert_eq!(left(&limits), Some(910));
    // At the end of a fixed window it still is the quota of a day.
    limits.feed_requests(key, report(1_000, 900, 50));
    wait(49);
    assert_eq!(left(&limits), Some(900));
    // Another limit is another quota, here one of a minute.
    limits.feed_requests(key, report(600, 0, 60));
    wait(1);
    assert_eq!(left(&limits), Some(10));
    // Nothing used, and full in a week: no window is longer than a day.
    limits.feed_requests(key, report(86_400, 86_399, 7 * 86_400));
    wait(1);
    assert_eq!(left(&limits), Some(86_399));
}

#[test]
fn calls_in_flight_stay_counted_when_the_window_changes() {
    let sim = Sim::new(1);
    let engine = sim.engine(&Config::default());
    let limits = Limits::new(Arc::clone(engine.clock()));
    let key = limits.add("backend", Allowance::fixed(100)).unwrap();
    limits.feed_requests(key, quota(100, 100));
    let calls: Vec<String> = (0..10).map(|n| format!("n{n}: io 1000 limit 0")).collect();
    let script = Script::parse_with(&calls.join("; "), &[key]);
    let mut player = Player::new(&script, engine.clock());
    let options = Options { limits: Some(limits.clone()), ..Options::default() };
    let run = engine.run(&script.dag, &script.policies, &mut player, &options).unwrap();
    let report = async {
        assert_eq!(limits.status(key).requests_left, Some(90));
        // The backend has counted between none and all of the ten, so 90 may be right.
        let full_at = Some(engine.clock().now() + Duration::from_secs(600));
        limits.feed_requests(key, Quota { full_at, ..quota(100, 95) });
        limits.status(key).requests_left
    };
    let (result, left) = sim.block_on(both(run, report));
    assert_eq!((result.unwrap().finished, left), (10, Some(90)));
}

#[test]
fn one_refused_key_leaves_another_at_full_speed() {
    let nodes = |refused: &str| {
        let first = (0..20).map(|n| format!("x{n}: io 10 limit 0 {refused}"));
        let second = (0..60).map(|n| format!("y{n}: io 10 limit 1"));
        first.chain(second).collect::<Vec<_>>().join("; ")
    };
    let second_key = |script: String| {
        let add =
            |table: &Limits| ["x", "y"].map(|name| table.add(name, Allowance::adaptive()).unwrap()).to_vec();
        let played = play_limited(&script, add, |_, _| {});
        assert_eq!(played.result.unwrap().finished, 80);
        let starts = played.timeline.split(" | ").filter(|part| part.contains(" y"));
        (starts.collect::<Vec<_>>().join(" | "), played.took)
    };
    let (quiet, quick) = second_key(nodes(""));
    let (beside, slow) = second_key(nodes("retry 1 throttled 1 5000"));
    assert_eq!(quiet, beside);
    assert!(quick < Duration::from_millis(200) && slow > Duration::from_secs(5), "{quick:?} {slow:?}");
}

#[test]
fn a_status_counts_calls_and_refusals_up_to_the_account() {
    let sim = Sim::new(1);
    let engine = sim.engine(&Config::default());
    let limits = Limits::new(Arc::clone(engine.clock()));
    let tokens = Some(Rate { amount: 1, per: Duration::from_secs(1), burst: 100 });
    let account = limits.add("account", Allowance { tokens, ..Allowance::fixed(9) }).unwrap();
    let key = limits.add("backend", Allowance { parent: Some(account), ..Allowance::fixed(9) }).unwrap();
    let script = Script::parse_with(
        "a: io 1 limit 0 tokens 30; b: io 1 limit 0 throttled 2 10 retry 1; c: limit 0 skip",
        &[key],
    );
    let mut player = Player::new(&script, engine.clock());
    let options = Options { limits: Some(limits.clone()), ..Options::default() };
    sim.block_on(engine.run(&script.dag, &script.policies, &mut player, &options).unwrap()).unwrap();
    for (key, tokens_left) in [(key, None), (account, Some(70))] {
        let status = limits.status(key);
        assert_eq!((status.calls, status.refused), (4, 2));
        assert_eq!((status.requests_left, status.tokens_left), (None, tokens_left));
    }
}
