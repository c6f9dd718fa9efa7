//! Runs: error modes, budgets, trips, panics, bounds, refusals.

use std::sync::Arc;
use std::time::Duration;

use anabranch_engine::admission::Refused;
use anabranch_engine::options::Reserve;
use anabranch_engine::{Config, Options};
use anabranch_testkit::Sim;
use expect_test::expect;

use crate::script::{Player, Script, listen, play, play_by, play_with};

#[test]
fn isolate_drops_what_needs_the_failed_node_and_carries_on() {
    let played = play("a: io 5 fail isolate; b <- a; c <- b; d <- ~a; e: io 9");
    let report = played.result.unwrap();
    assert_eq!((report.finished, report.failed, report.dropped), (2, 1, 2));
    expect!["0..5 a failed | 0..9 e | 5 b dropped | 5 c dropped | 5..5 d"].assert_eq(&played.timeline);
    expect!["fail a: broke, finish d, finish e"].assert_eq(&played.calls.join(", "));
}

#[test]
fn a_fallback_stands_in_for_an_error_a_timeout_and_a_panic() {
    for (script, why) in [
        ("a: io 5 fail fallback; b <- a", "broke"),
        ("a: io 50 timeout 5 fallback; b <- a", "did not finish within its timeout of 5ms"),
        ("a: io 5 panic fallback; b <- a", "panicked: boom"),
    ] {
        let played = play(script);
        let report = played.result.unwrap();
        assert_eq!((report.finished, report.fell_back), (2, 1));
        assert_eq!(played.calls[0], format!("fallback a: {why}"));
        assert_eq!(played.calls[1..], ["finish a", "finish b", "release a"]);
        assert_eq!(played.took.as_millis(), 5);
    }
}

#[test]
fn late_nodes_fall_back_early_enough_for_the_tail() {
    // A tenth of 100 ms is kept for the tail, which takes 8.
    let played = play_by("slow: io 500 fallback; quick: io 5; tail: cpu 8 <- slow quick", 100);
    assert_eq!(played.result.unwrap().fell_back, 1);
    expect!["0..90 slow fell back | 0..5 quick | 90..98 tail"].assert_eq(&played.timeline);
}

#[test]
fn a_measured_reserve_is_kept_per_node() {
    let script = "near: io 500 fallback; far: io 500 fallback; mid: cpu 20 <- far; tail: cpu 5 <- near mid";
    let dag = Script::parse(script).dag;
    let after = dag.time_after(|node| Duration::from_millis([500, 500, 20, 5][node.index()]));
    let played = play_with(script, |options, now| {
        options.deadline = Some(now + Duration::from_millis(100));
        options.reserve = Reserve::PerNode(after.into());
    });
    expect!["0..95 near fell back | 0..75 far fell back | 75..95 mid | 95..100 tail"]
        .assert_eq(&played.timeline);
}

#[test]
fn past_its_cutoff_a_node_with_a_fallback_is_not_started() {
    let played = play_by("slow: io 95; extra: io 1 fallback <- slow; end <- extra", 100);
    assert_eq!(played.result.unwrap().fell_back, 1);
    expect!["0..95 slow | 95 extra fell back | 95..95 end"].assert_eq(&played.timeline);
}

#[test]
fn a_panic_is_its_nodes_error_wherever_it_ran() {
    for place in ["", "io 1", "spawn 1", "cpu 1", "cpu 0.001", "block 1", "cpu 0 inline"] {
        let played = play(&format!("a: {place} panic isolate; b <- a; c <- ~a"));
        let report = played.result.unwrap();
        assert_eq!((report.finished, report.failed, report.dropped), (1, 1, 1), "{place}");
        assert_eq!(played.calls, ["fail a: panicked: boom", "finish c"], "{place}");
        let played = play(&format!("a: {place} panic"));
        assert_eq!(played.result.unwrap_err().to_string(), "node #0 failed: panicked: boom", "{place}");
    }
}

#[test]
fn a_chain_of_cpu_nodes_travels_as_one_trip() {
    let played = play(
        "a: cpu 3; b: cpu 1 linked <- a; c: cpu 1 linked <- b; d: cpu 1 linked <- c ~e; e: io 1; f <- d",
    );
    // `d` also waits for `e`, which is not there when the trip begins.
    expect!["link b, link c, finish e, release a, finish c, release b, finish d, release c, release e, finish f, release d"]
        .assert_eq(&played.calls.join(", "));
    assert_eq!(played.result.unwrap().finished, 6);
}

