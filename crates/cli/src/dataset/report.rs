//! The report of a build, as text and as JSON.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use anabranch_dataset::{BuildReport, RowError};
use anabranch_text::{count, duration};
use serde_json::{Value, json};

use super::pace::{grouped, rounded};
use crate::table::Table;

/// Facts about a build that its report shows beside the counts.
pub(super) struct BuildSummary<'a> {
    pub(super) name: &'a str,
    /// Rows that were asked for.
    pub(super) rows: u64,
    pub(super) out: &'a Path,
    pub(super) seed: u64,
    pub(super) elapsed: Duration,
    /// The demo model answered.
    pub(super) demo: bool,
}

/// A failed cell in one line.
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
        let BuildSummary { name, rows, out, seed, elapsed, demo } = self;
        let mut text = format!(
            "{name}: {} of {} rows, seed {seed}, in {}\n",
            grouped(report.rows),
            grouped(*rows),
            duration::format(*elapsed)
        );
        if *demo && !report.models.is_empty() {
            text.push_str("  the demo model wrote the texts: they are made up\n");
        }
        text.push_str(&format!("  rows    {}\n", out.join("parquet-files").display()));
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
        if report.error_count > 0 {
            text.push('\n');
            text.push_str(&errors_table(&report.errors).text(2));
        }
        let held = report.errors.len() as u64;
        if report.error_count > held {
            text.push_str(&format!("  … these are the first {}; the file has all\n", grouped(held)));
        }
        if !report.models.is_empty() {
            text.push('\n');
            text.push_str(&self.models(report).text(2));
        }
        text
    }

    fn models(&self, report: &BuildReport) -> Table {
        let mut table = Table::new(["alias", "model", "calls", "tokens in", "tokens out"]);
        for (alias, used) in &report.models {
            let model = if self.demo { "demo model".to_owned() } else { used.model.clone() };
            let numbers =
                [used.calls, used.input_tokens, used.output_tokens].map(|number| number.to_string());
            table.row([alias.clone(), model].into_iter().chain(numbers));
        }
        table
    }

    /// The event that begins a build.
    pub(super) fn start_json(&self, columns: &[String]) -> Value {
        json!({
            "event": "start", "dataset": self.name, "rows": self.rows, "seed": self.seed,
            "out": self.out.display().to_string(), "demo": self.demo, "columns": columns,
        })
    }

    /// The event with failed cells by column and class.
    pub(super) fn errors_json(&self, report: &BuildReport) -> Value {
        let mut columns: BTreeMap<&str, BTreeMap<&str, u64>> = BTreeMap::new();
        for error in &report.errors {
            *columns.entry(&error.column).or_default().entry(&error.class).or_default() += 1;
        }
        json!({
            "event": "errors", "failed_cells": report.error_count, "rows_dropped": report.dropped, "columns": columns,
            "file": self.out.join("errors.jsonl").display().to_string(),
        })
    }

    /// The event that ends a build.
    pub(super) fn end_json(&self, status: &str, report: &BuildReport) -> Value {
        json!({
            "event": "end", "status": status, "rows": report.rows, "rows_dropped": report.dropped,
            "failed_cells": report.error_count, "models": report.models,
            "elapsed_seconds": rounded(self.elapsed.as_secs_f64()),
        })
    }
}
