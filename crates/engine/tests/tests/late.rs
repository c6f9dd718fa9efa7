//! Jobs that are late: which bound they met, and when.

use std::convert::Infallible;
use std::time::Duration;

use anabranch_engine::options::Reserve;
use anabranch_engine::{
    Budget, Check, Config, Cost, Dag, Drops, Engine, NodeId, Options, Policies, Policy, Step, Stopped,
    Workload,
};
use expect_test::expect;

use crate::script::{play, play_seeded};

#[test]
fn a_node_timeout_counts_the_wait_for_a_pool_thread() {
    // Two threads: `late` is taken up at 80 ms.
    let played = play("a: cpu 80 pool; b: cpu 80 pool; late: cpu 300 pool timeout 100 asks 1 isolate");
    expect!["0..80 a | 0..80 b | 0..100 late failed"].assert_eq(&played.timeline);
}

#[test]
fn a_job_that_never_asks_is_given_up_at_the_same_time() {
    let played = play("a: cpu 80 pool; b: cpu 80 pool; late: cpu 300 pool timeout 100 isolate");
    expect!["0..80 a | 0..80 b | 0..100 late failed"].assert_eq(&played.timeline);
}

#[test]
fn a_job_that_waited_too_long_to_end_in_time_does_not_begin() {
    let timeline = |deadline| {
        let script = "a: cpu 80 pool; b: cpu 80 pool; late: cpu 100 pool; x: cpu 40 pool; y: cpu 40 pool";
        let played = play_seeded(0, script, |options, now| {
            options.deadline = Some(now + Duration::from_millis(deadline));
        });
        assert_eq!(played.took.as_millis(), u128::from(deadline));
        played.result.unwrap_err();
        played.timeline
    };
    // There are two threads. One takes it at 80 ms. With 49 ms left it leaves the thread to `y`.
    assert!(timeline(129).contains("120 y"), "{}", timeline(129));
    // The estimate may be twice too high, so with 51 ms left it is tried.
    assert!(!timeline(131).contains("120 y"), "{}", timeline(131));
}

#[test]
fn a_timeout_in_the_middle_of_a_trip_is_its_own_nodes() {
    let played =
        play("a: cpu 10 pool timeout 25; b: cpu 50 timeout 20 linked asks 1 isolate <- a; c: linked <- b");
    expect!["0..10 a | 10..30 b failed | 30 c dropped"].assert_eq(&played.timeline);
    // Not at the first look, which comes as early as a link can be late.
    let played = play(
        "a: cpu 10 pool timeout 25; b: cpu 50 timeout 60 linked <- a; c: cpu 9 timeout 5 linked asks 1 <- b",
    );
    assert_eq!(
        played.result.unwrap_err().to_string(),
        "node #2 failed: did not finish within its timeout of 5ms"
    );
    assert_eq!(played.took.as_millis(), 65);
}

#[test]
fn a_job_that_notices_the_deadline_first_does_not_time_out() {
    // At 50 ms the job asks its check and the run's timer fires, in an order that the seed decides.
    for seed in 0..16 {
        let script = "busy: cpu 600 pool timeout 10000 asks 1 isolate; next <- busy";
        let played = play_seeded(seed, script, |options, now| {
            options.deadline = Some(now + Duration::from_millis(50));
        });
        assert_eq!(
            played.result.unwrap_err().to_string(),
            "the deadline passed with [#0] still to finish",
            "seed {seed}"
        );
        assert_eq!(played.took.as_millis(), 50);
    }
}

#[test]
fn with_a_fallback_it_is_the_deadline_that_the_workload_is_told_of() {
    for seed in 0..16 {
        let script = "busy: cpu 600 pool timeout 10000 asks 1 fallback; other";
        let played = play_seeded(seed, script, |options, now| {
            options.deadline = Some(now + Duration::from_millis(50));
        });
        assert_eq!(played.result.unwrap().fell_back, 1, "seed {seed}");
        expect![
            "finish other, fallback busy: did not finish in the time that the run's deadline left it, finish busy"
        ]
        .assert_eq(&played.calls.join(", "));
    }
}

/// One job that goes on until it is told to stop, in place.
struct Endless;

impl Workload for Endless {
    type Value = ();
    type Error = Infallible;
    type Future = std::future::Ready<Result<(), Infallible>>;
    type Job = fn(Option<()>, &Check<'_>) -> Result<(), Infallible>;

    fn step(&mut self, _: NodeId, _: Budget) -> Step<Self> {
        let endless: Self::Job = |_, check| {
            while !check.should_stop() {
                std::hint::spin_loop();
            }
            Ok(())
        };
        Step::Job(endless, Cost::About(Duration::ZERO))
    }

    fn finish(&mut self, _: NodeId, (): (), _: &mut Drops) {}
}

#[test]
fn a_job_in_place_that_notices_the_deadline_ends_the_run_by_it() {
    let engine = Engine::new(&Config::default()).unwrap();
    let dag = Dag::new(2, &[]).unwrap();
    let policies =
        Policies::uniform(Policy { timeout: Some(Duration::from_secs(3600)), ..Policy::default() });
    let deadline = engine.clock().now() + Duration::from_millis(2);
    let options = Options { deadline: Some(deadline), ..Options::default() };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    let ended =
        runtime.block_on(async { engine.run(&dag, &policies, &mut Endless, &options).unwrap().await });
    let Err(Stopped::Deadline { late }) = ended else { panic!("{ended:?}") };
    assert_eq!(late, [NodeId(0)]);
}

#[test]
fn the_grace_after_a_deadline_may_be_endless() {
    let played = play_seeded(1, "slow: io 10 fallback; rest <- slow", |options, now| {
        options.deadline = Some(now + Duration::from_millis(5));
        options.grace = Duration::MAX;
        options.reserve = Reserve::PerNode([Duration::ZERO; 2].into());
    });
    assert_eq!(played.result.unwrap().finished, 2);
}
