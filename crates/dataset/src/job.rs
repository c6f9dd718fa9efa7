//! One job or one call, as a run of a single node.

use std::sync::Arc;

use anabranch_engine::limit::Limits;
use anabranch_engine::options::Class;
use anabranch_engine::workload::{BoxFuture, BoxJob, Failure};
use anabranch_engine::{
    Budget, Check, Cost, Dag, Drops, Engine, NodeId, Options, Policies, Policy, Step, Stopped, Workload,
};

use crate::error::Error;
use crate::fault::Fault;

/// Runs a job that may block, and returns its result.
pub(crate) async fn blocking<T: Send + 'static>(
    engine: &Engine,
    job: impl FnOnce() -> T + Send + 'static,
) -> Result<T, Error> {
    let mut work = One { job: Some(job), value: None };
    let dag = Dag::new(1, &[]).expect("a single node has no cycle");
    let options = Options { label: "row group end".into(), class: Class::Batch, ..Options::default() };
    let ended = engine.run(&dag, &Policies::default(), &mut work, &options)?.await;
    match ended {
        Ok(_) => Ok(work.value.expect("a finished node has a value")),
        Err(Stopped::Node { failure, .. }) => {
            Err(Error::Setup(format!("a job of the build failed: {failure}")))
        }
        Err(Stopped::Deadline { .. } | Stopped::Cut { .. } | Stopped::Drained) => Err(Error::Stopped),
    }
}

struct One<F, T> {
    job: Option<F>,
    value: Option<T>,
}

struct OneJob<F>(F);

impl<T: Send + 'static, F: FnOnce() -> T + Send + 'static> anabranch_engine::Job<T, String> for OneJob<F> {
    fn run(self, _: Option<T>, _: &Check<'_>) -> Result<T, String> {
        Ok(self.0())
    }
}

impl<T: Send + 'static, F: FnOnce() -> T + Send + 'static> Workload for One<F, T> {
    type Value = T;
    type Error = String;
    type Future = std::future::Pending<Result<T, String>>;
    type Job = OneJob<F>;

    fn step(&mut self, _: NodeId, _: Budget) -> Step<Self> {
        match self.job.take() {
            Some(job) => Step::Job(OneJob(job), Cost::Blocks),
            None => Step::Drop,
        }
    }

    fn finish(&mut self, _: NodeId, value: T, _: &mut Drops) {
        self.value = Some(value);
    }
}

/// Makes a call under the limit and the retries of a policy.
pub(crate) async fn call<T: Send + 'static>(
    engine: &Engine,
    limits: &Limits,
    policy: Policy,
    start: Arc<dyn Fn() -> BoxFuture<T, Fault> + Send + Sync>,
) -> Result<T, Fault> {
    let mut work = OneCall { start, value: None };
    let dag = Dag::new(1, &[]).expect("a single node has no cycle");
    let options = Options {
        label: "call of custom code".into(),
        class: Class::Batch,
        limits: Some(limits.clone()),
        ..Options::default()
    };
    let policies = Policies::uniform(policy);
    let stopped = || Fault::permanent("stopped", "the build ended");
    let ended = engine.run(&dag, &policies, &mut work, &options).map_err(|_| stopped())?.await;
    match ended {
        Ok(_) => work.value.ok_or_else(stopped),
        Err(Stopped::Node { failure: Failure::Error(fault), .. }) => Err(fault),
        Err(Stopped::Node { failure, .. }) => Err(Fault::permanent("model", failure.to_string())),
        Err(_) => Err(stopped()),
    }
}

struct OneCall<T> {
    start: Arc<dyn Fn() -> BoxFuture<T, Fault> + Send + Sync>,
    value: Option<T>,
}

impl<T: Send + 'static> Workload for OneCall<T> {
    type Value = T;
    type Error = Fault;
    type Future = BoxFuture<T, Fault>;
    type Job = BoxJob<T, Fault>;

    fn step(&mut self, _: NodeId, _: Budget) -> Step<Self> {
        Step::Future((self.start)())
    }

    fn finish(&mut self, _: NodeId, value: T, _: &mut Drops) {
        self.value = Some(value);
    }
}
