//! Seeded simulation: random graphs, policies, outcomes, drops, deadlines, drains and cancels on the virtual machine.
//!
//! `./dev sim SEED` replays one case.

mod crowd;

use std::collections::HashSet;
use std::hash::{BuildHasher, RandomState};
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use anabranch_engine::clock::Clock;
use anabranch_engine::event::EventKind;
use anabranch_engine::limit::{Allowance, Concurrency, LimitKey, Limits};
use anabranch_engine::policy::{SerialKey, StepKind};
use anabranch_engine::retry::{Classified, Retry, Salvage, Severity};
use anabranch_engine::tasks::AbortOnDrop;
use anabranch_engine::{
    Budget, Check, Config, Cost, Dag, Drain, Drops, Edge, Engine, Failure, Graph, Instead, NodeId, OnError,
    Options, Policies, Policy, Step, Workload,
};
use anabranch_testkit::{Rng, Sim, spend};

use crate::judge::Judge;
use crate::script::listen;

const CASES: u64 = 12_000;

/// Cases with new seeds in each run of the tests.
const FRESH: u64 = 300;

/// Everything about one case, made from its seed.
pub(crate) struct Case {
    pub(crate) dag: Dag,
    pub(crate) policies: Vec<Policy>,
    /// Whether the fallback of a node is to give nothing.
    pub(crate) gives_nothing: Vec<bool>,
    acts: Vec<Act>,
    pub(crate) options: Options,
    /// The keys that policies name, and how many calls each allows at a time.
    pub(crate) limits: Vec<(LimitKey, u32)>,
    /// How long until the owner loses patience and drops the run.
    patience: Option<Duration>,
    /// How long until the run is drained.
    drained_after: Option<Duration>,
    /// True if a node needs the limit of its policy.
    pub(crate) needs_limit: Vec<bool>,
}

