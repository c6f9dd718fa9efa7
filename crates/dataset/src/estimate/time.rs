//! The time of a build.

use std::collections::BTreeMap;

use super::column::{Estimate, Estimator};
use super::graph::ancestors;

/// The time of a build: models answer side by side, so the one that takes longest counts, and one row's way through all of
/// its columns.
pub(super) fn seconds(estimator: &Estimator<'_>, estimates: &[Estimate]) -> f64 {
    let mut by_model: BTreeMap<(&str, &str), f64> = BTreeMap::new();
    for Estimate { plan, seconds_per_call, at_once, .. } in estimates {
        let time = plan.calls as f64 * seconds_per_call / at_once.max(1.0);
        let provider = estimator.provider(&plan.alias);
        *by_model.entry((provider, &plan.model)).or_default() += time;
    }
    let longest = by_model.values().copied().fold(0.0, f64::max);
    longest + critical_path(estimator, estimates)
}

/// The time of one row whose cells are all generated: the longest way along the columns.
fn critical_path(estimator: &Estimator<'_>, estimates: &[Estimate]) -> f64 {
    let own = |name: &str| {
        let found = estimates.iter().find(|found| found.plan.name == name && found.plan.generate > 0);
        found.map_or(0.0, |found| found.seconds_per_call * found.calls_per_cell)
    };
    let mut ends: BTreeMap<&str, f64> = BTreeMap::new();
    // A column with fewer ancestors than another does not depend on it.
    let mut columns: Vec<_> =
        estimator.run.columns.iter().map(|column| (ancestors(estimator.run, column), column)).collect();
    columns.sort_by_key(|(ancestors, _)| ancestors.len());
    for (ancestors, column) in columns {
        let start =
            ancestors.iter().filter_map(|parent| ends.get(&*parent.name)).copied().fold(0.0, f64::max);
        ends.insert(&column.name, start + own(&column.name));
    }
    ends.values().copied().fold(0.0, f64::max)
}
