//! A tokio task a node: whoever finishes counts down its dependents and spawns those that reach zero.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use anabranch_engine::{Graph, NodeId};
use tokio::sync::Notify;

use super::contender::{Contender, Peer};
use super::shapes::Shape;
use super::work::Kind;

/// On `N` threads.
pub(crate) struct TokioTasks<const N: usize> {
    shape: Arc<Shape>,
    kind: Kind,
}

impl<const N: usize> Peer for TokioTasks<N> {
    fn prepare(shape: &Arc<Shape>, kind: Kind) -> Result<TokioTasks<N>, &'static str> {
        Ok(TokioTasks { shape: Arc::clone(shape), kind })
    }
}

impl<const N: usize> Contender for TokioTasks<N> {
    const THREADS: usize = N;

    async fn run(&mut self) -> u64 {
        let shape = &self.shape;
        let state = Arc::new(State {
            shape: Arc::clone(shape),
            kind: self.kind,
            waiting: shape.nodes().map(|node| AtomicU32::new(shape.dag.input_count(node))).collect(),
            values: shape.nodes().map(|_| AtomicU64::new(0)).collect(),
            left: AtomicU32::new(shape.dag.node_count()),
            done: Notify::new(),
        });
        for node in shape.nodes().filter(|node| shape.dag.input_count(*node) == 0) {
            spawn(Arc::clone(&state), node);
        }
        state.done.notified().await;
        shape.result(|sink| state.value(sink))
    }
}

struct State {
    shape: Arc<Shape>,
    kind: Kind,
    waiting: Box<[AtomicU32]>,
    values: Box<[AtomicU64]>,
    left: AtomicU32,
    done: Notify,
}

impl State {
    fn value(&self, node: NodeId) -> u64 {
        self.values[node.index()].load(Ordering::Relaxed)
    }
}

fn spawn(state: Arc<State>, node: NodeId) {
    tokio::spawn(async move {
        let sum = state.shape.gather(node, |input| state.value(input));
        let value = state.kind.carry_out(sum).await;
        state.values[node.index()].store(value, Ordering::Relaxed);
        state.shape.dag.dependents(node, |dependent, _| {
            if state.waiting[dependent.index()].fetch_sub(1, Ordering::AcqRel) == 1 {
                spawn(Arc::clone(&state), dependent);
            }
        });
        if state.left.fetch_sub(1, Ordering::AcqRel) == 1 {
            state.done.notify_one();
        }
    });
}
