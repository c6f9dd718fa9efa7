//! The events of a build as JSON, besides progress events ([`Pace::json`](super::Pace::json)).

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use anabranch_dataset::{BuildReport, ErrorRate, StopReason};
use serde_json::{Value, json};

use super::{cost, rounded};

/// The event that begins a build.
pub fn start_event(name: &str, rows: u64, seed: u64, demo: bool, columns: &[String]) -> Value {
    json!({
        "event": "start", "dataset": name, "rows": rows, "seed": seed, "demo": demo, "columns": columns,
    })
}

/// The event of a soft stop that begins.
pub fn stopping_event(calls_in_flight: u64) -> Value {
    json!({"event": "stopping", "calls_in_flight": calls_in_flight})
}

/// The event with failed cells by column and class.
pub fn errors_event(report: &BuildReport, out: &Path) -> Value {
    let mut columns: BTreeMap<&str, BTreeMap<&str, u64>> = BTreeMap::new();
    for error in &report.errors {
        *columns.entry(&error.column).or_default().entry(&error.class).or_default() += 1;
    }
    json!({
        "event": "errors", "failed_cells": report.error_count, "rows_dropped": report.dropped, "columns": columns,
        "file": out.join("errors.jsonl").display().to_string(),
    })
}

/// The event that ends a build.
pub fn end_event(status: &str, report: &BuildReport, was_complete: bool, elapsed: Duration) -> Value {
    json!({
        "event": "end", "status": status, "rows": report.rows, "resumed_rows": report.resumed,
        "rows_dropped": report.dropped, "failed_cells": report.error_count, "models": report.models,
        "models_of_run": report.models_of_run, "cost": cost(&report.models),
        "was_complete": was_complete, "stages": report.stages,
        "reason": report.stopped.as_ref().map(ToString::to_string),
        "error_rate": error_rate(report),
        "budget": match &report.stopped {
            Some(StopReason::Budget(cap)) => Some(cap.flag()),
            _ => None,
        },
        "elapsed_seconds": rounded(elapsed.as_secs_f64()), "plan": report.plan,
    })
}

/// The calls that stopped a build early.
fn error_rate(report: &BuildReport) -> Option<Value> {
    let Some(StopReason::ErrorRate(ErrorRate { model, calls, failed, class, message })) = &report.stopped
    else {
        return None;
    };
    Some(json!({"model": model, "calls": calls, "failed": failed, "class": class, "message": message}))
}
