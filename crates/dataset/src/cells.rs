//! The states of all cells of a build, one byte each, for live displays.

use std::sync::atomic::Ordering::{AcqRel, Relaxed, Release};
use std::sync::atomic::{AtomicU8, AtomicU64};

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
    /// One bit per row whose cells changed since the last read of the changes.
    changed: Vec<AtomicU64>,
}

/// The cells that changed since the last time, as they are now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CellChanges {
    /// Rows that follow each other, again and again.
    Rows(Vec<ChangedRows>),
    /// There are more than the caller wanted: read all cells instead.
    TooMany,
}

/// The cells of rows that follow each other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChangedRows {
    /// The first row.
    pub first: u64,
    /// Row by row: a state, as [`CellPhase`] numbers it, and for how many cells.
    pub states: Vec<(u8, u32)>,
}

impl CellStates {
    /// The states of this many rows and columns; empty if there are too many.
    pub(crate) fn new(rows: u64, columns: usize) -> CellStates {
        let cells = rows.saturating_mul(columns as u64);
        let count = if cells <= CELLS_MOST { cells as usize } else { 0 };
        let states = std::iter::repeat_with(AtomicU8::default).take(count).collect();
        let words = count.checked_div(columns).unwrap_or(0).div_ceil(64);
        let changed = std::iter::repeat_with(AtomicU64::default).take(words).collect();
        CellStates { columns, states, changed }
    }

    /// Rows of later stages have the numbers of the first one, so some may have no place here.
    pub(crate) fn set(&self, row: u64, column: usize, phase: CellPhase) {
        if let Some(state) = self.states.get((row as usize).wrapping_mul(self.columns).wrapping_add(column)) {
            state.store(phase as u8, Relaxed);
            self.mark(row);
        }
    }

    /// Marks a row as changed. This follows the change of the state, so a reader that takes the bit sees the new state.
    fn mark(&self, row: u64) {
        let is_kept = (row as usize) < self.states.len().checked_div(self.columns).unwrap_or(0);
        if is_kept && let Some(word) = self.changed.get((row / 64) as usize) {
            word.fetch_or(1 << (row % 64), Release);
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
        self.mark(row);
    }

    /// The rows that changed since the last call, in at most `most` runs of equal states; `None` if no states are kept.
    /// Each change is reported to one reader.
    pub(crate) fn take_changes(&self, most: usize) -> Option<CellChanges> {
        if self.states.is_empty() {
            return None;
        }
        let (mut rows, mut count): (Vec<ChangedRows>, usize) = (Vec::new(), 0);
        let mut after = None;
        for (place, word) in self.changed.iter().enumerate() {
            let mut bits = if word.load(Relaxed) == 0 { 0 } else { word.swap(0, AcqRel) };
            // The remaining bits are cleared as well, because the reader is asked to read everything.
            while bits != 0 && count <= most {
                let row = place as u64 * 64 + u64::from(bits.trailing_zeros());
                bits &= bits - 1;
                if after != Some(row) {
                    rows.push(ChangedRows { first: row, states: Vec::new() });
                }
                after = Some(row + 1);
                let states = &mut rows.last_mut().expect("one was pushed before").states;
                let before = states.len();
                self.add_row(row, states);
                count += states.len() - before;
            }
        }
        Some(if count <= most { CellChanges::Rows(rows) } else { CellChanges::TooMany })
    }

    fn add_row(&self, row: u64, states: &mut Vec<(u8, u32)>) {
        let first = row as usize * self.columns;
        for state in &self.states[first..first + self.columns] {
            let state = state.load(Relaxed);
            match states.last_mut() {
                Some((last, count)) if *last == state => *count += 1,
                _ => states.push((state, 1)),
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

    fn rows(first: u64, states: &[(u8, u32)]) -> ChangedRows {
        ChangedRows { first, states: states.to_vec() }
    }

    #[test]
    fn changes_are_told_once() {
        let cells = CellStates::new(200, 2);
        assert_eq!(cells.take_changes(10), Some(CellChanges::Rows(Vec::new())));
        for row in [63, 64, 65] {
            cells.set(row, 0, CellPhase::Finished);
            cells.set(row, 1, CellPhase::Finished);
        }
        cells.set(0, 1, CellPhase::Running);
        cells.drop_row(199);
        cells.drop_row(200);
        let told = vec![rows(0, &[(0, 1), (1, 1)]), rows(63, &[(2, 6)]), rows(199, &[(5, 2)])];
        assert_eq!(cells.take_changes(10), Some(CellChanges::Rows(told)));
        assert_eq!(cells.take_changes(10), Some(CellChanges::Rows(Vec::new())));
    }

    #[test]
    fn too_many_changes_are_not_told() {
        let cells = CellStates::new(200, 1);
        (0..200).step_by(2).for_each(|row| cells.set(row, 0, CellPhase::Finished));
        assert_eq!(cells.take_changes(50), Some(CellChanges::TooMany));
        assert_eq!(cells.take_changes(50), Some(CellChanges::Rows(Vec::new())), "all were taken");
        (0..200).for_each(|row| cells.set(row, 0, CellPhase::Finished));
        assert_eq!(cells.take_changes(1), Some(CellChanges::Rows(vec![rows(0, &[(2, 200)])])));
        assert_eq!(CellStates::default().take_changes(1), None);
    }

    #[test]
    fn too_many_cells_are_counted_only() {
        let cells = CellStates::new(u64::MAX, 3);
        cells.set(1, 1, CellPhase::Finished);
        assert_eq!(cells.read(0..2), None);
    }
}
