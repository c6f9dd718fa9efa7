//! The workload of a row group: starts its cells, keeps their values, drops rows.

use std::collections::HashMap;
use std::sync::Arc;

use anabranch_engine::{Budget, Cost, Drops, Failure, Instead, NodeId, Step, Workload};
use anabranch_template::{Bounds, is_true};
use anabranch_value::Value;

use super::dry::DryGroup;
use super::step::{StepFuture, StepJob, batch_outcome};
use super::{Grid, HeadNode, Part, Place, RowValues};
use crate::cells::CellPhase;
use crate::columns::REJECTED;
use crate::config::OnRowError;
use crate::dry::ForeseenRow;
use crate::errors::RowError;
use crate::fault::Fault;
use crate::generator::{Call, Cells, Grain, PreparedRow, Row, Rows, Work};
use crate::program::{Phase, Program, ProgramColumn, SkipRule, Task};
use crate::progress::Progress;

/// A row group in progress.
pub(crate) struct GroupRun<'p> {
    pub(super) phase: &'p Phase,
    pub(super) columns: &'p [ProgramColumn],
    grid: Grid<'p>,
    /// The group's number, from 0.
    group: u64,
    /// The group's turn at stateful tasks. Row groups that are already on disk have no turn.
    turn: u64,
    pub(super) values: RowValues,
    errors: Vec<RowError>,
    /// Rows that were not accepted.
    rejected: Vec<u64>,
    /// The rows of each running batch task, by its number among the head nodes.
    batches: Vec<BatchRows>,
    /// The prepared calls, by node. A missing one is prepared when it starts.
    pub(super) calls: HashMap<NodeId, PreparedCall>,
    /// The memory of the prepared calls.
    call_bytes: usize,
    /// The number of starts of each node.
    tries: Vec<u8>,
    /// The number of finished tasks of each row.
    pub(super) settled: Vec<u32>,
    pub(super) scratch: Vec<Value>,
    progress: Arc<Progress>,
    /// Whether calls are prepared before they wait for their limit, because some may turn out to be unnecessary.
    /// Otherwise each is prepared when it starts, so that no prompt is kept waiting in memory.
    pub(crate) prepares_early: bool,
    /// Set in a dry run, which pays for nothing.
    pub(super) dry: Option<Box<DryGroup>>,
}

/// The rows of a running batch task.
#[derive(Clone, Default)]
struct BatchRows {
    rows: Vec<u32>,
    /// Rows whose skip condition failed.
    faults: Vec<(u32, Fault)>,
}

/// The outcome of the preparation of a call.
pub(super) enum PreparedCall {
    /// The call must be made.
    Due(Call),
    /// No call is needed.
    Known(Cells),
    Skipped,
    /// The preparation failed, and its fault is recorded.
    Failed,
    /// The recorded replies of a dry run end in this fault.
    Fails(Fault),
}

/// The most memory of calls that wait, per row group.
const CALL_BYTES_MOST: usize = 8 << 20;

/// The outcome of a node.
pub(crate) enum Outcome {
    Cells(Cells),
    Prepared(PreparedRow),
    Batch(Vec<Result<Cells, Fault>>),
    Skipped,
    /// The node failed, and its column keeps rows without a value.
    Failed(Fault),
    /// A turn was taken or passed on, or the node has nothing to do.
    Nothing,
    /// The calls of a cell, in a dry run.
    Foreseen {
        found: ForeseenRow,
        may_be_skipped: bool,
    },
    /// The value is unknown, in a dry run.
    Unknown {
        may_be_skipped: bool,
    },
}

