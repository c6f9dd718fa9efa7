//! Limits, retries and turns in runs, on the virtual machine: what waits holds nothing, and each wait is exact.

use std::sync::Arc;
use std::time::Duration;

use anabranch_engine::event::{EventKind, ListenerItem};
use anabranch_engine::limit::{Allowance, Concurrency, LimitKey, Limits, Quota, Rate};
use anabranch_engine::{Config, Options};
use anabranch_testkit::{Rng, Sim};
use expect_test::expect;

use crate::drain::both;
use crate::script::{Player, Script, ScriptOutcome, listen, play, play_limited};

fn fixed(limit: u32) -> Allowance {
    Allowance { concurrency: Concurrency::Fixed(limit), requests: None, tokens: None, parent: None }
}

fn play_fixed(script: &str, limits: &[u32]) -> ScriptOutcome {
    play_limited(
        script,
        |table| {
            let added =
                limits.iter().enumerate().map(|(place, limit)| table.add(&place.to_string(), fixed(*limit)));
            added.collect::<Result<_, _>>().unwrap()
        },
        |_, _| {},
    )
}

#[test]
fn a_limit_lets_so_many_through_lowest_number_first() {
    let played = play_fixed(
        "a: io 10 limit 0; b: io 10 limit 0; c: io 10 limit 0; free: io 10; d: io 10 limit 0",
        &[2],
    );
    expect!["0..10 a | 0..10 b | 0..10 free | 10..20 c | 10..20 d"].assert_eq(&played.timeline);
}

#[test]
fn a_lower_number_that_becomes_ready_later_still_goes_first() {
    let played = play_fixed(
        "late: io 5 limit 0 <- gate; b: io 10 limit 0; c: io 10 limit 0; d: io 10 limit 0; gate: io 3",
        &[1],
    );
    expect!["0..10 b | 0..3 gate | 10..15 late | 15..25 c | 25..35 d"].assert_eq(&played.timeline);
}

#[test]
fn every_kind_of_step_gives_its_slot_back() {
    for step in ["", "io 1", "spawn 1", "cpu 1", "cpu 0.001", "block 1", "skip"] {
        for end in ["", "fail isolate", "panic isolate", "timeout 0.5 isolate", "panic fallback"] {
            let script = format!("a: {step} {end} limit 0; b: io 1 limit 0; c: io 1 limit 0 drops b");
            play_fixed(&script, &[1]).result.unwrap();
        }
        let stopped = play_fixed(&format!("a: {step} limit 0; b: fail limit 0"), &[2]);
        assert!(stopped.result.is_err());
    }
}

#[test]
fn keys_under_one_account_share_its_limit() {
    let script = "a: io 10 limit 1; b: io 10 limit 1; c: io 10 limit 2; d: io 10 limit 2; e: io 10 limit 2";
    let played = play_limited(
        script,
        |table| {
            let account = table.add("account", fixed(3)).unwrap();
            let child = Allowance { parent: Some(account), ..fixed(2) };
            vec![account, table.add("x", child).unwrap(), table.add("y", child).unwrap()]
        },
        |_, _| {},
    );
    expect!["0..10 a | 0..10 b | 0..10 c | 10..20 d | 10..20 e"].assert_eq(&played.timeline);
}

#[test]
fn retry_after_is_honoured_to_the_millisecond_and_cools_that_key_only() {
    let played = play_fixed(
        "a: io 10 limit 0 retry 1 throttled 1 137; b: io 10 limit 0; other1: io 10 limit 1; other2: io 10 limit 1; \
         c: io 10 limit 0",
        &[1, 1],
    );
    expect!["0..177 a | 0..10 other1 | 10..20 other2 | 147..157 b | 157..167 c | 167..177 a"]
        .assert_eq(&played.timeline);
}

#[test]
fn a_refusal_is_no_failed_try() {
    let played = play_fixed("a: io 1 limit 0 retry 0 throttled 5 10", &[1]);
    assert_eq!(played.result.unwrap().finished, 1);
    assert_eq!(played.took.as_millis(), 6 + 5 * 10);
}

#[test]
fn without_a_limit_the_refused_node_waits_by_itself() {
    let played = play("a: io 1 retry 1 throttled 1 50; b: io 60");
    expect!["0..52 a | 0..60 b | 51..52 a"].assert_eq(&played.timeline);
}

