//! The execution of a node: computing, or waiting.

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
    /// The estimated time for this many input rows.
    fn cost(&self, rows: usize) -> Duration;

    /// About how long it takes before the first row, for this request: compiling its pattern, for example.
    fn setup(&self, _call: &Call) -> Duration {
        Duration::ZERO
    }

    /// The estimated time to copy or write this many values of columns that it adds to its first input, active rows or
    /// not (see [`Rows::values_to_extend`]).
    fn cost_to_extend(&self, _values: usize) -> Duration {
        Duration::ZERO
    }

    /// The estimated number of output rows for this many input rows.
    fn makes(&self, rows: usize) -> usize {
        rows
    }

    /// Does it. Long loops ask `check` every few microseconds of work.
    fn run(&self, inputs: &Inputs, call: &Call, check: &Check<'_>) -> Result<Rows, OpError>;
}

/// Work that waits: for a source, a timer, the network.
pub trait Wait: Send + Sync {
    /// Starts the work. Dropping the future cancels it.
    fn start(self: Arc<Self>, inputs: Inputs, call: &Arc<Call>) -> StartedWork;
}

/// The state of started work that may have to wait.
pub enum StartedWork {
    /// It is already done.
    Ready(Result<Rows, OpError>),
    /// It is done when this future completes.
    Later(WaitFuture),
}

/// Work in progress.
pub type WaitFuture = Pin<Box<dyn Future<Output = Result<Rows, OpError>> + Send>>;

impl Form {
    /// A form that computes by calling `run`, which takes about `nanos` nanoseconds per row.
    pub fn compute<F>(nanos: f64, run: F) -> Form
    where
        F: Fn(&Inputs, &Call, &Check<'_>) -> Result<Rows, OpError> + Send + Sync + 'static,
    {
        Form::Compute(Arc::new(ComputeFn { nanos, run }))
    }

    /// The same form, if it computes, with the time that a request makes it take before the first row.
    #[must_use]
    pub fn after<S>(self, setup: S) -> Form
    where
        S: Fn(&Call) -> Duration + Send + Sync + 'static,
    {
        match self {
            Form::Compute(form) => Form::Compute(Arc::new(After { setup, form })),
            wait => wait,
        }
    }

    /// A form that adds `columns` columns to its first input by calling `run`, which takes about `nanos` nanoseconds
    /// per active row. `run` gets the rows from [`Rows::to_extend`].
    pub fn extend<F>(nanos: f64, columns: usize, run: F) -> Form
    where
        F: Fn(&Rows, &Call, &Check<'_>) -> Result<Rows, OpError> + Send + Sync + 'static,
    {
        Form::Compute(Arc::new(ExtendFn { nanos, columns, run }))
    }

    /// A form that awaits the future of `start`.
    pub fn wait<F, W>(start: F) -> Form
    where
        F: Fn(Inputs, Arc<Call>) -> W + Send + Sync + 'static,
        W: Future<Output = Result<Rows, OpError>> + Send + 'static,
    {
        Form::Wait(Arc::new(WaitFn(start)))
    }
}

struct ComputeFn<F> {
    nanos: f64,
    run: F,
}

impl<F> Compute for ComputeFn<F>
where
    F: Fn(&Inputs, &Call, &Check<'_>) -> Result<Rows, OpError> + Send + Sync,
{
    fn cost(&self, rows: usize) -> Duration {
        nanos(self.nanos * rows as f64)
    }

    fn run(&self, inputs: &Inputs, call: &Call, check: &Check<'_>) -> Result<Rows, OpError> {
        (self.run)(inputs, call, check)
    }
}

struct After<S> {
    setup: S,
    form: Arc<dyn Compute>,
}

impl<S> Compute for After<S>
where
    S: Fn(&Call) -> Duration + Send + Sync,
{
    fn cost(&self, rows: usize) -> Duration {
        self.form.cost(rows)
    }

    fn setup(&self, call: &Call) -> Duration {
        (self.setup)(call) + self.form.setup(call)
    }

    fn cost_to_extend(&self, values: usize) -> Duration {
        self.form.cost_to_extend(values)
    }

    fn makes(&self, rows: usize) -> usize {
        self.form.makes(rows)
    }

    fn run(&self, inputs: &Inputs, call: &Call, check: &Check<'_>) -> Result<Rows, OpError> {
        self.form.run(inputs, call, check)
    }
}

struct ExtendFn<F> {
    nanos: f64,
    columns: usize,
    run: F,
}

/// The estimated time to write a value of a column, in nanoseconds.
const NANOS_TO_WRITE: f64 = 0.5;

impl<F> Compute for ExtendFn<F>
where
    F: Fn(&Rows, &Call, &Check<'_>) -> Result<Rows, OpError> + Send + Sync,
{
    fn cost(&self, rows: usize) -> Duration {
        nanos(self.nanos * rows as f64)
    }

    fn cost_to_extend(&self, values: usize) -> Duration {
        nanos(NANOS_TO_WRITE * self.columns as f64 * values as f64)
    }

    fn run(&self, inputs: &Inputs, call: &Call, check: &Check<'_>) -> Result<Rows, OpError> {
        let rows = inputs[0].as_ref().expect("a node runs after the inputs that it takes");
        call.budget.take_values((rows.values_to_extend() * self.columns) as u64)?;
        (self.run)(&rows.to_extend(), call, check)
    }
}

fn nanos(count: f64) -> Duration {
    Duration::from_nanos(count as u64)
}

struct WaitFn<F>(F);

impl<F, W> Wait for WaitFn<F>
where
    F: Fn(Inputs, Arc<Call>) -> W + Send + Sync,
    W: Future<Output = Result<Rows, OpError>> + Send + 'static,
{
    fn start(self: Arc<Self>, inputs: Inputs, call: &Arc<Call>) -> StartedWork {
        StartedWork::Later(Box::pin((self.0)(inputs, Arc::clone(call))))
    }
}
