//! Coming to rest: stop admitting, let runs end within the grace period, cut the rest and say which.

use std::pin::{Pin, pin};
use std::task::Poll;
use std::time::Duration;

use anabranch_engine::admission::{DrainReport, Refused};
use anabranch_engine::{Config, Engine, Options, Report, Stopped};
use anabranch_testkit::Sim;
use expect_test::expect;

use crate::script::{Player, Script, ScriptError};

/// Polls both until both are done.
pub(crate) async fn both<A: Future, B: Future>(first: A, second: B) -> (A::Output, B::Output) {
    let (mut first, mut second) = (pin!(first), pin!(second));
    let (mut a, mut b) = (None, None);
    std::future::poll_fn(|cx| {
        poll_into(first.as_mut(), &mut a, cx);
        poll_into(second.as_mut(), &mut b, cx);
        if a.is_some() && b.is_some() { Poll::Ready(()) } else { Poll::Pending }
    })
    .await;
    (a.unwrap(), b.unwrap())
}

fn poll_into<F: Future>(
    future: Pin<&mut F>,
    output: &mut Option<F::Output>,
    cx: &mut std::task::Context<'_>,
) {
    if output.is_none()
        && let Poll::Ready(done) = future.poll(cx)
    {
        *output = Some(done);
    }
}

fn drain_beside(script: &str, grace_ms: u64) -> (Result<Report, Stopped<ScriptError>>, DrainReport, u128) {
    drain_within(script, Duration::from_millis(grace_ms))
}

fn drain_within(script: &str, grace: Duration) -> (Result<Report, Stopped<ScriptError>>, DrainReport, u128) {
    let script = Script::parse(script);
    let sim = Sim::new(1);
    let engine = sim.engine(&Config::default());
    let began = engine.clock().now();
    let mut player = Player::new(&script, engine.clock());
    let options = Options { label: "feed".into(), ..Options::default() };
    let run = engine.run(&script.dag, &script.policies, &mut player, &options).unwrap();
    let (result, drained) = sim.block_on(both(run, engine.drain(grace)));
    assert_eq!(refused(&engine), Some(Refused::Draining));
    let took = (engine.clock().now() - began).as_millis();
    assert_eq!(sim.settle().tasks, 0);
    (result, drained, took)
}

fn refused(engine: &Engine) -> Option<Refused> {
    let script = Script::parse("a");
    let mut player = Player::new(&script, engine.clock());
    engine.run(&script.dag, &script.policies, &mut player, &Options::default()).err()
}

#[test]
fn a_drain_may_wait_for_ever() {
    let (result, drained, took) = drain_within("slow: io 1000", Duration::MAX);
    assert_eq!((result.unwrap().finished, took), (1, 1000));
    assert_eq!(drained, DrainReport { finished: 1, cut: vec![], stuck: vec![] });
}

#[test]
fn a_run_that_ends_within_the_grace_period_is_not_cut() {
    let (result, drained, took) = drain_beside("a: io 30; b: cpu 20 <- a", 100);
    assert_eq!(result.unwrap().finished, 2);
    assert_eq!(drained, DrainReport { finished: 1, cut: vec![], stuck: vec![] });
    assert_eq!(took, 50, "the drain does not wait out its grace");
}

#[test]
fn drain_order_stop_admitting_then_finish_then_cut_then_report() {
    let (result, drained, took) =
        drain_beside("quick: io 10; slow: io 500; task: spawn 500; job: cpu 500 <- quick", 50);
    expect!["the engine shut down with [#1, #2, #3] still to finish"]
        .assert_eq(&result.unwrap_err().to_string());
    expect![[r#"DrainReport { finished: 0, cut: [(RunId(0), "feed")], stuck: [] }"#]]
        .assert_eq(&format!("{drained:?}"));
    assert_eq!(took, 50);
}

#[test]
fn a_run_that_nobody_polls_is_reported_as_stuck() {
    let script = Script::parse("a: io 5");
    let sim = Sim::new(1);
    let engine = sim.engine(&Config::default());
    let mut player = Player::new(&script, engine.clock());
    let forgotten = engine.run(&script.dag, &script.policies, &mut player, &Options::default()).unwrap();
    let drained = sim.block_on(engine.drain(Duration::from_millis(10)));
    assert_eq!(drained.stuck.len(), 1);
    let ended = sim.block_on(forgotten);
    assert!(matches!(ended, Err(Stopped::Cut { .. })), "polled at last, it ends at once: {ended:?}");
}

#[test]
fn draining_an_idle_engine_ends_at_once() {
    let sim = Sim::new(1);
    let engine = sim.engine(&Config::default());
    let drained = sim.block_on(engine.drain(Duration::from_secs(3600)));
    assert_eq!(drained, DrainReport { finished: 0, cut: vec![], stuck: vec![] });
}
