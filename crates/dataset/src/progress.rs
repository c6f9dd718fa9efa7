//! Counters of a build, for progress displays.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use serde::{Deserialize, Serialize};

use crate::cells::{CellChanges, CellPhase, CellStates};
use crate::errors::RowError;
use crate::fault::Fault;

/// The counters of a running build, for displays of progress.
#[derive(Debug, Default)]
pub struct Progress {
    rows: u64,
    rows_written: AtomicU64,
    rows_dropped: AtomicU64,
    groups_written: AtomicU64,
    accept: Option<AcceptCounters>,
    columns: Vec<ColumnCounters>,
    errors: Mutex<BTreeMap<String, u64>>,
    /// Empty unless the cells are watched.
    cells: CellStates,
}

#[derive(Debug, Default)]
struct AcceptCounters {
    /// The most rows that are generated.
    most: u64,
    candidates: AtomicU64,
    accepted: AtomicU64,
    rejected: AtomicU64,
}

#[derive(Debug, Default)]
struct ColumnCounters {
    name: String,
    finished: AtomicU64,
    failed: AtomicU64,
    skipped: AtomicU64,
    retried: AtomicU64,
}

/// The counters at one moment.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Snapshot {
    /// Rows to build.
    pub rows: u64,
    /// Rows in files on disk.
    pub rows_written: u64,
    pub rows_dropped: u64,
    pub groups_written: u64,
    /// The rows that were generated and those that were kept, if the dataset accepts only some.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub accept: Option<AcceptSnapshot>,
    pub columns: Vec<ColumnSnapshot>,
    /// Failed cells by class.
    pub errors: BTreeMap<String, u64>,
}

/// The rows of a dataset that accepts only some.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct AcceptSnapshot {
    /// Rows whose generation has begun.
    pub candidates: u64,
    /// The most rows that are generated.
    pub most: u64,
    pub accepted: u64,
    pub rejected: u64,
}

impl AcceptSnapshot {
    /// The share of rows that are accepted, once some were looked at.
    pub fn acceptance(&self) -> Option<f64> {
        let decided = self.accepted + self.rejected;
        (decided > 0).then(|| self.accepted as f64 / decided as f64)
    }
}

/// The counters of one generated column.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ColumnSnapshot {
    pub name: String,
    pub finished: u64,
    pub failed: u64,
    pub skipped: u64,
    /// Calls that were made again after a failure that may pass.
    pub retried: u64,
}

impl Progress {
    pub(crate) fn new(rows: u64, columns: impl IntoIterator<Item = String>) -> Progress {
        let columns = columns.into_iter().map(|name| ColumnCounters { name, ..ColumnCounters::default() });
        Progress { rows, columns: columns.collect(), ..Progress::default() }
    }

    /// Keeps the state of each cell as well.
    pub(crate) fn watching_cells(self) -> Progress {
        let cells = CellStates::new(self.rows, self.columns.len());
        Progress { cells, ..self }
    }

    /// The states of the cells of some rows: one byte per cell, row by row, with the numbers of [`CellPhase`]. `None`
    /// if they were not requested ([`Dataset::watch_cells`](crate::Dataset::watch_cells)), or if there are too many.
    pub fn cells(&self, rows: std::ops::Range<u64>) -> Option<Vec<u8>> {
        self.cells.read(rows)
    }

    /// The number of rows, and of columns that are generated.
    pub fn shape(&self) -> (u64, usize) {
        (self.rows, self.columns.len())
    }

    /// The cells that changed since the last call, in at most `most` runs of equal states. `None` as with
    /// [`cells`](Progress::cells). Each change is reported to one caller.
    pub fn take_cell_changes(&self, most: usize) -> Option<CellChanges> {
        self.cells.take_changes(most)
    }

    pub(crate) fn cell(&self, row: u64, task: usize, phase: CellPhase) {
        self.cells.set(row, task, phase);
    }

    pub(crate) fn dropped_cells(&self, row: u64) {
        self.cells.drop_row(row);
    }

    pub(crate) fn finished(&self, task: usize) {
        self.columns[task].finished.fetch_add(1, Relaxed);
    }

