//! Builds the dataset of a job, and reports its progress.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anabranch_dataset::output::LimitReport;
use anabranch_dataset::post::Post;
use anabranch_dataset::{
    BuildOptions, BuildReport, Dataset, Error, JournalPlace, LoadedConfig, ModelSource, StopReason,
};
use anabranch_dataset_inspect::live::{Pace, end_event, errors_event, start_event, stopping_event};
use anabranch_model::Demo;
use serde_json::json;

use super::job::{Job, LiveBuild};
use super::past::{PastBuild, PastCells};
use super::spec::JobEnd;
use super::{BuildPlace, Datasets, cells, check, disk};
use crate::failure::with_causes;
use crate::observe::TraceHeaders;

/// The interval between progress events.
const PROGRESS_EVERY: Duration = Duration::from_secs(1);
/// The most runs of equal cells in one event, of about ten bytes each. If more cells changed, clients read all cells.
const CHANGES_MOST: usize = 2_000;

/// The end of a build.
enum BuildEnd {
    Job(JobEnd),
    /// The server shuts down. It continues the build at the next start.
    Paused,
}

/// Builds a job and records its end.
pub(super) async fn run(datasets: Datasets, job: Arc<Job>, place: BuildPlace) {
    job.set_building(true);
    let guard = BuildingGuard(Arc::clone(&job));
    let run = job.state().run;
    let ending = match build(&datasets, &job).await {
        Ok(ending) => ending,
        Err(_) if *datasets.shared.stopping.borrow() => BuildEnd::Paused,
        Err(message) => BuildEnd::Job(JobEnd::failed(run, message)),
    };
    match ending {
        BuildEnd::Job(end) => {
            let (own, ended, noted) = (datasets.clone(), Arc::clone(&job), end.clone());
            if datasets.off_workers(move || own.end(&ended, noted)).await.is_err() {
                job.finish(end);
            }
        }
        BuildEnd::Paused => job.pause(),
    }
    drop(guard);
    drop(place);
}

/// Resets the job's flag however the build ends.
struct BuildingGuard(Arc<Job>);

impl Drop for BuildingGuard {
    fn drop(&mut self) {
        self.0.set_building(false);
    }
}

async fn build(datasets: &Datasets, job: &Arc<Job>) -> Result<BuildEnd, String> {
    let run = job.state().run;
    if job.is_cancelled() {
        return Ok(BuildEnd::Job(JobEnd::stopped(run, "it was cancelled before it began")));
    }
    let (loaded, dataset) = open(datasets, job).await?;
    let options = BuildOptions {
        rows: job.spec.rows,
        out: job.output(),
        journal: JournalPlace::OutputFolder,
        budget: job.spec.budget.budget()?,
        ..BuildOptions::default()
    };
    let clock = Arc::clone(datasets.shared.engine.clock());
    let build = dataset.build(options).await.map_err(|error| told(&error, job))?;
    let pace = Pace::new(&build, clock.now()).with_labels(&loaded.config);
    let live = Arc::new(LiveBuild::new(build, pace));
    job.state().build = Some(Arc::clone(&live));
    let columns: Vec<String> = loaded.config.columns.iter().map(|column| column.name.clone()).collect();
    let spec = &job.spec;
    job.event("start", &start_event(&spec.name, spec.rows, spec.seed, spec.demo, &columns));
    let report = follow(datasets, job, &live).await;
    live.count_in(&mut datasets.shared.finished(), job.spec.demo);
    tell_progress(job, &live, clock.now());
    let elapsed = live.pace().elapsed();
    keep_past(datasets, job, &live).await;
    let report = report.map_err(|error| told(&error, job))?;
    let (state, error) = match &report.stopped {
        None => ("complete", None),
        Some(StopReason::Asked) if !job.is_cancelled() => return Ok(BuildEnd::Paused),
        Some(reason) => ("stopped", Some(reason.to_string())),
    };
    if report.error_count > 0 {
        job.event("errors", &errors_event(&report, std::path::Path::new("")));
    }
    job.event("built", &end_event(state, &report, live.build.was_complete(), elapsed));
    let BuildReport { rows, error_count, .. } = report;
    Ok(BuildEnd::Job(JobEnd { state: state.to_owned(), error, run, rows, failed_cells: error_count }))
}