#[test]
fn a_trip_stops_at_forks_other_steps_and_fallbacks() {
    let trips = |script: &str| {
        let calls = play(script).calls;
        calls.iter().filter(|call| call.starts_with("link")).count()
    };
    assert_eq!(trips("a: cpu 3; b: cpu 1 linked <- a; c: cpu 1 linked <- a"), 0, "two consumers");
    assert_eq!(trips("a: cpu 3; b: cpu 1 linked <- ~a"), 0, "an after-edge");
    assert_eq!(trips("a: cpu 3; b: block 1 linked <- a"), 0, "a blocking call");
    assert_eq!(trips("a: cpu 3; b: cpu 1 linked fallback <- a"), 0, "a fallback may want its input's value");
    assert_eq!(trips("a: cpu 0.001; b: cpu 1 linked <- a"), 0, "the first link was done in place");
    assert_eq!(trips("a: cpu 3 fallback; b: cpu 1 linked <- a"), 1, "the first link may have one");
}

#[test]
fn a_failure_in_the_middle_of_a_trip_is_that_nodes() {
    let played = play("a: cpu 3; b: cpu 1 linked fail isolate <- a; c: cpu 1 linked <- b; d <- ~c");
    let report = played.result.unwrap();
    assert_eq!((report.finished, report.failed, report.dropped), (2, 1, 1));
    expect!["link b, link c, fail b: broke, release a, finish d"].assert_eq(&played.calls.join(", "));
}

#[test]
fn a_node_dropped_while_on_a_trip_ends_it_there() {
    let played = play("a: cpu 9; b: cpu 1 linked <- a; c: cpu 1 linked <- b; d: io 2 drops b");
    let report = played.result.unwrap();
    assert_eq!((report.finished, report.dropped), (2, 2));
    expect!["0..9 a | 0..2 d | 2 b dropped | 2 c dropped"].assert_eq(&played.timeline);
}

#[test]
fn a_timeout_in_a_trip_counts_from_each_links_own_start() {
    let played = play("a: cpu 30 timeout 40; b: cpu 1 linked timeout 20 <- a; c: cpu 1 linked <- b");
    assert_eq!(played.result.unwrap().finished, 3);
    let played = play("a: cpu 30 timeout 20; b: cpu 1 linked <- a");
    assert_eq!(
        played.result.unwrap_err().to_string(),
        "node #0 failed: did not finish within its timeout of 20ms"
    );
    assert_eq!(played.took.as_millis(), 20);
}

#[test]
fn cost_decides_between_inline_and_pool_and_the_threshold_is_a_runs_own() {
    let script = "a: cpu 0.04; b: cpu 0.06; c: cpu 0.04 pool; d: cpu 9 inline";
    let places = |threshold: Option<u64>| {
        let script = Script::parse(script);
        let sim = Sim::new(1);
        let engine = sim.engine(&Config::default());
        let mut listener = listen(&engine);
        let options =
            Options { inline_threshold: threshold.map(Duration::from_micros), ..Options::default() };
        let mut player = Player::new(&script, engine.clock());
        sim.block_on(engine.run(&script.dag, &script.policies, &mut player, &options).unwrap()).unwrap();
        let mut places = Vec::new();
        while let Some(anabranch_engine::event::ListenerItem::Event(event)) = listener.try_next() {
            if let anabranch_engine::event::EventKind::Started(node, place) = event.kind {
                places.push(format!("{} {place:?}", script.name(node)));
            }
        }
        places.join(", ")
    };
    assert_eq!(places(None), "a Inline, b Pool, c Pool, d Inline");
    assert_eq!(places(Some(0)), "a Pool, b Pool, c Pool, d Inline");
    assert_eq!(places(Some(1000)), "a Inline, b Inline, c Pool, d Inline");
}

#[test]
fn no_more_than_allowed_is_in_flight() {
    let script: Vec<String> = (0..6).map(|n| format!("n{n}: io 10")).collect();
    let played = play_with(&script.join("; "), |options, _| options.in_flight = 2);
    expect!["0..10 n0 | 0..10 n1 | 10..20 n2 | 10..20 n3 | 20..30 n4 | 20..30 n5"]
        .assert_eq(&played.timeline);
}

