//! The plans of `examples/plans`, as the model sees them.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anabranch_plan::Registries;
use anabranch_plan::source::MemoryData;
use anabranch_testkit::Rng;
use serde_json::Value;

use super::world::{Case, ModelNode};

pub(super) const NAMES: [&str; 4] = ["feed", "home", "trending", "new_faces"];

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/plans")
}

pub(super) fn registries() -> Registries {
    let (registries, _) = Registries::load(&folder().join("registry"), Some("dev")).unwrap();
    registries
}

pub(super) fn data() -> Arc<MemoryData> {
    let text = std::fs::read_to_string(folder().join("data.json")).unwrap();
    Arc::new(MemoryData::from_json("data.json", &text).unwrap())
}

/// An example with random times: how long its nodes take, and when it must be answered.
pub(super) fn case(rng: &mut Rng, name: &str) -> Case {
    let text = std::fs::read_to_string(folder().join(format!("plans/{name}.plan.json"))).unwrap();
    let file: Value = serde_json::from_str(&text).unwrap();
    let mut nodes: Vec<(ModelNode, Vec<String>)> = Vec::new();
    for node in file["nodes"].as_array().unwrap() {
        nodes.extend(modelled(rng, node));
    }
    let deadline = super::odd(rng, 150) + Duration::from_millis(20);
    Case { nodes: in_order(nodes), deadline, example: Some(file) }
}

/// A node with the ids of its inputs; behind it, if another node stands in for it, the region of it alone.
fn modelled(rng: &mut Rng, node: &Value) -> Vec<(ModelNode, Vec<String>)> {
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let (id, op, params) = (text(&node["node_id"]), text(&node["op"]), &node["params"]);
    let takes = match params.get("endpoint") {
        Some(_) => super::odd(rng, 20),
        None if rng.percent(30) => super::odd(rng, 5),
        None => Duration::ZERO,
    };
    let mut inputs: Vec<String> = node["inputs"].as_array().unwrap().iter().map(text).collect();
    // By the parameters that a request has if it sets none, the examples' only `if` goes this way.
    if op == "core::if" {
        inputs = vec![text(&params["then"])];
    }
    match &params["with"] {
        Value::Array(others) => inputs.extend(others.iter().map(text)),
        Value::String(other) => inputs.push(other.clone()),
        _ => {}
    }
    let timeout = node.get("timeout_ms").map(|millis| Duration::from_millis(millis.as_u64().unwrap()));
    let is_region = op == "core::timeout";
    let takes = if is_region { Duration::ZERO } else { takes };
    let modelled = ModelNode { id: id.clone(), op, takes, timeout, is_region, ..ModelNode::default() };
    let (sure, spare) = fallbacks(&node["fallback"]);
    let Some(spare) = spare else { return vec![(ModelNode { sure, ..modelled }, inputs)] };
    assert!(!is_region, "no example has a region with a node that stands in for it");
    let region = ModelNode {
        id: format!("{id}.fallback"),
        op: "core::timeout".to_owned(),
        sure,
        is_region: true,
        is_alone: true,
        ..ModelNode::default()
    };
    vec![(modelled, inputs), (region, vec![id, spare])]
}

/// The last fallback of a node, and the node that is tried before it. There are no stale values.
fn fallbacks(fallback: &Value) -> (Option<&'static str>, Option<String>) {
    let one = std::slice::from_ref(fallback);
    let list = fallback.as_array().map_or(one, Vec::as_slice);
    let sure = |value: &Value| match value.as_str() {
        Some("empty") => Some("empty"),
        Some("pass") => Some("pass"),
        _ => value.get("default").map(|_| "default"),
    };
    let spare = |value: &Value| Some(value.get("node")?.as_str()?.to_owned());
    (list.iter().find_map(sure), list.iter().find_map(spare))
}

/// Every node after its inputs; who reads a node that has a region of its own reads that.
fn in_order(mut nodes: Vec<(ModelNode, Vec<String>)>) -> Vec<ModelNode> {
    let regions: Vec<String> =
        nodes.iter().filter(|(node, _)| node.is_alone).map(|(node, _)| node.id.clone()).collect();
    for (node, inputs) in nodes.iter_mut().filter(|(node, _)| !node.is_alone) {
        for input in inputs.iter_mut().filter(|input| regions.contains(&format!("{input}.fallback"))) {
            assert_ne!(node.id, *input);
            input.push_str(".fallback");
        }
    }
    let mut places: HashMap<String, usize> = HashMap::new();
    let mut ordered: Vec<ModelNode> = Vec::new();
    while !nodes.is_empty() {
        let ready = |(_, inputs): &(ModelNode, Vec<String>)| inputs.iter().all(|id| places.contains_key(id));
        let next = nodes.iter().position(ready).expect("plans have no circles");
        let (mut node, inputs) = nodes.remove(next);
        node.inputs = inputs.iter().map(|id| places[id]).collect();
        node.spare = (node.is_alone).then(|| node.inputs[1]);
        places.insert(node.id.clone(), ordered.len());
        ordered.push(node);
    }
    ordered
}
