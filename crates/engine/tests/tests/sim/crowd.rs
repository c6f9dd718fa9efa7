//! Seeded simulation of several runs at once on shared limits and flights, with retries, drops, cancels
//! and drains.

use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::Poll;
use std::time::{Duration, Instant};

use anabranch_engine::clock::Clock;
use anabranch_engine::flight::Flights;
use anabranch_engine::limit::{Allowance, Bounds, Concurrency, LimitKey, Limits, Ramp};
use anabranch_engine::policy::StepKind;
use anabranch_engine::retry::{Classified, Retry, Severity};
use anabranch_engine::{
    Budget, Check, Config, Dag, Drain, Drops, Edge, Engine, Failure, Instead, NodeId, OnError, Options,
    Policies, Policy, Step, Workload,
};
use anabranch_testkit::{Rng, Sim};

const CASES: u64 = 6_000;

#[derive(Clone, Copy, Debug)]
struct CallerError(Severity);

impl Classified for CallerError {
    fn severity(&self) -> Severity {
        self.0
    }
}

/// What the runs of a case share.
struct Town {
    clock: Arc<dyn Clock>,
    flights: Flights<u64, Result<u64, Severity>>,
    /// For each key, how many works are underway now.
    underway: Arc<Mutex<[u32; 4]>>,
    /// The drain of some of the runs.
    drain: Drain,
}

/// One run's workload: each node joins a flight by a key that other runs share.
struct Caller<'a> {
    town: &'a Town,
    rng: Rng,
    node_count: u64,
}

/// A work that is underway until dropped.
struct Underway(Arc<Mutex<[u32; 4]>>, usize);

impl Underway {
    fn new(counts: Arc<Mutex<[u32; 4]>>, key: usize) -> Underway {
        let mut locked = counts.lock().unwrap();
        locked[key] += 1;
        assert_eq!(locked[key], 1, "two works of one key at a time");
        drop(locked);
        Underway(counts, key)
    }
}

impl Drop for Underway {
    fn drop(&mut self) {
        self.0.lock().unwrap()[self.1] -= 1;
    }
}

impl Caller<'_> {
    fn work(&mut self, key: u64) -> impl Future<Output = Result<u64, Severity>> + Send + use<> {
        let (clock, counts) = (Arc::clone(&self.town.clock), Arc::clone(&self.town.underway));
        let time = self.rng.micros(0..4_000);
        let severity = match self.rng.within(0..12) {
            0 => Some(Severity::Transient),
            1 => Some(Severity::Throttled { retry_after: Some(self.rng.micros(0..3_000)) }),
            2 => Some(Severity::Permanent),
            _ => None,
        };
        async move {
            let _underway = Underway::new(counts, key as usize);
            clock.sleep_until(clock.now() + time).await;
            severity.map_or(Ok(key), Err)
        }
    }
}

type CallerFuture = Pin<Box<dyn Future<Output = Result<u64, CallerError>> + Send>>;

impl Workload for Caller<'_> {
    type Value = u64;
    type Error = CallerError;
    type Future = CallerFuture;
    type Job = fn(Option<u64>, &Check<'_>) -> Result<u64, CallerError>;

    fn step(&mut self, _: NodeId, _: Budget) -> Step<Self> {
        let key = self.rng.within(0..4);
        let work = self.work(key);
        let waiter = self.town.flights.join(key, || None, || work);
        let future: CallerFuture = Box::pin(async move {
            match waiter.await {
                Ok(Ok(value)) => Ok(value),
                Ok(Err(severity)) => Err(CallerError(severity)),
                Err(_) => Err(CallerError(Severity::Permanent)),
            }
        });
        Step::Future(future)
    }

    fn finish(&mut self, _: NodeId, value: u64, drops: &mut Drops) {
        assert!(value < 4);
        if self.rng.percent(5) {
            drops.push(NodeId(self.rng.within(0..self.node_count) as u32));
        }
    }

    fn fallback(&mut self, _: NodeId, _: &Failure<CallerError>) -> Instead<u64> {
        match self.rng.percent(70) {
            true => Instead::Value(0),
            false if self.rng.percent(50) => Instead::Nothing,
            false => Instead::Fail,
        }
    }
}

fn policies(rng: &mut Rng, keys: &[LimitKey], nodes: u32) -> Policies {
    let policies = (0..nodes).map(|_| Policy {
        step: *rng.choose(&[StepKind::Auto, StepKind::Spawned]),
        timeout: rng.percent(20).then(|| rng.micros(1..5_000)),
        on_error: *rng.choose(&[OnError::Isolate, OnError::Isolate, OnError::Fallback, OnError::FailRun]),
        retry: rng.percent(60).then(|| Retry {
            rounds: 2,
            base: rng.micros(0..1_000),
            longest: Duration::from_millis(2),
            ..Retry::default()
        }),
        limit: rng.percent(70).then(|| *rng.choose(keys)),
        ..Policy::default()
    });
    Policies::repeating(policies.collect())
}

