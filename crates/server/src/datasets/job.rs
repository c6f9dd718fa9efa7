//! One job: its specification, its state, and its cancellation.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use anabranch_dataset::Build;
use anabranch_dataset_inspect::live::Pace;
use anabranch_engine::tasks::AbortOnDrop;
use serde_json::json;
use tokio::sync::watch;

use super::disk::OUTPUT;
use super::metrics::BuildCounts;
use super::past::History;
use super::spec::{JobEnd, Spec};
use crate::runs::{LiveRun, RunDetail, RunEnd, RunId, RunState};

pub(super) struct Job {
    pub(super) spec: Spec,
    pub(super) folder: PathBuf,
    state: Mutex<JobState>,
    cancelled: watch::Sender<bool>,
    /// Whether a build is running.
    building: watch::Sender<bool>,
    task: Mutex<Option<AbortOnDrop>>,
    /// The last progress as JSON, once the job has ended and it was read from its folder.
    pub(super) last_progress: OnceLock<Box<str>>,
}

pub(super) struct JobState {
    /// The latest run of the job.
    pub(super) run: RunId,
    pub(super) end: Option<JobEnd>,
    pub(super) is_building: bool,
    /// The figures of the current build.
    pub(super) history: History,
    /// The current build.
    pub(super) build: Option<Arc<LiveBuild>>,
    /// Present until the job has ended.
    live: Option<LiveRun>,
}

/// The current build, shared with requests.
pub(super) struct LiveBuild {
    pub(super) build: Build,
    pub(super) pace: Mutex<Pace>,
    /// Whether its counts are among those of the finished builds.
    counted: AtomicBool,
}

impl LiveBuild {
    pub(super) fn new(build: Build, pace: Pace) -> LiveBuild {
        LiveBuild { build, pace: Mutex::new(pace), counted: AtomicBool::new(false) }
    }

    pub(super) fn is_counted(&self) -> bool {
        self.counted.load(Ordering::Relaxed)
    }

    /// Moves the counts to those of the finished builds. The caller holds the lock of the latter.
    pub(super) fn count_in(&self, finished: &mut BuildCounts, is_demo: bool) {
        finished.add(&self.build, is_demo);
        self.counted.store(true, Ordering::Relaxed);
    }

    pub(super) fn pace(&self) -> MutexGuard<'_, Pace> {
        self.pace.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Job {
    pub(super) fn new(
        spec: Spec,
        folder: PathBuf,
        run: RunId,
        live: Option<LiveRun>,
        end: Option<JobEnd>,
    ) -> Job {
        let state = JobState { run, end, is_building: false, history: History::default(), build: None, live };
        Job {
            spec,
            folder,
            state: Mutex::new(state),
            cancelled: watch::Sender::new(false),
            building: watch::Sender::new(false),
            task: Mutex::default(),
            last_progress: OnceLock::new(),
        }
    }

    pub(super) fn output(&self) -> PathBuf {
        self.folder.join(OUTPUT)
    }

    pub(super) fn state(&self) -> MutexGuard<'_, JobState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Stores the task, which lives as long as the job.
    pub(super) fn hold(&self, task: AbortOnDrop) {
        *self.task.lock().unwrap_or_else(PoisonError::into_inner) = Some(task);
    }

    /// Stops the task immediately.
    pub(super) fn abort(&self) {
        let task = self.task.lock().unwrap_or_else(PoisonError::into_inner).take();
        drop(task);
    }

    pub(super) fn set_building(&self, is_building: bool) {
        let mut state = self.state();
        state.is_building = is_building;
        if !is_building {
            state.build = None;
        }
        drop(state);
        self.building.send_replace(is_building);
    }

    /// Waits until no build is running.
    pub(super) async fn built(&self) {
        let mut building = self.building.subscribe();
        // The sender lives as long as the job.
        let _ = building.wait_for(|is_building| !is_building).await;
    }

    pub(super) fn cancel(&self) {
        self.cancelled.send_replace(true);
    }

    pub(super) fn is_cancelled(&self) -> bool {
        *self.cancelled.borrow() || self.state().live.as_ref().is_some_and(LiveRun::is_cancelled)
    }

    /// Completes when the job or its run is cancelled.
    pub(super) fn cancelled(&self) -> impl Future<Output = ()> + Send + use<> {
        let mut job = self.cancelled.subscribe();
        let run = self.state().live.as_ref().map(LiveRun::cancelled);
        async move {
            let run = async {
                match run {
                    Some(run) => run.await,
                    None => std::future::pending().await,
                }
            };
            let job = async {
                if job.wait_for(|cancelled| *cancelled).await.is_err() {
                    std::future::pending::<()>().await;
                }
            };
            tokio::select! {
                () = run => {}
                () = job => {}
            }
        }
    }

    /// Adds an event to the run.
    pub(super) fn event(&self, kind: &'static str, data: &serde_json::Value) {
        self.state().live.iter().for_each(|live| live.event(kind, data));
    }

    /// The number of the run's last event.
    pub(super) fn last_event(&self) -> u64 {
        self.state().live.as_ref().map_or(0, LiveRun::last_event)
    }

    /// Updates the row count that lists of runs show.
    pub(super) fn update(&self, rows: u64, failures: u64) {
        let failures = u32::try_from(failures).unwrap_or(u32::MAX);
        self.state().live.iter().for_each(|live| live.update(Some(rows), failures));
    }

    /// Ends the job and its run.
    pub(super) fn finish(&self, end: JobEnd) {
        let mut state = self.state();
        let live = state.live.take();
        let failures = u32::try_from(end.failed_cells).unwrap_or(u32::MAX);
        let run_state = match &*end.state {
            "complete" if end.failed_cells > 0 => RunState::Degraded,
            "complete" => RunState::Complete,
            "failed" => RunState::Failed,
            _ => RunState::Stopped,
        };
        let ended = RunEnd { state: run_state, degraded: failures, failures, rows: Some(end.rows) };
        let detail = RunDetail {
            error: end.error.clone(),
            trace_id: self.spec.trace.as_ref().map(|trace| trace.trace_id().to_owned()),
            request: Some(json!({
                "dataset": self.spec.id, "rows": self.spec.rows, "seed": self.spec.seed, "demo": self.spec.demo,
            })),
            ..RunDetail::default()
        };
        state.end = Some(end);
        drop(state);
        if let Some(live) = live {
            live.end(ended, Some(detail));
        }
    }

    /// Ends the run of a job that continues at the next start.
    pub(super) fn pause(&self) {
        let live = self.state().live.take();
        drop(live);
    }
}
