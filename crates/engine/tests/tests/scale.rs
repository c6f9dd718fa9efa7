//! A million nodes: linear time, flat stack, few bytes a node, no allocation a node.

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use anabranch_engine::clock::Clock;
use anabranch_engine::limit::{Allowance, Limits};
use anabranch_engine::{
    Budget, Check, Config, Cost, Dag, Drops, Edge, Engine, NodeId, OnError, Options, Policies, Policy, Step,
    Workload,
};
use anabranch_testkit::Sim;
use rustix::time::{ClockId, clock_gettime};

use crate::alloc;

/// Each node adds one to a sum: in place, as a future that yields once, or as a job.
struct Count {
    kind: Kind,
    sum: u64,
}

#[derive(Clone, Copy)]
enum Kind {
    Inline,
    Async,
    Job,
}

impl Workload for Count {
    type Value = u64;
    type Error = ();
    type Future = YieldOnce;
    type Job = fn(Option<u64>, &Check<'_>) -> Result<u64, ()>;

    fn step(&mut self, _: NodeId, _: Budget) -> Step<Self> {
        match self.kind {
            Kind::Inline => Step::Ready(Ok(1)),
            Kind::Async => Step::Future(YieldOnce(false)),
            Kind::Job => {
                let job: Self::Job = one;
                Step::Job(job, Cost::About(Duration::from_nanos(100)))
            }
        }
    }

    fn finish(&mut self, _: NodeId, value: u64, _: &mut Drops) {
        self.sum += value;
    }
}

fn one(_: Option<u64>, _: &Check<'_>) -> Result<u64, ()> {
    Ok(1)
}

struct YieldOnce(bool);

impl Future for YieldOnce {
    type Output = Result<u64, ()>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut std::task::Context<'_>) -> std::task::Poll<Self::Output> {
        if self.0 {
            return std::task::Poll::Ready(Ok(1));
        }
        self.0 = true;
        cx.waker().wake_by_ref();
        std::task::Poll::Pending
    }
}

type Edges = Vec<(NodeId, NodeId, Edge)>;

fn chain(nodes: u32) -> Edges {
    (1..nodes).map(|node| (NodeId(node - 1), NodeId(node), Edge::Needs)).collect()
}

/// Every node but the last is an input of the last.
fn fan(nodes: u32) -> Edges {
    (0..nodes - 1).map(|node| (NodeId(node), NodeId(nodes - 1), Edge::Needs)).collect()
}

fn engine() -> Engine {
    Engine::new(&Config { cpu_threads: 1, ..Config::default() }).unwrap()
}

fn run(engine: &Engine, dag: &Dag, kind: Kind) -> u64 {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    let (mut work, policies) = (Count { kind, sum: 0 }, Policies::default());
    runtime.block_on(engine.run(dag, &policies, &mut work, &Options::default()).unwrap()).unwrap();
    work.sum
}

/// CPU time of this thread, which other load on the machine does not lengthen.
fn cpu_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

/// Asserts that one piece of work on a million nodes takes about ten times as long as on a hundred thousand. Quadratic
/// work would take a hundred times as long; caches that other processes use as well make it up to fifteen.
///
/// `work` is given how many pieces to do and keeps what it made, so that many small ones touch as much fresh memory
/// as a large one: the first touch of a page costs more than the work on it.
fn assert_linear<T>(what: &str, work: impl FnMut(u32) -> T) {
    assert_linear_from(100_000, what, work);
}

/// The same from so many nodes to ten times as many.
fn assert_linear_from<T>(nodes: u32, what: &str, mut work: impl FnMut(u32) -> T) {
    let mut ratio = f64::INFINITY;
    for _ in 0..8 {
        let mut time = |pieces: usize, nodes: u32| {
            let began = cpu_time();
            let kept: Vec<T> = (0..pieces).map(|_| work(nodes)).collect();
            let took = cpu_time() - began;
            drop(kept);
            took.as_secs_f64() / pieces as f64
        };
        let small = time(10, nodes);
        ratio = ratio.min(time(1, 10 * nodes) / small);
        if ratio <= 20.0 {
            return;
        }
    }
    panic!("{what}: ten times the nodes took {ratio:.1} times as long");
}

