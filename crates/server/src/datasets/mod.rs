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
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use anabranch_engine::Engine;
use anabranch_model::HttpClient;
use tokio::sync::watch;
use tonic::Code;

pub(crate) use cells::CellQuery;
use job::Job;
use metrics::BuildCounts;
pub(crate) use rows::{Download, RowQuery};
pub use settings::DatasetSettings;
use spec::JobEnd;
pub(crate) use spec::Submission;

use crate::blocking::Blocking;
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
    blocking: Blocking,
    jobs: Mutex<Jobs>,
    /// The counts of the builds that have ended since the server started.
    finished: Mutex<BuildCounts>,
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
    /// The clients of submissions that are being checked. They count as jobs, so that concurrent ones stay within the
    /// limits.
    accepting: Vec<String>,
}

impl Jobs {
    /// Refuses a job above the limits of all clients, or above half of them for its client.
    fn check_room(&self, client: &str, settings: &DatasetSettings) -> Result<(), Failure> {
        let kept = self.by_id.len() + self.accepting.len();
        let open = self.queue.len() + self.building + self.accepting.len();
        let own = || self.by_id.values().filter(|job| job.spec.client == client);
        let own_new = self.accepting.iter().filter(|other| *other == client).count();
        let own_kept = own().count() + own_new;
        let own_open = own().filter(|job| job.state().end.is_none()).count() + own_new;
        let (kept_most, open_most) = (settings.kept_most, settings.open_most);
        let what = if kept >= kept_most || open >= open_most {
            format!(
                "the server has {kept} datasets, {open} of them not built, of at most {kept_most} and {open_most}"
            )
        } else if own_kept >= kept_most.div_ceil(2) || own_open >= open_most.div_ceil(2) {
            format!(
                "this client has {own_kept} datasets, {own_open} of them not built: half of what the server may have"
            )
        } else {
            return Ok(());
        };
        let message = format!("{what}; wait, or remove some with DELETE /v1/datasets/ID");
        Err(Failure::new(Code::ResourceExhausted, message))
    }
}

#[derive(Clone, Copy)]
enum KeyState {
    Job(RunId),
    /// Another request with the key is being checked.
    Pending,
}

