//! The engine: what every run of a process shares.

use std::sync::Arc;
use std::time::Duration;

use crate::admission::{Active, Drained, Refused};
use crate::clock::{Clock, SystemClock};
use crate::config::{Config, ZeroSetting};
use crate::event::Events;
use crate::graph::Graph;
use crate::options::{Class, Options};
use crate::policy::Policies;
use crate::pool::Pool;
use crate::run::Run;
use crate::seams::Seams;
use crate::tasks::TokioTasks;
use crate::threads;
use crate::workload::Workload;

/// Runs graphs. A handle: clones share pools, limits and events.
#[derive(Clone)]
pub struct Engine {
    pub(crate) seams: Arc<Seams>,
    pub(crate) active: Arc<Active>,
    pub(crate) events: Events,
    pub(crate) inline_threshold: Duration,
}

impl Engine {
    /// An engine on the machine's clock, threads of its own and the surrounding tokio runtime.
    pub fn new(config: &Config) -> Result<Engine, ZeroSetting> {
        config.check()?;
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
