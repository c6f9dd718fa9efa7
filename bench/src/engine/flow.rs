//! What flow control costs: joining a flight, being granted a slot, drawing a timeline.

use std::convert::Infallible;
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anabranch_engine::event::ListenerItem;
use anabranch_engine::flight::Flights;
use anabranch_engine::limit::{Allowance, Limits};
use anabranch_engine::timeline::Timeline;
use anabranch_engine::{
    Budget, Check, Config, Dag, Drops, Engine, NodeId, OnError, Options, Policies, Policy, Step, Workload,
};
use futures_util::future::join_all;

use super::aims::{Aim, aim, aside};
use super::contender::runtime;
use super::digits;
use super::work::Later;
use crate::counting::count;
use crate::watch::Watch;

pub(super) fn aims() -> Vec<Aim> {
    let mut aims = vec![flight()];
    aims.extend(slots());
    aims.push(million());
    aims.push(timeline());
    aims
}

fn fastest(mut batch: impl FnMut() -> f64) -> f64 {
    (0..9).map(|_| batch()).min_by(f64::total_cmp).expect("there are nine")
}

fn flight() -> Aim {
    const JOINS: u64 = 100_000;
    let flights: Flights<u64, u64> = Flights::default();
    let join = || flights.join(7, || None, std::future::pending::<u64>);
    let open = join();
    let nanos = fastest(|| {
        let watch = Watch::start();
        for _ in 0..JOINS {
            drop(std::hint::black_box(join()));
        }
        watch.stop().share(JOINS).wall
    });
    drop(open);
    aim("joining a flight and leaving it: <= 200 ns", format!("{} ns", digits(nanos)), nanos <= 200.0)
}

/// Nodes that are each pending once.
struct Calls;

impl Workload for Calls {
    type Value = ();
    type Error = Infallible;
    type Future = Later<Result<(), Infallible>>;
    type Job = fn(Option<()>, &Check<'_>) -> Result<(), Infallible>;

    fn step(&mut self, _: NodeId, _: Budget) -> Step<Self> {
        Step::Future(Later::new(Ok(())))
    }

    fn finish(&mut self, _: NodeId, (): (), _: &mut Drops) {}
}

/// So many runs of so many nodes each, beside each other, all under one limit or none.
struct Crowd {
    engine: Engine,
    dag: Dag,
    policies: Policies,
    options: Options,
    runs: usize,
}

impl Crowd {
    fn new(runs: usize, nodes: u32, limit: Option<u32>) -> Crowd {
        let engine = Engine::new(&Config::default()).expect("the defaults work");
        let limits = Limits::new(Arc::clone(engine.clock()));
        let key = limit.map(|limit| limits.add("backend", Allowance::fixed(limit)));
        let limit = key.transpose().expect("a limit above 0");
        let policies = Policies::uniform(Policy { limit, ..Policy::default() });
        let options = Options { limits: Some(limits), in_flight: 64, ..Options::default() };
        Crowd { engine, dag: Dag::new(nodes, &[]).expect("no edges"), policies, options, runs }
    }

    /// The same with a fallback for each node and a deadline.
    fn guarded(mut self) -> Crowd {
        let policy = Policy { on_error: OnError::Fallback, ..*self.policies.of(NodeId(0)) };
        self.policies = Policies::uniform(policy);
        self.options.deadline = Some(self.engine.clock().now() + Duration::from_secs(3600));
        self
    }

    async fn run(&self) {
        let one = || async {
            let mut calls = Calls;
            let run = self.engine.run(&self.dag, &self.policies, &mut calls, &self.options);
            run.expect("admitted").await.expect("nothing fails");
        };
        join_all((0..self.runs).map(|_| one())).await;
    }

    /// Nanoseconds per node.
    fn measure(&self, nodes: u64) -> f64 {
        let runtime = runtime(1);
        fastest(|| {
            let watch = Watch::start();
            runtime.block_on(self.run());
            watch.stop().share(nodes * self.runs as u64).wall
        })
    }
}

fn slots() -> Vec<Aim> {
    let cost = |runs: usize, nodes: u32| {
        let free = Crowd::new(runs, nodes, None).measure(nodes.into());
        Crowd::new(runs, nodes, Some(64)).measure(nodes.into()) - free
    };
    let (alone, hundred, many) = (cost(1, 100_000), cost(100, 1_000), cost(10_000, 10));
    const WAITING: u32 = 1_000_000;
    let waiting = |limit: Option<u32>| Crowd::new(1, WAITING, limit).guarded().measure(WAITING.into());
    // Half of what the run may have in flight, so that each node waits first.
    let guarded = waiting(Some(32)) - waiting(None);
    vec![
        aim(
            "a limit's slot, asked for, granted and given back: <= 200 ns",
            format!("{} ns per node", digits(alone)),
            alone <= 200.0,
        ),
        aim(
            "the same for 1,000,000 waiting nodes with a fallback and a deadline: <= 300 ns",
            format!("{} ns per node", digits(guarded)),
            guarded <= 300.0,
        ),
        aside(
            "the same with 100 and with 10,000 runs taking turns",
            format!("{} and {} ns per node", digits(hundred), digits(many)),
        ),
    ]
}

fn million() -> Aim {
    const NODES: u32 = 1_000_000;
    let crowd = Crowd::new(1, NODES, Some(64));
    let runtime = runtime(1);
    runtime.block_on(crowd.run());
    let watch = Watch::start();
    let ((), counted) = count(|| runtime.block_on(crowd.run()));
    let nanos = watch.stop().share(NODES.into()).wall;
    let bytes = counted.peak / NODES as usize;
    let measured = format!("{} ns and {bytes} bytes per node, {} allocations", digits(nanos), counted.calls);
    aim("1,000,000 ready nodes under one limit: no scan, no future each", measured, counted.calls < 1_000)
}

fn timeline() -> Aim {
    const NODES: u32 = 5_000;
    let crowd = Crowd::new(1, NODES, None);
    let mut listener = crowd.engine.events().listen(NonZeroUsize::MIN.saturating_add(100_000));
    runtime(1).block_on(crowd.run());
    let items: Vec<ListenerItem> = std::iter::from_fn(|| listener.try_next()).collect();
    let Some(ListenerItem::Event(first)) = items.first() else { panic!("a run is heard") };
    let mut size = 0;
    let best = fastest(|| {
        let began = Instant::now();
        let timeline = Timeline::new(first.run, &crowd.dag, &items).expect("its own graph");
        size = timeline.html("bench", &|node| node.to_string()).len();
        began.elapsed().as_secs_f64() * 1e3
    });
    let limit = Duration::from_millis(50).as_secs_f64() * 1e3;
    let measured = format!("{best:.1} ms for {} events, {} kB", items.len(), size / 1000);
    aim("a timeline of 10,000 events, drawn: < 50 ms", measured, best < limit)
}
