//! The cells of a row group in a dry run: known or unknown, and never paid for.

use std::sync::Arc;

use anabranch_engine::retry::Severity;
use anabranch_engine::{NodeId, Step};

use super::step::StepFuture;
use super::work::{GroupRun, Outcome, PreparedCall, no_job};
use super::{Part, RowValues};
use crate::dry::{CellForecast, CellState, DryWatch, ForeseenCall, ForeseenOutcome, ForeseenRow, InDryRun};
use crate::fault::Fault;
use crate::generator::{Grain, Row, Work};
use crate::program::Task;

/// The unknown values of a row group.
pub(crate) struct DryGroup {
    columns: usize,
    /// Row by row.
    cells: Vec<Knowledge>,
    watch: Arc<DryWatch>,
}

/// The knowledge of a value.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Knowledge {
    is_unknown: bool,
    /// It depends on an unknown value whether the cell is skipped.
    may_be_skipped: bool,
}

/// The skip condition of a cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SkipState {
    No,
    Yes,
    /// It depends on an unknown value.
    Perhaps,
}

impl DryGroup {
    pub(crate) fn new(values: &RowValues, columns: usize, watch: Arc<DryWatch>) -> DryGroup {
        DryGroup { columns, cells: vec![Knowledge::default(); values.rows() * columns], watch }
    }

    fn get(&self, row: usize, column: usize) -> Knowledge {
        self.cells[row * self.columns + column]
    }

    fn is_unknown(&self, row: usize, columns: &[usize]) -> bool {
        columns.iter().any(|column| self.get(row, *column).is_unknown)
    }

    /// Reports a cell to the watch.
    fn tell(&self, id: u64, task: &Task, state: CellState, found: CellDetails<'_>) {
        let CellDetails { calls, fault, may_be_skipped } = found;
        let cell = CellForecast {
            row: id,
            column: &task.name,
            models: &task.models,
            state,
            calls,
            fault,
            may_be_skipped,
        };
        self.watch.cell(task, &cell);
    }
}

/// The details of a cell.
#[derive(Clone, Copy, Default)]
struct CellDetails<'a> {
    calls: &'a [ForeseenCall],
    fault: Option<&'a Fault>,
    may_be_skipped: bool,
}