#[test]
fn values_are_released_after_the_last_dependent_and_results_never() {
    let played = play("a; b <- a; c: io 5 <- a; d: fail isolate <- a; e <- b c");
    expect!["finish a, finish b, fail d: broke, finish c, release a, finish e, release b, release c"]
        .assert_eq(&played.calls.join(", "));
}

#[test]
fn a_value_whose_readers_were_dropped_is_released_as_it_arrives() {
    let played = play("a: io 9; b <- a; c: io 1 drops b");
    expect!["finish c, finish a, release a"].assert_eq(&played.calls.join(", "));
}

#[test]
fn runs_that_cannot_move_are_refused() {
    let script = Script::parse("a; b");
    let sim = Sim::new(1);
    let engine = sim.engine(&Config { max_runs: 1, ..Config::default() });
    let refusal = |options: Options| {
        let mut player = Player::new(&script, engine.clock());
        engine.run(&script.dag, &script.policies, &mut player, &options).err().unwrap()
    };
    let now = engine.clock().now();
    assert_eq!(refusal(Options { in_flight: 0, ..Options::default() }), Refused::ZeroInFlight);
    let past = Options { deadline: Some(now - Duration::from_millis(3)), ..Options::default() };
    assert_eq!(refusal(past).to_string(), "the deadline passed 3ms before the run began");
    let short: Arc<[Duration]> = [Duration::ZERO].into();
    let misfit = Options { reserve: Reserve::PerNode(short), ..Options::default() };
    assert_eq!(
        refusal(misfit).to_string(),
        "the reserve table has 1 entries for 2 nodes; give one entry per node"
    );
    let mut first = Player::new(&script, engine.clock());
    let running = engine.run(&script.dag, &script.policies, &mut first, &Options::default()).unwrap();
    assert_eq!(refusal(Options::default()), Refused::Busy { max_runs: 1 });
    drop(running);
    let mut player = Player::new(&script, engine.clock());
    assert!(engine.run(&script.dag, &script.policies, &mut player, &Options::default()).is_ok());
}

#[test]
fn engines_that_cannot_work_are_refused() {
    for (setting, config) in [
        ("cpu_threads", Config { cpu_threads: 0, ..Config::default() }),
        ("batch_threads", Config { batch_threads: 0, ..Config::default() }),
        ("blocking_threads", Config { blocking_threads: 0, ..Config::default() }),
        ("max_runs", Config { max_runs: 0, ..Config::default() }),
    ] {
        let error = anabranch_engine::Engine::new(&config).err().unwrap();
        assert_eq!(error.to_string(), format!("`{setting}` is 0; an engine needs at least 1"));
    }
}

#[test]
fn endless_timeouts_and_deadlines_are_none() {
    let script = format!("a: io 5 timeout {}; b: cpu 5 timeout {}", u64::MAX, u64::MAX);
    assert_eq!(play(&script).result.unwrap().finished, 2);
}

#[test]
fn an_empty_graph_ends_at_once() {
    let dag = anabranch_engine::Dag::new(0, &[]).unwrap();
    let script = Script::parse("a");
    let sim = Sim::new(1);
    let engine = sim.engine(&Config::default());
    let mut player = Player::new(&script, engine.clock());
    let policies = anabranch_engine::Policies::default();
    let run = engine.run(&dag, &policies, &mut player, &Options::default()).unwrap();
    assert_eq!(sim.block_on(run).unwrap().finished, 0);
}

#[test]
fn an_ended_run_holds_nothing_even_before_it_is_dropped() {
    let script = Script::parse("bad: io 1 fail; task: spawn 100; io: io 100; cpu: cpu 100");
    let sim = Sim::new(1);
    let engine = sim.engine(&Config::default());
    let mut player = Player::new(&script, engine.clock());
    let mut run = engine.run(&script.dag, &script.policies, &mut player, &Options::default()).unwrap();
    assert!(sim.block_on(&mut run).is_err());
    assert_eq!(sim.leftovers().tasks, 0);
    let drained = sim.block_on(engine.drain(Duration::ZERO));
    assert!(drained.cut.is_empty(), "it has left: {drained:?}");
    drop(run);
}