#[test]
fn a_million_nodes_take_linear_time_and_flat_stack() {
    let engine = engine();
    for (name, shape) in [("chain", chain as fn(u32) -> Edges), ("fan", fan)] {
        let (small, large) = (shape(100_000), shape(1_000_000));
        let edges = |nodes| if nodes == 100_000 { &small } else { &large };
        assert_linear(&format!("building a {name}"), |nodes| Dag::new(nodes, edges(nodes)).unwrap());
        let (small, large) = (Dag::new(100_000, &small).unwrap(), Dag::new(1_000_000, &large).unwrap());
        for kind in [Kind::Inline, Kind::Async, Kind::Job] {
            assert_linear(&format!("running a {name}"), |nodes| {
                let dag = if nodes == 100_000 { &small } else { &large };
                assert_eq!(run(&engine, dag, kind), u64::from(nodes));
            });
        }
    }
}

/// Calls that each take a millisecond of virtual time.
struct Calls(Arc<dyn Clock>);

impl Workload for Calls {
    type Value = ();
    type Error = ();
    type Future = Pin<Box<dyn Future<Output = Result<(), ()>> + Send>>;
    type Job = fn(Option<()>, &Check<'_>) -> Result<(), ()>;

    fn step(&mut self, _: NodeId, budget: Budget) -> Step<Self> {
        let sleep = self.0.sleep_until(budget.now() + Duration::from_millis(1));
        let future: Self::Future = Box::pin(async {
            sleep.await;
            Ok(())
        });
        Step::Future(future)
    }

    fn finish(&mut self, _: NodeId, (): (), _: &mut Drops) {}
}

#[test]
fn nodes_that_wait_for_a_limit_with_a_fallback_take_linear_time() {
    let sim = Sim::new(1);
    let engine = sim.engine(&Config::default());
    let limits = Limits::new(sim.clock());
    let limit = Some(limits.add("backend", Allowance::fixed(500)).unwrap());
    let policies = Policies::uniform(Policy { limit, on_error: OnError::Fallback, ..Policy::default() });
    let deadline = Some(sim.clock().now() + Duration::from_secs(3600));
    let options = Options { limits: Some(limits), deadline, ..Options::default() };
    assert_linear_from(5_000, "waiting for a limit", |nodes| {
        let (dag, mut work) = (Dag::new(nodes, &[]).unwrap(), Calls(sim.clock()));
        let report = sim.block_on(engine.run(&dag, &policies, &mut work, &options).unwrap()).unwrap();
        assert_eq!((report.finished, report.fell_back), (nodes, 0));
    });
}

#[test]
fn a_node_costs_at_most_100_bytes() {
    const NODES: u32 = 1_000_000;
    let engine = engine();
    for shape in [chain as fn(u32) -> Edges, fan] {
        let edges = shape(NODES);
        let (_, bytes) = alloc::peak_of(|| {
            let dag = Dag::new(NODES, &edges).unwrap();
            run(&engine, &dag, Kind::Inline)
        });
        assert!(bytes <= 100 * NODES as usize, "{} bytes a node", bytes / NODES as usize);
    }
}

#[test]
fn a_warm_run_allocates_nothing_per_node() {
    let engine = engine();
    for kind in [Kind::Inline, Kind::Async, Kind::Job] {
        let [few, many] = [1_000, 100_000].map(|nodes| {
            let dag = Dag::new(nodes, &chain(nodes)).unwrap();
            alloc::count_of(|| run(&engine, &dag, kind)).1
        });
        assert!(many <= few + 8, "{few} allocations for 1,000 nodes, {many} for 100,000");
    }
}

#[test]
fn a_cascade_a_million_deep_needs_no_stack() {
    const NODES: u32 = 1_000_000;
    let dag = Dag::new(NODES, &chain(NODES)).unwrap();
    let mut frontier = anabranch_engine::frontier::Frontier::new(&dag);
    let first = frontier.start_next().unwrap();
    frontier.fail(first, |_| {});
    assert_eq!(frontier.counts().dropped, NODES - 1);
}
