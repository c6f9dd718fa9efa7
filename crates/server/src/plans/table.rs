//! The plans that are served at one time. A change creates a new table; requests in flight keep the old one.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use anabranch_plan::{Engine, Error, Request};
use anabranch_plan_ts::SourceFile;

use super::PlanFailure;
use super::canary::Period;
use super::histogram::Histogram;
use super::version::Version;

/// All plans of a project.
#[derive(Clone)]
pub(crate) struct Table {
    pub(crate) engine: Engine,
    pub(crate) plans: BTreeMap<String, Arc<Entry>>,
    /// The reason why the latest change of the project or the registry is not served.
    pub(crate) problem: Option<String>,
}

/// A plan by name.
#[derive(Clone)]
pub(crate) struct Entry {
    pub(crate) name: Arc<str>,
    /// The version that is served; `None` if none has ever loaded.
    pub(crate) current: Option<Arc<Version>>,
    pub(crate) canary: Option<Arc<Canary>>,
    /// The reason why the latest version of its file is not served.
    pub(crate) problem: Option<String>,
    /// The version that was rolled back. While its file has it, it is not tried again.
    pub(crate) rolled_back: Option<RolledBackVersion>,
    /// The files of the latest attempt to load it.
    pub(crate) files: Vec<SourceFile>,
    pub(crate) counts: Arc<Counts>,
}

/// A version that was rolled back.
#[derive(Clone)]
pub(crate) struct RolledBackVersion {
    /// The digest of its files.
    pub(crate) source: String,
    /// The problem of its plan.
    pub(crate) problem: String,
}

/// A new version that gets some of the requests.
#[derive(Clone)]
pub(crate) struct Canary {
    pub(crate) version: Arc<Version>,
    /// The share of the users, from 0 to 1.
    pub(crate) share: f64,
    pub(crate) began: Instant,
    /// The requests of the current version before the canary began.
    pub(crate) current_before: Period,
}

/// The requests for a plan, of all its versions.
#[derive(Default)]
pub(crate) struct Counts {
    begun: AtomicU64,
    pub(crate) full: AtomicU64,
    pub(crate) degraded: AtomicU64,
    pub(crate) failed: AtomicU64,
    pub(crate) refused: AtomicU64,
    pub(crate) late: AtomicU64,
    pub(crate) dropped: AtomicU64,
    pub(crate) latency: Histogram,
}

/// A request that is counted as dropped unless it ends otherwise.
pub(crate) struct InFlight<'a> {
    counts: &'a Counts,
    ended: bool,
}

impl Counts {
    pub(crate) fn begin(&self) -> InFlight<'_> {
        self.begun.fetch_add(1, Ordering::Relaxed);
        InFlight { counts: self, ended: false }
    }

    /// The numbers of finished requests, by outcome in the words of the metrics.
    pub(crate) fn by_outcome(&self) -> [(&'static str, u64); 6] {
        let of = |count: &AtomicU64| count.load(Ordering::Relaxed);
        [
            ("full", of(&self.full)),
            ("degraded", of(&self.degraded)),
            ("failed", of(&self.failed)),
            ("deadline", of(&self.late)),
            ("refused", of(&self.refused)),
            ("dropped", of(&self.dropped)),
        ]
    }

    pub(crate) fn ended(&self) -> u64 {
        self.by_outcome().iter().map(|(_, count)| count).sum()
    }

    pub(crate) fn in_flight(&self) -> u64 {
        // The ends are read first, so that a request that begins and ends in between is counted among those that began.
        let ended = self.ended();
        self.begun.load(Ordering::Relaxed).saturating_sub(ended)
    }

    /// The shares of failed and of degraded requests among those that ended.
    pub(crate) fn rates(&self) -> (f64, f64) {
        let [(_, full), (_, degraded), (_, failed), (_, late), (_, refused), _] = self.by_outcome();
        let all = (full + degraded + failed + late + refused).max(1) as f64;
        ((failed + late + refused) as f64 / all, degraded as f64 / all)
    }
}

impl InFlight<'_> {
    /// Counts the request's end.
    pub(crate) fn end(mut self, outcome: &AtomicU64) {
        self.ended = true;
        outcome.fetch_add(1, Ordering::Relaxed);
    }
}

impl Drop for InFlight<'_> {
    fn drop(&mut self) {
        if !self.ended {
            self.counts.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }
}

impl Entry {
    pub(crate) fn new(name: &str) -> Entry {
        Entry {
            name: name.into(),
            current: None,
            canary: None,
            problem: None,
            rolled_back: None,
            files: Vec::new(),
            counts: Arc::default(),
        }
    }

    /// Counts a request that was refused before it was read. It is not a run.
    pub(crate) fn refused(&self, error: &Error) -> PlanFailure {
        self.counts.begin().end(&self.counts.refused);
        PlanFailure::from(error)
    }

    /// The version that answers a request. A user always gets the same one until the versions change.
    pub(crate) fn version_for<'a>(
        &'a self,
        current: &'a Arc<Version>,
        request: &Request,
    ) -> &'a Arc<Version> {
        match &self.canary {
            Some(canary) if is_chosen(request.user_id().row_id(), &canary.version.source, canary.share) => {
                &canary.version
            }
            _ => current,
        }
    }
}

/// True for this share of all users. Each version has different users.
fn is_chosen(user: i64, version: &str, share: f64) -> bool {
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    for byte in user.to_le_bytes().iter().chain(version.as_bytes()) {
        hash = (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
    }
    // The last multiplication does not mix the first bytes into the low bits.
    hash = (hash ^ (hash >> 32)).wrapping_mul(0xd6e8_feb8_6659_fd93);
    hash ^= hash >> 32;
    (hash as f64) < share * (u64::MAX as f64)
}

#[cfg(test)]
mod tests {
    use super::is_chosen;

    #[test]
    fn a_canary_gets_its_share_of_the_users() {
        for share in [0.0, 0.05, 0.5, 1.0] {
            let chosen = (1..=20_000).filter(|user| is_chosen(*user, "0123456789ab", share)).count();
            let expected = share * 20_000.0;
            assert!((chosen as f64 - expected).abs() <= 300.0, "{share}: {chosen}");
        }
        let both = (1..=20_000).filter(|user| is_chosen(*user, "a", 0.1) && is_chosen(*user, "b", 0.1));
        assert!((100..=300).contains(&both.count()));
    }
}
