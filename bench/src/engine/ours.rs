//! The engine.

use std::convert::Infallible;
use std::num::NonZeroUsize;
use std::sync::Arc;

use anabranch_engine::event::Listener;
use anabranch_engine::policy::StepKind;
use anabranch_engine::{
    Budget, Check, Config, Cost, Drops, Engine, Job, NodeId, Options, Policies, Policy, Step, Workload,
};

use super::contender::{Contender, Peer};
use super::shapes::Shape;
use super::work::{CPU_COST, Kind, Later};

/// The engine with default policies: a job's cost says where it goes, which is in place.
pub(crate) struct Ours {
    engine: Engine,
    policies: Policies,
    options: Options,
    shape: Arc<Shape>,
    kind: Kind,
    values: Vec<u64>,
}

impl Ours {
    pub(crate) fn new(shape: &Arc<Shape>, kind: Kind) -> Ours {
        Ours {
            engine: Engine::new(&Config::default()).expect("the default has no zero"),
            policies: Policies::default(),
            options: Options::default(),
            shape: Arc::clone(shape),
            kind,
            values: shape.nodes().map(|_| 0).collect(),
        }
    }

    pub(crate) fn with(self, policies: Policies, options: Options) -> Ours {
        Ours { policies, options, ..self }
    }
}

impl Peer for Ours {
    fn prepare(shape: &Arc<Shape>, kind: Kind) -> Result<Ours, &'static str> {
        Ok(Ours::new(shape, kind))
    }
}

impl Contender for Ours {
    async fn run(&mut self) -> u64 {
        let mut work = Numbers { shape: &self.shape, kind: self.kind, values: &mut self.values };
        let run = self.engine.run(&self.shape.dag, &self.policies, &mut work, &self.options);
        run.expect("the engine has room").await.expect("no node fails");
        self.shape.result(|sink| self.values[sink.index()])
    }
}

/// The engine with every job sent to the CPU pool; chains travel together.
pub(crate) struct PooledEngine(Ours);

impl PooledEngine {
    pub(crate) fn new(shape: &Arc<Shape>, kind: Kind) -> PooledEngine {
        let policies = Policies::uniform(Policy { step: StepKind::Pool, ..Policy::default() });
        PooledEngine(Ours::new(shape, kind).with(policies, Options::default()))
    }
}

impl Peer for PooledEngine {
    fn prepare(shape: &Arc<Shape>, kind: Kind) -> Result<PooledEngine, &'static str> {
        Ok(PooledEngine::new(shape, kind))
    }
}

impl Contender for PooledEngine {
    async fn run(&mut self) -> u64 {
        self.0.run().await
    }
}

/// The engine with a listener that has room for every event of a run and takes them in between.
pub(crate) struct EngineWithListener(Ours, Listener);

impl EngineWithListener {
    pub(crate) fn new(ours: Ours) -> EngineWithListener {
        let bound = NonZeroUsize::new(2 * ours.values.len() + 2).expect("it is at least 2");
        let listener = ours.engine.events().listen(bound);
        EngineWithListener(ours, listener)
    }
}

impl Contender for EngineWithListener {
    const RUNS_PER_RESET: u32 = 1;

    async fn reset(&mut self) {
        while self.1.try_next().is_some() {}
    }

    async fn run(&mut self) -> u64 {
        self.0.run().await
    }
}

struct Numbers<'a> {
    shape: &'a Shape,
    kind: Kind,
    values: &'a mut [u64],
}

impl Workload for Numbers<'_> {
    type Value = u64;
    type Error = Infallible;
    type Future = Later<Result<u64, Infallible>>;
    type Job = Spin;

    fn step(&mut self, node: NodeId, _: Budget) -> Step<Self> {
        let sum = self.shape.gather(node, |input| self.values[input.index()]);
        match self.kind {
            Kind::Inline => Step::Ready(Ok(self.kind.value(sum))),
            Kind::Async => Step::Future(Later::new(Ok(self.kind.value(sum)))),
            Kind::Cpu | Kind::Empty => Step::Job(Spin(self.kind, sum), Cost::About(CPU_COST)),
        }
    }

    fn link(&mut self, node: NodeId, input: NodeId) -> Option<Spin> {
        let others = |other: NodeId| if other == input { 0 } else { self.values[other.index()] };
        Some(Spin(self.kind, self.shape.gather(node, others)))
    }

    fn finish(&mut self, node: NodeId, value: u64, _: &mut Drops) {
        self.values[node.index()] = value;
    }
}

/// What the node starts from, the value of the job before it aside.
struct Spin(Kind, u64);

impl Job<u64, Infallible> for Spin {
    fn run(self, input: Option<u64>, _: &Check<'_>) -> Result<u64, Infallible> {
        Ok(self.0.value(self.1.wrapping_add(input.unwrap_or(0))))
    }
}
