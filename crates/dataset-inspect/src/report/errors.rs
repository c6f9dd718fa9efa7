//! Failed cells, by column and class.

use std::collections::BTreeMap;
use std::path::Path;

use anabranch_dataset::RowError;
use anabranch_dataset::output::FileError;
use serde::Serialize;

/// The failed cells of a dataset.
#[derive(Clone, Debug, Default, Serialize)]
pub struct ErrorSummary {
    pub cells: u64,
    /// Rows that were dropped for them.
    pub dropped: u64,
    /// By column and class, most cells first.
    pub groups: Vec<ErrorGroup>,
}

/// The failed cells of one column and class.
#[derive(Clone, Debug, Default, Serialize)]
pub struct ErrorGroup {
    pub column: String,
    pub class: String,
    pub cells: u64,
    pub dropped: u64,
    /// The most tries of one cell.
    pub attempts: u32,
    /// A few different messages.
    pub examples: Vec<ErrorExample>,
}

/// A message, and the first row that has it.
#[derive(Clone, Debug, Serialize)]
pub struct ErrorExample {
    /// The row's stable number.
    pub id: u64,
    /// The number, or the path of a row that was made from another one: `17.3`.
    pub row: String,
    pub message: String,
}

/// Messages that are shown per column and class.
const EXAMPLES: usize = 3;
/// Characters of a message.
const KEPT_CHARACTERS: usize = 2_000;
/// Classes are chosen by programs, but a folder may be anybody's: more than this many groups are counted as one.
const MAX_GROUPS: usize = 1_000;

/// Reads the failed cells of a file.
pub(super) fn read(path: &Path) -> Result<ErrorSummary, FileError> {
    let mut groups: BTreeMap<(String, String), ErrorGroup> = BTreeMap::new();
    super::lines(path, |line| {
        let error: RowError = serde_json::from_str(line)?;
        let mut key = (error.column, error.class);
        if groups.len() >= MAX_GROUPS && !groups.contains_key(&key) {
            key = ("(others)".to_owned(), String::new());
        }
        let group = groups.entry(key).or_default();
        group.cells += 1;
        group.dropped += u64::from(!error.kept);
        group.attempts = group.attempts.max(error.attempts);
        let message: String = error.message.chars().take(KEPT_CHARACTERS).collect();
        if group.examples.len() < EXAMPLES && !group.examples.iter().any(|known| known.message == message) {
            group.examples.push(ErrorExample { id: error.row, row: error.row.to_string(), message });
        }
        Ok(())
    })?;
    let named = groups.into_iter().map(|((column, class), group)| ErrorGroup { column, class, ..group });
    let mut groups: Vec<ErrorGroup> = named.collect();
    groups.sort_by_key(|group| std::cmp::Reverse(group.cells));
    let (cells, dropped) =
        groups.iter().fold((0, 0), |(cells, dropped), group| (cells + group.cells, dropped + group.dropped));
    Ok(ErrorSummary { cells, dropped, groups })
}
