//! The contract of column generators.
//!
//! A generator fills one or more columns. It declares which columns it reads and fills, whether it works on one row or
//! on a whole row group, and whether it has state. The scheduler does the rest: it calls the generator as soon as the
//! cells that it reads are filled, evaluates skip conditions, drops rows, and retries transient faults.

use anabranch_engine::workload::BoxFuture;
use anabranch_engine::{Check, Cost};
use anabranch_value::Value;
use smallvec::SmallVec;

use crate::column_type::ColumnType;
use crate::dry::ForeseenRow;
use crate::fault::Fault;

/// Fills columns.
pub trait Generator: Send + Sync + 'static {
    /// The generator's contract. It must not change.
    fn contract(&self) -> &Contract;

    /// Fills one row. Called for [`Grain::Cell`].
    fn cell(&self, row: Row<'_>) -> Work<Cells> {
        let _ = row;
        Work::Ready(Err(Fault::permanent(
            "internal",
            "the generator declares cells and has no form for them",
        )))
    }

    /// Prepares the call that fills one row, or fills it without one: at once, or as a future. Called for [`Grain::Call`].
    fn prepare(&self, row: Row<'_>) -> Work<PreparedRow> {
        let _ = row;
        Work::Ready(Err(Fault::permanent(
            "internal",
            "the generator declares calls and has no form for them",
        )))
    }

    /// Looks the calls of one row up without making any. Called for [`Grain::Call`] in dry runs.
    fn foresee(&self, row: Row<'_>) -> Work<ForeseenRow> {
        match self.prepare(row) {
            Work::Ready(prepared) => Work::Ready(prepared.map(ForeseenRow::from)),
            Work::Future(prepared) => Work::future(async move { prepared.await.map(ForeseenRow::from) }),
            Work::Job(..) | Work::Blocking(_) => Work::Ready(Ok(ForeseenRow::lacking())),
        }
    }

    /// Fills the rows of a group: one result per row, in order. Called for [`Grain::Batch`].
    fn batch(&self, rows: Rows) -> Work<Vec<Result<Cells, Fault>>> {
        let _ = rows;
        Work::Ready(Err(Fault::permanent(
            "internal",
            "the generator declares batches and has no form for them",
        )))
    }
}

/// The columns that a generator reads and fills, and how it is called.
#[derive(Clone, Debug)]
pub struct Contract {
    /// One row at a time, or a row group at a time.
    pub grain: Grain,
    /// The columns that it reads.
    pub reads: Vec<String>,
    /// The columns that it fills, in the order of [`Cells`].
    pub fills: Vec<Output>,
    /// Calls must not overlap, and row groups come in order.
    pub stateful: bool,
}

/// The unit of work of a generator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Grain {
    /// One row. It starts as soon as the row's inputs are filled.
    Cell,
    /// One row, in two parts: the preparation, which needs no call, and the call. Only the call counts against the
    /// column's limit and is retried.
    Call,
    /// One row group: starts when all rows of the group have its inputs or were dropped.
    Batch,
}

/// A column that a generator fills.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Output {
    pub name: String,
    pub column_type: ColumnType,
}

/// The values of the filled columns for one row, in the order of [`Contract::fills`].
pub type Cells = SmallVec<[Value; 1]>;

/// A row that is prepared.
pub enum PreparedRow {
    /// The row needs no call.
    Cells(Cells),
    /// The row needs this call.
    Call(Call),
}

/// A call that fills a row. It is made once per try.
pub struct Call {
    start: Box<dyn Fn() -> BoxFuture<Cells, Fault> + Send>,
    bytes: usize,
}

impl Call {
    /// A call. The closure starts one try. `bytes` is the memory that it takes while it waits, such as the length of its
    /// prompt: calls that take much are prepared again later.
    pub fn new<F: Future<Output = Result<Cells, Fault>> + Send + 'static>(
        bytes: usize,
        start: impl Fn() -> F + Send + 'static,
    ) -> Call {
        Call { start: Box::new(move || Box::pin(start())), bytes }
    }

    pub(crate) fn start(&self) -> BoxFuture<Cells, Fault> {
        (self.start)()
    }

    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }
}

/// One row, as a generator sees it.
#[derive(Clone, Copy, Debug)]
pub struct Row<'a> {
    /// The row's stable number in the dataset, from 0.
    pub id: u64,
    /// The values of [`Contract::reads`], in that order.
    pub values: &'a [Value],
}

/// The rows of a group that a batch generator fills.
#[derive(Clone, Debug, Default)]
pub struct Rows {
    /// The row group's number, from 0.
    pub group: u64,
    /// The rows' stable numbers.
    pub ids: Vec<u64>,
    /// The values of [`Contract::reads`]: one list per column, with one value per row.
    pub columns: Vec<Vec<Value>>,
}

/// The work of a generator: done immediately, asynchronous, on the CPU pool, or on the pool for blocking calls.
pub enum Work<T> {
    /// Already done, for cheap work.
    Ready(Result<T, Fault>),
    /// An asynchronous call.
    Future(BoxFuture<T, Fault>),
    /// CPU work. Long work polls its check between parts, and returns early when it should stop.
    Job(BoxWork<T>, Cost),
    /// A call that blocks its thread.
    Blocking(BoxWork<T>),
}

/// Synchronous work.
pub type BoxWork<T> = Box<dyn FnOnce(&Check<'_>) -> Result<T, Fault> + Send>;

impl<T> Work<T> {
    /// An asynchronous call.
    pub fn future(future: impl Future<Output = Result<T, Fault>> + Send + 'static) -> Work<T> {
        Work::Future(Box::pin(future))
    }

    /// A call that blocks its thread.
    pub fn blocking(work: impl FnOnce(&Check<'_>) -> Result<T, Fault> + Send + 'static) -> Work<T> {
        Work::Blocking(Box::new(work))
    }
}
