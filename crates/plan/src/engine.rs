//! Plans of a process: loaded once, run by many.

use std::collections::{BTreeMap, HashMap};
use std::hash::{BuildHasher as _, DefaultHasher, Hash as _, Hasher as _, RandomState};
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use anabranch_engine as engine;
use anabranch_engine::Options;
use anabranch_engine::limit::{Allowance, Concurrency, LimitKey, Limits};
use anabranch_engine::options::{Class, Reserve};
use anabranch_text::{Problem, Problems};
use tokio::sync::oneshot;

use crate::admission::{PlanAdmission, SlowRequests};
use crate::answer::{Answer, RequestId, Stats};
use crate::bounds::Budget;
use crate::call::{Answers, Call};
use crate::compiled::Compiled;
use crate::error::Error;
use crate::inspect::{Inspection, InspectionOutcome, Replay};
use crate::ledger::LedgerEntry;
use crate::metrics::PlanMetrics;
use crate::op::{FilesFrom, Ops};
use crate::planner::{self, RowDemand, Surroundings};
use crate::registry::Registries;
use crate::request::Request;
use crate::run::Work;
use crate::source::{
    HedgeCounts, Hedging, MalformedValues, ReadTimes, Shared, Source, StaleStore, TraceContext,
};

/// The time for which a request may continue after its deadline if all of its remaining work is done in place. Timers
/// fire late, especially on a busy machine.
const GRACE: Duration = Duration::from_millis(1);

/// The configuration of an engine.
pub struct Config {
    /// Keys, parameters, endpoints, rules.
    pub registries: Registries,
    /// The sources of rows: one per endpoint of the registries, in their order.
    pub sources: Vec<Arc<dyn Source>>,
    /// The kinds of node.
    pub ops: Ops,
    /// The folder of `NAME.plan.json` files.
    pub folder: Option<PathBuf>,
    /// The folders in which plans may name files, besides the folder of each plan.
    pub files: Vec<PathBuf>,
    /// The engine's settings: threads, inline threshold, number of runs.
    pub runs: engine::Config,
    /// Whether to refuse requests that would miss their deadline under the current load.
    pub admission: bool,
    /// The seed of generated request ids; random unless a test sets it.
    pub seed: u64,
    /// The memory for replies that are kept for fallbacks to stale values, for all plans together, in bytes.
    pub stale_bytes: usize,
}

/// The bytes of remembered replies, if nothing else is said.
const STALE_BYTES: usize = 64 << 20;

/// The most plans that are counted by name. Beyond it, plans without a holder are evicted and new ones are not counted.
const MAX_ADMISSIONS: usize = 4096;

/// Loads plans and runs them. A handle: clones share everything.
#[derive(Clone)]
pub struct Engine(Arc<Inner>);

struct Inner {
    runs: engine::Engine,
    inline_threshold: Duration,
    registries: Arc<Registries>,
    sources: Vec<Arc<dyn Source>>,
    ops: Ops,
    folder: Option<PathBuf>,
    files: Vec<PathBuf>,
    limits: Limits,
    limit_of: Vec<Option<LimitKey>>,
    admission: bool,
    /// The ways into plans, by name.
    admissions: Mutex<BTreeMap<String, Arc<PlanAdmission>>>,
    /// One an endpoint that hedges.
    hedges: Vec<Option<Arc<Hedging>>>,
    /// The times of the reads of each endpoint.
    times: Vec<Arc<ReadTimes>>,
    /// Plans of the folder, once loaded.
    plans: Mutex<HashMap<String, Plan>>,
    seed: u64,
    requests: AtomicU64,
    /// Replies remembered for fallbacks, whichever plan they were read for.
    memory: StaleStore,
}

/// A compiled plan. A handle: clones share everything, and any number of requests may run at once.
#[derive(Clone)]
pub struct Plan {
    pub(crate) compiled: Arc<Compiled>,
    engine: Engine,
    admission: Arc<PlanAdmission>,
    warnings: Arc<[Problem]>,
}

