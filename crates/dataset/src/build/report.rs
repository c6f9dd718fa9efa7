//! The results of builds.

use std::collections::BTreeMap;

use crate::errors::RowError;
use crate::estimate::PlanCheck;
use crate::output::{GroupOnDisk, Metadata, ModelMetadata, StageReport};
use crate::processor::Table;
use crate::stop::StopReason;

/// The result of a build: rows, errors, calls.
#[derive(Clone, Debug, Default)]
pub struct BuildReport {
    /// Rows in the files.
    pub rows: u64,
    /// Rows that an earlier build had written.
    pub resumed: u64,
    /// Rows that were dropped because a cell failed.
    pub dropped: u64,
    /// Failed cells, by row. At most [`MAX_ERRORS`] are held; the files have all.
    pub errors: Vec<RowError>,
    pub error_count: u64,
    /// Calls, tokens and money of all runs of the build, by model alias.
    pub models: BTreeMap<String, ModelMetadata>,
    /// The part of this run in them.
    pub models_of_run: BTreeMap<String, ModelMetadata>,
    /// The reason why it ended before all rows were built.
    pub stopped: Option<StopReason>,
    /// The stages of the build, in order.
    pub stages: Vec<StageReport>,
    /// The plan that was made for the build, compared with its actual spend.
    pub plan: Option<PlanCheck>,
}

/// Failed cells that a report holds.
pub const MAX_ERRORS: usize = 10_000;

/// The rows of a preview.
#[derive(Clone, Debug, Default)]
pub struct Preview {
    pub rows: Table,
    /// The columns that a build writes apart.
    pub dropped: Option<Table>,
    /// The additional tables that processors write, by name.
    pub processed: Vec<(String, Table)>,
    pub errors: Vec<RowError>,
    /// The number of rows that were not accepted.
    pub rejected: u64,
}

impl BuildReport {
    /// The report about a build that was complete before.
    pub(crate) fn of_metadata(before: &Metadata) -> BuildReport {
        let rows = before.actual_num_records;
        let error_count = before.errors.values().flat_map(BTreeMap::values).sum();
        BuildReport {
            rows,
            resumed: rows,
            dropped: before.dropped_num_records,
            error_count,
            stages: before.stages.clone(),
            plan: before.plan.clone(),
            ..BuildReport::default()
        }
    }

    /// The report about the last stage that metadata is about.
    pub(super) fn of_stage(before: &Metadata) -> BuildReport {
        let stage = before.stages.last().cloned().unwrap_or_default();
        let error_count = stage.errors.values().flat_map(BTreeMap::values).sum();
        BuildReport { dropped: stage.dropped, error_count, ..BuildReport::of_metadata(before) }
    }

    /// Adds a row group that is on disk, or that was stopped before it had rows.
    pub(super) fn note_group(&mut self, metadata: &mut Metadata, group: u64, found: GroupOnDisk) {
        let GroupOnDisk { rows, unfinished, errors, rejected, .. } = found;
        if unfinished == 0 {
            metadata.num_completed_batches += 1;
        }
        metadata.actual_num_records += rows;
        metadata.rejected_num_records += rejected;
        if unfinished == 0 || rows > 0 {
            metadata.file_paths.push(format!("parquet-files/batch_{group:05}.parquet"));
        }
        self.rows += rows;
        for error in errors {
            let classes = metadata.errors.entry(error.column.clone()).or_default();
            *classes.entry(error.class.clone()).or_default() += 1;
            self.error_count += 1;
            if !error.kept {
                self.dropped += 1;
                metadata.dropped_num_records += 1;
            }
            if self.errors.len() < MAX_ERRORS {
                self.errors.push(error);
            }
        }
    }
}
