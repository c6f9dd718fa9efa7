//! A drain of runs: nothing more starts, work in flight ends as usual, and waiting nodes are left alone.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anabranch_engine::limit::{Allowance, LimitKey, Limits, Rate};
use anabranch_engine::{
    Budget, Check, Config, Dag, Drain, Drops, Engine, NodeId, Options, Policies, Step, Stopped, Workload,
};
use anabranch_testkit::Sim;
use expect_test::expect;

use crate::alloc;
use crate::drain::both;
use crate::script::{Player, Script, ScriptError, ScriptOutcome, listen, timeline};

const fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// A task of its own, so that only the drain can wake a run.
fn begin_after(engine: &Engine, drain: &Drain, time: Duration) -> impl Drop + use<> {
    let (drain, sleep) = (drain.clone(), engine.clock().sleep_until(engine.clock().now() + time));
    engine.tasks().spawn(Box::pin(async move {
        sleep.await;
        drain.begin();
    }))
}

fn play_until(text: &str, drained_after: Duration) -> ScriptOutcome {
    play_adjusted(text, drained_after, |_, _| {})
}

fn play_adjusted(
    text: &str,
    drained_after: Duration,
    adjust: impl FnOnce(&mut Options, Instant),
) -> ScriptOutcome {
    let sim = Sim::new(1);
    let engine = sim.engine(&Config::default());
    let limits = Limits::new(Arc::clone(engine.clock()));
    let key = limits.add("backend", Allowance::fixed(1)).unwrap();
    let script = Script::parse_with(text, &[key]);
    let mut listener = listen(&engine);
    let began = engine.clock().now();
    let drain = Drain::new();
    let _beginning = begin_after(&engine, &drain, drained_after);
    let mut options = Options { limits: Some(limits.clone()), drain: Some(drain), ..Options::default() };
    adjust(&mut options, began);
    let mut player = Player::new(&script, engine.clock());
    let result = sim.block_on(engine.run(&script.dag, &script.policies, &mut player, &options).unwrap());
    let took = engine.clock().now() - began;
    let calls = std::mem::take(&mut player.calls);
    let status = limits.status(key);
    assert_eq!((status.in_flight, status.waiting), (0, 0), "left with a limit");
    ScriptOutcome { result, calls, timeline: timeline(&script, &mut listener, began), took }
}

fn is_drained(played: &ScriptOutcome) -> bool {
    matches!(played.result, Err(Stopped::Drained))
}

#[test]
fn work_in_flight_ends_and_nothing_more_starts() {
    let played = play_until(
        "a: io 10; task: spawn 20; job: cpu 30; wait: block 15; broken: io 8 fail isolate; late: io 7 fail fallback; \
         after: io 1 <- a",
        ms(5),
    );
    assert!(is_drained(&played), "{:?}", played.result);
    expect!["fallback late: broke, finish late, fail broken: broke, finish a, finish wait, finish task, finish job"]
        .assert_eq(&played.calls.join(", "));
    assert_eq!(played.took, ms(30));
}

#[test]
fn a_trip_ends_with_all_of_its_links() {
    let played = play_until("a: cpu 10; b: cpu 10 linked <- a; c: cpu 1 <- b", ms(5));
    assert!(is_drained(&played));
    expect!["link b, finish b, release a"].assert_eq(&played.calls.join(", "));
    assert_eq!(played.took, ms(20));
}

#[test]
fn a_run_that_idles_is_woken() {
    // The limit cools for an hour.
    let played = play_until("a: io 1 limit 0 throttled 1 3600000 retry 1; b: io 1 limit 0 <- a", ms(50));
    assert!(is_drained(&played));
    assert_eq!((played.took, played.calls.len()), (ms(50), 0));
}

#[test]
fn nodes_that_wait_are_left_alone() {
    let waits = "hog: io 20 limit 0; limited: io 1 limit 0 isolate; turn: io 20 serial 1; next: io 1 serial 1 isolate; \
         pausing: flaky 1 retry 1 isolate";
    let played = play_until(waits, ms(3));
    assert!(is_drained(&played));
    expect!["finish hog, finish turn"].assert_eq(&played.calls.join(", "));
    assert_eq!(played.took, ms(20));
}

#[test]
fn a_node_that_would_be_retried_does_not_end() {
    let played = play_until("a: io 10 flaky 1 retry 3 isolate", ms(5));
    assert!(is_drained(&played));
    assert_eq!((played.took, played.calls.len()), (ms(10), 0));
    // The second try is the last: it fails as usual, and with it every node has ended.
    let played = play_until("a: io 10 flaky 2 retry 1 isolate; b: io 100", ms(22));
    expect!["0..27 a failed | 0..100 b | 17..27 a failed"].assert_eq(&played.timeline);
    assert_eq!(played.result.unwrap().failed, 1);
}

#[test]
fn a_run_whose_last_nodes_end_is_complete() {
    let played = play_until("a: io 10; b: spawn 20", ms(5));
    assert_eq!(played.result.unwrap().finished, 2);
}