#[derive(Clone, Debug)]
struct Act {
    kind: Kind,
    time: Duration,
    /// How often a job asks its check, if ever.
    asks_every: Option<Duration>,
    end: End,
    linkable: bool,
    drops: Vec<NodeId>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Kind {
    Ready,
    Future,
    Job(Option<Duration>),
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum End {
    Finish,
    Fail,
    Panic,
    Skip,
    Flaky(u32),
    Throttled(u32, Duration),
}

impl Case {
    fn new(rng: &mut Rng, clock: &Arc<dyn Clock>) -> Case {
        let now = clock.now();
        let table = Limits::new(Arc::clone(clock));
        let limits = limits(rng, &table);
        let node_count = rng.within(1..40) as u32;
        let dag = Dag::new(node_count, &edges(rng, node_count)).unwrap();
        // Some cases are rough, some smooth, so that long runs happen too.
        let trouble = *rng.choose(&[0, 3, 20]);
        let (policies, gives_nothing) = (0..node_count).map(|_| policy(rng, &limits)).unzip();
        let acts = (0..node_count).map(|_| act(rng, node_count, trouble)).collect();
        let options = Options {
            deadline: rng.percent(40).then(|| now + rng.micros(1..60_000)),
            in_flight: rng.within(1..9) as usize,
            inline_threshold: rng.percent(50).then(|| rng.micros(0..3_000)),
            limits: Some(table),
            seed: rng.bits(),
            drain: Some(Drain::new()),
            ..Options::default()
        };
        Case {
            dag,
            policies,
            gives_nothing,
            acts,
            options,
            limits,
            patience: rng.percent(20).then(|| rng.micros(0..20_000)),
            drained_after: rng.percent(30).then(|| rng.micros(0..20_000)),
            needs_limit: (0..node_count).map(|_| rng.percent(80)).collect(),
        }
    }
}

fn edges(rng: &mut Rng, node_count: u32) -> Vec<(NodeId, NodeId, Edge)> {
    let mut order: Vec<u32> = (0..node_count).collect();
    for place in (1..order.len()).rev() {
        order.swap(place, rng.within(0..place as u64 + 1) as usize);
    }
    let density = *rng.choose(&[1, 4, 15]);
    let mut edges = Vec::new();
    for to in 1..node_count as usize {
        let chained = rng.percent(40);
        for from in 0..to {
            if rng.percent(density) || (chained && from + 1 == to) {
                let kind = if rng.percent(25) { Edge::After } else { Edge::Needs };
                edges.push((NodeId(order[from]), NodeId(order[to]), kind));
            }
        }
    }
    edges
}

/// Up to three limits, the later ones under the first at times.
fn limits(rng: &mut Rng, table: &Limits) -> Vec<(LimitKey, u32)> {
    let mut keys: Vec<(LimitKey, u32)> = Vec::new();
    for _ in 0..rng.within(0..4) {
        let limit = rng.within(1..4) as u32;
        let parent = keys.first().filter(|_| rng.percent(50)).map(|(key, _)| *key);
        let allowance =
            Allowance { concurrency: Concurrency::Fixed(limit), requests: None, tokens: None, parent };
        keys.push((table.add(&keys.len().to_string(), allowance).unwrap(), limit));
    }
    keys
}

/// A policy, and whether the fallback of its node is to give nothing.
fn policy(rng: &mut Rng, limits: &[(LimitKey, u32)]) -> (Policy, bool) {
    let kinds = [
        StepKind::Auto,
        StepKind::Auto,
        StepKind::Inline,
        StepKind::Spawned,
        StepKind::Pool,
        StepKind::Blocking,
    ];
    let modes = [
        (OnError::Isolate, false),
        (OnError::Isolate, false),
        (OnError::Fallback, false),
        (OnError::Fallback, true),
        (OnError::FailRun, false),
    ];
    let (step, timeout) = (*rng.choose(&kinds), rng.percent(15).then(|| rng.micros(1..8_000)));
    let (on_error, gives_nothing) = *rng.choose(&modes);
    let policy = Policy {
        step,
        timeout,
        on_error,
        limit: (!limits.is_empty() && rng.percent(40)).then(|| rng.choose(limits).0),
        retry: rng.percent(30).then(|| Retry {
            rounds: rng.within(0..3) as u32,
            base: rng.micros(0..2_000),
            longest: Duration::from_millis(3),
            salvage: Salvage { rounds: rng.within(0..2) as u32, pause: rng.micros(0..3_000) },
        }),
        serial: rng.percent(10).then(|| SerialKey(rng.within(0..2) as u32)),
        tokens: 0,
    };
    (policy, gives_nothing)
}

fn act(rng: &mut Rng, node_count: u32, trouble: u64) -> Act {
    let time = rng.micros(0..6_000);
    let kind = match rng.within(0..3) {
        0 => Kind::Ready,
        1 => Kind::Future,
        _ => Kind::Job(rng.percent(70).then_some(time)),
    };
    let (times, pause) = (rng.within(1..4) as u32, rng.micros(0..3_000));
    let troubles = [End::Fail, End::Panic, End::Skip, End::Flaky(times), End::Throttled(times, pause)];
    let end = if rng.percent(trouble) { *rng.choose(&troubles) } else { End::Finish };
    let drops = if rng.percent(trouble / 3) {
        vec![NodeId(rng.within(0..u64::from(node_count)) as u32)]
    } else {
        vec![]
    };
    let asks_every = rng.percent(60).then(|| rng.micros(1..2_000));
    Act { kind, time, asks_every, end, linkable: rng.percent(70), drops }
}

/// Carries a case out and takes down what the engine calls; [`Judge`] holds it against the rules.
struct Actor<'a> {
    case: &'a Case,
    clock: Arc<dyn Clock>,
    judge: Judge<'a>,
}

/// Which node broke, and how.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct NodeError(pub(crate) NodeId, Severity);

impl Classified for NodeError {
    fn severity(&self) -> Severity {
        self.1
    }
}

type Outcome = Result<NodeId, NodeError>;

/// How try `tries` (from 1) of `node` ends.
fn end(node: NodeId, end: End, tries: u32) -> Outcome {
    match end {
        End::Fail => Err(NodeError(node, Severity::Permanent)),
        End::Flaky(times) if tries <= times => Err(NodeError(node, Severity::Transient)),
        End::Throttled(times, pause) if tries <= times => {
            Err(NodeError(node, Severity::Throttled { retry_after: Some(pause) }))
        }
        End::Flaky(_) | End::Throttled(..) => Ok(node),
        End::Panic => std::panic::resume_unwind(Box::new("planned")),
        End::Finish | End::Skip => Ok(node),
    }
}

/// Takes `time`, or less when the check says to stop.
fn work(time: Duration, asks_every: Option<Duration>, check: &Check<'_>) {
    let Some(interval) = asks_every else { return spend(time) };
    let mut left = time;
    while !left.is_zero() && !check.should_stop() {
        let part = left.min(interval);
        spend(part);
        left -= part;
    }
    // The time may have passed with the last part.
    check.should_stop();
}

impl Actor<'_> {
    fn job(&self, node: NodeId, input: Option<NodeId>) -> <Self as Workload>::Job {
        let Act { time, asks_every, end: how, .. } = &self.case.acts[node.index()];
        let (time, asks_every, how) = (*time, *asks_every, *how);
        let tries = self.judge.tries(node).max(1);
        Box::new(move |handed, check| {
            assert_eq!(handed, input, "the value of the job before is handed over");
            work(time, asks_every, check);
            end(node, how, tries)
        })
    }
}

