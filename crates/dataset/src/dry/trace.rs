//! Everything that is known of one row.

use anabranch_value::Value;

use super::forecast::{CellForecast, CellState};
use super::foreseen::ForeseenCall;
use crate::errors::RowError;

/// Everything that is known of one row: its values, and the calls that made them.
#[derive(Clone, Debug)]
pub struct RowTrace {
    /// The row's stable number.
    pub row: u64,
    /// In the order in which the cells were found.
    pub cells: Vec<TracedCell>,
    /// The row has a cell that failed, and its column drops such rows.
    pub is_dropped: bool,
    pub errors: Vec<RowError>,
}

/// Everything that is known of one cell.
#[derive(Clone, Debug)]
pub struct TracedCell {
    /// The column, or the first of those that its generator fills.
    pub column: String,
    /// The aliases of the models that the column asks.
    pub models: Vec<String>,
    /// The columns that it reads.
    pub reads: Vec<String>,
    /// Whether its replies are recorded in the journal.
    pub has_replies: bool,
    pub state: CellState,
    /// Whether the cell may be skipped, which depends on an unknown value.
    pub may_be_skipped: bool,
    /// The calls in their order: rendered messages, and the reply of each.
    pub calls: Vec<ForeseenCall>,
    /// The values of the columns that its generator fills; empty if they are unknown.
    pub values: Vec<(String, Value)>,
}

impl RowTrace {
    pub(super) fn new(row: u64) -> RowTrace {
        RowTrace { row, cells: Vec::new(), is_dropped: false, errors: Vec::new() }
    }

    /// Adds the cells that another stage has of the row.
    pub(super) fn add(&mut self, more: RowTrace) {
        self.cells.extend(more.cells);
        self.errors.extend(more.errors);
        self.is_dropped |= more.is_dropped;
    }

    /// The cell that fills a column.
    pub fn cell(&self, column: &str) -> Option<&TracedCell> {
        self.cells
            .iter()
            .find(|cell| cell.column == column || cell.values.iter().any(|(name, _)| name == column))
    }
}

impl TracedCell {
    pub(super) fn new(cell: &CellForecast<'_>, reads: Vec<String>, has_replies: bool) -> TracedCell {
        TracedCell {
            column: cell.column.to_owned(),
            models: cell.models.to_vec(),
            reads,
            has_replies,
            state: cell.state,
            may_be_skipped: cell.may_be_skipped,
            calls: cell.calls.to_vec(),
            values: Vec::new(),
        }
    }
}
