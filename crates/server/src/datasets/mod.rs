//! Dataset jobs. Clients submit configurations, and the server's engine builds a few of them at a time.
//!
//! A job is a folder: its specification, its configuration and the output folder of the build. A job is durable before
//! it is accepted. A job without an end continues when the server starts again.

mod settings;
mod spec;
mod disk;
mod check;
mod job;
mod build;
mod past;
mod view;
mod cells;
mod rows;
mod metrics;

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use anabranch_engine::Engine;
use anabranch_engine::options::Class;
use anabranch_model::HttpClient;
use tokio::sync::{oneshot, watch};
use tonic::Code;

pub(crate) use cells::CellQuery;
use job::Job;
pub(crate) use rows::{Download, RowQuery};
pub use settings::DatasetSettings;
use spec::JobEnd;
pub(crate) use spec::Submission;

use crate::failure::Failure;
use crate::runs::{RunId, RunKind, Runs};

/// The dataset jobs of a server. A handle: clones share them.
#[derive(Clone)]
pub struct Datasets {
    shared: Arc<DatasetsShared>,
    /// `None` in the handles that the builds hold.
    _owner: Option<Arc<Owner>>,
}

/// Stops all builds when the last handle outside of them is dropped.
struct Owner(Arc<DatasetsShared>);

impl Drop for Owner {
    fn drop(&mut self) {
        self.0.stopping.send_replace(true);
        let jobs: Vec<Arc<Job>> = self.0.lock().by_id.values().cloned().collect();
        jobs.iter().for_each(|job| job.abort());
    }
}

struct DatasetsShared {
    settings: DatasetSettings,
    engine: Engine,
    client: HttpClient,
    runs: Runs,
    jobs: Mutex<Jobs>,
    /// Whether the server is shutting down.
    stopping: watch::Sender<bool>,
}

#[derive(Default)]
struct Jobs {
    by_id: BTreeMap<RunId, Arc<Job>>,
    /// By `Idempotency-Key`. A job that is being accepted reserves its key here first.
    by_key: HashMap<String, KeyState>,
    queue: VecDeque<Arc<Job>>,
    building: usize,
}

#[derive(Clone, Copy)]
enum KeyState {
    Job(RunId),
    /// Another request with the key is being checked.
    Pending,
}

/// The bytes that a body may have besides its configuration and its models.
const BESIDE_CONFIG: usize = 64 << 10;

/// A job that was accepted, by this or by an earlier request with the same key.
pub(crate) struct SubmittedJob {
    pub(crate) id: RunId,
    pub(crate) run: RunId,
}

impl Datasets {
    /// Opens the folder of jobs and continues those that have not ended. Blocks while it reads the folder. Must be
    /// called inside a runtime.
    pub fn open(
        settings: DatasetSettings,
        engine: &Engine,
        client: HttpClient,
        runs: &Runs,
    ) -> std::io::Result<Datasets> {
        let found = disk::open(&settings.folder)?;
        let shared = DatasetsShared {
            settings,
            engine: engine.clone(),
            client,
            runs: runs.clone(),
            jobs: Mutex::default(),
            stopping: watch::Sender::new(false),
        };
        let shared = Arc::new(shared);
        let owner = Owner(Arc::clone(&shared));
        let datasets = Datasets { shared, _owner: Some(Arc::new(owner)) };
        for (folder, spec, end) in found {
            let live = end.is_none().then(|| runs.begin(RunKind::Dataset, &*spec.name));
            let run = end.as_ref().map(|end| end.run).or(live.as_ref().map(|live| live.id()));
            let run = run.unwrap_or(spec.id);
            datasets.add(Job::new(spec, folder, run, live, end));
        }
        datasets.start_next();
        Ok(datasets)
    }

    fn add(&self, job: Job) -> Arc<Job> {
        let job = Arc::new(job);
        let mut jobs = self.shared.lock();
        if let Some(key) = &job.spec.idempotency_key {
            jobs.by_key.insert(key.clone(), KeyState::Job(job.spec.id));
        }
        jobs.by_id.insert(job.spec.id, Arc::clone(&job));
        if job.state().end.is_none() {
            jobs.queue.push_back(Arc::clone(&job));
        }
        job
    }