#[test]
fn a_transient_failure_is_tried_again_so_often_and_no_more() {
    assert_eq!(play("a: io 1 flaky 2 retry 2").result.unwrap().finished, 1);
    assert_eq!(play("a: io 1 flaky 3 retry 2").result.unwrap_err().to_string(), "node #0 failed: flaked");
    assert_eq!(play("a: io 1 fail retry 9").took.as_millis(), 1, "a permanent failure is final");
    assert_eq!(play("a: io 1 panic retry 9").took.as_millis(), 1, "and so is a panic");
    let played = play("a: io 50 timeout 5 retry 1 isolate");
    assert_eq!(played.result.unwrap().failed, 1, "a timeout is transient");
    assert!(played.took.as_millis() > 10);
}

#[test]
fn pauses_double_and_are_spread() {
    // Three pauses of 8, 16 and 32 ms, each between three and five quarters of that.
    let took = play("a: flaky 3 retry 3").took;
    assert!((42..70).contains(&took.as_millis()), "{took:?}");
    let script: Vec<String> = (0..20).map(|n| format!("n{n}: flaky 1 retry 1")).collect();
    let played = play(&script.join("; "));
    let ends: std::collections::HashSet<&str> =
        played.timeline.split(" | ").filter(|part| !part.starts_with("0..")).collect();
    assert!(ends.len() > 3, "tried again together: {ends:?}");
}

#[test]
fn a_node_that_pauses_holds_no_slot_and_fresh_work_goes_first() {
    let played = play_fixed(
        "a: io 2 limit 0 flaky 1 retry 1; b: io 20 limit 0; c: io 20 limit 0; d: io 20 limit 0",
        &[1],
    );
    // The pause is over while b runs; c and d were never tried and go before the second try.
    expect!["0..64 a | 2..22 b | 22..42 c | 42..62 d | 62..64 a"].assert_eq(&played.timeline);
}

#[test]
fn nodes_that_share_a_serial_key_run_one_at_a_time_in_number_order() {
    let played =
        play("c: io 5 serial 1 <- gate; a: io 10 serial 1; b: io 10 serial 1; gate: io 3; x: io 10 serial 2");
    expect!["0..10 a | 0..3 gate | 0..10 x | 10..15 c | 15..25 b"].assert_eq(&played.timeline);
}

#[test]
fn a_turn_that_comes_is_as_good_as_being_ready() {
    // When `a` passes its turn to `b`, the higher numbers have been ready all along.
    let played = play_limited(
        "a: io 1 serial 1; b: io 1 serial 1; c: io 1; d: io 1; e: io 1",
        |_| vec![],
        |options, _| options.in_flight = 1,
    );
    expect!["0..1 a | 1..2 b | 2..3 c | 3..4 d | 4..5 e"].assert_eq(&played.timeline);
}

#[test]
fn a_slot_that_came_too_late_gives_its_tokens_back() {
    // The run has no slot of its own to spare when the limit's comes.
    let tokens = Rate { amount: 1, per: Duration::from_secs(1), burst: 10 };
    let played = play_limited(
        "hog: io 50 limit 1; b: io 5 limit 0 tokens 5; c: io 5 limit 0 tokens 5; d: io 100",
        |table| {
            let limited = Allowance { tokens: Some(tokens), ..fixed(1) };
            vec![table.add("backend", limited).unwrap(), table.add("other", fixed(1)).unwrap()]
        },
        |options, _| options.in_flight = 2,
    );
    assert_eq!(played.result.unwrap().finished, 4);
    assert!(played.took < Duration::from_secs(1), "waited for tokens that were there: {:?}", played.took);
}

#[test]
fn a_turn_is_kept_while_its_node_pauses_and_passed_on_however_it_ends() {
    let played = play("a: io 1 serial 1 flaky 1 retry 1; b: io 1 serial 1");
    let order: Vec<&String> = played.calls.iter().collect();
    assert_eq!(order, ["finish a", "finish b"]);
    for end in ["fail isolate", "panic isolate", "timeout 0.5 isolate", "skip", "fail fallback"] {
        let played = play(&format!("a: io 1 serial 1 {end}; b: io 1 serial 1; c: io 1 serial 1"));
        assert!(played.calls.contains(&"finish c".to_owned()), "{end}");
    }
    let played = play("a: io 50 serial 1; b: io 1 serial 1; killer: io 2 drops a");
    assert!(played.calls.contains(&"finish b".to_owned()));
    let played = play("a: io 5 serial 1; b: io 1 serial 1; c: io 1 serial 1; killer: io 2 drops b");
    assert!(played.calls.contains(&"finish c".to_owned()));
}

