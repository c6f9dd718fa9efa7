//! The states of cells for the live grid.

use std::ops::Range;
use std::sync::Arc;

use anabranch_dataset::{CellChanges, CellPhase, ChangedRows, Progress};
use serde::Deserialize;
use serde_json::Value;
use tonic::Code;

use super::past::PastCells;
use super::{Datasets, Failure, disk};
use crate::runs::RunId;

/// The most cells in one response.
const CELLS_MOST: u64 = 4_000_000;

/// The requested range of cells.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct CellQuery {
    from: Option<u64>,
    to: Option<u64>,
    /// The number of rows that are combined into two bytes per column: the worst state, and the finished share.
    bucket: Option<u64>,
}

/// The states of cells, and their layout.
pub(crate) struct CellBytes {
    pub(crate) bytes: Vec<u8>,
    /// The number of columns.
    pub(crate) columns: usize,
    /// The number of rows per group of bytes.
    pub(crate) bucket: u64,
    /// The number of the run's last event before the states were read. They include the changes of all events up to it.
    pub(crate) event: u64,
}

impl Datasets {
    /// The states of cells, one byte each, row by row, of the current build or the last one.
    pub(crate) async fn cells(&self, id: RunId, query: CellQuery) -> Result<CellBytes, Failure> {
        let job = self.find(id)?;
        let event = job.last_event();
        self.off_workers(move || {
            let build = job.state().build.clone();
            let cells = match build {
                Some(live) => Cells::Live(live.build.progress()),
                None => {
                    let past = disk::past(&job.folder).cells.filter(PastCells::is_whole);
                    Cells::Past(past.ok_or_else(|| not_kept(id))?)
                }
            };
            let (rows, columns) = cells.shape();
            let from = query.from.unwrap_or(0).min(rows);
            let to = query.to.unwrap_or(rows).clamp(from, rows);
            let bucket = query.bucket.unwrap_or(1).max(1);
            check_count((to - from).saturating_mul(columns as u64), bucket)?;
            let bytes = cells.read(from..to).ok_or_else(too_large)?;
            let bytes = if bucket == 1 { bytes } else { combined(&bytes, columns.max(1), bucket) };
            Ok(CellBytes { bytes, columns, bucket, event })
        })
        .await?
    }
}

/// The cells of a build.
enum Cells {
    Live(Arc<Progress>),
    Past(PastCells),
}

impl Cells {
    /// The number of rows and of columns.
    fn shape(&self) -> (u64, usize) {
        match self {
            Cells::Live(progress) => progress.shape(),
            Cells::Past(past) => (past.rows(), past.columns),
        }
    }

    fn read(&self, rows: Range<u64>) -> Option<Vec<u8>> {
        match self {
            Cells::Live(progress) => progress.cells(rows),
            Cells::Past(past) => Some(past.read(rows)),
        }
    }
}

fn not_kept(id: RunId) -> Failure {
    let message = format!(
        "the dataset {id} is not being built now, and the states of its cells are not kept; \
         GET /v1/datasets/{id}/rows has its rows"
    );
    Failure::new(Code::FailedPrecondition, message)
}

fn too_large() -> Failure {
    let message = "the dataset has too many cells to keep their states; its columns have counts";
    Failure::new(Code::OutOfRange, message)
}

fn check_count(cells: u64, bucket: u64) -> Result<(), Failure> {
    if bucket > 1 || cells <= CELLS_MOST {
        return Ok(());
    }
    let message = format!(
        "{cells} cells are more than the {CELLS_MOST} of one answer; ask for fewer rows with `from` and `to`, or \
         combine rows with `bucket`"
    );
    Err(Failure::new(Code::OutOfRange, message))
}

/// Changes in the format of events: one list per group of rows, with its first row, then pairs of a state and a number
/// of cells. `null` if there were too many.
pub(super) fn changes(changes: CellChanges) -> Value {
    let CellChanges::Rows(groups) = changes else { return Value::Null };
    let group = |ChangedRows { first, states }: ChangedRows| -> Value {
        let runs = states.into_iter().flat_map(|(state, count)| [u64::from(state), u64::from(count)]);
        std::iter::once(first).chain(runs).collect()
    };
    groups.into_iter().map(group).collect()
}

/// The states, the most important first.
const WORST_FIRST: [CellPhase; 6] = [
    CellPhase::Failed,
    CellPhase::Dropped,
    CellPhase::Running,
    CellPhase::Waiting,
    CellPhase::Skipped,
    CellPhase::Finished,
];

/// Two bytes per bucket and column: the worst state, and 255 times the share of settled cells.
fn combined(cells: &[u8], columns: usize, bucket: u64) -> Vec<u8> {
    let rows_per_bucket = usize::try_from(bucket).unwrap_or(usize::MAX);
    let mut bytes = Vec::new();
    for rows in cells.chunks(rows_per_bucket.saturating_mul(columns)) {
        for column in 0..columns {
            let states = || rows.iter().skip(column).step_by(columns);
            let has = |phase: &&CellPhase| states().any(|state| *state == **phase as u8);
            let worst = WORST_FIRST.iter().find(has).copied().unwrap_or(CellPhase::Waiting);
            let settled = states().filter(|state| **state >= CellPhase::Finished as u8).count();
            bytes.extend([worst as u8, (settled * 255 / states().count().max(1)) as u8]);
        }
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::combined;

    #[test]
    fn buckets_have_the_worst_state_and_the_share_of_settled_cells() {
        // Two columns: finished, waiting; finished, failed; finished, running.
        assert_eq!(combined(&[2, 0, 2, 3, 2, 1], 2, 2), [2, 255, 3, 127, 2, 255, 1, 0]);
        assert!(combined(&[], 2, 5).is_empty());
        assert_eq!(combined(&[0, 2], 1, u64::MAX), [0, 127]);
    }
}
