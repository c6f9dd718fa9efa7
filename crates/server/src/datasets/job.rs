//! One job: what it is, where it stands, and how it is told to stop.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use anabranch_dataset::Build;
use anabranch_dataset_inspect::live::Pace;
use anabranch_engine::tasks::AbortOnDrop;
use serde_json::json;
use tokio::sync::watch;

use super::disk::OUTPUT;
use super::spec::{JobEnd, Spec};
use crate::runs::{LiveRun, RunDetail, RunEnd, RunId, RunState};

pub(super) struct Job {
    pub(super) spec: Spec,
    pub(super) folder: PathBuf,
    state: Mutex<JobState>,
    cancelled: watch::Sender<bool>,
    /// True while a build is under way.
    building: watch::Sender<bool>,
    task: Mutex<Option<AbortOnDrop>>,
}

pub(super) struct JobState {
    /// The latest run of the job.
    pub(super) run: RunId,
    pub(super) end: Option<JobEnd>,
    pub(super) is_building: bool,
    /// The build under way.
    pub(super) build: Option<Arc<LiveBuild>>,
    /// Until the job has ended.
    live: Option<LiveRun>,
}

/// A build under way, as requests see it.
pub(super) struct LiveBuild {
    pub(super) build: Build,
    pub(super) pace: Mutex<Pace>,
}

impl LiveBuild {
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
        let state = JobState { run, end, is_building: false, build: None, live };
        Job {
            spec,
            folder,
            state: Mutex::new(state),
            cancelled: watch::Sender::new(false),
            building: watch::Sender::new(false),
            task: Mutex::default(),
        }
    }

    pub(super) fn output(&self) -> PathBuf {
        self.folder.join(OUTPUT)
    }

    pub(super) fn state(&self) -> MutexGuard<'_, JobState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The task lives as long as the job.
    pub(super) fn hold(&self, task: AbortOnDrop) {
        *self.task.lock().unwrap_or_else(PoisonError::into_inner) = Some(task);
    }

    /// Ends the task at once.
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

    /// Waits until no build is under way.
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

    /// Is over when somebody cancels the job or its run.
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

    /// Shows the rows so far in lists of runs.
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

    /// Ends the run of a job that the next start continues.
    pub(super) fn pause(&self) {
        let live = self.state().live.take();
        drop(live);
    }
}