/// The options of one request.
#[derive(Clone, Debug, Default)]
pub struct RunOptions {
    /// The deadline of the response. Default: the plan's own deadline.
    pub deadline: Option<Instant>,
    /// The timeout of each node, in addition to the plan's. Nodes that are computed together share the sum of their
    /// times.
    pub node_timeout: Option<Duration>,
    /// Whether to run one node at a time, for comparison. The times of regions are not watched then.
    pub sequential: bool,
    /// Overrides the engine's inline threshold.
    pub inline_threshold: Option<Duration>,
    /// The distributed trace of the request, which HTTP sources receive.
    pub trace: Option<TraceContext>,
}

impl Config {
    /// A config with the ops that come along, no folder, and the default threads.
    pub fn new(registries: Registries, sources: Vec<Arc<dyn Source>>) -> Config {
        let (ops, runs) = (Ops::builtin(), engine::Config::default());
        let seed = RandomState::new().hash_one(0);
        Config {
            registries,
            sources,
            ops,
            folder: None,
            files: Vec::new(),
            runs,
            admission: true,
            seed,
            stale_bytes: STALE_BYTES,
        }
    }
}

impl Config {
    /// Finds the settings that no engine can work with.
    fn check(&self) -> Result<(), Problem> {
        let endpoints = self.registries.endpoints.iter();
        if self.sources.len() != endpoints.len() {
            let what = format!("there are {} sources for {} endpoints", self.sources.len(), endpoints.len());
            return Err(Problem::new("sources", what).help("give one source per endpoint, in their order"));
        }
        for (endpoint, source) in endpoints.zip(&self.sources) {
            if source.max_inflight() == Some(0) {
                let place = format!("endpoint `{}`, max_inflight", endpoint.name);
                return Err(Problem::new(place, "must be at least 1"));
            }
        }
        Ok(())
    }
}

impl Engine {
    /// An engine on the machine's clock and threads of its own.
    pub fn load(config: Config) -> Result<Engine, Error> {
        config.check().map_err(Error::Config)?;
        let runs = engine::Engine::new(&config.runs).map_err(Error::Setting)?;
        Ok(Engine::on(runs, config))
    }

    /// An engine that shares a runner with others: its clock, threads and shutdown. The threads of `config.runs` do not
    /// count.
    pub fn load_on(runs: engine::Engine, config: Config) -> Result<Engine, Error> {
        config.check().map_err(Error::Config)?;
        Ok(Engine::on(runs, config))
    }

    /// An engine on a given runner, which replaces `config.runs`. Tests use one with a virtual clock. Panics if
    /// [`load`](Engine::load) would refuse the config.
    pub fn on(runs: engine::Engine, config: Config) -> Engine {
        let Config { registries, sources, ops, folder, files, runs: settings, admission, seed, stale_bytes } =
            config;
        assert_eq!(sources.len(), registries.endpoints.iter().len(), "one source per endpoint");
        let limits = Limits::new(Arc::clone(runs.clock()));
        let limit_of = registries.endpoints.iter().zip(&sources).map(|(endpoint, source)| {
            let allowance = Allowance {
                concurrency: Concurrency::Fixed(source.max_inflight()?),
                requests: None,
                tokens: None,
                parent: None,
            };
            Some(limits.add(&endpoint.id, allowance).expect("a positive number of trips, an id of its own"))
        });
        let limit_of = limit_of.collect();
        let hedging = |source: &Arc<dyn Source>| {
            Some(Arc::new(Hedging::new(source.hedge()?, Arc::clone(runs.clock()))))
        };
        let hedges = sources.iter().map(hedging).collect();
        let times = sources.iter().map(|_| Arc::new(ReadTimes::new(Arc::clone(runs.clock())))).collect();
        Engine(Arc::new(Inner {
            memory: StaleStore::new(stale_bytes, runs.clock().now()),
            runs,
            inline_threshold: settings.inline_threshold,
            registries: Arc::new(registries),
            sources,
            ops,
            folder,
            files,
            limits,
            limit_of,
            admission,
            admissions: Mutex::default(),
            hedges,
            times,
            plans: Mutex::default(),
            seed,
            requests: AtomicU64::new(0),
        }))
    }

    /// The plan with this name in the folder, compiled on first use. It reads a file and compiles on the calling
    /// thread, so a service loads its plans before it serves, or off its async workers.
    pub fn plan(&self, name: &str) -> Result<Plan, Error> {
        if let Some(plan) = self.lock().get(name) {
            return Ok(plan.clone());
        }
        let plan = self.load_plan(name)?;
        Ok(self.lock().entry(name.to_owned()).or_insert(plan).clone())
    }

