//! Stages of a dataset: the rows between them, and the steps that change their number and order.
//!
//! Every row has a stable number, its id. Rows of the first stage are numbered from 0. Steps that only choose or order
//! rows keep their ids. The id of a row that was made from another follows from that row's id. So the replies for a row
//! are found in the journal again, regardless of changes to other rows.

mod lineage;
mod rows;
mod select;
mod write;
#[cfg(test)]
mod tests;

pub use lineage::{RowFate, StepFate, child_id, parse_row, read_fates};
pub(crate) use rows::StageRows;
pub use select::StepReport;
pub(crate) use select::{StepSetting, columns_after, is_met, select};
pub(crate) use write::{after_steps, gather};

/// The folder of the stages before the last one, in the output folder.
pub(crate) const STAGES: &str = "stages";

/// The folder of a stage, below the output folder.
pub(crate) fn folder_name(number: usize, name: &str) -> String {
    format!("{STAGES}/{}-{}", number + 1, name.replace(' ', "-"))
}
