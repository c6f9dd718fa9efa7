//! Handles of nodes, and how nodes are made.

use std::borrow::Cow;
use std::marker::PhantomData;
use std::sync::Arc;
use std::time::Duration;

use super::inputs::{InputReader, Inputs, Uses};
use super::work::{StartNode, Substitute, Value, future_step, job_step};
use super::{Flow, Identity, Name};
use crate::check::Check;
use crate::graph::{Edge, NodeId};
use crate::limit::LimitKey;
use crate::policy::{OnError, Policy, StepKind};
use crate::retry::Retry;
use crate::workload::{BoxError, Cost, Failure};

/// The handle of a node whose value is a `T`: an input of later nodes, and the key to the flow's [`Results`].
///
/// [`Results`]: super::Results
#[derive(Debug)]
pub struct Node<T> {
    pub(super) id: NodeId,
    pub(super) flow: Identity,
    value: PhantomData<fn() -> T>,
}

impl<T> Node<T> {
    /// The number of the node in events and timelines.
    pub fn id(&self) -> NodeId {
        self.id
    }
}

/// A node in the making: a name and a policy. `T` is the type of its value.
#[must_use = "a node becomes part of its flow with `future` or `job`"]
pub struct NodeBuilder<'f, T, Tries = Once> {
    flow: &'f mut Flow,
    name: Name,
    policy: Policy,
    cost: Cost,
    substitute: Option<Substitute>,
    after: Vec<NodeId>,
    types: PhantomData<(fn() -> T, Tries)>,
}

/// A node that is started once.
pub enum Once {}

/// A node that may be started again: its closure and its inputs are cloned for each try.
pub enum RetriedNode {}

impl<'f, T: Send + 'static> NodeBuilder<'f, T> {
    pub(super) fn new(flow: &'f mut Flow, name: Name) -> NodeBuilder<'f, T> {
        NodeBuilder {
            flow,
            name,
            policy: Policy::default(),
            cost: Cost::Unknown,
            substitute: None,
            after: Vec::new(),
            types: PhantomData,
        }
    }

    /// Tries the node again when it fails. Every error is tried again, unless it is a
    /// [`ClassifiedError`](crate::retry::ClassifiedError) that says otherwise.
    pub fn retry(mut self, retry: Retry) -> NodeBuilder<'f, T, RetriedNode> {
        self.policy.retry = Some(retry);
        let NodeBuilder { flow, name, policy, cost, substitute, after, .. } = self;
        NodeBuilder { flow, name, policy, cost, substitute, after, types: PhantomData }
    }

    /// A node that does asynchronous work. `work` gets the values of `inputs`.
    pub fn future<I, F, R>(self, inputs: I, work: F) -> Node<T>
    where
        I: Inputs,
        F: FnOnce(I::Values) -> R + Send + 'static,
        R: Future<Output = Result<T, BoxError>> + Send + 'static,
    {
        self.add(inputs, |mut reader| {
            let mut work = Some(work);
            Box::new(move |values| {
                let work = work.take().expect("a node without retry starts once");
                future_step(work(reader.read(values)))
            })
        })
    }

    /// A node that uses CPU time or blocks. `work` gets the values of `inputs`. Long work polls the [`Check`] between
    /// chunks. It runs on the CPU pool unless [`cost`](Self::cost) or [`step`](Self::step) say otherwise.
    pub fn job<I, F>(self, inputs: I, work: F) -> Node<T>
    where
        I: Inputs,
        F: FnOnce(I::Values, &Check<'_>) -> Result<T, BoxError> + Send + 'static,
    {
        let cost = self.cost;
        self.add(inputs, move |mut reader| {
            let mut work = Some(work);
            Box::new(move |values| {
                let work = work.take().expect("a node without retry starts once");
                job_step(reader.read(values), work, cost)
            })
        })
    }
}

impl<T: Send + 'static> NodeBuilder<'_, T, RetriedNode> {
    /// Like [`NodeBuilder::future`], but the closure and the values of its inputs must be `Clone`.
    pub fn future<I, F, R>(self, inputs: I, work: F) -> Node<T>
    where
        I: Inputs<Values: Clone>,
        F: FnOnce(I::Values) -> R + Clone + Send + 'static,
        R: Future<Output = Result<T, BoxError>> + Send + 'static,
    {
        self.add(inputs, |mut reader| {
            let mut known = None;
            Box::new(move |values| {
                let inputs = known.get_or_insert_with(|| reader.read(values)).clone();
                future_step(work.clone()(inputs))
            })
        })
    }

