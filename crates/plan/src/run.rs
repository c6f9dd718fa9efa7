//! One request through a compiled plan, as the engine's workload.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use anabranch_engine::{Budget, Check, Classified, Cost, Drops, Job, NodeId, Severity, Step, Workload};
use anabranch_rows::Rows;

use crate::call::Call;
use crate::compiled::{Compiled, What};
use crate::error::OpError;
use crate::op::{Contract, Form, Inputs, Started, WaitFuture};

/// The values of a request's stages.
pub(crate) struct Work<'a> {
    plan: &'a Arc<Compiled>,
    call: &'a Arc<Call>,
    values: Box<[Option<Rows>]>,
    /// What is expected to cost less is not even worth a look at the clock.
    trifle: Duration,
    /// Stages that never end: a replay holds up what the failed request did not get to.
    pub(crate) held: Option<Box<[bool]>>,
}

/// Why a stage failed: which of its nodes, and how.
#[derive(Debug, thiserror::Error)]
#[error("{cause}")]
pub(crate) struct Fault {
    /// The node, by number.
    pub(crate) node: usize,
    #[source]
    pub(crate) cause: OpError,
}

impl Classified for Fault {
    fn severity(&self) -> Severity {
        self.cause.severity()
    }
}

/// The most that is computed without a look at the clock before or after.
const TRIFLE: Duration = Duration::from_micros(5);

impl<'a> Work<'a> {
    pub(crate) fn new(plan: &'a Arc<Compiled>, call: &'a Arc<Call>, inline_threshold: Duration) -> Work<'a> {
        let values = vec![None; plan.stages.len()].into_boxed_slice();
        Work { plan, call, values, trifle: TRIFLE.min(inline_threshold), held: None }
    }

    /// The rows of the outputs, once the run is over.
    pub(crate) fn into_outputs(self) -> Vec<Rows> {
        let rows =
            |stage: &usize| self.values[*stage].clone().expect("a run that ended well has its outputs");
        self.plan.outputs.iter().map(rows).collect()
    }

    fn inputs(&mut self, stage: usize) -> Inputs {
        let stages = &self.plan.stages;
        let values = &mut self.values;
        let take = |input: &usize| match stages[*input].given_away {
            true => values[*input].take(),
            false => values[*input].clone(),
        };
        stages[stage].inputs.iter().map(take).collect()
    }
}

impl Workload for Work<'_> {
    type Value = Rows;
    type Error = Fault;
    type Future = Waiting;
    type Job = Chain;

    fn step(&mut self, node: NodeId, _: Budget) -> Step<Self> {
        let stage = node.index();
        let plan = self.plan;
        if self.held.as_ref().is_some_and(|held| held[stage]) {
            return Step::Future(Waiting::forever(plan));
        }
        match &plan.stages[stage].what {
            What::Wait(node) => {
                let inputs = self.inputs(stage);
                let promise = Promise::new(plan, *node, &inputs);
                let Form::Wait(form) = &plan.nodes[*node].form else {
                    unreachable!("stages fit their forms")
                };
                match Arc::clone(form).start(inputs, self.call) {
                    Started::Ready(rows) => Step::Ready(promise.keep(rows)),
                    Started::Later(future) => Step::Future(Waiting { promise, future }),
                }
            }
            What::Chain(nodes) => {
                let inputs = self.inputs(stage);
                let cost = cost(plan, nodes, &inputs);
                if cost <= self.trifle {
                    return Step::Ready(compute(plan, nodes, inputs, self.call, &Check::never()));
                }
                let (plan, call) = (Arc::clone(plan), Arc::clone(self.call));
                Step::Job(Chain { plan, stage, inputs, call }, Cost::About(cost))
            }
            What::Gate { node, open, when } => match when.holds(&self.call.params) {
                Ok(holds) if holds == *open => Step::Ready(Ok(plan.nothing.clone())),
                Ok(_) => Step::Drop,
                Err(cause) => Step::Ready(Err(Fault { node: *node, cause: cause.into() })),
            },
        }
    }

    fn finish(&mut self, node: NodeId, value: Rows, _: &mut Drops) {
        self.values[node.index()] = Some(value);
    }

    fn release(&mut self, node: NodeId) {
        if !self.plan.stages[node.index()].is_output {
            self.values[node.index()] = None;
        }
    }
}

/// About how long a chain takes for these inputs.
fn cost(plan: &Compiled, nodes: &[usize], inputs: &Inputs) -> Duration {
    let mut rows: usize = inputs.iter().flatten().map(Rows::len).sum();
    let mut cost = Duration::ZERO;
    for node in nodes {
        let node = &plan.nodes[*node];
        let Form::Compute(form) = &node.form else { unreachable!("chains compute") };
        cost += form.cost(rows);
        rows = form.makes(rows);
        rows = node.demand.rows.map_or(rows, |asked| rows.min(asked as usize));
    }
    cost
}

fn compute(
    plan: &Compiled,
    nodes: &[usize],
    mut inputs: Inputs,
    call: &Call,
    check: &Check<'_>,
) -> Result<Rows, Fault> {
    for &number in nodes {
        let Form::Compute(form) = &plan.nodes[number].form else { unreachable!("chains compute") };
        let promise = Promise::new(plan, number, &inputs);
        let rows = promise.keep(form.run(&inputs, call, check))?;
        inputs.clear();
        inputs.push(Some(rows));
    }
    Ok(inputs.pop().flatten().expect("a chain has a node, and a node has rows"))
}

/// What a node's op promises about the rows it will hand over. Looked at in debug builds only.
struct Promise {
    /// The node.
    node: usize,
    contract: Contract,
    /// Its first input.
    input: Option<Rows>,
}

impl Promise {
    fn new(plan: &Compiled, node: usize, inputs: &Inputs) -> Promise {
        let input = if cfg!(debug_assertions) { inputs.first().cloned().flatten() } else { None };
        Promise { node, contract: plan.nodes[node].op.spec().contract, input }
    }

    fn keep(&self, rows: Result<Rows, OpError>) -> Result<Rows, Fault> {
        let broken = |rows: &Rows| match self.contract.broken_by(self.input.as_ref(), rows) {
            Some(broken) => Err(OpError::Value(format!("the op broke its contract: {broken}"))),
            None => Ok(()),
        };
        let kept = match rows {
            Ok(rows) if cfg!(debug_assertions) => broken(&rows).map(|()| rows),
            rows => rows,
        };
        kept.map_err(|cause| Fault { node: self.node, cause })
    }
}

/// A node that waits.
pub(crate) struct Waiting {
    promise: Promise,
    future: WaitFuture,
}

impl Waiting {
    fn forever(plan: &Compiled) -> Waiting {
        Waiting { promise: Promise::new(plan, 0, &Inputs::new()), future: Box::pin(std::future::pending()) }
    }
}

impl Future for Waiting {
    type Output = Result<Rows, Fault>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        self.future.as_mut().poll(context).map(|rows| self.promise.keep(rows))
    }
}

/// A chain on its way to a pool.
pub(crate) struct Chain {
    plan: Arc<Compiled>,
    stage: usize,
    inputs: Inputs,
    call: Arc<Call>,
}

impl Job<Rows, Fault> for Chain {
    fn run(self, _: Option<Rows>, check: &Check<'_>) -> Result<Rows, Fault> {
        let What::Chain(nodes) = &self.plan.stages[self.stage].what else {
            unreachable!("only chains are jobs")
        };
        compute(&self.plan, nodes, self.inputs, &self.call, check)
    }
}
