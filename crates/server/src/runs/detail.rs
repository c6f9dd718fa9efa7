//! The details of a run: its graph, timeline, request, ledger and error.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::timeline::RunTimeline;

/// The details of a run, in the format of responses.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct RunDetail {
    /// The deadline of the run, in milliseconds from its start.
    pub deadline_ms: Option<f64>,
    /// The id of the request, as in the response and the log.
    pub request_id: Option<String>,
    /// The id of the distributed trace that the request is a part of.
    pub trace_id: Option<String>,
    /// The reason why it failed or was stopped.
    pub error: Option<String>,
    /// The request as received.
    pub request: Option<Value>,
    /// The origin of a recipe's value.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub result: Option<Value>,
    /// The degraded parts of the response, as in the response. Each also has `stage`, the id of its node in the graph,
    /// and `name`, the name of that node.
    pub ledger: Vec<Value>,
    /// The graph of the run.
    pub graph: RunGraph,
    /// The times of each node.
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
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct GraphNode {
    /// `n` followed by its number.
    pub id: String,
    /// Its name.
    pub name: String,
    /// Its kind: `io`, `cpu` and so on.
    pub kind: String,
    /// The reason why the node was not executed itself: `memo`, `same inputs`, `fused`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// The address of a recipe or blob.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub address: Option<String>,
    /// The size of a value in bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size: Option<u64>,
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
            shown.nodes.push(GraphNode { id: RunGraph::id(node), name, kind, ..GraphNode::default() });
            graph.inputs(node, |input, _| shown.edges.push([RunGraph::id(input), RunGraph::id(node)]));
        }
        shown
    }
}
