//! Compares a new version of a plan with the current one.

use std::sync::atomic::Ordering;

use super::histogram::Durations;
use super::settings::CanarySettings;
use super::table::Entry;
use super::version::VersionStats;

/// The fewest requests that a new version needs for a verdict.
const FEWEST_REQUESTS: u64 = 100;
/// A version that fails on half of so many requests is rolled back before its trial is over, unless the others fail, too.
const FEWEST_FAILING: u64 = 20;
const CLEAR_FAILURES: f64 = 0.5;
const FEW_FAILURES: f64 = 0.1;
/// The fewest requests of the served version that show that its sources work.
const FEWEST_OTHERS: u64 = 20;
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

/// The verdict on the new version of a plan: once its trial is over, or as soon as it clearly fails. `None` if there is no
/// trial or it must continue.
pub(crate) fn judge(entry: &Entry, settings: Option<&CanarySettings>) -> Option<Verdict> {
    let (canary, current, settings) = (entry.canary.as_ref()?, entry.current.as_ref()?, settings?);
    let now = canary.version.plan.engine().runs().clock().now();
    let is_over = now.saturating_duration_since(canary.began) >= settings.trial;
    let (new, old) = (canary.version.stats.period(), current.stats.period().since(&canary.current_before));
    match is_over {
        true => compare(&new, &old, canary.share),
        false => clear_failure(&new, &old, canary.share),
    }
}

/// The verdict on a version that fails on most requests of its share of the users. It is not judged for a source that
/// fails for both versions, so there must be requests of the other, unless it has none because the new one has them all.
fn clear_failure(new: &Period, old: &Period, share: f64) -> Option<Verdict> {
    let fails = new.latency.count >= FEWEST_FAILING && new.rate() >= CLEAR_FAILURES;
    let has_others = old.latency.count >= FEWEST_OTHERS || share >= 1.0;
    (fails && has_others && old.rate() <= FEW_FAILURES).then(|| roll_back(new, old))
}

fn roll_back(new: &Period, old: &Period) -> Verdict {
    let (new, old) = (100.0 * new.rate(), 100.0 * old.rate());
    Verdict::RollBack(format!("{new:.1}% of its requests failed, {old:.1}% of the others"))
}

/// The verdict at the end of a trial on the requests of both versions during the trial.
fn compare(new: &Period, old: &Period, share: f64) -> Option<Verdict> {
    if new.latency.count < FEWEST_REQUESTS {
        return clear_failure(new, old, share);
    }
    if new.rate() > old.rate() + MORE_FAILURES {
        return Some(roll_back(new, old));
    }
    let p99 = |period: &Period| period.latency.percentile_ms(0.99);
    match (p99(new), p99(old)) {
        (Some(new), Some(old)) if new > old * MORE_TIME => {
            let why = format!("its 99th percentile is {new:.1} ms, that of the others {old:.1} ms");
            Some(Verdict::RollBack(why))
        }
        _ => Some(Verdict::Promote),
    }
}

/// The finished requests of a version in a period.
#[derive(Clone, Default)]
pub(crate) struct Period {
    latency: Durations,
    failed: u64,
}

impl Period {
    /// The failed share of the requests.
    fn rate(&self) -> f64 {
        self.failed as f64 / self.latency.count.max(1) as f64
    }

    /// The part after an earlier period with the same beginning.
    fn since(&self, earlier: &Period) -> Period {
        let failed = self.failed.saturating_sub(earlier.failed);
        Period { latency: self.latency.since(&earlier.latency), failed }
    }
}

