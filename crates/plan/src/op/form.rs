//! How a node runs: computing, or waiting.

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use anabranch_engine::Check;
use anabranch_rows::Rows;
use smallvec::SmallVec;

use crate::call::Call;
use crate::error::OpError;

/// The values of a node's inputs, in order. Inputs that did not run (the closed side of an `if`) are `None`.
pub type Inputs = SmallVec<[Option<Rows>; 2]>;

/// A node, ready to run for any request. Immutable and shared.
#[derive(Clone)]
pub enum Form {
    /// Computes.
    Compute(Arc<dyn Compute>),
    /// Waits for something outside.
    Wait(Arc<dyn Wait>),
}

/// CPU work: done in place when small, on the pool when large.
pub trait Compute: Send + Sync {
    /// About how long it takes for so many input rows.
    fn cost(&self, rows: usize) -> Duration;

    /// About how long it takes before the first row, for this request: compiling its pattern, for example.
    fn setup(&self, _call: &Call) -> Duration {
        Duration::ZERO
    }

    /// About how many rows come of so many input rows.
    fn makes(&self, rows: usize) -> usize {
        rows
    }

    /// Does it. Long loops ask `check` every few microseconds of work.
    fn run(&self, inputs: &Inputs, call: &Call, check: &Check<'_>) -> Result<Rows, OpError>;
}

/// Work that waits: for a source, a timer, the network.
pub trait Wait: Send + Sync {
    /// Begins it. Dropping the future gives it up.
    fn start(self: Arc<Self>, inputs: Inputs, call: &Arc<Call>) -> Started;
}

/// What became of work that may have to wait.
pub enum Started {
    /// It is done already.
    Ready(Result<Rows, OpError>),
    /// It is done when this future is.
    Later(WaitFuture),
}

/// Work under way.
pub type WaitFuture = Pin<Box<dyn Future<Output = Result<Rows, OpError>> + Send>>;

impl Form {
    /// A form that computes by calling `run`, which takes about `nanos` nanoseconds a row.
    pub fn compute<F>(nanos: f64, run: F) -> Form
    where
        F: Fn(&Inputs, &Call, &Check<'_>) -> Result<Rows, OpError> + Send + Sync + 'static,
    {
        Form::compute_after(|_| Duration::ZERO, nanos, run)
    }

    /// The same, with the time that it takes before the first row.
    pub fn compute_after<S, F>(setup: S, nanos: f64, run: F) -> Form
    where
        S: Fn(&Call) -> Duration + Send + Sync + 'static,
        F: Fn(&Inputs, &Call, &Check<'_>) -> Result<Rows, OpError> + Send + Sync + 'static,
    {
        Form::Compute(Arc::new(ComputeFn { setup, nanos, run }))
    }

    /// A form that awaits what `start` returns.
    pub fn wait<F, W>(start: F) -> Form
    where
        F: Fn(Inputs, Arc<Call>) -> W + Send + Sync + 'static,
        W: Future<Output = Result<Rows, OpError>> + Send + 'static,
    {
        Form::Wait(Arc::new(WaitFn(start)))
    }
}

struct ComputeFn<S, F> {
    setup: S,
    nanos: f64,
    run: F,
}

impl<S, F> Compute for ComputeFn<S, F>
where
    S: Fn(&Call) -> Duration + Send + Sync,
    F: Fn(&Inputs, &Call, &Check<'_>) -> Result<Rows, OpError> + Send + Sync,
{
    fn cost(&self, rows: usize) -> Duration {
        Duration::from_nanos((self.nanos * rows as f64) as u64)
    }

    fn setup(&self, call: &Call) -> Duration {
        (self.setup)(call)
    }

    fn run(&self, inputs: &Inputs, call: &Call, check: &Check<'_>) -> Result<Rows, OpError> {
        (self.run)(inputs, call, check)
    }
}

struct WaitFn<F>(F);

impl<F, W> Wait for WaitFn<F>
where
    F: Fn(Inputs, Arc<Call>) -> W + Send + Sync,
    W: Future<Output = Result<Rows, OpError>> + Send + 'static,
{
    fn start(self: Arc<Self>, inputs: Inputs, call: &Arc<Call>) -> Started {
        Started::Later(Box::pin((self.0)(inputs, Arc::clone(call))))
    }
}
