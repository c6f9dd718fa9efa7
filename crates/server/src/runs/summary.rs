//! The summary of a run, for lists.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::{RunId, from_millis, millis};

/// The workload of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RunKind {
    /// A plan that answers a request.
    Plan,
    /// A recipe whose value is computed.
    Recipe,
    /// A dataset that is built.
    Dataset,
}

/// The state of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RunState {
    /// It has not ended.
    Running,
    /// It ended, and nothing is missing from its result.
    Complete,
    /// It ended, and parts of its result are missing or replaced.
    Degraded,
    /// It failed.
    Failed,
    /// It was cancelled, or the server shut down.
    Stopped,
}

impl RunKind {
    /// All kinds.
    pub const ALL: [RunKind; 3] = [RunKind::Plan, RunKind::Recipe, RunKind::Dataset];

    /// The name of the kind.
    pub fn word(self) -> &'static str {
        match self {
            RunKind::Plan => "plan",
            RunKind::Recipe => "recipe",
            RunKind::Dataset => "dataset",
        }
    }
}

impl RunState {
    /// All states.
    pub const ALL: [RunState; 5] =
        [RunState::Running, RunState::Complete, RunState::Degraded, RunState::Failed, RunState::Stopped];

    /// The name of the state.
    pub fn word(self) -> &'static str {
        match self {
            RunState::Running => "running",
            RunState::Complete => "complete",
            RunState::Degraded => "degraded",
            RunState::Failed => "failed",
            RunState::Stopped => "stopped",
        }
    }
}

impl fmt::Display for RunKind {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.word())
    }
}

impl fmt::Display for RunState {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.word())
    }
}

impl FromStr for RunKind {
    type Err = String;

    fn from_str(text: &str) -> Result<RunKind, String> {
        let found = RunKind::ALL.into_iter().find(|kind| kind.word() == text);
        found.ok_or_else(|| {
            format!("{} is not a kind of run: plan, recipe, dataset", anabranch_text::quote(text))
        })
    }
}

impl FromStr for RunState {
    type Err = String;

    fn from_str(text: &str) -> Result<RunState, String> {
        let found = RunState::ALL.into_iter().find(|state| state.word() == text);
        found.ok_or_else(|| {
            let text = anabranch_text::quote(text);
            format!("{text} is not a state of a run: running, complete, degraded, failed, stopped")
        })
    }
}

/// The summary of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunSummary {
    /// The run.
    pub id: RunId,
    /// Its workload.
    pub kind: RunKind,
    /// The name of the plan, recipe or dataset.
    #[serde(serialize_with = "write_name", deserialize_with = "read_name")]
    pub name: Arc<str>,
    /// Its state.
    pub state: RunState,
    /// The time of its start.
    #[serde(rename = "started_ms", serialize_with = "write_time", deserialize_with = "read_time")]
    pub started: SystemTime,
    /// Its duration, once it has ended.
    #[serde(rename = "duration_ms", serialize_with = "write_duration", deserialize_with = "read_duration")]
    pub duration: Option<Duration>,
    /// The number of ledger entries: parts of the result that are missing or replaced.
    pub degraded: u32,
    /// The number of failures.
    pub failures: u32,
    /// The number of rows of its result.
    pub rows: Option<u64>,
    /// Whether its details are kept.
    pub has_detail: bool,
}

impl RunSummary {
    pub(super) fn beginning(id: RunId, kind: RunKind, name: Arc<str>, started: SystemTime) -> RunSummary {
        RunSummary {
            id,
            kind,
            name,
            state: RunState::Running,
            started,
            duration: None,
            degraded: 0,
            failures: 0,
            rows: None,
            has_detail: false,
        }
    }
}

/// A finished run, for [`Runs::record`](super::Runs::record).
#[derive(Clone, Debug)]
pub struct EndedRun {
    /// Its workload.
    pub kind: RunKind,
    /// The name of the plan, recipe or dataset.
    pub name: Arc<str>,
    /// Its final state.
    pub state: RunState,
    /// Its duration until now.
    pub duration: Duration,
    /// The number of ledger entries.
    pub degraded: u32,
    /// The number of failures.
    pub failures: u32,
    /// The number of rows of its result.
    pub rows: Option<u64>,
}

impl EndedRun {
    pub(super) fn summary(self, id: RunId, has_detail: bool) -> RunSummary {
        let now = super::now();
        RunSummary {
            id,
            kind: self.kind,
            name: self.name,
            state: self.state,
            started: now.checked_sub(self.duration).unwrap_or(now),
            duration: Some(self.duration),
            degraded: self.degraded,
            failures: self.failures,
            rows: self.rows,
            has_detail,
        }
    }
}

/// The filter and length of a list of runs.
#[derive(Clone, Debug, Default)]
pub struct RunFilter {
    /// Only runs of this kind.
    pub kind: Option<RunKind>,
    /// Only runs with this name.
    pub name: Option<String>,
    /// Only runs in this state.
    pub state: Option<RunState>,
    /// Only runs with smaller ids.
    pub before: Option<RunId>,
    /// The maximum number of runs.
    pub limit: usize,
}

impl RunFilter {
    /// Whether a run matches the filter.
    pub fn passes(&self, run: &RunSummary) -> bool {
        self.kind.is_none_or(|kind| run.kind == kind)
            && self.state.is_none_or(|state| run.state == state)
            && self.before.is_none_or(|before| run.id < before)
            && self.name.as_deref().is_none_or(|name| *run.name == *name)
    }
}

fn write_name<S: Serializer>(name: &Arc<str>, out: S) -> Result<S::Ok, S::Error> {
    out.serialize_str(name)
}

fn read_name<'de, D: Deserializer<'de>>(text: D) -> Result<Arc<str>, D::Error> {
    String::deserialize(text).map(Arc::from)
}

fn write_time<S: Serializer>(time: &SystemTime, out: S) -> Result<S::Ok, S::Error> {
    out.serialize_u64(time.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis() as u64))
}

fn read_time<'de, D: Deserializer<'de>>(text: D) -> Result<SystemTime, D::Error> {
    let millis = u64::deserialize(text)?;
    let time = UNIX_EPOCH.checked_add(Duration::from_millis(millis));
    time.ok_or_else(|| serde::de::Error::custom("the time is too late"))
}

fn write_duration<S: Serializer>(duration: &Option<Duration>, out: S) -> Result<S::Ok, S::Error> {
    duration.map(millis).serialize(out)
}

fn read_duration<'de, D: Deserializer<'de>>(text: D) -> Result<Option<Duration>, D::Error> {
    Ok(Option::<f64>::deserialize(text)?.map(from_millis))
}