#[test]
fn a_node_with_a_fallback_does_not_wait_past_its_cutoff() {
    let played = play_limited(
        "hog: io 95 limit 0; late: io 1 limit 0 fallback; tail <- late",
        |table| vec![table.add("backend", fixed(1)).unwrap()],
        |options, now| options.deadline = Some(now + Duration::from_millis(100)),
    );
    assert_eq!(played.result.unwrap().fell_back, 1);
    expect!["0..95 hog | 90 late fell back | 90..90 tail"].assert_eq(&played.timeline);
    let played = play_limited(
        "flaky: io 1 flaky 9 retry 9 fallback; tail <- flaky",
        |_| vec![],
        |options, now| options.deadline = Some(now + Duration::from_millis(100)),
    );
    assert_eq!((played.result.unwrap().fell_back, played.took.as_millis()), (1, 90));
}

#[test]
fn a_deadline_names_nodes_that_only_wait() {
    let played = play_limited(
        "a: io 1 limit 0 throttled 1 1000 retry 1",
        |table| vec![table.add("backend", fixed(1)).unwrap()],
        |options, now| options.deadline = Some(now + Duration::from_millis(100)),
    );
    assert_eq!(played.result.unwrap_err().to_string(), "the deadline passed with [#0] still to finish");
    assert_eq!(played.took.as_millis(), 100);
}

#[test]
fn a_run_with_as_much_in_flight_as_it_may_hands_slots_on() {
    let played = play_limited(
        "a: io 10; b: io 10 limit 0; c: io 10 limit 0; d: io 10",
        |table| vec![table.add("backend", fixed(5)).unwrap()],
        |options, _| options.in_flight = 1,
    );
    assert_eq!(played.result.unwrap().finished, 4);
    assert_eq!(played.took.as_millis(), 40);
}

/// Two runs on one engine and one limit; the order in which their nodes start.
fn starts_of_two(first: &str, second: &str, allowance: Allowance) -> String {
    let sim = Sim::new(1);
    let engine = sim.engine(&Config::default());
    let limits = Limits::new(Arc::clone(engine.clock()));
    let keys: Vec<LimitKey> = vec![limits.add("backend", allowance).unwrap()];
    let mut listener = listen(&engine);
    let scripts = [first, second].map(|text| Script::parse_with(text, &keys));
    let options = Options { limits: Some(limits), ..Options::default() };
    let mut players = [0, 1].map(|number| Player::new(&scripts[number], engine.clock()));
    let [one, two] = &mut players;
    let runs = (
        engine.run(&scripts[0].dag, &scripts[0].policies, one, &options).unwrap(),
        engine.run(&scripts[1].dag, &scripts[1].policies, two, &options).unwrap(),
    );
    let (a, b) = sim.block_on(both(runs.0, runs.1));
    a.unwrap();
    b.unwrap();
    let mut starts = Vec::new();
    while let Some(ListenerItem::Event(event)) = listener.try_next() {
        if let EventKind::Started(node, _) = event.kind {
            starts.push((event.at, scripts[event.run.0 as usize].name(node).to_owned()));
        }
    }
    starts.sort();
    starts.into_iter().map(|(_, name)| name).collect::<Vec<_>>().join(" ")
}

#[test]
fn runs_take_turns_at_a_limit() {
    let many: Vec<String> = (0..6).map(|n| format!("a{n}: io 10 limit 0")).collect();
    let few: Vec<String> = (0..3).map(|n| format!("b{n}: io 10 limit 0")).collect();
    assert_eq!(starts_of_two(&many.join("; "), &few.join("; "), fixed(1)), "a0 a1 b0 a2 b1 a3 b2 a4 a5");
}

