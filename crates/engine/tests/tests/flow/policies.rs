//! Policies by builder methods: fallbacks, retries, limits, turns, timelines.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use anabranch_engine::event::RunEnding;
use anabranch_engine::limit::{Allowance, Limits};
use anabranch_engine::retry::{ClassifiedError, Retry, Severity};
use anabranch_engine::workload::BoxError;
use anabranch_engine::{Cost, Flow};

use super::World;

#[test]
fn a_fallback_takes_the_place_of_an_error_a_timeout_and_a_late_node() {
    let world = World::new();
    let mut flow = Flow::new("fallbacks");
    flow.deadline(Duration::from_millis(100));
    let good = flow.node("good").fallback(0).job((), |(), _| Ok(1));
    let broken = flow.node("broken").fallback(2).job((), |(), _| Err("no".into()));
    let slow = flow.node("slow").timeout(Duration::from_millis(5)).fallback(3);
    let slow = slow.future((), |()| std::future::pending());
    let late = flow.node("late").fallback_with(|failure| failure.to_string().len());
    let late = late.future((), |()| std::future::pending());
    let sum = flow.node("sum").cost(Cost::About(Duration::from_micros(10)));
    let sum = sum.job((&good, &broken, &slow), |(good, broken, slow), _| Ok(good + broken + slow));
    let mut results = world.run(flow).unwrap();
    assert_eq!((results.take(sum).unwrap(), results.report().fell_back), (6, 3));
    let fell_back = [&good, &broken, &slow].map(|node| results.fell_back(node));
    assert_eq!((fell_back, results.fell_back(&late)), ([false, true, true], true));
    let text = "did not finish in the time that the run's deadline left it";
    assert_eq!(results.take(late).unwrap(), text.len());
}

/// Fails with `error` at the first `failures` tries; counts tries.
fn flaky(tries: &AtomicUsize, failures: usize, severity: Severity) -> Result<usize, BoxError> {
    let count = tries.fetch_add(1, Ordering::SeqCst) + 1;
    if count > failures { Ok(count) } else { Err(ClassifiedError::new(severity, "flaked"))? }
}

#[test]
fn a_retry_calls_the_closure_again_with_the_same_inputs() {
    let (world, tries) = (World::new(), Arc::<AtomicUsize>::default());
    let mut flow = Flow::new("retries");
    let moved = flow.node("moved").job((), |(), _| Ok(vec![1, 2]));
    let counter = Arc::clone(&tries);
    let call = flow.node("call").retry(Retry::default()).future(moved, move |moved| async move {
        Ok((moved.len(), flaky(&counter, 2, Severity::Transient)?))
    });
    let counter = Arc::clone(&tries);
    let plain = flow.node("plain").after(&call).retry(Retry { rounds: 1, ..Retry::default() });
    let plain = plain.job((), move |(), _| match counter.fetch_add(1, Ordering::SeqCst) {
        3 => Err("errors that say nothing are tried again".into()),
        tries => Ok(tries),
    });
    let mut results = world.run(flow).unwrap();
    assert_eq!((results.take(call).unwrap(), results.take(plain).unwrap()), ((2, 3), 4));
}

#[test]
fn a_permanent_error_is_not_tried_again() {
    let (world, tries) = (World::new(), Arc::<AtomicUsize>::default());
    let mut flow = Flow::new("permanent");
    let counter = Arc::clone(&tries);
    let call = flow.node("call").retry(Retry::default());
    call.job((), move |(), _| flaky(&counter, 2, Severity::Permanent));
    assert_eq!(world.run(flow).err().unwrap().to_string(), "node `call` failed: flaked");
    assert_eq!(tries.load(Ordering::SeqCst), 1);
}

/// The most calls at a time, of eight that each take 10 ms and are made by `add`.
fn most_at_once(
    world: &World,
    flow: &mut Flow,
    add: impl Fn(&mut Flow) -> anabranch_engine::flow::NodeBuilder<'_, ()>,
) -> Arc<AtomicUsize> {
    let (now, most) = (Arc::<AtomicUsize>::default(), Arc::<AtomicUsize>::default());
    for _ in 0..8 {
        let (now, most, pause) = (Arc::clone(&now), Arc::clone(&most), world.sleep(10));
        add(flow).future((), move |()| async move {
            most.fetch_max(now.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
            pause.await;
            now.fetch_sub(1, Ordering::SeqCst);
            Ok(())
        });
    }
    most
}

#[test]
fn limits_and_turns_bound_what_is_in_flight() {
    let world = World::new();
    let limits = Limits::new(Arc::clone(world.engine.clock()));
    let backend = limits.add("backend", Allowance::fixed(3)).unwrap();
    let mut flow = Flow::new("bounds");
    flow.limits(&limits);
    let free = most_at_once(&world, &mut flow, |flow| flow.node("free"));
    let limited = most_at_once(&world, &mut flow, |flow| flow.node("call").limit(backend));
    let gpu = most_at_once(&world, &mut flow, |flow| flow.node("gpu").serial("gpu"));
    let disk = most_at_once(&world, &mut flow, |flow| flow.node("disk").serial("disk"));
    world.run(flow).unwrap();
    assert_eq!([free, limited, gpu, disk].map(|most| most.load(Ordering::SeqCst)), [8, 3, 1, 1]);
}

#[test]
fn a_trace_has_the_names_however_the_flow_ends() {
    let world = World::new();
    let ending = |spoil: fn(&mut Flow), patience: u64| {
        let mut flow = Flow::new("traced");
        let trace = flow.trace();
        let pause = world.sleep(10);
        flow.node("nap").future((), move |()| async move {
            pause.await;
            Ok(())
        });
        spoil(&mut flow);
        assert!(trace.html().is_none());
        world.sim.block_on(async {
            let (mut run, mut patience) =
                (Box::pin(flow.run(&world.engine)), Box::pin(world.sleep(patience)));
            std::future::poll_fn(|cx| match run.as_mut().poll(cx) {
                std::task::Poll::Ready(_) => std::task::Poll::Ready(()),
                std::task::Poll::Pending => patience.as_mut().poll(cx),
            })
            .await;
        });
        let texts = [trace.html(), trace.svg(), trace.json()];
        assert!(texts.iter().all(|text| text.as_ref().unwrap().contains("nap")));
        trace.timeline(|timeline| (timeline.ending(), timeline.wall().as_millis())).unwrap()
    };
    assert_eq!(ending(|_| (), 1_000), (Some(RunEnding::Complete), 10));
    assert_eq!(ending(|_| (), 4), (Some(RunEnding::Dropped), 4));
    let fail = |flow: &mut Flow| drop(flow.node::<()>("bad").future((), |()| async { Err("no".into()) }));
    assert_eq!(ending(fail, 1_000), (Some(RunEnding::Failed), 0));
}
