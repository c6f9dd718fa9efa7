//! The details of a run: its graph, timeline, request, ledger and error.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::timeline::RunTimeline;

/// The details of a run. Everything is JSON as it is answered.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct RunDetail {
    /// The deadline of the run, in milliseconds from its start.
    pub deadline_ms: Option<f64>,
    /// Why it failed, or was stopped.
    pub error: Option<String>,
    /// The request, as it came.
    pub request: Option<Value>,
    /// The degraded parts of the answer, as the answer lists them.
    pub ledger: Vec<Value>,
    /// The graph of the run.
    pub graph: RunGraph,
    /// When each node ran.
    pub timeline: Option<RunTimeline>,
}

/// The graph of a run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RunGraph {
    /// The nodes.
    pub nodes: Vec<GraphNode>,
    /// Pairs of ids: an input, and the node that reads it.
    pub edges: Vec<GraphEdge>,
}

/// An edge: the id of an input, and the id of the node that reads it.
pub type GraphEdge = [String; 2];

/// A node of the graph of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct GraphNode {
    /// `n` and its number.
    pub id: String,
    /// Its name.
    pub name: String,
    /// What it does: `io`, `cpu` and so on.
    pub kind: String,
}

impl RunGraph {
    /// The id of a node by its number.
    pub fn id(node: anabranch_engine::NodeId) -> String {
        format!("n{}", node.0)
    }

    /// The nodes and edges of an engine's graph, with the name and the kind of each node.
    pub fn new<G: anabranch_engine::Graph>(
        graph: &G,
        mut describe: impl FnMut(anabranch_engine::NodeId) -> (String, String),
    ) -> RunGraph {
        let mut shown = RunGraph::default();
        for node in (0..graph.node_count()).map(anabranch_engine::NodeId) {
            let (name, kind) = describe(node);
            shown.nodes.push(GraphNode { id: RunGraph::id(node), name, kind });
            graph.inputs(node, |input, _| shown.edges.push([RunGraph::id(input), RunGraph::id(node)]));
        }
        shown
    }
}