/// Runs scripts beside each other under one limit; which run started a node, in order.
fn starts_of_all(scripts: &[String], limit: u32, seed: u64) -> Vec<usize> {
    let sim = Sim::new(seed);
    let engine = sim.engine(&Config::default());
    let limits = Limits::new(Arc::clone(engine.clock()));
    let key = limits.add("backend", fixed(limit)).unwrap();
    let mut listener = listen(&engine);
    let scripts: Vec<Script> = scripts.iter().map(|text| Script::parse_with(text, &[key])).collect();
    let options = Options { limits: Some(limits), ..Options::default() };
    let mut players: Vec<Player<'_>> =
        scripts.iter().map(|script| Player::new(script, engine.clock())).collect();
    let runs = scripts
        .iter()
        .zip(&mut players)
        .map(|(script, player)| engine.run(&script.dag, &script.policies, player, &options).unwrap());
    let mut runs: Vec<_> = runs.collect();
    sim.block_on(std::future::poll_fn(|cx| {
        runs.retain_mut(|run| std::pin::Pin::new(run).poll(cx).is_pending());
        if runs.is_empty() { std::task::Poll::Ready(()) } else { std::task::Poll::Pending }
    }));
    let events = std::iter::from_fn(|| listener.try_next());
    let starts = events.filter_map(|heard| match heard {
        ListenerItem::Event(event) if matches!(event.kind, EventKind::Started(..)) => {
            Some((event.at, event.run.0 as usize))
        }
        _ => None,
    });
    let mut starts: Vec<_> = starts.collect();
    starts.sort_by_key(|(at, _)| *at);
    starts.into_iter().map(|(_, run)| run).collect()
}

#[test]
fn no_run_starves_between_two_of_its_starts_every_other_has_at_most_one_turn() {
    for seed in 0..300 {
        let mut rng = Rng::new(seed);
        let limit = rng.within(1..4) as u32;
        let scripts: Vec<String> = (0..rng.within(2..6))
            .map(|_| {
                let nodes = (0..rng.within(1..12)).map(|n| format!("n{n}: io {} limit 0", rng.within(1..9)));
                nodes.collect::<Vec<_>>().join("; ")
            })
            .collect();
        let starts = starts_of_all(&scripts, limit, seed);
        for run in 0..scripts.len() {
            let own: Vec<usize> = (0..starts.len()).filter(|place| starts[*place] == run).collect();
            for pair in own.windows(2) {
                for other in (0..scripts.len()).filter(|other| *other != run) {
                    let turns = starts[pair[0]..pair[1]].iter().filter(|start| **start == other).count();
                    // Starts at one instant are heard run by run, so up to all slots may stand together.
                    assert!(
                        turns <= limit as usize + 1,
                        "seed {seed}: run {other} had {turns} turns before {run}"
                    );
                }
            }
        }
    }
}

#[test]
fn many_small_calls_never_starve_a_large_one() {
    // 100 tokens a second, 10 at once: the large call wants all ten while the other run takes two at a time.
    let tokens = Rate { amount: 100, per: Duration::from_secs(1), burst: 10 };
    let allowance = Allowance { tokens: Some(tokens), ..fixed(10) };
    let small: Vec<String> = (0..12).map(|n| format!("s{n}: io 1 limit 0 tokens 2")).collect();
    assert_eq!(
        starts_of_two(&small.join("; "), "large: io 1 limit 0 tokens 10", allowance),
        "s0 s1 s2 s3 s4 s5 large s6 s7 s8 s9 s10 s11"
    );
    // When `s` asks there are tokens enough for it, but not yet for the one that asked before.
    let latecomer = "drain: io 1 limit 0 tokens 10; gate: io 30; s: io 1 limit 0 tokens 2 <- gate";
    assert_eq!(starts_of_two(latecomer, "large: io 1 limit 0 tokens 10", allowance), "drain gate large s");
}

#[test]
fn calls_are_spread_to_the_rate_exactly() {
    let requests = Rate { amount: 10, per: Duration::from_secs(1), burst: 2 };
    let played = play_limited(
        "a: io 1 limit 0; b: io 1 limit 0; c: io 1 limit 0; d: io 1 limit 0; free: io 1",
        |table| vec![table.add("backend", Allowance { requests: Some(requests), ..fixed(9) }).unwrap()],
        |_, _| {},
    );
    expect!["0..1 a | 0..1 b | 0..1 free | 100..101 c | 200..201 d"].assert_eq(&played.timeline);
}

#[test]
fn the_backends_own_word_on_what_is_left_counts() {
    let sim = Sim::new(1);
    let engine = sim.engine(&Config::default());
    let limits = Limits::new(Arc::clone(engine.clock()));
    let rate = Rate { amount: 600, per: Duration::from_secs(60), burst: 600 };
    let key = limits.add("backend", Allowance { requests: Some(rate), ..fixed(9) }).unwrap();
    limits.feed_requests(key, Quota { limit: Some(600), remaining: 0, full_at: None });
    let script = Script::parse_with("a: io 1 limit 0", &[key]);
    let mut player = Player::new(&script, engine.clock());
    let options = Options { limits: Some(limits.clone()), ..Options::default() };
    let began = engine.clock().now();
    sim.block_on(engine.run(&script.dag, &script.policies, &mut player, &options).unwrap()).unwrap();
    // Ten a second: the next is there after a tenth of one.
    assert_eq!((engine.clock().now() - began).as_millis(), 101);
    // What ended is no longer outstanding, so a kinder word is believed.
    limits.feed_requests(key, Quota { limit: Some(600), remaining: 500, full_at: None });
    let began = engine.clock().now();
    let mut player = Player::new(&script, engine.clock());
    sim.block_on(engine.run(&script.dag, &script.policies, &mut player, &options).unwrap()).unwrap();
    assert_eq!((engine.clock().now() - began).as_millis(), 1);
}

