//! What is measured, and how.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anabranch_engine::Graph;
use tokio::runtime::{Builder, Runtime};

use super::bare;
use super::shapes::Shape;
use super::work::Kind;
use crate::watch::{Share, Spread, Watch};

/// A way to carry out a graph.
pub(crate) trait Contender: Send + Sized + 'static {
    /// Threads of the tokio runtime it is run on; with 1, that is the calling thread.
    const THREADS: usize = 1;
    /// Runs that one `reset` allows.
    const RUNS_PER_RESET: u32 = u32::MAX;

    /// Makes the next runs possible; not timed.
    fn reset(&mut self) -> impl Future<Output = ()> + Send {
        std::future::ready(())
    }

    /// Carries out the graph and returns [`Shape::result`].
    fn run(&mut self) -> impl Future<Output = u64> + Send;
}

/// A contender that takes the graphs that all take.
pub(crate) trait Peer: Contender {
    /// Does what is done once for many runs, or says why it cannot.
    fn prepare(shape: &Arc<Shape>, kind: Kind) -> Result<Self, &'static str>;
}

/// Short runs are timed in batches, or the clock would be measured. This is for as many runs as slow as the first,
/// which is cold; the others take a fraction of it.
const BATCH: Duration = Duration::from_millis(5);
/// Time for a measurement, warm-up aside, and the fewest batches should it not suffice.
const BUDGET: Duration = Duration::from_millis(120);
const FEWEST: usize = 2;

/// Time a node, of the fastest of several batches of runs.
pub(crate) fn measure<P: Peer>(shape: &Arc<Shape>, kind: Kind) -> Result<Share, &'static str> {
    Ok(measure_this(P::prepare(shape, kind)?, shape, kind))
}

pub(crate) fn measure_this<C: Contender>(contender: C, shape: &Shape, kind: Kind) -> Share {
    let expected = bare::result(shape, kind);
    let runtime = runtime(C::THREADS);
    let fastest = runtime.block_on(runtime.spawn(fastest(contender, expected)));
    fastest.expect("a contender does not panic").of_each(shape.dag.node_count())
}

async fn fastest<C: Contender>(mut contender: C, expected: u64) -> Share {
    contender.reset().await;
    let warm_up = Instant::now();
    assert_eq!(contender.run().await, expected, "a contender computed something else");
    let fitting = BATCH.as_nanos() / warm_up.elapsed().as_nanos();
    let runs = fitting.clamp(1, u128::from(C::RUNS_PER_RESET)) as u64;
    let began = Instant::now();
    let mut batches: Vec<Share> = Vec::new();
    while began.elapsed() < BUDGET || batches.len() < FEWEST {
        contender.reset().await;
        let watch = Watch::start();
        for _ in 0..runs {
            std::hint::black_box(contender.run().await);
        }
        batches.push(watch.stop().share(runs));
    }
    batches.into_iter().min_by(|a, b| a.wall.total_cmp(&b.wall)).expect("there is at least one batch")
}

/// The latency of single runs on a runtime of so many threads, each from its start to its result.
pub(crate) fn latency<C: Contender>(mut contender: C, threads: usize, samples: usize) -> Spread {
    let runtime = runtime(threads);
    let task = runtime.spawn(async move {
        let mut latencies = Vec::with_capacity(samples);
        for _ in 0..samples / 10 {
            std::hint::black_box(contender.run().await);
        }
        for _ in 0..samples {
            let began = Instant::now();
            std::hint::black_box(contender.run().await);
            latencies.push(began.elapsed());
        }
        Spread::of(latencies)
    });
    runtime.block_on(task).expect("a contender does not panic")
}

pub(crate) fn runtime(threads: usize) -> Runtime {
    let mut builder = if threads == 1 { Builder::new_current_thread() } else { Builder::new_multi_thread() };
    builder.worker_threads(threads).enable_all().build().expect("the system gives a few threads")
}
