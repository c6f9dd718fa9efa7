//! The state of a build, written by it every second and read from outside.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::time::{Duration, Instant, SystemTime};

use anabranch_engine::limit::LimitStatus;
use serde::{Deserialize, Serialize};

use super::files::{FileError, cannot, write_json};
use super::lock::Lock;
use super::metadata::{ColumnSpend, Metadata, ModelMetadata};
use super::spend::SpendLine;
use crate::progress::Snapshot;

pub(super) const STATUS: &str = "status.json";

/// The state of a build as it was last written.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct BuildStatus {
    pub state: BuildState,
    /// The identity of the build, which it keeps while it is continued.
    #[serde(default)]
    pub build: String,
    /// The time of all runs of the build.
    pub elapsed_ms: u64,
    pub progress: Snapshot,
    pub limits: Vec<LimitReport>,
    /// Calls, tokens and money by model alias, since the build began.
    pub models: BTreeMap<String, ModelMetadata>,
    /// The same by column.
    #[serde(default)]
    pub spent: BTreeMap<String, ColumnSpend>,
    /// The same by column and model.
    #[serde(default)]
    pub calls: Vec<SpendLine>,
    /// The stage that is built now, if there are several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stage: Option<StageView>,
    /// The reason why it stopped or failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The flag of the exhausted budget. A higher one lets the build continue.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub raise: Option<String>,
}

/// A stage among several.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StageView {
    pub name: String,
    /// From 1.
    pub number: usize,
    /// The number of stages.
    pub count: usize,
}

/// The state of a build.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BuildState {
    #[default]
    Running,
    Complete,
    /// Ended early, with everything in flight saved.
    Stopped,
    Failed,
    /// Its process ended without a word.
    Interrupted,
}

/// The limit of a model.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LimitReport {
    pub name: String,
    pub limit: u32,
    pub in_flight: u32,
    /// The rest of the pause that the server requested.
    pub cooling_ms: Option<u64>,
    pub calls: u64,
    /// Calls that the server refused (429).
    pub refused: u64,
    pub requests_left: Option<u64>,
    pub tokens_left: Option<u64>,
}

/// The state of an output folder as another process sees it.
#[derive(Clone, Debug)]
pub struct FolderStatus {
    /// The state at the time `written`.
    pub build: BuildStatus,
    pub metadata: Metadata,
    /// The process that builds into the folder now.
    pub process: Option<u32>,
    /// The age of the build's last report.
    pub age: Option<Duration>,
}

impl FolderStatus {
    /// Reads the state of the build in a folder, running or not. Blocks.
    pub fn read(folder: &Path) -> Result<FolderStatus, FileError> {
        let path = folder.join(STATUS);
        let mut build = read_status(folder)?;
        let process = Lock::holder(folder).map_err(cannot("look at", folder))?;
        if process.is_none() && build.state == BuildState::Running {
            build.state = BuildState::Interrupted;
        }
        let metadata = Metadata::read(folder)?.unwrap_or_default();
        let written = fs::metadata(&path).and_then(|file| file.modified()).ok();
        Ok(FolderStatus { build, metadata, process, age: written.and_then(age) })
    }
}

#[allow(clippy::disallowed_methods, reason = "the age of a file that another process wrote")]
fn age(written: SystemTime) -> Option<Duration> {
    SystemTime::now().duration_since(written).ok()
}

impl LimitReport {
    pub(crate) fn new(name: String, status: &LimitStatus, now: Instant) -> LimitReport {
        let cooling = status.cooling_until.map(|until| until.saturating_duration_since(now));
        LimitReport {
            name,
            limit: status.limit,
            in_flight: status.in_flight,
            cooling_ms: cooling.map(|rest| rest.as_millis() as u64),
            calls: status.calls,
            refused: status.refused,
            requests_left: status.requests_left,
            tokens_left: status.tokens_left,
        }
    }
}

/// Reads the state as it was last written. Blocks.
pub(crate) fn read_status(folder: &Path) -> Result<BuildStatus, FileError> {
    let path = folder.join(STATUS);
    let text = fs::read_to_string(&path).map_err(cannot("read", &path))?;
    serde_json::from_str(&text).map_err(|error| cannot("read", &path)(error.into()))
}

/// Writes the state. Blocks.
pub(crate) fn write_status(folder: &Path, status: &BuildStatus) -> Result<(), FileError> {
    write_json(&folder.join(STATUS), status)
}