/// The most concurrent reads and writes of files.
const FILE_THREADS: usize = 8;

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
            blocking: Blocking::new(FILE_THREADS),
            jobs: Mutex::default(),
            finished: Mutex::default(),
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
            let place = BuildPlace { datasets: self.ownerless() };
            let task = build::run(self.ownerless(), Arc::clone(&job), place);
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

    /// Checks a submission, makes its job durable and queues it. If the client leaves while its submission is checked, the
    /// job is accepted or refused all the same.
    pub(crate) async fn submit(&self, submission: Submission) -> Result<SubmittedJob, Failure> {
        if *self.shared.stopping.borrow() {
            return Err(Failure::new(Code::Unavailable, "the server shuts down"));
        }
        let reserved = match self.reserve(&submission)? {
            Reservation::Job(job) => return Ok(SubmittedJob { id: job.spec.id, run: job.state().run }),
            Reservation::Place(reserved) => reserved,
        };
        let handle = tokio::runtime::Handle::current();
        self.off_workers(move || {
            let _runtime = handle.enter();
            let datasets = &reserved.datasets;
            let shared = &datasets.shared;
            let id = shared.runs.reserve();
            let (folder, spec) = check::accept(&shared.settings, submission, id)?;
            let live = shared.runs.begin_as(id, RunKind::Dataset, &*spec.name);
            datasets.add(Job::new(spec, folder, id, Some(live), None));
            datasets.start_next();
            Ok(SubmittedJob { id, run: id })
        })
        .await?
    }

    /// The job of an earlier request with the same key. Otherwise a place for a new job, and its key.
    fn reserve(&self, submission: &Submission) -> Result<Reservation, Failure> {
        let settings = &self.shared.settings;
        let key = submission.idempotency_key.clone();
        let mut jobs = self.shared.lock();
        match key.as_ref().and_then(|key| jobs.by_key.get(key)).copied() {
            None => {}
            Some(KeyState::Pending) => {
                let message = "another request with this `Idempotency-Key` is being checked; try again";
                return Err(Failure::new(Code::Aborted, message));
            }
            Some(KeyState::Job(id)) => {
                let job = jobs.by_id.get(&id).cloned();
                let same = job.filter(|job| job.spec.digest == submission.digest);
                return same.map(Reservation::Job).ok_or_else(|| {
                    let message = "this `Idempotency-Key` was used for another dataset; use a new key";
                    Failure::new(Code::FailedPrecondition, message)
                });
            }
        }
        jobs.check_room(&submission.client, settings)?;
        key.iter().for_each(|key| _ = jobs.by_key.insert(key.clone(), KeyState::Pending));
        let client = submission.client.clone();
        jobs.accepting.push(client.clone());
        Ok(Reservation::Place(ReservedPlace { datasets: self.ownerless(), client, key }))
    }

    /// A handle that does not keep the builds running.
    fn ownerless(&self) -> Datasets {
        Datasets { shared: Arc::clone(&self.shared), _owner: None }
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
        let datasets = self.ownerless();
        let noted = self.off_workers(move || {
            // The cancellation is durable first, so that a server that is killed now does not build the job again.
            disk::note_cancelled(&job.folder)?;
            job.cancel();
            if datasets.leave_queue(id) {
                let run = job.state().run;
                datasets.end(&job, JobEnd::stopped(run, "it was cancelled before it began"));
            }
            Ok(())
        });
        noted.await?.map_err(|error: std::io::Error| {
            Failure::new(Code::Unavailable, format!("the job cannot be cancelled: {error}"))
        })
    }

    /// Takes a job out of the queue. False if it is not queued.
    fn leave_queue(&self, id: RunId) -> bool {
        let mut jobs = self.shared.lock();
        let before = jobs.queue.len();
        jobs.queue.retain(|queued| queued.spec.id != id);
        before > jobs.queue.len()
    }

    /// Asks the job of a run to stop; `None` if the run is not the current one of a job.
    pub(crate) async fn cancel_run(&self, run: RunId) -> Option<Result<(), Failure>> {
        let job = {
            let jobs = self.shared.lock();
            jobs.by_id.values().find(|job| job.state().run == run).map(|job| job.spec.id)
        };
        Some(self.cancel(job?).await)
    }

    /// Removes a job that has ended, with its files.
    pub(crate) async fn remove(&self, id: RunId) -> Result<(), Failure> {
        let job = self.find(id)?;
        if job.state().end.is_none() {
            let message = format!("the dataset {id} is not built; POST /v1/datasets/{id}/cancel first");
            return Err(Failure::new(Code::FailedPrecondition, message));
        }
        let datasets = self.ownerless();
        let removed = self.off_workers(move || {
            {
                let mut jobs = datasets.shared.lock();
                jobs.by_id.remove(&id);
                job.spec.idempotency_key.iter().for_each(|key| _ = jobs.by_key.remove(key));
            }
            disk::remove(&job.folder)
        });
        removed.await?.map_err(|error| {
            Failure::new(
                Code::Unavailable,
                format!("some files of the dataset could not be removed: {error}"),
            )
        })
    }

    /// Records the end of a job on disk and ends its run. Blocks.
    fn end(&self, job: &Job, end: JobEnd) {
        if let Err(error) = disk::note_end(&job.folder, &end) {
            tracing::warn!(
                dataset = %job.spec.id, %error,
                "the end of a dataset is not noted; it is built again at the next start"
            );
        }
        job.finish(end);
    }

    /// Runs blocking work on another thread.
    async fn off_workers<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, Failure> {
        self.shared.blocking.run(work).await
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
    fn finished(&self) -> MutexGuard<'_, BuildCounts> {
        self.finished.lock().unwrap_or_else(PoisonError::into_inner)
    }

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

/// The result of a reservation.
enum Reservation {
    Job(Arc<Job>),
    Place(ReservedPlace),
}

/// The place of a job that is being checked, and its `Idempotency-Key`. If no job is made of it, the key is free again.
struct ReservedPlace {
    datasets: Datasets,
    client: String,
    key: Option<String>,
}

impl Drop for ReservedPlace {
    fn drop(&mut self) {
        let mut jobs = self.datasets.shared.lock();
        if let Some(at) = jobs.accepting.iter().position(|client| *client == self.client) {
            jobs.accepting.swap_remove(at);
        }
        if let Some(key) = &self.key
            && let Some(KeyState::Pending) = jobs.by_key.get(key)
        {
            jobs.by_key.remove(key);
        }
    }
}