    /// Compiles the plan with this name in the folder again. Requests in flight end with the old plan. Counts, learned
    /// durations of admission and remembered replies stay.
    pub fn reload(&self, name: &str) -> Result<Plan, Error> {
        let plan = self.load_plan(name)?;
        self.lock().insert(name.to_owned(), plan.clone());
        Ok(plan)
    }

    fn load_plan(&self, name: &str) -> Result<Plan, Error> {
        let missing = |cause| Error::NoPlan { name: name.to_owned(), folder: self.0.folder.clone(), cause };
        let folder = self.0.folder.as_ref().ok_or_else(|| missing(None))?;
        // A name is not a path: nothing outside of the folder can be reached with it.
        if !self.0.registries.limits.plan_name.is_match(name) {
            return Err(missing(None));
        }
        let file = folder.join(format!("{name}.plan.json"));
        let text = std::fs::read_to_string(&file).map_err(|cause| missing(Some(Arc::new(cause))))?;
        self.compile(&text, folder)
    }

    /// Compiles the text of a plan; files that it names are looked for in `base`.
    pub fn compile(&self, text: &str, base: &Path) -> Result<Plan, Error> {
        self.compile_from(text, FilesFrom::Folder { base, allowed: &self.0.files })
    }

    /// Compiles the text of a plan that names these files.
    pub(crate) fn compile_from(&self, text: &str, files: FilesFrom<'_>) -> Result<Plan, Error> {
        let (compiled, warnings) = self.compiled(text, files, RowDemand::Wanted)?;
        let (compiled, warnings) = (Arc::new(compiled), warnings.into());
        let admission = self.admission(&compiled.name);
        Ok(Plan { compiled, engine: self.clone(), admission, warnings })
    }

    pub(crate) fn compiled(
        &self,
        text: &str,
        files: FilesFrom<'_>,
        asking: RowDemand,
    ) -> Result<(Compiled, Vec<Problem>), Error> {
        let inner = &*self.0;
        let with = Surroundings {
            ops: &inner.ops,
            registries: &inner.registries,
            sources: &inner.sources,
            hedges: &inner.hedges,
            times: &inner.times,
            memory: &inner.memory,
            limits: &inner.limit_of,
            files,
            asking,
        };
        let mut problems = Problems::default();
        match planner::compile(text, &with, &mut problems) {
            Some(compiled) if problems.is_fine() => Ok((compiled, problems.warnings)),
            _ => Err(Error::Plan(problems)),
        }
    }

    /// The registries.
    pub fn registries(&self) -> &Arc<Registries> {
        &self.0.registries
    }

    /// The kinds of node.
    pub fn ops(&self) -> &Ops {
        &self.0.ops
    }

    /// The folder of plans.
    pub fn folder(&self) -> Option<&Path> {
        self.0.folder.as_deref()
    }

    /// The engine that runs the plans: its clock, its events, its shutdown.
    pub fn runs(&self) -> &engine::Engine {
        &self.0.runs
    }

    /// The hedge counts so far, for each endpoint with hedges, by its name.
    pub fn hedges(&self) -> Vec<(String, HedgeCounts)> {
        let endpoints = self.0.registries.endpoints.iter().zip(&self.0.hedges);
        let counts = endpoints
            .filter_map(|(endpoint, hedging)| Some((endpoint.name.clone(), hedging.as_ref()?.counts())));
        counts.collect()
    }

    /// Jobs expected to cost at most this much are done in place.
    pub fn inline_threshold(&self) -> Duration {
        self.0.inline_threshold
    }

    /// The request outcomes so far, by plan.
    pub fn metrics(&self) -> PlanMetrics {
        let admissions = self.0.admissions.lock().unwrap_or_else(PoisonError::into_inner);
        let plans = admissions.iter().map(|(name, admission)| admission.counts.of_plan(name)).collect();
        let endpoints = self.0.registries.endpoints.iter().zip(&self.0.times);
        let reads = endpoints.map(|(endpoint, times)| (endpoint.name.clone(), times.read())).collect();
        let limited = self.0.registries.endpoints.iter().zip(&self.0.limit_of);
        let limits = limited
            .filter_map(|(endpoint, limit)| Some((endpoint.name.clone(), self.0.limits.status((*limit)?))));
        PlanMetrics { plans, hedges: self.hedges(), reads, limits: limits.collect() }
    }