    /// Starts queued jobs while build slots are free.
    fn start_next(&self) {
        loop {
            let mut jobs = self.shared.lock();
            if *self.shared.stopping.borrow() || jobs.building >= self.shared.settings.builds_most.max(1) {
                return;
            }
            let Some(job) = jobs.queue.pop_front() else { return };
            jobs.building += 1;
            drop(jobs);
            let own = Datasets { shared: Arc::clone(&self.shared), _owner: None };
            let task = build::run(own.clone(), Arc::clone(&job), BuildPlace { datasets: own });
            job.hold(self.shared.engine.tasks().spawn(Box::pin(task)));
        }
    }

    /// Refuses an oversized body before it is parsed, because parsed JSON takes many times the memory of its text.
    pub(crate) fn check_body(&self, length: usize) -> Result<(), Failure> {
        let most = self.shared.settings.config_most.saturating_mul(2).saturating_add(BESIDE_CONFIG);
        match length <= most {
            true => Ok(()),
            false => Err(Failure::new(
                Code::OutOfRange,
                format!("the body has more than {}", anabranch_text::size::format(most as u64)),
            )),
        }
    }

    /// Checks a submission, makes its job durable and queues it.
    pub(crate) async fn submit(&self, submission: Submission) -> Result<SubmittedJob, Failure> {
        let settings = &self.shared.settings;
        if *self.shared.stopping.borrow() {
            return Err(Failure::new(Code::Unavailable, "the server shuts down"));
        }
        let key = submission.idempotency_key.clone();
        if let Some(job) = self.reserve(key.as_deref(), &submission)? {
            return Ok(SubmittedJob { id: job.spec.id, run: job.state().run });
        }
        let reserved = ReservedKey { datasets: self, key: key.as_deref() };
        let (count, open) = {
            let jobs = self.shared.lock();
            (jobs.by_id.len(), jobs.queue.len() + jobs.building)
        };
        if count >= settings.jobs_most || open >= settings.queue_most {
            let message = format!(
                "the server has {count} datasets, {open} of them not built; wait, or remove some with \
                 DELETE /v1/datasets/ID"
            );
            return Err(Failure::new(Code::ResourceExhausted, message));
        }
        let id = self.shared.runs.reserve();
        let (settings, handle) = (settings.clone(), tokio::runtime::Handle::current());
        let accepted = self.off_workers(move || {
            let _runtime = handle.enter();
            check::accept(&settings, submission, id)
        });
        let (folder, spec) = accepted.await??;
        let live = self.shared.runs.begin_as(id, RunKind::Dataset, &*spec.name);
        let job = self.add(Job::new(spec, folder, id, Some(live), None));
        drop(reserved);
        self.start_next();
        Ok(SubmittedJob { id: job.spec.id, run: id })
    }

    /// The job of an earlier request with the key. Otherwise the key is reserved until the job exists.
    fn reserve(&self, key: Option<&str>, submission: &Submission) -> Result<Option<Arc<Job>>, Failure> {
        let Some(key) = key else { return Ok(None) };
        let mut jobs = self.shared.lock();
        match jobs.by_key.get(key).copied() {
            None => {
                jobs.by_key.insert(key.to_owned(), KeyState::Pending);
                Ok(None)
            }
            Some(KeyState::Pending) => {
                let message = "another request with this `Idempotency-Key` is being checked; try again";
                Err(Failure::new(Code::Aborted, message))
            }
            Some(KeyState::Job(id)) => {
                let job = jobs.by_id.get(&id).cloned();
                let same = job.filter(|job| job.spec.digest == submission.digest);
                same.map(Some).ok_or_else(|| {
                    let message = "this `Idempotency-Key` was used for another dataset; use a new key";
                    Failure::new(Code::FailedPrecondition, message)
                })
            }
        }
    }

    fn find(&self, id: RunId) -> Result<Arc<Job>, Failure> {
        self.shared.lock().by_id.get(&id).cloned().ok_or_else(|| {
            Failure::new(
                Code::NotFound,
                format!("there is no dataset {id} here; GET /v1/datasets lists them"),
            )
        })
    }

    /// The output folder of a job.
    pub(crate) fn output(&self, id: RunId) -> Result<PathBuf, Failure> {
        Ok(self.find(id)?.output())
    }

