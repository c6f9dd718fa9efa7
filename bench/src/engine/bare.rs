//! The floor: a loop over counters and arrays, without deadline, policy, panic guard, event or concurrency.

use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use anabranch_engine::{Graph, NodeId};

use super::contender::{Contender, Peer};
use super::shapes::Shape;
use super::work::{Kind, Later};

pub(crate) struct Bare {
    shape: Arc<Shape>,
    kind: Kind,
}

impl Peer for Bare {
    fn prepare(shape: &Arc<Shape>, kind: Kind) -> Result<Bare, &'static str> {
        Ok(Bare { shape: Arc::clone(shape), kind })
    }
}

impl Contender for Bare {
    async fn run(&mut self) -> u64 {
        result(&self.shape, self.kind)
    }
}

/// What the graph comes to; every contender has to agree.
pub(crate) fn result(shape: &Shape, kind: Kind) -> u64 {
    match kind {
        Kind::Inline | Kind::Cpu | Kind::Empty => walk(shape, |sum| kind.value(sum)),
        Kind::Async => walk(shape, |sum| poll_to_end(Later::new(kind.value(sum)))),
    }
}

fn walk(shape: &Shape, carry_out: impl Fn(u64) -> u64) -> u64 {
    let dag = &shape.dag;
    let mut values = vec![0u64; dag.node_count() as usize];
    let mut waiting: Vec<u32> = shape.nodes().map(|node| dag.input_count(node)).collect();
    let mut ready: Vec<NodeId> = shape.nodes().filter(|node| waiting[node.index()] == 0).collect();
    while let Some(node) = ready.pop() {
        values[node.index()] = carry_out(shape.gather(node, |input| values[input.index()]));
        dag.dependents(node, |dependent, _| {
            waiting[dependent.index()] -= 1;
            if waiting[dependent.index()] == 0 {
                ready.push(dependent);
            }
        });
    }
    shape.result(|sink| values[sink.index()])
}

/// Drives a future that always wakes itself: the least that a future can cost.
pub(crate) fn poll_to_end<T>(future: impl Future<Output = T>) -> T {
    let mut future = pin!(future);
    let mut cx = Context::from_waker(Waker::noop());
    loop {
        if let Poll::Ready(value) = future.as_mut().poll(&mut cx) {
            return value;
        }
    }
}
