//! An estimate of the bytes that the details of a run take.

use std::sync::Arc;

use serde_json::Value;

use super::{GraphNode, RunDetail, TimelineNode};

/// The details, with an estimate of their bytes in memory.
pub(super) fn sized(detail: RunDetail) -> (usize, Arc<RunDetail>) {
    (of(&detail), Arc::new(detail))
}

fn of(detail: &RunDetail) -> usize {
    let RunDetail { error, request, result, ledger, graph, timeline, .. } = detail;
    let nodes: usize = graph.nodes.iter().map(of_node).sum();
    let edges: usize = graph.edges.iter().flatten().map(|id| size_of::<String>() + id.capacity()).sum();
    let tracks = timeline.iter().flat_map(|timeline| &timeline.nodes);
    let tracks: usize = tracks.map(of_track).sum();
    let path = timeline.iter().flat_map(|timeline| &timeline.path);
    let path: usize = path.map(|id| size_of::<String>() + id.capacity()).sum();
    let json: usize = request.iter().chain(result).chain(ledger).map(of_json).sum();
    size_of::<RunDetail>() + error.as_ref().map_or(0, String::capacity) + nodes + edges + tracks + path + json
}

fn of_node(node: &GraphNode) -> usize {
    let GraphNode { id, name, kind, note, address, .. } = node;
    let texts = [id, name, kind].into_iter().chain(note).chain(address);
    size_of::<GraphNode>() + texts.map(String::capacity).sum::<usize>()
}

fn of_track(node: &TimelineNode) -> usize {
    let spans = node.spans.len() * (size_of::<super::TimelineSpan>() + 8);
    size_of::<TimelineNode>() + node.id.capacity() + node.state.capacity() + spans + 16
}

/// The parser that made the value limits the nesting.
fn of_json(value: &Value) -> usize {
    let inside = match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => 0,
        Value::String(text) => text.capacity(),
        Value::Array(list) => list.iter().map(of_json).sum(),
        Value::Object(map) => map.iter().map(|(key, value)| 64 + key.capacity() + of_json(value)).sum(),
    };
    size_of::<Value>() + inside
}
