//! The parts of a timeline as plain data: stored with a run, and made a timeline again to draw it later.

use std::time::Duration;

use super::{Category, Error, NodeOutcome, NodeTrack, Span, TimeSpent, Timeline};
use crate::event::{RunEnding, RunId};
use crate::graph::NodeId;

/// A timeline as plain data. All times count from the start of the run.
#[derive(Clone, Debug, PartialEq)]
pub struct Record {
    /// The number of the run.
    pub run: RunId,
    /// The end of the run, if it is known.
    pub ending: Option<RunEnding>,
    /// The number of lost events.
    pub lost: u64,
    /// The time of the run.
    pub wall: Duration,
    /// The deadline of the run, if it had one.
    pub deadline: Option<Duration>,
    /// The nodes, by their numbers.
    pub nodes: Vec<NodeRecord>,
    /// The critical path in order.
    pub path: Vec<NodeId>,
}

/// One node of a [`Record`].
#[derive(Clone, Debug, PartialEq)]
pub struct NodeRecord {
    /// The times of the node.
    pub track: NodeTrack,
    /// Its own timeout, if it has one.
    pub timeout: Option<Duration>,
    /// Its time by category, in order and without gaps: category, start and end.
    pub spans: Vec<(Category, Duration, Duration)>,
}

impl NodeRecord {
    /// The time until the last input of the node ended, which no span has.
    pub fn before_spans(&self) -> Duration {
        let in_spans: Duration = self
            .spans
            .iter()
            .filter(|(category, ..)| *category == Category::Inputs)
            .map(|(_, from, to)| to.saturating_sub(*from))
            .sum();
        self.track.spent[Category::Inputs].saturating_sub(in_spans)
    }

    /// The time per category, from the spans and the time before them.
    pub fn spent(spans: &[(Category, Duration, Duration)], before_spans: Duration) -> TimeSpent {
        let mut spent = TimeSpent::default();
        spent[Category::Inputs] = before_spans;
        for (category, from, to) in spans {
            spent[*category] += to.saturating_sub(*from);
        }
        spent
    }
}

impl Timeline {
    /// The parts of the timeline as plain data.
    pub fn record(&self) -> Record {
        let node = |(node, track): (NodeId, &NodeTrack)| NodeRecord {
            track: *track,
            timeout: self.timeouts.get(node.index()).copied().flatten(),
            spans: self.spans_of(node).iter().map(|span| (span.category, span.from, span.to)).collect(),
        };
        Record {
            run: self.run,
            ending: self.ending,
            lost: self.lost,
            wall: self.wall,
            deadline: self.deadline,
            nodes: (0..).map(NodeId).zip(&self.tracks).map(node).collect(),
            path: self.path.clone(),
        }
    }

    /// The timeline of a record. Fails if the record names nodes that it does not have, or if its times run backwards.
    pub fn from_record(record: &Record) -> Result<Timeline, Error> {
        let count = record.nodes.len() as u32;
        let numbered = || (0..).map(NodeId).zip(&record.nodes);
        let dropped_by = |node: &NodeRecord| match node.track.outcome {
            NodeOutcome::Dropped(input) => input,
            _ => None,
        };
        let named = record.path.iter().copied().chain(record.nodes.iter().filter_map(dropped_by));
        if let Some(node) = named.into_iter().find(|node| node.0 >= count) {
            return Err(Error::BadRecord { node });
        }
        let runs_backwards = |node: &NodeRecord| {
            let mut last = Duration::ZERO;
            node.spans.iter().any(|(_, from, to)| {
                let is_wrong = *from < last || to < from;
                last = *to;
                is_wrong
            })
        };
        if let Some((node, _)) = numbered().find(|(_, node)| runs_backwards(node)) {
            return Err(Error::BadRecord { node });
        }
        let spans = numbered().flat_map(|(node, record)| {
            record.spans.iter().map(move |(category, from, to)| Span {
                node,
                category: *category,
                from: *from,
                to: *to,
            })
        });
        let mut all_nodes = TimeSpent::default();
        record.nodes.iter().for_each(|node| all_nodes += node.track.spent);
        Ok(Timeline {
            run: record.run,
            ending: record.ending,
            lost: record.lost,
            wall: record.wall,
            tracks: record.nodes.iter().map(|node| node.track).collect(),
            spans: spans.collect(),
            path: record.path.clone(),
            on_path: on_path(record),
            all_nodes,
            deadline: record.deadline,
            timeouts: record.nodes.iter().map(|node| node.timeout).collect(),
        })
    }
}

/// The time along the critical path. Stored times are rounded, so that no difference may be less than zero.
fn on_path(record: &Record) -> TimeSpent {
    let end = |node: &NodeId| record.nodes[node.index()].track.ended.unwrap_or(record.wall);
    let mut spent = TimeSpent::default();
    spent[Category::Outside] = record.wall.saturating_sub(record.path.last().map_or(Duration::ZERO, end));
    let mut since = Duration::ZERO;
    for node in &record.path {
        let mut own = record.nodes[node.index()].track.spent;
        own[Category::Inputs] = own[Category::Inputs].saturating_sub(since);
        spent += own;
        since = end(node);
    }
    spent
}
