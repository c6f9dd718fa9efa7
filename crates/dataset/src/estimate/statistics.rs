//! The statistics of calls that estimates are made from.

use crate::dry::{ColumnForecast, DryRun, LedgerLine, RecordedSum};
use crate::output::Figures;

/// Calls that were made and answered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct CallFigures {
    /// Cells, or texts of embeddings.
    pub(super) cells: u64,
    pub(super) calls: u64,
    pub(super) prompt_bytes: u64,
    /// The bytes of each cell's first request; 0 if they are not known apart.
    pub(super) first_bytes: u64,
    pub(super) input_tokens: u64,
    pub(super) output_tokens: u64,
    pub(super) timed_calls: u64,
    pub(super) took_ms: u64,
}

/// The source of a figure, the best first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Basis {
    /// Replies of the column itself.
    Column,
    /// Replies of its model to other columns.
    Model,
    Guess,
}

/// The statistics of a column.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Statistics {
    /// Recorded replies to the requests that the column makes now.
    pub(super) own: CallFigures,
    /// All replies to the column, also to requests that it no longer makes.
    pub(super) column: CallFigures,
    /// All replies of its model.
    pub(super) model: CallFigures,
}

/// The number of cells from which a column's own figure is preferred to that of all builds.
const ENOUGH: u64 = 10;

impl Statistics {
    /// The statistics of a column. Similar columns of its model are preferred to the other ones.
    pub(super) fn of(run: &DryRun, column: &ColumnForecast, is_alike: impl Fn(&str) -> bool) -> Statistics {
        let own = recorded(run, column);
        let alias = column.models.first();
        let mut model = CallFigures::default();
        let others = run.columns.iter().filter(|other| other.models.first() == alias);
        for other in others.filter(|other| is_alike(&other.name)) {
            model.add(&recorded(run, other));
        }
        let facts = run.models.iter().find(|model| Some(&model.alias) == alias);
        let name = facts.map(|model| format!("{}/{}", model.provider, model.model)).unwrap_or_default();
        let lines = || run.ledger.iter().filter(|line| line.model == name);
        let sum = |is_wanted: &dyn Fn(&LedgerLine) -> bool| {
            let mut sum = CallFigures::default();
            let wanted = lines().filter(|line| is_wanted(line));
            wanted.for_each(|line| sum.add(&CallFigures::of_ledger(&line.figures)));
            sum
        };
        let of_column = sum(&|line| line.is_own && line.column == column.name);
        let alike = sum(&|line| line.is_own && is_alike(&line.column));
        let candidates = [alike, model, sum(&|_| true)];
        let model = candidates.into_iter().find(|figures| figures.cells > 0).unwrap_or_default();
        Statistics { own, column: of_column, model }
    }

    /// A ratio from the best source that has it.
    pub(super) fn ratio(&self, ratio: impl Fn(&CallFigures) -> Option<f64>) -> Option<(f64, Basis)> {
        let Statistics { own, column, model } = self;
        let is_enough = own.cells >= ENOUGH || column.cells < own.cells;
        let first = ratio(own).filter(|_| is_enough);
        let of_column = first.or_else(|| ratio(column)).or_else(|| ratio(own));
        let of_column = of_column.map(|found| (found, Basis::Column));
        of_column.or_else(|| ratio(model).map(|found| (found, Basis::Model)))
    }
}

/// The recorded replies to a column, in all rows that were visited.
fn recorded(run: &DryRun, column: &ColumnForecast) -> CallFigures {
    let mut figures = CallFigures::of(&column.recorded);
    if let Some(sampled) = run.sample_of(&column.name) {
        figures.add(&CallFigures::of(&sampled.recorded));
    }
    figures
}

impl CallFigures {
    fn of(sum: &RecordedSum) -> CallFigures {
        CallFigures {
            cells: sum.cells,
            calls: sum.calls,
            prompt_bytes: sum.request_bytes,
            first_bytes: sum.first_bytes,
            input_tokens: sum.input_tokens,
            output_tokens: sum.output_tokens,
            timed_calls: sum.timed_calls,
            took_ms: sum.took_ms,
        }
    }

    fn of_ledger(figures: &Figures) -> CallFigures {
        CallFigures {
            cells: figures.cells,
            calls: figures.calls,
            prompt_bytes: figures.prompt_bytes,
            first_bytes: 0,
            input_tokens: figures.input_tokens,
            output_tokens: figures.output_tokens,
            timed_calls: figures.calls,
            took_ms: figures.took_ms,
        }
    }

    fn add(&mut self, other: &CallFigures) {
        self.cells += other.cells;
        self.calls += other.calls;
        self.prompt_bytes += other.prompt_bytes;
        self.first_bytes += other.first_bytes;
        self.input_tokens += other.input_tokens;
        self.output_tokens += other.output_tokens;
        self.timed_calls += other.timed_calls;
        self.took_ms += other.took_ms;
    }

    pub(super) fn calls_per_cell(&self) -> Option<f64> {
        quotient(self.calls, self.cells)
    }

    pub(super) fn tokens_per_byte(&self) -> Option<f64> {
        quotient(self.input_tokens, self.prompt_bytes)
    }

    pub(super) fn input_per_call(&self) -> Option<f64> {
        quotient(self.input_tokens, self.calls)
    }

    pub(super) fn output_per_call(&self) -> Option<f64> {
        quotient(self.output_tokens, self.calls)
    }

    pub(super) fn bytes_per_call(&self) -> Option<f64> {
        quotient(self.prompt_bytes, self.calls)
    }

    pub(super) fn first_bytes_per_cell(&self) -> Option<f64> {
        quotient(self.first_bytes, self.cells).filter(|bytes| *bytes > 0.0)
    }

    pub(super) fn seconds_per_call(&self) -> Option<f64> {
        quotient(self.took_ms, self.timed_calls).map(|millis| millis / 1e3)
    }

    /// The length of a further request of a cell, as a multiple of its first one.
    pub(super) fn further_length(&self) -> Option<f64> {
        let first = self.first_bytes_per_cell()?;
        let further =
            quotient(self.prompt_bytes.checked_sub(self.first_bytes)?, self.calls.checked_sub(self.cells)?);
        further.map(|further| further / first)
    }
}

/// `None` for a divisor of zero.
pub(super) fn quotient(dividend: u64, divisor: u64) -> Option<f64> {
    (divisor > 0).then(|| dividend as f64 / divisor as f64)
}
