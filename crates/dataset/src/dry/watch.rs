//! The place where all row groups of a dry run put what they find.

use std::sync::{Mutex, MutexGuard, PoisonError};

use anabranch_value::Value;

use super::forecast::{CellForecast, CellState, ColumnForecast};
use super::trace::{RowTrace, TracedCell};
use crate::errors::RowError;
use crate::generator::Grain;
use crate::grid::RowValues;
use crate::program::{Program, Task};

/// Sees each cell of a dry run once. It is called by several threads.
pub(crate) type Observe = Box<dyn Fn(&CellForecast<'_>) + Send + Sync>;

/// Counts the cells of a dry run, and traces one row of it.
pub(crate) struct DryWatch {
    observe: Option<Observe>,
    state: Mutex<State>,
}

struct State {
    /// By the counters of the tasks.
    columns: Vec<ColumnForecast>,
    dropped: u64,
    trace: Option<RowTrace>,
}

impl DryWatch {
    pub(crate) fn new(program: &Program, observe: Option<Observe>, wanted: Option<u64>) -> DryWatch {
        let tasks = || program.stages.iter().flat_map(|stage| &stage.tasks);
        let mut columns = vec![ColumnForecast::default(); tasks().count()];
        for task in tasks() {
            let reads = task.reads.iter().map(|column| program.columns[*column].name.clone());
            columns[task.counter] = ColumnForecast {
                name: task.name.clone(),
                models: task.models.clone(),
                reads: reads.collect(),
                ..ColumnForecast::default()
            };
        }
        let trace = wanted.map(RowTrace::new);
        DryWatch { observe, state: Mutex::new(State { columns, dropped: 0, trace }) }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes a cell in.
    pub(crate) fn cell(&self, task: &Task, cell: &CellForecast<'_>) {
        if let Some(observe) = &self.observe {
            observe(cell);
        }
        let mut state = self.lock();
        let State { columns, trace, .. } = &mut *state;
        let column = &mut columns[task.counter];
        column.note(cell);
        if let Some(trace) = trace.as_mut().filter(|trace| trace.row == cell.row) {
            trace.cells.push(TracedCell::new(cell, column.reads.clone(), task.grain == Grain::Call));
        }
    }

    /// Takes a known value in.
    pub(crate) fn value(&self, task: &Task, value: &Value) {
        self.lock().columns[task.counter].values.note(value);
    }

    /// Takes the rows of a group in that has ended.
    pub(crate) fn end_group(&self, program: &Program, values: &RowValues, errors: &[RowError]) {
        let mut state = self.lock();
        state.dropped += (values.rows() - values.kept().count()) as u64;
        let Some(trace) = &mut state.trace else { return };
        let Some(row) = values.ids.iter().position(|id| *id == trace.row) else { return };
        trace.is_dropped = values.is_dropped(row);
        trace.errors = errors.iter().filter(|error| error.row == trace.row).cloned().collect();
        let tasks = program.stages.iter().flat_map(|stage| &stage.tasks);
        for task in tasks {
            let Some(cell) = trace.cells.iter_mut().find(|cell| cell.column == task.name) else { continue };
            let is_known = matches!(cell.state, CellState::Computed | CellState::Reused | CellState::Skipped);
            if is_known && !cell.may_be_skipped {
                let value = |column: &usize| {
                    (program.columns[*column].name.clone(), values.get(row, *column).clone())
                };
                cell.values = task.fills.iter().map(value).collect();
            }
        }
    }

    /// The columns and the dropped rows.
    pub(crate) fn columns(&self) -> (Vec<ColumnForecast>, u64) {
        let state = self.lock();
        (state.columns.clone(), state.dropped)
    }

    /// The wanted row; `None` if there is no such row.
    pub(crate) fn take_trace(&self) -> Option<RowTrace> {
        self.lock().trace.take().filter(|trace| !trace.cells.is_empty())
    }
}
