//! The saved plan of a build: its expected calls, tokens and cost.

use std::io;
use std::path::Path;

use anabranch_dataset::output::FileError;
use serde::{Deserialize, Serialize};

/// The expectation of a build, from `plan.json`.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Estimated {
    pub rows: u64,
    pub columns: Vec<ColumnEstimate>,
    pub calls: f64,
    pub input_tokens: f64,
    pub output_tokens: f64,
    pub cost: Option<f64>,
    pub seconds: Option<f64>,
}

/// The expectation of a column.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct ColumnEstimate {
    pub name: String,
    pub calls: f64,
    pub input_tokens: f64,
    pub output_tokens: f64,
    pub cost: Option<f64>,
}

impl Estimated {
    /// Reads the plan in a folder; `None` if it has none.
    pub(super) fn read(folder: &Path) -> Result<Option<Estimated>, FileError> {
        let path = folder.join("plan.json");
        let text = match std::fs::read_to_string(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            text => text.map_err(|cause| super::unreadable(&path, cause))?,
        };
        serde_json::from_str(&text).map(Some).map_err(|error| super::unreadable(&path, error.into()))
    }

    /// The expectation of the column with this name.
    pub fn column(&self, name: &str) -> Option<&ColumnEstimate> {
        self.columns.iter().find(|column| column.name == name)
    }
}
