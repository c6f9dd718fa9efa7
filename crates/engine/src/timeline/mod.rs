//! The timeline of a run, computed from its events: how long each node waited and worked, and the critical path. It is
//! written as an HTML page, an SVG image or a trace for Perfetto.
//!
//! The time of a node, from the end of its last input to its own end, is divided into [`Category`]s without gaps. So the
//! times along the critical path, plus the time outside of any node, add up to the time of the run.

mod spent;
mod build;
mod path;
mod record;
pub(crate) mod escape;
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
pub use record::{NodeRecord, Record};
pub use spent::{Category, TimeSpent};

/// The timeline of a run. All times count from the start of the run.
pub struct Timeline {
    run: RunId,
    ending: Option<RunEnding>,
    lost: u64,
    wall: Duration,
    tracks: Vec<NodeTrack>,
    /// Sorted by node, then by time.
    spans: Vec<Span>,
    path: Vec<NodeId>,
    on_path: TimeSpent,
    all_nodes: TimeSpent,
    deadline: Option<Duration>,
    /// By node; `None` for nodes without a timeout.
    timeouts: Vec<Option<Duration>>,
}

/// The times of one node.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct NodeTrack {
    /// The time at which its last input ended, if it is known.
    pub ready: Option<Duration>,
    /// The time at which its first attempt started.
    pub started: Option<Duration>,
    pub ended: Option<Duration>,
    pub attempts: u32,
    /// The place of its last attempt.
    pub place: Option<Placement>,
    pub outcome: NodeOutcome,
    /// The time from the start of the run to the end of the node, by category.
    pub spent: TimeSpent,
}

/// The outcome of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NodeOutcome {
    /// It finished.
    Finished,
    /// It failed, and its fallback was used.
    FellBack(FailureReason),
    /// It failed.
    Failed(FailureReason),
    /// It was dropped because of this input, or at the request of the workload.
    Dropped(Option<NodeId>),
    /// It had not ended when the run, or the recording of its events, ended.
    Open,
    /// It has no event: it did not start, or its events were lost.
    NotStarted,
}

/// The reason why a timeline cannot be built.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// There is no event of the run.
    #[error("there are no events of run {}; add the listener before the run starts", .0.0)]
    NoEvents(RunId),
    /// The events are about a larger or smaller graph.
    #[error(
        "the events are of a graph of at least {at_least} nodes, this one has {node_count}; pass the run's graph"
    )]
    OtherGraph {
        /// The least number of nodes that the graph of the run has.
        at_least: u32,
        /// The number of nodes of the graph that was given.
        node_count: u32,
    },
    /// A record names a node that it does not have, or the times of this node run backwards.
    #[error("the record of the timeline is damaged at node {node}")]
    BadRecord {
        /// The node.
        node: NodeId,
    },
}

/// A part of the time of a node.
#[derive(Clone, Copy, Debug)]
struct Span {
    node: NodeId,
    category: Category,
    from: Duration,
    to: Duration,
}

impl Timeline {
    /// The timeline of `run`, which executed `graph`. `items` may contain events of other runs.
    pub fn new<G: Graph>(run: RunId, graph: &G, items: &[ListenerItem]) -> Result<Timeline, Error> {
        build::build(run, graph, items)
    }

    /// The same timeline, with the deadline of the run as a line in its pictures.
    #[must_use]
    pub fn with_deadline(mut self, after: Duration) -> Timeline {
        self.deadline = Some(after);
        self
    }

    /// The deadline, if a picture shows it: one beyond twice the duration of the run would leave most of it empty.
    fn shown_deadline(&self) -> Option<Duration> {
        self.deadline.filter(|at| *at <= self.wall * 2)
    }

    /// The time that a picture spans: the run, and its deadline if that is shown.
    fn extent(&self) -> Duration {
        self.shown_deadline().map_or(self.wall, |at| at.max(self.wall))
    }

    /// The same timeline, with the timeouts of nodes as marks in its pictures.
    #[must_use]
    pub fn with_timeouts(mut self, of: impl Fn(NodeId) -> Option<Duration>) -> Timeline {
        self.timeouts = (0..self.tracks.len() as u32).map(|node| of(NodeId(node))).collect();
        self
    }

    /// The run that the timeline is about.
    pub fn run(&self) -> RunId {
        self.run
    }

    /// The end of the run; `None` if it has not ended, or if that event was lost.
    pub fn ending(&self) -> Option<RunEnding> {
        self.ending
    }

    /// The number of lost events, of this run or others.
    pub fn lost(&self) -> u64 {
        self.lost
    }

    /// The time from the start of the run to its end, or to its last event.
    pub fn wall(&self) -> Duration {
        self.wall
    }

    /// The times of each node, by its number.
    pub fn tracks(&self) -> &[NodeTrack] {
        &self.tracks
    }

    /// The critical path in order: each node is the input that the next one waited for last.
    pub fn critical_path(&self) -> &[NodeId] {
        &self.path
    }

    /// The time along the critical path, by category. The sum is [`Timeline::wall`].
    pub fn on_path(&self) -> TimeSpent {
        self.on_path
    }

    /// The time of all nodes, by category.
    pub fn all_nodes(&self) -> TimeSpent {
        self.all_nodes
    }

    /// A trace in JSON for Perfetto or Chrome: every attempt of every node, and the critical path.
    pub fn trace(&self, name: &dyn Fn(NodeId) -> String) -> String {
        trace::write(self, name)
    }

    /// The timeline as an SVG file. With more than two thousand bars, neighbours are merged into blocks.
    pub fn svg(&self, title: &str, name: &dyn Fn(NodeId) -> String) -> String {
        svg::write(self, title, name, svg::Head::Full)
    }

    /// The timeline as an HTML file that can be zoomed and moved, with the critical path as a table.
    pub fn html(&self, title: &str, name: &dyn Fn(NodeId) -> String) -> String {
        html::write(self, title, name)
    }

    fn track(&self, node: NodeId) -> &NodeTrack {
        &self.tracks[node.index()]
    }

    /// The time at which a node's timeout passes, if it has one and started.
    fn times_out(&self, node: NodeId) -> Option<Duration> {
        Some(self.track(node).started? + self.timeouts.get(node.index()).copied().flatten()?)
    }

    fn spans_of(&self, node: NodeId) -> &[Span] {
        let from = self.spans.partition_point(|span| span.node < node);
        let count = self.spans[from..].partition_point(|span| span.node == node);
        &self.spans[from..from + count]
    }
}

impl NodeOutcome {
    /// Describes the outcome. `name` returns the names of nodes.
    fn words(self, name: &dyn Fn(NodeId) -> String) -> String {
        match self {
            NodeOutcome::Finished => "finished".to_owned(),
            NodeOutcome::FellBack(reason) => format!("fell back because of {}", cause(reason)),
            NodeOutcome::Failed(reason) => format!("failed because of {}", cause(reason)),
            NodeOutcome::Dropped(None) => "dropped".to_owned(),
            NodeOutcome::Dropped(Some(input)) => format!("dropped because of {}", name(input)),
            NodeOutcome::Open => "not ended".to_owned(),
            NodeOutcome::NotStarted => "not started".to_owned(),
        }
    }
}

fn cause(reason: FailureReason) -> &'static str {
    match reason {
        FailureReason::Error => "an error",
        FailureReason::Panic => "a panic",
        FailureReason::Timeout => "its timeout",
        FailureReason::Deadline => "the run's deadline",
        FailureReason::Abandoned => "a pool that shut down",
    }
}
