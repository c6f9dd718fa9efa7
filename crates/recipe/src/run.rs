//! Runs one get on the engine: each recipe is a node, and each computation is a flight that several runs may share.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Instant;

use anabranch_engine::flight::Panicked;
use anabranch_engine::options::Class;
use anabranch_engine::{Budget, Check, Drops, Failure, NodeId, Options, Policies, Step, Stopped, Workload};
use bytes::Bytes;
use smallvec::smallvec;

use crate::closure::{Closure, Input};
use crate::error::Error;
use crate::execute::{self, Purpose, Stage};
use crate::executor::{Inner, RecipeWaiter};
use crate::registry;
use crate::trace::Trace;
use crate::value::{ComputedValue, Origin, StoredValue, ValueBody};

/// The number of recipes in a get by outcome.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Counts {
    /// Recipes that ran.
    pub computed: u32,
    /// Recipes that did not run, because their function had already run on equal inputs.
    pub cut_off: u32,
}

/// Computes the recipes of a closure, whose given values are protected from collection. Returns the value of the last
/// recipe. The trace records when each recipe ran.
pub(crate) async fn materialise(
    inner: &Arc<Inner>,
    closure: Closure,
    deadline: Option<Instant>,
    mut trace: Option<&mut Trace>,
) -> Result<(StoredValue, Counts), Error> {
    if let Some(trace) = &mut trace {
        trace.begin(&closure, inner.engine.clock());
    }
    let last = NodeId(closure.nodes.len() as u32 - 1);
    let values = closure.nodes.iter().map(|_| None).collect();
    let counts = Counts::default();
    let mut work = Work { inner, closure: &closure, values, last, held_bytes: 0, counts, trace };
    let options = Options {
        label: "recipes".into(),
        deadline,
        class: Class::Batch,
        in_flight: inner.config.in_flight,
        ..Options::default()
    };
    let policies = Policies::default();
    let run = inner.engine.run(&closure.dag, &policies, &mut work, &options).map_err(Error::Refused)?;
    let ended = run.await;
    if let Some(trace) = &mut work.trace {
        trace.ended(ended.as_ref().err());
    }
    match ended {
        Ok(_) => {}
        Err(Stopped::Deadline { .. }) => return Err(Error::Deadline),
        Err(Stopped::Cut { .. } | Stopped::Drained) => return Err(Error::Stopped),
        Err(Stopped::Node { node, failure }) => return Err(failed(&closure, node, failure)),
    }
    let counts = work.counts;
    let value = work.values[last.index()].take().expect("a run that ended well finished its last node");
    Ok((value.computed.value, counts))
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
    values: Vec<Option<NodeValue>>,
    last: NodeId,
    /// Bytes of values held in memory.
    held_bytes: usize,
    counts: Counts,
    trace: Option<&'a mut Trace>,
}

/// The value of a node, or of a later node: fused nodes pass on the value of the last of them.
#[derive(Debug)]
pub(crate) struct NodeValue {
    computed: ComputedValue,
    of: NodeId,
}

impl Work<'_> {
    fn inputs_of(&self, node: NodeId) -> Vec<StoredValue> {
        let value = |input: &Input| match *input {
            Input::Given(given) => {
                let (output, size) = self.closure.given[given as usize];
                StoredValue::stored(output, size, Some(Arc::clone(&self.closure.lease)))
            }
            Input::Node(node) => {
                let value = self.values[node as usize].as_ref();
                value.expect("a node starts after its inputs").computed.value.clone()
            }
        };
        self.closure.inputs_of(node).iter().map(value).collect()
    }

    /// The value of the fused run that contains this node, if there is one.
    fn passed_on(&self, node: NodeId) -> Option<NodeValue> {
        let [Input::Node(input)] = *self.closure.inputs_of(node) else { return None };
        let value = self.values[input as usize].as_ref()?;
        (value.of != NodeId(input)).then(|| NodeValue { computed: value.computed.clone(), of: value.of })
    }

    fn stage(&self, node: NodeId) -> Stage {
        let Closure { nodes, .. } = self.closure;
        Stage {
            address: nodes[node.index()].address,
            function: Arc::clone(self.closure.function_of(node)),
            params: nodes[node.index()].params.clone(),
            input_count: self.closure.inputs_of(node).len(),
            reads_recipes: nodes[node.index()].reads_recipes,
        }
    }

    /// The nodes that can be fused with this one, starting with itself.
    fn chain_from(&self, node: NodeId) -> Vec<NodeId> {
        let mut chain = vec![node];
        while chain.len() < execute::CHAIN_MOST
            && let Some(next) = self.closure.next_in_chain(chain[chain.len() - 1])
        {
            chain.push(next);
        }
        chain
    }

    fn purpose(&self, node: NodeId) -> Purpose {
        if node == self.last { Purpose::Caller } else { Purpose::Recipe }
    }
}