#[test]
fn a_waiting_node_does_not_fall_back_at_the_deadline() {
    // `late` would fall back at 95 ms.
    let text = "hog: io 100 limit 0; late: io 1 limit 0 fallback; end <- late";
    let played = play_adjusted(text, ms(5), |options, now| options.deadline = Some(now + ms(105)));
    assert!(is_drained(&played));
    expect!["finish hog"].assert_eq(&played.calls.join(", "));
    assert_eq!(played.took, ms(100));
}

#[test]
fn a_drain_that_has_begun_stops_a_run_at_its_start() {
    let sim = Sim::new(1);
    let engine = sim.engine(&Config::default());
    let drain = Drain::new();
    drain.begin();
    drain.begin();
    let options = Options { drain: Some(drain), ..Options::default() };
    let script = Script::parse("a; b: io 1");
    let mut player = Player::new(&script, engine.clock());
    let result = sim.block_on(engine.run(&script.dag, &script.policies, &mut player, &options).unwrap());
    assert!(matches!(result, Err(Stopped::Drained)), "{result:?}");
    assert!(player.calls.is_empty());
    let empty = Dag::new(0, &[]).unwrap();
    let result = sim.block_on(engine.run(&empty, &script.policies, &mut player, &options).unwrap());
    assert_eq!(result.unwrap().finished, 0);
}

#[test]
fn places_in_queues_are_given_back_to_other_runs() {
    let sim = Sim::new(1);
    let engine = sim.engine(&Config::default());
    let limits = Limits::new(Arc::clone(engine.clock()));
    let tokens = Rate { amount: 100, per: Duration::from_secs(1), burst: 10 };
    let key = limits.add("backend", Allowance { tokens: Some(tokens), ..Allowance::default() }).unwrap();
    // `large` is first in the queue and would have its tokens at 100 ms. Its run goes on until 1 s.
    let text = "all: io 1 limit 0 tokens 10; hold: io 1000; large: io 1 limit 0 tokens 10";
    let drain = Drain::new();
    let _beginning = begin_after(&engine, &drain, ms(5));
    let began = engine.clock().now();
    let one = |text: &str, drain: Option<Drain>, key: LimitKey| {
        let (engine, limits, script) = (engine.clone(), limits.clone(), Script::parse_with(text, &[key]));
        async move {
            let mut player = Player::new(&script, engine.clock());
            let options = Options { limits: Some(limits), drain, ..Options::default() };
            let run = engine.run(&script.dag, &script.policies, &mut player, &options).unwrap();
            let result = run.await;
            (result, engine.clock().now())
        }
    };
    let small = "s: io 1 limit 0 tokens 1";
    let ((large, _), (small, ended)) = sim.block_on(both(one(text, Some(drain), key), one(small, None, key)));
    assert!(matches!(large, Err(Stopped::Drained)), "{large:?}");
    assert_eq!((small.unwrap().finished, ended - began), (1, ms(11)));
}

/// Begins a drain in the middle of work that is done in place.
struct Beginner {
    drain: Drain,
    steps: u32,
}

impl Workload for Beginner {
    type Value = ();
    type Error = ScriptError;
    type Future = std::future::Ready<Result<(), ScriptError>>;
    type Job = fn(Option<()>, &Check<'_>) -> Result<(), ScriptError>;

    fn step(&mut self, node: NodeId, _: Budget) -> Step<Self> {
        self.steps += 1;
        if node.0 == 5 {
            self.drain.begin();
        }
        Step::Ready(Ok(()))
    }

    fn finish(&mut self, _: NodeId, (): (), _: &mut Drops) {}
}

#[test]
fn not_one_more_node_starts_after_the_drain_has_begun() {
    let sim = Sim::new(1);
    let engine = sim.engine(&Config::default());
    let dag = Dag::new(1000, &[]).unwrap();
    let mut work = Beginner { drain: Drain::new(), steps: 0 };
    let options = Options { drain: Some(work.drain.clone()), ..Options::default() };
    let result = sim.block_on(engine.run(&dag, &Policies::default(), &mut work, &options).unwrap());
    assert!(matches!(result, Err(Stopped::Drained)), "{result:?}");
    assert_eq!(work.steps, 6);
}

#[test]
fn a_drain_forgets_runs_that_have_ended() {
    let sim = Sim::new(1);
    let engine = sim.engine(&Config::default());
    let script = Script::parse("a: io 0");
    let options = Options { drain: Some(Drain::new()), ..Options::default() };
    let peak = |runs: u32| {
        let work = || {
            for _ in 0..runs {
                let mut player = Player::new(&script, engine.clock());
                let run = engine.run(&script.dag, &script.policies, &mut player, &options).unwrap();
                assert_eq!(sim.block_on(run).unwrap().finished, 1);
            }
        };
        alloc::peak_of(work).1
    };
    peak(10);
    let (few, many) = (peak(10), peak(2_000));
    assert!(many <= few + 1_000, "{few} bytes at most in 10 runs, {many} in 2,000");
}