    /// The admission control of the plan with this name. All versions of a plan share it, so that its knowledge
    /// survives a reload.
    fn admission(&self, name: &str) -> Arc<PlanAdmission> {
        let inner = &*self.0;
        let mut admissions = inner.admissions.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(admission) = admissions.get(name) {
            return Arc::clone(admission);
        }
        let admission = Arc::new(PlanAdmission::new(inner.admission.then(|| inner.runs.clock().now())));
        if admissions.len() >= MAX_ADMISSIONS {
            admissions.retain(|_, admission| Arc::strong_count(admission) > 1);
        }
        if admissions.len() < MAX_ADMISSIONS {
            admissions.insert(name.to_owned(), Arc::clone(&admission));
        }
        admission
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<String, Plan>> {
        self.0.plans.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A name like no other of this engine.
    fn next_id(&self) -> RequestId {
        let count = self.0.requests.fetch_add(1, Ordering::Relaxed);
        let half = |half: u8| {
            let mut hasher = DefaultHasher::new();
            (self.0.seed, count, half).hash(&mut hasher);
            u128::from(hasher.finish())
        };
        RequestId::Made(half(0) << 64 | half(1))
    }
}

impl Plan {
    /// Its name.
    pub fn name(&self) -> &str {
        &self.compiled.name
    }

    /// The warnings of its compilation.
    pub fn warnings(&self) -> &[Problem] {
        &self.warnings
    }

    /// The same plan with other warnings: those of the source that its text was made from.
    #[must_use]
    pub fn warned(self, warnings: Vec<Problem>) -> Plan {
        Plan { warnings: warnings.into(), ..self }
    }

    /// The engine it belongs to.
    pub fn engine(&self) -> &Engine {
        &self.engine
    }

    /// Answers a request.
    pub async fn run(&self, request: Request) -> Result<Answer, Error> {
        self.run_with(request, &RunOptions::default()).await
    }

    /// Answers a request within these bounds.
    pub async fn run_with(&self, request: Request, options: &RunOptions) -> Result<Answer, Error> {
        self.run_inspected(request, options, Inspection::default()).await.answer
    }

    /// Fails with [`Error::Overloaded`] if a request that must be answered by `deadline` would be refused now. The default is
    /// the plan's own deadline from now on. For servers, which can thereby refuse a request before they read its body.
    pub fn check_load(&self, deadline: Option<Instant>) -> Result<(), Error> {
        let clock = self.engine.0.runs.clock();
        self.admission.check(deadline, self.compiled.deadline, &**clock)
    }

    /// The same plan, compiled otherwise.
    pub(crate) fn with_compiled(&self, compiled: Compiled) -> Plan {
        Plan { compiled: Arc::new(compiled), ..self.clone() }
    }

    /// Answers a request that is inspected. In a box, so that it is compiled here, once and with this crate's
    /// optimisation, and not in each crate that waits for an answer.
    pub fn run_inspected<'a>(
        &'a self,
        request: Request,
        options: &'a RunOptions,
        inspection: Inspection,
    ) -> Pin<Box<dyn Future<Output = InspectionOutcome> + Send + 'a>> {
        Box::pin(self.run_here(request, options, inspection))
    }

