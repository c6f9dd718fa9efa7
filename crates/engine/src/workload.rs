//! What a workload tells the engine about its nodes, and what it is told in return.

use std::time::{Duration, Instant};

use crate::check::Check;
use crate::graph::NodeId;
use crate::retry::Classified;

/// The meaning of a graph's nodes. The engine decides when and where; the workload keeps every value.
///
/// All methods are called by the run's owner, one at a time, so a workload needs no lock.
pub trait Workload {
    /// What a finished node hands over.
    type Value: Send + 'static;
    /// How a node fails.
    type Error: Classified + Send + 'static;
    /// Asynchronous work.
    type Future: Future<Output = Result<Self::Value, Self::Error>> + Send + 'static;
    /// CPU work and blocking calls.
    type Job: Job<Self::Value, Self::Error>;

    /// Begins `node`: all its inputs have ended as its edges ask.
    fn step(&mut self, node: NodeId, budget: Budget) -> Step<Self>;

    /// The job of `node`, to run right behind that of `input` on the same thread, with `input`'s value handed over.
    ///
    /// Asked only when `node` is the one dependent of `input` and its other inputs, if any, have ended. Asked again
    /// when `input` is tried again. The value of `input` then
    /// never reaches [`finish`](Self::finish), though its [`release`](Self::release) is told. `None` makes `node` an ordinary step.
    fn link(&mut self, node: NodeId, input: NodeId) -> Option<Self::Job> {
        let _ = (node, input);
        None
    }

    /// Keeps the value of `node`. Nodes pushed to `drops` are dropped, in flight or not, with all that needs them.
    fn finish(&mut self, node: NodeId, value: Self::Value, drops: &mut Drops);

    /// Learns that `node` failed and the run goes on without it ([`OnError::Isolate`](crate::OnError::Isolate)).
    fn fail(&mut self, node: NodeId, failure: Failure<Self::Error>, drops: &mut Drops) {
        let _ = (node, failure, drops);
    }

    /// What is to become of `node`, which has a fallback ([`OnError::Fallback`](crate::OnError::Fallback)).
    fn fallback(&mut self, node: NodeId, failure: &Failure<Self::Error>) -> Instead<Self::Value> {
        let _ = (node, failure);
        Instead::Fail
    }

    /// Learns that nothing will read the value of `node` again.
    fn release(&mut self, node: NodeId) {
        let _ = node;
    }
}

/// How a node is carried out.
pub enum Step<W: Workload + ?Sized> {
    /// It is done: cheap work is simply done in [`Workload::step`].
    Ready(Result<W::Value, W::Error>),
    /// It is done when this future is.
    Future(W::Future),
    /// It is done when this job has run.
    Job(W::Job, Cost),
    /// It has nothing to do, and what needs it is not wanted: the closed side of a branch.
    Drop,
}

/// What a job is expected to cost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cost {
    /// About this much CPU time. At most the inline threshold, the job runs in place.
    About(Duration),
    /// Not known: the job always goes to a pool.
    Unknown,
}

/// What becomes of a node that did not make it.
#[derive(Debug)]
pub enum Instead<V> {
    /// This value stands in for its own.
    Value(V),
    /// Nothing: what needs it is dropped, and the run carries on, as with [`OnError::Isolate`](crate::OnError::Isolate).
    Nothing,
    /// Its failure ends the run.
    Fail,
}

/// CPU work or a blocking call. Closures of the same shape are jobs.
pub trait Job<V, E>: Send + 'static {
    /// Does the work. `input` is the value of the job before, when linked behind it
    /// (see [`Workload::link`]). Long work asks `check` between chunks and returns early when told to stop.
    fn run(self, input: Option<V>, check: &Check<'_>) -> Result<V, E>;
}

impl<V, E, F> Job<V, E> for F
where
    F: FnOnce(Option<V>, &Check<'_>) -> Result<V, E> + Send + 'static,
{
    fn run(self, input: Option<V>, check: &Check<'_>) -> Result<V, E> {
        self(input, check)
    }
}

/// How much time a node has.
#[derive(Clone, Copy, Debug)]
pub struct Budget {
    pub(crate) now: Instant,
    pub(crate) due: Option<Instant>,
}

impl Budget {
    /// When the node must have ended, if ever: its timeout or the run's deadline, less the reserve kept for a
    /// degraded tail.
    pub fn due(&self) -> Option<Instant> {
        self.due
    }

    /// The run's idea of now, up to 100 us old.
    pub fn now(&self) -> Instant {
        self.now
    }

    /// What is left.
    pub fn left(&self) -> Option<Duration> {
        self.due.map(|due| due.saturating_duration_since(self.now))
    }
}

/// Why a node did not finish.
#[derive(Debug, thiserror::Error)]
pub enum Failure<E> {
    /// Its own error.
    #[error(transparent)]
    Error(E),
    /// It panicked; the message.
    #[error("panicked: {0}")]
    Panic(String),
    /// It took longer than its timeout.
    #[error("did not finish within its timeout of {0:?}")]
    Timeout(Duration),
    /// The run's deadline (less the tail's reserve) left it no time.
    #[error("did not finish in what the run's deadline left it")]
    Deadline,
    /// The pool or runtime that held it was shut down.
    #[error("was thrown away by a pool that shut down")]
    Abandoned,
}

/// Nodes that a workload wants dropped.
#[derive(Debug, Default)]
pub struct Drops(pub(crate) Vec<NodeId>);

impl Drops {
    /// Drops `node`, unless it has already ended.
    pub fn push(&mut self, node: NodeId) {
        self.0.push(node);
    }
}
