//! Dry runs: builds that call no model.
//!
//! The same grid runs, row group by row group. A cell whose replies the journal has gets its true value, so what depends on
//! it is followed with true values: a changed prompt whose replies come out equal changes nothing behind it. A cell whose
//! reply is lacking is *unknown*, and so is every cell that reads it. Skip conditions, expressions, code validation and
//! custom columns without models run for real on known values. Nothing is written, and no server is contacted.

mod folder;
mod forecast;
mod foreseen;
mod run;
mod stage;
mod trace;
mod watch;

pub use forecast::{
    CellForecast, CellState, ColumnForecast, DryRun, EarlierBuild, LedgerLine, ModelFacts, RecordedSum,
    RequestSizes, ValueSizes,
};
pub use foreseen::{Answer, CallRequest, ForeseenCall, ForeseenOutcome, ForeseenRow, RecordedCall};
pub use trace::{RowTrace, TracedCell};
pub(crate) use watch::DryWatch;

/// The part of a generator in dry runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum InDryRun {
    /// The values of a row depend on this row alone: it is called for the rows whose inputs are known.
    ByRow,
    /// The values of a row group depend on all of its rows: it is called if the inputs of all of them are known. The same
    /// as `ByRow` for a generator of single cells.
    #[default]
    ByGroup,
    /// It calls a server, or has state. It is not called, and its values are unknown.
    NotCalled,
}