impl GroupRun<'_> {
    /// Makes the run of the group a dry one.
    pub(crate) fn make_dry(&mut self, watch: Arc<DryWatch>) {
        self.dry = Some(Box::new(DryGroup::new(&self.values, self.columns.len(), watch)));
        self.prepares_early = true;
    }

    /// The step of an unknown cell, or of one whose calls must be looked up. `None` for a cell that is computed as in
    /// any run.
    pub(super) fn dry_step(&mut self, row: usize, task: &Task, part: Part) -> Option<Step<Self>> {
        let dry = self.dry.as_ref()?;
        let skipping = match self.skipping(dry, row, task) {
            Ok(SkipState::Yes) => return None,
            Ok(skipping) => skipping,
            Err(fault) => return Some(Step::Ready(Err(fault))),
        };
        let may_be_skipped = skipping == SkipState::Perhaps;
        let is_unknown = dry.is_unknown(row, &task.reads) || task.in_dry_run == InDryRun::NotCalled;
        if is_unknown || may_be_skipped && part == Part::Whole {
            return Some(Step::Ready(Ok(Outcome::Unknown { may_be_skipped })));
        }
        if part == Part::Whole {
            return None;
        }
        self.read(row, task);
        let found = task.generator.foresee(Row { id: self.values.ids[row], values: &self.scratch });
        Some(match found {
            Work::Ready(found) => Step::Ready(found.map(|found| Outcome::Foreseen { found, may_be_skipped })),
            Work::Future(found) => Step::Future(StepFuture::Foresee(found, may_be_skipped)),
            Work::Job(..) | Work::Blocking(_) => Step::Ready(Err(no_job())),
        })
    }

    /// Sorts the rows of a batch. Returns the rows that the generator is called for, and the skipped ones. The unknown
    /// rows are recorded.
    pub(super) fn dry_batch(&mut self, number: usize, rows: Vec<u32>) -> Vec<u32> {
        let task = &self.phase.tasks[number];
        let Some(dry) = &self.dry else { return rows };
        let perhaps = |row: &u32| matches!(self.skipping(dry, *row as usize, task), Ok(SkipState::Perhaps));
        let is_unknown = |row: &u32| dry.is_unknown(*row as usize, &task.reads) || perhaps(row);
        let is_called = match task.in_dry_run {
            InDryRun::ByRow => true,
            InDryRun::ByGroup => !rows.iter().any(is_unknown),
            InDryRun::NotCalled => false,
        };
        let (unknown, known): (Vec<u32>, Vec<u32>) =
            rows.into_iter().partition(|row| !is_called || is_unknown(row));
        let unknown: Vec<(u32, bool)> = unknown.into_iter().map(|row| (row, perhaps(&row))).collect();
        for (row, may_be_skipped) in unknown {
            self.dry_unknown(row as usize, number, may_be_skipped);
        }
        known
    }

    /// True if the cell is skipped regardless of the unknown values.
    pub(super) fn is_surely_skipped(&self, dry: &DryGroup, row: usize, task: &Task) -> Result<bool, Fault> {
        Ok(self.skipping(dry, row, task)? == SkipState::Yes)
    }

    /// The skip condition of a cell, as far as it is known.
    fn skipping(&self, dry: &DryGroup, row: usize, task: &Task) -> Result<SkipState, Fault> {
        let is_skipped = |column: &usize| self.values.is_skipped(row, *column);
        if task.propagate.iter().any(is_skipped) {
            return Ok(SkipState::Yes);
        }
        let depends = task.propagate.iter().any(|column| dry.get(row, *column).may_be_skipped);
        let condition = task.skip.as_ref().map_or(&[][..], |skip| &skip.reads);
        match task.may_skip() && !dry.is_unknown(row, condition) && self.is_skipped(row, task)? {
            true => Ok(SkipState::Yes),
            false if depends || dry.is_unknown(row, condition) => Ok(SkipState::Perhaps),
            false => Ok(SkipState::No),
        }
    }

    /// The calls of a cell were looked up.
    pub(super) fn foreseen(
        &mut self,
        node: NodeId,
        (row, number): (usize, usize),
        found: ForeseenRow,
        may_be_skipped: bool,
    ) {
        let task = &self.phase.tasks[number];
        let ForeseenRow { outcome, calls } = found;
        let state = match &outcome {
            ForeseenOutcome::Known(_) => CellState::Reused,
            ForeseenOutcome::Lacking => CellState::Lacking,
            ForeseenOutcome::Failed(_) => CellState::Failed,
        };
        if let Some(dry) = &self.dry {
            let fault = if let ForeseenOutcome::Failed(fault) = &outcome { Some(fault) } else { None };
            let found = CellDetails { calls: &calls, fault, may_be_skipped };
            dry.tell(self.values.ids[row], task, state, found);
        }
        let prepared = match outcome {
            ForeseenOutcome::Known(cells) if !may_be_skipped => PreparedCall::Known(cells),
            // No retry mends a recorded reply.
            ForeseenOutcome::Failed(fault) if !may_be_skipped => {
                PreparedCall::Fails(Fault { severity: Severity::Permanent, ..fault })
            }
            _ => {
                self.mark_unknown(row, number, may_be_skipped);
                PreparedCall::Failed
            }
        };
        self.calls.insert(NodeId(node.0 + 1), prepared);
    }

    /// A cell is unknown.
    pub(super) fn dry_unknown(&mut self, row: usize, number: usize, may_be_skipped: bool) {
        self.mark_unknown(row, number, may_be_skipped);
        self.dry_tell(
            row,
            number,
            CellState::Unknown,
            CellDetails { may_be_skipped, ..CellDetails::default() },
        );
    }

    fn mark_unknown(&mut self, row: usize, number: usize, may_be_skipped: bool) {
        let Some(dry) = &mut self.dry else { return };
        for column in &self.phase.tasks[number].fills {
            dry.cells[row * dry.columns + column] = Knowledge { is_unknown: true, may_be_skipped };
        }
        dry.watch.unknown_row(self.values.ids[row]);
        self.settled[row] += 1;
    }

    /// Records that a cell has its value.
    pub(super) fn dry_kept(&self, row: usize, number: usize) {
        let Some(dry) = &self.dry else { return };
        let task = &self.phase.tasks[number];
        task.fills.iter().for_each(|column| dry.watch.value(task, self.values.get(row, *column)));
        // Cells with calls are reported with their replies.
        if task.grain != Grain::Call {
            dry.tell(self.values.ids[row], task, CellState::Computed, CellDetails::default());
        }
    }

    /// A cell is skipped.
    pub(super) fn dry_skipped(&self, row: usize, number: usize) {
        self.dry_tell(row, number, CellState::Skipped, CellDetails::default());
    }

    /// A cell failed, and not by its recorded replies.
    pub(super) fn dry_failed(&self, row: usize, number: usize, fault: &Fault) {
        self.dry_tell(
            row,
            number,
            CellState::Failed,
            CellDetails { fault: Some(fault), ..CellDetails::default() },
        );
    }

    fn dry_tell(&self, row: usize, number: usize, state: CellState, found: CellDetails<'_>) {
        if let Some(dry) = &self.dry {
            dry.tell(self.values.ids[row], &self.phase.tasks[number], state, found);
        }
    }
}