impl Workload for Work<'_> {
    type Value = NodeValue;
    type Error = Error;
    type Future = NodeFuture;
    type Job = fn(Option<NodeValue>, &Check<'_>) -> Result<NodeValue, Error>;

    fn step(&mut self, node: NodeId, _: Budget) -> Step<Self> {
        let passed_on = self.passed_on(node);
        if let Some(trace) = &mut self.trace {
            trace.started(node);
            if passed_on.as_ref().is_some_and(|value| value.computed.how == Origin::Ran) {
                trace.fused(node);
            }
        }
        if let Some(value) = passed_on {
            return Step::Ready(Ok(value));
        }
        let stage = self.stage(node);
        let signature = stage.function.signature();
        let none = Default::default();
        let params = stage.params.as_deref().unwrap_or(&none);
        if let Err(fault) = registry::check_declared(signature, stage.input_count, params) {
            return Step::Ready(Err(stage.failed(fault)));
        }
        let inputs = self.inputs_of(node);
        let total: u64 = inputs.iter().map(|given| given.size).sum();
        // A function that returns its input has nothing to do, since its input is stored.
        if total >= self.inner.config.fuse_from && !stage.function.signature().passes_input {
            let chain = self.chain_from(node);
            if chain.len() > 1 {
                let stages = chain.iter().map(|node| self.stage(*node)).collect();
                let purposes = chain.iter().map(|node| self.purpose(*node)).collect();
                let fused = execute::chain(Arc::clone(self.inner), stages, purposes, inputs);
                let of = move |place: usize| chain[place];
                return Step::Future(NodeFuture::Chain(Box::pin(async move {
                    let (computed, place) = fused.await?;
                    Ok(NodeValue { computed, of: of(place) })
                })));
            }
        }
        let waiter = execute::join(self.inner, smallvec![stage], self.purpose(node), inputs);
        Step::Future(NodeFuture::One(waiter, node))
    }

    fn finish(&mut self, node: NodeId, mut value: NodeValue, _: &mut Drops) {
        match value.computed.how {
            Origin::Ran => self.counts.computed += 1,
            Origin::SameInputs => self.counts.cut_off += 1,
            Origin::Memo => {}
        }
        if let Some(trace) = &mut self.trace {
            trace.finished(node, value.computed.how);
        }
        if value.of == node {
            let size = value.computed.value.bytes().map_or(0, Bytes::len);
            if size > 0 && self.held_bytes + size > self.inner.config.value_bytes {
                // The value is in the store, or is being written.
                value.computed.value.body = ValueBody::Stored;
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
            self.held_bytes -= value.computed.value.bytes().map_or(0, Bytes::len);
        }
    }
}

/// A running node.
pub(crate) enum NodeFuture {
    One(RecipeWaiter, NodeId),
    Chain(Pin<Box<dyn Future<Output = Result<NodeValue, Error>> + Send>>),
}

impl Future for NodeFuture {
    type Output = Result<NodeValue, Error>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        match &mut *self {
            NodeFuture::Chain(chain) => chain.as_mut().poll(cx),
            NodeFuture::One(waiter, node) => {
                let node = *node;
                Pin::new(waiter).poll(cx).map(|landed| match landed {
                    Ok(Ok(computed)) => Ok(NodeValue { computed, of: node }),
                    Ok(Err(error)) => Err(error),
                    Err(Panicked(message)) => std::panic::resume_unwind(Box::new(message)),
                })
            }
        }
    }
}
