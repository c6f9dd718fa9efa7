//! The state of a job, as JSON.

use std::sync::Arc;

use anabranch_dataset::ColumnSnapshot;
use anabranch_dataset::config::{Config, Setting};
use anabranch_dataset::output::FolderStatus;
use anabranch_dataset_inspect::live::{cost, rounded};
use serde_json::{Map, Value, json};

use super::job::Job;
use super::{Datasets, Failure, disk};
use crate::runs::RunId;

impl Datasets {
    /// The latest jobs, newest first: at most `most` before an id, and the start of the next page.
    pub(crate) async fn list(&self, before: Option<RunId>, most: usize) -> Result<Value, Failure> {
        let (jobs, has_more) = {
            let all = self.shared.lock();
            let mut jobs =
                all.by_id.values().rev().filter(|job| before.is_none_or(|before| job.spec.id < before));
            let page: Vec<Arc<Job>> = jobs.by_ref().take(most).cloned().collect();
            (page, jobs.next().is_some())
        };
        let next = jobs.last().filter(|_| has_more).map(|job| job.spec.id);
        let shown: Vec<Value> =
            self.off_workers(move || jobs.iter().map(|job| status(job)).collect()).await?;
        Ok(json!({ "datasets": shown, "next": next }))
    }

    /// One job, with its configuration.
    pub(crate) async fn show(&self, id: RunId) -> Result<Value, Failure> {
        let job = self.find(id)?;
        self.off_workers(move || {
            // The event number is read before the counters, so that a client that follows the later events misses none.
            let event = job.last_event();
            let mut shown = status(&job);
            shown["config"] = config(&job).into();
            shown["event"] = event.into();
            shown["history"] = history(&job);
            shown
        })
        .await
    }
}

/// The text of the configuration, with `(secret)` in place of keys and headers. Blocks.
fn config(job: &Job) -> Option<String> {
    let text = std::fs::read_to_string(job.folder.join(&job.spec.config)).ok()?;
    let (config, _) = Config::parse(&job.spec.config, &text, &mut Setting::default()).ok()?;
    Some(config.source.to_string())
}

/// The curves of the current build, or of the last one. Blocks.
fn history(job: &Job) -> Value {
    let live = {
        let state = job.state();
        state.is_building.then(|| state.history.clone())
    };
    let history = live.unwrap_or_else(|| disk::past(&job.folder).history);
    serde_json::to_value(history).expect("numbers are JSON")
}

/// The state of a job. Blocks.
fn status(job: &Job) -> Value {
    let (run, end, build, is_building) = {
        let state = job.state();
        (state.run, state.end.clone(), state.build.clone(), state.is_building)
    };
    let mut shown = match &build {
        Some(live) => live.pace().json(),
        None if end.is_some() => last_progress(job),
        None => from_folder(job).unwrap_or_else(|| no_progress(job)),
    };
    let state = match (&end, is_building) {
        (Some(end), _) => &*end.state,
        (None, true) => "running",
        (None, false) => "queued",
    };
    let spec = &job.spec;
    let facts = json!({
        "id": spec.id, "name": spec.name, "state": state, "run": run, "seed": spec.seed, "demo": spec.demo,
        "asked_rows": spec.rows, "submitted_ms": spec.submitted_ms, "error": end.and_then(|end| end.error),
    });
    let (Some(shown_map), Value::Object(facts)) = (shown.as_object_mut(), facts) else { return shown };
    shown_map.remove("event");
    shown_map.extend(facts);
    for column in shown["columns"].as_array_mut().into_iter().flatten() {
        let kind = spec.kinds.iter().find(|(name, _)| column["name"] == **name).map(|(_, kind)| kind.clone());
        // Columns of the seed are not in the configuration.
        column["kind"] = kind.unwrap_or_else(|| "seed".to_owned()).into();
    }
    shown
}

/// The most bytes of the progress of an ended job that are kept in memory.
const PROGRESS_MOST: usize = 8 << 10;

/// The progress of a job that has ended. Lists are read often, and its folder does not change any more.
fn last_progress(job: &Job) -> Value {
    if let Some(text) = job.last_progress.get() {
        return serde_json::from_str(text).expect("it was written as JSON");
    }
    let Some(shown) = from_folder(job) else { return no_progress(job) };
    let text = shown.to_string();
    if text.len() <= PROGRESS_MOST {
        let _ = job.last_progress.set(text.into());
    }
    shown
}

/// The progress of a build that did not begin.
fn no_progress(job: &Job) -> Value {
    json!({
        "rows": job.spec.rows, "rows_done": 0, "rows_written": 0, "rows_dropped": 0, "columns": [], "errors": {},
        "models": [], "usage": {}, "cost": null, "elapsed_seconds": 0.0, "left_seconds": null, "stage": null,
        "accept": null, "row_groups_written": 0,
    })
}

/// The last recorded state of a build, in the format of a progress event; `None` if there is none that can be read.
fn from_folder(job: &Job) -> Option<Value> {
    let FolderStatus { build, .. } = FolderStatus::read(&job.output()).ok()?;
    let progress = &build.progress;
    let column = |column: &ColumnSnapshot| {
        let ColumnSnapshot { name, finished, failed, skipped, retried } = column;
        let mut shown = Map::new();
        shown.insert("name".to_owned(), name.clone().into());
        let counts = [("finished", finished), ("failed", failed), ("skipped", skipped), ("retried", retried)];
        shown.extend(counts.map(|(name, count)| (name.to_owned(), Value::from(*count))));
        shown.insert("cells_per_second".to_owned(), 0.0.into());
        Value::Object(shown)
    };
    Some(json!({
        "rows": progress.rows, "rows_done": progress.rows_written + progress.rows_dropped,
        "rows_written": progress.rows_written, "rows_dropped": progress.rows_dropped,
        "row_groups_written": progress.groups_written,
        "columns": progress.columns.iter().map(column).collect::<Vec<_>>(),
        "errors": progress.errors, "models": build.limits, "usage": build.models, "cost": cost(&build.models),
        "elapsed_seconds": rounded(build.elapsed_ms as f64 / 1e3), "left_seconds": null,
        "stage": build.stage, "accept": progress.accept,
    }))
}
