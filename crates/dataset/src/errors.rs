//! The errors table: every cell that has no value, and why.

use serde::{Deserialize, Serialize};

use crate::fault::Fault;

/// A cell that has no value.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RowError {
    /// The row's stable number.
    pub row: u64,
    pub column: String,
    /// A short word for the kind of error, such as `timeout`.
    pub class: String,
    /// Calls or tries that were made.
    pub attempts: u32,
    /// The message of the last try.
    pub message: String,
    /// Whether the row is in the output, with null in this column.
    pub kept: bool,
}

impl RowError {
    pub(crate) fn new(row: u64, column: &str, fault: Fault, kept: bool) -> RowError {
        let Fault { class, message, attempts, column: failed, .. } = fault;
        let column = failed.unwrap_or_else(|| column.to_owned());
        RowError { row, column, class: class.into_owned(), attempts, message, kept }
    }
}