/// Stores the part of the build that the dataset's page shows from now on.
async fn keep_past(datasets: &Datasets, job: &Arc<Job>, live: &Arc<LiveBuild>) {
    let (job, live) = (Arc::clone(job), Arc::clone(live));
    let dataset = job.spec.id;
    let kept = datasets.off_workers(move || {
        let progress = live.build.progress();
        let (rows, columns) = progress.shape();
        let cells = progress.cells(0..rows).and_then(|cells| PastCells::new(&cells, columns));
        disk::note_past(&job.folder, &PastBuild { history: job.state().history.clone(), cells })
    });
    if !matches!(kept.await, Ok(Ok(()))) {
        tracing::warn!(%dataset, "the curves and cells of a dataset are not kept");
    }
}

/// Reads and compiles the dataset of a job on a blocking thread.
async fn open(datasets: &Datasets, job: &Arc<Job>) -> Result<(LoadedConfig, Dataset), String> {
    let (shared, job) = (Arc::clone(&datasets.shared), Arc::clone(job));
    let handle = tokio::runtime::Handle::current();
    let opened = datasets.off_workers(move || {
        let _runtime = handle.enter();
        let loaded = check::load(&shared.settings, &job.folder, &job.spec)?;
        let has_models = loaded.config.columns.iter().any(|column| !column.model_aliases().is_empty());
        let headers = job.spec.trace.as_ref().map(TraceHeaders::pairs).unwrap_or_default();
        let client = shared.client.with_headers(&headers).map_err(|error| error.to_string())?;
        let post: Arc<dyn Post> = Arc::new(client.clone());
        let models = match job.spec.demo || !has_models {
            true => ModelSource::Demo(Demo::new()),
            false => ModelSource::Servers(client),
        };
        let mut dataset = Dataset::from_config(&loaded, &shared.engine, &models, &post)
            .map_err(|error| told(&error, &job))?;
        dataset.watch_cells();
        dataset.bound_memory(shared.settings.memory_most);
        Ok((loaded, dataset))
    });
    opened.await.map_err(|failure| failure.message)?
}

/// Runs a build until it ends, and reports its progress about once per second.
async fn follow(datasets: &Datasets, job: &Arc<Job>, live: &LiveBuild) -> Result<BuildReport, Error> {
    let clock = Arc::clone(datasets.shared.engine.clock());
    let mut stopping = datasets.shared.stopping.subscribe();
    let stop = async {
        tokio::select! {
            () = job.cancelled() => {}
            _ = stopping.wait_for(|stopping| *stopping) => {}
        }
    };
    let mut stop = std::pin::pin!(stop);
    let mut run = std::pin::pin!(live.build.run());
    let mut is_stopping = false;
    let mut limits: Vec<LimitReport> = Vec::new();
    loop {
        let due = clock.now() + PROGRESS_EVERY;
        tokio::select! {
            ended = &mut run => return ended,
            () = &mut stop, if !is_stopping => {
                is_stopping = true;
                live.build.stop();
                let calls = live.build.limits().iter().map(|limit| u64::from(limit.in_flight)).sum();
                job.event("stopping", &stopping_event(calls));
            }
            () = clock.sleep_until(due) => {
                let snapshot = live.build.progress().snapshot();
                job.update(snapshot.rows_written, snapshot.errors.values().sum());
                tell_progress(job, live, clock.now());
                tell_limits(job, &mut limits, live.build.limits());
            }
        }
    }
}

/// Sends an event with the counters, and the cells that changed since the last one.
fn tell_progress(job: &Job, live: &LiveBuild, now: Instant) {
    let mut pace = live.pace();
    pace.read(&live.build, now);
    let mut progress = pace.json();
    let figures = pace.figures();
    drop(pace);
    job.state().history.add(&figures);
    if let Some(changes) = live.build.progress().take_cell_changes(CHANGES_MOST) {
        progress["cells"] = cells::changes(changes);
    }
    job.event("progress", &progress);
}

/// Sends an event for each limit that changed.
fn tell_limits(job: &Job, before: &mut Vec<LimitReport>, now: Vec<LimitReport>) {
    for limit in &now {
        let known = before.iter().find(|known| known.name == limit.name);
        if known.is_none_or(|known| known.limit != limit.limit || known.refused != limit.refused) {
            let event = json!({
                "event": "limit", "name": limit.name, "limit": limit.limit, "in_flight": limit.in_flight,
                "refused": limit.refused, "cooling_ms": limit.cooling_ms,
            });
            job.event("limit", &event);
        }
    }
    *before = now;
}

/// The message of a build error, without the server's folder.
fn told(error: &Error, job: &Job) -> String {
    let text = match error {
        Error::Config(problems) => problems.to_string(),
        Error::Journal(journal) => with_causes(&**journal),
        other => with_causes(other),
    };
    text.replace(&format!("{}/", job.folder.display()), "")
}
