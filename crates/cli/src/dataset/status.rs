//! `anabranch dataset status`.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anabranch_dataset::output::{BuildState, BuildStatus, FolderStatus, Metadata};
use anabranch_text::{duration, money};
use clap::Args;
use serde_json::{Value, json};

use crate::failure::Failure;
use crate::out;
use crate::table::Table;
use anabranch_dataset_inspect::grouped;
use anabranch_dataset_inspect::live::{cost, rounded};

/// The end of the help text.
pub(super) const HELP: &str = "\
The state is running, complete, stopped (by a signal, by its budget, or early because calls failed),
failed, or interrupted (its process was killed or crashed). A build writes its state every second; a
running one is not disturbed. Calls, tokens, money and time are those of all runs since the build
began; cells are those since it was last continued.

  anabranch dataset status tickets
  anabranch dataset status tickets --json

Exit codes: 0 the state was read, whatever it is; 1 there is no build, or its files cannot be read
(stderr says why); 2 wrong usage.";

/// Shows the state of a build.
#[derive(Args)]
pub(crate) struct Status {
    /// The folder that `build --out` named.
    #[arg(value_name = "DIR")]
    folder: PathBuf,
    /// One JSON object.
    #[arg(long)]
    json: bool,
}

impl Status {
    pub(crate) fn run(self) -> Result<(), Failure> {
        let status = FolderStatus::read(&self.folder).map_err(|error| match error.cause.kind() {
            io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => Failure::of(missing(&self.folder)),
            _ => Failure::from(error),
        })?;
        match self.json {
            true => out::data(&format!("{}\n", json(&status))),
            false => out::data(&text(&status)),
        }
    }
}

/// The reason why there is no state to show.
fn missing(folder: &Path) -> String {
    let path = folder.display();
    if folder.join("metadata.json").exists() {
        return format!(
            "{path} holds a dataset without status.json: a build has not begun, or an older version built it; \
             {path}/metadata.json has its counts"
        );
    }
    let what = if folder.exists() { "holds no build" } else { "does not exist" };
    format!("{path} {what}; name the folder that `dataset build --out` wrote")
}

/// A running build writes a report more often than this.
const SILENT: Duration = Duration::from_secs(15);

fn text(status: &FolderStatus) -> String {
    let FolderStatus { build, metadata, process, age } = status;
    let BuildStatus { progress, .. } = build;
    let mut text = format!("{}: {}", metadata.dataset_name, word(build.state));
    if let Some(process) = process {
        text.push_str(&format!(" (process {process})"));
    }
    text.push_str(&format!(" after {}", duration::format(Duration::from_millis(build.elapsed_ms))));
    if let Some(age) = age {
        text.push_str(&format!(" (reported {} ago)", duration::format(*age)));
    }
    text.push('\n');
    if process.is_some() && build.state == BuildState::Running && age.is_some_and(|age| age > SILENT) {
        text.push_str("  it should have reported since: its process or its disk may hang\n");
    }
    if let Some(reason) = &build.reason {
        text.push_str(&format!("  reason  {reason}\n"));
    }
    if let Some(stage) = &build.stage {
        text.push_str(&format!("  stage   {} of {}, {}\n", stage.number, stage.count, stage.name));
    }
    text.push_str(&format!(
        "  rows    {} of {} on disk, {} dropped\n",
        grouped(rows_on_disk(status)),
        grouped(progress.rows),
        grouped(progress.rows_dropped)
    ));
    if let Some(accept) = &progress.accept {
        let share = accept
            .acceptance()
            .map_or_else(String::new, |share| format!(" ({:.0}% accepted)", share * 100.0));
        text.push_str(&format!(
            "  accept  {} of {} candidates looked at, {} at most{share}\n",
            grouped(accept.accepted + accept.rejected),
            grouped(accept.candidates),
            grouped(accept.most)
        ));
    }
    let errors = errors(status);
    let classes = errors.iter().map(|(class, count)| format!("{class} {}", grouped(*count)));
    let classes = classes.collect::<Vec<_>>().join(", ");
    text.push_str(&format!("  errors  {}\n", if classes.is_empty() { "none" } else { &classes }));
    for table in [columns(build), limits(build), models(build)].into_iter().flatten() {
        text.push('\n');
        text.push_str(&table.text(2));
    }
    text.push_str(&format!("\nnext: {}\n", next(status)));
    text
}

