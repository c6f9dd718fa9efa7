//! The states of all cells of a build, one byte each, for live displays.

use std::sync::atomic::{AtomicU8, Ordering::Relaxed};

/// The state of a cell in a display of all cells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum CellPhase {
    /// It has not started.
    Waiting = 0,
    /// It is being generated.
    Running = 1,
    /// It has its value.
    Finished = 2,
    /// It failed.
    Failed = 3,
    /// It was skipped.
    Skipped = 4,
    /// Its row was dropped before it had a value.
    Dropped = 5,
}

/// The most cells whose states are kept. Larger builds have counters only.
pub const CELLS_MOST: u64 = 16 << 20;

/// The states of cells, row by row. Writers and readers do not wait for each other.
#[derive(Debug, Default)]
pub(crate) struct CellStates {
    columns: usize,
    states: Vec<AtomicU8>,
}

impl CellStates {
    /// The states of so many rows and columns; empty if these are too many.
    pub(crate) fn new(rows: u64, columns: usize) -> CellStates {
        let cells = rows.saturating_mul(columns as u64);
        let count = if cells <= CELLS_MOST { cells as usize } else { 0 };
        CellStates { columns, states: std::iter::repeat_with(AtomicU8::default).take(count).collect() }
    }

    /// Rows of later stages have the numbers of the first one, so some may have no place here.
    pub(crate) fn set(&self, row: u64, column: usize, phase: CellPhase) {
        if let Some(state) = self.states.get((row as usize).wrapping_mul(self.columns).wrapping_add(column)) {
            state.store(phase as u8, Relaxed);
        }
    }

    /// The cells of a row that have no value are dropped.
    pub(crate) fn drop_row(&self, row: u64) {
        if self.states.is_empty() {
            return;
        }
        let first = (row as usize).saturating_mul(self.columns);
        for state in self.states.iter().skip(first).take(self.columns) {
            if state.load(Relaxed) <= CellPhase::Running as u8 {
                state.store(CellPhase::Dropped as u8, Relaxed);
            }
        }
    }

    /// The bytes of some rows, as far as there are any; `None` if no states are kept.
    pub(crate) fn read(&self, rows: std::ops::Range<u64>) -> Option<Vec<u8>> {
        if self.states.is_empty() {
            return None;
        }
        let place = |row: u64| (row as usize).saturating_mul(self.columns).min(self.states.len());
        let (from, to) = (place(rows.start), place(rows.end));
        Some(self.states[from..to.max(from)].iter().map(|state| state.load(Relaxed)).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn states_are_read_by_rows() {
        let cells = CellStates::new(3, 2);
        cells.set(0, 1, CellPhase::Finished);
        cells.set(1, 0, CellPhase::Running);
        cells.set(1, 1, CellPhase::Failed);
        cells.drop_row(1);
        cells.set(9, 0, CellPhase::Finished);
        cells.drop_row(9);
        assert_eq!(cells.read(0..3).unwrap(), [0, 2, 5, 3, 0, 0]);
        assert_eq!(cells.read(1..2).unwrap(), [5, 3]);
        assert_eq!(cells.read(2..900).unwrap(), [0, 0]);
        assert!(cells.read(7..9).unwrap().is_empty());
    }

    #[test]
    fn too_many_cells_are_counted_only() {
        let cells = CellStates::new(u64::MAX, 3);
        cells.set(1, 1, CellPhase::Finished);
        assert_eq!(cells.read(0..2), None);
    }
}
