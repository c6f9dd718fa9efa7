//! The shares of cells that are skipped, fail, or are left because their row is.

use super::column::Estimator;
use super::graph::ancestors;
use super::statistics::quotient;
use crate::config::OnRowError;
use crate::dry::ColumnForecast;
use crate::progress::ColumnSnapshot;

/// Cells that make a share worth something.
const ENOUGH: u64 = 10;

/// Cells that will be generated.
pub(super) struct Due {
    /// Their requests are known.
    pub(super) lacking: f64,
    /// They depend on unknown values.
    pub(super) unknown: f64,
}

impl Estimator<'_> {
    /// The number of cells of a column that will be generated. Cells that may be skipped count by the share of skipped
    /// ones.
    pub(super) fn due(&self, found: &ColumnForecast) -> Due {
        let kept = 1.0 - self.skip_share(found).unwrap_or(0.0);
        let part =
            |all: u64, may_be_skipped: u64| (all - may_be_skipped) as f64 + may_be_skipped as f64 * kept;
        let lacking = part(found.lacking, found.lacking_may_be_skipped);
        let unknown = part(found.unknown, found.unknown_may_be_skipped);
        Due { lacking, unknown: unknown * self.survival(found) }
    }

    /// The share of skipped cells, in rows where it is known.
    pub(super) fn skip_share(&self, found: &ColumnForecast) -> Option<f64> {
        let (mut skipped, mut all) = (0, 0);
        for column in std::iter::once(found).chain(self.run.sample_of(&found.name)) {
            let perhaps = column.lacking_may_be_skipped + column.unknown_may_be_skipped;
            skipped += column.skipped;
            all += column.cells() - perhaps;
        }
        if all >= ENOUGH {
            return quotient(skipped, all);
        }
        let earlier = self.earlier(&found.name)?;
        quotient(earlier.skipped, earlier.skipped + earlier.finished + earlier.failed)
    }

    /// The share of rows that reach a column. A cell that fails before it may drop the row.
    fn survival(&self, found: &ColumnForecast) -> f64 {
        let parents = ancestors(self.run, found);
        let open = parents.iter().filter(|parent| parent.lacking + parent.unknown > 0);
        let failing: f64 = open.map(|parent| 1.0 - self.failed_share(parent)).product();
        // A row is dropped as soon as it is known that it is not accepted.
        let is_behind = |accept: &&ColumnForecast| {
            let is_parent = |read: &String| parents.iter().any(|parent| parent.fills.contains(read));
            accept.fills.is_empty() && accept.reads.iter().all(is_parent)
        };
        let accepting = self.run.columns.iter().filter(is_behind);
        failing * accepting.map(|accept| self.accepted_share(accept)).product::<f64>()
    }

    /// The share of accepted rows, among the known ones or in the earlier build.
    fn accepted_share(&self, accept: &ColumnForecast) -> f64 {
        let (mut accepted, mut all) = (accept.computed, accept.computed + accept.failed);
        if all < ENOUGH
            && let Some(earlier) = &self.run.earlier
        {
            accepted = earlier.stages.iter().map(|stage| stage.rows + stage.surplus).sum();
            all = accepted + earlier.stages.iter().map(|stage| stage.rejected).sum::<u64>();
        }
        quotient(accepted, all).unwrap_or(1.0)
    }

    fn failed_share(&self, found: &ColumnForecast) -> f64 {
        let config = self.loaded.config.columns.iter().find(|column| column.name == found.name);
        if config.is_none_or(|column| column.on_error != OnRowError::DropRow) {
            return 0.0;
        }
        let (mut failed, mut all) = (0, 0);
        for column in std::iter::once(found).chain(self.run.sample_of(&found.name)) {
            failed += column.failed;
            all += column.failed + column.reused + column.computed;
        }
        if all < ENOUGH
            && let Some(earlier) = self.earlier(&found.name)
        {
            (failed, all) = (earlier.failed, earlier.failed + earlier.finished);
        }
        quotient(failed, all).unwrap_or(0.0)
    }

    fn earlier(&self, name: &str) -> Option<&ColumnSnapshot> {
        let earlier = self.run.earlier.as_ref()?;
        earlier.cells.iter().find(|column| column.name == name)
    }
}
