//! Steps without type annotations, and errors of any type.

use std::future::{Ready, ready};

use anabranch_engine::retry::{Classified, ClassifiedError, Severity};
use anabranch_engine::workload::{BoxError, BoxFuture, BoxJob};
use anabranch_engine::{
    Budget, Check, Config, Cost, Dag, Drops, NodeId, Options, Policies, Step, Stopped, Workload,
};
use anabranch_testkit::Sim;

/// Runs a workload of independent nodes.
fn run<W: Workload>(work: &mut W, node_count: u32) -> Result<u32, Stopped<W::Error>> {
    let sim = Sim::new(1);
    let (engine, dag) = (sim.engine(&Config::default()), Dag::new(node_count, &[]).unwrap());
    let policies = Policies::default();
    let run = engine.run(&dag, &policies, work, &Options::default()).unwrap();
    sim.block_on(run).map(|report| report.finished)
}

/// What a method of an object-safe async trait returns.
fn already_boxed(value: u64) -> BoxFuture<u64, BoxError> {
    Box::pin(ready(Ok(value)))
}

#[derive(Default)]
struct BoxedWorkload(Vec<u64>);

impl Workload for BoxedWorkload {
    type Value = u64;
    type Error = BoxError;
    type Future = BoxFuture<u64, BoxError>;
    type Job = BoxJob<u64, BoxError>;

    fn step(&mut self, node: NodeId, _: Budget) -> Step<Self> {
        let captured = u64::from(node.0);
        let parse = move |_: Option<u64>, _: &Check<'_>| Ok("3".parse::<u64>()? + captured);
        match node.0 {
            0 => Step::future(async move { Ok("1".parse::<u64>()? + captured) }),
            1 => Step::future(Box::pin(async move { Ok(captured) })),
            2 => Step::Future(already_boxed(2)),
            3 => Step::job(move |_, check| Ok(captured + u64::from(check.should_stop())), Cost::Unknown),
            _ => Step::job(Box::new(parse), Cost::Unknown),
        }
    }

    fn finish(&mut self, _: NodeId, value: u64, _: &mut Drops) {
        self.0.push(value);
    }
}

#[test]
fn whatever_can_be_boxed_is_a_step_of_a_boxed_workload() {
    let mut work = BoxedWorkload::default();
    assert_eq!(run(&mut work, 5).unwrap(), 5);
    work.0.sort_unstable();
    assert_eq!(work.0, [1, 1, 2, 3, 7]);
}

#[derive(Default)]
struct Concrete(Vec<u64>);

impl Workload for Concrete {
    type Value = u64;
    type Error = String;
    type Future = Ready<Result<u64, String>>;
    type Job = fn(Option<u64>, &Check<'_>) -> Result<u64, String>;

    fn step(&mut self, node: NodeId, _: Budget) -> Step<Self> {
        let job: Self::Job = |_, _| Ok(2);
        match node.0 {
            0 => Step::future(ready(Ok(1))),
            _ => Step::job(job, Cost::Unknown),
        }
    }

    fn finish(&mut self, _: NodeId, value: u64, _: &mut Drops) {
        self.0.push(value);
    }
}

#[test]
fn a_workload_with_types_of_its_own_uses_the_same_steps() {
    let mut work = Concrete::default();
    assert_eq!(run(&mut work, 2).unwrap(), 2);
    work.0.sort_unstable();
    assert_eq!(work.0, [1, 2]);
}

/// Fails with the error given.
struct FailingWorkload(Option<Fail>);

type Fail = fn() -> Result<u64, BoxError>;

impl Workload for FailingWorkload {
    type Value = u64;
    type Error = BoxError;
    type Future = BoxFuture<u64, BoxError>;
    type Job = BoxJob<u64, BoxError>;

    fn step(&mut self, _: NodeId, _: Budget) -> Step<Self> {
        let fail = self.0.take().unwrap();
        Step::future(async move { fail() })
    }

    fn finish(&mut self, _: NodeId, _: u64, _: &mut Drops) {}
}

#[test]
fn any_error_can_be_a_nodes() {
    fn anyhow() -> Result<u64, anyhow::Error> {
        Err(anyhow::anyhow!("no route").context("asking"))
    }
    let cases: [(Fail, &str); 4] = [
        (|| Ok("x".parse::<u64>()?), "node #0 failed: invalid digit found in string"),
        (|| Err("plain text".into()), "node #0 failed: plain text"),
        (|| Ok(anyhow()?), "node #0 failed: asking"),
        (|| Err(std::io::Error::from(std::io::ErrorKind::NotFound))?, "node #0 failed: entity not found"),
    ];
    for (fail, text) in cases {
        assert_eq!(run(&mut FailingWorkload(Some(fail)), 1).unwrap_err().to_string(), text);
    }
}

#[test]
fn a_boxed_error_has_the_severity_of_the_classified_error_in_it() {
    let permanent = || ClassifiedError::new(Severity::Permanent, "gone");
    let boxed: BoxError = "plain".into();
    assert_eq!(boxed.severity(), Severity::Transient);
    let boxed: BoxError = permanent().into();
    assert_eq!(boxed.severity(), Severity::Permanent);
    let boxed: BoxError = anyhow::Error::new(permanent()).context("asking").into();
    assert_eq!(boxed.severity(), Severity::Permanent);
}