    async fn run_here(
        &self,
        request: Request,
        options: &RunOptions,
        inspection: Inspection,
    ) -> InspectionOutcome {
        let (inner, plan) = (&*self.engine.0, &self.compiled);
        let clock = inner.runs.clock();
        let own = || Some(clock.now() + plan.deadline?);
        let deadline = options.deadline.or_else(own);
        let slow_requests = if plan.degrades { SlowRequests::Ignore } else { SlowRequests::Warn };
        let admitted = match self.admission.enter(deadline, slow_requests, &**clock) {
            Ok(admitted) => admitted,
            Err(refused) => {
                return InspectionOutcome { answer: Err(refused), failed_ledger: Vec::new(), run: None };
            }
        };
        let request_id = request.request_id.clone();
        let call = self.call(request, options, inspection);
        if !plan.slow_conditions.is_empty() {
            self.set_up_conditions(&call).await;
        }
        let timed = deadline.is_some() && plan.times.is_next_timed();
        let inline_threshold = options.inline_threshold.unwrap_or(inner.inline_threshold);
        let mut work = Work::new(plan, &call, inline_threshold);
        work.sequential = options.sequential;
        if deadline.is_some() {
            work.go_by_times(timed);
        }
        let stricter = options.node_timeout.map(|timeout| plan.stricter(timeout));
        let policies = stricter.as_ref().unwrap_or(&plan.policies);
        // Only nodes with a fallback are ever cut off early.
        let known = deadline.filter(|_| plan.degrades).and_then(|_| plan.times.reserve());
        let bounds = Options {
            label: "plan".into(),
            deadline,
            grace: GRACE,
            reserve: known.map_or(Reserve::Share, Reserve::PerNode),
            in_flight: if options.sequential { 1 } else { plan.stages.len() },
            inline_threshold: Some(inline_threshold),
            limits: Some(inner.limits.clone()),
            ..Options::default()
        };
        let (ended, run) = match inner.runs.run(&plan.graph, policies, &mut work, &bounds) {
            Ok(run) => {
                let id = run.id();
                (run.await.map_err(|stopped| Error::stopped(plan, stopped)), Some(id))
            }
            Err(refused) => (Err(Error::Refused(refused)), None),
        };
        if timed {
            plan.times.renew(&plan.stages, &plan.graph, &plan.policies);
        }
        let (answer, failed_ledger) = match ended {
            Ok(_) => (Ok(self.answer(request_id, work, &call)), Vec::new()),
            Err(error) => (Err(error), work.into_ledger()),
        };
        admitted.end(&answer);
        InspectionOutcome { answer, failed_ledger, run }
    }

    /// Compiles the patterns of the request that decide between branches, on the pool.
    async fn set_up_conditions(&self, call: &Arc<Call>) {
        let (inner, conditions) = (&*self.engine.0, &self.compiled.slow_conditions);
        let cost: Duration = conditions.iter().map(|condition| condition.filter.setup(&call.params)).sum();
        if cost <= inner.inline_threshold {
            return;
        }
        let (done, is_done) = oneshot::channel();
        let (plan, call) = (Arc::clone(&self.compiled), Arc::clone(call));
        inner.runs.pool(Class::Latency).submit(Box::new(move || {
            plan.slow_conditions.iter().for_each(|condition| condition.filter.set_up(&call.params));
            // The request may have been dropped.
            let _ = done.send(());
        }));
        // A pool that is shut down drops its tasks; the conditions then compile in place.
        let _ = is_done.await;
    }

    fn call(&self, request: Request, options: &RunOptions, inspection: Inspection) -> Arc<Call> {
        let Inspection { observer, replay } = inspection;
        let (clock, answers) = match replay {
            None => (Arc::clone(self.engine.0.runs.clock()), Answers::Live),
            Some(Replay { recording, clock }) => (clock, Answers::Recorded { recording, stale: false }),
        };
        let shared = (0..self.compiled.shared_reads).map(|_| Shared::default()).collect();
        let call = Call::of(request, clock);
        let budget = Arc::new(Budget::new(self.engine.0.registries.limits.bounds));
        let trace = options.trace.clone();
        Arc::new(Call { shared, answers, observer, budget, trace, ..call })
    }

    fn answer(&self, request_id: Option<String>, work: Work<'_>, call: &Call) -> Answer {
        let (outputs, mut ledger) = work.into_outputs();
        let malformed = |(node, malformed): (usize, MalformedValues)| {
            LedgerEntry::malformed(&self.compiled.nodes[node].id, malformed)
        };
        ledger.extend(call.take_malformed().into_iter().map(malformed));
        let tally = &call.tally;
        Answer {
            request_id: request_id.map_or_else(|| self.engine.next_id(), RequestId::Given),
            engine_request_id: self.engine.next_id(),
            outputs,
            output_names: Arc::clone(&self.compiled.output_names),
            ledger,
            stats: Stats {
                trips: tally.trips.load(Ordering::Relaxed),
                commands: tally.commands.load(Ordering::Relaxed),
            },
        }
    }
}
