//! `spawn_blocking` a node, from a loop that counts down: the usual way to keep CPU work off an async thread.

use std::sync::Arc;

use anabranch_engine::{Graph, NodeId};
use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use tokio::task::spawn_blocking;

use super::contender::{Contender, Peer};
use super::shapes::Shape;
use super::work::Kind;

pub(crate) struct BlockingTasks {
    shape: Arc<Shape>,
    kind: Kind,
}

impl Peer for BlockingTasks {
    fn prepare(shape: &Arc<Shape>, kind: Kind) -> Result<BlockingTasks, &'static str> {
        if kind == Kind::Async {
            return Err("carries out CPU work only");
        }
        Ok(BlockingTasks { shape: Arc::clone(shape), kind })
    }
}

impl Contender for BlockingTasks {
    async fn run(&mut self) -> u64 {
        let BlockingTasks { shape, kind } = self;
        let (dag, kind) = (&shape.dag, *kind);
        let mut values = vec![0u64; dag.node_count() as usize];
        let mut waiting: Vec<u32> = shape.nodes().map(|node| dag.input_count(node)).collect();
        let mut ready: Vec<NodeId> = shape.nodes().filter(|node| waiting[node.index()] == 0).collect();
        let mut in_flight = FuturesUnordered::new();
        loop {
            for node in ready.drain(..) {
                let sum = shape.gather(node, |input| values[input.index()]);
                in_flight.push(spawn_blocking(move || (node, kind.value(sum))));
            }
            let Some(ended) = in_flight.next().await else { break };
            let (node, value) = ended.expect("no node panics");
            values[node.index()] = value;
            dag.dependents(node, |dependent, _| {
                waiting[dependent.index()] -= 1;
                if waiting[dependent.index()] == 0 {
                    ready.push(dependent);
                }
            });
        }
        shape.result(|sink| values[sink.index()])
    }
}
