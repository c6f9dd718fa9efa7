//! The engine: what every run of a process shares.

use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::admission::{Active, Drained, Refused};
use crate::clock::{Clock, SystemClock};
use crate::event::Events;
use crate::graph::Graph;
use crate::limit::Limits;
use crate::policy::Policies;
use crate::pool::Pool;
use crate::run::Run;
use crate::threads::{self, Tasks, TokioTasks};
use crate::workload::Workload;

/// Runs graphs. A handle: clones share pools, limits and events.
#[derive(Clone)]
pub struct Engine {
    pub(crate) seams: Arc<Seams>,
    pub(crate) active: Arc<Active>,
    pub(crate) events: Events,
    pub(crate) inline_threshold: Duration,
}

/// How large an engine is.
#[derive(Clone, Debug)]
pub struct Config {
    /// Threads for CPU work that somebody waits for.
    pub cpu_threads: usize,
    /// Threads for CPU work that can wait; the system lets the others go first.
    pub batch_threads: usize,
    /// Threads for calls that block.
    pub blocking_threads: usize,
    /// Jobs expected to cost at most this much are done in place.
    pub inline_threshold: Duration,
    /// Active runs at a time.
    pub max_runs: usize,
}

impl Default for Config {
    fn default() -> Config {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        Config {
            cpu_threads: cores,
            batch_threads: cores,
            blocking_threads: 16,
            inline_threshold: Duration::from_micros(50),
            max_runs: 100_000,
        }
    }
}

/// A setting that no engine can work with.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{setting}` is 0; an engine needs at least 1")]
pub struct ZeroSetting {
    /// The field of [`Config`].
    pub setting: &'static str,
}

/// What an engine takes from its surroundings. Tests put virtual ones here.
pub struct Seams {
    /// Time.
    pub clock: Arc<dyn Clock>,
    /// Spawned steps.
    pub tasks: Arc<dyn Tasks>,
    /// CPU work that somebody waits for.
    pub latency: Arc<dyn Pool>,
    /// CPU work that can wait.
    pub batch: Arc<dyn Pool>,
    /// Calls that block.
    pub blocking: Arc<dyn Pool>,
}

/// What one run is allowed.
#[derive(Clone)]
pub struct Options {
    /// A name for reports.
    pub label: &'static str,
    /// When it must have ended.
    pub deadline: Option<Instant>,
    /// How long it may go on after that if all it has left to do is done in place.
    pub grace: Duration,
    /// What late nodes with a fallback leave to the rest of the run.
    pub reserve: Reserve,
    /// Which CPU pool serves it.
    pub class: Class,
    /// How many nodes it may have in flight, those done in place aside.
    pub in_flight: usize,
    /// Overrides the engine's inline threshold.
    pub inline_threshold: Option<Duration>,
    /// The limits that policies name by key.
    pub limits: Option<Limits>,
    /// Spreads the pauses before another try.
    pub seed: u64,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            label: "run",
            deadline: None,
            grace: Duration::ZERO,
            reserve: Reserve::Share,
            class: Class::Latency,
            in_flight: 1024,
            inline_threshold: None,
            limits: None,
            seed: 0,
        }
    }
}

/// Who waits for CPU work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// Somebody, now.
    Latency,
    /// Nobody in particular.
    Batch,
}

/// The part of a deadline kept for the nodes behind a late one. Only nodes with a fallback are cut early by it.
#[derive(Clone, Debug)]
pub enum Reserve {
    /// A tenth of the time given, at most 10 ms, and at least 2 ms, since timers fire a millisecond late: for want of
    /// measurements.
    Share,
    /// What measurements say, a duration a node; see [`Dag::time_after`](crate::Dag::time_after).
    PerNode(Arc<[Duration]>),
}

impl Engine {
    /// An engine on the machine's clock, threads of its own and the surrounding tokio runtime.
    pub fn new(config: &Config) -> Result<Engine, ZeroSetting> {
        let settings = [
            ("cpu_threads", config.cpu_threads),
            ("batch_threads", config.batch_threads),
            ("blocking_threads", config.blocking_threads),
            ("max_runs", config.max_runs),
        ];
        if let Some((setting, _)) = settings.into_iter().find(|(_, value)| *value == 0) {
            return Err(ZeroSetting { setting });
        }
        let seams = Seams {
            clock: Arc::new(SystemClock),
            tasks: Arc::new(TokioTasks),
            latency: Arc::new(threads::latency_pool(config.cpu_threads)),
            batch: Arc::new(threads::batch_pool(config.batch_threads)),
            blocking: Arc::new(threads::blocking_pool(config.blocking_threads)),
        };
        Ok(Engine::with_seams(seams, config))
    }

    /// An engine on other surroundings; `config` then only bounds the runs and sets the inline threshold.
    pub fn with_seams(seams: Seams, config: &Config) -> Engine {
        Engine {
            seams: Arc::new(seams),
            active: Arc::new(Active::new(config.max_runs)),
            events: Events::default(),
            inline_threshold: config.inline_threshold,
        }
    }

    /// Admits a run. It moves when polled, and dropping it stops all it started.
    pub fn run<'a, G: Graph, W: Workload>(
        &'a self,
        graph: &'a G,
        policies: &'a Policies,
        work: &'a mut W,
        options: &Options,
    ) -> Result<Run<'a, G, W>, Refused> {
        Run::new(self, graph, policies, work, options)
    }

    /// The threads for CPU work of a class, for work that several runs share.
    pub fn pool(&self, class: Class) -> &Arc<dyn Pool> {
        match class {
            Class::Latency => &self.seams.latency,
            Class::Batch => &self.seams.batch,
        }
    }

    /// What is expected to cost at most this much is done in place.
    pub fn inline_threshold(&self) -> Duration {
        self.inline_threshold
    }

    /// The clock that runs go by.
    pub fn clock(&self) -> &Arc<dyn Clock> {
        &self.seams.clock
    }

    /// Where to hear what happens.
    pub fn events(&self) -> &Events {
        &self.events
    }

    /// Comes to rest: takes no new run, lets the active ones end within `grace`, then tells the rest to stop.
    pub async fn drain(&self, grace: Duration) -> Drained {
        self.active.drain(&*self.seams.clock, grace).await
    }
}
