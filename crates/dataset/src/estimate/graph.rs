//! The columns that a column depends on.

use std::collections::BTreeSet;

use crate::dry::{ColumnForecast, DryRun};

/// The forecast of the generator that fills a column.
pub(super) fn filled_by<'r>(run: &'r DryRun, name: &str) -> Option<&'r ColumnForecast> {
    run.columns.iter().find(|column| column.fills.iter().any(|fill| fill == name))
}

/// The columns that a column depends on, directly or not.
pub(super) fn ancestors<'r>(run: &'r DryRun, column: &ColumnForecast) -> Vec<&'r ColumnForecast> {
    let mut found: Vec<&ColumnForecast> = Vec::new();
    let mut seen: BTreeSet<&str> = BTreeSet::new();
    let mut due: Vec<&str> = column.reads.iter().map(String::as_str).collect();
    while let Some(name) = due.pop() {
        let Some(parent) = filled_by(run, name) else { continue };
        if parent.name != column.name && seen.insert(&parent.name) {
            found.push(parent);
            due.extend(parent.reads.iter().map(String::as_str));
        }
    }
    found
}