    /// Asks a job to stop. Calls in flight finish, and their results are saved.
    pub(crate) async fn cancel(&self, id: RunId) -> Result<(), Failure> {
        let job = self.find(id)?;
        if let Some(end) = &job.state().end {
            let message = format!("the dataset {id} has ended: {}", end.state);
            return Err(Failure::new(Code::FailedPrecondition, message));
        }
        // The cancellation is durable first, so that a server that is killed now does not build the job again.
        let folder = job.folder.clone();
        let noted = self.off_workers(move || disk::note_cancelled(&folder)).await?;
        noted.map_err(|error| {
            Failure::new(Code::Unavailable, format!("the job cannot be cancelled: {error}"))
        })?;
        job.cancel();
        let was_queued = {
            let mut jobs = self.shared.lock();
            let before = jobs.queue.len();
            jobs.queue.retain(|queued| queued.spec.id != id);
            before > jobs.queue.len()
        };
        if was_queued {
            let run = job.state().run;
            self.end(&job, JobEnd::stopped(run, "it was cancelled before it began")).await;
        }
        Ok(())
    }

    /// Removes a job that has ended, with its files.
    pub(crate) async fn remove(&self, id: RunId) -> Result<(), Failure> {
        let job = self.find(id)?;
        if job.state().end.is_none() {
            let message = format!("the dataset {id} is not built; POST /v1/datasets/{id}/cancel first");
            return Err(Failure::new(Code::FailedPrecondition, message));
        }
        {
            let mut jobs = self.shared.lock();
            jobs.by_id.remove(&id);
            job.spec.idempotency_key.iter().for_each(|key| _ = jobs.by_key.remove(key));
        }
        let folder = job.folder.clone();
        let removed = self.off_workers(move || disk::remove(&folder)).await?;
        removed.map_err(|error| {
            Failure::new(
                Code::Unavailable,
                format!("some files of the dataset could not be removed: {error}"),
            )
        })
    }

    /// Records the end of a job on disk and ends its run.
    async fn end(&self, job: &Arc<Job>, end: JobEnd) {
        let (folder, noted) = (job.folder.clone(), end.clone());
        let written = self.off_workers(move || disk::note_end(&folder, &noted)).await;
        if !matches!(written, Ok(Ok(()))) {
            tracing::warn!(dataset = %job.spec.id, "the end of a dataset is not noted; it is built again at the next start");
        }
        job.finish(end);
    }

    /// Runs blocking work on a thread of the batch pool.
    async fn off_workers<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, Failure> {
        let (sender, done) = oneshot::channel();
        let work = move || {
            let done = std::panic::catch_unwind(std::panic::AssertUnwindSafe(work));
            // The receiver is gone if the client disconnected.
            let _ = sender.send(done);
        };
        self.shared.engine.pool(Class::Batch).submit(Box::new(work));
        match done.await {
            Ok(Ok(done)) => Ok(done),
            Ok(Err(_)) => Err(Failure::new(Code::Internal, "the server panicked on this request")),
            Err(_) => Err(Failure::new(Code::Unavailable, "the server shuts down")),
        }
    }

    /// Asks all builds to save their work in flight and to stop. They continue at the next start.
    pub fn stop(&self) {
        self.shared.stopping.send_replace(true);
    }

    /// Waits until no build is running.
    pub async fn stopped(&self) {
        let mut jobs: Vec<Arc<Job>> = self.shared.lock().by_id.values().cloned().collect();
        jobs.retain(|job| job.state().is_building);
        for job in jobs {
            job.built().await;
        }
    }
}

impl DatasetsShared {
    fn lock(&self) -> MutexGuard<'_, Jobs> {
        self.jobs.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The slot of a running build. The next build starts when it is dropped.
struct BuildPlace {
    datasets: Datasets,
}

impl Drop for BuildPlace {
    fn drop(&mut self) {
        self.datasets.shared.lock().building -= 1;
        self.datasets.start_next();
    }
}

/// An `Idempotency-Key` that has no job yet. It is free again if the request creates no job.
struct ReservedKey<'a> {
    datasets: &'a Datasets,
    key: Option<&'a str>,
}

impl Drop for ReservedKey<'_> {
    fn drop(&mut self) {
        let Some(key) = self.key else { return };
        let mut jobs = self.datasets.shared.lock();
        if let Some(KeyState::Pending) = jobs.by_key.get(key) {
            jobs.by_key.remove(key);
        }
    }
}
