//! The metadata of a dataset.

use std::collections::BTreeMap;

use serde::Serialize;

/// The metadata of a dataset, in `metadata.json`. Names are those of DataDesigner where it has them.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Metadata {
    pub dataset_name: String,
    /// The version of the program that built it.
    pub anabranch_version: &'static str,
    pub target_num_records: u64,
    pub actual_num_records: u64,
    /// Rows that were dropped because a cell failed.
    pub dropped_num_records: u64,
    pub total_num_batches: u64,
    pub num_completed_batches: u64,
    pub buffer_size: u64,
    /// The seed of all random values.
    pub seed: u64,
    pub file_paths: Vec<String>,
    pub columns: Vec<ColumnMetadata>,
    /// Failed cells by column, then by class.
    pub errors: BTreeMap<String, BTreeMap<String, u64>>,
    /// Calls and tokens by model alias.
    pub models: BTreeMap<String, ModelMetadata>,
    /// Whether the build is complete.
    pub is_complete: bool,
}

/// A column in the metadata.
#[derive(Clone, Debug, Serialize)]
pub struct ColumnMetadata {
    pub name: String,
    /// Its type in the Parquet files.
    #[serde(rename = "type")]
    pub column_type: String,
    /// Whether it is among the dropped columns instead of the rows.
    pub dropped: bool,
}

/// The calls and tokens of a model.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ModelMetadata {
    pub model: String,
    pub calls: u64,
    pub input_tokens: u64,
    pub output_tokens: u64,
}
