//! One get as a run of the engine's: each recipe is a node, each computation a flight that several runs may share.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Instant;

use anabranch_content::{Address, Lease};
use anabranch_engine::flight::{Panicked, Waiter};
use anabranch_engine::options::Class;
use anabranch_engine::{Budget, Check, Drops, Failure, NodeId, Options, Policies, Step, Stopped, Workload};
use bytes::Bytes;
use smallvec::smallvec;
use tokio::sync::OwnedSemaphorePermit;

use crate::closure::{Closure, Input};
use crate::error::Error;
use crate::execute::{self, Purpose, Stage};
use crate::executor::Inner;
use crate::registry;

/// A value that is there: which blob, and its bytes if they are at hand.
#[derive(Clone, Debug)]
pub(crate) struct Given {
    pub output: Address,
    pub size: u64,
    pub bytes: Option<Bytes>,
    /// The bytes of a larger one, for who asked for just this.
    pub kept: Option<Arc<Kept>>,
    /// Keeps it from being collected, if its bytes are not at hand.
    pub lease: Option<Arc<Lease>>,
}

/// A value in pieces, with its share of the memory.
#[derive(Debug)]
pub(crate) struct Kept {
    pub chunks: Vec<Bytes>,
    pub room: OwnedSemaphorePermit,
}

/// What a flight brings.
#[derive(Clone, Debug)]
pub(crate) struct Made {
    pub given: Given,
    /// It was computed by this flight.
    pub fresh: bool,
}

/// Computes the recipes of a closure, whose given values are held; answers the last one's value, and how many were
/// computed.
pub(crate) async fn materialise(
    inner: &Arc<Inner>,
    closure: Closure,
    deadline: Option<Instant>,
) -> Result<(Given, u32), Error> {
    let last = NodeId(closure.nodes.len() as u32 - 1);
    let values = closure.nodes.iter().map(|_| None).collect();
    let mut work = Work { inner, closure: &closure, values, last, held_bytes: 0, computed: 0 };
    let options = Options {
        label: "recipes".into(),
        deadline,
        class: Class::Batch,
        in_flight: inner.config.in_flight,
        ..Options::default()
    };
    let policies = Policies::default();
    let run = inner.engine.run(&closure.dag, &policies, &mut work, &options).map_err(Error::Refused)?;
    match run.await {
        Ok(_) => {}
        Err(Stopped::Deadline { .. }) => return Err(Error::Deadline),
        Err(Stopped::Cut { .. } | Stopped::Drained) => return Err(Error::Stopped),
        Err(Stopped::Node { node, failure }) => return Err(failed(&closure, node, failure)),
    }
    let computed = work.computed;
    let value = work.values[last.index()].take().expect("a run that ended well finished its last node");
    Ok((value.made.given, computed))
}

fn failed(closure: &Closure, node: NodeId, failure: Failure<Error>) -> Error {
    match failure {
        Failure::Error(error) => error,
        Failure::Timeout(_) | Failure::Deadline => Error::Deadline,
        Failure::Abandoned => Error::Stopped,
        Failure::Panic(message) => panicked(closure, node, message),
    }
}

fn panicked(closure: &Closure, node: NodeId, message: String) -> Error {
    let function = Box::new(closure.function_of(node).signature().id.clone());
    Error::Panicked { address: closure.nodes[node.index()].address, function, message }
}

/// The workload of one get.
struct Work<'a> {
    inner: &'a Arc<Inner>,
    closure: &'a Closure,
    values: Vec<Option<Value>>,
    last: NodeId,
    /// Bytes of values at hand.
    held_bytes: usize,
    computed: u32,
}

/// The value of a node, or of one behind it: fused nodes pass on what the last of them came to.
#[derive(Debug)]
struct Value {
    made: Made,
    of: NodeId,
}