impl<'p> GroupRun<'p> {
    /// A group whose columns from samplers and seeds are in `values`.
    pub(crate) fn new(
        program: &'p Program,
        phase: &'p Phase,
        (group, turn): (u64, u64),
        values: RowValues,
        progress: Arc<Progress>,
    ) -> GroupRun<'p> {
        let rows = values.rows();
        let grid = phase.grid(rows);
        let nodes = anabranch_engine::Graph::node_count(&grid) as usize;
        GroupRun {
            phase,
            columns: &program.columns,
            grid,
            group,
            turn,
            values,
            errors: Vec::new(),
            rejected: Vec::new(),
            batches: vec![BatchRows::default(); phase.layout.head.len()],
            calls: HashMap::new(),
            call_bytes: 0,
            tries: vec![0; nodes],
            settled: vec![0; rows],
            scratch: Vec::new(),
            progress,
            prepares_early: false,
            dry: None,
        }
    }

    pub(crate) fn rows(&self) -> usize {
        self.values.rows()
    }

    /// The values and errors of a group that has ended, and the rows that were not accepted.
    pub(crate) fn into_parts(self) -> (RowValues, Vec<RowError>, Vec<u64>) {
        (self.values, self.errors, self.rejected)
    }

    /// Takes the rows out whose cells have not all ended, and returns their number: the run was drained.
    pub(crate) fn leave_unfinished(&mut self) -> u64 {
        let all = self.phase.tasks.len() as u32;
        let unfinished: Vec<usize> = self.values.kept().filter(|row| self.settled[*row] < all).collect();
        unfinished.iter().for_each(|row| _ = self.values.drop_row(*row));
        unfinished.len() as u64
    }

    /// The task of a node, and its row if it is a cell's.
    pub(crate) fn describe(&self, node: NodeId) -> (Option<&'p Task>, Option<u64>) {
        match self.grid.place(node) {
            Place::Head(head) => match self.phase.layout.head[head].node {
                HeadNode::Batch(task) => (Some(&self.phase.tasks[task]), None),
                HeadNode::Enter(_) | HeadNode::Leave(_) => (None, None),
            },
            Place::Cell { row, cell } => (Some(self.task_of(cell).1), Some(self.values.ids[row])),
        }
    }

    fn task_of(&self, cell: usize) -> (usize, &'p Task) {
        let number = self.phase.layout.cells[cell].task;
        (number, &self.phase.tasks[number])
    }

    /// Whether the cell is skipped: because a column that it reads was, or by its own condition.
    pub(super) fn is_skipped(&self, row: usize, task: &Task) -> Result<bool, Fault> {
        if task.propagate.iter().any(|column| self.values.is_skipped(row, *column)) {
            return Ok(true);
        }
        let Some(SkipRule { when, reads, .. }) = &task.skip else { return Ok(false) };
        let values: Vec<Value> = reads.iter().map(|column| self.values.get(row, *column).clone()).collect();
        match when.template.evaluate(&values, Bounds::default()) {
            Ok(Value::Text(text)) => Ok(text_is_true(&text)),
            Ok(value) => Ok(is_true(&value)),
            Err(error) => Err(Fault::permanent("skip", format!("{}: {error}", when.place))),
        }
    }

    /// Fills a skipped cell.
    fn skip(&mut self, row: usize, task: usize) {
        let task_of = &self.phase.tasks[task];
        let value = task_of.skip.as_ref().map_or(Value::Null, |skip| skip.value.clone());
        for (index, column) in task_of.fills.iter().enumerate() {
            let value = if index == 0 { value.clone() } else { Value::Null };
            self.values.set(row, *column, value);
            self.values.mark_skipped(row, *column);
        }
        self.settled[row] += 1;
        self.progress.skipped(task_of.counter);
        self.progress.cell(self.values.ids[row], task_of.counter, CellPhase::Skipped);
        self.dry_skipped(row, task);
    }

    fn start_cell(&mut self, node: NodeId, row: usize, cell: usize) -> Step<Self> {
        let (_, task) = self.task_of(cell);
        let part = self.phase.layout.cells[cell].part;
        if part != Part::Prepare {
            self.progress.cell(self.values.ids[row], task.counter, CellPhase::Running);
        }
        if part == Part::Call {
            return self.start_call(node, row, task);
        }
        if self.dry.is_some()
            && let Some(step) = self.dry_step(row, task, part)
        {
            return step;
        }
        if task.may_skip() {
            match self.is_skipped(row, task) {
                Ok(false) => {}
                Ok(true) => return Step::Ready(Ok(Outcome::Skipped)),
                Err(fault) => return Step::Ready(Err(fault)),
            }
        }
        if part == Part::Prepare && !self.prepares_early {
            return Step::Ready(Ok(Outcome::Nothing));
        }
        self.read(row, task);
        let row = Row { id: self.values.ids[row], values: &self.scratch };
        if part == Part::Prepare {
            return match task.generator.prepare(row) {
                Work::Ready(result) => Step::Ready(result.map(Outcome::Prepared)),
                Work::Future(future) => Step::Future(StepFuture::Prepare(future)),
                Work::Job(..) | Work::Blocking(_) => Step::Ready(Err(no_job())),
            };
        }
        match task.generator.cell(row) {
            Work::Ready(result) => Step::Ready(result.map(Outcome::Cells)),
            Work::Future(future) => Step::Future(StepFuture::Cell(future)),
            Work::Job(job, cost) => Step::Job(StepJob::Cell(job), cost),
            Work::Blocking(job) => Step::Job(StepJob::Cell(job), Cost::Blocks),
        }
    }

    fn start_call(&mut self, node: NodeId, row: usize, task: &Task) -> Step<Self> {
        if self.tries[node.index()] > 1 {
            self.progress.retried(task.counter);
        }
        match self.calls.get_mut(&node) {
            Some(PreparedCall::Due(call)) => Step::Future(StepFuture::Cell(call.start())),
            Some(PreparedCall::Known(cells)) => Step::Ready(Ok(Outcome::Cells(std::mem::take(cells)))),
            Some(PreparedCall::Skipped) => Step::Ready(Ok(Outcome::Skipped)),
            Some(PreparedCall::Failed) => Step::Ready(Ok(Outcome::Nothing)),
            Some(PreparedCall::Fails(fault)) => Step::Ready(Err(fault.clone())),
            None => self.prepare_and_call(node, row, task),
        }
    }

    fn prepare_and_call(&mut self, node: NodeId, row: usize, task: &Task) -> Step<Self> {
        self.read(row, task);
        match task.generator.prepare(Row { id: self.values.ids[row], values: &self.scratch }) {
            Work::Ready(Ok(PreparedRow::Call(call))) => {
                let started = call.start();
                // Kept for retries: the call knows that it was made before.
                self.call_bytes += call.bytes();
                self.calls.insert(node, PreparedCall::Due(call));
                Step::Future(StepFuture::Cell(started))
            }
            Work::Ready(Ok(PreparedRow::Cells(cells))) => Step::Ready(Ok(Outcome::Cells(cells))),
            Work::Ready(Err(fault)) => {
                // No call was made, so it says nothing about the model.
                self.calls.insert(node, PreparedCall::Failed);
                Step::Ready(Err(fault))
            }
            Work::Future(prepared) => Step::Future(StepFuture::Cell(Box::pin(async move {
                match prepared.await? {
                    PreparedRow::Cells(cells) => Ok(cells),
                    PreparedRow::Call(call) => call.start().await,
                }
            }))),
            Work::Job(..) | Work::Blocking(_) => Step::Ready(Err(no_job())),
        }
    }

    /// Reads the values for a task's row into the scratch list.
    pub(super) fn read(&mut self, row: usize, task: &Task) {
        self.scratch.clear();
        self.scratch.extend(task.reads.iter().map(|column| self.values.get(row, *column).clone()));
    }

    /// Keeps the result of a call's preparation until the call's node starts. A call that would take too much memory
    /// while it waits is dropped, and prepared again later.
    fn prepared(&mut self, node: NodeId, prepared: PreparedRow) {
        let prepared = match prepared {
            PreparedRow::Cells(cells) => PreparedCall::Known(cells),
            PreparedRow::Call(call) if self.call_bytes + call.bytes() > CALL_BYTES_MOST => return,
            PreparedRow::Call(call) => {
                self.call_bytes += call.bytes();
                PreparedCall::Due(call)
            }
        };
        self.calls.insert(NodeId(node.0 + 1), prepared);
    }

    /// Notes how a call ended that was made, for the error rate of its model.
    fn call_ended(&mut self, node: NodeId, task: &Task, failed: Option<&Fault>) {
        match self.calls.remove(&node) {
            Some(PreparedCall::Due(call)) => self.call_bytes -= call.bytes(),
            None => {}
            Some(_) => return,
        }
        if let Some(watch) = &task.watch {
            watch.ended(failed);
        }
    }

    fn start_batch(&mut self, head: usize, number: usize) -> Step<Self> {
        let task = &self.phase.tasks[number];
        let (mut kept, mut skipped, mut faults) = (Vec::new(), Vec::new(), Vec::new());
        for row in self.values.kept() {
            let is_skipped = match &self.dry {
                Some(dry) => self.is_surely_skipped(dry, row, task),
                None if task.may_skip() => self.is_skipped(row, task),
                None => Ok(false),
            };
            match is_skipped {
                Ok(false) => kept.push(row as u32),
                Ok(true) => skipped.push(row),
                Err(fault) => faults.push((row as u32, fault)),
            }
        }
        skipped.into_iter().for_each(|row| self.skip(row, number));
        let fails_run = task.on_error == OnRowError::FailRun;
        if fails_run && let Some((_, fault)) = faults.pop() {
            return Step::Ready(Err(fault));
        }
        let kept = self.dry_batch(number, kept);
        let start =
            |row: &u32| self.progress.cell(self.values.ids[*row as usize], task.counter, CellPhase::Running);
        kept.iter().for_each(start);
        let rows = self.gather(&kept, task);
        let is_empty = kept.is_empty();
        self.batches[head] = BatchRows { rows: kept, faults };
        if is_empty {
            return Step::Ready(Ok(Outcome::Batch(Vec::new())));
        }
        match task.generator.batch(rows) {
            Work::Ready(result) => Step::Ready(result.and_then(|rows| batch_outcome(rows, fails_run))),
            Work::Future(future) => Step::Future(StepFuture::Batch(future, fails_run)),
            Work::Job(job, cost) => Step::Job(StepJob::Batch(job, fails_run), cost),
            Work::Blocking(job) => Step::Job(StepJob::Batch(job, fails_run), Cost::Blocks),
        }
    }

    fn gather(&self, rows: &[u32], task: &Task) -> Rows {
        let column =
            |column: &usize| rows.iter().map(|row| self.values.get(*row as usize, *column).clone()).collect();
        Rows {
            group: self.group,
            ids: rows.iter().map(|row| self.values.ids[*row as usize]).collect(),
            columns: task.reads.iter().map(column).collect(),
        }
    }

    fn keep(&mut self, row: usize, number: usize, cells: Cells, drops: &mut Drops) {
        let task = &self.phase.tasks[number];
        if cells.len() != task.fills.len() {
            let what = format!("the generator gave {} values for {} columns", cells.len(), task.fills.len());
            return self.fault(row, number, Fault::permanent("internal", what), drops);
        }
        for (column, value) in task.fills.iter().zip(cells) {
            match self.columns[*column].column_type.fit(value) {
                Ok(value) => self.values.set(row, *column, value),
                Err(what) => {
                    let what = format!("column `{}`: {what}", self.columns[*column].name);
                    return self.fault(row, number, Fault::permanent("type", what), drops);
                }
            }
        }
        self.settled[row] += 1;
        if task.accepts {
            self.progress.accepted_row();
        }
        self.progress.finished(task.counter);
        self.progress.cell(self.values.ids[row], task.counter, CellPhase::Finished);
        self.dry_kept(row, number);
    }

    /// Handles a cell without a value. The policy of its column decides about the row.
    fn fault(&mut self, row: usize, number: usize, fault: Fault, drops: &mut Drops) {
        if self.values.is_dropped(row) {
            return;
        }
        if fault.is_withheld() {
            // No call was made, so the row is left for a later run.
            let cells = 0..self.phase.layout.cells.len();
            return cells.for_each(|cell| drops.push(self.grid.cell(row, cell)));
        }
        let task = &self.phase.tasks[number];
        if task.accepts && fault.class == REJECTED {
            self.dry_failed(row, number, &fault);
            self.progress.rejected_row();
            self.rejected.push(self.values.ids[row]);
            return self.drop_row(row, drops);
        }
        // The faults of calls are reported when they are prepared.
        if task.grain != Grain::Call {
            self.dry_failed(row, number, &fault);
        }
        self.progress.failed(task.counter, &fault);
        self.progress.cell(self.values.ids[row], task.counter, CellPhase::Failed);
        let keeps_row = task.on_error == OnRowError::KeepNull;
        self.errors.push(RowError::new(self.values.ids[row], &task.name, fault, keeps_row));
        if keeps_row {
            self.settled[row] += 1;
            return;
        }
        self.progress.dropped_row();
        self.drop_row(row, drops);
    }

    /// Takes a row out, with all cells that it still waits for.
    fn drop_row(&mut self, row: usize, drops: &mut Drops) {
        self.progress.dropped_cells(self.values.ids[row]);
        self.values.drop_row(row);
        for cell in 0..self.phase.layout.cells.len() {
            drops.push(self.grid.cell(row, cell));
        }
    }

    fn end_batch(
        &mut self,
        head: usize,
        number: usize,
        results: Vec<Result<Cells, Fault>>,
        drops: &mut Drops,
    ) {
        let BatchRows { rows, faults } = std::mem::take(&mut self.batches[head]);
        faults.into_iter().for_each(|(row, fault)| self.fault(row as usize, number, fault, drops));
        if rows.len() != results.len() {
            let what = format!("the generator gave {} results for {} rows", results.len(), rows.len());
            let fault = Fault::permanent("internal", what);
            return rows.iter().for_each(|row| self.fault(*row as usize, number, fault.clone(), drops));
        }
        for (row, result) in rows.into_iter().zip(results) {
            // Another column may have dropped the row in the meantime.
            if self.values.is_dropped(row as usize) {
                continue;
            }
            match result {
                Ok(cells) => self.keep(row as usize, number, cells, drops),
                Err(fault) => self.fault(row as usize, number, fault, drops),
            }
        }
    }

    fn fault_of(&self, node: NodeId, failure: &Failure<Fault>) -> Fault {
        let tries = u32::from(self.tries[node.index()]).max(1);
        match failure {
            Failure::Error(fault) => Fault { attempts: fault.attempts.max(tries), ..fault.clone() },
            Failure::Timeout(_) => {
                Fault { attempts: tries, ..Fault::permanent("timeout", failure.to_string()) }
            }
            Failure::Panic(_) => Fault { attempts: tries, ..Fault::permanent("panic", failure.to_string()) },
            Failure::Deadline | Failure::Abandoned => {
                Fault { attempts: tries, ..Fault::permanent("stopped", failure.to_string()) }
            }
        }
    }

    fn end_with_fault(&mut self, node: NodeId, fault: Fault, drops: &mut Drops) {
        match self.grid.place(node) {
            Place::Cell { row, cell } => {
                let (number, task) = self.task_of(cell);
                match self.phase.layout.cells[cell].part {
                    Part::Prepare => {
                        self.dry_failed(row, number, &fault);
                        self.calls.insert(NodeId(node.0 + 1), PreparedCall::Failed);
                    }
                    Part::Call => self.call_ended(node, task, Some(&fault)),
                    Part::Whole => {}
                }
                self.fault(row, number, fault, drops);
            }
            Place::Head(head) => {
                if let HeadNode::Batch(number) = self.phase.layout.head[head].node {
                    let BatchRows { rows, faults } = std::mem::take(&mut self.batches[head]);
                    faults
                        .into_iter()
                        .for_each(|(row, fault)| self.fault(row as usize, number, fault, drops));
                    rows.iter().for_each(|row| self.fault(*row as usize, number, fault.clone(), drops));
                }
            }
        }
    }
}

