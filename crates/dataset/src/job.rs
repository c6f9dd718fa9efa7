//! One job on a pool of the engine, as a run of a single node.

use anabranch_engine::options::Class;
use anabranch_engine::{
    Budget, Check, Cost, Dag, Drops, Engine, NodeId, Options, Policies, Step, Stopped, Workload,
};

use crate::error::Error;

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