    pub(crate) fn skipped(&self, task: usize) {
        self.columns[task].skipped.fetch_add(1, Relaxed);
    }

    pub(crate) fn retried(&self, task: usize) {
        self.columns[task].retried.fetch_add(1, Relaxed);
    }

    pub(crate) fn failed(&self, task: usize, fault: &Fault) {
        self.columns[task].failed.fetch_add(1, Relaxed);
        let mut errors = self.errors.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        *errors.entry(fault.class.clone().into_owned()).or_default() += 1;
    }

    /// Counts accepted and rejected rows, of which at most `most` are generated.
    pub(crate) fn accepting(self, most: u64) -> Progress {
        Progress { accept: Some(AcceptCounters { most, ..AcceptCounters::default() }), ..self }
    }

    pub(crate) fn candidates(&self, rows: u64) {
        self.accept.iter().for_each(|accept| _ = accept.candidates.fetch_add(rows, Relaxed));
    }

    pub(crate) fn accepted_row(&self) {
        self.accept.iter().for_each(|accept| _ = accept.accepted.fetch_add(1, Relaxed));
    }

    pub(crate) fn rejected_row(&self) {
        self.accept.iter().for_each(|accept| _ = accept.rejected.fetch_add(1, Relaxed));
    }

    pub(crate) fn accept(&self) -> Option<AcceptSnapshot> {
        let AcceptCounters { most, candidates, accepted, rejected } = self.accept.as_ref()?;
        let [candidates, accepted, rejected] =
            [candidates, accepted, rejected].map(|count| count.load(Relaxed));
        Some(AcceptSnapshot { candidates, most: *most, accepted, rejected })
    }

    pub(crate) fn dropped(&self) -> u64 {
        self.rows_dropped.load(Relaxed)
    }

    pub(crate) fn dropped_row(&self) {
        self.rows_dropped.fetch_add(1, Relaxed);
    }

    pub(crate) fn wrote_group(&self, rows: u64) {
        self.rows_written.fetch_add(rows, Relaxed);
        self.groups_written.fetch_add(1, Relaxed);
    }

    /// Counts a row group that an earlier build wrote.
    pub(crate) fn found_group(&self, rows: u64, dropped: u64, rejected: u64) {
        if let Some(accept) = &self.accept {
            accept.candidates.fetch_add(rows + dropped + rejected, Relaxed);
            accept.accepted.fetch_add(rows, Relaxed);
            accept.rejected.fetch_add(rejected, Relaxed);
        }
        self.columns.iter().for_each(|column| _ = column.finished.fetch_add(rows, Relaxed));
        self.rows_dropped.fetch_add(dropped, Relaxed);
        self.wrote_group(rows);
    }

    /// Notes the cells of a row group that an earlier build wrote.
    pub(crate) fn found_cells(&self, rows: std::ops::Range<u64>, errors: &[RowError]) {
        for row in rows {
            (0..self.columns.len()).for_each(|task| self.cell(row, task, CellPhase::Finished));
        }
        for error in errors {
            let failed = self.columns.iter().position(|column| column.name == error.column);
            for task in 0..self.columns.len() {
                match Some(task) == failed {
                    true => self.cell(error.row, task, CellPhase::Failed),
                    false if !error.kept => self.cell(error.row, task, CellPhase::Dropped),
                    false => {}
                }
            }
        }
    }

    /// The counters now.
    pub fn snapshot(&self) -> Snapshot {
        let column = |column: &ColumnCounters| ColumnSnapshot {
            name: column.name.clone(),
            finished: column.finished.load(Relaxed),
            failed: column.failed.load(Relaxed),
            skipped: column.skipped.load(Relaxed),
            retried: column.retried.load(Relaxed),
        };
        Snapshot {
            rows: self.rows,
            rows_written: self.rows_written.load(Relaxed),
            rows_dropped: self.rows_dropped.load(Relaxed),
            groups_written: self.groups_written.load(Relaxed),
            accept: self.accept(),
            columns: self.columns.iter().map(column).collect(),
            errors: self.errors.lock().unwrap_or_else(std::sync::PoisonError::into_inner).clone(),
        }
    }
}
