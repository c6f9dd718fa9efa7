//! A run in progress: its events, and the guard that ends it.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use anabranch_engine::clock::{Clock as _, SystemClock};
use serde::Serialize;
use tokio::sync::watch;

use super::{Log, RunDetail, RunId, RunState, RunSummary, Runs};

/// The most events of one run that are kept, and their most bytes.
const EVENTS_MOST: usize = 1_024;
const EVENT_BYTES_MOST: usize = 1 << 20;

/// An event of a run: its kind, and its data as JSON.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RunEvent {
    pub(crate) kind: &'static str,
    pub(crate) data: Arc<str>,
}

/// A run in progress, shared with readers.
pub(super) struct LiveRunShared {
    id: RunId,
    summary: Mutex<RunSummary>,
    events: Log<RunEvent>,
    cancelled: watch::Sender<bool>,
}

impl LiveRunShared {
    pub(super) fn new(summary: RunSummary) -> LiveRunShared {
        LiveRunShared {
            id: summary.id,
            summary: Mutex::new(summary),
            events: Log::new(EVENTS_MOST, EVENT_BYTES_MOST),
            cancelled: watch::Sender::new(false),
        }
    }

    pub(super) fn id(&self) -> RunId {
        self.id
    }

    pub(super) fn summary(&self) -> RunSummary {
        self.summary.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(super) fn events(&self) -> &Log<RunEvent> {
        &self.events
    }

    pub(super) fn cancel(&self) -> bool {
        !self.cancelled.send_replace(true)
    }

    /// Adds the last event.
    pub(super) fn finish(&self, summary: &RunSummary) {
        self.summary.lock().unwrap_or_else(PoisonError::into_inner).clone_from(summary);
        self.push("end", summary);
        self.events.close();
    }

    fn push(&self, kind: &'static str, data: &impl Serialize) {
        let data = serde_json::to_string(data).unwrap_or_else(|error| {
            serde_json::json!({ "error": format!("the event is not JSON: {error}") }).to_string()
        });
        let bytes = data.len();
        self.events.push(RunEvent { kind, data: data.into() }, bytes);
    }
}

/// A run in progress. A run that is dropped before its end counts as stopped.
pub struct LiveRun {
    runs: Runs,
    live: Arc<LiveRunShared>,
    /// The time of day may be set while it runs.
    began: Instant,
    end: Option<RunEnd>,
    detail: Option<RunDetail>,
}

/// The end of a run.
#[derive(Clone, Copy, Debug)]
pub struct RunEnd {
    /// The final state.
    pub state: RunState,
    /// The number of degraded parts of its result.
    pub degraded: u32,
    /// The number of failures.
    pub failures: u32,
    /// The number of rows of its result.
    pub rows: Option<u64>,
}

impl LiveRun {
    pub(super) fn new(runs: Runs, live: Arc<LiveRunShared>, began: Instant) -> LiveRun {
        LiveRun { runs, live, began, end: None, detail: None }
    }

    /// The id of the run.
    pub fn id(&self) -> RunId {
        self.live.id
    }

    /// Adds an event.
    pub fn event(&self, kind: &'static str, data: &impl Serialize) {
        self.live.push(kind, data);
    }

    /// The number of the last event; 0 if there is none.
    pub fn last_event(&self) -> u64 {
        self.live.events.last()
    }

    /// Updates the summary: the rows so far, and the failures.
    pub fn update(&self, rows: Option<u64>, failures: u32) {
        let mut summary = self.live.summary.lock().unwrap_or_else(PoisonError::into_inner);
        (summary.rows, summary.failures) = (rows, failures);
    }

    /// Whether the run was asked to stop.
    pub fn is_cancelled(&self) -> bool {
        *self.live.cancelled.borrow()
    }

    /// Completes when the run is asked to stop.
    pub fn cancelled(&self) -> impl Future<Output = ()> + Send + use<> {
        let mut cancelled = self.live.cancelled.subscribe();
        async move {
            // A run that has ended cannot be cancelled any more.
            if cancelled.wait_for(|cancelled| *cancelled).await.is_err() {
                std::future::pending::<()>().await;
            }
        }
    }

    /// Ends the run.
    pub fn end(mut self, end: RunEnd, detail: Option<RunDetail>) {
        (self.end, self.detail) = (Some(end), detail);
    }
}

impl Drop for LiveRun {
    fn drop(&mut self) {
        let before = self.live.summary();
        let duration = SystemClock.now().saturating_duration_since(self.began);
        let RunEnd { state, degraded, failures, rows } = self.end.take().unwrap_or(RunEnd {
            state: RunState::Stopped,
            degraded: before.degraded,
            failures: before.failures,
            rows: before.rows,
        });
        let summary = RunSummary { state, degraded, failures, rows, duration: Some(duration), ..before };
        self.runs.ended(&self.live, summary, self.detail.take());
    }
}