impl Workload for Actor<'_> {
    type Value = NodeId;
    type Error = NodeError;
    type Future = Pin<Box<dyn Future<Output = Outcome> + Send>>;
    type Job = Box<dyn FnOnce(Option<NodeId>, &Check<'_>) -> Outcome + Send>;

    fn step(&mut self, node: NodeId, budget: Budget) -> Step<Self> {
        self.judge.stepped(node, budget);
        let act = &self.case.acts[node.index()];
        if act.end == End::Skip {
            self.judge.drops_asked.insert(node);
            return Step::Drop;
        }
        match act.kind {
            Kind::Ready => Step::Ready(end(node, act.end, self.judge.tries(node))),
            Kind::Future => {
                let (sleep, how) = (self.clock.sleep_until(budget.now() + act.time), act.end);
                let tries = self.judge.tries(node);
                let future: Self::Future = Box::pin(async move {
                    sleep.await;
                    end(node, how, tries)
                });
                Step::Future(future)
            }
            Kind::Job(cost) => Step::Job(self.job(node, None), cost.map_or(Cost::Unknown, Cost::About)),
        }
    }

    fn needs_limit(&mut self, node: NodeId) -> bool {
        self.case.needs_limit[node.index()]
    }

    fn link(&mut self, node: NodeId, input: NodeId) -> Option<Self::Job> {
        let act = &self.case.acts[node.index()];
        if !act.linkable || act.kind == Kind::Ready || act.end == End::Skip {
            return None;
        }
        self.judge.linked(node, input);
        Some(self.job(node, Some(input)))
    }

    fn finish(&mut self, node: NodeId, value: NodeId, drops: &mut Drops) {
        assert_eq!(node, value, "a node is handed its own value");
        self.judge.finished(node);
        for other in &self.case.acts[node.index()].drops {
            self.judge.drops_asked.insert(*other);
            drops.push(*other);
        }
    }

    fn fail(&mut self, node: NodeId, failure: Failure<NodeError>, _: &mut Drops) {
        self.judge.failed(node, &failure);
    }

    fn fallback(&mut self, node: NodeId, failure: &Failure<NodeError>) -> Instead<NodeId> {
        if self.case.gives_nothing[node.index()] {
            return Instead::Nothing;
        }
        self.judge.fell_back(node, failure);
        Instead::Value(node)
    }

    fn release(&mut self, node: NodeId) {
        self.judge.released(node);
    }
}

/// Runs the case of `seed`; its events, by the time since the first.
fn run_case(seed: u64) -> Vec<(Duration, EventKind)> {
    let mut rng = Rng::new(seed);
    let sim = Sim::new(rng.bits());
    let engine = sim.engine(&Config::default());
    let mut listener = listen(&engine);
    let clock = engine.clock();
    let case = Case::new(&mut rng, clock);
    let policies = Policies::repeating(case.policies.clone());
    let mut actor = Actor { case: &case, clock: Arc::clone(clock), judge: Judge::new(&case) };
    let begun = Arc::new(Mutex::new(None));
    let beginning = begin_drain(&engine, &case, &begun);
    let run = engine.run(&case.dag, &policies, &mut actor, &case.options).unwrap();
    let result = match case.patience {
        None => Some(sim.block_on(run)),
        Some(patience) => sim.block_on(with_patience(run, clock.sleep_until(clock.now() + patience))),
    };
    let ended_at = clock.now();
    drop(beginning);
    let mut judge = actor.judge;
    judge.drain_begun = *begun.lock().unwrap();
    judge.hear(&mut listener);
    judge.verdict(result, ended_at);
    // A run that is over leaves nothing behind: no task, no place among the active, and late results fall silent.
    assert_eq!(sim.leftovers().tasks, 0, "tasks left behind");
    for (key, _) in &case.limits {
        let standing = case.options.limits.as_ref().unwrap().status(*key);
        assert_eq!((standing.in_flight, standing.waiting), (0, 0), "left with a limit");
    }
    let drained = sim.block_on(engine.drain(Duration::ZERO));
    assert!(drained.cut.is_empty() && drained.stuck.is_empty(), "{drained:?}");
    assert_eq!(sim.settle().jobs, 0);
    assert!(listener.try_next().is_none(), "something happened after the end");
    judge.into_events()
}