#[test]
fn tokens_counted_for_a_call_are_corrected_by_what_it_used_all_the_way_up() {
    let sim = Sim::new(1);
    let engine = sim.engine(&Config::default());
    let limits = Limits::new(Arc::clone(engine.clock()));
    let tokens = Some(Rate { amount: 100, per: Duration::from_secs(1), burst: 100 });
    let account = limits.add("account", Allowance { tokens, ..fixed(9) }).unwrap();
    let key = limits.add("backend", Allowance { tokens, parent: Some(account), ..fixed(9) }).unwrap();
    let script = Script::parse_with("a: io 1 limit 0 tokens 100", &[key]);
    let options = Options { limits: Some(limits.clone()), ..Options::default() };
    let took = || {
        let began = engine.clock().now();
        let mut player = Player::new(&script, engine.clock());
        sim.block_on(engine.run(&script.dag, &script.policies, &mut player, &options).unwrap()).unwrap();
        (engine.clock().now() - began).as_millis()
    };
    assert_eq!(took(), 1);
    limits.used(key, 100, 1);
    assert!((5..15).contains(&took()), "99 came back");
    assert!(took() > 900, "and nothing after the next");
}

#[test]
fn a_dropped_run_leaves_no_place_and_no_slot_and_the_next_is_served() {
    let sim = Sim::new(1);
    let engine = sim.engine(&Config::default());
    let limits = Limits::new(Arc::clone(engine.clock()));
    let key = limits.add("backend", fixed(1)).unwrap();
    let script = Script::parse_with("a: io 100 limit 0; b: io 100 limit 0", &[key]);
    let next = Script::parse_with("c: io 5 limit 0", &[key]);
    let options = Options { limits: Some(limits.clone()), ..Options::default() };
    let (mut first, mut second) = (Player::new(&script, engine.clock()), Player::new(&next, engine.clock()));
    let mut dropped = Some(engine.run(&script.dag, &script.policies, &mut first, &options).unwrap());
    let waiting = engine.run(&next.dag, &next.policies, &mut second, &options).unwrap();
    let began = engine.clock().now();
    let mut patience = engine.clock().sleep_until(began + Duration::from_millis(20));
    let hog = std::future::poll_fn(move |cx| {
        if let Some(run) = &mut dropped {
            assert!(std::pin::Pin::new(run).poll(cx).is_pending());
        }
        patience.as_mut().poll(cx).map(|()| dropped = None)
    });
    let ((), result) = sim.block_on(both(hog, waiting));
    assert_eq!(result.unwrap().finished, 1);
    assert_eq!((engine.clock().now() - began).as_millis(), 25);
    let status = limits.status(key);
    assert_eq!((status.in_flight, status.waiting), (0, 0));
}

#[test]
fn limits_that_nothing_could_pass_are_refused() {
    let limits = Limits::new(Sim::new(1).clock());
    assert_eq!(
        limits.add("x", fixed(0)).unwrap_err().to_string(),
        "`concurrency` is 0, so no call could ever be made; set a larger value"
    );
    limits.add("x", fixed(1)).unwrap();
    assert_eq!(
        limits.add("x", fixed(1)).unwrap_err().to_string(),
        "this table already has a limit named `x`; names must be unique"
    );
}

#[test]
fn a_policy_that_names_a_limit_of_no_table_is_refused() {
    let sim = Sim::new(1);
    let engine = sim.engine(&Config::default());
    let limits = Limits::new(Arc::clone(engine.clock()));
    let key = limits.add("backend", fixed(1)).unwrap();
    let script = Script::parse_with("a: io 1 limit 0", &[key]);
    for limits in [None, Some(Limits::new(Arc::clone(engine.clock())))] {
        let mut player = Player::new(&script, engine.clock());
        let options = Options { limits, ..Options::default() };
        let refused = engine.run(&script.dag, &script.policies, &mut player, &options).err().unwrap();
        assert_eq!(
            refused.to_string(),
            "a policy names limit 0, which is not in `limits` of the run's options; add it to that table first"
        );
    }
}

