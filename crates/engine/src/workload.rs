//! The work of the nodes of a graph: a workload starts them, keeps their values and is notified of their ends.

use std::pin::Pin;
use std::time::{Duration, Instant};

use crate::check::Check;
use crate::graph::NodeId;
use crate::retry::Classified;

/// The work of the nodes of a graph. The engine decides when and where a node runs; the workload keeps every value.
///
/// All methods are called by the task that polls the run, one at a time, so a workload needs no lock.
pub trait Workload {
    /// The value of a finished node.
    type Value: Send + 'static;
    /// The error of a failed node. `Box<dyn std::error::Error + Send + Sync>` accepts any error with `?`.
    type Error: Classified + Send + 'static;
    /// Asynchronous work: your own type, or [`BoxFuture`].
    type Future: Future<Output = Result<Self::Value, Self::Error>> + Send + 'static;
    /// CPU work and blocking calls: your own type, or [`BoxJob`].
    type Job: Job<Self::Value, Self::Error>;

    /// Starts `node`: all its inputs have ended as its edges ask. Called again for each retry.
    fn step(&mut self, node: NodeId, budget: Budget) -> Step<Self>;

    /// Whether `node` must wait for the limit of its policy. Called each time that it would request a slot: before its
    /// first attempt and before each retry.
    ///
    /// `false` starts the node immediately and without a slot, so that its end is not reported to the limit either.
    /// This is for a call whose result is already known, which must not wait and whose latency is not that of the
    /// backend.
    fn needs_limit(&mut self, node: NodeId) -> bool {
        let _ = node;
        true
    }

    /// The job of `node`, to run right behind that of `input` on the same thread, with `input`'s value handed over.
    ///
    /// Called only when `node` is the only dependent of `input` and its other inputs, if any, have ended; called again
    /// when `input` is tried again. The value of `input` then never reaches [`finish`](Self::finish), but
    /// [`release`](Self::release) is called for it. `None` makes `node` an ordinary step.
    fn link(&mut self, node: NodeId, input: NodeId) -> Option<Self::Job> {
        let _ = (node, input);
        None
    }

    /// Keeps the value of `node`. Nodes pushed to `drops` are dropped, in flight or not, with all nodes that need them.
    fn finish(&mut self, node: NodeId, value: Self::Value, drops: &mut Drops);

    /// Called when `node` failed and the run goes on without it ([`OnError::Isolate`](crate::OnError::Isolate)).
    fn fail(&mut self, node: NodeId, failure: Failure<Self::Error>, drops: &mut Drops) {
        let _ = (node, failure, drops);
    }

    /// The substitute for `node`, which failed and has a fallback ([`OnError::Fallback`](crate::OnError::Fallback)).
    fn fallback(&mut self, node: NodeId, failure: &Failure<Self::Error>) -> Instead<Self::Value> {
        let _ = (node, failure);
        Instead::Fail
    }

    /// Called when all dependents of `node` have ended, so that its value is not needed any more.
    fn release(&mut self, node: NodeId) {
        let _ = node;
    }
}

/// The way in which a node runs.
pub enum Step<W: Workload + ?Sized> {
    /// The node has ended. Cheap work is done directly in [`Workload::step`].
    Ready(Result<W::Value, W::Error>),
    /// The node ends with this future. See [`Step::future`] for boxed futures.
    Future(W::Future),
    /// The node ends with this job, which runs on the run's own task or on a pool. See [`Step::job`] for boxed jobs.
    Job(W::Job, Cost),
    /// The node and all nodes that need it are dropped, as for a branch that is not taken.
    Drop,
}

/// The expected cost of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cost {
    /// About this much CPU time. Up to the inline threshold, the job runs in place.
    About(Duration),
    /// Unknown: the job always goes to a pool.
    Unknown,
    /// The job waits for a file or another process, so it goes to the blocking pool.
    Blocks,
}

impl<W: Workload> Step<W> {
    /// A step of any future that fits [`Workload::Future`]: the declared type itself, or whatever can be boxed into it
    /// when that is [`BoxFuture`].
    ///
    /// ```
    /// # use anabranch_engine::{workload::*, *};
    /// # struct Calls;
    /// impl Workload for Calls {
    ///     type Value = u64;
    ///     type Error = Box<dyn std::error::Error + Send + Sync>;
    ///     type Future = BoxFuture<u64, Self::Error>;
    ///     type Job = BoxJob<u64, Self::Error>;
    ///     fn step(&mut self, node: NodeId, _: Budget) -> Step<Self> {
    ///         match node.0 {
    ///             0 => Step::future(async { Ok("42".parse()?) }),
    ///             _ => Step::job(|_, _| Ok("43".parse()?), Cost::Unknown),
    ///         }
    ///     }
    ///     fn finish(&mut self, _: NodeId, _: u64, _: &mut Drops) {}
    /// }
    /// ```
    ///
    /// A future that already is a [`BoxFuture`] needs no conversion: it goes into [`Step::Future`].
    pub fn future<F, How>(future: F) -> Step<W>
    where
        F: Fits<W::Future, How>,
    {
        Step::Future(future.fit())
    }

