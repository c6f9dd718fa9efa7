//! The crate `dagrs` 0.9.0: a task and a lock a node, a channel an edge.

use std::sync::Arc;

use anabranch_engine::Graph as _;
use async_trait::async_trait;
use dagrs::{
    Action, Content, DefaultNode, EnvVar, Graph, InChannels, NodeId, NodeTable, OutChannels, Output,
};

use super::contender::{Contender, Peer};
use super::shapes::Shape;
use super::work::Kind;

pub(crate) struct Dagrs {
    graph: Graph,
    sinks: Vec<NodeId>,
}

impl Peer for Dagrs {
    fn prepare(shape: &Arc<Shape>, kind: Kind) -> Result<Dagrs, &'static str> {
        let nodes = shape.dag.node_count();
        if nodes > 10_000 && shape.depth < nodes / 2 {
            return Err("a wide graph of this size takes it 5 to 35 s a run");
        }
        let mut table = NodeTable::new();
        let mut graph = Graph::new();
        let mut ids = Vec::new();
        for node in shape.nodes() {
            let add = Add { node: u64::from(node.0), kind };
            let node = DefaultNode::with_action(node.to_string(), add, &mut table);
            ids.push(graph.add_node(node).expect("names are unique"));
        }
        for node in shape.nodes() {
            let mut dependents = Vec::new();
            shape.dag.dependents(node, |dependent, _| dependents.push(ids[dependent.index()]));
            graph.add_edge(ids[node.index()], dependents).expect("both ends exist");
        }
        graph.set_env(EnvVar::new(table));
        let sinks = shape.sinks().iter().map(|sink| ids[sink.index()]).collect();
        Ok(Dagrs { graph, sinks })
    }
}

impl Contender for Dagrs {
    /// Channels close with a run; `reset` makes new ones.
    const RUNS_PER_RESET: u32 = 1;

    async fn reset(&mut self) {
        self.graph.reset().await.expect("its own nodes are not locked");
    }

    async fn run(&mut self) -> u64 {
        self.graph.async_start().await.expect("no node fails");
        let results = self.graph.get_results::<u64>();
        let value = |sink| **results[sink].as_ref().expect("a sink has a value");
        self.sinks.iter().fold(0, |sum, sink| sum.wrapping_add(value(sink)))
    }
}

struct Add {
    node: u64,
    kind: Kind,
}

#[async_trait]
impl Action for Add {
    async fn run(&self, inputs: &mut InChannels, outputs: &mut OutChannels, _: Arc<EnvVar>) -> Output {
        let read = |content: dagrs::DagrsResult<Content>| {
            *content.expect("each input sends").get::<u64>().expect("a number")
        };
        let sum = inputs.map(read).await.into_iter().fold(self.node, u64::wrapping_add);
        let value = self.kind.carry_out(sum).await;
        outputs.broadcast(Content::new(value)).await;
        Output::new(value)
    }
}
