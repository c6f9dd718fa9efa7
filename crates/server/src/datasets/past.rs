//! The stored part of a build for its page: the curves of its figures, and the final states of its cells.

use anabranch_dataset_inspect::live::Figures;
use serde::{Deserialize, Serialize};

/// The most samples of a curve. Beyond it, every other sample is dropped, so that the curve spans the whole build.
const SAMPLES_MOST: usize = 400;
/// The most runs of equal cells that are stored of a finished build.
const RUNS_MOST: usize = 100_000;

/// The figures of a build over time.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub(super) struct History(Vec<Sample>);

/// Seconds since the beginning, cells per second, calls in flight, their limit, and the cost.
type Sample = (f64, f64, u64, u64, Option<f64>);

impl History {
    pub(super) fn add(&mut self, figures: &Figures) {
        let Figures { elapsed_seconds, cells_per_second, in_flight, limit, cost } = *figures;
        if self.0.len() >= SAMPLES_MOST {
            let mut number = 0;
            self.0.retain(|_| {
                number += 1;
                number % 2 == 1
            });
        }
        self.0.push((elapsed_seconds, cells_per_second, in_flight, limit, cost));
    }
}

/// A finished build.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct PastBuild {
    pub(super) history: History,
    /// `None` if they were not stored, or if they have too many runs of equal cells.
    pub(super) cells: Option<PastCells>,
}

/// The states of cells, row by row, as run lengths: a state, and a number of cells.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct PastCells {
    pub(super) columns: usize,
    runs: Vec<(u8, u32)>,
}

impl PastCells {
    pub(super) fn new(cells: &[u8], columns: usize) -> Option<PastCells> {
        let mut runs: Vec<(u8, u32)> = Vec::new();
        for cell in cells {
            match runs.last_mut() {
                Some((state, count)) if state == cell => *count += 1,
                _ => runs.push((*cell, 1)),
            }
            if runs.len() > RUNS_MOST {
                return None;
            }
        }
        Some(PastCells { columns, runs })
    }

    fn count(&self) -> u64 {
        self.runs.iter().map(|(_, count)| u64::from(*count)).sum()
    }

    /// False for a damaged file that has more cells than a build may have.
    pub(super) fn is_whole(&self) -> bool {
        self.count() <= anabranch_dataset::CELLS_MOST
    }

    /// The number of rows.
    pub(super) fn rows(&self) -> u64 {
        self.count().checked_div(self.columns as u64).unwrap_or(0)
    }

    /// The states of a range of rows.
    pub(super) fn read(&self, rows: std::ops::Range<u64>) -> Vec<u8> {
        let columns = self.columns as u64;
        let (mut skipped, mut wanted) =
            (rows.start.saturating_mul(columns), (rows.end - rows.start).saturating_mul(columns));
        let mut bytes = Vec::new();
        for (state, count) in &self.runs {
            let count = u64::from(*count);
            let left_out = skipped.min(count);
            let taken = wanted.min(count - left_out);
            skipped -= left_out;
            wanted -= taken;
            bytes.resize(bytes.len() + taken as usize, *state);
        }
        bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_are_read_by_rows() {
        let cells = [2, 2, 2, 3, 0, 0];
        let past = PastCells::new(&cells, 2).unwrap();
        assert_eq!(past.runs, [(2, 3), (3, 1), (0, 2)]);
        assert_eq!((past.rows(), past.read(0..3)), (3, cells.to_vec()));
        assert_eq!(past.read(1..2), [2, 3]);
        assert_eq!(past.read(2..900), [0, 0]);
        let restless: Vec<u8> = (0..=RUNS_MOST).map(|cell| (cell % 2) as u8).collect();
        assert_eq!(PastCells::new(&restless, 1), None);
    }

    #[test]
    fn a_long_build_keeps_a_whole_curve() {
        let mut history = History::default();
        let figures = |second: u32| Figures { elapsed_seconds: f64::from(second), ..Figures::default() };
        (0..10_000).for_each(|second| history.add(&figures(second)));
        let seconds: Vec<f64> = history.0.iter().map(|(second, ..)| *second).collect();
        assert!(seconds.len() <= SAMPLES_MOST && seconds.is_sorted());
        assert_eq!((seconds[0], seconds[seconds.len() - 1]), (0.0, 9_999.0));
    }
}
