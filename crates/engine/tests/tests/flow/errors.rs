//! Failures, with the names of their nodes.

use std::sync::Arc;
use std::time::Duration;

use anabranch_engine::flow::{Node, optional};
use anabranch_engine::limit::{Allowance, Limits};
use anabranch_engine::workload::BoxError;
use anabranch_engine::{Flow, policy::StepKind};

use super::World;

/// The error of a flow whose node `score` is made by `add`.
fn error(add: fn(&World, &mut Flow)) -> String {
    let (world, mut flow) = (World::new(), Flow::new("errors"));
    flow.node::<()>("idle").future((), |()| std::future::pending());
    add(&world, &mut flow);
    world.run(flow).err().unwrap().to_string()
}

#[test]
fn a_failure_names_its_node_and_cause() {
    let refused = error(|_, flow| {
        flow.node::<u64>("score").future((), |()| async { Err("connection refused".into()) });
    });
    assert_eq!(refused, "node `score` failed: connection refused");
    let parsed = error(|_, flow| {
        flow.node::<u64>("score").job((), |(), _| Ok("x".parse()?));
    });
    assert_eq!(parsed, "node `score` failed: invalid digit found in string");
    let late = error(|_, flow| {
        let score = flow.node::<u64>("score").timeout(Duration::from_millis(5));
        score.future((), |()| std::future::pending());
    });
    assert_eq!(late, "node `score` failed: did not finish within its timeout of 5ms");
}

#[test]
fn a_panic_is_its_nodes_failure_wherever_the_closure_runs() {
    fn boom() -> Result<u64, BoxError> {
        panic!("boom")
    }
    let text = "node `score` failed: panicked: boom";
    let before_the_future = error(|_, flow| {
        flow.node::<u64>("score").future((), |()| {
            let value = boom();
            async { value }
        });
    });
    assert_eq!(before_the_future, text);
    let in_the_future = error(|_, flow| {
        flow.node::<u64>("score").future((), |()| async { boom() });
    });
    assert_eq!(in_the_future, text);
    let in_a_task = error(|_, flow| {
        flow.node::<u64>("score").step(StepKind::Spawned).future((), |()| async { boom() });
    });
    assert_eq!(in_a_task, text);
    let in_a_job = error(|_, flow| {
        flow.node::<u64>("score").job((), |(), _| boom());
    });
    assert_eq!(in_a_job, text);
    let in_a_fallback = error(|_, flow| {
        let score = flow.node::<u64>("score").fallback_with(|_| boom().unwrap());
        score.job((), |(), _| Err("broken".into()));
    });
    assert_eq!(in_a_fallback, text);
}

#[test]
fn the_source_of_a_nodes_error_is_kept() {
    let mut flow = Flow::new("sources");
    flow.node::<u64>("score").job((), |(), _| Err(anyhow::anyhow!("no route").context("asking"))?);
    let anabranch_engine::flow::Error::Node { failure, .. } = World::new().run(flow).err().unwrap() else {
        panic!("a node failed")
    };
    let anabranch_engine::Failure::Error(error) = &*failure else { panic!("with its own error") };
    assert_eq!(error.source().unwrap().to_string(), "no route");
}

#[test]
fn an_isolated_failure_drops_the_nodes_that_need_it() {
    let mut flow = Flow::new("isolated");
    let broken = flow.node::<u64>("broken").isolate().job((), |(), _| Err("no".into()));
    let needy = flow.node("needy").job(&broken, |value, _| Ok(value));
    let behind = flow.node("behind").job(&needy, |value, _| Ok(value));
    let tolerant = flow.node("tolerant").job((optional(&broken), optional(&behind)), |values, _| Ok(values));
    let later = flow.node("later").after(&behind).job((), |(), _| Ok(7));
    let mut results = World::new().run(flow).unwrap();
    let report = results.report();
    assert_eq!((report.finished, report.failed, report.dropped), (2, 1, 2));
    assert_eq!(results.take(tolerant).unwrap(), (None, None));
    assert_eq!(results.take(later).unwrap(), 7);
    let text = |node: Node<u64>| results.get(&node).unwrap_err().to_string();
    assert_eq!(text(broken), "node `broken` failed: no");
    assert_eq!(text(needy), "node `needy` has no value: a node that it needs failed");
}

#[test]
fn the_deadline_names_the_nodes_that_were_late() {
    let world = World::new();
    let mut flow = Flow::new("late");
    flow.deadline(Duration::from_millis(30));
    for name in ["a", "b", "c", "d", "e"] {
        flow.node::<()>(name).future((), |()| std::future::pending());
    }
    let quick = world.sleep(10);
    flow.node("quick").future((), move |()| async move {
        quick.await;
        Ok(())
    });
    let text = world.run(flow).err().unwrap().to_string();
    assert_eq!(text, "the deadline passed before `a`, `b`, `c` and 2 more had finished");
}

#[test]
fn a_limit_that_the_flow_does_not_have_is_named_with_its_node() {
    let world = World::new();
    let limits = Limits::new(Arc::clone(world.engine.clock()));
    let backend = limits.add("backend", Allowance::fixed(1)).unwrap();
    let mut flow = Flow::new("unknown");
    flow.node("free").job((), |(), _| Ok(1));
    flow.node("call").limit(backend).job((), |(), _| Ok(1));
    let text = world.run(flow).err().unwrap().to_string();
    let expected =
        "node `call` names a limit that is not in the flow's table; pass the table to `Flow::limits`";
    assert_eq!(text, expected);
}

#[test]
fn a_refusal_has_the_label() {
    let world = World::new();
    world.sim.block_on(world.engine.drain(Duration::ZERO));
    let text = world.run(Flow::new(format!("feed {}", "7f3a"))).err().unwrap().to_string();
    assert_eq!(text, "flow `feed 7f3a` was refused: the engine is shutting down and accepts no new runs");
}

#[test]
fn a_handle_of_another_flow_is_an_error() {
    let world = World::new();
    let (mut first, mut second) = (Flow::new("first"), Flow::new("second"));
    let foreign = first.node("foreign").job((), |(), _| Ok(1));
    let own = second.node("own").job((), |(), _| Ok("text".to_owned()));
    let results = world.run(second).unwrap();
    let text = results.get(&foreign).unwrap_err().to_string();
    assert_eq!(text, "handle #0 belongs to another flow; use the handles that this flow gave");
    assert_eq!(results.get(&own).unwrap(), "text");
    let mut third = Flow::new("third");
    third.node("reader").job(&foreign, |value, _| Ok(value));
    let text = world.run(third).err().unwrap().to_string();
    assert_eq!(text, "node `reader` reads a node of another flow; use the handles that this flow gave");
}
