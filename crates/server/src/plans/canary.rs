//! Compares a new version of a plan with the current one.

use std::sync::atomic::Ordering;

use super::settings::CanarySettings;
use super::table::{Canary, Entry};
use super::version::{Version, VersionStats};

/// The fewest requests that a new version needs for a verdict.
const FEWEST_REQUESTS: u64 = 100;
/// The accepted increase of the failure rate.
const MORE_FAILURES: f64 = 0.005;
/// The accepted ratio of the two 99th percentiles. Percentiles are up to 6% too high.
const MORE_TIME: f64 = 1.15;

/// The verdict on a new version.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Verdict {
    Promote,
    /// The version is dropped, for this reason.
    RollBack(String),
}

/// The verdict on the new version of a plan once its trial is over; `None` if there is no trial or it must continue.
pub(crate) fn judge(entry: &Entry, settings: Option<&CanarySettings>) -> Option<Verdict> {
    let (canary, current, settings) = (entry.canary.as_ref()?, entry.current.as_ref()?, settings?);
    let now = canary.version.plan.engine().runs().clock().now();
    let is_over = now.saturating_duration_since(canary.began) >= settings.trial;
    is_over.then(|| compare(canary, current)).flatten()
}

fn compare(canary: &Canary, current: &Version) -> Option<Verdict> {
    let (requests, failed) = canary.version.stats.totals();
    if requests < FEWEST_REQUESTS {
        return None;
    }
    let (all, all_failed) = current.stats.totals();
    let (requests_before, failed_before) = canary.current_before;
    let (others, others_failed) = (all - requests_before, all_failed - failed_before);
    let rate = |failed: u64, requests: u64| failed as f64 / requests.max(1) as f64;
    let (new_rate, old_rate) = (rate(failed, requests), rate(others_failed, others));
    if new_rate > old_rate + MORE_FAILURES {
        let (new, old) = (100.0 * new_rate, 100.0 * old_rate);
        return Some(Verdict::RollBack(format!("{new:.1}% of its requests failed, {old:.1}% of the others")));
    }
    let p99 = |stats: &VersionStats| stats.latency.read().percentile_ms(0.99);
    match (p99(&canary.version.stats), p99(&current.stats)) {
        (Some(new), Some(old)) if new > old * MORE_TIME => {
            let why = format!("its 99th percentile is {new:.1} ms, that of the others {old:.1} ms");
            Some(Verdict::RollBack(why))
        }
        _ => Some(Verdict::Promote),
    }
}

impl VersionStats {
    /// The numbers of finished and of failed requests.
    pub(crate) fn totals(&self) -> (u64, u64) {
        let failed = self.failed.load(Ordering::Relaxed);
        (self.latency.read().count, failed)
    }
}
