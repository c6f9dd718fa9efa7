//! The timeline of a run as JSON, and its drawings.

use anabranch_engine::NodeId;
use anabranch_engine::event::{FailureReason, Placement, RunEnding, RunId as EngineRun};
use anabranch_engine::timeline::{Category, Error, NodeOutcome, NodeRecord, NodeTrack, Record, Timeline};
use serde::{Deserialize, Serialize};

use super::{RunDetail, RunGraph, from_millis, millis};

/// The times at which each node of a run was queued, started and ended, in milliseconds from the start of the run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RunTimeline {
    /// The duration of the run.
    pub wall_ms: f64,
    /// The end of the run: `complete`, `failed`, `deadline`, `cut`, `drained`, `dropped`.
    pub ending: Option<String>,
    /// The number of events that were lost, so that times may be missing.
    #[serde(default)]
    pub lost: u64,
    /// The nodes, by their numbers.
    pub nodes: Vec<TimelineNode>,
    /// The ids of the nodes of the critical path, in order.
    pub path: Vec<String>,
}

/// The times of one node.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TimelineNode {
    /// `n` followed by its number.
    pub id: String,
    /// The time at which its last input ended.
    pub queued_ms: Option<f64>,
    /// The time at which its first attempt started.
    pub start_ms: Option<f64>,
    /// The time at which it ended.
    pub end_ms: Option<f64>,
    /// `finished`, `failed`, `fell_back`, `dropped`, `open` or `not_started`.
    pub state: String,
    /// The reason why it failed, fell back or was dropped: `error`, `panic`, `timeout`, `deadline`, `abandoned`, or the
    /// id of the input that caused the drop.
    pub reason: Option<String>,
    /// Its own timeout.
    pub timeout_ms: Option<f64>,
    /// Whether it is on the critical path.
    pub critical: bool,
    /// The number of attempts.
    #[serde(default)]
    pub attempts: u32,
    /// The place where it ran: `inline`, `future`, `spawned`, `pool`, `blocking`.
    #[serde(default)]
    pub place: Option<String>,
    /// The time that it waited for inputs.
    #[serde(default)]
    pub inputs_ms: f64,
    /// Its time by category.
    #[serde(default)]
    pub spans: Vec<TimelineSpan>,
}

/// A part of the time of a node: its category (`slot`, `limit`, `retry`, `queue`, `io`, `cpu`), its start and its end.
pub type TimelineSpan = (String, f64, f64);

impl From<&Timeline> for RunTimeline {
    fn from(timeline: &Timeline) -> RunTimeline {
        let record = timeline.record();
        let mut is_critical = vec![false; record.nodes.len()];
        record.path.iter().for_each(|node| is_critical[node.index()] = true);
        let node = |(number, node): (usize, &NodeRecord)| {
            let NodeTrack { ready, started, ended, attempts, place, outcome, .. } = node.track;
            let (state, reason) = words(outcome);
            TimelineNode {
                id: RunGraph::id(NodeId(number as u32)),
                queued_ms: ready.map(millis),
                start_ms: started.map(millis),
                end_ms: ended.map(millis),
                state: state.to_owned(),
                reason,
                timeout_ms: node.timeout.map(millis),
                critical: is_critical[number],
                attempts,
                place: place.and_then(|place| word(&PLACES, place)).map(str::to_owned),
                inputs_ms: millis(node.before_spans()),
                spans: node
                    .spans
                    .iter()
                    .map(|(category, from, to)| (category.key().to_owned(), millis(*from), millis(*to)))
                    .collect(),
            }
        };
        RunTimeline {
            wall_ms: millis(record.wall),
            ending: record.ending.and_then(|ending| word(&ENDINGS, ending)).map(str::to_owned),
            lost: record.lost,
            nodes: record.nodes.iter().enumerate().map(node).collect(),
            path: record.path.iter().map(|node| RunGraph::id(*node)).collect(),
        }
    }
}

