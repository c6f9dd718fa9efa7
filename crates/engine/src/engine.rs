//! The engine: the clock, pools and events that all runs of a process share.

use std::sync::Arc;
use std::time::Duration;

use crate::admission::{ActiveRuns, DrainReport, Refused};
use crate::clock::{Clock, SystemClock};
use crate::config::{Config, ZeroSetting};
use crate::event::Events;
use crate::graph::Graph;
use crate::options::{Class, Options};
use crate::policy::Policies;
use crate::pool::Pool;
use crate::run::Run;
use crate::seams::Seams;
use crate::tasks::{Tasks, TokioTasks};
use crate::threads;
use crate::workload::Workload;

/// Runs graphs. A handle: clones share the pools, the events and the bound on active runs.
#[derive(Clone)]
pub struct Engine {
    pub(crate) seams: Arc<Seams>,
    pub(crate) active: Arc<ActiveRuns>,
    pub(crate) events: Events,
    pub(crate) inline_threshold: Duration,
    batch_threads: usize,
}

impl Engine {
    /// An engine on the machine's clock, with threads of its own. Runs must be polled in a tokio runtime with timers.
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

    /// An engine with another clock, other tasks and other pools. Of `config` it uses only `max_runs`,
    /// `inline_threshold`, and `batch_threads` for [`Engine::batch_threads`].
    pub fn with_seams(seams: Seams, config: &Config) -> Engine {
        Engine {
            seams: Arc::new(seams),
            active: Arc::new(ActiveRuns::new(config.max_runs)),
            events: Events::default(),
            inline_threshold: config.inline_threshold,
            batch_threads: config.batch_threads,
        }
    }

    /// Admits a run. The run starts when the returned future is polled; dropping the future stops all its work.
    pub fn run<'a, G: Graph, W: Workload>(
        &'a self,
        graph: &'a G,
        policies: &'a Policies,
        work: &'a mut W,
        options: &Options,
    ) -> Result<Run<'a, G, W>, Refused> {
        Run::new(self, graph, policies, work, options)
    }

    /// The CPU pool of a class, for work outside of a run.
    pub fn pool(&self, class: Class) -> &Arc<dyn Pool> {
        match class {
            Class::Latency => &self.seams.latency,
            Class::Batch => &self.seams.batch,
        }
    }

    /// The number of threads of the pool of [`Class::Batch`], for an application that bounds its long jobs to fewer.
    pub fn batch_threads(&self) -> usize {
        self.batch_threads
    }

    /// Spawns futures outside of a run. Dropping the guard that it returns aborts the future.
    pub fn tasks(&self) -> &Arc<dyn Tasks> {
        &self.seams.tasks
    }

    /// A job whose expected cost is at most this runs on the run's own task.
    pub fn inline_threshold(&self) -> Duration {
        self.inline_threshold
    }

    /// The clock of all runs.
    pub fn clock(&self) -> &Arc<dyn Clock> {
        &self.seams.clock
    }

    /// The events of all runs.
    pub fn events(&self) -> &Events {
        &self.events
    }

    /// Shuts down: refuses new runs, waits up to `grace` for the active runs, then stops the rest.
    pub async fn drain(&self, grace: Duration) -> DrainReport {
        self.active.drain(&*self.seams.clock, grace).await
    }
}
