//! A boxed future a node that awaits its inputs' futures, shared so that each is carried out once.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use anabranch_engine::{Graph, NodeId};
use futures_util::FutureExt;
use futures_util::future::{Shared, join_all};

use super::contender::{Contender, Peer};
use super::shapes::Shape;
use super::work::Kind;

pub(crate) struct BoxedFutures {
    shape: Arc<Shape>,
    kind: Kind,
}

type Node = Shared<Pin<Box<dyn Future<Output = u64> + Send>>>;

/// A wake-up is passed from node to node up to the sink, which is polled down to where it came from.
const DEEPEST_ASYNC: u32 = 1_000;

impl Peer for BoxedFutures {
    fn prepare(shape: &Arc<Shape>, kind: Kind) -> Result<BoxedFutures, &'static str> {
        if kind == Kind::Async && shape.depth > DEEPEST_ASYNC {
            return Err("each wake-up polls the whole path from the sink, which is quadratic: minutes");
        }
        Ok(BoxedFutures { shape: Arc::clone(shape), kind })
    }
}

impl Contender for BoxedFutures {
    async fn run(&mut self) -> u64 {
        let mut memo: Vec<Node> = Vec::with_capacity(self.shape.dag.node_count() as usize);
        for node in self.shape.nodes() {
            let compute = compute(&self.shape, self.kind, node, &memo);
            memo.push(compute);
        }
        let sinks = self.shape.sinks().iter().map(|sink| memo[sink.index()].clone());
        join_all(sinks).await.into_iter().fold(0, u64::wrapping_add)
    }
}

fn compute(shape: &Shape, kind: Kind, node: NodeId, memo: &[Node]) -> Node {
    let mut inputs = Vec::with_capacity(shape.dag.input_count(node) as usize);
    shape.dag.inputs(node, |input, _| inputs.push(memo[input.index()].clone()));
    let compute = async move {
        if inputs.is_empty() {
            DEEPEST.store(stack_address(), Ordering::Relaxed);
        }
        let sum = join_all(inputs).await.into_iter().fold(u64::from(node.0), u64::wrapping_add);
        kind.carry_out(sum).await
    };
    let compute: Pin<Box<dyn Future<Output = u64> + Send>> = Box::pin(compute);
    compute.shared()
}

/// Where the stack was when a source was last polled.
static DEEPEST: AtomicUsize = AtomicUsize::new(0);

fn stack_address() -> usize {
    let here = 0u8;
    std::ptr::from_ref(std::hint::black_box(&here)).addr()
}

/// How much stack each node of a chain takes.
pub(crate) fn stack_per_node(chain: &Arc<Shape>) -> usize {
    let mut boxed = BoxedFutures { shape: Arc::clone(chain), kind: Kind::Inline };
    let top = stack_address();
    boxed.run().now_or_never().expect("inline nodes are never pending");
    (top - DEEPEST.load(Ordering::Relaxed)) / chain.dag.node_count() as usize
}
