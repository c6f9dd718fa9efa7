//! The work of a node, asynchronous or not.

use std::pin::Pin;
use std::task::{Context, Poll};

use anabranch_engine::workload::BoxFuture;
use anabranch_engine::{Check, Job};

use super::work::Outcome;
use crate::dry::ForeseenRow;
use crate::fault::Fault;
use crate::generator::{BoxWork, Cells, PreparedRow};

/// The asynchronous work of a node.
pub(crate) enum StepFuture {
    Cell(BoxFuture<Cells, Fault>),
    Prepare(BoxFuture<PreparedRow, Fault>),
    /// The flag says whether the cell may be skipped.
    Foresee(BoxFuture<ForeseenRow, Fault>, bool),
    /// The flag says whether a failed row fails the run.
    Batch(BoxFuture<Vec<Result<Cells, Fault>>, Fault>, bool),
    Turn(BoxFuture<(), Fault>),
}

impl Future for StepFuture {
    type Output = Result<Outcome, Fault>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        match self.get_mut() {
            StepFuture::Cell(future) => future.as_mut().poll(cx).map_ok(Outcome::Cells),
            StepFuture::Prepare(future) => future.as_mut().poll(cx).map_ok(Outcome::Prepared),
            StepFuture::Foresee(future, may_be_skipped) => {
                let outcome = |found| Outcome::Foreseen { found, may_be_skipped: *may_be_skipped };
                future.as_mut().poll(cx).map_ok(outcome)
            }
            StepFuture::Batch(future, fails_run) => {
                future.as_mut().poll(cx).map(|result| result.and_then(|rows| batch_outcome(rows, *fails_run)))
            }
            StepFuture::Turn(future) => future.as_mut().poll(cx).map_ok(|()| Outcome::Nothing),
        }
    }
}

/// The synchronous work of a node.
pub(crate) enum StepJob {
    Cell(BoxWork<Cells>),
    /// The flag says whether a failed row fails the run.
    Batch(BoxWork<Vec<Result<Cells, Fault>>>, bool),
}

impl Job<Outcome, Fault> for StepJob {
    fn run(self, _: Option<Outcome>, check: &Check<'_>) -> Result<Outcome, Fault> {
        match self {
            StepJob::Cell(job) => job(check).map(Outcome::Cells),
            StepJob::Batch(job, fails_run) => job(check).and_then(|rows| batch_outcome(rows, fails_run)),
        }
    }
}

/// The outcome of a batch, or its first fault if that fails the run.
pub(super) fn batch_outcome(rows: Vec<Result<Cells, Fault>>, fails_run: bool) -> Result<Outcome, Fault> {
    if fails_run && let Some(Err(fault)) = rows.iter().find(|row| row.is_err()) {
        return Err(fault.clone());
    }
    Ok(Outcome::Batch(rows))
}