impl Work<'_> {
    fn inputs_of(&self, node: NodeId) -> Vec<Given> {
        let value = |input: &Input| match *input {
            Input::Given(given) => {
                let (output, size) = self.closure.given[given as usize];
                Given { output, size, bytes: None, kept: None, lease: Some(Arc::clone(&self.closure.lease)) }
            }
            Input::Node(node) => {
                let value = self.values[node as usize].as_ref();
                value.expect("a node starts after its inputs").made.given.clone()
            }
        };
        self.closure.inputs_of(node).iter().map(value).collect()
    }

    /// What a fused row brought, if this node is in it.
    fn passed_on(&self, node: NodeId) -> Option<Value> {
        let [Input::Node(input)] = *self.closure.inputs_of(node) else { return None };
        let value = self.values[input as usize].as_ref()?;
        (value.of != NodeId(input)).then(|| Value { made: value.made.clone(), of: value.of })
    }

    fn stage(&self, node: NodeId) -> Stage {
        let Closure { nodes, .. } = self.closure;
        Stage {
            address: nodes[node.index()].address,
            function: Arc::clone(self.closure.function_of(node)),
            params: nodes[node.index()].params.clone(),
            input_count: self.closure.inputs_of(node).len(),
        }
    }

    /// The nodes that can be fused with this one, itself first.
    fn row_from(&self, node: NodeId) -> Vec<NodeId> {
        let mut row = vec![node];
        while row.len() < execute::ROW_MOST
            && let Some(next) = self.closure.next_in_row(row[row.len() - 1])
        {
            row.push(next);
        }
        row
    }

    fn purpose(&self, node: NodeId) -> Purpose {
        if node == self.last { Purpose::Caller } else { Purpose::Recipe }
    }
}

impl Workload for Work<'_> {
    type Value = ValueBox;
    type Error = Error;
    type Future = Carried;
    type Job = fn(Option<ValueBox>, &Check<'_>) -> Result<ValueBox, Error>;

    fn step(&mut self, node: NodeId, _: Budget) -> Step<Self> {
        if let Some(value) = self.passed_on(node) {
            return Step::Ready(Ok(ValueBox(value)));
        }
        let stage = self.stage(node);
        let signature = stage.function.signature();
        let none = Default::default();
        let params = stage.params.as_deref().unwrap_or(&none);
        if let Err(fault) = registry::check(signature, stage.input_count, params) {
            return Step::Ready(Err(stage.failed(fault)));
        }
        let inputs = self.inputs_of(node);
        let total: u64 = inputs.iter().map(|given| given.size).sum();
        if total >= self.inner.config.fuse_from {
            let row = self.row_from(node);
            if row.len() > 1 {
                let stages = row.iter().map(|node| self.stage(*node)).collect();
                let purposes = row.iter().map(|node| self.purpose(*node)).collect();
                let fused = execute::row(Arc::clone(self.inner), stages, purposes, inputs);
                let of = move |place: usize| row[place];
                return Step::Future(Carried::Row(Box::pin(async move {
                    let (made, place) = fused.await?;
                    Ok(ValueBox(Value { made, of: of(place) }))
                })));
            }
        }
        let waiter = execute::join(self.inner, smallvec![stage], self.purpose(node), inputs);
        Step::Future(Carried::One(waiter, node))
    }

    fn finish(&mut self, node: NodeId, ValueBox(mut value): ValueBox, _: &mut Drops) {
        self.computed += u32::from(value.made.fresh);
        if value.of == node {
            let size = value.made.given.bytes.as_ref().map_or(0, Bytes::len);
            if size > 0 && self.held_bytes + size > self.inner.config.value_bytes {
                // It is in the store, or on its way there.
                value.made.given.bytes = None;
            } else {
                self.held_bytes += size;
            }
        }
        self.values[node.index()] = Some(value);
    }

    fn release(&mut self, node: NodeId) {
        if node == self.last {
            return;
        }
        if let Some(value) = self.values[node.index()].take()
            && value.of == node
        {
            self.held_bytes -= value.made.given.bytes.as_ref().map_or(0, Bytes::len);
        }
    }
}

/// A node's value on its way from the engine to the workload.
pub(crate) struct ValueBox(Value);

/// A node under way.
pub(crate) enum Carried {
    One(Waiter<Address, Result<Made, Error>>, NodeId),
    Row(Pin<Box<dyn Future<Output = Result<ValueBox, Error>> + Send>>),
}

impl Future for Carried {
    type Output = Result<ValueBox, Error>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        match &mut *self {
            Carried::Row(row) => row.as_mut().poll(cx),
            Carried::One(waiter, node) => {
                let node = *node;
                Pin::new(waiter).poll(cx).map(|landed| match landed {
                    Ok(Ok(made)) => Ok(ValueBox(Value { made, of: node })),
                    Ok(Err(error)) => Err(error),
                    Err(Panicked(message)) => std::panic::resume_unwind(Box::new(message)),
                })
            }
        }
    }
}
