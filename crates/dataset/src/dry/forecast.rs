//! The outcome of a dry run, by cell and by column.

use anabranch_value::Value;

use super::foreseen::{CallRequest, ForeseenCall};
use crate::estimate::Totals;
use crate::fault::Fault;
use crate::output::{Figures, StageReport};
use crate::progress::ColumnSnapshot;

/// The forecast of one cell.
#[derive(Debug)]
pub struct CellForecast<'a> {
    /// The row's stable number.
    pub row: u64,
    /// The column, or the first of those that its generator fills.
    pub column: &'a str,
    /// The aliases of the models that the column asks.
    pub models: &'a [String],
    pub state: CellState,
    /// The known calls of the cell, and the first one that is lacking.
    pub calls: &'a [ForeseenCall],
    /// The fault of a cell that fails.
    pub fault: Option<&'a Fault>,
    /// Whether the cell may be skipped: its condition, or that of a column that it reads, depends on an unknown value.
    pub may_be_skipped: bool,
}

/// The state of a cell in a dry run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CellState {
    /// Its value needs no model, and is known.
    Computed,
    /// The journal has all of its replies.
    Reused,
    /// The journal lacks a reply to its request.
    Lacking,
    /// It reads an unknown value, or a dry run does not compute it.
    Unknown,
    Skipped,
    /// It has no value, because of a fault that the recorded replies show or that needs no model.
    Failed,
}

/// The cells of a column in a dry run.
#[derive(Clone, Debug, Default)]
pub struct ColumnForecast {
    /// The column, or the first of those that its generator fills.
    pub name: String,
    /// The aliases of the models that it asks.
    pub models: Vec<String>,
    /// The columns that it reads.
    pub reads: Vec<String>,
    /// The columns that its generator fills.
    pub fills: Vec<String>,
    /// Cells of rows that are on disk and stay. The other counts do not include them.
    pub on_disk: u64,
    pub computed: u64,
    pub reused: u64,
    /// Cells whose request is known and has no reply.
    pub lacking: u64,
    /// Cells among them in rows that the earlier build in the folder did not have.
    pub lacking_new_rows: u64,
    /// Cells that depend on an unknown value.
    pub unknown: u64,
    pub skipped: u64,
    pub failed: u64,
    /// The lacking cells that may turn out to be skipped.
    pub lacking_may_be_skipped: u64,
    /// The unknown cells that may turn out to be skipped.
    pub unknown_may_be_skipped: u64,
    /// The lacking requests: one per cell, or one per text.
    pub lacking_requests: RequestSizes,
    /// The recorded replies to requests of the column.
    pub recorded: RecordedSum,
    /// Known values of the column.
    pub values: ValueSizes,
}

/// Requests and their length.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RequestSizes {
    pub count: u64,
    pub bytes: u64,
}

/// The recorded replies of a column.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RecordedSum {
    /// Cells whose replies are all recorded, failed ones included.
    pub cells: u64,
    pub calls: u64,
    /// The length of the requests, in bytes.
    pub request_bytes: u64,
    /// The length of the first request of each cell.
    pub first_bytes: u64,
    pub input_tokens: u64,
    pub output_tokens: u64,
    /// Calls whose time is recorded.
    pub timed_calls: u64,
    pub took_ms: u64,
}

/// Values and their length as text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ValueSizes {
    pub count: u64,
    pub bytes: u64,
}

/// The outcome of a dry run.
#[derive(Clone, Debug, Default)]
pub struct DryRun {
    pub rows: u64,
    /// Rows that are on disk and stay as they are. They are not among the cells of the columns.
    pub rows_on_disk: u64,
    /// The folder holds a complete build of the same inputs and the same number of rows.
    pub is_complete: bool,
    /// The inputs that differ from the dataset in the folder. A build must replace it.
    pub differ: Vec<String>,
    /// The columns in the order in which they were declared.
    pub columns: Vec<ColumnForecast>,
    /// The rows that recorded replies, or columns without a model, drop.
    pub dropped: u64,
    /// A digest of the inputs.
    pub inputs_digest: String,
    /// The columns in row groups on disk, as a sample of the build.
    pub sampled: Vec<ColumnForecast>,
    /// The build in the folder, of the same or of other inputs.
    pub earlier: Option<EarlierBuild>,
    pub models: Vec<ModelFacts>,
    /// The spend of the build that would be continued.
    pub spent: Totals,
    /// The recorded calls of all builds in the journal.
    pub ledger: Vec<LedgerLine>,
}