fn limits(rng: &mut Rng, table: &Limits) -> Vec<LimitKey> {
    let allowance = |concurrency, parent| Allowance { concurrency, requests: None, tokens: None, parent };
    let account = table.add("account", allowance(Concurrency::Fixed(rng.within(1..6) as u32), None)).unwrap();
    let bounds = Bounds { min: 1, max: 8, start: rng.within(1..9) as u32, ramp: Ramp::One };
    let adaptive = table.add("model", allowance(Concurrency::Adaptive(bounds), Some(account))).unwrap();
    vec![account, adaptive, table.add("other", allowance(Concurrency::Fixed(2), None)).unwrap()]
}

/// Drives one run, or drops it when its owner's patience ends.
async fn one_run(engine: &Engine, town: &Town, seed: u64, keys: &[LimitKey], table: &Limits) {
    let mut rng = Rng::new(seed);
    let nodes = rng.within(1..15) as u32;
    let edges: Vec<_> = (1..nodes)
        .filter(|_| rng.percent(60))
        .map(|node| (NodeId(node / 2), NodeId(node), if node % 3 == 0 { Edge::After } else { Edge::Needs }))
        .filter(|edge| edge.0 != edge.1)
        .collect();
    let dag = Dag::new(nodes, &edges).unwrap();
    let policies = policies(&mut rng, keys, nodes);
    let now = town.clock.now();
    let options = Options {
        deadline: rng.percent(30).then(|| now + rng.micros(1..20_000)),
        in_flight: rng.within(1..6) as usize,
        limits: Some(table.clone()),
        drain: rng.percent(50).then(|| town.drain.clone()),
        seed,
        ..Options::default()
    };
    let patience = if rng.percent(30) { rng.micros(0..10_000) } else { Duration::from_secs(3600) };
    let mut patience = town.clock.sleep_until(now + patience);
    let mut work = Caller { town, node_count: nodes.into(), rng };
    let Ok(mut run) = engine.run(&dag, &policies, &mut work, &options) else { return };
    std::future::poll_fn(|cx| match Pin::new(&mut run).poll(cx) {
        Poll::Ready(_) => Poll::Ready(()),
        Poll::Pending => patience.as_mut().poll(cx),
    })
    .await;
}

/// Polls all until all are done.
async fn all<'a>(mut futures: Vec<Pin<Box<dyn Future<Output = ()> + 'a>>>) {
    std::future::poll_fn(|cx| {
        futures.retain_mut(|future| future.as_mut().poll(cx).is_pending());
        if futures.is_empty() { Poll::Ready(()) } else { Poll::Pending }
    })
    .await;
}

fn case(seed: u64) {
    let mut rng = Rng::new(seed);
    let sim = Sim::new(rng.bits());
    let engine = sim.engine(&Config::default());
    let town = Town {
        clock: sim.clock(),
        flights: Flights::default(),
        underway: Arc::default(),
        drain: Drain::new(),
    };
    let table = Limits::new(sim.clock());
    let keys = limits(&mut rng, &table);
    let mut futures: Vec<Pin<Box<dyn Future<Output = ()> + '_>>> = Vec::new();
    for _ in 0..rng.within(1..6) {
        futures.push(Box::pin(one_run(&engine, &town, rng.bits(), &keys, &table)));
    }
    if rng.percent(20) {
        let (engine, clock, at) = (&engine, &town.clock, rng.micros(0..8_000));
        let begin: Instant = clock.now() + at;
        futures.push(Box::pin(async move {
            clock.sleep_until(begin).await;
            engine.drain(Duration::from_millis(3)).await;
        }));
    }
    let sleep = town.clock.sleep_until(town.clock.now() + rng.micros(0..30_000));
    let drain = town.drain.clone();
    let beginning = engine.tasks().spawn(Box::pin(async move {
        sleep.await;
        drain.begin();
    }));
    sim.block_on(all(futures));
    drop(beginning);
    for key in keys {
        let standing = table.status(key);
        assert_eq!((standing.in_flight, standing.waiting), (0, 0), "left with a limit");
    }
    assert_eq!((town.flights.open(), town.flights.waiters()), (0, 0), "flights left");
    assert_eq!(*town.underway.lock().unwrap(), [0; 4], "works left");
    assert_eq!(sim.leftovers().tasks, 0, "tasks left");
    let drained = sim.block_on(engine.drain(Duration::ZERO));
    assert!(drained.cut.is_empty() && drained.stuck.is_empty());
}

#[test]
fn nothing_leaks_from_runs_that_share_limits_and_flights() {
    super::each_seed(CASES, case);
}