    /// A step of any closure that fits [`Workload::Job`]: the declared type itself, or whatever can be boxed into it
    /// when that is [`BoxJob`].
    pub fn job<J, How>(job: J, cost: Cost) -> Step<W>
    where
        J: FnOnce(Option<W::Value>, &Check<'_>) -> Result<W::Value, W::Error> + Fits<W::Job, How>,
    {
        Step::Job(job.fit(), cost)
    }
}

/// Any error: `?` converts every [`std::error::Error`], `String`, `&str` and `anyhow::Error` into it.
pub type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// Any future of a node's result.
pub type BoxFuture<V, E> = Pin<Box<dyn Future<Output = Result<V, E>> + Send>>;

/// Any closure that is a [`Job`].
pub type BoxJob<V, E> = Box<dyn FnOnce(Option<V>, &Check<'_>) -> Result<V, E> + Send>;

/// A future or closure that can be made a `Target`; `How` is inferred. Implemented by [`Step::future`]'s arguments.
pub trait Fits<Target, How> {
    /// Makes it the target.
    fn fit(self) -> Target;
}

/// The value is the target already.
pub enum AsIs {}

/// The value is boxed.
pub enum BoxedStep {}

impl<T> Fits<T, AsIs> for T {
    fn fit(self) -> T {
        self
    }
}

impl<F: Future + Send + 'static> Fits<Pin<Box<dyn Future<Output = F::Output> + Send>>, BoxedStep> for F {
    fn fit(self) -> Pin<Box<dyn Future<Output = F::Output> + Send>> {
        Box::pin(self)
    }
}

impl<J, V, E> Fits<BoxJob<V, E>, BoxedStep> for J
where
    J: FnOnce(Option<V>, &Check<'_>) -> Result<V, E> + Send + 'static,
{
    fn fit(self) -> BoxJob<V, E> {
        Box::new(self)
    }
}

/// The substitute for a failed node.
#[derive(Debug)]
pub enum Instead<V> {
    /// This value takes the place of its own.
    Value(V),
    /// Nothing: the nodes that need it are dropped and the run continues, as with
    /// [`OnError::Isolate`](crate::OnError::Isolate).
    Nothing,
    /// Its failure ends the run, as with [`OnError::FailRun`](crate::OnError::FailRun).
    Fail,
}

/// CPU work or a blocking call. Closures of the same shape are jobs.
pub trait Job<V, E>: Send + 'static {
    /// Does the work. `input` is the value of the previous job, if this one was linked to it ([`Workload::link`]). Long
    /// work polls `check` between chunks, and returns early when it should stop.
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

/// The time that a node has.
#[derive(Clone, Copy, Debug)]
pub struct Budget {
    pub(crate) now: Instant,
    pub(crate) due: Option<Instant>,
}

impl Budget {
    /// The time by which the node must have ended: its timeout or the run's deadline, whichever is earlier; for a node
    /// with a fallback the deadline less its [`Reserve`](crate::options::Reserve).
    pub fn due(&self) -> Option<Instant> {
        self.due
    }

    /// The current time by the run's clock, up to 100 us old.
    pub fn now(&self) -> Instant {
        self.now
    }

    /// The time left.
    pub fn left(&self) -> Option<Duration> {
        self.due.map(|due| due.saturating_duration_since(self.now))
    }
}

/// The reason why a node did not finish.
#[derive(Debug, thiserror::Error)]
pub enum Failure<E> {
    /// The node's own error.
    #[error(transparent)]
    Error(E),
    /// The node panicked, with this message.
    #[error("panicked: {0}")]
    Panic(String),
    /// The node took longer than its timeout.
    #[error("did not finish within its timeout of {0:?}")]
    Timeout(Duration),
    /// The run's deadline, less the reserve for the nodes behind it, left the node no time.
    #[error("did not finish in the time that the run's deadline left it")]
    Deadline,
    /// The pool or runtime that held it was shut down.
    #[error("was abandoned: the pool or runtime that held it shut down")]
    Abandoned,
}

/// Collects the nodes that a workload wants dropped.
#[derive(Debug, Default)]
pub struct Drops(pub(crate) Vec<NodeId>);

impl Drops {
    /// Drops `node`, unless it has already ended.
    pub fn push(&mut self, node: NodeId) {
        self.0.push(node);
    }
}