    /// Like [`NodeBuilder::job`], but the closure and the values of its inputs must be `Clone`.
    pub fn job<I, F>(self, inputs: I, work: F) -> Node<T>
    where
        I: Inputs<Values: Clone>,
        F: FnOnce(I::Values, &Check<'_>) -> Result<T, BoxError> + Clone + Send + 'static,
    {
        let cost = self.cost;
        self.add(inputs, move |mut reader| {
            let mut known = None;
            Box::new(move |values| {
                let inputs = known.get_or_insert_with(|| reader.read(values)).clone();
                job_step(inputs, work.clone(), cost)
            })
        })
    }
}

impl<T: Send + 'static, Tries> NodeBuilder<'_, T, Tries> {
    /// The longest time that one try may take. Waiting for a limit does not count.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.policy.timeout = Some(timeout);
        self
    }

    /// The limit that the node counts against, of the table given to [`Flow::limits`].
    pub fn limit(mut self, key: LimitKey) -> Self {
        self.policy.limit = Some(key);
        self
    }

    /// Tokens of its limit that one try is expected to use. Default: 0.
    pub fn tokens(mut self, tokens: u32) -> Self {
        self.policy.tokens = tokens;
        self
    }

    /// A resource that only one node of the flow may use at a time. Nodes that name the same one take turns.
    pub fn serial(mut self, resource: impl Into<Cow<'static, str>>) -> Self {
        self.policy.serial = Some(self.flow.serial(resource.into()));
        self
    }

    /// The value that takes the place of the node's own when it fails, times out or is too late for the deadline.
    pub fn fallback(self, value: T) -> Self {
        self.fallback_with(move |_| value)
    }

    /// Like [`fallback`](Self::fallback), with the value computed from the failure. It is computed on the run's own
    /// task.
    pub fn fallback_with(mut self, value: impl FnOnce(&Failure<BoxError>) -> T + Send + 'static) -> Self {
        self.policy.on_error = OnError::Fallback;
        self.substitute = Some(Box::new(move |failure| Box::new(value(failure)) as Value));
        self
    }

    /// A failure of the node does not end the flow: the nodes that need its value are dropped, the others carry on.
    pub fn isolate(mut self) -> Self {
        self.policy.on_error = OnError::Isolate;
        self
    }

    /// Starts the node only when `other` has ended in any way, without reading its value.
    pub fn after<U>(mut self, other: &Node<U>) -> Self {
        if self.flow.owns(other, &self.name) {
            self.after.push(other.id);
        }
        self
    }

    /// The CPU time that a job is expected to take. A cheap one runs on the run's own task, without the cost of a pool.
    /// Default: [`Cost::Unknown`].
    pub fn cost(mut self, cost: Cost) -> Self {
        self.cost = cost;
        self
    }

    /// The place where the node runs: for example as a separate task, or as a job on the blocking pool. Default:
    /// [`StepKind::Auto`].
    pub fn step(mut self, step: StepKind) -> Self {
        self.policy.step = step;
        self
    }

    fn add<I: Inputs>(self, inputs: I, start: impl FnOnce(I::Reader) -> StartNode) -> Node<T> {
        let NodeBuilder { flow, name, policy, substitute, after, .. } = self;
        let id = NodeId(flow.names.len() as u32);
        let after = after.into_iter().map(|input| (input, Edge::After)).collect();
        let mut uses = Uses { flow: &mut *flow, name: &name, edges: after };
        let reader = inputs.attach(&mut uses);
        let mut edges = uses.edges;
        // One edge per pair of nodes: where one use of a value needs it, the edge does.
        edges.sort_by_key(|(input, edge)| (*input, *edge == Edge::After));
        edges.dedup_by_key(|(input, _)| *input);
        flow.edges.extend(edges.into_iter().map(|(input, edge)| (input, id, edge)));
        flow.names.push(name);
        flow.policies.push(policy);
        flow.work.push(start(reader), substitute);
        Node { id, flow: Arc::clone(&flow.identity), value: PhantomData }
    }
}
