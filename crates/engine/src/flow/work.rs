//! A flow as a workload: closures to start nodes with, and their values.

use std::any::Any;
use std::sync::Arc;

use crate::check::Check;
use crate::graph::NodeId;
use crate::workload::{BoxError, BoxFuture, BoxJob, Budget, Cost, Drops, Failure, Instead, Step, Workload};

pub(super) type Value = Box<dyn Any + Send>;

/// Reads a node's inputs and starts it.
pub(super) type StartNode = Box<dyn FnMut(&mut Values) -> Step<Work> + Send>;

/// Computes the value of a node that failed.
pub(super) type Substitute = Box<dyn FnOnce(&Failure<BoxError>) -> Value + Send>;

#[derive(Default)]
pub(super) struct Work {
    /// `None` once the node has ended, so that its closure's data is freed.
    starts: Vec<Option<StartNode>>,
    substitutes: Vec<Option<Substitute>>,
    pub(super) values: Values,
}

/// The values of a flow's nodes.
#[derive(Default)]
pub struct Values {
    slots: Vec<Slot>,
}

#[derive(Default)]
struct Slot {
    value: Option<Value>,
    failure: Option<Arc<Failure<BoxError>>>,
    fell_back: bool,
    /// The handle was moved into a reader.
    moved: bool,
    /// Clones the value, if other readers have it by reference.
    clone: Option<CloneValue>,
}

type CloneValue = fn(&dyn Any) -> Value;

impl Work {
    pub(super) fn push(&mut self, start: StartNode, substitute: Option<Substitute>) {
        self.starts.push(Some(start));
        self.substitutes.push(substitute);
        self.values.slots.push(Slot::default());
    }
}

impl Workload for Work {
    type Value = Value;
    type Error = BoxError;
    type Future = BoxFuture<Value, BoxError>;
    type Job = BoxJob<Value, BoxError>;

    fn step(&mut self, node: NodeId, _: Budget) -> Step<Self> {
        let start = self.starts[node.index()].as_mut().expect("a node starts before it ends");
        start(&mut self.values)
    }

    fn finish(&mut self, node: NodeId, value: Value, _: &mut Drops) {
        self.starts[node.index()] = None;
        self.values.slots[node.index()].value = Some(value);
    }

    fn fail(&mut self, node: NodeId, failure: Failure<BoxError>, _: &mut Drops) {
        self.starts[node.index()] = None;
        self.values.slots[node.index()].failure = Some(Arc::new(failure));
    }

    fn fallback(&mut self, node: NodeId, failure: &Failure<BoxError>) -> Instead<Value> {
        match self.substitutes[node.index()].take() {
            Some(substitute) => {
                self.values.slots[node.index()].fell_back = true;
                Instead::Value(substitute(failure))
            }
            None => Instead::Fail,
        }
    }

    fn release(&mut self, node: NodeId) {
        let slot = &mut self.values.slots[node.index()];
        if slot.moved {
            slot.value = None;
        }
    }
}

pub(super) fn future_step<T, R>(future: R) -> Step<Work>
where
    T: Send + 'static,
    R: Future<Output = Result<T, BoxError>> + Send + 'static,
{
    Step::future(async move { Ok(Box::new(future.await?) as Value) })
}

pub(super) fn job_step<I, T, F>(inputs: I, work: F, cost: Cost) -> Step<Work>
where
    I: Send + 'static,
    T: Send + 'static,
    F: FnOnce(I, &Check<'_>) -> Result<T, BoxError> + Send + 'static,
{
    Step::job(move |_, check| Ok(Box::new(work(inputs, check)?) as Value), cost)
}

impl Values {
    pub(super) fn moved(&mut self, node: NodeId) {
        self.slots[node.index()].moved = true;
    }

    pub(super) fn shared(&mut self, node: NodeId, clone: CloneValue) {
        self.slots[node.index()].clone = Some(clone);
    }

    /// The value for the reader whose handle was moved. If other nodes read it by reference, they may start later, so
    /// this reader gets a clone like them.
    pub(super) fn take<T: 'static>(&mut self, node: NodeId) -> Option<T> {
        let slot = &mut self.slots[node.index()];
        let value = match slot.clone {
            Some(clone) => clone(&**slot.value.as_ref()?),
            None => slot.value.take()?,
        };
        Some(*value.downcast().expect("a handle has the type of its node's value"))
    }

    pub(super) fn get<T: 'static>(&self, node: NodeId) -> Option<&T> {
        let value = self.slots[node.index()].value.as_ref()?;
        Some((**value).downcast_ref().expect("a handle has the type of its node's value"))
    }

    /// The value after the run, when nothing else reads it.
    pub(super) fn remove<T: 'static>(&mut self, node: NodeId) -> Option<T> {
        let value = self.slots[node.index()].value.take()?;
        Some(*value.downcast().expect("a handle has the type of its node's value"))
    }

    pub(super) fn failure(&self, node: NodeId) -> Option<&Arc<Failure<BoxError>>> {
        self.slots[node.index()].failure.as_ref()
    }

    pub(super) fn fell_back(&self, node: NodeId) -> bool {
        self.slots[node.index()].fell_back
    }
}