/// Calls that the journal recorded for a column of a dataset.
#[derive(Clone, Debug, Default)]
pub struct LedgerLine {
    /// Whether the column belongs to this dataset.
    pub is_own: bool,
    pub column: String,
    /// The model, as `provider/model`.
    pub model: String,
    pub figures: Figures,
}

/// The build that is in a folder.
#[derive(Clone, Debug, Default)]
pub struct EarlierBuild {
    pub rows: u64,
    /// The names of its columns.
    pub columns: Vec<String>,
    /// The cells of its last run, by column.
    pub cells: Vec<ColumnSnapshot>,
    /// The stages that have ended.
    pub stages: Vec<StageReport>,
}

/// A model behind an alias.
#[derive(Clone, Debug, Default)]
pub struct ModelFacts {
    pub alias: String,
    pub provider: String,
    pub model: String,
    /// Requests in flight at the same time, as configured.
    pub parallel: u32,
    /// The limit that an earlier build learned, or that a build starts with.
    pub limit: u32,
}

impl DryRun {
    /// A column in the sample.
    pub(crate) fn sample_of(&self, name: &str) -> Option<&ColumnForecast> {
        self.sampled.iter().find(|column| column.name == name)
    }
}

impl ColumnForecast {
    /// All cells that were looked at. Cells of rows that were dropped are not among them.
    pub fn cells(&self) -> u64 {
        self.computed + self.reused + self.lacking + self.unknown + self.skipped + self.failed
    }

    pub(super) fn note(&mut self, cell: &CellForecast<'_>, rows_before: u64) {
        let count = match cell.state {
            CellState::Computed => &mut self.computed,
            CellState::Reused => &mut self.reused,
            CellState::Lacking => &mut self.lacking,
            CellState::Unknown => &mut self.unknown,
            CellState::Skipped => &mut self.skipped,
            CellState::Failed => &mut self.failed,
        };
        *count += 1;
        match cell.state {
            CellState::Lacking => {
                self.lacking_may_be_skipped += u64::from(cell.may_be_skipped);
                self.lacking_new_rows += u64::from(cell.row >= rows_before);
            }
            CellState::Unknown => self.unknown_may_be_skipped += u64::from(cell.may_be_skipped),
            CellState::Reused | CellState::Failed if let Some(first) = cell.calls.first() => {
                self.recorded.cells += 1;
                self.recorded.first_bytes += first.asked.bytes();
            }
            _ => {}
        }
        cell.calls.iter().for_each(|call| self.note_call(cell.state, call));
    }

    fn note_call(&mut self, state: CellState, call: &ForeseenCall) {
        let is_text = matches!(call.asked, CallRequest::Text(_));
        // A conversation that is known in part says nothing about whole ones.
        if state != CellState::Lacking
            && let Some(recorded) = &call.recorded
        {
            let sum = &mut self.recorded;
            sum.calls += 1;
            sum.request_bytes += call.asked.bytes();
            sum.input_tokens += recorded.usage.input_tokens;
            sum.output_tokens += recorded.usage.output_tokens;
            if let Some(took) = recorded.took {
                sum.timed_calls += 1;
                sum.took_ms += took.as_millis() as u64;
            }
        }
        // A cell of several texts is embedded whole, also if some of them are known.
        if state == CellState::Lacking && (is_text || call.recorded.is_none()) {
            self.lacking_requests.count += 1;
            self.lacking_requests.bytes += call.asked.bytes();
        }
    }
}

impl ValueSizes {
    pub(super) fn note(&mut self, value: &Value) {
        self.count += 1;
        self.bytes += length(value);
    }
}

/// The length of a value as it would be rendered, about.
fn length(value: &Value) -> u64 {
    match value {
        Value::Null | Value::Bool(_) | Value::Int(_) | Value::Float(_) => 5,
        Value::Text(text) => text.len() as u64,
        Value::List(items) => 2 + items.iter().map(|item| length(item) + 2).sum::<u64>(),
        Value::Map(entries) => {
            2 + entries.iter().map(|(name, item)| name.len() as u64 + length(item) + 6).sum::<u64>()
        }
    }
}
