//! The report of a build, as text and as JSON.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anabranch_dataset::output::{ModelMetadata, StageReport};
use anabranch_dataset::{BuildReport, Cap, ErrorRate, RowError, StopReason};
use anabranch_dataset_inspect::grouped;
use anabranch_dataset_inspect::live::{self, LiveSpend, cost};
use anabranch_text::{count, duration, money};
use serde_json::Value;

use super::plan::checked;
use crate::table::Table;

/// The facts about a build that its report shows besides the counts.
pub(super) struct BuildSummary<'a> {
    pub(super) name: &'a str,
    /// The requested number of rows.
    pub(super) rows: u64,
    pub(super) out: &'a Path,
    pub(super) seed: u64,
    pub(super) elapsed: Duration,
    /// Whether the demo model answered.
    pub(super) demo: bool,
    /// Whether an earlier build had already completed it.
    pub(super) was_complete: bool,
    /// The journal's folder.
    pub(super) journal: Option<PathBuf>,
}

/// Describes a failed cell in one line.
pub(super) fn error_line(error: &RowError) -> String {
    let RowError { row, column, class, attempts, message, kept } = error;
    let tries = if *attempts > 1 { format!(" after {attempts} tries") } else { String::new() };
    let row_is = if *kept { "the cell is null" } else { "the row is dropped" };
    format!("row {row}, column `{column}`: {class}{tries}: {message} ({row_is})")
}

/// Failed cells by column and class, with the message of the first one.
pub(crate) fn errors_table(errors: &[RowError]) -> Table {
    let mut counts: BTreeMap<(&str, &str, bool), (u64, &str)> = BTreeMap::new();
    for error in errors {
        let found = counts.entry((&error.column, &error.class, error.kept)).or_insert((0, &error.message));
        found.0 += 1;
    }
    let mut table = Table::new(["column", "class", "cells", "their rows", "first message"]);
    for ((column, class, kept), (cells, message)) in counts {
        let rows = if kept { "kept, cell is null" } else { "dropped" };
        table.row([column, class, &cells.to_string(), rows, message]);
    }
    table
}

