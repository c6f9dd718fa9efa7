//! Collects the findings of all row groups of a dry run.

use std::collections::{BTreeMap, HashSet};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use anabranch_value::Value;

use super::forecast::{CellForecast, CellState, ColumnForecast};
use super::trace::{RowTrace, TracedCell};
use crate::errors::RowError;
use crate::generator::Grain;
use crate::grid::RowValues;
use crate::processor::Table;
use crate::program::{Program, Task};

/// Sees each cell of a dry run once. It is called by several threads.
pub(crate) type Observe = Arc<dyn Fn(&CellForecast<'_>) + Send + Sync>;

/// Counts the cells of a dry run, and traces one row of it.
pub(crate) struct DryWatch {
    observe: Option<Observe>,
    /// The rows of the earlier build in the folder.
    rows_before: u64,
    /// The cells are those of a sample, which the observer does not see.
    is_sample: AtomicBool,
    state: Mutex<State>,
}

struct State {
    /// By the counters of the tasks.
    columns: Vec<ColumnForecast>,
    dropped: u64,
    trace: Option<RowTrace>,
    /// Rows with an unknown value.
    unknown: HashSet<u64>,
    /// The known rows of groups that have ended, if another stage follows.
    tables: Option<BTreeMap<u64, Table>>,
}

impl DryWatch {
    /// `wanted` is the row that is traced.
    pub(crate) fn new(
        program: &Program,
        rows_before: u64,
        wanted: Option<u64>,
        keeps_rows: bool,
    ) -> DryWatch {
        let tasks = || program.phases.iter().flat_map(|phase| &phase.tasks);
        let mut columns = vec![ColumnForecast::default(); tasks().count()];
        for task in tasks() {
            let reads = task.reads.iter().map(|column| program.columns[*column].name.clone());
            let fills = task.fills.iter().map(|column| program.columns[*column].name.clone());
            columns[task.counter] = ColumnForecast {
                name: task.name.clone(),
                models: task.models.clone(),
                reads: reads.collect(),
                fills: fills.collect(),
                ..ColumnForecast::default()
            };
        }
        let trace = wanted.map(RowTrace::new);
        let tables = keeps_rows.then(BTreeMap::new);
        let state = State { columns, dropped: 0, trace, unknown: HashSet::new(), tables };
        DryWatch { observe: None, rows_before, is_sample: AtomicBool::new(false), state: Mutex::new(state) }
    }

    /// Shows each cell to an observer.
    pub(crate) fn observed(self, observe: Option<Observe>) -> DryWatch {
        DryWatch { observe, ..self }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes a cell in.
    pub(crate) fn cell(&self, task: &Task, cell: &CellForecast<'_>) {
        // A condition of acceptance fills no column.
        let is_shown = !task.accepts;
        if let Some(observe) = &self.observe
            && is_shown
            && !self.is_sample.load(Relaxed)
        {
            observe(cell);
        }
        let mut state = self.lock();
        let State { columns, trace, .. } = &mut *state;
        let column = &mut columns[task.counter];
        column.note(cell, self.rows_before);
        if let Some(trace) = trace.as_mut().filter(|trace| is_shown && trace.row == cell.row) {
            trace.cells.push(TracedCell::new(cell, column.reads.clone(), task.grain == Grain::Call));
        }
    }

    /// Notes that a row has an unknown value.
    pub(crate) fn unknown_row(&self, id: u64) {
        self.lock().unknown.insert(id);
    }

    /// True if the known rows of groups are wanted.
    pub(crate) fn keeps_rows(&self) -> bool {
        self.lock().tables.is_some()
    }

    /// Takes the rows out of a group that are not known.
    pub(crate) fn drop_unknown(&self, values: &mut RowValues) {
        let state = self.lock();
        let unknown = (0..values.rows()).filter(|row| state.unknown.contains(&values.ids[*row]));
        let unknown: Vec<usize> = unknown.collect();
        unknown.into_iter().for_each(|row| _ = values.drop_row(row));
    }

    /// Keeps the known rows of a group.
    pub(crate) fn keep_rows(&self, group: u64, rows: Table) {
        if let Some(tables) = &mut self.lock().tables {
            tables.insert(group, rows);
        }
    }

    /// The known rows, if they are kept, and the number of unknown ones.
    pub(crate) fn take_rows(&self) -> (Option<Table>, u64) {
        let mut state = self.lock();
        let tables = state.tables.take().map(|tables| {
            let mut all = Table::default();
            tables.into_values().for_each(|table| all.append(table));
            all
        });
        (tables, std::mem::take(&mut state.unknown).len() as u64)
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
        let tasks = program.phases.iter().flat_map(|phase| &phase.tasks);
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

    /// The cells that follow are those of a sample.
    pub(crate) fn begin_sample(&self) {
        self.is_sample.store(true, Relaxed);
    }

    /// The columns and the dropped rows since the last time.
    pub(crate) fn take_columns(&self) -> (Vec<ColumnForecast>, u64) {
        let mut state = self.lock();
        let fresh = |column: &ColumnForecast| ColumnForecast {
            name: column.name.clone(),
            models: column.models.clone(),
            reads: column.reads.clone(),
            fills: column.fills.clone(),
            ..ColumnForecast::default()
        };
        let fresh = state.columns.iter().map(fresh).collect();
        (std::mem::replace(&mut state.columns, fresh), std::mem::take(&mut state.dropped))
    }

    /// The wanted row; `None` if there is no such row.
    pub(crate) fn take_trace(&self) -> Option<RowTrace> {
        self.lock().trace.take().filter(|trace| !trace.cells.is_empty())
    }
}
