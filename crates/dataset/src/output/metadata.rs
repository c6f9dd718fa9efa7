//! The metadata of a dataset.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::files::{FileError, cannot};
use super::spend::SpendLine;
use crate::estimate::PlanCheck;
use crate::stages::StepReport;

pub(super) const METADATA: &str = "metadata.json";

/// The metadata of a dataset, in `metadata.json`. Names are those of DataDesigner where it has them.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Metadata {
    pub dataset_name: String,
    /// The version of the program that built it.
    pub anabranch_version: String,
    pub target_num_records: u64,
    /// The requested number of rows, of the first stage if there are several.
    pub asked_num_records: u64,
    pub actual_num_records: u64,
    /// The rows that were dropped because a cell failed, including those of earlier stages.
    pub dropped_num_records: u64,
    /// Rows that were not accepted.
    pub rejected_num_records: u64,
    /// The rows that were accepted after there were enough.
    pub surplus_num_records: u64,
    pub total_num_batches: u64,
    pub num_completed_batches: u64,
    pub buffer_size: u64,
    /// The seed of all random values.
    pub seed: u64,
    pub file_paths: Vec<String>,
    pub columns: Vec<ColumnMetadata>,
    /// Failed cells by column, then by class, those of earlier stages too.
    pub errors: BTreeMap<String, BTreeMap<String, u64>>,
    /// Calls, tokens and money by model alias, since the build began.
    pub models: BTreeMap<String, ModelMetadata>,
    /// Whether the build is complete.
    pub is_complete: bool,
    /// Digests of everything that decides about the values, by name.
    pub inputs: BTreeMap<String, String>,
    /// The digest of the previous stage's rows.
    pub input_digest: String,
    /// The stages up to this one, if there are several, or some rows were not accepted.
    pub stages: Vec<StageReport>,
    /// The number of requested retries of failed rows.
    pub retry_rounds: u32,
    /// The identity of the build, which it keeps while it is continued.
    pub build: String,
    /// Calls by column and model, since the build began.
    pub calls: Vec<SpendLine>,
    /// Calls, tokens and money by column, since the build began. A continued build adds to them.
    pub spent: BTreeMap<String, ColumnSpend>,
    /// The duration of the build, over all of its runs.
    pub elapsed_ms: u64,
    /// The plan that was made for the build, compared with its actual spend.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub plan: Option<PlanCheck>,
}

impl Metadata {
    /// True if row groups are missing.
    pub(crate) fn is_unfinished(&self) -> bool {
        self.num_completed_batches < self.total_num_batches
    }

    /// The metadata in a folder; `None` if it has none. Blocks.
    pub fn read(folder: &Path) -> Result<Option<Metadata>, FileError> {
        let path = folder.join(METADATA);
        let text = match std::fs::read_to_string(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            text => text.map_err(cannot("read", &path))?,
        };
        serde_json::from_str(&text).map(Some).map_err(|error| cannot("read", &path)(error.into()))
    }
}

/// The rows of a stage.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct StageReport {
    pub name: String,
    /// The folder of the stage below the output folder; empty for the last one.
    pub folder: String,
    /// Rows that were generated.
    pub candidates: u64,
    /// Rows that were kept.
    pub rows: u64,
    /// Rows that were dropped because a cell failed.
    pub dropped: u64,
    /// Rows that were not accepted.
    pub rejected: u64,
    /// Rows that were accepted when there were enough already.
    pub surplus: u64,
    /// The steps behind it.
    pub steps: Vec<StepReport>,
    /// Failed cells of its columns, by column and then by class.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub errors: BTreeMap<String, BTreeMap<String, u64>>,
}

/// A column in the metadata.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ColumnMetadata {
    pub name: String,
    /// Its type in the Parquet files.
    #[serde(rename = "type")]
    pub column_type: String,
    /// Whether it is among the dropped columns instead of the rows.
    pub dropped: bool,
}

/// The calls, tokens and money of a model.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ModelMetadata {
    pub model: String,
    /// Calls that were made and answered.
    pub calls: u64,
    /// The recorded replies that replaced calls.
    pub reused: u64,
    pub input_tokens: u64,
    pub output_tokens: u64,
    /// Input tokens that the server had in its cache.
    pub cached_tokens: u64,
    /// By the price table; `None` if it has no price of the model.
    pub cost: Option<f64>,
}

/// The calls, tokens and money of a column.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ColumnSpend {
    /// The alias of its model.
    pub alias: String,
    pub model: String,
    /// Calls that were made and answered.
    pub calls: u64,
    /// Replies of the journal that took the place of calls.
    pub reused: u64,
    pub input_tokens: u64,
    pub output_tokens: u64,
    /// Input tokens that the server had in its cache.
    pub cached_tokens: u64,
    /// The time of all calls together.
    pub took_ms: u64,
    /// By the price table; `None` if it has no price of the model.
    pub cost: Option<f64>,
}