impl RunDetail {
    /// The timeline for drawings; `None` if the details have no timeline.
    pub fn drawable(&self) -> Option<Result<Timeline, Error>> {
        let timeline = self.timeline.as_ref()?;
        let record = Record {
            run: EngineRun(0),
            ending: timeline.ending.as_deref().and_then(|word| named(&ENDINGS, word)),
            lost: timeline.lost,
            wall: from_millis(timeline.wall_ms),
            deadline: self.deadline_ms.map(from_millis),
            nodes: timeline.nodes.iter().map(TimelineNode::record).collect(),
            path: timeline.path.iter().filter_map(|id| number(id)).collect(),
        };
        Some(Timeline::from_record(&record))
    }

    /// The name of a node in drawings.
    pub fn node_name(&self, node: NodeId) -> String {
        let named = self.graph.nodes.get(node.index());
        named.map_or_else(|| RunGraph::id(node), |node| node.name.clone())
    }
}

impl TimelineNode {
    fn record(&self) -> NodeRecord {
        let category = |key: &str| Category::from_key(key).unwrap_or(Category::Unknown);
        let spans: Vec<_> = self
            .spans
            .iter()
            .map(|(key, from, to)| (category(key), from_millis(*from), from_millis(*to)))
            .collect();
        let track = NodeTrack {
            ready: self.queued_ms.map(from_millis),
            started: self.start_ms.map(from_millis),
            ended: self.end_ms.map(from_millis),
            attempts: self.attempts,
            place: self.place.as_deref().and_then(|word| named(&PLACES, word)),
            outcome: self.outcome(),
            spent: NodeRecord::spent(&spans, from_millis(self.inputs_ms)),
        };
        NodeRecord { track, timeout: self.timeout_ms.map(from_millis), spans }
    }

    fn outcome(&self) -> NodeOutcome {
        let reason = || self.reason.as_deref().and_then(|word| named(&REASONS, word));
        match &*self.state {
            "finished" => NodeOutcome::Finished,
            "fell_back" => NodeOutcome::FellBack(reason().unwrap_or(FailureReason::Error)),
            "failed" => NodeOutcome::Failed(reason().unwrap_or(FailureReason::Error)),
            "dropped" => NodeOutcome::Dropped(self.reason.as_deref().and_then(number)),
            "open" => NodeOutcome::Open,
            _ => NodeOutcome::NotStarted,
        }
    }
}

fn words(outcome: NodeOutcome) -> (&'static str, Option<String>) {
    let text = |reason| word(&REASONS, reason).map(str::to_owned);
    match outcome {
        NodeOutcome::Finished => ("finished", None),
        NodeOutcome::FellBack(reason) => ("fell_back", text(reason)),
        NodeOutcome::Failed(reason) => ("failed", text(reason)),
        NodeOutcome::Dropped(input) => ("dropped", input.map(RunGraph::id)),
        NodeOutcome::Open => ("open", None),
        NodeOutcome::NotStarted => ("not_started", None),
    }
}

const REASONS: [(&str, FailureReason); 5] = [
    ("error", FailureReason::Error),
    ("panic", FailureReason::Panic),
    ("timeout", FailureReason::Timeout),
    ("deadline", FailureReason::Deadline),
    ("abandoned", FailureReason::Abandoned),
];

const PLACES: [(&str, Placement); 5] = [
    ("inline", Placement::Inline),
    ("future", Placement::Future),
    ("spawned", Placement::Spawned),
    ("pool", Placement::Pool),
    ("blocking", Placement::Blocking),
];

const ENDINGS: [(&str, RunEnding); 6] = [
    ("complete", RunEnding::Complete),
    ("failed", RunEnding::Failed),
    ("deadline", RunEnding::Deadline),
    ("cut", RunEnding::Cut),
    ("drained", RunEnding::Drained),
    ("dropped", RunEnding::Dropped),
];

fn word<T: Copy + PartialEq>(table: &[(&'static str, T)], value: T) -> Option<&'static str> {
    table.iter().find(|(_, listed)| *listed == value).map(|(word, _)| *word)
}

fn named<T: Copy>(table: &[(&str, T)], wanted: &str) -> Option<T> {
    table.iter().find(|(word, _)| *word == wanted).map(|(_, value)| *value)
}

/// The number of the node with this id.
fn number(id: &str) -> Option<NodeId> {
    id.strip_prefix('n')?.parse().ok().map(NodeId)
}
