//! The saved plan of a build, compared with the build.

use std::path::Path;

use anabranch_dataset::output::{FileError, Metadata};
use anabranch_dataset::{BuildPlan, ColumnPlan, Totals};
use serde::Serialize;

/// The plan of a build, compared with its actual calls, tokens and money.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct PlanComparison {
    pub planned: Totals,
    /// The spend since the plan was made.
    pub actual: Totals,
    /// The plans of the columns.
    pub columns: Vec<ColumnPlan>,
    /// True if nothing had been spent when the plan was made, so that the spend of columns can be compared, too.
    pub is_from_start: bool,
}

impl PlanComparison {
    /// The plan that was made for the build in a folder; `None` if there is none.
    pub(super) fn read(folder: &Path, metadata: &Metadata) -> Result<Option<PlanComparison>, FileError> {
        let Some(check) = &metadata.plan else { return Ok(None) };
        let plan = BuildPlan::read(folder)?.filter(|plan| plan.totals() == check.estimated);
        Ok(Some(PlanComparison {
            planned: check.estimated.clone(),
            actual: check.actual.clone(),
            is_from_start: plan.as_ref().is_some_and(|plan| plan.before.calls == 0),
            columns: plan.map(|plan| plan.columns).unwrap_or_default(),
        }))
    }
}