/// Begins the drain of a case in a task of its own, so that only the drain can wake the run.
fn begin_drain(engine: &Engine, case: &Case, begun: &Arc<Mutex<Option<Instant>>>) -> Option<AbortOnDrop> {
    let clock = Arc::clone(engine.clock());
    let at = clock.now() + case.drained_after?;
    let (drain, begun) = (case.options.drain.clone()?, Arc::clone(begun));
    Some(engine.tasks().spawn(Box::pin(async move {
        clock.sleep_until(at).await;
        *begun.lock().unwrap() = Some(clock.now());
        drain.begin();
    })))
}

async fn with_patience<F: Future + Unpin>(
    mut run: F,
    patience: anabranch_engine::clock::Sleep,
) -> Option<F::Output> {
    let mut patience = patience;
    std::future::poll_fn(|cx| match Pin::new(&mut run).poll(cx) {
        std::task::Poll::Ready(output) => std::task::Poll::Ready(Some(output)),
        std::task::Poll::Pending => patience.as_mut().poll(cx).map(|()| None),
    })
    .await
}

#[test]
fn random_runs_keep_every_rule() {
    each_seed(CASES, |seed| drop(run_case(seed)));
}

/// Calls `case` with each of the fixed seeds below `fixed` and with [`FRESH`] new ones, or with the one that
/// `./dev sim SEED` gives.
fn each_seed(fixed: u64, case: impl Fn(u64) + std::panic::RefUnwindSafe) {
    let seeds: Vec<u64> = match std::env::var("ANABRANCH_SIM_SEED") {
        Ok(seed) => vec![seed.parse().expect("ANABRANCH_SIM_SEED is a number")],
        Err(_) => (0..fixed).chain(fresh_seeds()).collect(),
    };
    for seed in seeds {
        if let Err(payload) = std::panic::catch_unwind(|| case(seed)) {
            eprintln!("the case with seed {seed} failed; `./dev sim {seed}` replays it");
            std::panic::resume_unwind(payload);
        }
    }
}

/// New seeds with each call: a hasher's keys are random.
fn fresh_seeds() -> impl Iterator<Item = u64> {
    let mut rng = Rng::new(RandomState::new().hash_one(0));
    (0..FRESH).map(move |_| rng.bits())
}

#[test]
fn a_seed_replays_exactly() {
    for seed in 0..600 {
        assert!(run_case(seed) == run_case(seed), "seed {seed} took another way when run again");
    }
}

#[test]
fn cases_cover_what_they_are_meant_to() {
    let (mut deadlines, mut cancels, mut drains, mut kinds) = (0, 0, 0, HashSet::new());
    for seed in 0..200 {
        let mut rng = Rng::new(seed);
        let sim = Sim::new(rng.bits());
        let case = Case::new(&mut rng, &sim.clock());
        deadlines += usize::from(case.options.deadline.is_some());
        cancels += usize::from(case.patience.is_some());
        drains += usize::from(case.drained_after.is_some());
        let policies = case.policies.iter().zip(&case.gives_nothing);
        kinds.extend(
            policies.map(|(policy, nothing)| format!("{:?} {:?} {nothing}", policy.step, policy.on_error)),
        );
        assert_eq!(case.dag.node_count() as usize, case.acts.len());
    }
    assert!(deadlines > 40 && cancels > 20 && drains > 40, "{deadlines} {cancels} {drains}");
    assert_eq!(kinds.len(), 20);
}