impl Workload for GroupRun<'_> {
    type Value = Outcome;
    type Error = Fault;
    type Future = StepFuture;
    type Job = StepJob;

    fn step(&mut self, node: NodeId, _: Budget) -> Step<Self> {
        let tries = &mut self.tries[node.index()];
        *tries = tries.saturating_add(1);
        match self.grid.place(node) {
            Place::Cell { row, cell } => self.start_cell(node, row, cell),
            Place::Head(head) => match self.phase.layout.head[head].node {
                HeadNode::Batch(task) => self.start_batch(head, task),
                HeadNode::Enter(task) => {
                    Step::Future(StepFuture::Turn(self.phase.tasks[task].turns.enter(self.turn)))
                }
                HeadNode::Leave(task) => {
                    self.phase.tasks[task].turns.leave(self.turn);
                    Step::Ready(Ok(Outcome::Nothing))
                }
            },
        }
    }

    /// A row that needs no call does not wait for the limit of its model.
    fn needs_limit(&mut self, node: NodeId) -> bool {
        match self.grid.place(node) {
            Place::Cell { cell, .. } if self.phase.layout.cells[cell].part == Part::Call => {
                matches!(self.calls.get(&node), None | Some(PreparedCall::Due(_)))
            }
            _ => true,
        }
    }

    fn finish(&mut self, node: NodeId, outcome: Outcome, drops: &mut Drops) {
        match (self.grid.place(node), outcome) {
            (_, Outcome::Nothing) => {}
            (_, Outcome::Failed(fault)) => self.end_with_fault(node, fault, drops),
            (Place::Cell { .. }, Outcome::Prepared(prepared)) => self.prepared(node, prepared),
            (Place::Cell { row, cell }, Outcome::Skipped) => match self.phase.layout.cells[cell].part {
                Part::Prepare => _ = self.calls.insert(NodeId(node.0 + 1), PreparedCall::Skipped),
                Part::Whole | Part::Call => self.skip(row, self.task_of(cell).0),
            },
            (Place::Cell { row, cell }, Outcome::Foreseen { found, may_be_skipped }) => {
                self.foreseen(node, (row, self.task_of(cell).0), found, may_be_skipped);
            }
            (Place::Cell { row, cell }, Outcome::Unknown { may_be_skipped }) => {
                if self.phase.layout.cells[cell].part == Part::Prepare {
                    self.calls.insert(NodeId(node.0 + 1), PreparedCall::Failed);
                }
                self.dry_unknown(row, self.task_of(cell).0, may_be_skipped);
            }
            (Place::Cell { row, cell }, Outcome::Cells(cells)) => {
                let (number, task) = self.task_of(cell);
                self.call_ended(node, task, None);
                self.keep(row, number, cells, drops);
            }
            (Place::Head(head), Outcome::Batch(results)) => {
                if let HeadNode::Batch(number) = self.phase.layout.head[head].node {
                    self.end_batch(head, number, results, drops);
                }
            }
            (Place::Head(_), _) | (Place::Cell { .. }, Outcome::Batch(_)) => {
                unreachable!("a node ends with an outcome of its own kind")
            }
        }
    }

    fn fail(&mut self, node: NodeId, failure: Failure<Fault>, drops: &mut Drops) {
        let fault = self.fault_of(node, &failure);
        self.end_with_fault(node, fault, drops);
    }

    fn fallback(&mut self, node: NodeId, failure: &Failure<Fault>) -> Instead<Outcome> {
        Instead::Value(Outcome::Failed(self.fault_of(node, failure)))
    }
}

pub(super) fn no_job() -> Fault {
    Fault::permanent("internal", "a call is prepared at once or as a future, not by a job")
}

/// True if a rendered condition means yes. A template of several parts renders to text.
pub(crate) fn text_is_true(text: &str) -> bool {
    let text = text.trim();
    !(text.is_empty() || ["false", "none", "0"].iter().any(|no| text.eq_ignore_ascii_case(no)))
}
