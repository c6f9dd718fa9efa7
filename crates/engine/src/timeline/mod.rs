//! Where the time of a run went, from its events: what each node waited for and worked on, the critical path, and both
//! as an HTML page, an SVG image or a trace for Perfetto.
//!
//! The time of a node, from the end of its last input to its own end, is divided into [`Category`]s without gaps. So the
//! times along the critical path, plus the time outside of any node, add up to the time of the run.

mod spent;
mod build;
mod path;
mod escape;
mod scale;
mod lanes;
mod trace;
mod density;
mod bars;
mod summary;
mod svg;
mod html;

use std::time::Duration;

use crate::event::{FailureReason, ListenerItem, Placement, RunEnding, RunId};
use crate::graph::{Graph, NodeId};
pub use spent::{Category, TimeSpent};

/// What became of a run and its nodes; times count from the run's start.
pub struct Timeline {
    run: RunId,
    ending: Option<RunEnding>,
    lost: u64,
    wall: Duration,
    tracks: Vec<NodeTrack>,
    /// By node, then by time.
    spans: Vec<Span>,
    path: Vec<NodeId>,
    on_path: TimeSpent,
    over_all: TimeSpent,
}

/// What became of a node.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct NodeTrack {
    /// When its last input ended, if that was heard.
    pub ready: Option<Duration>,
    /// When its first attempt started.
    pub started: Option<Duration>,
    /// When it ended.
    pub ended: Option<Duration>,
    /// How often it started.
    pub attempts: u32,
    /// Where its last attempt was carried out.
    pub place: Option<Placement>,
    /// How it ended.
    pub outcome: NodeOutcome,
    /// Its time, from the run's start to its own end.
    pub spent: TimeSpent,
}

/// How a node ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NodeOutcome {
    /// It finished.
    Finished,
    /// A stand-in took its place.
    FellBack(FailureReason),
    /// It failed.
    Failed(FailureReason),
    /// It was dropped: because of this input, or because the workload asked for it.
    Dropped(Option<NodeId>),
    /// It was under way when the run, or the listening, ended.
    Open,
    /// Nothing was heard of it.
    NotStarted,
}

/// Why there is no timeline.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// No event of the run is among those given.
    #[error("nothing was heard of run {}", .0.0)]
    NoEvents(RunId),
    /// The events tell of another graph.
    #[error("the events are of a graph of at least {told} nodes, not of this one of {node_count}")]
    OtherGraph {
        /// The fewest nodes the run's graph has.
        told: u32,
        /// The nodes of the graph given.
        node_count: u32,
    },
}

/// A stretch of a node's time.
#[derive(Clone, Copy, Debug)]
struct Span {
    node: NodeId,
    category: Category,
    from: Duration,
    to: Duration,
}

impl Timeline {
    /// The timeline of `run`, a run of `graph`, from what was heard; events of other runs may be among it.
    pub fn new<G: Graph>(run: RunId, graph: &G, heard: &[ListenerItem]) -> Result<Timeline, Error> {
        build::build(run, graph, heard)
    }

    /// The run.
    pub fn run(&self) -> RunId {
        self.run
    }

    /// How the run ended; `None` while it goes on, or if that was lost.
    pub fn ending(&self) -> Option<RunEnding> {
        self.ending
    }

    /// How many events were lost, of this run or others.
    pub fn lost(&self) -> u64 {
        self.lost
    }

    /// From the run's start to its end, or to the last event heard.
    pub fn wall(&self) -> Duration {
        self.wall
    }

    /// What became of each node, by its number.
    pub fn tracks(&self) -> &[NodeTrack] {
        &self.tracks
    }

    /// The nodes that made the run take this long, in order: each is the input that its successor waited for last.
    pub fn critical_path(&self) -> &[NodeId] {
        &self.path
    }

    /// The time along the critical path; adds up to [`Timeline::wall`].
    pub fn on_path(&self) -> TimeSpent {
        self.on_path
    }

    /// The time of all nodes together.
    pub fn over_all(&self) -> TimeSpent {
        self.over_all
    }

    /// A trace that Perfetto and Chrome open, in JSON: every attempt of every node, and the critical path.
    pub fn trace(&self, name: &dyn Fn(NodeId) -> String) -> String {
        trace::write(self, name)
    }

    /// The timeline as one SVG file; above two thousand bars neighbours are merged into blocks.
    pub fn svg(&self, title: &str, name: &dyn Fn(NodeId) -> String) -> String {
        svg::write(self, title, name)
    }

    /// The timeline as one HTML file that zooms and pans, with the critical path as a table.
    pub fn html(&self, title: &str, name: &dyn Fn(NodeId) -> String) -> String {
        html::write(self, title, name)
    }

    fn track(&self, node: NodeId) -> &NodeTrack {
        &self.tracks[node.index()]
    }

    fn spans_of(&self, node: NodeId) -> &[Span] {
        let from = self.spans.partition_point(|span| span.node < node);
        let count = self.spans[from..].partition_point(|span| span.node == node);
        &self.spans[from..from + count]
    }
}

impl NodeOutcome {
    /// In words, given how to name a node.
    fn words(self, name: &dyn Fn(NodeId) -> String) -> String {
        match self {
            NodeOutcome::Finished => "finished".to_owned(),
            NodeOutcome::FellBack(reason) => format!("fell back after {}", cause(reason)),
            NodeOutcome::Failed(reason) => format!("failed: {}", cause(reason)),
            NodeOutcome::Dropped(None) => "dropped".to_owned(),
            NodeOutcome::Dropped(Some(input)) => format!("dropped because of {}", name(input)),
            NodeOutcome::Open => "under way".to_owned(),
            NodeOutcome::NotStarted => "never heard of".to_owned(),
        }
    }
}

fn cause(reason: FailureReason) -> &'static str {
    match reason {
        FailureReason::Error => "its own error",
        FailureReason::Panic => "a panic",
        FailureReason::Timeout => "its timeout",
        FailureReason::Deadline => "the run's deadline",
        FailureReason::Abandoned => "a pool that shut down",
    }
}