impl BuildSummary<'_> {
    /// The report for people.
    pub(super) fn text(&self, report: &BuildReport) -> String {
        let BuildSummary { name, rows, out, seed, elapsed, demo, .. } = self;
        // The requested number of rows is that of the first stage.
        let asked = if report.stages.len() > 1 { String::new() } else { format!(" of {}", grouped(*rows)) };
        let (there, elapsed) = (grouped(report.rows), duration::format(*elapsed));
        let mut text = format!("{name}: {there}{asked} rows, seed {seed}, in {elapsed}\n");
        text.push_str(&self.continued(report));
        if *demo && !report.models.is_empty() {
            text.push_str("  the demo model wrote the texts: they are made up\n");
        }
        text.push_str(&format!("  rows    {}\n", out.join("parquet-files").display()));
        text.push_str(&stages_text(&report.stages));
        let errors = out.join("errors.parquet");
        match report.error_count {
            0 => text.push_str("  errors  none\n"),
            failed => text.push_str(&format!(
                "  errors  {}, {} dropped: {} and errors.jsonl\n",
                count(failed, "failed cell"),
                count(report.dropped, "row"),
                errors.display()
            )),
        }
        let held = report.errors.len() as u64;
        if held > 0 {
            text.push('\n');
            text.push_str(&errors_table(&report.errors).text(2));
        }
        if held > 0 && report.error_count > held {
            text.push_str(&format!("  … these are the first {}; the file has all\n", grouped(held)));
        }
        if !report.models.is_empty() {
            text.push('\n');
            text.push_str(&self.models(report).text(2));
            text.push_str(&Self::this_run(report));
        }
        if let Some(check) = &report.plan {
            text.push_str("\n  the plan beside the build\n");
            text.push_str(&checked(check).text(2));
        }
        text
    }

    /// Describes the part that an earlier build had done.
    fn continued(&self, report: &BuildReport) -> String {
        if self.was_complete {
            return "  complete already: nothing was left to do, no call was made\n".to_owned();
        }
        let reused: u64 = report.models_of_run.values().map(|used| used.reused).sum();
        if report.resumed + reused == 0 {
            return String::new();
        }
        let rows = match report.resumed {
            1 => "1 row was".to_owned(),
            rows => format!("{} rows were", grouped(rows)),
        };
        let replies = match reused {
            1 => "1 reply".to_owned(),
            replies => format!("{} replies", grouped(replies)),
        };
        format!("  continued: {rows} on disk, {replies} came from the journal\n")
    }

    /// Describes why the build ended early, the state on disk, and how to continue.
    pub(super) fn unfinished(&self, ending: &str, report: &BuildReport) -> String {
        let mut text = format!("{ending} after {}", duration::format(self.elapsed));
        if let Some(StopReason::ErrorRate(ErrorRate { model, calls, failed, class, message })) =
            &report.stopped
        {
            text.push_str(&format!(
                "\n  {failed} of the last {calls} calls of {model} failed\n  the last failure: {class}: {message}"
            ));
        }
        if let Some(reason @ StopReason::Candidates { .. }) = &report.stopped {
            text.push_str(&format!("\n  {reason}"));
        }
        if let Some(StopReason::Budget(cap)) = &report.stopped {
            text.push_str(&format!("\n  {cap}\n  spent so far: {}", LiveSpend::of(&report.models).words()));
        }
        let calls: u64 = report.models_of_run.values().map(|used| used.calls).sum();
        let rows = format!("{} of {} rows", grouped(report.rows), grouped(self.rows));
        text.push_str(&format!("\non disk: {rows} in {}", self.out.join("parquet-files").display()));
        match &self.journal {
            Some(_) if calls == 0 => {}
            Some(journal) => text.push_str(&format!(
                ", the replies to all {} of this run in {}",
                count_grouped(calls, "answered call"),
                journal.display()
            )),
            None => text.push_str("; there is no journal: calls for all other rows are paid again"),
        }
        text.push_str(&match &report.stopped {
            Some(StopReason::Asked | StopReason::Budget(Cap::Deadline(_))) => {
                "\nrun the same command again to go on".to_owned()
            }
            Some(StopReason::Candidates { .. }) => {
                "\nraise `max_candidates` below `accept`, or accept more, and run the command again to go on"
                    .to_owned()
            }
            Some(StopReason::Budget(cap)) => {
                format!("\nraise {} and run the command again to go on", cap.flag())
            }
            _ => "\nremove the cause, then run the same command again to go on".to_owned(),
        });
        if report.error_count > 0 {
            text.push_str("; --retry-failed tries failed rows of finished row groups again as well");
        }
        text
    }

    fn models(&self, report: &BuildReport) -> Table {
        let has_prices = cost(&report.models).is_some();
        let heads = ["alias", "model", "calls", "reused", "tokens in", "tokens out"];
        let mut table = Table::new(heads.into_iter().chain(has_prices.then_some("cost")));
        for (alias, used) in &report.models {
            let model = if self.demo { "demo model".to_owned() } else { used.model.clone() };
            let numbers = [used.calls, used.reused, used.input_tokens, used.output_tokens]
                .map(|number| number.to_string());
            let cost = has_prices.then(|| used.cost.map_or_else(String::new, money::format));
            table.row([alias.clone(), model].into_iter().chain(numbers).chain(cost));
        }
        table
    }

    /// The share of this run in the spend of a continued build.
    fn this_run(report: &BuildReport) -> String {
        let calls = |models: &BTreeMap<String, ModelMetadata>| -> u64 {
            models.values().map(|used| used.calls).sum()
        };
        match calls(&report.models) > calls(&report.models_of_run) {
            true => format!("  in this run: {}\n", LiveSpend::of(&report.models_of_run).words()),
            false => String::new(),
        }
    }

    /// The event at the start of a build.
    pub(super) fn start_json(&self, columns: &[String]) -> Value {
        let mut event = live::start_event(self.name, self.rows, self.seed, self.demo, columns);
        event["out"] = self.out.display().to_string().into();
        event
    }

    /// The event with failed cells by column and class.
    pub(super) fn errors_json(&self, report: &BuildReport) -> Value {
        live::errors_event(report, self.out)
    }

    /// The event at the end of a build.
    pub(super) fn end_json(&self, status: &str, report: &BuildReport) -> Value {
        live::end_event(status, report, self.was_complete, self.elapsed)
    }
}

/// The number of rows after each stage and step; empty for a single stage without steps and rejections.
pub(super) fn stages_text(stages: &[StageReport]) -> String {
    let is_plain = |stage: &StageReport| stage.rejected + stage.surplus == 0 && stage.steps.is_empty();
    if stages.len() < 2 && stages.iter().all(is_plain) {
        return String::new();
    }
    let mut text = String::new();
    for (stage, number) in stages.iter().zip(1..) {
        let name = if stages.len() > 1 { format!("stage {number}, {}: ", stage.name) } else { String::new() };
        let mut way = vec![format!("{} generated", grouped(stage.candidates))];
        if stage.rejected + stage.surplus > 0 {
            let decided = (stage.rows + stage.surplus + stage.rejected).max(1);
            let share = (stage.rows + stage.surplus) as f64 * 100.0 / decided as f64;
            way.push(format!("{} not accepted ({share:.0}% were)", grouped(stage.rejected)));
        }
        let counts =
            [(stage.dropped, "dropped by failures"), (stage.surplus, "accepted beyond what was asked for")];
        way.extend(
            counts
                .iter()
                .filter(|(count, _)| *count > 0)
                .map(|(count, what)| format!("{} {what}", grouped(*count))),
        );
        way.push(format!("{} kept", grouped(stage.rows)));
        way.extend(stage.steps.iter().map(|step| format!("{} left {}", step.step, grouped(step.after))));
        text.push_str(&format!("  {name}{}\n", way.join(", ")));
    }
    text
}

fn count_grouped(number: u64, noun: &str) -> String {
    count(number, noun).replacen(&number.to_string(), &grouped(number), 1)
}
