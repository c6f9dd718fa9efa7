//! Counters of a build, for progress displays.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use serde::{Deserialize, Serialize};

use crate::fault::Fault;

/// Counters of a build under way, read by whoever shows progress.
#[derive(Debug, Default)]
pub struct Progress {
    rows: u64,
    rows_written: AtomicU64,
    rows_dropped: AtomicU64,
    groups_written: AtomicU64,
    columns: Vec<ColumnCounters>,
    errors: Mutex<BTreeMap<String, u64>>,
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
    pub columns: Vec<ColumnSnapshot>,
    /// Failed cells by class.
    pub errors: BTreeMap<String, u64>,
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

    pub(crate) fn dropped_row(&self) {
        self.rows_dropped.fetch_add(1, Relaxed);
    }

    pub(crate) fn wrote_group(&self, rows: u64) {
        self.rows_written.fetch_add(rows, Relaxed);
        self.groups_written.fetch_add(1, Relaxed);
    }

    /// Counts a row group that an earlier build wrote.
    pub(crate) fn found_group(&self, rows: u64, dropped: u64) {
        self.columns.iter().for_each(|column| _ = column.finished.fetch_add(rows, Relaxed));
        self.rows_dropped.fetch_add(dropped, Relaxed);
        self.wrote_group(rows);
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
            columns: self.columns.iter().map(column).collect(),
            errors: self.errors.lock().unwrap_or_else(std::sync::PoisonError::into_inner).clone(),
        }
    }
}
