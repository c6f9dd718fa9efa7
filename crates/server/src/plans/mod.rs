//! The plans of a project: load, run, list and describe them, and change them while they are served.

mod settings;
mod histogram;
mod version;
mod table;
mod canary;
mod loader;
mod failure;
mod run;
mod late;
mod describe;
mod detail;
mod metrics;
mod forms;
mod messages;
mod grpc;

use std::hash::{BuildHasher as _, RandomState};
use std::sync::mpsc::{SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};

use anabranch_engine as engine;
use anabranch_engine::tasks::AbortOnDrop;
use anabranch_plan::Problems;
use anabranch_plan_inspect::capture::{Sampler, Sampling};
use tokio::sync::oneshot;
use tonic::Code;

pub(crate) use failure::PlanFailure;
pub(crate) use forms::Form;
pub(crate) use grpc::PlansService;
pub(crate) use loader::{Change, ChangeError, ChangeKind, ChangedPlans};
pub(crate) use run::PlanCall;
pub use settings::{CanarySettings, PlanSettings};
pub(crate) use table::{Entry, Table};

use crate::failure::Failure;
use late::LateRequests;
use loader::{FirstLoad, Loader, SharedTable};

/// The most changes that wait for the current one.
const CHANGES_MOST: usize = 16;

/// The plans of a project. Clones are handles to the same plans.
#[derive(Clone)]
pub struct Plans(Arc<Inner>);

struct Inner {
    table: SharedTable,
    /// Dropping it ends the thread that makes changes.
    changes: SyncSender<Change>,
    keep_requests: bool,
    captures: Option<Captures>,
    kept: detail::DetailRates,
    late: Arc<LateRequests>,
    /// In a mutex, because the guard is not `Sync`.
    _ticker: Mutex<AbortOnDrop>,
}

/// The sampler of captures, and the task that writes them.
struct Captures {
    sampler: Arc<Sampler>,
    /// In a mutex, because the guard is not `Sync`.
    _writer: Mutex<AbortOnDrop>,
}

impl Plans {
    /// Loads all plans of a project. Plans that fail to load are listed with their problems, and the others are served.
    /// The engine `runs` executes the runs, together with other workloads.
    pub async fn load(settings: PlanSettings, runs: engine::Engine) -> Result<Plans, Problems> {
        let keep_requests = settings.keep_requests;
        let (changes, waiting) = sync_channel(CHANGES_MOST);
        let (sender, first) = oneshot::channel();
        let on_runs = runs.clone();
        let work = move || match Loader::start(settings, on_runs) {
            Ok(FirstLoad { loader, table, captures }) => {
                // The receiver is gone if the server was stopped.
                let _ = sender.send(Ok((table, captures)));
                loader.run(&waiting);
            }
            Err(problems) => drop(sender.send(Err(problems))),
        };
        let thread = std::thread::Builder::new().name("plan-loader".to_owned()).spawn(work);
        let no_thread = |what: String| anabranch_plan::Problem::new("plans", what);
        thread.map_err(|error| no_thread(format!("no thread to load them on: {error}")))?;
        let (table, captures) =
            first.await.map_err(|_| no_thread("the thread that loads them panicked".to_owned()))??;
        let captures = match captures {
            None => None,
            Some(settings) => {
                let engine = table.read().unwrap_or_else(PoisonError::into_inner).engine.clone();
                let sampling = Sampling::from_settings(&settings, engine.registries())?;
                let seed = RandomState::new().hash_one(0);
                let sampler = Arc::new(Sampler::new(sampling, engine.ops().clone(), seed));
                let writer = Arc::clone(&sampler);
                let writer = runs.tasks().spawn(Box::pin(async move { writer.write().await }));
                Some(Captures { sampler, _writer: Mutex::new(writer) })
            }
        };
        let kept = detail::DetailRates::default();
        let late = Arc::new(LateRequests::new());
        let wake = Arc::clone(&late).wake(Arc::clone(runs.clock()));
        let _ticker = Mutex::new(runs.tasks().spawn(Box::pin(wake)));
        Ok(Plans(Arc::new(Inner { table, changes, keep_requests, captures, kept, late, _ticker })))
    }

    /// Reloads the plans whose files changed. If a file is invalid, nothing changes and the error has the problems.
    pub async fn reload(&self) -> Result<Vec<String>, String> {
        match self.change(ChangeKind::Reload(None)).await {
            Ok(changed) => Ok(changed.plans),
            Err(failure) => Err(failure.message),
        }
    }

    /// The names of all plans, each with the reason if its latest file is not served.
    pub fn problems(&self) -> Vec<(String, Option<String>)> {
        let table = self.table();
        table.plans.values().map(|entry| (entry.name.to_string(), entry.problem.clone())).collect()
    }

    pub(crate) fn table(&self) -> Arc<Table> {
        Arc::clone(&self.0.table.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// The plan of this name.
    pub(crate) fn entry(&self, name: &str) -> Result<Arc<Entry>, Failure> {
        let table = self.0.table.read().unwrap_or_else(PoisonError::into_inner);
        match table.plans.get(name) {
            Some(entry) => Ok(Arc::clone(entry)),
            None => {
                let known = table.plans.keys().map(String::as_str);
                Err(Failure::new(Code::NotFound, loader::no_plan(name, known)))
            }
        }
    }

    /// Makes a change, after the changes that were requested before.
    pub(crate) async fn change(&self, kind: ChangeKind) -> Result<ChangedPlans, Failure> {
        let (sender, result) = oneshot::channel();
        let stopped = || Failure::new(Code::Unavailable, "the thread that loads plans has stopped");
        self.0.changes.try_send(Change { kind, result: sender }).map_err(|error| match error {
            TrySendError::Full(_) => {
                Failure::new(Code::Unavailable, "other changes of plans are under way; try again later")
            }
            TrySendError::Disconnected(_) => stopped(),
        })?;
        result.await.map_err(|_| stopped())?.map_err(|error| match error {
            ChangeError::NoPlan(what) => Failure::new(Code::NotFound, what),
            ChangeError::Bad(problems) => {
                Failure::new(Code::FailedPrecondition, format!("nothing was changed: {problems}"))
            }
            ChangeError::NoCanary(what) => Failure::new(Code::FailedPrecondition, what),
        })
    }
}

impl std::fmt::Debug for Plans {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Plans").field("plans", &self.problems()).finish_non_exhaustive()
    }
}