fn json(status: &FolderStatus) -> Value {
    let FolderStatus { build, metadata, process, age } = status;
    json!({
        "dataset": metadata.dataset_name,
        "state": build.state,
        "process": process,
        "age_seconds": age.map(|age| rounded(age.as_secs_f64())),
        "elapsed_seconds": rounded(build.elapsed_ms as f64 / 1e3),
        "rows": build.progress.rows,
        "rows_written": rows_on_disk(status),
        "rows_dropped": build.progress.rows_dropped,
        "stage": build.stage,
        "accept": build.progress.accept,
        "stages": metadata.stages,
        "columns": build.progress.columns,
        "limits": build.limits,
        "models": build.models,
        "spent": build.spent,
        "cost": cost(&build.models),
        "errors": errors(status),
        "reason": build.reason,
        "next": next(status),
    })
}

fn word(state: BuildState) -> &'static str {
    match state {
        BuildState::Running => "running",
        BuildState::Complete => "complete",
        BuildState::Stopped => "stopped",
        BuildState::Failed => "failed",
        BuildState::Interrupted => "interrupted",
    }
}

/// Advice for the next step.
fn next(status: &FolderStatus) -> String {
    let has_errors = !errors(status).is_empty();
    match status.build.state {
        BuildState::Running => {
            let process =
                status.process.map_or_else(String::new, |process| format!(" or `kill -INT {process}`"));
            format!("wait; Ctrl-C{process} stops it and saves the calls in flight")
        }
        BuildState::Complete if has_errors => {
            "the same command with --retry-failed tries the failed rows again".to_owned()
        }
        BuildState::Complete => "nothing is left to do".to_owned(),
        BuildState::Stopped | BuildState::Interrupted => match &status.build.raise {
            Some(flag) => format!("raise {flag} and run the command again to continue"),
            None => "run the same command again to continue".to_owned(),
        },
        BuildState::Failed => "remove the cause, then run the same command again to continue".to_owned(),
    }
}

/// Whether the metadata was written at the end of this build.
fn has_ended(state: BuildState) -> bool {
    matches!(state, BuildState::Complete | BuildState::Stopped)
}

fn rows_on_disk(FolderStatus { build, metadata, .. }: &FolderStatus) -> u64 {
    if has_ended(build.state) { metadata.actual_num_records } else { build.progress.rows_written }
}

/// The numbers of failed cells by class.
fn errors(
    FolderStatus { build, metadata: Metadata { errors, .. }, .. }: &FolderStatus,
) -> BTreeMap<String, u64> {
    if !has_ended(build.state) {
        return build.progress.errors.clone();
    }
    let mut classes = BTreeMap::new();
    for (class, count) in errors.values().flatten() {
        *classes.entry(class.clone()).or_default() += count;
    }
    classes
}

fn columns(build: &BuildStatus) -> Option<Table> {
    let mut table = Table::new(["column", "finished", "failed", "skipped", "retried"]);
    for column in &build.progress.columns {
        let numbers = [column.finished, column.failed, column.skipped, column.retried];
        table.row([column.name.clone()].into_iter().chain(numbers.map(|number| number.to_string())));
    }
    (!build.progress.columns.is_empty()).then_some(table)
}

fn limits(build: &BuildStatus) -> Option<Table> {
    let mut table = Table::new(["model", "in flight", "limit", "calls", "refused", "paused for"]);
    for limit in &build.limits {
        let paused = limit.cooling_ms.map_or_else(String::new, |rest| format!("{} s", rest.div_ceil(1000)));
        let numbers = [limit.in_flight.into(), limit.limit.into(), limit.calls, limit.refused];
        let numbers = numbers.map(|number: u64| number.to_string());
        table.row([limit.name.clone()].into_iter().chain(numbers).chain([paused]));
    }
    (!build.limits.is_empty()).then_some(table)
}

fn models(build: &BuildStatus) -> Option<Table> {
    let has_prices = cost(&build.models).is_some();
    let heads = ["alias", "answered", "reused", "tokens in", "tokens out"];
    let mut table = Table::new(heads.into_iter().chain(has_prices.then_some("cost")));
    for (alias, used) in &build.models {
        let numbers = [used.calls, used.reused, used.input_tokens, used.output_tokens];
        let cost = has_prices.then(|| used.cost.map_or_else(String::new, money::format));
        let numbers = numbers.map(|number| number.to_string());
        table.row([alias.clone()].into_iter().chain(numbers).chain(cost));
    }
    (!build.models.is_empty()).then_some(table)
}