impl VersionStats {
    /// All requests so far.
    pub(crate) fn period(&self) -> Period {
        let failed = self.failed.load(Ordering::Relaxed);
        Period { latency: self.latency.read(), failed }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::super::histogram::Histogram;
    use super::*;

    /// Requests of these durations in milliseconds.
    fn requests(failed: u64, times: &[(u64, u64)]) -> Period {
        let latency = Histogram::default();
        for (count, ms) in times {
            (0..*count).for_each(|_| latency.add(Duration::from_millis(*ms)));
        }
        Period { latency: latency.read(), failed }
    }

    #[test]
    fn a_version_that_clearly_fails_is_rolled_back_early() {
        let totals = |failed, count| requests(failed, &[(count, 10)]);
        for (new, old, share, is_bad) in [
            ((20, 20), (0, 400), 0.1, true),
            ((10, 20), (0, 20), 0.1, true),
            ((19, 19), (0, 400), 0.1, false),
            ((9, 20), (0, 400), 0.1, false),
            ((20, 20), (200, 400), 0.1, false),
            // An outage looks like that if the others have no requests yet.
            ((20, 20), (0, 0), 0.9, false),
            ((20, 20), (0, 19), 0.9, false),
            ((20, 20), (0, 0), 1.0, true),
        ] {
            let verdict = clear_failure(&totals(new.0, new.1), &totals(old.0, old.1), share);
            assert_eq!(verdict.is_some(), is_bad, "{new:?} {old:?}");
        }
        let verdict = clear_failure(&totals(20, 20), &totals(1, 100), 0.1);
        let why = "100.0% of its requests failed, 1.0% of the others";
        assert_eq!(verdict, Some(Verdict::RollBack(why.to_owned())));
    }

    #[test]
    fn a_trial_with_too_few_requests_goes_on() {
        assert_eq!(compare(&requests(0, &[(99, 900)]), &requests(0, &[(900, 10)]), 0.1), None);
        assert!(
            compare(&requests(60, &[(99, 10)]), &requests(0, &[(900, 10)]), 0.1).is_some(),
            "it clearly fails"
        );
    }

    #[test]
    fn a_version_is_promoted_unless_it_fails_more_or_is_slower() {
        let old = requests(10, &[(1_000, 10)]);
        for (failed, times, expected) in [
            (1, &[(100, 10)][..], None),
            // 1.5% are the most that are accepted beside 1%.
            (15, &[(1_000, 10)], None),
            (16, &[(1_000, 10)], Some("1.6% of its requests failed, 1.0% of the others")),
            (0, &[(1_000, 11)], None),
            (0, &[(1_000, 12)], Some("its 99th percentile is 12.3 ms, that of the others 10.2 ms")),
            // Of 100 requests one may be slow.
            (0, &[(99, 10), (1, 900)], None),
            (0, &[(98, 10), (2, 900)], Some("its 99th percentile is 917.5 ms, that of the others 10.2 ms")),
        ] {
            let verdict = match expected {
                None => Verdict::Promote,
                Some(why) => Verdict::RollBack(why.to_owned()),
            };
            assert_eq!(compare(&requests(failed, times), &old, 0.1), Some(verdict), "{failed} {times:?}");
        }
        assert_eq!(compare(&requests(0, &[(100, 900)]), &Period::default(), 0.1), Some(Verdict::Promote));
    }

    /// A store that became slow during the trial makes both slow; one that was slow before it makes neither look good.
    #[test]
    fn only_the_time_of_the_trial_counts() {
        let stats = Histogram::default();
        let add = |count: u64, ms: u64| (0..count).for_each(|_| stats.add(Duration::from_millis(ms)));
        let period = |failed| Period { latency: stats.read(), failed };
        let is_promoted = |new: &Period, old: &Period| compare(new, old, 0.1) == Some(Verdict::Promote);
        add(100_000, 10);
        let before = period(500);
        add(1_000, 50);
        let old = period(500).since(&before);
        assert_eq!((old.latency.count, old.failed), (1_000, 0));
        assert!(is_promoted(&requests(0, &[(100, 50)]), &old), "both are slow now");
        let before = period(500);
        add(1_000, 10);
        let old = period(500).since(&before);
        assert!(!is_promoted(&requests(0, &[(100, 50)]), &old), "the others are fast again");
    }
}
