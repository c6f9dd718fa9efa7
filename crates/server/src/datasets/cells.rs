//! The states of cells for the live grid.

use anabranch_dataset::CellPhase;
use serde::Deserialize;
use tonic::Code;

use super::{Datasets, Failure};
use crate::runs::RunId;

/// The most cells of one answer.
const CELLS_MOST: u64 = 4_000_000;

/// Which cells an answer has.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct CellQuery {
    from: Option<u64>,
    to: Option<u64>,
    /// So many rows are combined into two bytes per column: the worst state, and the share that is finished.
    bucket: Option<u64>,
}

/// The states of cells, and how to read them.
pub(crate) struct CellBytes {
    pub(crate) bytes: Vec<u8>,
    /// The number of columns.
    pub(crate) columns: usize,
    /// The number of rows that each group of bytes is about.
    pub(crate) bucket: u64,
}

impl Datasets {
    /// The states of cells, one byte each, row by row. Of a build that is not under way, all cells of the rows on disk are
    /// finished.
    pub(crate) async fn cells(&self, id: RunId, query: CellQuery) -> Result<CellBytes, Failure> {
        let job = self.find(id)?;
        let build = job.state().build.clone();
        let Some(live) = build else {
            let message =
                format!("the dataset {id} is not being built now; GET /v1/datasets/{id}/rows has its rows");
            return Err(Failure::new(Code::FailedPrecondition, message));
        };
        let progress = live.build.progress();
        let snapshot = progress.snapshot();
        let (columns, rows) = (snapshot.columns.len(), snapshot.rows);
        let from = query.from.unwrap_or(0).min(rows);
        let to = query.to.unwrap_or(rows).clamp(from, rows);
        let bucket = query.bucket.unwrap_or(1).max(1);
        let cells = (to - from).saturating_mul(columns as u64);
        if bucket == 1 && cells > CELLS_MOST {
            let message = format!(
                "{cells} cells are more than the {CELLS_MOST} of one answer; ask for fewer rows with `from` and `to`, or \
                 combine rows with `bucket`"
            );
            return Err(Failure::new(Code::OutOfRange, message));
        }
        let too_large = || {
            Failure::new(
                Code::OutOfRange,
                "the dataset has too many cells to keep their states; its columns have counts",
            )
        };
        let read = self.off_workers(move || {
            let bytes = progress.cells(from..to)?;
            Some(if bucket == 1 { bytes } else { combined(&bytes, columns.max(1), bucket) })
        });
        let bytes = read.await?.ok_or_else(too_large)?;
        Ok(CellBytes { bytes, columns, bucket })
    }
}

/// The states in the order of how much they matter to a reader.
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