#[test]
fn a_pause_that_never_ends_is_no_retry() {
    let played = play("bad: io 1 flaky 1 retry_never isolate");
    expect!["fail bad: flaked"].assert_eq(&played.calls.join(", "));
}

#[test]
fn a_free_slot_of_the_run_goes_to_the_best_node_whatever_its_limit() {
    // At 100 ms both limits have a slot to give, but `f2`, `f3` and `f4` have filled the run. `f2` ends first.
    let script = "a: io 1000 limit 0; b: io 1000 limit 1; first: io 10 limit 1; second: io 10 limit 0; \
        d: io 100 drops a drops b; f1: io 200; f2: io 3; f3: io 7; f4: io 50";
    for _ in 0..16 {
        let played = play_limited(
            script,
            |table| (0..2).map(|key| table.add(&key.to_string(), fixed(1)).unwrap()).collect(),
            |options, _| options.in_flight = 4,
        );
        expect!["0..100 a dropped | 0..100 b dropped | 0..100 d | 0..200 f1 | 100..103 f2 | 100..107 f3 | 100..150 f4 | 103..113 first | 107..117 second"]
            .assert_eq(&played.timeline);
    }
}

#[test]
fn a_call_that_is_not_made_is_not_counted() {
    // `late` is ready at 95 ms, too late to begin; `next` finds the one request of the hour unused.
    let played = play_limited(
        "v: io 95; late: io 10 limit 0 fallback <- v; next: io 1 limit 0 <- late",
        |table| {
            let requests = Some(Rate { amount: 1, per: Duration::from_secs(3600), burst: 1 });
            vec![table.add("0", Allowance { requests, ..fixed(1) }).unwrap()]
        },
        |options, now| options.deadline = Some(now + Duration::from_millis(100)),
    );
    assert_eq!(played.result.unwrap().fell_back, 1);
    expect!["0..95 v | 95 late fell back | 95..96 next"].assert_eq(&played.timeline);
}

#[test]
fn a_node_that_needs_no_limit_does_not_wait_for_it() {
    let played = play_fixed(
        "a: io 10 limit 0; b: io 10 limit 0; hit: io 10 limit 0 known 0; inline: limit 0 known 0; \
         s1: io 5 limit 0 known 0 serial 1; s2: io 5 limit 0 known 0 serial 1",
        &[1],
    );
    expect!["0..10 a | 0..10 hit | 0..0 inline | 0..5 s1 | 5..10 s2 | 10..20 b"].assert_eq(&played.timeline);
    let second_try = play_fixed("a: io 1 limit 0 flaky 1 retry 1 known 1; b: io 100 limit 0", &[1]);
    expect!["finish a, finish b"].assert_eq(&second_try.calls.join(", "));
}

#[test]
fn a_limit_hears_nothing_of_a_call_that_did_not_need_it() {
    let played = play_fixed(
        "hit: io 1 limit 0 known 0 throttled 1 50 retry 1; gate: io 10; b: io 1 limit 0 <- gate",
        &[1],
    );
    // The refused node waits by itself, and the limit does not cool.
    expect!["0..52 hit | 0..10 gate | 10..11 b | 51..52 hit"].assert_eq(&played.timeline);
}

#[test]
fn a_panic_of_the_question_for_a_limit_fails_its_node() {
    let played = play_fixed(
        "a: limit 0 unsure isolate serial 1; b: io 1 limit 0 serial 1; c: limit 0 unsure fallback retry 3",
        &[1],
    );
    expect!["fail a: panicked: not sure, fallback c: panicked: not sure, finish c, finish b"]
        .assert_eq(&played.calls.join(", "));
}

#[test]
fn salvage_rounds_follow_the_quick_retries_and_are_not_capped() {
    // Two quick retries, then pauses of 30 and 60 s, each between three and five quarters of that.
    let took = play("a: flaky 4 retry 2 salvage 30 2").took;
    assert!((67..113).contains(&took.as_secs()), "{took:?}");
    let played = play("a: flaky 4 retry 2 salvage 30 1 isolate");
    expect!["fail a: flaked"].assert_eq(&played.calls.join(", "));
    assert!((22..38).contains(&played.took.as_secs()), "{:?}", played.took);
    let only = play("a: flaky 1 retry 0 salvage 1 1").took;
    assert!((750..1250).contains(&only.as_millis()), "{only:?}");
}
